package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
)

// boundCatalog has a tenant that moves between zones, with and without contracts, and books that
// change their rounding.
const boundCatalog = `
{kind: PriceBook, name: cn, currency: CNY, timezone: Asia/Shanghai, prices: []}
---
{kind: PriceBook, name: cn, currency: CNY, timezone: Asia/Shanghai, rounding: half_even,
  effective_from: "2026-01-20T00:00:00Z", prices: []}
---
{kind: PriceBook, name: us, currency: USD, timezone: America/New_York, prices: []}
---
{kind: Tenant, name: acme, price_book: cn, effective_from: "2026-01-10T12:00:00Z"}
---
{kind: Tenant, name: acme, price_book: us, effective_from: "2026-06-15T00:00:00Z"}
---
{kind: Contract, name: c, tenant: acme, price_book: cn, effective_from: "2026-02-01T00:00:00Z",
  end: "2026-03-15T00:00:00Z", timezone: Asia/Kathmandu}
---
{kind: Contract, name: c, tenant: acme, price_book: cn, effective_from: "2026-02-28T20:00:00Z",
  end: "2026-03-15T00:00:00Z", timezone: Pacific/Kiritimati}
---
{kind: Contract, name: d, tenant: acme, price_book: us, effective_from: "2026-03-31T18:00:00Z",
  end: "2026-05-01T00:00:00Z"}
`

func TestBindings_contractsBooksAndRounding(t *testing.T) {
	c := newCatalog(t, boundCatalog)
	var got strings.Builder
	for _, b := range c.Bindings("acme") {
		until := "-"
		if b.Until != metering.MaxSecond {
			until = metering.InstantOf(b.Until).String()
		}
		rounding := map[money.Rounding]string{money.HalfUp: "up", money.HalfEven: "even"}[b.Rounding]
		fmt.Fprintf(&got, "%s %s %q %s %s %s %s %s\n", metering.InstantOf(b.From), until, b.Contract,
			b.Book, b.Zone, b.Location, b.Currency, rounding)
	}
	const want = `2026-01-10T12:00:00Z 2026-01-20T00:00:00Z "" cn Asia/Shanghai Asia/Shanghai CNY up
2026-01-20T00:00:00Z 2026-02-01T00:00:00Z "" cn Asia/Shanghai Asia/Shanghai CNY even
2026-02-01T00:00:00Z 2026-02-28T20:00:00Z "c" cn Asia/Kathmandu Asia/Kathmandu CNY even
2026-02-28T20:00:00Z 2026-03-15T00:00:00Z "c" cn Pacific/Kiritimati Pacific/Kiritimati CNY even
2026-03-15T00:00:00Z 2026-03-31T18:00:00Z "" cn Asia/Shanghai Asia/Shanghai CNY even
2026-03-31T18:00:00Z 2026-05-01T00:00:00Z "d" us America/New_York America/New_York USD up
2026-05-01T00:00:00Z 2026-06-15T00:00:00Z "" cn Asia/Shanghai Asia/Shanghai CNY even
2026-06-15T00:00:00Z - "" us America/New_York America/New_York USD up
`
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
	if c.Bindings("nobody") != nil {
		t.Error("nobody is bound")
	}
}

// TestPeriodBounds_holdEverySecondOfThePeriod: a period that has seconds is from the start to the
// end of the months that their zones' clocks show, second by second.
func TestPeriodBounds_holdEverySecondOfThePeriod(t *testing.T) {
	c := newCatalog(t, boundCatalog)
	type key struct{ contract, period string }
	zones := make(map[key][]*time.Location)
	bindings := c.Bindings("acme")
	for at := second(t, "2026-01-10T12:00:00Z"); at < second(t, "2027-01-01T00:00:00Z"); at += 900 {
		i := slices.IndexFunc(bindings, func(b Binding) bool { return b.From <= at && at < b.Until })
		location := bindings[i].Location
		k := key{bindings[i].Contract, time.Unix(at, 0).In(location).Format("2006-01")}
		if !slices.Contains(zones[k], location) {
			zones[k] = append(zones[k], location)
		}
	}
	for k, locations := range zones {
		month, err := time.Parse("2006-01", k.period)
		if err != nil {
			t.Fatal(err)
		}
		from, until := metering.MaxSecond, int64(0)
		for _, l := range locations { // none of these months begins or ends where clocks jump
			from = min(from, time.Date(month.Year(), month.Month(), 1, 0, 0, 0, 0, l).Unix())
			until = max(until, time.Date(month.Year(), month.Month()+1, 1, 0, 0, 0, 0, l).Unix())
		}
		gotFrom, gotUntil, ok := c.PeriodBounds("acme", k.contract, k.period)
		if !ok || gotFrom != from || gotUntil != until {
			t.Errorf("%v in %v: %d to %d, %v, want %d to %d", k, locations, gotFrom, gotUntil, ok, from,
				until)
		}
	}
	if len(zones) < 12 {
		t.Errorf("only %d periods", len(zones))
	}
}

