package rating

import (
	"container/list"
	"strings"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
)

// Rater turns the events of some partitions into rows. It holds the sessions that it has seen in
// memory; what the store may know of a session it must be given before the session is rated, see
// [Rater.Need]. Its state belongs to one consumer generation and dies with it. It may not be used
// concurrently.
type Rater struct {
	catalog  *catalog.Catalog
	sessions map[SessionKey]*session
	charges  map[Charge]*Charge
	stored   map[string]Stored
	closes   Closes
	rerates  map[string][]Rerate // by tenant, in the order of their offsets
	amended  Amended             // nil: re-ratings are not obeyed
	rerated  []ConsumedRow       // that were loaded for a re-rating
	recent   *list.List          // of *sessionHour, the one that was touched last at the back
	scratch  scratch

	changedRows     []*row
	changedVoids    []*sessionHour
	newSessions     []SessionRow
	consumed        []ConsumedRow
	newCloses       []Close
	closing         map[string]bool // tenants of these
	newRerates      []Rerate
	obeyed          uint64 // closes and re-ratings that were met
	offset          int64  // of the record that is rated
	sequence, acked uint64 // numbers of drains
	bytes           int64
}

// Stored is what a store has of a tenant.
type Stored struct {
	Sessions bool  // whether it has any session or void
	Hour     int64 // the last hour that it has a row or a void of; -1 for none
}

// scratch are buffers that are used again and again.
type scratch struct{ fresh, common, voided []metering.Span }

// NewRater returns a rater that prices by a catalog, which may grow while the rater is used. stored
// says what the store has of each tenant; tenants that it lacks are new. closes are those of the
// rater's partitions that the store has.
func NewRater(from *catalog.Catalog, stored map[string]Stored, closes ...Close) *Rater {
	if stored == nil {
		stored = make(map[string]Stored)
	}
	known := make(Closes, len(closes))
	for i := range closes {
		known.Add(&closes[i])
	}
	return &Rater{
		catalog:  from,
		sessions: make(map[SessionKey]*session),
		charges:  make(map[Charge]*Charge),
		stored:   stored,
		closes:   known,
		closing:  make(map[string]bool),
		rerates:  make(map[string][]Rerate),
		recent:   list.New(),
	}
}

// Rate takes one event in. A rejected event changes nothing. received is when the log
// received the record, 0 where it is not known. What [Rater.Need] says of the event must have
// been loaded.
func (r *Rater) Rate(e *metering.Event, at Position, received metering.Instant,
) *metering.Rejection {
	r.offset = at.Offset
	switch e.Kind {
	case metering.Held:
		return r.held(e, at, received)
	case metering.Consumed:
		return r.consume(e, at, received)
	case metering.Void:
		return r.void(e, received)
	case metering.MarketPrice:
		return metering.Reject(metering.Misrouted, "market prices go to their own topic")
	case metering.Queue:
		return nil // of no tenant, and only archived
	case metering.PeriodClose:
		return r.close(e, at, received)
	case metering.Rerate:
		return r.rerate(e, at, received)
	case metering.Outage, metering.Checkpoint, metering.Interrupted:
		return r.knownTenant(e) // only archived
	}
	panic("BUG: event of unknown kind")
}

func (r *Rater) knownTenant(e *metering.Event) *metering.Rejection {
	if !r.catalog.HasTenant(e.Tenant) {
		return metering.Reject(metering.NoTenant, "the catalog has no tenant %q", e.Tenant)
	}
	return nil
}

