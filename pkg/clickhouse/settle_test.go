package clickhouse

import (
	"math/big"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
)

func TestTouched_findsWhatWasWrittenSince(t *testing.T) {
	s, w, l := store(t), newWorld(t, 12), rating.NewLedger()
	w.run(t, 150)
	w.write(t, s, l)
	all, next, err := s.Touched(t.Context(), time.Time{})
	if err != nil || len(all) < 3 {
		t.Fatalf("periods %v, %v", all, err)
	}
	if age := time.Since(next); age < landing/2 || age > 2*landing {
		t.Errorf("next is %s ago", age)
	}
	again, _, err := s.Touched(t.Context(), next)
	if diff := gocmp.Diff(all, again); err != nil || diff != "" {
		t.Errorf("since next: %v\n%s", err, diff)
	}
	none, _, err := s.Touched(t.Context(), time.Now().Add(time.Hour))
	if err != nil || len(none) != 0 {
		t.Errorf("since an hour hence: %v, %v", none, err)
	}
	one, err := s.Sums(t.Context(), all[:1])
	if err != nil {
		t.Fatal(err)
	}
	want := make(rating.Sums)
	for charge, q := range l.Sums() {
		if charge.Tenant == all[0].Tenant && charge.Contract == all[0].Contract &&
			charge.Period == all[0].Period {
			want[charge] = q
		}
	}
	if diff := gocmp.Diff(texts(want), texts(one)); diff != "" {
		t.Errorf("sums of %+v (-want +got):\n%s", all[0], diff)
	}
	byName, err := s.AllSums(t.Context(), all[0].Tenant, all[0].Period)
	if diff := gocmp.Diff(texts(want), texts(byName)); err != nil || diff != "" {
		t.Errorf("AllSums of %+v: %v (-want +got):\n%s", all[0], err, diff)
	}
	empty, err := s.Sums(t.Context(), nil)
	if err != nil || len(empty) != 0 {
		t.Errorf("sums of nothing: %v, %v", empty, err)
	}
}

// exact has the largest and the most awkward numbers that events and prices may have.
func exact(t *testing.T, s *Store, tenant string, milli int64, seconds uint16, unit, amount string,
	per int64,
) {
	t.Helper()
	charge := rating.Charge{
		Tenant: tenant, Book: "b", SKU: "gpu", Purchase: "on_demand",
		Band: "standard", Period: "2026-01",
	}
	hour := rating.HourKey{
		SessionKey: rating.SessionKey{Tenant: tenant, Session: "s"},
		Hour:       worldStart.Unix(),
	}
	row := rating.Row{
		HourKey: hour, SKU: "gpu", Milli: milli,
		Used: metering.Set{{From: 0, To: seconds}}, Voided: metering.Set{{From: 1, To: 2}},
		Segments: []rating.Segment{
			{Charge: &charge, Billing: "2026-01", From: 0, To: seconds, Seconds: seconds},
			{Kind: rating.VoidSegment, Charge: &charge, Billing: "2026-01", From: 1, To: 2, Seconds: 1},
		},
	}
	changes := rating.Changes{
		Hours:    []rating.Row{row},
		Sessions: []rating.SessionRow{{SessionKey: hour.SessionKey, SKU: "gpu", Milli: milli}},
	}
	if err := s.Write(t.Context(), &changes); err != nil {
		t.Fatal(err)
	}
	settled := rating.Settled{
		Charge: charge, Quantity: metering.HeldFor(milli, int64(seconds)-1),
		BaseUnit: "unit-second", UnitPrice: parseAmount(t, unit),
		Per:      catalog.Per{Name: "x", Seconds: per},
		ListNano: catalog.Per{Seconds: per}.Nano(),
		Amount:   parseAmount(t, amount), Currency: "CNY",
	}
	key := pipeline.PeriodKey{Tenant: tenant, Period: "2026-01"}
	err := s.WriteSettlements(t.Context(), map[pipeline.PeriodKey][]rating.Settled{key: {settled}},
		worldStart)
	if err != nil {
		t.Fatal(err)
	}
	items, err := s.LineItems(t.Context(), LineItemFilter{Tenant: tenant})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][2]string{}
	rest := settled.Amount
	for i := range row.Segments {
		q := row.Segments[i].Quantity(milli)
		share := settled.Amount.MulRatio(q.Big(), settled.Quantity.Big(), money.Scale, money.Down)
		list := settled.UnitPrice.MulRatio(q.Big(), settled.Per.Nano(), money.Scale, money.Down)
		rest = rest.Sub(share)
		want[[]string{"usage", "void"}[i]] = [2]string{share.Fixed(money.Scale), list.Fixed(money.Scale)}
	}
	if rest.Sign() != 0 {
		want["rounding"] = [2]string{rest.Fixed(money.Scale), "0.000000000000"}
	}
	got := map[string][2]string{}
	for _, i := range items {
		got[i.Kind] = [2]string{i.Amount, i.ListAmount}
		if i.UnitPrice != settled.UnitPrice.String() {
			t.Errorf("unit price %s, want %s", i.UnitPrice, settled.UnitPrice)
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("held %d for %d s at %s, amount %s (-want +got):\n%s", milli, seconds, unit,
			amount, diff)
	}
	if spend, err := s.Spend(t.Context(), tenant, ""); err != nil || len(spend) != 1 ||
		spend[0].Amount != settled.Amount.Fixed(money.Scale) {
		t.Errorf("spend %+v, %v", spend, err)
	}
}

