// Package settler runs the settle loop as a service: it keeps the money of all periods up to date
// with their rows.
package settler

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/suanpan/suanpan/pkg/daemon"
	"github.com/suanpan/suanpan/pkg/pipeline"
)

// Task returns the loop of a settler that settles every so often. fatal says which errors must
// stop the service.
func Task(log *slog.Logger, reg prometheus.Registerer, settler *pipeline.Settler,
	every time.Duration, fatal func(error) bool,
) daemon.Task {
	charges := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "suanpan_settler_charges_total", Help: "Charges settled.",
	})
	periods := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "suanpan_settler_periods_total", Help: "Periods settled.",
	})
	reg.MustRegister(charges, periods)
	loop := daemon.Loop{
		Log: log, Fatal: fatal, Failures: daemon.Failures(reg, "settler"),
	}
	return daemon.Task{Name: "settler", Fatal: fatal, Run: func(ctx context.Context) error {
		return loop.Run(ctx, func(ctx context.Context, now time.Time) (
			time.Duration, error,
		) {
			report, err := settler.Step(ctx, now)
			charges.Add(float64(report.Charges))
			periods.Add(float64(report.Periods))
			return every, err
		})
	}}
}
