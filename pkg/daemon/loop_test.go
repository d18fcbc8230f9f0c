package daemon

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func TestLoop_pausesAndRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := time.Now()
		var calls []time.Duration
		loop := Loop{Log: quiet(), Failures: Failures(prometheus.NewRegistry(), "test")}
		err := loop.Run(ctx, func(_ context.Context, now time.Time) (time.Duration, error) {
			calls = append(calls, now.Sub(began))
			switch len(calls) {
			case 2, 3: // fails twice: both pauses are those of failures
				return time.Hour, errors.New("down")
			case 5:
				cancel()
			}
			return time.Second, nil
		})
		if err != nil || len(calls) != 5 {
			t.Fatalf("ended with %v after %d calls, want nil after 5", err, len(calls))
		}
		var counted dto.Metric
		if err := loop.Failures.Write(&counted); err != nil || counted.GetCounter().GetValue() != 2 {
			t.Errorf("counted %v failures, %v; want 2", counted.GetCounter().GetValue(), err)
		}
		within := func(i int, low, high time.Duration) {
			t.Helper()
			if d := calls[i] - calls[i-1]; d < low || d > high {
				t.Errorf("pause before call %d is %s, want %s to %s", i+1, d, low, high)
			}
		}
		within(1, time.Second, time.Second)
		within(2, 50*time.Millisecond, 100*time.Millisecond)
		within(3, 100*time.Millisecond, 200*time.Millisecond)
		within(4, time.Second, time.Second)
	})
}

func TestLoop_endsWithFatalErrorOrContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		fatal := func(err error) bool { return errors.Is(err, gone) }
		step := func(context.Context, time.Time) (time.Duration, error) { return 0, gone }
		loop := Loop{Log: quiet(), Fatal: fatal}
		if err := loop.Run(t.Context(), step); !errors.Is(err, gone) {
			t.Errorf("ended with %v, want the fatal error", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		long := func(context.Context, time.Time) (time.Duration, error) { return time.Hour, nil }
		if err := loop.Run(ctx, long); err != nil || time.Since(began) != time.Minute {
			t.Errorf("ended with %v after %s, want nil after 1m", err, time.Since(began))
		}
	})
}
