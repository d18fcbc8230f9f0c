package rating

import (
	"container/list"
	"strings"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
)

// Rough sizes of what a rater keeps, by which its memory is bounded.
const (
	sessionBytes = 800
	skuBytes     = 500
	hourBytes    = 300
	rowBytes     = 350
)

// session is what a rater knows of one session.
type session struct {
	key   SessionKey
	known bool // its facts are known: an event of it was accepted
	facts metering.Facts
	skus  []*sku
	hours map[int64]*sessionHour
	last  *sessionHour // the one that was asked for last
	saved uint64       // the drain that had its newest SKU
}

func newSession(key SessionKey) *session {
	return &session{key: key, hours: make(map[int64]*sessionHour)}
}

// sku is one SKU of a session: its constant amount, and its increment and minimum, which are those
// of the price in force at the anchor.
type sku struct {
	name        string
	milli       int64
	increment   int64
	minimum     int64
	minimumDone bool // the minimum was covered, or loaded
	query       catalog.Query

	from, until int64 // known to be priced at every second of [from, until)
	priceAsOf   uint64

	quoted quoted
}

// quoted is the charge of the seconds of [from, until), see [Rater.asOf].
type quoted struct {
	from, until int64
	asOf        uint64
	charge      *Charge
	billing     string
	day         int64
}

// sessionHour is one hour of a session.
type sessionHour struct {
	session     *session
	hour        int64
	void        metering.Set
	rows        []*row
	voidChanged bool
	changedAt   uint64 // the drain that had its newest state
	place       *list.Element
}

// row is the state of one SKU in one hour.
type row struct {
	of       *sessionHour
	sku      *sku
	used     metering.Set
	voided   metering.Set
	segments []Segment
	rerated  int64 // see [Row.Rerated]
	changed  bool
}

// window is a run of whole seconds, [from, until).
type window struct{ from, until int64 }

// newSKU returns a SKU of a session, and whether there is a price at the session's anchor.
func (r *Rater) newSKU(tenant string, a *metering.Amount, f *metering.Facts) (*sku, bool) {
	k := &sku{name: a.SKU, milli: a.Milli, query: catalog.Query{
		Tenant: tenant, SKU: a.SKU, Purchase: string(f.Purchase), Region: f.Region,
	}}
	q, ok := r.catalog.Quote(k.query, f.Anchor())
	if !ok || q.Price.Per.Consumed() {
		return k, false
	}
	k.increment, k.minimum = q.Price.Increment, q.Price.Minimum
	return k, true
}

// own makes the SKU's strings parts of the session's and the catalog's, not of an event's bytes.
func (k *sku) own(s *session) {
	k.name = strings.Clone(k.name)
	k.query = catalog.Query{
		Tenant: s.key.Tenant, SKU: k.name, Purchase: string(s.facts.Purchase), Region: s.facts.Region,
	}
}

func (s *session) sku(name string) *sku {
	for _, k := range s.skus {
		if k.name == name {
			return k
		}
	}
	return nil
}

func (s *session) add(k *sku) *sku {
	s.skus = append(s.skus, k)
	return k
}

// conflict tells whether an event contradicts the session's first one.
func (s *session) conflict(e *metering.Event) *metering.Rejection {
	if fact := s.facts.Difference(&e.Facts); fact != "" {
		return metering.Reject(metering.SessionConflict,
			"%s differs from the session's first event: a change starts a new session", fact)
	}
	for i := range e.Amounts {
		if k := s.sku(e.Amounts[i].SKU); k != nil && k.milli != e.Amounts[i].Milli {
			return metering.Reject(metering.SessionConflict,
				"held.%s differs from the session's first event: a change starts a new session", k.name)
		}
	}
	return nil
}

// windows are the seconds that an event covers of a SKU: its window, and the session's minimum,
// both widened to the increments that begin at the anchor. Either may be empty.
func (s *session) windows(k *sku, e *metering.Event) [2]window {
	anchor := e.Anchor()
	var w [2]window
	if from, until := e.Window(); from < until {
		w[0] = k.widen(anchor, from, until)
	}
	if k.minimum > 0 && !k.minimumDone && !e.Resumed {
		w[1] = k.widen(anchor, anchor, anchor+k.minimum)
	}
	return w
}