func (r *Rater) held(e *metering.Event, at Position, received metering.Instant,
) *metering.Rejection {
	key := SessionKey{e.Tenant, e.Session}
	s := r.sessions[key]
	if s == nil || !s.known {
		if rejection := r.knownTenant(e); rejection != nil {
			return rejection
		}
	}
	if problem := e.Problem(); problem != nil {
		return problem
	}
	if s != nil && s.known {
		if conflict := s.conflict(e); conflict != nil {
			return conflict
		}
	}
	if s == nil {
		s = newSession(key)
	}
	had := len(s.skus)
	rejection := r.price(s, e)
	if rejection == nil {
		rejection = future(e.End, received)
	}
	if rejection != nil {
		s.skus = s.skus[:had]
		return rejection
	}
	r.accept(s, e, at, had)
	for i := range e.Amounts {
		k := s.sku(e.Amounts[i].SKU)
		for _, w := range s.windows(k, e) {
			if w.from < w.until {
				r.cover(s, k, w)
			}
		}
		k.minimumDone = true
	}
	return nil
}

// price makes sure that every SKU of the event has a price at the session's anchor and at every
// second that it would cover.
func (r *Rater) price(s *session, e *metering.Event) *metering.Rejection {
	for i := range e.Amounts {
		a := &e.Amounts[i]
		k := s.sku(a.SKU)
		if k == nil {
			added, ok := r.newSKU(e.Tenant, a, &e.Facts)
			if !ok {
				return noPrice(&added.query, e.Anchor(), "time")
			}
			k = s.add(added)
		}
		for _, w := range s.windows(k, e) {
			if at, ok := r.priced(k, w); !ok {
				return noPrice(&k.query, at, "time")
			}
		}
	}
	return nil
}

func noPrice(q *catalog.Query, at int64, per string) *metering.Rejection {
	region := ""
	if q.Region != "" {
		region = " in " + q.Region
	}
	return metering.Reject(metering.NoPrice, "tenant %s has no price per %s for %s %s%s at %s: "+
		"apply a price book version that covers it, then retry", q.Tenant, per, q.SKU, q.Purchase,
		region, metering.InstantOf(at))
}

func future(end, received metering.Instant) *metering.Rejection {
	if received != 0 && end > received+metering.InstantOf(metering.FutureSeconds) {
		return metering.Reject(metering.Future, "it ends at %s, more than %d s after the log had it: "+
			"check the sender's clock", end, metering.FutureSeconds)
	}
	return nil
}

// accept makes the session and its new SKUs known.
func (r *Rater) accept(s *session, e *metering.Event, at Position, had int) {
	if !s.known {
		if r.sessions[s.key] == nil {
			s.key = SessionKey{strings.Clone(s.key.Tenant), strings.Clone(s.key.Session)}
			r.sessions[s.key] = s
			r.bytes += sessionBytes
		}
		s.facts, s.known = e.Facts.Clone(), true
	}
	for _, k := range s.skus[had:] {
		k.own(s)
		s.saved = r.sequence + 1
		r.newSessions = append(r.newSessions, SessionRow{s.key, k.name, k.milli, s.facts, at})
		r.bytes += skuBytes
	}
}

// cover puts the seconds of a window into the session's rows.
func (r *Rater) cover(s *session, k *sku, w window) {
	for hour := metering.HourOf(w.from); hour < w.until; hour += metering.Hour {
		h := r.hour(s, hour)
		span := metering.Span{
			From: uint16(max(w.from-hour, 0)),
			To:   uint16(min(w.until-hour, metering.Hour)),
		}
		row := r.row(h, k)
		fresh := row.used.Add(span, r.scratch.fresh[:0])
		r.scratch.fresh = fresh
		for _, f := range fresh {
			r.segment(row, f, UsageSegment)
			if len(h.void) > 0 {
				r.scratch.common = h.void.Intersect(f, r.scratch.common[:0])
				r.voidSeconds(row, r.scratch.common)
			}
		}
		if len(fresh) > 0 {
			r.changed(row)
		}
	}
}

// voidSeconds takes used seconds of a row off again.
func (r *Rater) voidSeconds(row *row, spans []metering.Span) {
	for _, span := range spans {
		r.scratch.voided = row.voided.Add(span, r.scratch.voided[:0])
		for _, v := range r.scratch.voided {
			r.segment(row, v, VoidSegment)
		}
		if len(r.scratch.voided) > 0 {
			r.changed(row)
		}
	}
}

