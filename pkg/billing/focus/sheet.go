package focus

import (
	"encoding/csv"
	"fmt"
	"io"
	"math/big"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	billingcsv "github.com/suanpan/suanpan/pkg/billing/csv"
	"github.com/suanpan/suanpan/pkg/money"
)

// sheet takes the rows of a dataset, whose cells are in the order of its columns, all of them.
type sheet interface {
	write(cells []string) error
	close() error
}

// places are the columns that a version has.
func places(in []column, v Version) []int {
	var at []int
	for i := range in {
		if in[i].only == "" || in[i].only == v {
			at = append(at, i)
		}
	}
	return at
}

// csvSheet writes CSV: a null is an empty cell.
type csvSheet struct {
	at     []int
	writer *csv.Writer
	record []string
}

func newCSV(w io.Writer, in []column, v Version) (*csvSheet, error) {
	s := &csvSheet{at: places(in, v), writer: csv.NewWriter(w)}
	s.record = make([]string, len(s.at))
	for i, at := range s.at {
		s.record[i] = in[at].name
	}
	if err := s.writer.Write(s.record); err != nil {
		return nil, fmt.Errorf("write header: %w", err)
	}
	return s, nil
}

func (s *csvSheet) write(cells []string) error {
	for i, at := range s.at {
		s.record[i] = billingcsv.Safe(cells[at])
	}
	if err := s.writer.Write(s.record); err != nil {
		return fmt.Errorf("write row: %w", err)
	}
	return nil
}

func (s *csvSheet) close() error {
	s.writer.Flush()
	if err := s.writer.Error(); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	return nil
}

// The decimals of Parquet, and the bounds of what is in memory.
const (
	decimalDigits = 38
	decimalBytes  = 16
	groupRows     = 20_000 // rows of a row group
	batchRows     = 64     // rows that are handed over together
)

// parquetSheet writes Parquet. All columns are optional; they are in the order of their names.
type parquetSheet struct {
	at     []int
	in     []column
	writer *parquet.GenericWriter[any]
	batch  []parquet.Row
	last   []lastCell // by column: most cells are what they were in the row before
}

type lastCell struct {
	text  string
	value parquet.Value
}

func newParquet(w io.Writer, in []column, v Version) *parquetSheet {
	s := &parquetSheet{at: places(in, v), in: in}
	s.last = make([]lastCell, len(s.at))
	group := make(parquet.Group, len(s.at))
	for _, at := range s.at {
		c := &in[at]
		var node parquet.Node
		switch c.kind {
		case decimal:
			node = parquet.Decimal(c.scale, decimalDigits, parquet.FixedLenByteArrayType(decimalBytes))
		case instant:
			node = parquet.Timestamp(parquet.Microsecond)
		case text:
			node = parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
		}
		group[c.name] = parquet.Optional(node)
	}
	s.writer = parquet.NewGenericWriter[any](w, parquet.NewSchema("focus", group),
		parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(groupRows),
		parquet.CreatedBy("suanpan", "", "")) // else the bytes depend on how we were built
	return s
}

func (s *parquetSheet) write(cells []string) error {
	r := make(parquet.Row, len(s.at))
	for i, at := range s.at {
		if cells[at] == "" {
			r[i] = parquet.NullValue().Level(0, 0, i)
			continue
		}
		if last := &s.last[i]; last.text != cells[at] {
			value, err := s.in[at].value(cells[at])
			if err != nil {
				return fmt.Errorf("write %s: %w", s.in[at].name, err)
			}
			last.text, last.value = cells[at], value.Level(0, 1, i)
		}
		r[i] = s.last[i].value
	}
	s.batch = append(s.batch, r)
	if len(s.batch) < batchRows {
		return nil
	}
	return s.flush()
}

func (s *parquetSheet) flush() error {
	if _, err := s.writer.WriteRows(s.batch); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	s.batch = s.batch[:0]
	return nil
}

func (s *parquetSheet) close() error {
	if err := s.flush(); err != nil {
		return err
	}
	if err := s.writer.Close(); err != nil {
		return fmt.Errorf("write the end of the file: %w", err)
	}
	return nil
}

// value is a cell that is not null.
func (c *column) value(cell string) (parquet.Value, error) {
	switch c.kind {
	case decimal:
		a, err := money.ParseSigned(cell)
		if err != nil {
			return parquet.Value{}, err
		}
		n, err := a.Scaled(c.scale)
		if err != nil {
			return parquet.Value{}, err
		}
		return decimalValue(n)
	case instant:
		t, err := time.Parse(time.RFC3339, cell)
		if err != nil {
			return parquet.Value{}, fmt.Errorf("parse time: %w", err)
		}
		return parquet.Int64Value(t.UnixMicro()), nil
	case text:
	}
	return parquet.ByteArrayValue([]byte(strings.ToValidUTF8(cell, "\ufffd"))), nil
}

var decimalLimit = new(big.Int).Exp(big.NewInt(10), big.NewInt(decimalDigits), nil)

// decimalValue is a whole number in two's complement, the highest byte first.
func decimalValue(n *big.Int) (parquet.Value, error) {
	if n.CmpAbs(decimalLimit) >= 0 {
		return parquet.Value{}, fmt.Errorf("%s has more than %d digits", n, decimalDigits)
	}
	if n.Sign() < 0 {
		n = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), 8*decimalBytes))
	}
	return parquet.FixedLenByteArrayValue(n.FillBytes(make([]byte, decimalBytes))), nil
}
