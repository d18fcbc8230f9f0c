package sim

import (
	"container/heap"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"time"
)

var (
	errFault     = errors.New("simulated fault")
	errTimeout   = errors.New("simulated timeout")
	errCancelled = errors.New("simulated cancellation")
	errGone      = errors.New("the machine is gone")
)

// world is everything that there is in one simulation. Only the seed decides what happens in it.
type world struct {
	rng    *rand.Rand
	now    time.Time
	start  time.Time
	faults bool // whether anything but the fleet misbehaves
	bug    string

	trace    hash.Hash64
	verbose  bool
	problems []string

	timers  timers
	counter int

	log      *log
	store    *store
	raters   *group
	archives *group
	nodes    []*node
	settler  *node
	fleet    *fleet
	months   *months        // nil where no period is closed
	coverage map[string]int // of what a run met, for the test that the simulator meets all
}

func newWorld(seed uint64, bug string, verbose bool) *world {
	w := &world{
		rng: rand.New(rand.NewPCG(seed, 0x5eed)), bug: bug, verbose: verbose,
		trace: fnv.New64a(), coverage: make(map[string]int),
	}
	w.log = &log{w: w}
	w.store = newStore(w)
	w.raters = newGroup(w, "raters")
	w.archives = newGroup(w, "archivers")
	return w
}

// event puts something that happened into the trace.
func (w *world) event(format string, args ...any) {
	line := fmt.Sprintf("%s "+format+"\n",
		append([]any{w.now.Format("15:04:05.000")}, args...)...)
	_, _ = w.trace.Write([]byte(line))
	if w.verbose {
		_, _ = os.Stderr.WriteString(line)
	}
}

// fail notes a breach of what must hold.
func (w *world) fail(format string, args ...any) {
	problem := fmt.Sprintf(format, args...)
	w.event("PROBLEM %s", problem)
	if len(w.problems) < 10 {
		w.problems = append(w.problems, problem)
	}
}

// met counts a thing that a run came across.
func (w *world) met(what string) { w.coverage[what]++ }

// chance is true that many times of a thousand.
func (w *world) chance(perMille int) bool { return w.rng.IntN(1000) < perMille }

// fault is a chance that there is only while things go wrong.
func (w *world) fault(perMille int) bool { return w.faults && w.chance(perMille) }

// between is a duration from a up to b.
func (w *world) between(a, b time.Duration) time.Duration {
	if a == b {
		return a
	}
	return a + time.Duration(w.rng.Int64N(int64(b-a)/1e6))*time.Millisecond
}

// timer is something that will happen.
type timer struct {
	at  time.Time
	seq int
	do  func()
}

// timers is a heap of what will happen, the earliest first.
type timers []timer

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, j int) bool {
	if t[i].at.Equal(t[j].at) {
		return t[i].seq < t[j].seq
	}
	return t[i].at.Before(t[j].at)
}
func (t timers) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)   { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	old := *t
	last := old[len(old)-1]
	*t = old[:len(old)-1]
	return last
}

// at has something done at an instant, at once if that has passed.
func (w *world) at(at time.Time, do func()) {
	if !at.After(w.now) {
		do()
		return
	}
	w.counter++
	heap.Push(&w.timers, timer{at, w.counter, do})
}

// advance moves the clock, doing on its way what is due.
func (w *world) advance(d time.Duration) {
	until := w.now.Add(d)
	for len(w.timers) > 0 && !w.timers[0].at.After(until) {
		next := heap.Pop(&w.timers).(timer)
		w.now = next.at
		next.do()
	}
	w.now = until
}

// fate is what becomes of a request: which part of its effect comes when, and which answer when.
type fate struct {
	kind   string
	lands  time.Duration // below 0: never
	part   bool          // only some of it
	answer time.Duration
	err    error
}

func (w *world) fate() fate {
	if !w.faults {
		return fate{kind: "ok"}
	}
	soon := w.between(0, 3*time.Second)
	late := w.between(time.Second, []time.Duration{20 * time.Second, 9 * time.Minute}[w.rng.IntN(2)])
	switch n := w.rng.IntN(100); {
	case n < 45:
		return fate{kind: "ok"}
	case n < 62:
		return fate{kind: "ok", answer: soon}
	case n < 70:
		slow := w.between(time.Second, 25*time.Second)
		return fate{kind: "slow", lands: slow, answer: slow}
	case n < 78:
		return fate{kind: "fails", lands: -1, answer: soon, err: errFault}
	case n < 85:
		return fate{kind: "in part", part: true, answer: soon, err: errFault}
	case n < 90:
		return fate{kind: "done but failed", answer: soon, err: errFault}
	case n < 95:
		return fate{kind: "late", lands: late, answer: soon, err: errTimeout}
	default:
		return fate{kind: "late in part", lands: late, part: true, answer: soon, err: errTimeout}
	}
}
