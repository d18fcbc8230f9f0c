package rating

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
)

// Rerate is an order, in the log, to price a tenant's usage of some hours anew: by the catalog as
// it was up to an offset, with all that starts in the past. It holds for usage of these hours that
// comes later, too.
type Rerate struct {
	Tenant        string
	From, Until   int64 // whole hours, [From, Until)
	CatalogOffset int64 // the first record of the catalog topic that is not read
	Position
}

// Amended returns the catalog as it was up to an offset, with all that starts in the past; nil
// where the log is not that far.
type Amended func(offset int64) *catalog.Catalog

// Obey makes the rater obey re-ratings: those that the store has of its partitions, and those that
// it meets.
func (r *Rater) Obey(amended Amended, known ...Rerate) {
	r.amended = amended
	for _, one := range known {
		r.addRerate(one)
	}
}

func (r *Rater) addRerate(one Rerate) bool {
	list := r.rerates[one.Tenant]
	at, found := slices.BinarySearchFunc(list, one.Offset, func(have Rerate, offset int64) int {
		return cmp.Compare(have.Offset, offset)
	})
	if found {
		return false
	}
	r.rerates[one.Tenant] = slices.Insert(list, at, one)
	return true
}

// lookup quotes a second by the catalog that holds for the record that is rated: that of the last
// re-rating before it which has the second, else the present one.
func (r *Rater) lookup(q catalog.Query, at int64) (catalog.Quote, bool) {
	from := r.catalog
	until := metering.MaxSecond
	for _, one := range r.rerates[q.Tenant] {
		if one.Offset > r.offset {
			break
		}
		if at >= one.From && at < one.Until {
			if amended := r.amended(one.CatalogOffset); amended != nil {
				from = amended
			}
		}
		for _, edge := range [2]int64{one.From, one.Until} {
			if edge > at {
				until = min(until, edge)
			}
		}
	}
	found, ok := from.Quote(q, at)
	found.Until = min(found.Until, until)
	return found, ok
}

// rerate prices what is stored of some hours anew. All of it must have been loaded.
func (r *Rater) rerate(e *metering.Event, at Position, received metering.Instant,
) *metering.Rejection {
	if rejection := r.knownTenant(e); rejection != nil {
		return rejection
	}
	if problem := e.Problem(); problem != nil {
		return problem
	}
	if rejection := future(e.End, received); rejection != nil {
		return rejection
	}
	if r.amended == nil {
		return nil // offline: all documents hold from where they say
	}
	if r.amended(e.CatalogOffset) == nil {
		return metering.Reject(metering.InvalidEvent, "data.catalog_offset %d is beyond the catalog",
			e.CatalogOffset)
	}
	one := Rerate{
		Tenant: strings.Clone(e.Tenant), From: metering.HourOf(e.Start.Second()),
		Until:         metering.HourOf(e.End.Second() + metering.Hour - 1),
		CatalogOffset: e.CatalogOffset, Position: at,
	}
	fresh := r.addRerate(one)
	r.obeyed++
	rows := r.rowsOf(one)
	for _, row := range rows {
		if second, ok := r.pricedAgain(row); !ok {
			if fresh {
				r.dropRerate(one)
			}
			return noPrice(&row.sku.query, second, "time")
		}
	}
	if fresh {
		r.newRerates = append(r.newRerates, one)
	}
	for _, row := range rows {
		r.resplit(row, at.Offset+1)
	}
	r.rerateConsumed(one)
	return nil
}

func (r *Rater) dropRerate(one Rerate) {
	r.rerates[one.Tenant] = slices.DeleteFunc(r.rerates[one.Tenant], func(have Rerate) bool {
		return have.Offset == one.Offset
	})
	r.obeyed++
}

// rowsOf returns the rows that a re-rating is about and that it has not changed yet, in their
// order.
func (r *Rater) rowsOf(one Rerate) []*row {
	var rows []*row
	for key, s := range r.sessions {
		if key.Tenant != one.Tenant {
			continue
		}
		for hour, h := range s.hours {
			if hour < one.From || hour >= one.Until {
				continue
			}
			for _, row := range h.rows {
				if row.rerated <= one.Offset && len(row.used) > 0 {
					rows = append(rows, row)
				}
			}
		}
	}
	slices.SortFunc(rows, func(a, b *row) int {
		return cmp.Or(cmp.Compare(a.of.hour, b.of.hour),
			cmp.Compare(a.of.session.key.Session, b.of.session.key.Session),
			cmp.Compare(a.sku.name, b.sku.name))
	})
	return rows
}

