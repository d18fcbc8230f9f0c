package notify

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// Schedule says when a delivery that failed is tried again, and when no more. It is pure: the same
// delivery has the same pauses in every process, so a restart changes none.
type Schedule struct {
	// Min is the pause after the first failure, and Max the longest one that failures make. They
	// double in between. Each is shortened by up to half, at random by Seed and delivery, so that
	// what failed together does not come back together.
	Min, Max time.Duration
	// Horizon is how long after its first attempt a delivery is tried. The last attempt is there.
	Horizon time.Duration
	Seed    uint64
}

// DefaultSchedule tries for a day: some 20 times, after 5 s first and every few hours in the end.
func DefaultSchedule() Schedule {
	return Schedule{Min: 5 * time.Second, Max: 4 * time.Hour, Horizon: 24 * time.Hour}
}

// valid reports whether the schedule makes sense.
func (s Schedule) valid() bool { return s.Min > 0 && s.Min <= s.Max && s.Horizon > 0 }

// Next returns when to try again, for a delivery that was first tried at first and now failed for
// the attempts-th time (from 1). After is the least pause that the receiver asked for. False means
// never: the horizon has come.
func (s Schedule) Next(
	key string, attempts int, first, now time.Time, after time.Duration,
) (time.Time, bool) {
	if !s.valid() || attempts < 1 {
		panic("BUG: a schedule needs 0 < Min <= Max, a horizon, and an attempt that failed")
	}
	last := first.Add(s.Horizon)
	if !now.Before(last) {
		return time.Time{}, false
	}
	next := now.Add(max(s.pause(key, attempts), after))
	if next.After(last) {
		next = last
	}
	return next, true
}

// pause returns the pause after the attempts-th failure.
func (s Schedule) pause(key string, attempts int) time.Duration {
	pause := s.Min
	for i := 1; i < attempts && pause < s.Max; i++ {
		if pause > s.Max/2 { // compared like this, doubling cannot overflow
			pause = s.Max
			break
		}
		pause *= 2
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // never fails
	random := rand.New(rand.NewPCG(s.Seed^h.Sum64(), uint64(attempts)))
	return pause - time.Duration(random.Int64N(int64(pause/2)+1))
}
