// Package archiver runs the archive loop as a service.
package archiver

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/suanpan/suanpan/pkg/daemon"
	"github.com/suanpan/suanpan/pkg/pipeline"
)

// Name is the archiver's consumer group.
const Name = "suanpan-archiver"

// Task returns the loop of an archiver. fatal says which errors must stop the service.
func Task(log *slog.Logger, reg prometheus.Registerer, archiver *pipeline.Archiver,
	fatal func(error) bool,
) daemon.Task {
	records := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "suanpan_archiver_records_total", Help: "Records archived and committed.",
	})
	bytes := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "suanpan_archiver_bytes_total", Help: "Bytes of the records archived.",
	})
	reg.MustRegister(records, bytes)
	loop := daemon.Loop{
		Log: log, Fatal: fatal, Failures: daemon.Failures(reg, "archiver"),
	}
	return daemon.Task{Name: "archiver", Fatal: fatal, Run: func(ctx context.Context) error {
		return loop.Run(ctx, func(ctx context.Context, now time.Time) (
			time.Duration, error,
		) {
			report, err := archiver.Step(ctx, now)
			records.Add(float64(report.Records))
			bytes.Add(float64(report.Bytes))
			return 0, err
		})
	}}
}
