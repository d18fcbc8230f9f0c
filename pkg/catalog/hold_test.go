package catalog

import (
	"fmt"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/metering"
)

// holdCatalog changes everything that can change within the two days around the end of March, when
// clocks in Europe go forward, too.
const holdCatalog = `
{kind: Calendar, name: feasts, days: ["2026-03-29"]}
---
{kind: Calendar, name: feasts, effective_from: "2026-03-29T03:30:07Z",
  days: ["2026-03-28", "2026-03-30"]}
---
{kind: Tenant, name: acme, price_book: public}
---
{kind: Tenant, name: acme, price_book: other, effective_from: "2026-03-29T05:00:30.9Z"}
---
{kind: Tenant, name: blue, price_book: public}
---
{kind: Contract, name: c, tenant: blue, price_book: public, timezone: Asia/Kathmandu,
  effective_from: "2026-03-29T02:02:02Z", end: "2026-03-29T20:00:00.5Z"}
---
{kind: Contract, name: c, tenant: blue, price_book: public,
  effective_from: "2026-03-29T08:20:00Z", end: "2026-03-29T20:00:00.5Z"}
---
kind: PriceBook
name: public
currency: EUR
timezone: Europe/Berlin
bands:
- {name: night, when: [{from: "22:00", to: "06:00", days: [fri, sat], except: feasts}]}
- {name: odd, timezone: Australia/Lord_Howe,
    when: [{from: "12:10", to: "24:00"}, {calendar: feasts}]}
prices:
- {sku: flat, per: hour, price: "30", bands: {night: {multiplier: "0.4"}, odd: {multiplier: "2"}}}
- {sku: flat, region: r1, per: hour, price: "20"}
- {sku: flat, purchase: spot, per: hour, market: {floor: "0.1", cap: "0.9"}}
- {sku: month, per: hour, ladder: {mode: volume, tiers: [{up_to: "1", price: "3"}, {price: "2"}]}}
- {sku: hour, per: hour, ladder: {mode: volume, window: hour, tiers: [{price: "3"}]}}
---
kind: PriceBook
name: public
currency: EUR
timezone: Europe/Berlin
effective_from: "2026-03-29T09:15:00Z"
prices:
- {sku: flat, per: hour, price: "31"}
- {sku: month, per: hour, price: "4"}
- {sku: hour, per: hour, price: "4"}
---
kind: PriceBook
name: other
currency: USD
timezone: America/New_York
prices:
- {sku: flat, per: hour, price: "33"}
`

