package clickhouse

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/column"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/rating"
)

// Write writes changed rows durably: sessions first, then voids, consumed and hours, each in one
// statement, hours in one for each month, and then re-ratings and closes. After an error any part
// of them may have been written, or may yet be; writing them again is right.
func (s *Store) Write(ctx context.Context, changes *rating.Changes) error {
	if err := s.writeSessions(ctx, changes.Sessions); err != nil {
		return err
	}
	if err := s.writeVoids(ctx, changes.Voids); err != nil {
		return err
	}
	if err := s.writeConsumed(ctx, changes.Consumed); err != nil {
		return err
	}
	for _, month := range byMonth(changes.Hours) {
		if err := s.writeHours(ctx, month); err != nil {
			return err
		}
	}
	if err := s.writeRerates(ctx, changes.Rerates); err != nil {
		return err
	}
	return s.writeCloses(ctx, changes.Closes)
}

// byMonth splits rows by the partitions that they are kept in: an insert into several of them may
// land in part.
func byMonth(rows []rating.Row) [][]*rating.Row {
	months := make(map[int][]*rating.Row)
	last, end, month := 0, int64(0), int64(0)
	for i := range rows {
		if hour := rows[i].Hour; hour < month || hour >= end {
			t := time.Unix(hour, 0).UTC()
			first := time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
			last = t.Year()*12 + int(t.Month())
			month, end = first.Unix(), first.AddDate(0, 1, 0).Unix()
		}
		months[last] = append(months[last], &rows[i])
	}
	out := make([][]*rating.Row, 0, len(months))
	for _, rows := range months {
		out = append(out, rows)
	}
	slices.SortFunc(out, func(a, b []*rating.Row) int { return cmp.Compare(a[0].Hour, b[0].Hour) })
	return out
}

// columnOf makes the values of a column.
func columnOf[R, V any](rows []R, value func(*R) V) []V {
	values := make([]V, len(rows))
	for i := range rows {
		values[i] = value(&rows[i])
	}
	return values
}

type sessionRow = rating.SessionRow

func (s *Store) writeSessions(ctx context.Context, rows []sessionRow) error {
	return s.insert(ctx, "sessions", len(rows),
		field{"tenant", "String", columnOf(rows, func(r *sessionRow) string { return r.Tenant })},
		field{"session", "String", columnOf(rows, func(r *sessionRow) string { return r.Session })},
		field{"sku", "String", columnOf(rows, func(r *sessionRow) string { return r.SKU })},
		field{"held", "Int64", columnOf(rows, func(r *sessionRow) int64 { return r.Milli })},
		field{"project", "String", columnOf(rows, func(r *sessionRow) string { return r.Project })},
		field{"lease", "String", columnOf(rows, func(r *sessionRow) string { return r.Lease })},
		field{
			"purchase", "String",
			columnOf(rows, func(r *sessionRow) string { return string(r.Purchase) }),
		},
		field{"region", "String", columnOf(rows, func(r *sessionRow) string { return r.Region })},
		field{"node", "String", columnOf(rows, func(r *sessionRow) string { return r.Node })},
		field{
			"session_start", "Int64",
			columnOf(rows, func(r *sessionRow) int64 { return int64(r.SessionStart) }),
		},
		field{"resumed", "Bool", columnOf(rows, func(r *sessionRow) bool { return r.Resumed })},
		field{"labels", labelsType, columnOf(rows, func(r *sessionRow) any { return labels(r.Labels) })},
		field{
			"partition", "Int32",
			columnOf(rows, func(r *sessionRow) int32 { return int32(r.Partition) }),
		},
		field{"offset", "Int64", columnOf(rows, func(r *sessionRow) int64 { return r.Offset })},
		field{"version", "UInt64", columnOf(rows, func(r *sessionRow) uint64 { return r.FirstWins() })})
}

type voidRow = rating.VoidRow

func (s *Store) writeVoids(ctx context.Context, rows []voidRow) error {
	return s.insert(ctx, "voids", len(rows),
		field{"tenant", "String", columnOf(rows, func(r *voidRow) string { return r.Tenant })},
		field{"hour", "DateTime('UTC')", columnOf(rows, func(r *voidRow) int64 { return r.Hour })},
		field{"session", "String", columnOf(rows, func(r *voidRow) string { return r.Session })},
		field{
			"seconds", "Array(UInt16)",
			flatten(rows, func(r *voidRow) metering.Set { return r.Seconds }),
		},
		field{
			"version", "UInt64",
			columnOf(rows, func(r *voidRow) uint64 { return uint64(r.Seconds.Len()) }),
		})
}

type consumedRow = rating.ConsumedRow

func (s *Store) writeConsumed(ctx context.Context, rows []consumedRow) error {
	return s.insert(ctx, "consumed", len(rows),
		field{"tenant", "String", columnOf(rows, func(r *consumedRow) string { return r.Tenant })},
		field{"source", "String", columnOf(rows, func(r *consumedRow) string { return r.Source })},
		field{"id", "String", columnOf(rows, func(r *consumedRow) string { return r.ID })},
		field{"sku", "String", columnOf(rows, func(r *consumedRow) string { return r.SKU })},
		field{
			"quantity", "Decimal(38, 9)",
			columnOf(rows, func(r *consumedRow) string { return r.Nano.String() }),
		},
		field{"charge", "String", columnOf(rows, func(r *consumedRow) string { return r.Charge.Key() })},
		field{
			"billing_period", "String",
			columnOf(rows, func(r *consumedRow) string { return r.Billing }),
		},
		field{"day", "UInt16", columnOf(rows, func(r *consumedRow) uint16 { return uint16(r.Day) })},
		field{"time", "DateTime('UTC')", columnOf(rows, func(r *consumedRow) int64 { return r.At })},
		field{"project", "String", columnOf(rows, func(r *consumedRow) string { return r.Project })},
		field{"purchase", "String", columnOf(rows, func(r *consumedRow) string { return r.Purchase })},
		field{"region", "String", columnOf(rows, func(r *consumedRow) string { return r.Region })},
		field{"labels", labelsType, columnOf(rows, func(r *consumedRow) any { return labels(r.Labels) })},
		field{
			"partition", "Int32",
			columnOf(rows, func(r *consumedRow) int32 { return int32(r.Partition) }),
		},
		field{"offset", "Int64", columnOf(rows, func(r *consumedRow) int64 { return r.Offset })},
		field{
			"version", "UInt64",
			columnOf(rows, func(r *consumedRow) uint64 { return r.FirstWins() }),
		})
}