// parseAmount reads more digits than money.Parse takes.
func parseAmount(t *testing.T, text string) money.Amount {
	t.Helper()
	whole, fraction, _ := strings.Cut(text, ".")
	n, ok := new(big.Int).SetString(whole+fraction, 10)
	if !ok {
		t.Fatalf("%q is not a number", text)
	}
	return money.New(n, len(fraction))
}

func TestLineItems_exactAtTheLimits(t *testing.T) {
	s := store(t)
	exact(t, s, "t1", 3000, 3600, "30", "29.991666666667", 3600)
	// What literals and products of decimals would spoil.
	exact(t, s, "t2", 30_000_000, 3600, "1", "99999999999.9999", 3600)
	exact(t, s, "t3", 999_999_999_999_999_999, 3600, "0.000000000000000001", "1.234567890123", 1)
	exact(t, s, "t4", 999_999_999_999_999_999, 7, "12345.6789",
		"99999999999999999999999.999999999999", 3600)
	exact(t, s, "t5", 1, 3, "999999999999999.999999999999999999", "0.000000000001", 2_628_000)
	exact(t, s, "t6", 1, 3600, "0.123456789012345678901234567890123456",
		"999999999999999.999999999999", 86_400)
	exact(t, s, "t7", 7, 3600, "0", "0", 3600)
}

func TestWriteSettlements_refusesWhatColumnsDoNotHold(t *testing.T) {
	s := store(t)
	f := func(unit, amount, want string) {
		t.Helper()
		line := rating.Settled{
			UnitPrice: parseAmount(t, unit), Amount: parseAmount(t, amount),
			Per: catalog.Per{Name: "hour", Seconds: 3600}, ListNano: catalog.Per{Seconds: 3600}.Nano(),
		}
		err := s.WriteSettlements(t.Context(),
			map[pipeline.PeriodKey][]rating.Settled{{Tenant: "acme"}: {line}}, worldStart)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	f("1", "100000000000000000000000000", "more than 26 digits")
	f("1."+strings.Repeat("1", 37), "1", "more than 36 decimals")
	f("1"+strings.Repeat("0", 40), "1", "too large")
	f(strings.Repeat("9", 40)+"."+strings.Repeat("9", 36), "1", "too many digits")
}

func TestWriteSettlements_theLaterOneStaysWhole(t *testing.T) {
	s := store(t)
	line := func(sku, amount string) rating.Settled {
		return rating.Settled{
			Charge:   rating.Charge{Tenant: "acme", SKU: sku, Period: "2026-01"},
			Quantity: quantity(1), UnitPrice: money.MustParse("1"), Amount: money.MustParse(amount),
			Per: catalog.Per{Name: "hour", Seconds: 3600}, Currency: "CNY",
			ListNano: catalog.Per{Seconds: 3600}.Nano(),
		}
	}
	key := pipeline.PeriodKey{Tenant: "acme", Period: "2026-01"}
	f := func(asOf time.Time, want string, lines ...rating.Settled) {
		t.Helper()
		err := s.WriteSettlements(t.Context(), map[pipeline.PeriodKey][]rating.Settled{key: lines}, asOf)
		if err != nil {
			t.Fatal(err)
		}
		spend, err := s.Spend(t.Context(), "acme", "2026-01")
		got := ""
		for _, line := range spend {
			got += line.Amount
		}
		if err != nil || got != want {
			t.Errorf("spend %q, %v, want %q", got, err, want)
		}
	}
	f(worldStart, "3.000000000000", line("a", "1"), line("b", "2"))
	f(worldStart.Add(1), "5.000000000000", line("a", "5"))
	f(worldStart, "5.000000000000", line("a", "1"), line("b", "2"))
	f(worldStart.Add(2), "")
}

func TestLineItems_showUsageBeforeItIsSettled(t *testing.T) {
	s, w, l := store(t), newWorld(t, 13), rating.NewLedger()
	w.run(t, 50)
	w.write(t, s, l)
	items, err := s.LineItems(t.Context(), LineItemFilter{})
	if err != nil || len(items) == 0 {
		t.Fatalf("%d items, %v", len(items), err)
	}
	for _, i := range items {
		if i.Amount != "0.000000000000" || i.Currency != "" || i.Kind == "rounding" {
			t.Errorf("before it is settled: %+v", i)
		}
	}
	settle(t, s, w)
	top, err := s.TopLineItems(t.Context(), 3)
	if err != nil || len(top) != 3 || top[0].Currency != "CNY" {
		t.Errorf("top line items %+v, %v", top, err)
	}
}

func TestSpendDaily_addsUpToTheSettlements(t *testing.T) {
	s, w, l := store(t), newWorld(t, 14), rating.NewLedger()
	w.run(t, 150)
	w.write(t, s, l)
	settle(t, s, w)
	read := func(query string) string {
		var sum string
		if err := s.conn.QueryRow(t.Context(), query).Scan(&sum); err != nil {
			t.Fatal(err)
		}
		return sum
	}
	days := read("SELECT toString(sum(amount)) FROM spend_daily")
	bill := read("SELECT toString(sum(arraySum(amount))) FROM settlements FINAL")
	if days != bill || days == "0" {
		t.Errorf("days add up to %s, the bill to %s", days, bill)
	}
}
