// Package trace makes usage windows to replay: from a public trace of a real fleet, or from a
// seeded generator of one. Sessions come in, or the parameters of a fleet; windows go out in the
// order in which a fleet would report them, each able to append itself to a buffer as a usage
// event. What is held at a time grows with the sessions, not with their windows. It does no other
// I/O than reading the trace, and reads no clock.
package trace

import (
	"cmp"
	"container/heap"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/suanpan/suanpan/pkg/metering"
)

// MaxSessions is how many sessions one replay may have: they are kept in memory.
const MaxSessions = 1 << 20

// Region is the region of all sessions.
const Region = "openb"

// Session is one unbroken allocation that is replayed. Its name is also its lease.
type Session struct {
	Name     string
	Tenant   string
	Project  string
	Purchase metering.Purchase
	Start    int64 // second
	End      int64 // second; a session that does not end after its start has no windows
	Held     []metering.Amount
}

// Replay cuts sessions into windows. It is not changed by use: Windows may be called again.
type Replay struct {
	source   string
	sessions []Session
	window   int64
	total    int64
}

// New returns a replay of sessions, which it owns from then on, in windows of whole seconds, at
// most a day. Windows begin at their session's start; the last one is shorter where the session is
// no multiple. source is the CloudEvents source of the events.
func New(source string, sessions []Session, window time.Duration) (*Replay, error) {
	r := &Replay{source: source, sessions: sessions, window: int64(window / time.Second)}
	if window%time.Second != 0 || r.window < 1 || r.window > metering.MaxWindowSeconds {
		return nil, fmt.Errorf("window %s is not in whole seconds from 1s to %s", window,
			metering.MaxWindowSeconds*time.Second)
	}
	r.sessions = slices.DeleteFunc(r.sessions, func(s Session) bool {
		return s.End <= s.Start || len(s.Held) == 0
	})
	slices.SortStableFunc(r.sessions, func(a, b Session) int {
		return cmp.Compare(r.firstEnd(&a), r.firstEnd(&b))
	})
	for i := range r.sessions {
		s := &r.sessions[i]
		if s.Start < metering.MinSecond || s.End > metering.MaxSecond {
			return nil, fmt.Errorf("session %s: it is not between the years 1970 and 9999", s.Name)
		}
		r.total += (s.End-s.Start-1)/r.window + 1
	}
	return r, nil
}

// Sessions is the number of sessions that have windows.
func (r *Replay) Sessions() int { return len(r.sessions) }

// Total is the number of windows of all sessions.
func (r *Replay) Total() int64 { return r.total }

// firstEnd is the end of a session's first window.
func (r *Replay) firstEnd(s *Session) int64 { return min(s.Start+r.window, s.End) }

// Window is the usage of one session in [Start, End). It keeps its session's text alive, not the
// other windows.
type Window struct {
	Session *Session
	Start   int64 // second
	End     int64 // second
	Repeat  bool  // the window was there before: noise repeats it

	text *text
}

// Windows yields all windows in the order of their ends, so that events of different sessions mix
// as they would in the log of a fleet. Windows that end in the same second keep the order of their
// sessions.
func (r *Replay) Windows() iter.Seq[Window] {
	return func(yield func(Window) bool) {
		var running queue
		next := 0
		for next < len(r.sessions) || len(running) > 0 {
			horizon := int64(math.MaxInt64)
			if len(running) > 0 {
				horizon = running[0].End
			}
			if next < len(r.sessions) && r.firstEnd(&r.sessions[next]) <= horizon {
				s := &r.sessions[next]
				w := Window{Session: s, Start: s.Start, End: r.firstEnd(s), text: newText(r.source, s)}
				heap.Push(&running, queued{w, next})
				next++
				continue
			}
			top := &running[0]
			if !yield(top.Window) {
				return
			}
			if top.End == top.Session.End {
				heap.Pop(&running)
				continue
			}
			top.Start = top.End
			top.End = min(top.Start+r.window, top.Session.End)
			heap.Fix(&running, 0)
		}
	}
}

// queued is the next window of a session.
type queued struct {
	Window
	order int // of the sessions
}

// queue is a heap of the next windows, by their ends.
type queue []queued

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	return q[i].End < q[j].End || q[i].End == q[j].End && q[i].order < q[j].order
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(queued)) }

func (q *queue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	(*q)[last] = queued{} // lets go of its text
	*q = (*q)[:last]
	return x
}