// pricedAgain reports whether every used second has a price of what is held, in a period that can
// be closed, and the first that has none.
func (r *Rater) pricedAgain(row *row) (missing int64, ok bool) {
	for _, span := range row.used {
		for at := row.of.hour + int64(span.From); at < row.of.hour+int64(span.To); {
			q, ok := r.lookup(row.sku.query, at)
			if !ok || q.Price.Per.Consumed() {
				return at, false
			}
			if _, _, ok := r.catalog.PeriodBounds(row.sku.query.Tenant, q.Contract, q.Period); !ok {
				return at, false
			}
			at = q.Until
		}
	}
	return 0, true
}

// resplit replaces the segments of a row that count in open periods. Those of closed ones stay, and
// what they come to is taken off again in the next open period.
func (r *Rater) resplit(row *row, version int64) {
	var kept []Segment
	var back reversal
	for i := range row.segments {
		s := row.segments[i]
		key := PeriodKey{s.Charge.Tenant, s.Charge.Contract, s.Billing}
		if open := r.closes.Billing(key, r.offset); open != s.Billing {
			kept = append(kept, s)
			back.add(s, open)
		}
	}
	row.segments = append(kept, back.segments()...)
	for _, span := range row.used {
		r.segment(row, span, UsageSegment)
	}
	for _, span := range row.voided {
		r.segment(row, span, VoidSegment)
	}
	row.rerated = version
	r.changed(row)
}

// reversal takes segments off again. What an earlier re-rating took off of a charge is not, so that
// a row grows by no more than it has, however often it is re-rated.
type reversal struct {
	of      []Segment // used or voided
	seconds []int     // what they come to
}

func (v *reversal) add(s Segment, open string) {
	seconds := int(s.Seconds)
	if s.Kind > VoidSegment {
		seconds, s.Kind = -seconds, s.Kind.reversed()
	}
	i := slices.IndexFunc(v.of, func(have Segment) bool {
		return have.Kind == s.Kind && have.Charge == s.Charge && have.Day == s.Day
	})
	if i < 0 {
		i = len(v.of)
		v.of, v.seconds = append(v.of, s), append(v.seconds, 0)
		v.of[i].Billing = open
	}
	have := &v.of[i]
	have.From, have.To = min(have.From, s.From), max(have.To, s.To)
	have.Billing = max(have.Billing, open)
	v.seconds[i] += seconds
}

func (v *reversal) segments() []Segment {
	var out []Segment
	for i, s := range v.of {
		if v.seconds[i] < 0 {
			panic("BUG: more was taken off of a charge than it had")
		}
		if v.seconds[i] > 0 {
			s.Kind, s.Seconds = s.Kind.reversed(), uint16(v.seconds[i])
			out = append(out, s)
		}
	}
	return out
}

// rerateConsumed takes what was consumed in the hours off again, and adds it anew.
func (r *Rater) rerateConsumed(one Rerate) {
	for i := range r.rerated {
		c := &r.rerated[i]
		if c.Tenant != one.Tenant || c.At < one.From || c.At >= one.Until || c.Offset >= one.Offset {
			continue
		}
		query := catalog.Query{Tenant: c.Tenant, SKU: c.SKU, Purchase: c.Purchase, Region: c.Region}
		q, ok := r.lookup(query, c.At)
		if !ok || !q.Price.Per.Consumed() {
			continue // it stays as it was: there is no other price for it
		}
		if _, _, ok := r.catalog.PeriodBounds(c.Tenant, q.Contract, q.Period); !ok {
			continue // nor a period that can be closed
		}
		back, anew := *c, *c
		back.Source = one.mark("re-rating, reversed", c)
		back.Nano = c.Nano.Neg()
		back.Billing = r.closes.Billing(PeriodKey{c.Tenant, c.Charge.Contract, c.Billing}, r.offset)
		anew.Source = one.mark("re-rating, anew", c)
		anew.Charge = r.intern(c.Tenant, &q)
		anew.Billing, anew.Day = r.billing(c.Tenant, &q), q.Day
		back.Position, anew.Position = one.Position, one.Position
		r.consumed = append(r.consumed, back, anew)
	}
	r.rerated = nil
}

// mark is the source of a row that a re-rating adds for a consumed amount, longer than any event's.
func (one *Rerate) mark(what string, c *ConsumedRow) string {
	const filler = metering.MaxStringBytes
	return fmt.Sprintf("%-*s %d %s", filler, what, one.Offset, c.Source)
}
