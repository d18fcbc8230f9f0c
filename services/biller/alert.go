package biller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/robfig/cron/v3"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/daemon"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/notify"
	"github.com/suanpan/suanpan/pkg/pipeline"
)

// deliverEvery is how often deliveries that are due are looked for.
const deliverEvery = time.Second

// Take returns what hands alerts to the queue: see pipeline.AlertLogConfig. language says in which
// one a tenant is written to.
func Take(queue *notify.Queue, language func(tenant string) string) func(context.Context,
	[]pipeline.LoggedAlert,
) error {
	return func(ctx context.Context, alerts []pipeline.LoggedAlert) error {
		var postings []notify.Posting
		for i := range alerts {
			a := &alerts[i].Alert
			if a.Status == alert.Acknowledged {
				continue // who did it knows it
			}
			p, err := posting(a, language(a.Tenant))
			if err != nil {
				return err
			}
			postings = append(postings, p)
		}
		return queue.Add(ctx, postings...)
	}
}

func posting(a *alert.Alert, language string) (notify.Posting, error) {
	m, err := MessageOf(a, language)
	if err != nil {
		return notify.Posting{}, err
	}
	p := notify.Posting{Message: m, Now: m.Time, NotBefore: m.Time}
	for _, c := range a.To {
		p.To = append(p.To, catalog.Channel{Kind: c.Kind, Target: c.Target, Secret: c.Secret})
	}
	if a.Wait != "" {
		at, err := metering.ParseInstant(a.Wait)
		if err != nil {
			return notify.Posting{}, fmt.Errorf("alert %s: %w", a.ID, err)
		}
		p.NotBefore = at.Time()
	}
	return p, nil
}

// Alerting is what decides alerts: of budgets, and of policies. Both share a log.
type Alerting struct {
	Budgets  *pipeline.Alerter
	Policies *pipeline.Watcher
}

// step lets both decide: trouble of one does not keep the other from it.
func (a *Alerting) step(ctx context.Context, now time.Time) (pipeline.AlertReport, error) {
	report, err := a.Budgets.Step(ctx, now)
	other, err2 := a.Policies.Step(ctx, now)
	report.Add(other)
	return report, errors.Join(err, err2)
}

// AlertTask returns the job that decides alerts. after runs after each step, in the same goroutine.
func AlertTask(log *slog.Logger, reg prometheus.Registerer, alerting *Alerting,
	schedule cron.Schedule, fatal func(error) bool, after func(now time.Time),
) daemon.Task {
	decided := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "suanpan_alerter_alerts_total",
		Help: "Changes of alerts that were decided on: that they fire, or are over.",
	})
	budgets := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "suanpan_alerter_budgets_total", Help: "Budgets that were evaluated.",
	})
	policies := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "suanpan_alerter_policies_total", Help: "Looks of policies.",
	})
	firing := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "suanpan_alerter_firing", Help: "Alerts that are not over.",
	})
	reg.MustRegister(decided, budgets, policies, firing)
	loop := daemon.Loop{
		Log: log, Fatal: fatal, Failures: daemon.Failures(reg, "alerter"),
	}
	return daemon.Task{Name: "alerter", Fatal: fatal, Run: func(ctx context.Context) error {
		return onSchedule(ctx, loop, schedule, func(ctx context.Context, now time.Time) (bool, error) {
			report, err := alerting.step(ctx, now)
			decided.Add(float64(report.Decided))
			budgets.Add(float64(report.Budgets))
			policies.Add(float64(report.Policies))
			firing.Set(float64(report.Open))
			if report.Decided > 0 {
				log.Info("alerts were decided on", "alerts", report.Decided)
			}
			after(now)
			return false, err
		})
	}}
}

// DeliverTask returns the loop that sends what is due.
func DeliverTask(log *slog.Logger, reg prometheus.Registerer, deliverer *notify.Deliverer,
	fatal func(error) bool,
) daemon.Task {
	attempts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "suanpan_notify_attempts_total", Help: "Attempts to deliver messages, by their outcome.",
	}, []string{"outcome"})
	dead := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "suanpan_notify_dead_total", Help: "Deliveries that were given up.",
	})
	reg.MustRegister(attempts, dead)
	loop := daemon.Loop{
		Log: log, Fatal: fatal, Failures: daemon.Failures(reg, "deliverer"),
	}
	return daemon.Task{Name: "deliverer", Fatal: fatal, Run: func(ctx context.Context) error {
		return loop.Run(ctx, func(ctx context.Context, now time.Time) (time.Duration, error) {
			report, err := deliverer.Step(ctx, now)
			for i := range report.Attempts {
				attempts.WithLabelValues(string(report.Attempts[i].Outcome)).Inc()
			}
			dead.Add(float64(len(report.Dead)))
			return deliverEvery, err
		})
	}}
}
