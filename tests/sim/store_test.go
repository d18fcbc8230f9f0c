package sim

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
)

// place is where a record is.
type place struct {
	topic     string
	partition int
	offset    int64
}

type period = pipeline.PeriodKey

type settlement struct {
	asOf  time.Time
	lines []rating.Settled
}

// store has tables that merge as ReplacingMergeTree does: of the rows of one key the larger version
// stays, of equal versions the one that came last.
type store struct {
	w           *world
	down        bool // every write fails
	sessions    map[string]rating.SessionRow
	voids       map[string]rating.VoidRow
	consumed    map[string]rating.ConsumedRow
	hours       map[string]rating.Row
	letters     map[place]pipeline.DeadLetter
	archive     map[place]pipeline.Record
	settlements map[period]settlement
	touched     map[period]time.Time
	closes      map[string]rating.Close
	rerates     map[place]rating.Rerate
	documents   map[string]billing.Entry
}

func newStore(w *world) *store {
	return &store{
		w: w, sessions: make(map[string]rating.SessionRow), voids: make(map[string]rating.VoidRow),
		consumed: make(map[string]rating.ConsumedRow), hours: make(map[string]rating.Row),
		letters: make(map[place]pipeline.DeadLetter), archive: make(map[place]pipeline.Record),
		settlements: make(map[period]settlement), touched: make(map[period]time.Time),
		closes: make(map[string]rating.Close), rerates: make(map[place]rating.Rerate),
		documents: make(map[string]billing.Entry),
	}
}

func key(parts ...any) string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "%v\x00", p)
	}
	return b.String()
}

func size(s metering.Set) int {
	n := 0
	for _, span := range s {
		n += int(span.To) - int(span.From)
	}
	return n
}

// within reports whether all seconds of a are in b.
func within(a, b metering.Set) bool {
	for _, x := range a {
		if !slices.ContainsFunc(b, func(y metering.Span) bool {
			return y.From <= x.From && x.To <= y.To
		}) {
			return false
		}
	}
	return true
}

func (s *store) putSession(r rating.SessionRow) {
	k := key(r.Tenant, r.Session, r.SKU)
	old, ok := s.sessions[k]
	switch {
	case !ok || r.Offset < old.Offset:
		s.sessions[k] = r
	case r.Offset == old.Offset && print(r) != print(old):
		s.w.fail("two session rows of one position differ: %s and %s", print(r), print(old))
	}
}

func (s *store) putVoid(r rating.VoidRow) {
	k := key(r.Tenant, r.Session, r.Hour)
	old := s.voids[k]
	small, large := old.Seconds, r.Seconds
	if size(small) > size(large) {
		small, large = large, small
	}
	if !within(small, large) {
		s.w.fail("voids of %s are no growing sets: %v and %v", k, old.Seconds, r.Seconds)
	}
	if size(r.Seconds) >= size(old.Seconds) {
		s.voids[k] = r
	}
}

func (s *store) putConsumed(r rating.ConsumedRow) {
	k := key(r.Tenant, r.Source, r.ID, r.SKU)
	old, ok := s.consumed[k]
	if !ok || r.Offset <= old.Offset || s.w.bug == "last consumed wins" {
		s.consumed[k] = r
		s.touch(r.Charge)
	}
}

func (s *store) putHour(r rating.Row) {
	k := key(r.Tenant, r.Hour, r.Session, r.SKU)
	if s.w.bug == "add" {
		k = key(k, len(s.hours))
	}
	old := s.hours[k]
	version, before := r.Version(), old.Version()
	// One may have more of the void that a write left behind, the other more of what was used.
	for _, sets := range [][2]metering.Set{{old.Used, r.Used}, {old.Voided, r.Voided}} {
		if !within(sets[0], sets[1]) && !within(sets[1], sets[0]) {
			s.w.fail("states of hour %s are no growing sets: %s and %s", k, print(old), print(r))
		}
	}
	if print(old.Used) == print(r.Used) && print(old.Voided) == print(r.Voided) &&
		old.Rerated == r.Rerated && before > 0 && print(old) != print(r) {
		s.w.fail("states of hour %s are split in two ways: %s and %s", k, print(old), print(r))
	}
	if version >= before || s.w.bug == "last state wins" {
		s.hours[k] = r
		for i := range r.Segments {
			s.touch(r.Segments[i].Charge)
		}
	}
	if version < before {
		s.w.met("older state after newer")
	}
}

