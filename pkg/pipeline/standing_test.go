package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/rating"
)

// dayStore is hours that were used, and which days of them were written to since anybody asked.
type dayStore struct {
	hours   map[usedHour]int64 // seconds
	touched map[TenantDay]bool
	asked   int // for uses of days
	fails   int // so many reads later; 0: never
}

type usedHour struct {
	tenant, project, team string
	hour                  int64 // of UTC, since 1970
}

func (s *dayStore) write(h usedHour, seconds int64) {
	s.hours[h] = seconds
	s.touched[TenantDay{h.tenant, h.hour / 24}] = true
}

// TouchedDays does not forget what it told: the alerter may fail before it has read them. A real
// store tells rows for some minutes.
func (s *dayStore) TouchedDays(_ context.Context, since time.Time, from int64) (
	days []TenantDay, next time.Time, err error,
) {
	if since.IsZero() {
		return nil, noon, nil
	}
	for d := range s.touched {
		if d.Day >= from {
			days = append(days, d)
		}
	}
	return days, noon, nil
}

func (s *dayStore) DayUses(_ context.Context, of *DayQuery, visit func(*alert.DayUse)) error {
	s.asked++
	for h, seconds := range s.hours {
		day := h.hour / 24
		if !slices.Contains(of.Tenants, h.tenant) || day < of.From || day >= of.Until {
			continue
		}
		u := alert.DayUse{UTCDay: day, Charge: &rating.Charge{Tenant: h.tenant, Period: "2026-01"}}
		u.Day, u.Quantity = (h.hour+8)/24, metering.HeldFor(1000, seconds)
		if of.Scoped {
			u.Project = h.project
			if slices.Contains(of.Labels, "team") {
				u.Labels = map[string]string{"team": h.team}
			}
		}
		visit(&u)
	}
	if s.fails--; s.fails == 0 {
		return errFake
	}
	return nil
}

func drawBudgets(t *rapid.T) []*catalog.Budget {
	var out []*catalog.Budget
	for i := range rapid.IntRange(0, 3).Draw(t, "budgets") {
		b := &catalog.Budget{Name: fmt.Sprint(i)}
		b.Tenant = rapid.SampledFrom([]string{"acme", "blue"}).Draw(t, "tenant")
		b.Project = rapid.SampledFrom([]string{"", "", "p"}).Draw(t, "project")
		if rapid.Bool().Draw(t, "labels") {
			b.Labels = map[string]string{"team": "x"}
		}
		out = append(out, b)
	}
	return out
}

// Law: whatever is written, read and changed in between, what is kept of the days is what reading
// all of them gives.
func TestSpending_keepsWhatReadingAllGives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := &dayStore{hours: make(map[usedHour]int64), touched: make(map[TenantDay]bool)}
		kept, now := newSpending(store), noon
		budgets := drawBudgets(t)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			for range rapid.IntRange(0, 8).Draw(t, "rows") {
				store.write(usedHour{
					rapid.SampledFrom([]string{"acme", "blue", "coral"}).Draw(t, "tenant"),
					rapid.SampledFrom([]string{"p", "q"}).Draw(t, "project"),
					rapid.SampledFrom([]string{"x", "y", ""}).Draw(t, "team"),
					now.Unix()/3600 - rapid.Int64Range(-30, 40*24).Draw(t, "hours ago"),
				}, rapid.Int64Range(0, 3600).Draw(t, "seconds"))
			}
			if rapid.IntRange(0, 3).Draw(t, "change") == 0 {
				budgets = drawBudgets(t)
			}
			if rapid.IntRange(0, 3).Draw(t, "clock") == 0 {
				now = now.Add(time.Duration(rapid.IntRange(-72, 400).Draw(t, "step")) * time.Hour)
			}
			store.fails = rapid.IntRange(0, 4).Draw(t, "fails")
			if err := kept.step(t, budgets, now); err != nil {
				continue // what was touched is told again
			}
			clear(store.touched)
			store.fails = 0
			fresh := newSpending(store)
			if err := fresh.step(t, budgets, now); err != nil {
				t.Fatal(err)
			}
			for _, tenant := range []string{"acme", "blue", "coral"} {
				if diff := cmp.Diff(useTexts(fresh, tenant), useTexts(kept, tenant)); diff != "" {
					t.Fatalf("%s (-all +kept):\n%s", tenant, diff)
				}
			}
		}
	})
}

// step is what an alerter does with it.
func (s *spending) step(t *rapid.T, budgets []*catalog.Budget, now time.Time) error {
	err := s.look(context.Background(), now)
	if err == nil {
		_, err = s.update(context.Background(), budgets, now)
	}
	if err != nil && !errors.Is(err, errFake) {
		t.Fatal(err)
	}
	return err
}

// useTexts shows what a tenant used, by scope and day; what came to nothing is left out.
func useTexts(s *spending, tenant string) map[string]string {
	out := make(map[string]string)
	for _, u := range s.uses.Of(tenant) {
		for _, p := range u.Parts {
			if p.Quantity.Sign() != 0 {
				out[fmt.Sprint(u.Charge.Period, p.Project, p.Labels, p.Day)] = p.Quantity.String()
			}
		}
	}
	return out
}

func TestSpending_readsOnlyWhatWasWrittenTo(t *testing.T) {
	store := &dayStore{hours: make(map[usedHour]int64), touched: make(map[TenantDay]bool)}
	budgets := []*catalog.Budget{{Name: "b", Tenant: "acme"}}
	today := usedHour{"acme", "p", "x", noon.Unix() / 3600}
	store.write(today, 60)
	store.write(usedHour{"acme", "p", "x", noon.Unix()/3600 - 100}, 60)
	s := newSpending(store)
	f := func(name string, days []TenantDay, reads int, changed bool) {
		t.Helper()
		before := store.asked
		s.days = days
		got, err := s.update(t.Context(), budgets, noon)
		if err != nil || store.asked-before != reads || got["acme"] != changed {
			t.Errorf("%s: %d reads, changed %v, %v", name, store.asked-before, got, err)
		}
	}
	day := noon.Unix() / secondsOfDay
	f("at first all", nil, 1, true)
	f("then nothing", nil, 0, false)
	f("a day", []TenantDay{{"acme", day}}, 1, true)
	f("two days", []TenantDay{{"acme", day}, {"acme", day - 9}}, 2, true)
	f("of nobody's budget", []TenantDay{{"blue", day}}, 0, false)
	f("long ago", []TenantDay{{"acme", day - longestPeriod - 1}}, 0, false)
	f("many days together", []TenantDay{
		{"acme", day}, {"acme", day - 1}, {"acme", day - 2}, {"acme", day - 3}, {"acme", day - 4},
	}, 1, true)
}