// segmentColumns are the segments of rows, each column an array for each row. The arrays of a
// column share one block of memory.
type segmentColumns struct {
	kinds                   [][]uint8
	charges, billing        [][]string
	days, from, to, seconds [][]uint16
}

func segmentsOf(rows []*rating.Row) *segmentColumns {
	total := 0
	for _, r := range rows {
		total += len(r.Segments)
	}
	c := new(segmentColumns)
	kinds := make([]uint8, 0, total)
	charges, billing := make([]string, 0, total), make([]string, 0, total)
	var days, from, to, seconds []uint16
	for _, numbers := range []*[]uint16{&days, &from, &to, &seconds} {
		*numbers = make([]uint16, 0, total)
	}
	n := len(rows)
	c.kinds = make([][]uint8, 0, n)
	c.charges, c.billing = make([][]string, 0, n), make([][]string, 0, n)
	for _, arrays := range []*[][]uint16{&c.days, &c.from, &c.to, &c.seconds} {
		*arrays = make([][]uint16, 0, n)
	}
	keys := make(map[*rating.Charge]string) // the rater uses one value for each charge
	for _, r := range rows {
		start := len(kinds)
		for i := range r.Segments {
			g := &r.Segments[i]
			key, ok := keys[g.Charge]
			if !ok {
				key = g.Charge.Key()
				keys[g.Charge] = key
			}
			kinds = append(kinds, uint8(g.Kind))
			charges, billing = append(charges, key), append(billing, g.Billing)
			days = append(days, uint16(g.Day))
			from, to = append(from, g.From), append(to, g.To)
			seconds = append(seconds, g.Seconds)
		}
		c.kinds = append(c.kinds, kinds[start:])
		c.charges, c.billing = append(c.charges, charges[start:]), append(c.billing, billing[start:])
		c.days = append(c.days, days[start:])
		c.from, c.to = append(c.from, from[start:]), append(c.to, to[start:])
		c.seconds = append(c.seconds, seconds[start:])
	}
	return c
}

type hourRow = *rating.Row

func (s *Store) writeHours(ctx context.Context, rows []hourRow) error {
	c := segmentsOf(rows)
	return s.insertBulk(ctx, "hours", len(rows),
		field{"tenant", "String", columnOf(rows, func(r *hourRow) string { return (*r).Tenant })},
		field{"hour", "DateTime('UTC')", columnOf(rows, func(r *hourRow) int64 { return (*r).Hour })},
		field{"session", "String", columnOf(rows, func(r *hourRow) string { return (*r).Session })},
		field{"sku", "String", columnOf(rows, func(r *hourRow) string { return (*r).SKU })},
		field{"held", "Int64", columnOf(rows, func(r *hourRow) int64 { return (*r).Milli })},
		field{
			"used", "Array(UInt16)",
			flatten(rows, func(r *hourRow) metering.Set { return (*r).Used }),
		},
		field{
			"voided", "Array(UInt16)",
			flatten(rows, func(r *hourRow) metering.Set { return (*r).Voided }),
		},
		field{"seg_kind", "Array(UInt8)", c.kinds},
		field{"seg_charge", "Array(LowCardinality(String))", c.charges},
		field{"seg_billing_period", "Array(LowCardinality(String))", c.billing},
		field{"seg_day", "Array(UInt16)", c.days},
		field{"seg_from", "Array(UInt16)", c.from},
		field{"seg_to", "Array(UInt16)", c.to},
		field{"seg_seconds", "Array(UInt16)", c.seconds},
		field{"version", "UInt64", columnOf(rows, func(r *hourRow) uint64 { return (*r).Version() })})
}

// flatten makes a column of the ends of the spans of each row's set.
func flatten[R any](rows []R, set func(*R) metering.Set) [][]uint16 {
	all := make([]uint16, 0, 4*len(rows)) // where it grows, arrays before stay in the old block
	column := make([][]uint16, len(rows))
	for i := range rows {
		start := len(all)
		for _, span := range set(&rows[i]) {
			all = append(all, span.From, span.To)
		}
		column[i] = all[start:]
	}
	return column
}

const labelsType = "Map(LowCardinality(String), String)"

// labels are a map for the driver that keeps its order.
type labels []metering.Label

// Put is for reading, which is not done this way.
func (l labels) Put(any, any) { panic("BUG: labels are not read into the type that writes them") }

// Iterator walks through the labels in their order.
func (l labels) Iterator() column.MapIterator { return &labelIterator{labels: l, at: -1} }

type labelIterator struct {
	labels labels
	at     int
}

func (i *labelIterator) Next() bool { i.at++; return i.at < len(i.labels) }
func (i *labelIterator) Key() any   { return i.labels[i.at].Key }
func (i *labelIterator) Value() any { return i.labels[i.at].Value }
