package clickhouse

import (
	"errors"
	"fmt"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
)

// scopeLabels are those that uses are split by: hostile ones, and one that nobody has.
var scopeLabels = []string{"0plain", "1" + hostile[5], `back\slash`, "nobody's"}

// usesOf is what the store says was used, as text.
func usesOf(t *testing.T, s *Store, from, until int64, scoped bool) map[string]string {
	t.Helper()
	query := &pipeline.DayQuery{
		Tenants: []string{"acme", "蓝-co"}, From: from, Until: until, Scoped: scoped,
	}
	if scoped {
		query.Labels = scopeLabels
	}
	sums := make(map[string]money.Amount)
	seen := make(map[string]bool)
	err := s.DayUses(t.Context(), query, func(u *alert.DayUse) {
		key := useText(u.UTCDay, u.Day, u.Charge.Tenant, u.Charge.SKU, u.Project, u.Labels)
		if once := key + u.Charge.Key(); seen[once] {
			t.Errorf("%s comes twice", once)
		} else {
			seen[once] = true
		}
		sums[key] = sums[key].Add(signed(t, u.Quantity.String()))
	})
	if err != nil {
		t.Fatal(err)
	}
	return sumTexts(sums)
}

func useText(utc, day int64, tenant, sku, project string, labels map[string]string) string {
	return fmt.Sprintf("%d %d %q %s %q %q", utc, day, tenant, sku, project, labels)
}

func sumTexts(sums map[string]money.Amount) map[string]string {
	out := make(map[string]string, len(sums))
	for key, sum := range sums {
		if sum.Sign() != 0 {
			out[key] = sum.String()
		}
	}
	return out
}

// ledgerUses is what the ledger's line items say.
func ledgerUses(t *testing.T, l *rating.Ledger, w *world, scoped bool) map[string]string {
	t.Helper()
	items, err := l.LineItems(w.catalog)
	if err != nil {
		t.Fatal(err)
	}
	sums := make(map[string]money.Amount)
	for i := range items {
		item := &items[i]
		if item.Kind == "rounding" {
			continue
		}
		project, labels := "", map[string]string(nil)
		if scoped {
			project, labels = item.Project, make(map[string]string)
			for _, name := range scopeLabels {
				labels[name] = item.Labels[name]
			}
		}
		start, err1 := time.Parse(time.RFC3339, item.UsageStart)
		day, err2 := time.Parse(time.DateOnly, item.Day)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		key := useText(start.Unix()/86_400, day.Unix()/86_400, item.Tenant, item.SKU, project, labels)
		sums[key] = sums[key].Add(signed(t, item.BaseQuantity))
	}
	return sumTexts(sums)
}

// Property: what budgets count is the line items, split by day, project and labels; a day read
// alone is that day; and every day that changes is among those that were touched.
func TestDayUses_areTheLineItems(t *testing.T) {
	for seed := range uint64(2) {
		s, w, l := store(t), newWorld(t, 100+seed), rating.NewLedger()
		w.run(t, 300)
		w.write(t, s, l)
		first, last := worldStart.Unix()/86_400-2, worldStart.Unix()/86_400+5
		for _, scoped := range []bool{false, true} {
			want := ledgerUses(t, l, w, scoped)
			if len(want) < 10 {
				t.Fatalf("the world is too small: %v", want)
			}
			if diff := gocmp.Diff(want, usesOf(t, s, first, last, scoped)); diff != "" {
				t.Errorf("scoped %v (-ledger +store):\n%s", scoped, diff)
			}
			days := make(map[string]string)
			for day := first; day < last; day++ {
				for key, q := range usesOf(t, s, day, day+1, scoped) {
					days[key] = q
				}
			}
			if diff := gocmp.Diff(want, days); diff != "" {
				t.Errorf("scoped %v, by days (-ledger +store):\n%s", scoped, diff)
			}
		}
		changedAreTouched(t, s, w, l)
	}
}

// changedAreTouched goes on with the world, and sees that what changed was touched.
func changedAreTouched(t *testing.T, s *Store, w *world, l *rating.Ledger) {
	t.Helper()
	before := ledgerUses(t, l, w, true)
	days, since, err := s.TouchedDays(t.Context(), time.Time{}, 0)
	if err != nil || len(days) != 0 {
		t.Fatalf("at first %d days were touched, %v", len(days), err)
	}
	if age := time.Since(since); age < landing || age > landing+time.Hour {
		t.Errorf("rows are looked at that were written %s ago", age)
	}
	w.changes = nil
	w.more(t, 20)
	w.write(t, s, l)
	days, _, err = s.TouchedDays(t.Context(), since, 0)
	if err != nil {
		t.Fatal(err)
	}
	touched := make(map[string]bool)
	for _, d := range days {
		touched[fmt.Sprintf("%d %q", d.Day, d.Tenant)] = true
	}
	changed := 0
	for key, q := range ledgerUses(t, l, w, true) {
		if before[key] == q {
			continue
		}
		changed++
		var utc, day int64
		var tenant string
		if _, err := fmt.Sscanf(key, "%d %d %q", &utc, &day, &tenant); err != nil {
			t.Fatal(err)
		}
		if !touched[fmt.Sprintf("%d %q", utc, tenant)] {
			t.Errorf("%s changed and its day was not touched", key)
		}
	}
	if changed == 0 {
		t.Error("nothing changed")
	}
	late, _, err := s.TouchedDays(t.Context(), since, 1<<15)
	if err != nil || len(late) != 0 {
		t.Errorf("days before the first are touched: %v, %v", late, err)
	}
	none, _, err := s.TouchedDays(t.Context(), time.Now().Add(time.Hour), 0)
	if err != nil || len(none) != 0 {
		t.Errorf("days are touched that were not written to: %v, %v", none, err)
	}
}

func signed(t *testing.T, text string) money.Amount {
	t.Helper()
	amount, err := money.ParseSigned(text)
	if err != nil {
		t.Fatal(err)
	}
	return amount
}
