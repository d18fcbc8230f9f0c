package daemon

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff yields the pauses between attempts at something that fails: they double from Min to Max,
// and each is shortened by up to half at random, so that many clients of one server do not come
// back at the same instant. Min must be above 0 and not above Max. It belongs to one goroutine.
type Backoff struct {
	Min, Max time.Duration
	pause    time.Duration // the last one, before it was shortened; 0: no failure yet
}

// Next returns the pause after one more failure, between Min/2 and Max.
func (b *Backoff) Next() time.Duration {
	switch {
	case b.Min <= 0 || b.Min > b.Max:
		panic("BUG: a backoff needs 0 < Min <= Max")
	case b.pause == 0:
		b.pause = b.Min
	case b.pause > b.Max/2: // compared like this, doubling cannot overflow
		b.pause = b.Max
	default:
		b.pause *= 2
	}
	return b.pause - rand.N(b.pause/2+1)
}

// Reset forgets the failures: the next pause is a short one again.
func (b *Backoff) Reset() { b.pause = 0 }

// Wait sleeps for Next. It returns ctx's error if ctx ends first.
func (b *Backoff) Wait(ctx context.Context) error {
	if !sleep(ctx, b.Next()) {
		return ctx.Err()
	}
	return nil
}

// sleep waits for d and reports whether ctx lasted as long.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
