package alert_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
)

const spotBook = `
kind: PriceBook
name: spot
currency: CNY
timezone: UTC
prices:
  - {sku: gpu.a10, per: hour, price: "3"}
  - {sku: gpu.a10, purchase: spot, per: hour, market: {floor: "0.1", cap: "1"}}
---
kind: Tenant
name: spotty
price_book: spot
`

// trade adds prices of gpu.a10 in north, each some seconds before the judged hour.
func trade(t interface {
	Helper()
	Fatal(args ...any)
}, c *catalog.Catalog, prices ...string,
) {
	t.Helper()
	for _, text := range prices {
		var ago int64
		e := metering.Event{Kind: metering.MarketPrice, SKU: "gpu.a10"}
		e.Region = "north"
		if _, err := fmt.Sscanf(text, "%d %s %s", &ago, &e.Price, &e.Currency); err != nil &&
			e.Price == "" {
			t.Fatal(text, err)
		}
		e.At = metering.InstantOf(judged - ago)
		if r := c.AddMarket(&e); r != nil && e.Currency == "" {
			t.Fatal(r)
		}
	}
}

func TestPriceChange_ofListPrices(t *testing.T) {
	version := func(from, prices string) string {
		return `{kind: PriceBook, name: public, currency: CNY, timezone: UTC, effective_from: "` + from +
			`", prices: [` + prices + `]}`
	}
	f := func(name, policy, prices, now, want string) {
		t.Helper()
		c, p := policyWorld(t, "type: price_change"+policy, version("2026-01-05T00:00:00Z", prices))
		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := show(alert.PriceChange(p, c, at.Unix())); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	const start, dear = "2026-01-05T00:00:00Z", "{sku: gpu.t4, per: hour, price: '1.1'}"
	const text = "/book public 2026-01-05T00:00:00Z prices=%d from=2026-01-05T00:00:00Z sku=%s " +
		"before=%sCNY/h price=%sCNY/h change=%s%%"
	t4 := fmt.Sprintf(text, 1, "gpu.t4", "1", "1.1", "10")
	f("a tenth dearer", "", dear, start, t4)
	f("a day later", "", dear, "2026-01-05T23:59:59Z", t4)
	f("more than a day later", "", dear, "2026-01-06T00:00:00Z", "")
	f("before it holds", "", dear, "2026-01-04T23:59:59Z", "")
	f("less than a tenth", "", "{sku: gpu.t4, per: hour, price: '1.0999'}", start, "")
	f("in another unit of time", "", "{sku: gpu.t4, per: day, price: '24'}", start, "")
	f("the largest of several", "", dear+", {sku: gpu.a30, per: hour, price: '1.75'}", start,
		fmt.Sprintf(text, 2, "gpu.a30", "3.5", "1.75", "-50"))
	f("of no price that is gone or new", "", "{sku: gpu.b200, per: hour, price: '9'}", start, "")
	f("what was free", "", "{sku: gpu.free, per: hour, price: '9'}", start,
		"/book public 2026-01-05T00:00:00Z prices=1 from=2026-01-05T00:00:00Z sku=gpu.free "+
			"before=0CNY/h price=9CNY/h")
	f("another SKU", ", scope: {skus: [gpu.a10]}", dear, start, "")
	f("a tenant of the book", ", scope: {tenants: [acme]}", dear, start, "acme"+t4)
	f("a larger fraction", ", thresholds: {fraction: 0.2}", dear, start, "")
}

func TestPriceChange_ofTheMarket(t *testing.T) {
	f := func(name, policy, want string, prices ...string) {
		t.Helper()
		c, p := policyWorld(t, "type: price_change"+policy, spotBook)
		trade(t, c, prices...)
		if got := show(alert.PriceChange(p, c, judged)); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	const dearer = "/market gpu.a10 north before=1CNY/hour price=1.2CNY/hour change=20%"
	f("against the price of a day ago", "", dearer, "90000 1", "86399 9", "10 1.2")
	f("a price of exactly a day ago", "", dearer, "90000 5", "86400 1", "0 1.2")
	f("one that did not hold a day ago", "", "", "86399 1", "10 1.2")
	f("back at what it was", "", "", "90000 1", "5000 9", "10 1.05")
	f("not yet", "", "", "90000 1", "-1 9")
	f("in another currency", "", "", "90000 1 CNY", "10 2 USD")
	f("nobody's price follows it", ", scope: {tenants: [acme]}", "", "90000 1", "10 1.2")
	f("a tenant's price follows it", ", scope: {tenants: [spotty]}", "spotty"+dearer, "90000 1",
		"10 1.2")
}

func TestPriceLow_atTheLowestTenthOfTheTime(t *testing.T) {
	const day = 86_400
	f := func(name, policy, want string, prices ...string) {
		t.Helper()
		c, p := policyWorld(t, "type: price_low"+policy, spotBook)
		trade(t, c, prices...)
		if got := show(alert.PriceLow(p, c, judged)); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	days := func(n int, price string) string { return fmt.Sprintf("%d %s", n*day, price) }
	const low = "/market gpu.a10 north price=1CNY/hour low=1CNY/hour median=2CNY/hour quantile=0.1 " +
		"days=90d lock gpu.a10 north at 1 CNY/hour"
	f("low for nine days of ninety", "", low, days(200, "2"), days(9, "1"))
	f("low for more than a tenth: it still is in the lowest tenth", "", low, days(200, "2"),
		days(10, "1"))
	f("not as low as before", "", "", days(200, "1"), days(80, "2"), days(9, "1.5"))
	f("lower than ever", "", "/market gpu.a10 north price=0.5CNY/hour low=1CNY/hour "+
		"median=2CNY/hour quantile=0.1 days=90d lock gpu.a10 north at 0.5 CNY/hour", days(200, "2"),
		days(30, "1"), days(20, "2"), "60 0.5")
	f("always the same", "", "", days(200, "1"))
	f("low for most of the time is usual", "", "", days(200, "2"), days(46, "1"))
	f("known for too short", "", "", fmt.Sprintf("%d 2", 7*day-1), "60 1")
	f("known for a week", "", "/market gpu.a10 north price=1CNY/hour low=2CNY/hour median=2CNY/hour "+
		"quantile=0.1 days=7d lock gpu.a10 north at 1 CNY/hour", days(7, "2"), "60 1")
	f("only the days of the policy count", ", thresholds: {days: 10}", "", days(200, "9"),
		days(10, "1"))
	f("another quantile", ", thresholds: {quantile: 0.4}", "/market gpu.a10 north price=1CNY/hour "+
		"low=1.5CNY/hour median=2CNY/hour quantile=0.4 days=90d lock gpu.a10 north at 1 CNY/hour",
		days(200, "2"), days(40, "1.5"), days(10, "1"))
	f("another SKU", ", scope: {skus: [gpu.t4]}", "", days(200, "2"), days(9, "1"))
	f("a tenant's price", ", scope: {tenants: [spotty, acme]}", "spotty"+low, days(200, "2"),
		days(9, "1"))
}

// Property: a price is at the quantile just if, counted second by second, at most that part of the
// time had a lower one; here in hours.
func TestPriceLow_agreesWithCountingHours(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, p := policyWorld(t, "type: price_low, thresholds: {days: 7, quantile: 0.3}", spotBook)
		hours := rapid.SliceOfN(rapid.Int64Range(1, 5), 168, 168).Draw(t, "hours")
		for i, price := range hours {
			trade(t, c, fmt.Sprintf("%d %s", (168-i)*3600, money.New(bigInt(price), 0)))
		}
		now := hours[167]
		var lower, atMost, median int
		for _, price := range hours {
			if price < now {
				lower++
			}
			if price <= now {
				atMost++
			}
		}
		// The quantile is at or above now if fewer than 0.3 x 168 = 50.4 hours are lower; the median
		// is above it if fewer than half of them are at most as dear.
		median = atMost
		want := lower <= 50 && median < 84
		if got := len(alert.PriceLow(p, c, judged).Findings) == 1; got != want {
			t.Errorf("found %t, want %t: %d hours are lower, %d at most as dear", got, want, lower, atMost)
		}
	})
}