func TestPeriodBounds_monthsGoOn(t *testing.T) {
	c := newCatalog(t, boundCatalog)
	f := func(contract, period, from, until string) {
		t.Helper()
		gotFrom, gotUntil, ok := c.PeriodBounds("acme", contract, period)
		if from == "" {
			if ok {
				t.Errorf("%q has %s, from %d to %d", contract, period, gotFrom, gotUntil)
			}
			return
		}
		if !ok || gotFrom != second(t, from) || gotUntil != second(t, until) {
			t.Errorf("%q in %s: %s to %s, %v, want %s to %s", contract, period,
				metering.InstantOf(gotFrom), metering.InstantOf(gotUntil), ok, from, until)
		}
	}
	// After a contract's end in its last zone, and so between two times without one.
	f("c", "2026-07", "2026-06-30T10:00:00Z", "2026-07-31T10:00:00Z")
	f("d", "2026-06", "2026-06-01T04:00:00Z", "2026-07-01T04:00:00Z")
	f("", "2026-04", "2026-03-31T16:00:00Z", "2026-04-30T16:00:00Z")
	f("", "2026-02", "2026-01-31T16:00:00Z", "2026-02-28T16:00:00Z")
	// March has begun in Kathmandu when the clocks of Kiritimati begin to count: it is from the first
	// start until the last end.
	f("c", "2026-03", "2026-02-28T10:00:00Z", "2026-03-31T18:15:00Z")
	f("c", "2026-02", "2026-01-31T18:15:00Z", "2026-02-28T18:15:00Z")
	f("", "2026-06", "2026-05-31T16:00:00Z", "2026-07-01T04:00:00Z")
	f("", "2026-11", "2026-11-01T04:00:00Z", "2026-12-01T05:00:00Z") // 30 days and an hour
	f("", "2025-12", "", "")
	f("c", "2026-01", "", "")
	f("d", "2026-03", "2026-03-01T05:00:00Z", "2026-04-01T04:00:00Z") // ten hours of it
	for _, bad := range []string{"", "2026", "2026-13", "2026-1", "2026-01-01", "0001-01", "9999-12"} {
		f("", bad, "", "")
	}
	f("unknown", "2026-02", "", "")
}

// TestPeriodBounds_changesAtMonthsEdges: who moves to another zone when a month begins has that
// month in the new zone only.
func TestPeriodBounds_changesAtMonthsEdges(t *testing.T) {
	c := newCatalog(t, `
{kind: PriceBook, name: utc, currency: CNY, timezone: UTC, prices: []}
---
{kind: PriceBook, name: cn, currency: CNY, timezone: Asia/Shanghai, prices: []}
---
{kind: Tenant, name: east, price_book: utc}
---
{kind: Tenant, name: east, price_book: cn, effective_from: "2026-02-01T00:00:00Z"}
---
{kind: Tenant, name: west, price_book: cn}
---
{kind: Tenant, name: west, price_book: utc, effective_from: "2026-02-01T00:00:00Z"}
`)
	f := func(tenant, period, from, until string) {
		t.Helper()
		gotFrom, gotUntil, _ := c.PeriodBounds(tenant, "", period)
		if gotFrom != second(t, from) || gotUntil != second(t, until) {
			t.Errorf("%s in %s: %s to %s, want %s to %s", tenant, period, metering.InstantOf(gotFrom),
				metering.InstantOf(gotUntil), from, until)
		}
	}
	f("east", "2026-02", "2026-01-31T16:00:00Z", "2026-02-28T16:00:00Z") // UTC ended when it began
	f("west", "2026-01", "2025-12-31T16:00:00Z", "2026-01-31T16:00:00Z") // UTC begins when it ended
}
