package pipeline

import (
	"cmp"
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
	from   int64           // the first day that is kept
	labels []string        // that uses are split by
	known  map[string]bool // tenants that were read, and whether they are split by scopes
	// Tenants that were read since update last said whose uses may have changed.
	changed map[string]bool

	since time.Time   // all that was written before it was read
	days  []TenantDay // that were written to since, as look found
	next  time.Time   // since, once they are read
}

func newSpending(store Spending) *spending {
	return &spending{
		store: store, uses: make(alert.Uses), from: noDay, known: make(map[string]bool),
		changed: make(map[string]bool),
	}
}

func firstDay(now time.Time) int64 { return now.Unix()/secondsOfDay - longestPeriod }

// look asks which days were written to since the last update that succeeded. What is read after it
// has all that was written before.
func (s *spending) look(ctx context.Context, now time.Time) error {
	days, next, err := s.store.TouchedDays(ctx, s.since, firstDay(now))
	if err != nil {
		return fmt.Errorf("find changed days: %w", err)
	}
	s.days, s.next = days, next
	if s.since.IsZero() { // an update may read a part and fail
		s.since = next
	}
	return nil
}

// update brings what the tenants of budgets have used up to date with what look found, and returns
// the tenants whose uses may have changed since it last did.
func (s *spending) update(ctx context.Context, budgets []*catalog.Budget, now time.Time) (
	map[string]bool, error,
) {
	scoped, labels := scopes(budgets)
	from := firstDay(now)
	if !slices.Equal(labels, s.labels) || from < s.from {
		s.uses, s.known, s.labels, s.from = make(alert.Uses), make(map[string]bool), labels, from
	}
	spans := s.stale(scoped)
	for _, of := range slices.SortedFunc(maps.Keys(spans), span.compare) { // the same each time
		if err := s.read(ctx, of, spans[of]); err != nil {
			return nil, err
		}
	}
	s.forget(scoped, from)
	changed := s.changed
	s.since, s.days, s.changed = s.next, nil, make(map[string]bool)
	return changed, nil
}

// stale returns what must be read, and of whom: the days that were written to, and all days of
// tenants that were not read, or otherwise, or that many days were written to of.
func (s *spending) stale(scoped map[string]bool) map[span][]string {
	touched := make(map[string][]int64)
	for _, d := range s.days {
		if d.Day >= s.from {
			touched[d.Tenant] = append(touched[d.Tenant], d.Day)
		}
	}
	spans := make(map[span][]string)
	for tenant, split := range scoped {
		was, known := s.known[tenant]
		if !known || was != split || len(touched[tenant]) > fewDays {
			all := span{s.from, noDay, split}
			spans[all] = append(spans[all], tenant)
			continue
		}
		for _, day := range touched[tenant] {
			one := span{day, day + 1, split}
			spans[one] = append(spans[one], tenant)
		}
	}
	return spans
}

// span is days that are read together.
type span struct {
	from, until int64
	scoped      bool
}

func (s span) compare(t span) int {
	split := func(s span) int64 {
		if s.scoped {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(s.from, t.from), cmp.Compare(s.until, t.until),
		cmp.Compare(split(s), split(t)))
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
		s.known[tenant], s.changed[tenant] = of.scoped, true
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
	if _, err := s.update(ctx, budgets, now); err != nil {
		return nil, err
	}
	all, _, err := s.standings(c, budgets, now)
	return all, err
}
