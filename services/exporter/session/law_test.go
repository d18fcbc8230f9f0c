package session

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/metering"
)

// world is a node with leases, of which the truth is known.
type world struct {
	*node
	t      *rapid.T
	leases []*truth
	silent bool          // the source does not answer
	past   time.Duration // before the last boot
	boots  int
	seen   map[string]map[int64]int
	ids    map[string]map[string]bool // lease -> sessions
	last   map[string]lastWindow      // by lease
	parser *metering.Parser
}

// truth is a lease as it really was.
type truth struct {
	grant      Grant
	began, end time.Duration // since the first boot; end 0: it goes on
}

// lastWindow is the newest window that was sent of a lease.
type lastWindow struct {
	end   time.Time
	final bool
}

// and is the newer one; one that was sent again may say more.
func (l lastWindow) and(w *Window) lastWindow {
	if w.End.Before(l.end) {
		return l
	}
	return lastWindow{w.End, w.Final || l.final && w.End.Equal(l.end)}
}

func (w *world) start() {
	key := fmt.Sprint(len(w.leases))
	w.leases = append(w.leases, &truth{grant: grant(key, w.now.Wall), began: w.real()})
}

func (w *world) end(i int) {
	if l := w.leases[i]; l.end == 0 && w.real() > l.began {
		l.end, l.grant.End = w.real(), w.now.Wall
	}
}

// real is the time since the first boot.
func (w *world) real() time.Duration { return w.past + w.now.Mono }

// reboot starts the monotonic clock again.
func (w *world) reboot(t *rapid.T) {
	w.past += w.now.Mono
	w.now.Mono = 0
	w.pass(time.Duration(rapid.IntRange(1, 500).Draw(t, "seconds")) * time.Second)
	w.boots++
	w.kill(t, fmt.Sprint("boot ", w.boots+1))
}

// poll asks the source, which tells of all leases, also of those that ended.
func (w *world) poll() {
	if w.silent {
		return
	}
	var grants []Grant
	for _, l := range w.leases {
		grants = append(grants, l.grant)
	}
	w.Observe(w.now, w.now.Mono, "test", grants)
}

// store stores what is due, or only sends it, as if killed before it was noted.
func (w *world) store(final, commit bool) {
	due := w.Due(final)
	for i := range due {
		var e metering.Event
		if why := w.parser.Parse(w.Event(&due[i], nil), &e); why != nil || e.Problem() != nil {
			w.t.Fatalf("event %d: %v %v", i, why, e.Problem())
		}
		lease := due[i].Session.Key
		if due[i].Final && w.leases[number(lease)].end == 0 {
			w.t.Fatalf("lease %s: a window says that it ended, and it goes on", lease)
		}
		if w.seen[lease] == nil {
			w.seen[lease], w.ids[lease] = map[int64]int{}, map[string]bool{}
		}
		w.ids[lease][e.Session] = true
		w.last[lease] = w.last[lease].and(&due[i])
		from, until := e.Window()
		for second := from; second < until; second++ {
			w.seen[lease][second]++
		}
	}
	if commit {
		w.Commit(due)
	}
}

// number is the place of a lease among those of the world, of which its key tells.
func number(key string) int {
	n, err := strconv.Atoi(key)
	if err != nil {
		panic(err)
	}
	return n
}

// Property: however often the exporter is killed or the node booted, its clock is set, its source
// is silent or its store is full, each lease is reported in one session, the seconds of their union
// are the lease's, and the last of them, and no other, says that it ended.
func TestEngine_law(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{
			node: newNode(), t: t, parser: metering.NewParser(),
			seen: map[string]map[int64]int{}, ids: map[string]map[string]bool{},
			last: map[string]lastWindow{},
		}
		pass := func(seconds int) { // sources answer at least once between two settings
			for range min(seconds, 3) {
				w.pass(time.Second)
				w.poll()
			}
			w.pass(time.Duration(seconds) * time.Second)
			w.poll()
		}
		actions := map[string]func(*rapid.T){
			"start": func(*rapid.T) {
				if len(w.leases) < 5 {
					w.start()
				}
			},
			"end": func(t *rapid.T) {
				if len(w.leases) > 0 {
					w.end(rapid.IntRange(0, len(w.leases)-1).Draw(t, "lease"))
				}
			},
			"pass":   func(t *rapid.T) { pass(rapid.IntRange(1, 200).Draw(t, "seconds")) },
			"silent": func(t *rapid.T) { w.silent = rapid.Bool().Draw(t, "silent") },
			"store":  func(t *rapid.T) { w.store(rapid.Bool().Draw(t, "final"), true) },
			"torn":   func(*rapid.T) { w.store(false, false) },
			"kill":   func(t *rapid.T) { w.kill(t, w.state.Boot) },
			"reboot": w.reboot,
			"step": func(t *rapid.T) {
				w.silent = false // what it says across a setting back has two meanings
				pass(2)
				by := rapid.IntRange(10, 5000).Draw(t, "by")
				if rapid.Bool().Draw(t, "back") {
					by = -by
				}
				w.now.Wall = w.now.Wall.Add(time.Duration(by) * time.Second)
				pass(2)
			},
		}
		t.Repeat(actions)
		w.silent = false
		pass(1)
		for i := range w.leases {
			w.end(i)
		}
		w.poll()
		w.store(false, true)
		for _, l := range w.leases {
			key := l.grant.Key
			if want := int((l.end - l.began) / time.Second); len(w.seen[key]) != want {
				t.Fatalf("lease %s: %d seconds reported, %d held", key, len(w.seen[key]), want)
			}
			if !w.last[key].final {
				t.Fatalf("lease %s: its last window does not say that it ended", key)
			}
			if n := len(w.ids[key]); n != 1 {
				t.Fatalf("lease %s: %d sessions", key, n)
			}
		}
	})
}
