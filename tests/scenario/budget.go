package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
)

// Tick is a look of the biller at all budgets.
type Tick struct {
	At     time.Time
	Events int    // that are known by then
	Says   string // lines: how each budget stands, what fires and what resolves
}

// tickVerbs are what a tick says. Those that are said must be complete.
var tickVerbs = []string{"budget", "forecast", "reaches", "fires", "resolves"}

func (p *parser) tick(words []string) error {
	if len(words) != 2 {
		return errors.New("a tick is at an INSTANT")
	}
	at, err := time.Parse(time.RFC3339, words[1])
	if err != nil {
		return err
	}
	p.block = "tick"
	p.script.Ticks = append(p.script.Ticks, Tick{At: at, Events: len(p.script.Events)})
	return nil
}

func (p *parser) tickLine(words []string) error {
	if !slices.Contains(tickVerbs, words[0]) {
		return fmt.Errorf("%q is none of %s", words[0], strings.Join(tickVerbs, ", "))
	}
	p.script.Ticks[len(p.script.Ticks)-1].Says += strings.Join(words, " ") + "\n"
	return nil
}

// Ticks returns what the product's alerter says at each tick of a script.
func (Product) Ticks(s *Script) ([]string, error) {
	documents, err := catalog.Parse("catalog", []byte(s.Catalog))
	if err != nil {
		return nil, err
	}
	w := &watched{prices: pipeline.NewPrices(&tail{log: catalogLog(documents)},
		&tail{log: marketLog(s.Events)})}
	alerter := pipeline.NewAlerter(pipeline.AlerterConfig{
		Spending: w, Prices: w.prices, Alerts: pipeline.NewAlertLog(pipeline.AlertLogConfig{
			Alerts: w, Log: &w.log, Billing: &tail{log: &w.log}, Notify: w.notify,
		}),
	})
	var out []string
	for i := range s.Ticks {
		said, err := w.tick(alerter, s, &s.Ticks[i])
		if err != nil {
			return nil, fmt.Errorf("tick at %s: %w", s.Ticks[i].At.Format(time.RFC3339), err)
		}
		out = append(out, said)
	}
	return out, nil
}

// watched is a world in memory that an alerter looks at.
type watched struct {
	prices *pipeline.Prices
	ledger *rating.Ledger
	log    records // of billing
	told   []string
}

func (w *watched) tick(alerter *pipeline.Alerter, s *Script, t *Tick) (string, error) {
	offline, _, _, err := rate(s.Catalog, s.Events[:t.Events], true)
	if err != nil {
		return "", err
	}
	w.ledger, w.told = offline.Ledger(), nil
	ctx := context.Background()
	if _, err := alerter.Step(ctx, t.At); err != nil {
		return "", err
	}
	c := w.prices.Catalog
	all, err := pipeline.Standings(ctx, w, c, c.Budgets(t.At.Unix()), t.At)
	if err != nil {
		return "", err
	}
	slices.SortFunc(all, func(a, b alert.BudgetStatus) int { return strings.Compare(a.Name, b.Name) })
	var lines []string
	for i := range all {
		b := &all[i]
		lines = append(lines, fmt.Sprintf("budget %s %s: %s of %s %s", b.Name, b.Period, b.Spend,
			b.Amount, b.Currency))
	}
	for i := range all {
		lines = append(lines, fmt.Sprintf("forecast %s: %s", all[i].Name, all[i].Forecast))
	}
	for i := range all {
		if all[i].Reaches != 0 {
			lines = append(lines, fmt.Sprintf("reaches %s: %s", all[i].Name,
				metering.InstantOf(all[i].Reaches)))
		}
	}
	slices.Sort(w.told)
	return strings.Join(append(lines, w.told...), "\n") + "\n", nil
}

// TouchedDays implements [pipeline.Spending]: all are, always.
func (w *watched) TouchedDays(_ context.Context, _ time.Time, from int64) (
	days []pipeline.TenantDay, next time.Time, err error,
) {
	for tenant := range w.ledger.Stored() {
		for day := range int64(60) {
			days = append(days, pipeline.TenantDay{Tenant: tenant, Day: from + day})
		}
	}
	return days, time.Unix(1, 0), nil
}

