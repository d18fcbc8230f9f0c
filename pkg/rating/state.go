package rating

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/suanpan/suanpan/pkg/metering"
)

// Need names what the store may know and the rater does not.
type Need struct {
	Sessions map[SessionKey]bool
	Hours    map[HourKey]bool // voids, and rows of all SKUs
	Spans    []HourSpan       // all of a tenant: sessions, voids, rows, and what was consumed
}

// HourSpan is all hours of a tenant in [From, Until).
type HourSpan struct {
	Tenant      string
	From, Until int64
}

// Empty reports whether nothing is needed.
func (n *Need) Empty() bool {
	return len(n.Sessions) == 0 && len(n.Hours) == 0 && len(n.Spans) == 0
}

// Known is what a store has of a [Need].
type Known struct {
	Sessions []SessionRow
	Voids    []VoidRow
	Hours    []Row
	Consumed []ConsumedRow // of the spans
}

// Need adds what must be loaded before the event is rated. It asks for nothing of tenants that the
// store has nothing of, nor for hours after the last one that it has.
func (r *Rater) Need(e *metering.Event, need *Need) {
	if e.Kind == metering.Rerate {
		r.needSpan(e, need)
		return
	}
	stored := r.stored[e.Tenant]
	if !stored.Sessions || e.Session == "" || e.Kind != metering.Held && e.Kind != metering.Void {
		return
	}
	key := SessionKey{e.Tenant, e.Session}
	s := r.sessions[key]
	if s == nil {
		if need.Sessions == nil {
			need.Sessions = make(map[SessionKey]bool)
		}
		need.Sessions[key] = true
	}
	hours := func(w window) {
		until := min(w.until, stored.Hour+metering.Hour)
		for hour := metering.HourOf(w.from); hour < until; hour += metering.Hour {
			if s != nil && s.hours[hour] != nil {
				continue
			}
			if need.Hours == nil {
				need.Hours = make(map[HourKey]bool)
			}
			need.Hours[HourKey{key, hour}] = true
		}
	}
	if e.Problem() != nil {
		return
	}
	if e.Kind == metering.Void {
		from, until := e.Window()
		hours(window{from, until})
		return
	}
	if s == nil {
		s = newSession(key)
	}
	for i := range e.Amounts {
		k, ok := s.sku(e.Amounts[i].SKU), true
		if k == nil {
			k, ok = r.newSKU(e.Tenant, &e.Amounts[i], &e.Facts)
		}
		if ok {
			for _, w := range s.windows(k, e) {
				hours(w)
			}
		}
	}
}

// needSpan asks for all that a re-rating is about.
func (r *Rater) needSpan(e *metering.Event, need *Need) {
	if r.amended != nil && e.Problem() == nil {
		need.Spans = append(need.Spans, HourSpan{
			Tenant: strings.Clone(e.Tenant), From: metering.HourOf(e.Start.Second()),
			Until: metering.HourOf(e.End.Second() + metering.Hour - 1),
		})
	}
}

// Load takes in all that the store has of a need. It fails where the catalog lacks a price by which
// a session was rated before.
func (r *Rater) Load(need *Need, known *Known) error {
	known = r.fresh(need, known)
	for key := range need.Sessions {
		if r.sessions[key] == nil {
			r.sessions[key] = newSession(key)
			r.bytes += sessionBytes
		}
	}
	for i := range known.Sessions {
		if err := r.loadSession(&known.Sessions[i]); err != nil {
			return err
		}
	}
	for _, key := range need.hours() {
		r.hour(r.session(key.SessionKey), key.Hour)
	}
	for i := range known.Voids {
		v := &known.Voids[i]
		r.hour(r.session(v.SessionKey), v.Hour).void = v.Seconds
	}
	for i := range known.Hours {
		if err := r.loadRow(&known.Hours[i]); err != nil {
			return err
		}
	}
	return nil
}

// hours lists the needed hours: in order, where spans brought many, as that is the order in which
// they are evicted.
func (n *Need) hours() []HourKey {
	keys := slices.Collect(maps.Keys(n.Hours))
	if len(n.Spans) > 0 {
		slices.SortFunc(keys, func(a, b HourKey) int {
			return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Hour, b.Hour),
				cmp.Compare(a.Session, b.Session))
		})
	}
	return keys
}

// fresh completes a need by all that its spans turned out to have, and leaves out what is in
// memory: that may be newer.
func (r *Rater) fresh(need *Need, known *Known) *Known {
	if len(need.Spans) == 0 {
		return known
	}
	out := &Known{Sessions: known.Sessions}
	r.rerated = known.Consumed
	if need.Sessions == nil {
		need.Sessions = make(map[SessionKey]bool)
	}
	if need.Hours == nil {
		need.Hours = make(map[HourKey]bool)
	}
	for i := range known.Sessions {
		need.Sessions[known.Sessions[i].SessionKey] = true
	}
	inMemory := func(key HourKey) bool {
		s := r.sessions[key.SessionKey]
		return s != nil && s.hours[key.Hour] != nil
	}
	for i := range known.Voids {
		if key := known.Voids[i].HourKey; !inMemory(key) {
			need.Sessions[key.SessionKey], need.Hours[key] = true, true
			out.Voids = append(out.Voids, known.Voids[i])
		}
	}
	for i := range known.Hours {
		if key := known.Hours[i].HourKey; !inMemory(key) {
			need.Hours[key] = true
			out.Hours = append(out.Hours, known.Hours[i])
		}
	}
	return out
}

