// Package biller runs the bill loop as a service: a cron job closes the periods that are over,
// decides on their invoices and keeps the documents as the billing log has them.
package biller

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/robfig/cron/v3"

	"github.com/suanpan/suanpan/pkg/daemon"
	"github.com/suanpan/suanpan/pkg/pipeline"
)

// DefaultSchedule is when the job runs: every minute. A run that finds nothing to do is cheap, and
// one that is missed is made up for by the next.
const DefaultSchedule = "* * * * *"

// ParseSchedule reads a cron expression of five fields, or a descriptor such as @every 10s. A time
// zone may be given as CRON_TZ=Asia/Shanghai before it.
func ParseSchedule(text string) (cron.Schedule, error) {
	schedule, err := cron.ParseStandard(text)
	if err != nil {
		return nil, fmt.Errorf("parse schedule %q: %w", text, err)
	}
	return schedule, nil
}

type metrics struct {
	documents *prometheus.CounterVec
	closes    prometheus.Counter
	decided   prometheus.Counter
	waiting   prometheus.Gauge
	left      prometheus.Gauge
	ignored   prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		documents: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "suanpan_biller_documents_total",
			Help: "Documents that were issued, or are held for a person, as this biller saw them.",
		}, []string{"status"}),
		closes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "suanpan_biller_closes_total", Help: "Closes of periods that were sent.",
		}),
		decided: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "suanpan_biller_periods_total", Help: "Closed periods whose documents were decided on.",
		}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "suanpan_biller_waiting_periods",
			Help: "Closed periods that dead letters hold back.",
		}),
		left: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "suanpan_biller_open_periods",
			Help: "Closed periods whose documents were not decided on at the last run.",
		}),
		ignored: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "suanpan_biller_ignored_total",
			Help: "Records of the billing log that no reader takes in, such as repeated decisions.",
		}),
	}
	reg.MustRegister(m.documents, m.closes, m.decided, m.waiting, m.left, m.ignored)
	return m
}

func (m *metrics) add(r *pipeline.BillReport) {
	m.documents.WithLabelValues("issued").Add(float64(r.Issued))
	m.documents.WithLabelValues("held").Add(float64(r.Held))
	m.closes.Add(float64(r.Closed))
	m.decided.Add(float64(r.Decided))
	m.waiting.Set(float64(r.Waiting))
	m.left.Set(float64(r.Left - r.Decided))
	m.ignored.Add(float64(r.Ignored))
}

// Task returns the job of a biller. fatal says which errors must stop the service.
func Task(log *slog.Logger, reg prometheus.Registerer, biller *pipeline.Biller,
	schedule cron.Schedule, fatal func(error) bool,
) daemon.Task {
	m := newMetrics(reg)
	loop := daemon.Loop{
		Log: log, Fatal: fatal, Failures: daemon.Failures(reg, "biller"),
	}
	return daemon.Task{Name: "biller", Fatal: fatal, Run: func(ctx context.Context) error {
		return onSchedule(ctx, loop, schedule, func(ctx context.Context, now time.Time) (bool, error) {
			report, err := biller.Step(ctx, now)
			m.add(&report)
			if report.Closed+report.Decided+report.Issued+report.Held > 0 {
				log.Info("billed", "closes", report.Closed, "periods", report.Decided,
					"issued", report.Issued, "held", report.Held, "waiting", report.Waiting,
					"left", report.Left-report.Decided)
			}
			return report.More, err
		})
	}}
}

// onSchedule runs a step at once, for what was missed, and then whenever the schedule says so;
// again at once after an error, or where the step says that there is more to do.
func onSchedule(ctx context.Context, loop daemon.Loop, schedule cron.Schedule,
	step func(ctx context.Context, now time.Time) (more bool, err error),
) error {
	wake := make(chan struct{}, 1)
	again := func() {
		select {
		case wake <- struct{}{}:
		default: // it runs still
		}
	}
	again()
	jobs := cron.New(cron.WithLocation(time.UTC))
	jobs.Schedule(schedule, cron.FuncJob(again))
	jobs.Start()
	defer func() { <-jobs.Stop().Done() }()
	return loop.Run(ctx, func(ctx context.Context, _ time.Time) (time.Duration, error) {
		select {
		case <-ctx.Done():
			return 0, nil
		case <-wake:
		}
		more, err := step(ctx, time.Now().UTC())
		if more || err != nil {
			again()
		}
		return 0, err
	})
}
