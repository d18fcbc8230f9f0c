// Package rater runs the rating loop as a service: it steps it, counts what it does and logs what a
// person should see.
package rater

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/suanpan/suanpan/pkg/daemon"
	"github.com/suanpan/suanpan/pkg/pipeline"
)

// Name is the rater's consumer group.
const Name = "suanpan-rater"

type metrics struct {
	events      *prometheus.CounterVec
	deadLetters *prometheus.CounterVec
	rows        prometheus.Counter
	commits     prometheus.Counter
	ignored     prometheus.Counter
	flush       prometheus.Histogram
	lag         *prometheus.GaugeVec
	state       prometheus.Gauge
	pending     prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "suanpan_rater_events_total", Help: "Usage records by what became of them.",
		}, []string{"outcome"}),
		deadLetters: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "suanpan_rater_dead_letters_total", Help: "Records that could not be rated.",
		}, []string{"reason"}),
		rows: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "suanpan_rater_rows_total", Help: "Rows written to the store.",
		}),
		commits: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "suanpan_rater_commits_total", Help: "Commits of offsets after a write.",
		}),
		ignored: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "suanpan_rater_catalog_ignored_total",
			Help: "Catalog and market records that no reader takes in.",
		}),
		flush: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "suanpan_rater_flush_seconds", Help: "Time from the start of a write to its end.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2, 12),
		}),
		lag: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "suanpan_rater_lag_seconds", Help: "Age of the last rated record.",
		}, []string{"partition"}),
		state: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "suanpan_rater_state_bytes", Help: "Rough size of the sessions in memory.",
		}),
		pending: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "suanpan_rater_pending_rows", Help: "Changed rows that are not committed yet.",
		}),
	}
	reg.MustRegister(m.events, m.deadLetters, m.rows, m.commits, m.ignored, m.flush, m.lag, m.state,
		m.pending)
	return m
}

func (m *metrics) add(r *pipeline.RateReport) {
	m.events.WithLabelValues("accepted").Add(float64(r.Accepted))
	m.events.WithLabelValues("forwarded").Add(float64(r.Forwarded))
	for reason, n := range r.Rejected {
		m.events.WithLabelValues("rejected").Add(float64(n))
		m.deadLetters.WithLabelValues(string(reason)).Add(float64(n))
	}
	m.rows.Add(float64(r.Rows))
	m.commits.Add(float64(r.Commits))
	m.ignored.Add(float64(r.Ignored))
	if r.FlushTime > 0 {
		m.flush.Observe(r.FlushTime.Seconds())
	}
	for partition, lag := range r.Lag {
		m.lag.WithLabelValues(strconv.Itoa(partition)).Set(lag.Seconds())
	}
	m.state.Set(float64(r.State))
	m.pending.Set(float64(r.Pending))
}

// Task returns the loop of a rater. The rater is stopped when it ends. fatal
// says which errors must stop the service.
func Task(log *slog.Logger, reg prometheus.Registerer, rater *pipeline.Rater,
	fatal func(error) bool,
) daemon.Task {
	m := newMetrics(reg)
	loop := daemon.Loop{
		Log: log, Fatal: fatal, Failures: daemon.Failures(reg, "rater"),
	}
	return daemon.Task{Name: "rater", Fatal: fatal, Run: func(ctx context.Context) error {
		defer rater.Stop()
		return loop.Run(ctx, func(ctx context.Context, now time.Time) (
			time.Duration, error,
		) {
			report, err := rater.Step(ctx, now)
			m.add(&report)
			for reason, n := range report.Rejected {
				log.Warn("dead letters", "reason", string(reason), "count", n)
			}
			if report.Blocked {
				return 20 * time.Millisecond, err
			}
			return 0, err
		})
	}}
}
