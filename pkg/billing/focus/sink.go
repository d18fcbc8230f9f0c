package focus

import (
	"encoding/csv"
	"fmt"
	"io"
	"math/big"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/suanpan/suanpan/pkg/money"
)

// csvSink writes CSV: null is an empty cell.
type csvSink struct {
	columns []column
	writer  *csv.Writer
	record  []string
}

func newCSV(w io.Writer, columns []column) (*csvSink, error) {
	s := &csvSink{columns: columns, writer: csv.NewWriter(w), record: make([]string, len(columns))}
	for i, c := range columns {
		s.record[i] = c.name
	}
	if err := s.writer.Write(s.record); err != nil {
		return nil, fmt.Errorf("write header: %w", err)
	}
	return s, nil
}

func (s *csvSink) write(r row) error {
	for i, c := range s.columns {
		s.record[i] = r[c.name]
	}
	return s.writer.Write(s.record)
}

func (s *csvSink) close() error {
	s.writer.Flush()
	return s.writer.Error()
}

// A decimal of Parquet has 38 digits, of which so many are decimals, in 16 bytes.
const (
	parquetDigits = 38
	parquetScale  = 18
	parquetBytes  = 16
	rowGroup      = 50_000 // rows that are in memory together
)

// parquetSink writes Parquet.
type parquetSink struct {
	columns []column
	writer  *parquet.Writer
}

func newParquet(w io.Writer, columns []column) *parquetSink {
	group := make(parquet.Group, len(columns))
	for _, c := range columns {
		node := parquet.String()
		switch c.kind {
		case decimal:
			node = parquet.Decimal(parquetScale, parquetDigits,
				parquet.FixedLenByteArrayType(parquetBytes))
		case instant:
			node = parquet.TimestampAdjusted(parquet.Microsecond, false)
		case text:
		}
		group[c.name] = parquet.Optional(node)
	}
	schema := parquet.NewSchema("focus", group)
	return &parquetSink{columns: columns, writer: parquet.NewWriter(w, schema,
		parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(rowGroup),
		parquet.CreatedBy("suanpan", "", ""))}
}

func (s *parquetSink) write(r row) error {
	out := make(parquet.Row, len(s.columns))
	for i, c := range s.columns {
		value, err := c.value(r[c.name])
		if err != nil {
			return fmt.Errorf("column %s: %w", c.name, err)
		}
		level := 1
		if value.IsNull() {
			level = 0
		}
		out[i] = value.Level(0, level, i)
	}
	if _, err := s.writer.WriteRows([]parquet.Row{out}); err != nil {
		return fmt.Errorf("write row: %w", err)
	}
	return nil
}

func (s *parquetSink) close() error { return s.writer.Close() }

// value is a cell; "" is null.
func (c *column) value(cell string) (parquet.Value, error) {
	if cell == "" {
		return parquet.NullValue(), nil
	}
	switch c.kind {
	case decimal:
		a, err := money.ParseSigned(cell)
		if err != nil {
			return parquet.Value{}, err
		}
		n, err := a.Scaled(parquetScale)
		if err != nil {
			return parquet.Value{}, err
		}
		return fixed(n)
	case instant:
		t, err := time.Parse(time.RFC3339, cell)
		if err != nil {
			return parquet.Value{}, err
		}
		return parquet.Int64Value(t.UnixMicro()), nil
	case text:
	}
	return parquet.ByteArrayValue([]byte(cell)), nil
}

// fixed is a whole number as two's complement, the first byte the highest.
func fixed(n *big.Int) (parquet.Value, error) {
	if n.BitLen() >= 8*parquetBytes {
		return parquet.Value{}, fmt.Errorf("%s is too large", n)
	}
	if n.Sign() < 0 {
		n = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), 8*parquetBytes))
	}
	return parquet.FixedLenByteArrayValue(n.FillBytes(make([]byte, parquetBytes))), nil
}
