package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
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
}

// AlerterConfig says how an alerter works. All of it is required.
type AlerterConfig struct {
	Spending Spending
	Alerts   *AlertLog
	Prices   *Prices
}

// Alerter fires the thresholds of budgets, each once, and resolves them.
type Alerter struct {
	config  AlerterConfig
	since   time.Time
	asOf    uint64          // revision of the catalog at the last evaluation
	again   map[string]bool // tenants that must be looked at again
	periods map[string]string
}

// NewAlerter returns an alerter.
func NewAlerter(config AlerterConfig) *Alerter {
	return &Alerter{config: config, again: make(map[string]bool), periods: make(map[string]string)}
}

// Step evaluates the budgets of tenants whose usage, budgets or period changed, fires what was
// reached, and resolves what is so no longer.
func (a *Alerter) Step(ctx context.Context, now time.Time) (AlertReport, error) {
	var report AlertReport
	before := a.config.Alerts.Taken()
	err := a.step(ctx, now, &report)
	report.Taken = a.config.Alerts.Taken() - before
	return report, err
}

func (a *Alerter) step(ctx context.Context, now time.Time, report *AlertReport) error {
	if err := a.config.Alerts.Sync(ctx); err != nil {
		return err
	}
	touched, next, err := a.config.Spending.Touched(ctx, a.since)
	if err != nil {
		return fmt.Errorf("find changed periods: %w", err)
	}
	// The catalog is read after the rows: it has all that they were rated by.
	if err := a.config.Prices.Refresh(ctx, now); err != nil {
		return err
	}
	for _, p := range touched {
		a.again[p.Tenant] = true
	}
	a.since = next
	c := a.config.Prices.Catalog
	budgets := c.Budgets(now.Unix())
	standings, err := Standings(ctx, a.config.Spending, c, a.changed(budgets, now), now)
	if err != nil {
		return err
	}
	report.Budgets = len(standings)
	history := a.config.Alerts.history
	var decided []alert.Alert
	for i := range standings {
		for _, reached := range standings[i].Reached(now.Unix()) {
			if !history.Decided(&reached) {
				decided = append(decided, reached)
			}
		}
	}
	decided = append(decided, alert.Settled(history, budgets, standings, c, now.Unix())...)
	if report.Decided, err = a.config.Alerts.Append(ctx, decided); err != nil {
		return err
	}
	clear(a.again)
	a.asOf = c.Revision
	clear(a.periods)
	for _, b := range budgets {
		a.periods[b.Name] = c.PeriodOf(b, now.Unix())
	}
	return nil
}

// changed returns the budgets that may stand otherwise than at the last step.
func (a *Alerter) changed(budgets []*catalog.Budget, now time.Time) []*catalog.Budget {
	c := a.config.Prices.Catalog
	var due []*catalog.Budget
	for _, b := range budgets {
		if a.asOf != c.Revision || a.again[b.Tenant] || a.periods[b.Name] != c.PeriodOf(b, now.Unix()) {
			due = append(due, b)
		}
	}
	return due
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
