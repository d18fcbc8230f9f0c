package session

import (
	"cmp"
	"slices"
	"time"
)

// Config says how usage is reported. Only Node is required.
type Config struct {
	Node     string
	Window   time.Duration // aligned to the wall clock; default 60 s
	Backfill time.Duration // how far back a session that is new here is reported; default 7 days
}

// State is all that an engine knows. It can be encoded as JSON.
type State struct {
	Boot    string // of the node: the monotonic clock starts again with another one
	Clock   clock
	Open    []*Session
	Past    []*Session       // ended and reported, oldest first
	Waiting map[string]int64 // source and key of grants that were unusable -> since when
}

// Counts are what the engine did not report, for a person to look at.
type Counts struct {
	TooOld time.Duration // of sessions that began before Backfill
	Early  time.Duration // reported, though the source told later that the lease had ended
	Twice  int64         // observations of a lease that another allocation of the node has already
	// Waiting are the grants that do not begin now, because their devices are not there.
	Waiting int
}

// Engine turns grants into windows. It belongs to one goroutine.
type Engine struct {
	config  Config
	state   State
	changed bool
	counts  Counts
	waiting map[string]int // source -> grants that do not begin

	// The last of the past sessions of each key of a source, and of each lease.
	byKey, byLease map[string]*Session
}

// New returns an engine that knows a state: that of an earlier one, or the zero value. boot names
// the node's boot: the monotonic clock of now counts from there.
func New(config Config, state State, boot string, now Instant) *Engine {
	if config.Window <= 0 {
		config.Window = time.Minute
	}
	if config.Backfill <= 0 {
		config.Backfill = 7 * 24 * time.Hour
	}
	e := &Engine{config: config, state: state, waiting: map[string]int{}}
	if e.state.Waiting == nil {
		e.state.Waiting = map[string]int64{}
	}
	if e.state.Boot != boot {
		e.reboot(boot, now)
	}
	e.state.Clock.observe(now)
	e.index()
	return e
}

// index finds past sessions anew.
func (e *Engine) index() {
	e.byKey, e.byLease = map[string]*Session{}, map[string]*Session{}
	for _, s := range e.state.Past {
		e.byKey[joinKey(s.Source, s.Key)] = s
		e.byLease[joinKey(s.Tenant, s.Lease)] = s
	}
}

// reboot carries the sessions over to a monotonic clock that has started again: across a boot only
// the wall clock can measure.
func (e *Engine) reboot(boot string, now Instant) {
	old := e.state.Clock
	e.state.Boot, e.state.Clock = boot, clock{}
	e.state.Clock.observe(now)
	e.changed = true
	if len(old.Periods) == 0 {
		return
	}
	shift := e.state.Clock.offset() - old.offset()
	for _, list := range [][]*Session{e.state.Open, e.state.Past} {
		for _, s := range list {
			s.Zero += shift
		}
	}
}

// Observe takes in all grants of one source, as they were when it was asked, by the monotonic
// clock. A session whose grant is not among them ended when it was last seen. Do not call it when
// the source did not answer.
func (e *Engine) Observe(now Instant, asked time.Duration, source string, grants []Grant) {
	e.state.Clock.observe(now)
	mono := int64(asked)
	listed := make(map[string]bool, len(grants))
	for i := range grants {
		listed[grants[i].Key] = true
	}
	// First what is gone: a lease may be in another allocation now.
	for _, s := range e.state.Open {
		if s.Source == source && !s.Ended && !listed[s.Key] {
			s.end(s.Seen-s.Zero, false)
			e.changed = true
		}
	}
	e.waiting[source] = 0
	taken := make(map[string]bool, len(grants))
	for i := range grants {
		g := grants[i].normal()
		if taken[g.Key] {
			continue // a source names each key once; the first counts
		}
		taken[g.Key] = true
		e.take(mono, source, &g)
	}
	for key := range e.state.Waiting {
		if name, rest := splitKey(key); name == source && !listed[rest] {
			delete(e.state.Waiting, key)
			e.changed = true
		}
	}
	e.retire()
}