// DayUses implements [pipeline.Spending].
func (w *watched) DayUses(_ context.Context, of *pipeline.DayQuery,
	visit func(*alert.DayUse),
) error {
	for _, tenant := range of.Tenants {
		known := w.ledger.Find(&rating.Need{Spans: []rating.HourSpan{{
			Tenant: tenant, From: of.From * 86_400, Until: of.Until * 86_400,
		}}})
		facts := make(map[rating.SessionKey]*metering.Facts)
		for i := range known.Sessions {
			facts[known.Sessions[i].SessionKey] = &known.Sessions[i].Facts
		}
		for i := range known.Hours {
			row := &known.Hours[i]
			for j := range row.Segments {
				s, f := &row.Segments[j], facts[row.SessionKey]
				visit(dayUse(of, row.Hour, s.Charge, s.Day, s.Quantity(row.Milli), f.Project, f.Labels))
			}
		}
		for i := range known.Consumed {
			row := &known.Consumed[i]
			visit(dayUse(of, row.At, row.Charge, row.Day, row.Nano, row.Project, row.Labels))
		}
	}
	return nil
}

func dayUse(of *pipeline.DayQuery, at int64, charge *rating.Charge, day int64,
	quantity metering.Quantity, project string, labels []metering.Label,
) *alert.DayUse {
	u := &alert.DayUse{UTCDay: at / 86_400, Charge: charge}
	u.Day, u.Quantity = day, quantity
	if of.Scoped {
		u.Project, u.Labels = project, make(map[string]string)
		for _, l := range labels {
			if slices.Contains(of.Labels, l.Key) {
				u.Labels[l.Key] = l.Value
			}
		}
	}
	return u
}

// WriteAlerts implements [pipeline.Alerts].
func (w *watched) WriteAlerts(context.Context, []pipeline.LoggedAlert) error { return nil }

// AlertsWritten implements [pipeline.Alerts].
func (w *watched) AlertsWritten(context.Context) (int64, error) { return -1, nil }

func (w *watched) notify(_ context.Context, alerts []pipeline.LoggedAlert) error {
	for i := range alerts {
		a := &alerts[i]
		line := fmt.Sprintf("fires %s %s", a.Name, a.Threshold)
		if a.Status == alert.Resolved {
			line = fmt.Sprintf("resolves %s %s %s", a.Name, a.Threshold, a.Why)
		}
		w.told = append(w.told, line)
	}
	return nil
}

// records is a log in memory.
type records struct{ all []pipeline.Record }

// Append implements [pipeline.Appender].
func (r *records) Append(_ context.Context, more ...pipeline.Record) error {
	for _, one := range more {
		one.Offset = int64(len(r.all))
		r.all = append(r.all, one)
	}
	return nil
}

// tail reads a log from its start.
type tail struct {
	log  *records
	next int
}

// ReadToEnd implements [pipeline.Tail].
func (t *tail) ReadToEnd(context.Context) ([]pipeline.Record, error) {
	out := t.log.all[t.next:]
	t.next = len(t.log.all)
	return out, nil
}

// Close implements [pipeline.Tail].
func (t *tail) Close() error { return nil }

func loaded(values ...[]byte) *records {
	out := new(records)
	for i, value := range values {
		out.all = append(out.all, pipeline.Record{
			Offset: int64(i), Value: value, Headers: []pipeline.Header{
				{Key: pipeline.HeaderBatch, Value: []byte("scenario")},
				{Key: pipeline.HeaderReplay, Value: []byte("1")},
			},
		})
	}
	return out
}

func catalogLog(documents []catalog.Document) *records {
	values := make([][]byte, len(documents))
	for i := range documents {
		values[i] = documents[i].JSON
	}
	return loaded(values...)
}

// marketLog has the market prices among events.
func marketLog(events []string) *records {
	var values [][]byte
	for _, event := range events {
		if strings.Contains(event, `"type":"suanpan.market.price.v1"`) {
			values = append(values, []byte(event))
		}
	}
	return loaded(values...)
}
