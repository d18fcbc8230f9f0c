package alert_test

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/rating"
)

const budgetCatalog = `
kind: PriceBook
name: public
currency: CNY
timezone: ZONE
prices:
  - {sku: gpu, per: hour, price: "10"}
  - sku: ladder
    per: hour
    ladder: {mode: graduated, tiers: [{up_to: "10", price: "10"}, {price: "5"}]}
  - {sku: packed, per: unit, package: "1000", price: "10"}
---
kind: Tenant
name: acme
price_book: public
---
kind: Budget
name: b
effective_from: "2026-01-01T00:00:00Z"
tenant: acme
period: month
amount: "100"
`

// budgetWorld returns a catalog with changes, and its one budget.
func budgetWorld(t *testing.T, zone string, changes ...string) (*catalog.Catalog, *catalog.Budget) {
	t.Helper()
	text := strings.NewReplacer(append([]string{"ZONE", zone}, changes...)...).Replace(budgetCatalog)
	documents, err := catalog.Parse("budget.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.New(documents)
	if err != nil {
		t.Fatal(err)
	}
	budgets := c.Budgets(second(t, "2026-01-20T12:00:00Z"))
	if len(budgets) != 1 {
		t.Fatalf("there are %d budgets", len(budgets))
	}
	return c, budgets[0]
}

func second(t *testing.T, text string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.Unix()
}

// hours is a quantity of unit-hours, in tenths.
func hours(t *testing.T, tenths int64) metering.Quantity {
	t.Helper()
	q, err := metering.QuantityOf(new(big.Int).Mul(big.NewInt(tenths*360), big.NewInt(1_000_000_000)))
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// used is a use of a SKU: parts of so many tenths of an hour, all on one day.
func used(t *testing.T, sku, period, day string, parts map[string]int64) alert.ScopeUse {
	t.Helper()
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		t.Fatal(err)
	}
	u := alert.ScopeUse{Charge: rating.Charge{
		Tenant: "acme", Book: "public", BookVersion: catalog.Always, SKU: sku,
		Purchase: "on_demand", Band: "standard", Period: period,
	}}
	for project, tenths := range parts {
		q := hours(t, tenths)
		u.Whole = u.Whole.Add(q)
		u.Parts = append(u.Parts, alert.ScopePart{
			Project: project, Labels: map[string]string{"team": "t-" + project},
			Day: at.Unix() / 86_400, Quantity: q,
		})
	}
	return u
}

func TestStanding(t *testing.T) {
	type want struct{ period, spend, share, forecast, reached string }
	f := func(name, zone, now string, changes []string, uses []alert.ScopeUse, want want) {
		t.Helper()
		c, b := budgetWorld(t, zone, changes...)
		s, ok, err := alert.Standing(b, uses, c, second(t, now))
		if err != nil || !ok {
			t.Fatalf("%s: %v, %v", name, ok, err)
		}
		var reached []string
		for _, a := range s.Reached(second(t, now)) {
			reached = append(reached, a.Threshold)
		}
		got := want
		got.period, got.spend, got.share = s.Period, s.Spend.String(), s.Share().String()
		got.forecast, got.reached = s.Forecast.String(), strings.Join(reached, " ")
		if got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	january := func(tenths int64) []alert.ScopeUse {
		return []alert.ScopeUse{used(t, "gpu", "2026-01", "2026-01-05", map[string]int64{"p": tenths})}
	}
	f("nothing was used", "UTC", "2026-01-16T12:00:00Z", nil, nil,
		want{"2026-01", "0", "0", "0", ""})
	f("below", "UTC", "2026-01-16T12:00:00Z", nil, january(79), want{"2026-01", "79", "0.79", "158", ""})
	f("exactly 80 %", "UTC", "2026-01-16T12:00:00Z", nil, january(80),
		want{"2026-01", "80", "0.8", "160", "0.8"})
	f("both at once", "UTC", "2026-01-16T12:00:00Z", nil, january(101),
		want{"2026-01", "101", "1.01", "202", "0.8 1"})
	f("the month of the zone: +05:30", "Asia/Kolkata", "2026-01-31T18:30:00Z", nil, january(101),
		want{"2026-02", "0", "0", "0", ""})
	f("the month of the zone: +05:45", "Asia/Kathmandu", "2026-01-31T18:14:59Z", nil, january(10),
		want{"2026-01", "10", "0.1", "10.000003733574", ""})
	scoped := []string{"period: month", "period: month\nscope: {project: a, labels: {team: t-a}}"}
	both := []alert.ScopeUse{
		used(t, "ladder", "2026-01", "2026-01-05", map[string]int64{"a": 50, "b": 150}),
	}
	f("a project shares the ladder by quantity", "UTC", "2026-01-16T12:00:00Z", scoped, both,
		want{"2026-01", "37.5", "0.375", "75", ""})
	f("at list prices it does not", "UTC", "2026-01-16T12:00:00Z",
		append(scoped, `amount: "100"`, "amount: \"100\"\nbasis: list"), both,
		want{"2026-01", "50", "0.5", "100", ""})
	packed := []alert.ScopeUse{
		used(t, "packed", "2026-01", "2026-01-05", map[string]int64{"p": 25}), // 9,000 units
	}
	f("packages", "UTC", "2026-01-16T12:00:00Z", nil, packed, want{"2026-01", "90", "0.9", "180", "0.8"})
	f("packages at list prices", "UTC", "2026-01-16T12:00:00Z",
		[]string{`amount: "100"`, "amount: \"100\"\nbasis: list"}, packed,
		want{"2026-01", "90", "0.9", "180", "0.8"})
	daily := []string{"period: month", "period: day"}
	f("a day of 23 hours", "America/New_York", "2026-03-08T16:30:00Z", daily,
		[]alert.ScopeUse{
			used(t, "gpu", "2026-03", "2026-03-08", map[string]int64{"p": 50}),
			used(t, "gpu", "2026-03", "2026-03-07", map[string]int64{"p": 70}),
		}, want{"2026-03-08", "50", "0.5", "100", ""})
	f("a day of 25 hours", "America/New_York", "2026-11-01T16:30:00Z", daily,
		[]alert.ScopeUse{used(t, "gpu", "2026-11", "2026-11-01", map[string]int64{"p": 80})},
		want{"2026-11-01", "80", "0.8", "160", "0.8"})
}

func TestStanding_saysWhenTheAmountIsReached(t *testing.T) {
	c, b := budgetWorld(t, "UTC")
	uses := []alert.ScopeUse{used(t, "gpu", "2026-01", "2026-01-05", map[string]int64{"p": 50})}
	f := func(now, want string) {
		t.Helper()
		s, _, err := alert.Standing(b, uses, c, second(t, now))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if s.Reaches != 0 {
			got = time.Unix(s.Reaches, 0).UTC().Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("at %s the amount is reached %q, want %q", now, got, want)
		}
	}
	f("2026-01-11T00:00:00Z", "2026-01-21T00:00:00Z")
	f("2026-01-21T00:00:00Z", "")
}

func TestReached_namesEachThresholdOnce(t *testing.T) {
	c, b := budgetWorld(t, "UTC", `amount: "100"`,
		"amount: \"100\"\nthresholds: [\"0.5\", \"1.0\"]\nnotify: [{webhook: https://example.com/h}]")
	uses := []alert.ScopeUse{used(t, "gpu", "2026-01", "2026-01-05", map[string]int64{"p": 100})}
	s, _, err := alert.Standing(b, uses, c, second(t, "2026-01-11T00:00:00Z"))
	if err != nil {
		t.Fatal(err)
	}
	alerts := s.Reached(second(t, "2026-01-11T00:00:00Z"))
	if len(alerts) != 2 || alerts[0].ID != "budget,b,1767225600,2026-01,0.5" ||
		alerts[1].ID != "budget,b,1767225600,2026-01,1" || len(alerts[0].To) != 1 {
		t.Errorf("the alerts are %+v", alerts)
	}
	text, err := (&billing.Record{Alert: &alerts[0]}).Encode("/biller")
	if err != nil {
		t.Fatal(err)
	}
	r, err := billing.ParseRecord(text)
	if err != nil || r.Alert == nil || r.Alert.ID != alerts[0].ID {
		t.Errorf("the record comes back as %+v, %v", r, err)
	}
}