// Only ends the sessions of all other sources, when they were last seen: nobody will vouch for them
// any more.
func (e *Engine) Only(sources ...string) {
	for _, s := range e.state.Open {
		if !s.Ended && !slices.Contains(sources, s.Source) {
			s.end(s.Seen-s.Zero, false)
			e.changed = true
		}
	}
	e.retire()
}

// take takes in one grant.
func (e *Engine) take(now int64, source string, g *Grant) {
	s := e.find(source, g.Key)
	end, ends := int64(0), false
	if !g.End.IsZero() {
		end, _ = e.state.Clock.find(g.End)
		ends = end <= now
	}
	if s == nil {
		if s = e.begin(now, source, g, end, ends); s == nil {
			return
		}
	} else if !g.Unusable && !s.same(g) {
		s = e.change(now, s, g, end, ends)
	}
	if ends {
		if early := s.Covered - (s.Zero + end); early > 0 {
			e.counts.Early += time.Duration(early)
		}
		s.end(end, true)
		s.End, e.changed = g.End, true
		return
	}
	s.Seen = max(s.Seen, s.Zero+now)
}

// change ends a session whose facts changed, and begins the one that goes on from there.
func (e *Engine) change(now int64, s *Session, g *Grant, end int64, ends bool) *Session {
	at := now
	if !g.Start.IsZero() && !g.Start.Equal(s.Start) { // the source knows when
		if start, _ := e.state.Clock.find(g.Start); s.Zero+start > s.Begin && start <= now {
			at = start
		}
	}
	if ends {
		at = min(at, end)
	}
	s.end(at, true)
	next := e.open(s.Source, g, s.Zero, s.Finish-s.Zero)
	next.Resumed = g.Resumed || g.Tenant == s.Tenant && g.Lease == s.Lease
	return next
}

// begin begins the session of a grant that has none, or goes on with one that was only missed for a
// while. It returns nil if there is nothing to report.
func (e *Engine) begin(now int64, source string, g *Grant, end int64, ends bool) *Session {
	start, offset := now, e.state.Clock.offset()
	if !g.Start.IsZero() {
		if start, offset = e.state.Clock.find(g.Start); start > now {
			return nil
		}
	}
	if g.Unusable {
		if ends {
			return nil
		}
		e.waiting[source]++
		if key := joinKey(source, g.Key); e.state.Waiting[key] == 0 {
			e.state.Waiting[key], e.changed = max(1, now), true
		}
		return nil
	}
	if e.elsewhere(source, g) {
		e.counts.Twice++
		return nil
	}
	past, lease := e.past(source, g)
	if past != nil {
		if past.Told && !g.End.IsZero() && g.End.Equal(past.End) {
			return nil // it was reported; its times may mean something else by now
		}
		last := past.Finish - past.Zero
		switch {
		case ends && end <= last: // it was reported
			return nil
		case !past.Told && !g.Start.IsZero() && past.same(g) &&
			(start <= last || g.Start.Equal(past.Start)):
			e.reopen(past)
			return past
		}
		start = max(start, last)
	}
	if key := joinKey(source, g.Key); e.state.Waiting[key] != 0 {
		delete(e.state.Waiting, key)
		e.changed = true
		start = max(start, now)
	}
	zero := offset
	if lease != nil { // a lease keeps its clock, and has one session at a time
		zero = lease.Zero
		start = max(start, lease.Finish-zero)
	}
	if ends && end <= start {
		return nil
	}
	s := e.open(source, g, zero, start)
	s.Resumed = g.Resumed || lease != nil
	if oldest := s.Zero + now - int64(e.config.Backfill); s.Covered < oldest {
		e.counts.TooOld += time.Duration(oldest - s.Covered)
		s.Covered = oldest
	}
	return s
}

