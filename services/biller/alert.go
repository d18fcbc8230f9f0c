package biller

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/robfig/cron/v3"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/daemon"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/notify"
	"github.com/suanpan/suanpan/pkg/pipeline"
)

// deliverEvery is how often deliveries that are due are looked for.
const deliverEvery = time.Second

// Take returns what hands alerts to the queue: see pipeline.AlertLogConfig. language says in which
// one a tenant is written to.
func Take(queue *notify.Queue, language func(tenant string) string) func(context.Context,
	*alert.Alert,
) error {
	return func(ctx context.Context, a *alert.Alert) error {
		if a.Status != alert.Firing {
			return nil
		}
		m, err := MessageOf(a, language(a.Tenant))
		if err != nil {
			return err
		}
		to := make([]catalog.Channel, len(a.To))
		for i, c := range a.To {
			to[i] = catalog.Channel{Kind: c.Kind, Target: c.Target, Secret: c.Secret}
		}
		return queue.Add(ctx, m, to, m.Time, m.Time)
	}
}

// MessageOf puts a budget's alert into words.
func MessageOf(a *alert.Alert, language string) (notify.Message, error) {
	at, err := metering.ParseInstant(a.At)
	if err != nil {
		return notify.Message{}, fmt.Errorf("alert %s: %w", a.ID, err)
	}
	data, err := json.Marshal(a)
	if err != nil {
		return notify.Message{}, fmt.Errorf("alert %s: %w", a.ID, err)
	}
	share := percent(a.Threshold)
	m := notify.Message{
		ID: notify.MessageID(a.ID), Alert: a.ID, Type: "budget.threshold_reached", Time: at.Time(),
		Tenant: a.Tenant, Language: language, Severity: notify.Warning, Status: notify.Firing,
		Title: fmt.Sprintf("Budget %s has reached %s", a.Name, share),
		Summary: fmt.Sprintf("%s of %s %s are spent in %s. At this pace it will be %s.",
			short(a.Spend), short(a.Amount), a.Currency, a.Period, short(a.Forecast)),
		Labels: map[string]string{
			"budget": a.Name, "period": a.Period, "threshold": a.Threshold,
		},
		Data: data,
	}
	names := [...]string{"spend", "budget", "expected at the end of the period", "threshold"}
	if language == "zh" {
		m.Title = fmt.Sprintf("预算 %s 已达到 %s", a.Name, share)
		m.Summary = fmt.Sprintf("%s 已支出 %s %s，预算为 %s。按当前速度，期末预计为 %s。", a.Period,
			short(a.Spend), a.Currency, short(a.Amount), short(a.Forecast))
		names = [...]string{"已支出", "预算", "期末预计", "阈值"}
	}
	for i, value := range []string{a.Spend, a.Amount, a.Forecast} {
		m.Evidence = append(m.Evidence,
			notify.Figure{Name: names[i], Value: short(value) + " " + a.Currency})
	}
	m.Evidence = append(m.Evidence, notify.Figure{Name: names[3], Value: share})
	m.Query = fmt.Sprintf("SELECT sku, purchase, band, sum(amount) FROM line_items "+
		"WHERE tenant = '%s' AND usage_period = '%s' GROUP BY ALL", a.Tenant, a.Period[:7])
	if threshold, err := money.ParseSigned(a.Threshold); err == nil &&
		threshold.Cmp(money.MustParse("1")) >= 0 {
		m.Severity = notify.Critical
	}
	return m.Fit(), nil
}

// percent prints a fraction in percent.
func percent(fraction string) string {
	a, err := money.ParseSigned(fraction)
	if err != nil {
		return fraction
	}
	return a.MulInt(big.NewInt(100)).String() + " %"
}

// short is an amount as people read it.
func short(amount string) string {
	a, err := money.ParseSigned(amount)
	if err != nil {
		return amount
	}
	return a.Round(2, money.HalfUp).Fixed(2)
}

// AlertTask returns the job that fires budgets.
func AlertTask(log *slog.Logger, reg prometheus.Registerer, alerter *pipeline.Alerter,
	schedule cron.Schedule, fatal func(error) bool,
) daemon.Task {
	fired := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "suanpan_alerter_alerts_total", Help: "Alerts that were decided on.",
	})
	budgets := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "suanpan_alerter_budgets_total", Help: "Budgets that were evaluated.",
	})
	reg.MustRegister(fired, budgets)
	loop := daemon.Loop{
		Log: log, Fatal: fatal, Failures: daemon.Failures(reg, "alerter"),
	}
	return daemon.Task{Name: "alerter", Fatal: fatal, Run: func(ctx context.Context) error {
		return onSchedule(ctx, loop, schedule, func(ctx context.Context, now time.Time) (bool, error) {
			report, err := alerter.Step(ctx, now)
			fired.Add(float64(report.Decided))
			budgets.Add(float64(report.Budgets))
			if report.Decided > 0 {
				log.Info("alerts were decided on", "alerts", report.Decided)
			}
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
