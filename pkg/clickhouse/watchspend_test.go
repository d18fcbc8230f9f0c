package clickhouse

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/rating"
)

// spendByView sums line items by hour as an analyst would.
func spendByView(t *testing.T, s *Store) map[string]string {
	t.Helper()
	items, err := s.LineItems(t.Context(), LineItemFilter{})
	if err != nil {
		t.Fatal(err)
	}
	sums := make(map[string]money.Amount)
	for _, i := range items {
		start, err := time.Parse(time.RFC3339, i.UsageStart)
		if err != nil {
			t.Fatal(err)
		}
		if i.Currency == "" {
			continue
		}
		key := hourKey(i.Tenant, i.Currency, start.Truncate(time.Hour).Unix())
		amount, err := money.ParseSigned(i.Amount)
		if err != nil {
			t.Fatal(err)
		}
		sums[key] = sums[key].Add(amount)
	}
	out := make(map[string]string, len(sums))
	for key, sum := range sums {
		out[key] = sum.Fixed(money.Scale)
	}
	return out
}

func hourKey(tenant, currency string, hour int64) string {
	return fmt.Sprintf("%q %s %d", tenant, currency, hour)
}

// Property: the spend of any hours is that of the view, to the last decimal, and comes in order.
func TestHourlySpend_isThatOfTheView(t *testing.T) {
	s, w, l := store(t), newWorld(t, 21), rating.NewLedger()
	w.run(t, 300)
	w.close(t, "acme", "", time.January)
	w.more(t, 100)
	w.catalog = w.rerate(t, "acme")
	w.write(t, s, l)
	if got := hourly(t, s, 0, 1<<31); len(got) != 0 {
		t.Errorf("there is spend before it is settled: %v", got)
	}
	settle(t, s, w)
	whole := spendByView(t, s)
	var left int64
	err := s.conn.QueryRow(t.Context(),
		"SELECT toInt64(count()) FROM line_items WHERE kind = 'rounding'").Scan(&left)
	if err != nil || left == 0 {
		t.Fatalf("%d charges have something left over, %v", left, err)
	}
	if len(whole) < 30 {
		t.Fatalf("the world has %d hours", len(whole))
	}
	check := func(from, until int64) {
		t.Helper()
		want := make(map[string]string)
		for _, tenant := range []string{"acme", "蓝-co"} {
			for hour := from; hour < until; hour += 3600 {
				if sum, ok := whole[hourKey(tenant, "CNY", hour)]; ok {
					want[hourKey(tenant, "CNY", hour)] = sum
				}
			}
		}
		got := hourly(t, s, from, until)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("from %d until %d (-view +got):\n%s", from, until, diff)
		}
	}
	start := worldStart.Unix()
	check(start-100*3600, start+200*3600)
	check(start, start)
	check(start+3600, start)
	for range 25 {
		from := start + 3600*int64(w.random.IntN(70)-10)
		check(from, from+3600*int64(1+w.random.IntN(60)))
	}
	for range 2 { // not settled after a change, so nothing is left over
		w.more(t, 30)
		w.write(t, s, l)
		whole = spendByView(t, s)
		check(start-100*3600, start+200*3600)
	}
}

// The query shows what the finding counted.
func TestQuerySpend_showsTheHours(t *testing.T) {
	s, w, l := store(t), newWorld(t, 22), rating.NewLedger()
	w.run(t, 100)
	w.write(t, s, l)
	settle(t, s, w)
	from := worldStart.Unix() + 2*3600
	got := hourly(t, s, from, from+6*3600)
	for _, tenant := range []string{"acme", "蓝-co"} {
		shown := evidence(t, s, alert.QuerySpend(tenant, from, from+6*3600))
		if len(shown) < 3 {
			t.Errorf("%s: %q", tenant, shown)
		}
		for _, line := range shown {
			parts := strings.Split(line, "\t")
			hour, err := time.Parse(time.DateTime, parts[0])
			if err != nil {
				t.Fatal(err)
			}
			key := hourKey(tenant, parts[1], hour.Unix())
			if want := got[key]; fixed(parts[2], money.Scale) != want {
				t.Errorf("%s: the finding says %s, its evidence %s", key, want, parts[2])
			}
			delete(got, key)
		}
	}
	if len(got) != 0 {
		t.Errorf("the evidence lacks %v", got)
	}
	if none := evidence(t, s, alert.QuerySpend("it's \\", from, from+3600)); len(none) != 0 {
		t.Errorf("evidence of nobody: %q", none)
	}
}

// hourly returns spend by hour, and fails where it is not in order.
func hourly(t *testing.T, s *Store, from, until int64) map[string]string {
	t.Helper()
	got := make(map[string]string)
	var keys []string
	err := s.HourlySpend(t.Context(), from, until, func(h alert.HourSpend) error {
		got[hourKey(h.Tenant, h.Currency, h.Hour)] = h.Amount.Fixed(money.Scale)
		keys = append(keys, fmt.Sprintf("%s %s %12d", h.Tenant, h.Currency, h.Hour))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(keys) || len(keys) != len(got) {
		t.Errorf("%d hours of %d are in the order %q", len(got), len(keys), keys)
	}
	return got
}
