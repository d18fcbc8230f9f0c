package rating

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"
	"strconv"
)

// RowLine is one segment of an hour, or one consumed amount, as the proof of an invoice has it.
type RowLine struct {
	Charge  *Charge
	Billing string
	Text    string // what is hashed; says all that is billed of it
}

// line prints a segment. The session is last as it may have any character.
func (s *Segment) line(row *Row) string {
	b := make([]byte, 0, 160)
	b = append(b, "h\t"...)
	for _, n := range []int64{
		row.Hour, int64(s.Kind), s.Day, int64(s.From), int64(s.To), int64(s.Seconds), row.Milli,
	} {
		b = append(strconv.AppendInt(b, n, 10), '\t')
	}
	b = append(append(b, row.SKU...), '\t')
	b = append(append(b, s.Charge.Key()...), '\t')
	return string(append(b, row.Session...))
}

// line prints a consumed amount. Source and id may have any character: the length tells them apart.
func (r *ConsumedRow) line() string {
	b := make([]byte, 0, 160)
	b = append(b, "c\t"...)
	b = append(strconv.AppendInt(b, r.At, 10), '\t')
	b = append(strconv.AppendInt(b, r.Day, 10), '\t')
	b = append(r.Nano.Big().Append(b, 10), '\t')
	b = append(append(b, r.SKU...), '\t')
	b = append(append(b, r.Charge.Key()...), '\t')
	b = append(strconv.AppendInt(b, int64(len(r.Source)), 10), '\t')
	return string(append(append(b, r.Source...), r.ID...))
}

// RowLines returns the lines of all rows, by tenant and then by text.
func (l *Ledger) RowLines() []RowLine {
	var lines []RowLine
	for _, row := range l.hours {
		for i := range row.Segments {
			s := &row.Segments[i]
			lines = append(lines, RowLine{s.Charge, s.Billing, s.line(&row)})
		}
	}
	for _, row := range l.consumed {
		lines = append(lines, RowLine{row.Charge, row.Billing, row.line()})
	}
	slices.SortFunc(lines, func(a, b RowLine) int {
		if a.Charge.Tenant != b.Charge.Tenant {
			if a.Charge.Tenant < b.Charge.Tenant {
				return -1
			}
			return 1
		}
		if a.Text != b.Text {
			if a.Text < b.Text {
				return -1
			}
			return 1
		}
		return 0
	})
	return lines
}

// RowHash is the hash of the rows of an invoice: SHA-256 over the texts of its row lines in
// bytewise order, each after its length as 8 bytes, big endian.
type RowHash struct {
	Rows int64
	hash hash.Hash
}

// Add takes the next row line in.
func (h *RowHash) Add(text string) {
	if h.hash == nil {
		h.hash = sha256.New()
	}
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(text)))
	_, _ = h.hash.Write(length[:])
	_, _ = h.hash.Write([]byte(text))
	h.Rows++
}

// Sum returns the hash of what was added, in hexadecimal digits.
func (h *RowHash) Sum() string {
	if h.hash == nil {
		h.hash = sha256.New()
	}
	return hex.EncodeToString(h.hash.Sum(nil))
}
