package trace

import (
	"container/heap"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"
)

// MaxHeldBack is how many windows noise holds back at most.
const MaxHeldBack = 1 << 20

// Noise disturbs the order of windows as networks and restarts do. None of it may change a bill.
// The zero value changes nothing; equal values do the same to the same windows.
type Noise struct {
	Seed      uint64
	Duplicate float64       // share of windows that come twice, 0 to 1
	Shuffle   int           // windows that wait to be drawn at random, 0 to MaxHeldBack
	Late      float64       // share of windows that come late, 0 to 1
	LateBy    time.Duration // the longest lateness, by the ends of the windows around
}

// Check says what is wrong with the values.
func (n *Noise) Check() error {
	switch {
	case !(n.Duplicate >= 0 && n.Duplicate <= 1):
		return fmt.Errorf("share of duplicates %v is not from 0 to 1", n.Duplicate)
	case !(n.Late >= 0 && n.Late <= 1):
		return fmt.Errorf("share of late windows %v is not from 0 to 1", n.Late)
	case n.Shuffle < 0 || n.Shuffle > MaxHeldBack:
		return fmt.Errorf("shuffle of %d windows is not from 0 to %d", n.Shuffle, MaxHeldBack)
	case n.LateBy < 0:
		return fmt.Errorf("lateness %s is below 0", n.LateBy)
	case n.Late > 0 && n.LateBy < time.Second:
		return fmt.Errorf("lateness %s is below 1s, but there are late windows", n.LateBy)
	}
	return nil
}

// Apply disturbs windows. Each comes out, none is invented, and repeated ones are marked.
func (n *Noise) Apply(windows iter.Seq[Window]) iter.Seq[Window] {
	if n.Late > 0 {
		windows = n.delay(windows)
	}
	if n.Duplicate > 0 || n.Shuffle > 0 {
		windows = n.mix(windows)
	}
	return windows
}

// delay holds some windows back until others that ended later have passed.
func (n *Noise) delay(windows iter.Seq[Window]) iter.Seq[Window] {
	return func(yield func(Window) bool) {
		random := rand.New(rand.NewPCG(n.Seed, 1))
		var late lateQueue
		order := 0
		release := func() bool { return yield(heap.Pop(&late).(lateWindow).Window) }
		for w := range windows {
			for len(late) > 0 && (late[0].until <= w.End || len(late) >= MaxHeldBack) {
				if !release() {
					return
				}
			}
			if random.Float64() >= n.Late {
				if !yield(w) {
					return
				}
				continue
			}
			by := 1 + random.Int64N(int64(n.LateBy/time.Second))
			heap.Push(&late, lateWindow{w, w.End + by, order})
			order++
		}
		for len(late) > 0 {
			if !release() {
				return
			}
		}
	}
}

// mix repeats some windows, and shuffles all by drawing from those that wait.
func (n *Noise) mix(windows iter.Seq[Window]) iter.Seq[Window] {
	return func(yield func(Window) bool) {
		random := rand.New(rand.NewPCG(n.Seed, 2))
		waiting := make([]Window, 0, n.Shuffle)
		pass := func(w Window) bool {
			if n.Shuffle == 0 {
				return yield(w)
			}
			if len(waiting) < n.Shuffle {
				waiting = append(waiting, w)
				return true
			}
			at := random.IntN(n.Shuffle)
			w, waiting[at] = waiting[at], w
			return yield(w)
		}
		for w := range windows {
			if !pass(w) {
				return
			}
			if random.Float64() < n.Duplicate {
				w.Repeat = true
				if !pass(w) {
					return
				}
			}
		}
		random.Shuffle(len(waiting), func(i, j int) {
			waiting[i], waiting[j] = waiting[j], waiting[i]
		})
		for _, w := range waiting {
			if !yield(w) {
				return
			}
		}
	}
}

// lateWindow waits for a window that ends at until.
type lateWindow struct {
	Window
	until int64 // second
	order int
}

// lateQueue is a heap of late windows, by when they are let go.
type lateQueue []lateWindow

func (q lateQueue) Len() int { return len(q) }

func (q lateQueue) Less(i, j int) bool {
	return q[i].until < q[j].until || q[i].until == q[j].until && q[i].order < q[j].order
}

func (q lateQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *lateQueue) Push(x any)   { *q = append(*q, x.(lateWindow)) }

func (q *lateQueue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}