func (r *Rater) session(key SessionKey) *session {
	s := r.sessions[key]
	if s == nil {
		panic("BUG: an hour was loaded of a session that was not: " + key.Session)
	}
	return s
}

func (r *Rater) loadSession(row *SessionRow) error {
	s := r.session(row.SessionKey)
	s.facts, s.known = row.Facts, true
	if s.sku(row.SKU) != nil {
		return nil
	}
	k, ok := r.newSKU(row.Tenant, &metering.Amount{SKU: row.SKU, Milli: row.Milli}, &row.Facts)
	if !ok {
		return fmt.Errorf("load session %s of tenant %s: the catalog no longer has a price of %s at %s",
			row.Session, row.Tenant, row.SKU, row.SessionStart)
	}
	s.add(k)
	r.bytes += skuBytes
	return nil
}

func (r *Rater) loadRow(in *Row) error {
	s := r.session(in.SessionKey)
	k := s.sku(in.SKU)
	if k == nil {
		return fmt.Errorf("load hour %d of session %s of tenant %s: its SKU %s has no session row",
			in.Hour, in.Session, in.Tenant, in.SKU)
	}
	row := r.row(r.hour(s, in.Hour), k)
	row.used, row.voided, row.segments = in.Used, in.Voided, in.Segments
	row.rerated = in.Rerated
	for i := range row.segments {
		row.segments[i].Charge = r.internCharge(*row.segments[i].Charge)
	}
	return nil
}

// Pending is the number of rows that changed since the last [Rater.Drain].
func (r *Rater) Pending() int {
	return len(r.changedRows) + len(r.changedVoids) + len(r.newSessions) + len(r.consumed) +
		len(r.newCloses) + len(r.newRerates)
}

// Drain returns copies of all rows that changed since the last call. They must be written, and then
// acknowledged.
func (r *Rater) Drain() Changes {
	r.sequence++
	c := Changes{
		Sessions: r.newSessions, Consumed: r.consumed, Closes: r.newCloses, Rerates: r.newRerates,
		sequence: r.sequence,
	}
	r.newSessions, r.consumed, r.newCloses, r.newRerates = nil, nil, nil, nil
	clear(r.closing)
	for _, h := range r.changedVoids {
		h.voidChanged, h.changedAt = false, r.sequence
		c.Voids = append(c.Voids, VoidRow{HourKey{h.session.key, h.hour}, h.void.Clone()})
	}
	r.changedVoids = r.changedVoids[:0]
	c.Hours = make([]Row, 0, len(r.changedRows))
	for _, row := range r.changedRows {
		row.changed, row.of.changedAt = false, r.sequence
		sortSegments(row.segments)
		c.Hours = append(c.Hours, Row{
			HourKey: HourKey{row.of.session.key, row.of.hour}, SKU: row.sku.name, Milli: row.sku.milli,
			Used: row.used.Clone(), Voided: row.voided.Clone(),
			Segments: append([]Segment(nil), row.segments...), Rerated: row.rerated,
		})
	}
	clear(r.changedRows)
	r.changedRows = r.changedRows[:0]
	return c
}

// Acknowledge says that the changes, and all that were drained before them, are durable and their
// records' offsets committed: what they are about may be evicted.
func (r *Rater) Acknowledge(c *Changes) { r.acked = max(r.acked, c.sequence) }

// Bytes is about how much memory the rater's state takes.
func (r *Rater) Bytes() int64 { return r.bytes }

// Evict forgets hours that were not touched for the longest time, until the state is within a limit
// in bytes or what comes next is not acknowledged yet. The store has what is forgotten.
func (r *Rater) Evict(limit int64) {
	for r.bytes > limit {
		front := r.recent.Front()
		if front == nil {
			r.forgetIdle()
			return
		}
		h := front.Value.(*sessionHour)
		if h.changing() || h.changedAt > r.acked {
			return
		}
		r.forget(h)
	}
}

func (h *sessionHour) changing() bool {
	for _, row := range h.rows {
		if row.changed {
			return true
		}
	}
	return h.voidChanged
}

func (r *Rater) forget(h *sessionHour) {
	s := h.session
	r.recent.Remove(h.place)
	delete(s.hours, h.hour)
	s.last = nil
	r.bytes -= hourBytes + int64(len(h.rows))*rowBytes
	stored, ok := r.stored[s.key.Tenant]
	if !ok {
		stored.Hour = -1
	}
	r.stored[s.key.Tenant] = Stored{Sessions: true, Hour: max(stored.Hour, h.hour)}
	if len(s.hours) == 0 {
		r.forgetSession(s)
	}
}

func (r *Rater) forgetSession(s *session) {
	if s.saved <= r.acked {
		delete(r.sessions, s.key)
		r.bytes -= sessionBytes + int64(len(s.skus))*skuBytes
		stored, ok := r.stored[s.key.Tenant]
		if !ok {
			stored.Hour = -1
		}
		stored.Sessions = true
		r.stored[s.key.Tenant] = stored
	}
}

// forgetIdle forgets sessions that have no hours: nothing was ever billed of them.
func (r *Rater) forgetIdle() {
	for _, s := range r.sessions {
		if len(s.hours) == 0 {
			r.forgetSession(s)
		}
	}
}
