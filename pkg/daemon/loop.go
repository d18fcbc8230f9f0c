package daemon

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Loop repeats a step and outlives its errors, so that what the step holds in memory is kept.
type Loop struct {
	Log      *slog.Logger
	Fatal    func(error) bool   // says which errors end the loop; nil: none does
	Failures prometheus.Counter // of the step; may be nil
}

// Failures returns the counter suanpan_loop_failures_total of a loop, registered with reg.
func Failures(reg prometheus.Registerer, loop string) prometheus.Counter {
	failures := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "suanpan_loop_failures_total", Help: "Steps of a loop that failed and are repeated.",
		ConstLabels: prometheus.Labels{"loop": loop},
	})
	reg.MustRegister(failures)
	return failures
}

// Run calls step until ctx ends. step is given the time, and returns how long to pause before the
// next call. An error is logged, counted and followed by a pause that doubles from 0.1 s to 5 s.
func (l Loop) Run(ctx context.Context,
	step func(ctx context.Context, now time.Time) (pause time.Duration, err error),
) error {
	backoff := Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
	for ctx.Err() == nil {
		pause, err := step(ctx, time.Now().UTC())
		switch {
		case ctx.Err() != nil:
		case err != nil && l.Fatal != nil && l.Fatal(err):
			return err
		case err != nil:
			l.Log.Warn("step failed, will be repeated", "error", err)
			if l.Failures != nil {
				l.Failures.Inc()
			}
			pause = backoff.Next()
		default:
			backoff.Reset()
		}
		if pause > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}
	return nil
}