// print tells a row with its charges, not their addresses.
func print(row any) string {
	switch r := row.(type) {
	case rating.Row:
		text := fmt.Sprint(r.HourKey, r.SKU, r.Milli, r.Used, r.Voided, r.Rerated)
		for _, s := range r.Segments {
			text += fmt.Sprint(" ", s.Kind, s.Charge.Tenant, s.Charge.Key(), s.Billing, s.Day, s.From,
				s.To, s.Seconds)
		}
		return text
	case rating.ConsumedRow:
		charge := r.Charge.Key()
		r.Charge = nil
		return fmt.Sprint(r, charge)
	}
	return fmt.Sprint(row)
}

func (s *store) touch(c *rating.Charge) {
	s.touched[period{Tenant: c.Tenant, Contract: c.Contract, Period: c.Period}] = s.w.now
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// sums adds up what rows have of periods; nil is all of them.
func (s *store) sums(periods []period) rating.Sums {
	sums := make(rating.Sums)
	add := func(c *rating.Charge, q metering.Quantity) {
		k := period{Tenant: c.Tenant, Contract: c.Contract, Period: c.Period}
		if periods == nil || slices.Contains(periods, k) {
			sums.Add(c, q)
		}
	}
	for _, k := range sorted(s.hours) {
		row := s.hours[k]
		for i := range row.Segments {
			add(row.Segments[i].Charge, row.Segments[i].Quantity(row.Milli))
		}
	}
	for _, k := range sorted(s.consumed) {
		row := s.consumed[k]
		add(row.Charge, row.Nano)
	}
	return sums
}

// rows is the store as a rater's node sees it.
type rows struct {
	n *node
	s *store
}

func (r rows) Stored(context.Context) (map[string]rating.Stored, error) {
	if r.n.w.fault(50) {
		return nil, errFault
	}
	out := make(map[string]rating.Stored)
	see := func(tenant string, hour int64) {
		old, ok := out[tenant]
		if !ok {
			old.Hour = -1
		}
		out[tenant] = rating.Stored{Sessions: true, Hour: max(old.Hour, hour)}
	}
	for _, row := range r.s.sessions {
		see(row.Tenant, -1)
	}
	for _, row := range r.s.voids {
		see(row.Tenant, row.Hour)
	}
	for _, row := range r.s.hours {
		see(row.Tenant, row.Hour)
	}
	return out, nil
}

func (r rows) Find(_ context.Context, need *rating.Need) (*rating.Known, error) {
	if r.n.w.fault(50) {
		return nil, errFault
	}
	known := new(rating.Known)
	spanned := func(tenant string, at int64) bool {
		return slices.ContainsFunc(need.Spans, func(s rating.HourSpan) bool {
			return s.Tenant == tenant && at >= s.From && at < s.Until
		})
	}
	sessions := make(map[rating.SessionKey]bool)
	for _, k := range sorted(r.s.voids) {
		if row := r.s.voids[k]; need.Hours[row.HourKey] || spanned(row.Tenant, row.Hour) {
			row.Seconds = row.Seconds.Clone()
			known.Voids = append(known.Voids, row)
			sessions[row.SessionKey] = true
		}
	}
	for _, k := range sorted(r.s.hours) {
		if row := r.s.hours[k]; need.Hours[row.HourKey] || spanned(row.Tenant, row.Hour) {
			known.Hours = append(known.Hours, copyRow(row))
			sessions[row.SessionKey] = true
		}
	}
	for _, k := range sorted(r.s.consumed) {
		if row := r.s.consumed[k]; spanned(row.Tenant, row.At) {
			known.Consumed = append(known.Consumed, row)
		}
	}
	for _, k := range sorted(r.s.sessions) {
		row := r.s.sessions[k]
		if need.Sessions[row.SessionKey] || len(need.Spans) > 0 && sessions[row.SessionKey] {
			known.Sessions = append(known.Sessions, row)
		}
	}
	r.n.w.event("%s finds %d sessions, %d voids, %d hours", r.n.name, len(known.Sessions),
		len(known.Voids), len(known.Hours))
	return known, nil
}

func copyRow(row rating.Row) rating.Row {
	row.Used, row.Voided = row.Used.Clone(), row.Voided.Clone()
	row.Segments = slices.Clone(row.Segments)
	for i := range row.Segments {
		charge := *row.Segments[i].Charge
		row.Segments[i].Charge = &charge
	}
	return row
}

func (r rows) Write(_ context.Context, c *rating.Changes) error {
	if r.s.down {
		return errFault
	}
	r.n.w.event("%s writes %v %v", r.n.name, c.Sessions, c.Voids)
	for i := range c.Hours {
		_, _ = r.n.w.trace.Write([]byte(print(c.Hours[i])))
	}
	sessions := slices.Clone(c.Sessions)
	if err := r.insert("insert sessions", len(sessions), func(i int) {
		r.s.putSession(sessions[i])
	}); err != nil {
		return err
	}
	voids := slices.Clone(c.Voids)
	for i := range voids {
		voids[i].Seconds = voids[i].Seconds.Clone()
	}
	if err := r.insert("insert voids", len(voids), func(i int) { r.s.putVoid(voids[i]) }); err != nil {
		return err
	}
	consumed := slices.Clone(c.Consumed)
	if err := r.insert("insert consumed", len(consumed), func(i int) {
		r.s.putConsumed(consumed[i])
	}); err != nil {
		return err
	}
	hours := slices.Clone(c.Hours)
	for i := range hours {
		hours[i] = copyRow(hours[i])
	}
	if err := r.insert("insert hours", len(hours), func(i int) {
		r.s.putHour(hours[i])
	}); err != nil {
		return err
	}
	rerates := slices.Clone(c.Rerates)
	if err := r.insert("insert re-ratings", len(rerates), func(i int) {
		r.s.putRerate(rerates[i])
	}); err != nil {
		return err
	}
	closes := slices.Clone(c.Closes)
	return r.insert("insert closes", len(closes), func(i int) { r.s.putClose(closes[i]) })
}

func (r rows) insert(what string, count int, put func(int)) error {
	if count == 0 {
		return nil
	}
	return r.n.call(what, count, put)
}

func (r rows) WriteDeadLetters(_ context.Context, letters []pipeline.DeadLetter) error {
	if r.s.down {
		return errFault
	}
	letters = slices.Clone(letters)
	return r.n.call("insert dead letters", len(letters), func(i int) {
		l := letters[i]
		at := place{l.Topic, l.Partition, l.Offset}
		old, ok := r.s.letters[at]
		if ok && (old.Reason != l.Reason || !bytes.Equal(old.Value, l.Value)) {
			r.n.w.fail("record %v is a dead letter twice, as %s (%s) and as %s (%s)", at, old.Reason,
				old.Detail, l.Reason, l.Detail)
		}
		r.n.w.event("dead letter %v %s: %s", at, l.Reason, l.Detail)
		r.s.letters[at] = l
	})
}

// settlements is the store as the settler's node sees it.
type settlements struct {
	n *node
	s *store
}

func (t settlements) Touched(_ context.Context, since time.Time) ([]period, time.Time, error) {
	if t.n.w.fault(50) {
		return nil, time.Time{}, errFault
	}
	var out []period
	for p, at := range t.s.touched {
		if !at.Before(since) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b period) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Contract, b.Contract),
			cmp.Compare(a.Period, b.Period))
	})
	return out, t.n.w.now, nil
}

func (t settlements) Sums(_ context.Context, periods []period) (rating.Sums, error) {
	if t.n.w.fault(50) {
		return nil, errFault
	}
	return t.s.sums(periods), nil
}

func (t settlements) WriteSettlements(_ context.Context, settled map[period][]rating.Settled,
	asOf time.Time,
) error {
	var keys []period
	for k := range settled {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b period) int {
		return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
	return t.n.call("settle", len(keys), func(i int) {
		if old, ok := t.s.settlements[keys[i]]; !ok || !asOf.Before(old.asOf) {
			t.s.settlements[keys[i]] = settlement{asOf, settled[keys[i]]}
		}
	})
}
