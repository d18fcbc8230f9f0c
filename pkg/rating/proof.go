package rating

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strconv"

	"github.com/suanpan/suanpan/pkg/metering"
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

// HoursOf returns the hours that have something which counts in a billing period, in their order.
func (l *Ledger) HoursOf(period PeriodKey) []HourKey {
	seen := make(map[HourKey]bool)
	for key, row := range l.hours {
		for i := range row.Segments {
			s := &row.Segments[i]
			if s.Billing == period.Period && s.Charge.Contract == period.Contract &&
				s.Charge.Tenant == period.Tenant {
				seen[key.HourKey] = true
			}
		}
	}
	out := make([]HourKey, 0, len(seen))
	for key := range seen {
		out = append(out, key)
	}
	slices.SortFunc(out, func(a, b HourKey) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Hour, b.Hour),
			cmp.Compare(a.Session, b.Session))
	})
	return out
}

// Differences says what a store has of a need that is not as in the ledger, though the store may
// have more seconds: later ones.
func (l *Ledger) Differences(need *Need, stored *Known) []string {
	var out []string
	differ := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	sessions := make(map[ledgerSession]SessionRow)
	for _, s := range stored.Sessions {
		sessions[ledgerSession{s.SessionKey, s.SKU}] = s
	}
	for key, want := range l.sessions {
		if !need.Sessions[key.SessionKey] {
			continue
		}
		switch got, ok := sessions[key]; {
		case !ok:
			differ("session %s, %s: its facts are not stored", key.Session, key.sku)
		case got.Milli != want.Milli:
			differ("session %s, %s: held is %d thousandths, and should be %d", key.Session, key.sku,
				got.Milli, want.Milli)
		case got.Facts.Difference(&want.Facts) != "":
			differ("session %s, %s: its %s is not as in its first event", key.Session, key.sku,
				got.Facts.Difference(&want.Facts))
		}
	}
	hours := make(map[ledgerHour]Row)
	for _, row := range stored.Hours {
		hours[ledgerHour{row.HourKey, row.SKU}] = row
	}
	for key, want := range l.hours {
		if !need.Hours[key.HourKey] {
			continue
		}
		got, ok := hours[key]
		if !ok {
			differ("hour %s of session %s, %s: not stored", clock(key.Hour), key.Session, key.sku)
			continue
		}
		for _, what := range want.differences(&got) {
			differ("hour %s of session %s, %s: %s", clock(key.Hour), key.Session, key.sku, what)
		}
	}
	slices.Sort(out)
	return out
}

// differences says what is wrong with a stored state of a row, which may have seen more.
func (r *Row) differences(stored *Row) []string {
	var out []string
	differ := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if stored.Milli != r.Milli {
		differ("held is %d thousandths, and should be %d", stored.Milli, r.Milli)
	}
	var seconds [2]int64 // used, voided
	for i := range stored.Segments {
		s := &stored.Segments[i]
		switch s.Kind {
		case UsageSegment, VoidSegment:
			seconds[s.Kind] += int64(s.Seconds)
		case UsageReversed, VoidReversed:
			seconds[s.Kind.reversed()] -= int64(s.Seconds)
		}
	}
	for i, set := range []struct {
		name      string
		has, want metering.Set
	}{{"used", stored.Used, r.Used}, {"voided", stored.Voided, r.Voided}} {
		if !set.has.Valid() || !covers(set.has, set.want) {
			differ("%s is %v, and should have %v", set.name, set.has, set.want)
		}
		if set.has.Len() != seconds[i] {
			differ("%s has %d seconds, its segments %d", set.name, set.has.Len(), seconds[i])
		}
	}
	return out
}

// covers reports whether a set has all seconds of another.
func covers(set, of metering.Set) bool {
	for _, span := range of {
		var length int64
		for _, common := range set.Intersect(span, nil) {
			length += common.Len()
		}
		if length != span.Len() {
			return false
		}
	}
	return true
}
