package pipeline

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
)

// AlerterConfig says how an alerter works. All of it is required.
type AlerterConfig struct {
	Spending Spending
	Alerts   *AlertLog
	Prices   *Prices
}

// Alerter fires the thresholds of budgets, each once, and resolves them.
type Alerter struct {
	config  AlerterConfig
	spent   *spending
	asOf    uint64          // revision of the catalog at the last evaluation
	again   map[string]bool // tenants that must be looked at again
	periods map[string]string
}

// NewAlerter returns an alerter.
func NewAlerter(config AlerterConfig) *Alerter {
	return &Alerter{
		config: config, spent: newSpending(config.Spending),
		again: make(map[string]bool), periods: make(map[string]string),
	}
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
	budgets, err := a.look(ctx, now)
	if err != nil {
		return err
	}
	c := a.config.Prices.Catalog
	standings, failed, standErr := a.spent.standings(c, a.changed(budgets, now), now)
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
		return errors.Join(standErr, err)
	}
	clear(a.again)
	for _, tenant := range failed {
		a.again[tenant] = true
	}
	a.asOf = c.Revision
	clear(a.periods)
	for _, b := range budgets {
		a.periods[b.Name] = c.PeriodOf(b, now.Unix())
	}
	return standErr
}

// look reads what was used since the last step, and returns the budgets of now.
func (a *Alerter) look(ctx context.Context, now time.Time) ([]*catalog.Budget, error) {
	if err := a.spent.look(ctx, now); err != nil {
		return nil, err
	}
	// The catalog says whose uses are read. It is read again after them, for then it has all that they
	// were rated by.
	if err := a.config.Prices.Refresh(ctx, now); err != nil {
		return nil, err
	}
	changed, err := a.spent.update(ctx, a.config.Prices.Catalog.Budgets(now.Unix()), now)
	if err != nil {
		return nil, err
	}
	maps.Copy(a.again, changed)
	if err := a.config.Prices.Refresh(ctx, now); err != nil {
		return nil, err
	}
	return a.config.Prices.Catalog.Budgets(now.Unix()), nil
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
