package notify_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/notify"
)

// Property: each attempt is after the one before it, within the bounds of its pause, and the last
// one is exactly at the horizon.
func TestSchedule_endsAtItsHorizon(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := notify.DefaultSchedule()
		s.Seed = rapid.Uint64().Draw(t, "seed")
		key := rapid.String().Draw(t, "key")
		now, limit := began, s.Min
		for attempts := 1; ; attempts++ {
			next, again := s.Next(key, attempts, began, now, 0)
			if same, _ := s.Next(key, attempts, began, now, 0); !same.Equal(next) {
				t.Fatalf("attempt %d: %s and %s", attempts, next, same)
			}
			if !again {
				if took := now.Sub(began); took != s.Horizon {
					t.Fatalf("given up after %s", took)
				}
				if attempts < 15 || attempts > 30 {
					t.Fatalf("%d attempts", attempts)
				}
				return
			}
			pause := next.Sub(now)
			if pause > limit || pause < limit-limit/2 && !next.Equal(began.Add(s.Horizon)) {
				t.Fatalf("pause %d is %s, want %s to %s", attempts, pause, limit/2, limit)
			}
			now, limit = next, min(2*limit, s.Max)
		}
	})
}

func TestSchedule_receiversPauseIsKeptUpToTheHorizon(t *testing.T) {
	s := notify.DefaultSchedule()
	f := func(now, after, want time.Duration) {
		t.Helper()
		next, again := s.Next("k", 1, began, began.Add(now), after)
		if !again || next.Sub(began) != want {
			t.Errorf("at %s, %s asked: %s, %t, want %s", now, after, next.Sub(began), again, want)
		}
	}
	f(0, 2*time.Hour, 2*time.Hour)
	f(0, 100*time.Hour, 24*time.Hour)
	f(23*time.Hour+59*time.Minute+59*time.Second, 0, 24*time.Hour)
	if _, again := s.Next("k", 1, began, began.Add(24*time.Hour), time.Hour); again {
		t.Error("tried after the horizon")
	}
}

// What failed together does not come back together.
func TestSchedule_jitterSpreadsDeliveries(t *testing.T) {
	seen := make(map[time.Time]bool)
	for i := range 100 {
		next, _ := notify.DefaultSchedule().Next(string(rune('a'+i)), 12, began, began, 0)
		seen[next] = true
	}
	if len(seen) < 95 {
		t.Errorf("%d different pauses of 100", len(seen))
	}
}

func TestSchedule_longPausesDoNotOverflow(t *testing.T) {
	s := notify.Schedule{Min: 1, Max: 1<<62 + 1, Horizon: 1<<63 - 1}
	for attempts := range 200 {
		next, again := s.Next("k", attempts+1, began, began, 0)
		if !again || !next.After(began) && attempts > 0 {
			t.Fatalf("attempt %d: %s, %t", attempts+1, next, again)
		}
	}
}
