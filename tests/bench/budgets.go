package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/suanpan/suanpan/pkg/clickhouse"
	"github.com/suanpan/suanpan/pkg/kafka"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
	"github.com/suanpan/suanpan/schemas"
)

// What a tick of the alerter may take with 10,000 budgets over 10,000,000 hour rows.
const (
	budgetsLimit = 5 * time.Second
	budgetsRows  = 10_000_000
	budgetsTicks = 4
	budgetsWait  = 150 * time.Second // a tick reads again what is two minutes old
)

// The tenants that share the rows and the budgets: many with one each, and few with many.
var budgetCases = []struct {
	name             string
	tenants, budgets int // budgets of each
}{
	{"10,000 tenants, a budget each", 10_000, 1},
	{"100 tenants, 100 budgets each, of projects and teams", 100, 100},
}

// budgets measures ticks of the alerter on a real engine: at its start, when it reads the running
// month, and then while every running session is written to between ticks.
func (b *bench) budgets(ctx context.Context, _ *offline) error {
	for i, c := range budgetCases {
		if err := b.budgetsOf(ctx, fmt.Sprintf("budgets%d", i), c.name, c.tenants,
			c.budgets); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) budgetsOf(ctx context.Context, part, name string, tenants, each int) error {
	broker, brokers, err := b.broker(ctx, part)
	if err != nil {
		return err
	}
	defer broker.stop()
	engine, addr, err := b.engine(ctx, part)
	if err != nil {
		return err
	}
	defer engine.stop()
	b.say("%s: writing %d rows", name, budgetsRows)
	url := "http://" + addr + "/suanpan"
	if err := fillMonth(ctx, url, tenants, budgetsRows); err != nil {
		return err
	}
	file := filepath.Join(b.dir, part+".yaml")
	if err := os.WriteFile(file, budgetCatalog(tenants, each), 0o600); err != nil {
		return fmt.Errorf("write catalog: %w", err)
	}
	err = b.command(ctx, nil, nil, "apply", "--kafka", brokers, "--replay", "-f", file)
	if err != nil {
		return err
	}
	client, err := kafka.Open(ctx, kafka.Config{Brokers: []string{brokers}})
	if err != nil {
		return err
	}
	defer client.Close()
	store, err := clickhouse.Open(ctx, clickhouse.Config{URL: url})
	if err != nil {
		return err
	}
	defer store.Close()
	b.say("waiting until the rows of the month are no longer new")
	if err := sleep(ctx, budgetsWait); err != nil {
		return err
	}
	ticks := alerterOf(client, store)
	if err := b.tick(ctx, name+": the first tick", ticks, engine, tenants*each); err != nil {
		return err
	}
	slowest := 0.0
	for i := range budgetsTicks {
		if err := liveRows(ctx, store, tenants, budgetsRows/tenants, i); err != nil {
			return err
		}
		title := fmt.Sprintf("%s: tick %d", name, i+2)
		if err := b.tick(ctx, title, ticks, engine, tenants*each); err != nil {
			return err
		}
		slowest = max(slowest, b.report.Measures[len(b.report.Measures)-1].Seconds)
	}
	b.report.Ratios = append(b.report.Ratios, ratio{
		fmt.Sprintf("%s: slowest tick / limit of %s", name, budgetsLimit),
		slowest / budgetsLimit.Seconds(),
	})
	return nil
}

// alerterOf is an alerter as the biller has it. Nothing is sent.
func alerterOf(client *kafka.Client, store *clickhouse.Store) *pipeline.Alerter {
	return pipeline.NewAlerter(pipeline.AlerterConfig{
		Spending: store,
		Alerts: pipeline.NewAlertLog(pipeline.AlertLogConfig{
			Alerts: store, Log: client, Billing: client.Tail(schemas.TopicBilling),
			Notify: func(context.Context, []pipeline.LoggedAlert) error { return nil },
		}),
		Prices: pipeline.NewPrices(client.Tail(schemas.TopicCatalog),
			client.Tail(schemas.TopicMarket)),
	})
}

// tick measures one tick, which must look at all budgets.
func (b *bench) tick(ctx context.Context, name string, alerter *pipeline.Alerter, engine *process,
	budgets int,
) error {
	own, spent, began := ownCPU(), engine.cpu(), time.Now()
	report, err := alerter.Step(ctx, time.Unix(budgetsNow, 0).UTC())
	if err != nil {
		return err
	}
	if report.Budgets != budgets {
		return fmt.Errorf("%d of %d budgets were looked at", report.Budgets, budgets)
	}
	if report.Decided > 0 {
		return errors.New("a budget was reached: a tick that tells is not what is measured")
	}
	b.report.add(measure{
		Name: name, Events: int64(budgets), Seconds: time.Since(began).Seconds(),
		CPU: []cpu{{"alerter", ownCPU() - own}, {"clickhouse", engine.cpu() - spent}},
	})
	return nil
}

// budgetsNow is in the last hour that has rows.
const budgetsNow = closeStart + (closeHours+1)*3600

// budgetCatalog is what is closed, and budgets that are not reached: a tenant's first is about all
// of it, the others are about projects and teams, every third by day.
func budgetCatalog(tenants, each int) []byte {
	out := bytes.NewBuffer(closeCatalog(tenants))
	for i := range tenants {
		for n := range each {
			scope, period := "", "month"
			if n > 0 {
				scope = fmt.Sprintf("scope: {project: project-%d, labels: {team: team-%d}}, ", n%7, n%4)
			}
			if n%3 == 2 {
				period = "day"
			}
			fmt.Fprintf(out, "---\n{kind: Budget, name: budget-%d-%d, tenant: %s, period: %s, %s"+
				"amount: \"1000000000\"}\n", i, n, tenantName(i), period, scope)
		}
	}
	return out.Bytes()
}

// liveRows writes the running hour of each session, a minute longer with each tick.
func liveRows(ctx context.Context, store *clickhouse.Store, tenants, rows, tick int) error {
	changes := new(rating.Changes)
	for i := range tenants {
		charge := monthCharge(i)
		for n := range (rows + closeHours - 1) / closeHours {
			row := monthHour(charge, n*closeHours)
			row.Hour = closeStart + closeHours*3600
			seconds := uint16(60 * (tick + 1))
			row.Used = metering.Set{{From: 0, To: seconds}}
			row.Segments[0].Day = (row.Hour + 8*3600) / 86_400
			row.Segments[0].To, row.Segments[0].Seconds = seconds, seconds
			changes.Hours = append(changes.Hours, row)
		}
	}
	return store.Write(ctx, changes)
}