func holdPrices(t *testing.T) *Catalog {
	t.Helper()
	documents, err := Parse("hold.yaml", []byte(holdCatalog))
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(documents)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func second(t *testing.T, text string) int64 {
	t.Helper()
	i, err := metering.ParseInstant(text)
	if err != nil {
		t.Fatal(err)
	}
	return i.Second()
}

// addPrice adds a market price of flat in r1.
func addPrice(t *testing.T, c *Catalog, at, price string) {
	t.Helper()
	i, err := metering.ParseInstant(at)
	if err != nil {
		t.Fatal(err)
	}
	why := c.AddMarket(&metering.Event{
		Kind: metering.MarketPrice, SKU: "flat", Facts: metering.Facts{Region: "r1"}, At: i, Price: price,
	})
	if why != nil {
		t.Fatal(why)
	}
}

// TestQuote_holdsAsLongAsItSays asks for every second anew, and holds the answer against the one
// that said how long it would hold.
func TestQuote_holdsAsLongAsItSays(t *testing.T) {
	c := holdPrices(t)
	addPrice(t, c, "2026-03-29T04:00:00.000000001Z", "5")
	addPrice(t, c, "2026-03-29T04:00:00.5Z", "6") // the same first second
	addPrice(t, c, "2026-03-29T03:59:59Z", "7")
	from := second(t, "2026-03-28T20:00:00Z")
	for _, tenant := range []string{"acme", "blue"} {
		for _, q := range []Query{
			{tenant, "flat", "on_demand", ""},
			{tenant, "flat", "spot", "r1"},
			{tenant, "month", "", ""},
			{tenant, "hour", "reserved", "r9"},
		} {
			var last Quote
			var found bool
			for at, changes := from, 0; at < from+2*daySeconds; at++ {
				now, ok := c.Quote(q, at)
				if now.Until <= at || now.Until > metering.HourOf(at)+metering.Hour {
					t.Fatalf("%v at %d holds until %d", q, at, now.Until)
				}
				if at < last.Until {
					now.Until = last.Until
					if ok != found || now != last {
						t.Fatalf("%v at %s is\n%+v\nthough it was to stay\n%+v", q,
							time.Unix(at, 0).UTC(), now, last)
					}
					continue
				}
				if changes++; changes > 200 {
					t.Fatalf("%v changes too often to be worth keeping", q)
				}
				last, found = now, ok
			}
		}
	}
}

func TestQuote_whichPrice(t *testing.T) {
	c := holdPrices(t)
	addPrice(t, c, "2026-03-29T03:59:59.5Z", "5")
	addPrice(t, c, "2026-03-29T04:10:00Z", "500")
	addPrice(t, c, "2026-03-29T04:20:00Z", "0.001")
	addPrice(t, c, "2026-03-29T04:20:00Z", "7") // of two at one instant the last
	f := func(tenant, sku, purchase, region, at, want string) {
		t.Helper()
		got := "none"
		if q, ok := c.Quote(Query{tenant, sku, purchase, region}, second(t, at)); ok {
			got = fmt.Sprintf("%s %s/%s %s %s", q.Price.Amount, q.Price.Purchase, q.Price.Region, q.Band,
				q.Period)
			if q.Spot != "" {
				got = q.Spot + " " + got
			}
			if q.Window != 0 {
				got += " " + metering.InstantOf(q.Window).Time().Format("15:04")
			}
		}
		if got != want {
			t.Errorf("%s %s %s %q at %s: %s, want %s", tenant, sku, purchase, region, at, got, want)
		}
	}
	// From the region to all regions, from the purchase to on_demand; the line shows the price's.
	f("blue", "flat", "on_demand", "r1", "2026-03-28T12:00:00Z", "20 on_demand/r1 standard 2026-03")
	f("blue", "flat", "reserved", "r1", "2026-03-28T12:00:00Z", "20 on_demand/r1 standard 2026-03")
	f("blue", "flat", "on_demand", "r2", "2026-03-28T12:00:00Z", "30 on_demand/ odd 2026-03")
	f("blue", "none", "on_demand", "", "2026-03-28T12:00:00Z", "none")
	f("nobody", "flat", "on_demand", "", "2026-03-28T12:00:00Z", "none")
	// Saturday's night belongs to the day it began on, though Sunday is a feast; clocks jump at
	// 01:00Z.
	f("blue", "flat", "", "", "2026-03-28T21:00:00Z", "30 on_demand/ night 2026-03")
	f("blue", "flat", "", "", "2026-03-29T03:30:06Z", "30 on_demand/ night 2026-03")
	// The calendar's next version makes a feast of that Saturday.
	f("blue", "flat", "", "", "2026-03-29T03:30:07Z", "30 on_demand/ odd 2026-03")
	// Lord Howe is at +11:00: its feast ends at 13:00Z. Night, the first band that holds, wins.
	f("blue", "flat", "", "", "2026-03-28T04:59:59Z", "30 on_demand/ night 2026-03")
	f("blue", "flat", "", "", "2026-03-28T05:00:00Z", "30 on_demand/ odd 2026-03")
	// The floor before the first price, then the price from its next whole second, then the cap.
	f("blue", "flat", "spot", "r1", "2026-03-29T03:59:59Z", "2 0 spot/ standard 2026-03")
	f("blue", "flat", "spot", "r1", "2026-03-29T04:00:00Z", "5 0 spot/ standard 2026-03")
	f("blue", "flat", "spot", "r1", "2026-03-29T04:10:00Z", "18 0 spot/ standard 2026-03")
	f("blue", "flat", "spot", "r1", "2026-03-29T04:20:00Z", "7 0 spot/ standard 2026-03")
	f("blue", "flat", "spot", "r2", "2026-03-29T04:20:00Z", "3 0 spot/ standard 2026-03")
	f("acme", "flat", "spot", "r1", "2026-03-29T05:00:30Z", "33 on_demand/ standard 2026-03")
	// A ladder stays to its window's end; a contract's version starts new windows.
	f("acme", "month", "", "", "2026-03-29T05:00:29Z", "3 on_demand/ standard 2026-03")
	f("blue", "hour", "", "", "2026-03-29T09:59:59Z", "3 on_demand/ standard 2026-03 09:00")
	f("blue", "hour", "", "", "2026-03-29T10:00:00Z", "4 on_demand/ standard 2026-03")
	f("blue", "month", "", "", "2026-03-29T19:59:59Z", "3 on_demand/ standard 2026-03")
	f("blue", "month", "", "", "2026-03-29T20:00:00Z", "4 on_demand/ standard 2026-03")
	// Kathmandu's month ends at 18:15Z, Berlin's at 22:00Z.
	f("blue", "flat", "", "", "2026-03-31T21:59:59Z", "31 on_demand/ standard 2026-03")
	f("blue", "flat", "", "", "2026-03-31T22:00:00Z", "31 on_demand/ standard 2026-04")
}
