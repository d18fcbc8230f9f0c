package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/schemas"
)

// Spending says what was used in running periods, and keeps the alerts that follow.
type Spending interface {
	// Touched returns the periods that have rows written at or after an instant of the store's own
	// clock, and the instant to ask with next time. The zero time asks for all.
	Touched(ctx context.Context, since time.Time) (periods []PeriodKey, next time.Time, err error)
	// ScopeUses returns the charges of tenants that have usage at or after a second, split by
	// project, local day and the values of labels.
	ScopeUses(ctx context.Context, tenants []string, from int64, labels []string,
	) ([]alert.ScopeUse, error)
	// WriteAlerts writes alerts durably, each with its offset in the billing topic. Writing one
	// again changes nothing.
	WriteAlerts(ctx context.Context, alerts []LoggedAlert) error
	// AlertsWritten is the offset of the newest alert that was written; -1 if there is none.
	AlertsWritten(ctx context.Context) (int64, error)
}

// LoggedAlert is an alert and its place in the billing topic.
type LoggedAlert struct {
	alert.Alert
	Offset int64
}

// AlerterConfig says how an alerter works. All but Source are required.
type AlerterConfig struct {
	Spending Spending
	Log      Appender // takes decisions
	Billing  Tail     // the billing topic
	Prices   *Prices
	// Notify takes an alert for delivery. It is called again until it returns nil, and must know an
	// alert that it took before by its ID.
	Notify func(ctx context.Context, alert *alert.Alert) error
	Source string // of the records that it appends; default "/biller"
}

// Alerter fires the thresholds of budgets: each once, however many alerters there are and however
// often they restart. A decision is a record of the billing log; the first of its ID counts, and
// only what is in the log is sent.
type Alerter struct {
	config  AlerterConfig
	fired   map[string]bool
	pending []LoggedAlert // in the log, and not yet written and taken for delivery
	checked bool
	since   time.Time
	asOf    uint64          // revision of the catalog at the last evaluation
	again   map[string]bool // tenants that must be looked at again
	periods map[string]string
}

// AlertReport says what a step did.
type AlertReport struct {
	Budgets int // that were evaluated
	Fired   int // decisions that were appended
	Taken   int // alerts that were taken for delivery
}

// NewAlerter returns an alerter.
func NewAlerter(config AlerterConfig) *Alerter {
	if config.Source == "" {
		config.Source = "/biller"
	}
	return &Alerter{
		config: config, fired: make(map[string]bool), again: make(map[string]bool),
		periods: make(map[string]string),
	}
}

// Step evaluates the budgets of tenants whose usage, budgets or period changed, and fires what was
// reached.
func (a *Alerter) Step(ctx context.Context, now time.Time) (AlertReport, error) {
	var report AlertReport
	if err := a.sync(ctx, &report); err != nil {
		return report, err
	}
	touched, next, err := a.config.Spending.Touched(ctx, a.since)
	if err != nil {
		return report, fmt.Errorf("find changed periods: %w", err)
	}
	// The catalog is read after the rows: it has all that they were rated by.
	if err := a.config.Prices.Refresh(ctx, now); err != nil {
		return report, err
	}
	for _, p := range touched {
		a.again[p.Tenant] = true
	}
	a.since = next
	standings, err := a.changed(ctx, now)
	if err != nil {
		return report, err
	}
	report.Budgets = len(standings)
	var records []Record
	for i := range standings {
		for _, alert := range standings[i].Reached(now.Unix()) {
			if a.fired[alert.ID] {
				continue
			}
			value, err := (&billing.Record{Alert: &alert}).Encode(a.config.Source)
			if err != nil {
				return report, err
			}
			records = append(records, Record{
				Topic: schemas.TopicBilling, Key: []byte(alert.Tenant), Value: value,
			})
		}
	}
	if len(records) > 0 {
		if err := a.config.Log.Append(ctx, records...); err != nil {
			return report, fmt.Errorf("append %d alerts: %w", len(records), err)
		}
		report.Fired = len(records)
	}
	clear(a.again)
	return report, a.sync(ctx, &report)
}

