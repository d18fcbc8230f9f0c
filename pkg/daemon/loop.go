package daemon

import (
	"context"
	"log/slog"
	"time"
)

// Loop calls step until ctx ends. step is given the time, and returns how long to pause before the
// next call. An error is logged and followed by a pause that doubles from 0.1 s to 5 s, so that
// what step holds in memory is kept; only one that is fatal, as in [Task], ends the loop.
func Loop(ctx context.Context, log *slog.Logger, fatal func(error) bool,
	step func(ctx context.Context, now time.Time) (pause time.Duration, err error),
) error {
	backoff := Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
	for ctx.Err() == nil {
		pause, err := step(ctx, time.Now().UTC())
		switch {
		case ctx.Err() != nil:
		case err != nil && fatal != nil && fatal(err):
			return err
		case err != nil:
			log.Warn("step failed, will be repeated", "error", err)
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