func (r *Rater) void(e *metering.Event, received metering.Instant) *metering.Rejection {
	if rejection := r.knownTenant(e); rejection != nil {
		return rejection
	}
	if problem := e.Problem(); problem != nil {
		return problem
	}
	if rejection := future(e.End, received); rejection != nil {
		return rejection
	}
	key := SessionKey{e.Tenant, e.Session}
	s := r.sessions[key]
	if s == nil {
		key = SessionKey{strings.Clone(e.Tenant), strings.Clone(e.Session)}
		s = newSession(key)
		r.sessions[key] = s
		r.bytes += sessionBytes
	}
	from, until := e.Window()
	for hour := metering.HourOf(from); hour < until; hour += metering.Hour {
		h := r.hour(s, hour)
		span := metering.Span{
			From: uint16(max(from-hour, 0)),
			To:   uint16(min(until-hour, metering.Hour)),
		}
		fresh := h.void.Add(span, r.scratch.fresh[:0])
		r.scratch.fresh = fresh
		if len(fresh) > 0 && !h.voidChanged {
			h.voidChanged = true
			r.changedVoids = append(r.changedVoids, h)
		}
		// The whole span, not what is fresh of it: the store may have the void of a write that
		// landed in part, without the rows that it changed.
		for _, row := range h.rows {
			r.scratch.common = row.used.Intersect(span, r.scratch.common[:0])
			r.voidSeconds(row, r.scratch.common)
		}
	}
	return nil
}

func (r *Rater) consume(e *metering.Event, at Position, received metering.Instant,
) *metering.Rejection {
	if rejection := r.knownTenant(e); rejection != nil {
		return rejection
	}
	if problem := e.Problem(); problem != nil {
		return problem
	}
	had := len(r.consumed)
	second := e.At.Second()
	for i := range e.Amounts {
		query := catalog.Query{
			Tenant: e.Tenant, SKU: e.Amounts[i].SKU, Purchase: string(e.Purchase), Region: e.Region,
		}
		q, ok := r.lookup(query, second)
		if !ok || !q.Price.Per.Consumed() {
			r.consumed = r.consumed[:had]
			return noPrice(&query, second, "unit")
		}
		facts := e.Facts.Clone()
		r.consumed = append(r.consumed, ConsumedRow{
			Tenant: strings.Clone(e.Tenant), Source: strings.Clone(e.Source), ID: strings.Clone(e.ID),
			SKU: q.Price.SKU, Nano: e.Amounts[i].Nano, Charge: r.intern(e.Tenant, &q),
			Billing: r.billing(e.Tenant, &q), Day: q.Day, At: second, Project: facts.Project,
			Purchase: string(facts.Purchase), Region: facts.Region, Labels: facts.Labels, Position: at,
		})
	}
	if rejection := future(e.At, received); rejection != nil {
		r.consumed = r.consumed[:had]
		return rejection
	}
	return nil
}

// billing is the billing period of usage that is rated now.
func (r *Rater) billing(tenant string, q *catalog.Quote) string {
	return r.closes.Billing(PeriodKey{tenant, q.Contract, q.Period}, r.offset)
}

// asOf grows whenever a second may be priced, or count, otherwise than before.
func (r *Rater) asOf() uint64 { return r.catalog.Revision + r.obeyed }

// intern returns the one copy of a charge that this rater has.
func (r *Rater) intern(tenant string, q *catalog.Quote) *Charge {
	return r.internCharge(chargeOf(tenant, q))
}

func (r *Rater) internCharge(c Charge) *Charge {
	if known := r.charges[c]; known != nil {
		return known
	}
	c.Tenant = strings.Clone(c.Tenant)
	r.charges[c] = &c
	return &c
}
