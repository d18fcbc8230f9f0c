package alert

import (
	"iter"
	"maps"
	"slices"

	"github.com/suanpan/suanpan/pkg/metering"
)

// DefaultRemembered is how many alerts that are over a [History] remembers.
const DefaultRemembered = 1 << 17

// History is what the log says of alerts: the newest state of those that fire, and of those that
// are over as much as keeps them from firing twice. What it forgets follows from the order of the
// log alone, so all who read the log know the same.
type History struct {
	remembered int
	open       map[string]*Alert // by stem
	closed     map[string]ended  // by stem
	order      []ended           // as they were closed, the oldest first
	forgotten  int64             // the largest episode of those that were forgotten
}

// ended is an alert that is over.
type ended struct {
	stem    string
	episode int64
	at      int64 // second
}

// NewHistory returns a history that remembers a number of alerts that are over.
func NewHistory(remembered int) *History {
	return &History{
		remembered: remembered, open: make(map[string]*Alert), closed: make(map[string]ended),
	}
}

// Add takes the next record of the log in. It reports false for one that changes nothing: somebody
// else has decided the same before.
func (h *History) Add(a *Alert) bool {
	stem := a.stem()
	now, is := h.open[stem]
	switch a.Status {
	case Firing:
		past, was := h.closed[stem]
		if is || was && a.Episode <= past.episode ||
			!was && a.Episode > 0 && a.Episode <= h.forgotten {
			return false
		}
		h.open[stem] = a
	case Acknowledged:
		if !is || now.Key != a.Key || now.Status != Firing {
			return false
		}
		h.open[stem] = a
	case Resolved:
		if !is || now.Key != a.Key {
			return false
		}
		delete(h.open, stem)
		h.close(ended{stem, a.Episode, second(a.At)})
	}
	return true
}

func (h *History) close(e ended) {
	h.closed[e.stem] = e
	h.order = append(h.order, e)
	for len(h.closed) > h.remembered {
		oldest := h.order[0]
		h.order = h.order[1:]
		if h.closed[oldest.stem] == oldest { // it was not closed again since
			delete(h.closed, oldest.stem)
			h.forgotten = max(h.forgotten, oldest.episode)
		}
	}
	if len(h.order) > 2*h.remembered { // some were closed often
		h.order = slices.DeleteFunc(h.order, func(e ended) bool { return h.closed[e.stem] != e })
	}
}

// Decided reports whether the log has a firing alert already, or had it.
func (h *History) Decided(a *Alert) bool {
	stem := a.stem()
	if now, is := h.open[stem]; is {
		return now.Key == a.Key
	}
	past, was := h.closed[stem]
	return was && a.Episode <= past.episode
}

// Open visits the alerts that are not over, by their keys.
func (h *History) Open() iter.Seq[*Alert] {
	return func(yield func(*Alert) bool) {
		for _, stem := range slices.Sorted(maps.Keys(h.open)) {
			if !yield(h.open[stem]) {
				return
			}
		}
	}
}

// Len is the number of alerts that are not over.
func (h *History) Len() int { return len(h.open) }

// Find returns the alert of a key, if it is not over.
func (h *History) Find(key string) (*Alert, bool) {
	for _, a := range h.open {
		if a.Key == key {
			return a, true
		}
	}
	return nil, false
}

// fires reports whether something fires, or may not fire again before a while has passed since it
// was over. A clock that went back further than that does not count.
func (h *History) fires(stem string, now, cooldown int64) bool {
	if _, is := h.open[stem]; is {
		return true
	}
	past, was := h.closed[stem]
	return was && now-past.at < cooldown && past.at-now < cooldown
}

// episode is the number of the next alert about something.
func (h *History) episode(stem string) int64 {
	return max(h.closed[stem].episode, h.forgotten) + 1
}

// second is the second of an instant as alerts have it; they are valid.
func second(instant string) int64 {
	at, err := metering.ParseInstant(instant)
	if err != nil {
		panic("BUG: an alert was not validated: " + err.Error())
	}
	return at.Second()
}
