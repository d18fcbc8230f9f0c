package rating

import (
	"cmp"
	"math"
	"slices"

	"github.com/suanpan/suanpan/pkg/metering"
)

// Position is where a record is in its partition of the log. Positions of one tenant are in one
// partition, so that offsets alone order them.
type Position struct {
	Partition int
	Offset    int64
}

// FirstWins is the version of a row of which the first in the log wins: larger for smaller offsets.
func (p Position) FirstWins() uint64 { return math.MaxUint64 - uint64(p.Offset) }

// SessionKey names a session. Session ids are unique within a tenant.
type SessionKey struct{ Tenant, Session string }

// HourKey names an hour of a session.
type HourKey struct {
	SessionKey
	Hour int64 // its first second
}

// SegmentKind tells used seconds from voided ones.
type SegmentKind uint8

// The kinds of segments. A re-rating reverses those that were billed already.
const (
	UsageSegment  SegmentKind = iota
	VoidSegment               // its seconds are taken off again
	UsageReversed             // used seconds, taken off to be priced anew
	VoidReversed              // voided seconds, added to be taken off anew
)

// Negative reports whether the seconds of such a segment are taken off.
func (k SegmentKind) Negative() bool { return k == VoidSegment || k == UsageReversed }

// String is what line items call it.
func (k SegmentKind) String() string {
	return [...]string{"usage", "void", "rerate", "rerate"}[k]
}

func (k SegmentKind) reversed() SegmentKind { return k ^ 2 }

// Segment is the part of an hour's seconds that belongs to one charge, one billing period and one
// local day.
type Segment struct {
	Kind    SegmentKind
	Charge  *Charge
	Billing string // billing period that it counts in, YYYY-MM
	Day     int64  // local day, since 1970-01-01
	From    uint16 // of its first second within the hour
	To      uint16 // after its last second within the hour
	Seconds uint16 // that it has; fewer than To - From where there are gaps
}

// Quantity is what the segment adds to its charge when so many thousandths are held.
func (s *Segment) Quantity(milli int64) metering.Quantity {
	q := metering.HeldFor(milli, int64(s.Seconds))
	if s.Kind.Negative() {
		return q.Neg()
	}
	return q
}

// Row is one hour of one SKU of one session: all that was used and voided of it so far.
type Row struct {
	HourKey
	SKU      string
	Milli    int64 // held, in thousandths
	Used     metering.Set
	Voided   metering.Set // a part of Used
	Segments []Segment
	Rerated  int64 // one more than the offset of the last re-rating that changed it; 0: none
}

// reratingShift is where a row's version keeps its last re-rating; below it is room for the seconds
// of both sets, at most 7200.
const reratingShift = 16

// Version orders the states of a row: by its last re-rating, and then by its sets, which only grow.
// So the larger state has seen all that the smaller one saw.
func (r *Row) Version() uint64 {
	return uint64(r.Rerated)<<reratingShift | uint64(r.Used.Len()+r.Voided.Len())
}

// ReratedOf is [Row.Rerated] of a row of a version.
func ReratedOf(version uint64) int64 { return int64(version >> reratingShift) }

// SessionRow keeps the facts of a session, and the amount of one of its SKUs, from the first
// accepted event on.
type SessionRow struct {
	SessionKey
	SKU   string
	Milli int64
	metering.Facts
	Position
}

// VoidRow is the set of seconds of an hour of a session that are not billed.
type VoidRow struct {
	HourKey
	Seconds metering.Set
}

// ConsumedRow is the amount of one SKU that one event says was consumed.
type ConsumedRow struct {
	Tenant   string
	Source   string
	ID       string
	SKU      string
	Nano     metering.Quantity
	Charge   *Charge
	Billing  string
	Day      int64
	At       int64 // second
	Project  string
	Purchase string // of the event
	Region   string // of the event
	Labels   []metering.Label
	Position
}

// Changes are rows in their newest state. Writing them again, or older ones after newer ones,
// changes nothing.
type Changes struct {
	Sessions []SessionRow
	Voids    []VoidRow
	Consumed []ConsumedRow
	Hours    []Row
	Rerates  []Rerate // written after all rows
	Closes   []Close  // written last

	sequence uint64
}

// Len counts the rows.
func (c *Changes) Len() int {
	return len(c.Sessions) + len(c.Voids) + len(c.Consumed) + len(c.Hours) + len(c.Rerates) +
		len(c.Closes)
}

// sortSegments puts segments into the order in which they are kept.
func sortSegments(segments []Segment) {
	if len(segments) < 2 {
		return
	}
	slices.SortFunc(segments, func(a, b Segment) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Billing, b.Billing),
			cmp.Compare(a.Day, b.Day), cmp.Compare(a.From, b.From), a.Charge.Compare(b.Charge))
	})
}
