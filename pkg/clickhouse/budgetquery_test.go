package clickhouse

import (
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
)

// The query that an alert shows sums to the spend that it was decided by, whatever the scope. Line
// items of a scope are cut to 12 decimals, and what that leaves is in no scope.
func TestQueryBudget_showsTheSpend(t *testing.T) {
	s, w, l := store(t), newWorld(t, 31), rating.NewLedger()
	w.run(t, 400)
	w.write(t, s, l)
	settle(t, s, w)
	var budgets []*catalog.Budget
	add := func(b catalog.Budget) {
		for _, daily := range []bool{false, true} {
			for _, tenant := range []string{"acme", "蓝-co"} {
				one := b
				one.Daily, one.Tenant, one.Currency, one.Name = daily, tenant, "CNY", "b"
				one.Amount = money.MustParse("1")
				budgets = append(budgets, &one)
			}
		}
	}
	add(catalog.Budget{})
	add(catalog.Budget{List: true})
	for i, name := range hostile[:8] {
		add(catalog.Budget{Project: name, List: i%2 == 0})
		add(catalog.Budget{Labels: map[string]string{rating.DimensionLabels[1+i%2]: name}})
	}
	least := money.MustParse("0.000000001")
	spent := 0
	for _, now := range []time.Time{worldStart.Add(time.Hour), worldStart.Add(20 * time.Hour)} {
		standings, err := pipeline.Standings(t.Context(), s, w.catalog, budgets, now)
		if err != nil || len(standings) != len(budgets) {
			t.Fatalf("%d of %d budgets stand, %v", len(standings), len(budgets), err)
		}
		for i := range standings {
			b := &standings[i]
			query := alert.QueryBudget(b.Budget, b.Period)
			shown := shown(t, s, "SELECT toString(sum(spend)) FROM ("+query+")")
			got, err := money.ParseSigned(shown)
			if err != nil {
				t.Fatal(err)
			}
			off := got.Sub(b.Spend)
			whole := !b.Daily && !b.List && b.Project == "" && b.Labels == nil
			if whole && off.Sign() != 0 || off.Cmp(least) > 0 || least.Cmp(off.Neg()) < 0 {
				t.Errorf("%s: the spend is %s, and shown is %s:\n%s", b.Period, b.Spend, got, query)
			}
			if b.Spend.Sign() > 0 {
				spent++
			}
		}
	}
	if spent < len(budgets)/2 {
		t.Fatalf("only %d of %d budgets have a spend", spent, 2*len(budgets))
	}
}