func (k *sku) widen(anchor, from, until int64) window {
	if k.increment == 1 {
		return window{from, until}
	}
	over := (until - anchor) % k.increment
	if over > 0 {
		until += k.increment - over
	}
	return window{from - (from-anchor)%k.increment, until}
}

// priced reports whether the SKU has a price of what is held at every second of a window, and the
// first second at which it has none.
func (r *Rater) priced(k *sku, w window) (missing int64, ok bool) {
	if k.priceAsOf != r.asOf() {
		k.from, k.until, k.priceAsOf = 0, 0, r.asOf()
	}
	if w.from >= k.from && w.until <= k.until {
		return 0, true
	}
	at := w.from
	for at < w.until {
		if at >= k.from && at < k.until {
			at = k.until
			continue
		}
		q, ok := r.lookup(k.query, at)
		if !ok || q.Price.Per.Consumed() {
			return at, false
		}
		at = q.Until // as far as the price holds, so that the next window need not ask again
	}
	if w.from < w.until {
		if w.from <= k.until && at >= k.from && k.from < k.until {
			w.from, at = min(w.from, k.from), max(at, k.until)
		}
		k.from, k.until = w.from, at
	}
	return 0, true
}

// hour returns an hour of a session; it makes one that is not there.
func (r *Rater) hour(s *session, hour int64) *sessionHour {
	h := s.last
	if h == nil || h.hour != hour {
		h = s.hours[hour]
		if h == nil {
			h = &sessionHour{session: s, hour: hour}
			h.place = r.recent.PushBack(h)
			s.hours[hour] = h
			r.bytes += hourBytes
		}
		s.last = h
	}
	r.recent.MoveToBack(h.place)
	return h
}

func (r *Rater) row(h *sessionHour, k *sku) *row {
	for _, row := range h.rows {
		if row.sku == k {
			return row
		}
	}
	row := &row{of: h, sku: k}
	h.rows = append(h.rows, row)
	r.bytes += rowBytes
	return row
}

func (r *Rater) changed(row *row) {
	if !row.changed {
		row.changed = true
		r.changedRows = append(r.changedRows, row)
	}
}

// segment adds seconds that are new to a row to the segments of their charges.
func (r *Rater) segment(row *row, span metering.Span, kind SegmentKind) {
	at, until := row.of.hour+int64(span.From), row.of.hour+int64(span.To)
	for at < until {
		q := r.quote(row.sku, at)
		end := min(until, q.until)
		from, to := uint16(at-row.of.hour), uint16(end-row.of.hour)
		row.add(q, kind, from, to)
		at = end
	}
}

func (row *row) add(q *quoted, kind SegmentKind, from, to uint16) {
	for i := len(row.segments) - 1; i >= 0; i-- {
		s := &row.segments[i]
		if s.Kind == kind && s.Charge == q.charge && s.Day == q.day && s.Billing == q.billing {
			s.From, s.To = min(s.From, from), max(s.To, to)
			s.Seconds += to - from
			return
		}
	}
	row.segments = append(row.segments, Segment{
		Kind: kind, Charge: q.charge, Billing: q.billing, Day: q.day,
		From: from, To: to, Seconds: to - from,
	})
}

// quote returns the charge of a second that was found to be priced.
func (r *Rater) quote(k *sku, at int64) *quoted {
	q := &k.quoted
	if at >= q.from && at < q.until && q.asOf == r.asOf() {
		return q
	}
	found, ok := r.lookup(k.query, at)
	if !ok {
		panic("BUG: a second that was priced has no price")
	}
	*q = quoted{
		from: at, until: found.Until, asOf: r.asOf(),
		charge:  r.intern(k.query.Tenant, &found),
		billing: r.billing(k.query.Tenant, &found), day: found.Day,
	}
	return q
}