// sync reads the billing log to its end, and hands its new alerts on: for delivery, and to the
// store.
func (a *Alerter) sync(ctx context.Context, report *AlertReport) error {
	records, err := a.config.Billing.ReadToEnd(ctx)
	if err != nil {
		return fmt.Errorf("read billing log: %w", err)
	}
	for _, r := range records {
		parsed, err := billing.ParseRecord(r.Value)
		if err != nil || parsed.Alert == nil || a.fired[parsed.Alert.ID] {
			continue // of somebody else, or decided on before
		}
		a.fired[parsed.Alert.ID] = true
		a.pending = append(a.pending, LoggedAlert{*parsed.Alert, r.Offset})
	}
	if !a.checked {
		written, err := a.config.Spending.AlertsWritten(ctx)
		if err != nil {
			return fmt.Errorf("find the newest alert: %w", err)
		}
		a.pending = slices.DeleteFunc(a.pending, func(l LoggedAlert) bool { return l.Offset <= written })
		a.checked = true
	}
	for len(a.pending) > 0 {
		one := a.pending[:1]
		// Taken for delivery first: what is written is never looked at again.
		if err := a.config.Notify(ctx, &one[0].Alert); err != nil {
			return fmt.Errorf("take alert %s for delivery: %w", one[0].ID, err)
		}
		if err := a.config.Spending.WriteAlerts(ctx, one); err != nil {
			return fmt.Errorf("write alert %s: %w", one[0].ID, err)
		}
		a.pending = a.pending[1:]
		report.Taken++
	}
	return nil
}

// changed returns how budgets stand that may stand otherwise than at the last step.
func (a *Alerter) changed(ctx context.Context, now time.Time) ([]alert.BudgetStatus, error) {
	c := a.config.Prices.Catalog
	budgets := c.Budgets(now.Unix())
	all := a.asOf != c.Revision
	var due []*catalog.Budget
	for _, b := range budgets {
		period := c.PeriodOf(b, now.Unix())
		if all || a.again[b.Tenant] || a.periods[b.Name] != period {
			due = append(due, b)
		}
	}
	standings, err := Standings(ctx, a.config.Spending, c, due, now)
	if err != nil {
		return nil, err
	}
	a.asOf = c.Revision
	clear(a.periods)
	for _, b := range budgets {
		a.periods[b.Name] = c.PeriodOf(b, now.Unix())
	}
	return standings, nil
}

// Standings says how budgets stand now. It makes one query.
func Standings(ctx context.Context, store Spending, c *catalog.Catalog, budgets []*catalog.Budget,
	now time.Time,
) ([]alert.BudgetStatus, error) {
	if len(budgets) == 0 {
		return nil, nil
	}
	tenants, labels := make(map[string]bool), make(map[string]bool)
	for _, b := range budgets {
		tenants[b.Tenant] = true
		for name := range b.Labels {
			labels[name] = true
		}
	}
	const longest = 33 // days of a month, in any zone
	uses, err := store.ScopeUses(ctx, slices.Sorted(maps.Keys(tenants)),
		now.AddDate(0, 0, -longest).Unix(), slices.Sorted(maps.Keys(labels)))
	if err != nil {
		return nil, fmt.Errorf("sum what budgets are about: %w", err)
	}
	byTenant := make(map[string][]alert.ScopeUse)
	for _, u := range uses {
		byTenant[u.Charge.Tenant] = append(byTenant[u.Charge.Tenant], u)
	}
	var out []alert.BudgetStatus
	for _, b := range budgets {
		s, ok, err := alert.Standing(b, byTenant[b.Tenant], c, now.Unix())
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, s)
		}
	}
	return out, nil
}
