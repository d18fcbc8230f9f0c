package daemon

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// Property: the n-th pause lies between half of min(Min * 2^(n-1), Max) and that.
func TestBackoff_doublesWithinBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Int64Range(1, int64(time.Hour)).Draw(t, "min")
		high := rapid.Int64Range(low, 1<<62).Draw(t, "max")
		b := Backoff{Min: time.Duration(low), Max: time.Duration(high)}
		limit := low
		for n := range 70 {
			got := int64(b.Next())
			if got < limit-limit/2 || got > limit {
				t.Fatalf("pause %d is %d, want %d to %d", n+1, got, limit-limit/2, limit)
			}
			if limit > high-limit {
				limit = high
			} else {
				limit *= 2
			}
		}
	})
}

func TestBackoff_resetStartsOver(t *testing.T) {
	b := Backoff{Min: time.Second, Max: time.Minute}
	for range 10 {
		b.Next()
	}
	b.Reset()
	if got := b.Next(); got > time.Second {
		t.Errorf("pause after a reset is %s, want at most 1s", got)
	}
}

func TestBackoff_differsBetweenClients(t *testing.T) {
	pauses := map[time.Duration]bool{}
	for range 20 {
		b := Backoff{Min: time.Hour, Max: time.Hour}
		pauses[b.Next()] = true
	}
	if len(pauses) < 2 {
		t.Errorf("twenty clients all wait for %v", pauses)
	}
}

func TestBackoff_waitEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Backoff{Min: time.Minute, Max: time.Minute}
		began := time.Now()
		if err := b.Wait(t.Context()); err != nil || time.Since(began) < 30*time.Second {
			t.Errorf("waited for %s with %v, want 30s at least", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
	})
}

func TestBackoff_refusesNonsense(t *testing.T) {
	for _, b := range []Backoff{{}, {Min: 2, Max: 1}, {Min: -1, Max: 1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v was accepted", b)
				}
			}()
			b.Next()
		}()
	}
}
