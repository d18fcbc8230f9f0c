package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
)

// Spending says what was used in running periods.
type Spending interface {
	// TouchedDays returns the days of UTC, none before from, on which tenants have usage that was
	// written at or after an instant of the store's own clock, and the instant to ask with next time.
	// The zero time asks for that instant alone.
	TouchedDays(ctx context.Context, since time.Time, from int64) (
		days []TenantDay, next time.Time, err error)
	// DayUses visits what was used on days of UTC.
	DayUses(ctx context.Context, of *DayQuery, visit func(*alert.DayUse)) error
}

// TenantDay is a day of UTC of a tenant.
type TenantDay struct {
	Tenant string
	Day    int64 // since 1970-01-01
}

// DayQuery says which uses are wanted, and how finely.
type DayQuery struct {
	Tenants     []string
	From, Until int64    // days of UTC since 1970-01-01; Until is the first that is not wanted
	Scoped      bool     // split by project and labels
	Labels      []string // that uses are split by
}

const (
	longestPeriod = 33     // days of UTC that the running period of any zone has, at most
	noDay         = 49_000 // after all days of usage; in 2104
	fewDays       = 4      // more of a tenant are read together with all of its days
	secondsOfDay  = 86_400
)

// spending is what tenants with budgets have used in running periods, as a store has it. A day that
// was written to is read anew, the rest is kept: a tick reads what is new, not the month.
type spending struct {
	store  Spending
	uses   alert.Uses
	since  time.Time
	from   int64           // the first day that is kept
	labels []string        // that uses are split by
	known  map[string]bool // tenants that were read, and whether they are split by scopes
}

func newSpending(store Spending) *spending {
	return &spending{store: store, uses: make(alert.Uses), known: make(map[string]bool)}
}

func firstDay(now time.Time) int64 { return now.Unix()/secondsOfDay - longestPeriod }

// update brings what the tenants of budgets have used up to date with the days that were written
// to, and returns the tenants whose uses may have changed. After an error it is called again with
// the same days, or with more.
func (s *spending) update(ctx context.Context, budgets []*catalog.Budget, days []TenantDay,
	now time.Time,
) (map[string]bool, error) {
	scoped, labels := scopes(budgets)
	from := firstDay(now)
	if !slices.Equal(labels, s.labels) || from < s.from {
		s.uses, s.known, s.labels, s.from = make(alert.Uses), make(map[string]bool), labels, from
	}
	touched := make(map[string][]int64)
	for _, d := range days {
		if d.Day >= s.from {
			touched[d.Tenant] = append(touched[d.Tenant], d.Day)
		}
	}
	spans := make(map[span][]string)
	changed := make(map[string]bool)
	for tenant, split := range scoped {
		was, known := s.known[tenant]
		if !known || was != split || len(touched[tenant]) > fewDays {
			all := span{s.from, noDay, split}
			spans[all] = append(spans[all], tenant)
			changed[tenant] = true
			continue
		}
		for _, day := range touched[tenant] {
			one := span{day, day + 1, split}
			spans[one] = append(spans[one], tenant)
			changed[tenant] = true
		}
	}
	for of, tenants := range spans {
		if err := s.read(ctx, of, tenants); err != nil {
			return nil, err
		}
	}
	maps.Copy(s.known, scoped)
	s.forget(scoped, from)
	return changed, nil
}

// span is days that are read together.
type span struct {
	from, until int64
	scoped      bool
}

// read replaces what tenants have used on some days.
func (s *spending) read(ctx context.Context, of span, tenants []string) error {
	slices.Sort(tenants)
	query := &DayQuery{Tenants: tenants, From: of.from, Until: of.until, Scoped: of.scoped}
	if of.scoped {
		query.Labels = s.labels
	}
	var fresh []alert.DayUse
	err := s.store.DayUses(ctx, query, func(u *alert.DayUse) { fresh = append(fresh, *u) })
	if err != nil {
		return fmt.Errorf("sum what budgets are about: %w", err)
	}
	for _, tenant := range tenants {
		s.uses.Remove(tenant, of.from, of.until)
	}
	for i := range fresh {
		s.uses.Add(&fresh[i])
	}
	return nil
}

// forget drops days that no running period has any more, and tenants without budgets.
func (s *spending) forget(scoped map[string]bool, from int64) {
	for tenant := range s.known {
		if _, ok := scoped[tenant]; !ok {
			delete(s.known, tenant)
			delete(s.uses, tenant)
		}
	}
	if from > s.from {
		for tenant := range s.uses {
			s.uses.Remove(tenant, s.from, from)
		}
		s.from = from
	}
}

// scopes returns the tenants of budgets, with whether one of theirs is about a project or labels,
// and the labels that budgets name.
func scopes(budgets []*catalog.Budget) (tenants map[string]bool, labels []string) {
	tenants = make(map[string]bool)
	names := make(map[string]bool)
	for _, b := range budgets {
		tenants[b.Tenant] = tenants[b.Tenant] || b.Project != "" || len(b.Labels) > 0
		for name := range b.Labels {
			names[name] = true
		}
	}
	return tenants, slices.Sorted(maps.Keys(names))
}

// standings says how budgets stand. One that cannot be told does not keep others from being told:
// its tenant is among those that failed.
func (s *spending) standings(c *catalog.Catalog, budgets []*catalog.Budget, now time.Time) (
	all []alert.BudgetStatus, failed []string, err error,
) {
	byTenant := make(map[string][]*catalog.Budget)
	for _, b := range budgets {
		byTenant[b.Tenant] = append(byTenant[b.Tenant], b)
	}
	var errs []error
	for _, tenant := range slices.Sorted(maps.Keys(byTenant)) {
		uses := s.uses.Of(tenant)
		for _, b := range byTenant[tenant] {
			standing, ok, err := alert.Standing(b, uses, c, now.Unix())
			switch {
			case err != nil:
				errs, failed = append(errs, err), append(failed, tenant)
			case ok:
				all = append(all, standing)
			}
		}
	}
	return all, failed, errors.Join(errs...)
}

// Standings says how budgets stand now, all that the store has included.
func Standings(ctx context.Context, store Spending, c *catalog.Catalog, budgets []*catalog.Budget,
	now time.Time,
) ([]alert.BudgetStatus, error) {
	s := newSpending(store)
	if _, err := s.update(ctx, budgets, nil, now); err != nil {
		return nil, err
	}
	all, _, err := s.standings(c, budgets, now)
	return all, err
}