// reopen goes on with a session that was taken for ended because its source did not list it.
func (e *Engine) reopen(s *Session) {
	s.Ended, s.Closed, e.changed = false, false, true
	if slices.Contains(e.state.Open, s) {
		return
	}
	e.state.Past = slices.DeleteFunc(e.state.Past, func(p *Session) bool { return p == s })
	e.state.Open = append(e.state.Open, s)
	e.index()
}

// open begins a session at an instant.
func (e *Engine) open(source string, g *Grant, zero, mono int64) *Session {
	s := &Session{Source: source, Grant: *g, Zero: zero, Begin: zero + mono}
	s.End = time.Time{}
	s.Covered, s.Seen = s.Begin, s.Begin
	s.name(e.config.Node)
	e.state.Open = append(e.state.Open, s)
	e.changed = true
	return s
}

// find returns the session of a key that has not ended, or nil.
func (e *Engine) find(source, key string) *Session {
	for _, s := range e.state.Open {
		if s.Source == source && s.Key == key && !s.Ended {
			return s
		}
	}
	return nil
}

// elsewhere reports whether the grant's lease is in another session now: two at a time would bill
// its seconds twice.
func (e *Engine) elsewhere(source string, g *Grant) bool {
	return slices.ContainsFunc(e.state.Open, func(s *Session) bool {
		return !s.Ended && s.Tenant == g.Tenant && s.Lease == g.Lease &&
			(s.Source != source || s.Key != g.Key)
	})
}

// past returns the last ended session of a grant's key, and that of its lease, or nil.
func (e *Engine) past(source string, g *Grant) (key, lease *Session) {
	for _, s := range slices.Backward(e.state.Open) { // those that are not reported yet
		if !s.Ended {
			continue
		}
		if key == nil && s.Source == source && s.Key == g.Key {
			key = s
		}
		if lease == nil && s.Tenant == g.Tenant && s.Lease == g.Lease {
			lease = s
		}
	}
	if key == nil {
		key = e.byKey[joinKey(source, g.Key)]
	}
	if lease == nil {
		lease = e.byLease[joinKey(g.Tenant, g.Lease)]
	}
	return key, lease
}

// retire moves sessions that have ended and are reported to the past.
func (e *Engine) retire() {
	open := e.state.Open[:0]
	for _, s := range e.state.Open {
		if s.Ended && s.Covered >= s.Finish && !s.unclosed() {
			e.state.Past = append(e.state.Past, s)
			e.byKey[joinKey(s.Source, s.Key)] = s
			e.byLease[joinKey(s.Tenant, s.Lease)] = s
			e.changed = true
			continue
		}
		open = append(open, s)
	}
	clear(e.state.Open[len(open):])
	e.state.Open = open
	if extra := len(e.state.Past) - pastMost; extra > 0 {
		e.state.Past = slices.Delete(e.state.Past, 0, extra)
		e.index()
	}
}

// Sessions returns the sessions that have not ended, by their start. They are not to be changed.
func (e *Engine) Sessions() []*Session {
	var open []*Session
	for _, s := range e.state.Open {
		if !s.Ended {
			open = append(open, s)
		}
	}
	slices.SortStableFunc(open, func(a, b *Session) int { return cmp.Compare(a.Begin, b.Begin) })
	return open
}

// Changed reports whether sessions began or ended since the last call, so that the state must be
// saved before their windows are: ids follow from it.
func (e *Engine) Changed() bool {
	changed := e.changed
	e.changed = false
	return changed
}

// Touch undoes Changed, where the state could not be saved.
func (e *Engine) Touch() { e.changed = true }

// State returns the state, to be encoded at once: it is the engine's own.
func (e *Engine) State() *State { return &e.state }

// Counts returns what was not reported, since New.
func (e *Engine) Counts() Counts {
	counts := e.counts
	for _, n := range e.waiting {
		counts.Waiting += n
	}
	return counts
}
