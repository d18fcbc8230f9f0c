package rating

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
)

// lawCatalog has a price of every kind, a change of prices and a contract in mid-month.
const lawCatalog = `
{kind: Calendar, name: holidays, days: ["2026-03-31"]}
---
{kind: Tenant, name: acme, price_book: public}
---
{kind: Contract, name: c1, tenant: acme, price_book: public, timezone: Asia/Kathmandu,
  effective_from: "2026-03-31T20:17:00Z", end: "2026-04-01T03:00:00Z"}
---
kind: PriceBook
name: public
currency: CNY
timezone: Europe/Berlin
bands:
- {name: night, when: [{from: "22:00", to: "06:00", except: holidays}, {calendar: holidays}]}
prices: &
- {sku: flat, per: hour, price: "30", minimum: 60s, bands: {night: {multiplier: "0.37"}}}
- {sku: hourly, per: hour, price: "4.1", increment: 1h}
- {sku: steps, per: hour, bands: {night: {multiplier: "0.9"}}, ladder: {mode: graduated,
    tiers: [{up_to: "1.5", price: "3"}, {up_to: "4", price: "2.7"}, {price: "1"}]}}
- {sku: volume, per: hour, ladder: {mode: volume, window: hour,
    tiers: [{up_to: "0.5", price: "3"}, {price: "2"}]}}
- {sku: flat, purchase: spot, per: hour, market: {floor: "0.1", cap: "0.9"}}
- {sku: tokens, per: unit, package: "10", price: "0.3"}
`

const lawChange = `
---
kind: PriceBook
name: public
currency: CNY
timezone: Europe/Berlin
effective_from: "2026-03-31T23:10:30Z"
prices:
- {sku: flat, per: hour, price: "31.7"}
- {sku: hourly, per: hour, price: "4.3", increment: 1h}
- {sku: steps, per: hour, price: "2"}
- {sku: volume, per: hour, price: "2.5"}
- {sku: tokens, per: unit, price: "0.04"}
`

// lawBase is when the usage of the laws begins: shortly before a month ends.
const lawBase int64 = 1_774_983_600 // 2026-03-31T19:00:00Z

func lawPrices(t testing.TB) *catalog.Catalog {
	documents, err := catalog.Parse("law.yaml",
		[]byte(strings.Replace(lawCatalog, "prices: &", "prices:", 1)+lawChange))
	if err != nil {
		t.Fatal(err)
	}
	prices, err := catalog.New(documents)
	if err != nil {
		t.Fatal(err)
	}
	for i, price := range []string{"12.5", "1", "100", "7.77"} {
		e := metering.Event{
			Kind: metering.MarketPrice, SKU: "flat", Price: price,
			At: metering.InstantOf(lawBase+int64(i)*4000) + 1,
		}
		e.Region = "r1"
		if why := prices.AddMarket(&e); why != nil {
			t.Fatal(why)
		}
	}
	return prices
}

// drawUsage draws events that are all accepted and do not contradict one another.
func drawUsage(t *rapid.T) []metering.Event {
	var events []metering.Event
	for s := range rapid.IntRange(1, 4).Draw(t, "sessions") {
		id := fmt.Sprintf("s%d", s)
		start := lawBase + rapid.Int64Range(0, 20_000).Draw(t, "start")
		e := metering.Event{Kind: metering.Held, Tenant: "acme", Session: id, Facts: metering.Facts{
			Project: "p", Lease: id, Purchase: "on_demand", SessionStart: metering.InstantOf(start),
			Resumed: rapid.Bool().Draw(t, "resumed"),
			Labels:  []metering.Label{{Key: "team", Value: id}},
		}}
		skus := []string{"flat", "hourly", "steps", "volume"}
		if rapid.Bool().Draw(t, "spot") {
			e.Purchase, e.Region, skus = "spot", "r1", skus[:1]
		}
		for _, sku := range skus {
			if rapid.Bool().Draw(t, sku) {
				milli := rapid.Int64Range(1, 8000).Draw(t, "milli")
				e.Amounts = append(e.Amounts, metering.Amount{SKU: sku, Milli: milli})
			}
		}
		if len(e.Amounts) == 0 {
			continue
		}
		for range rapid.IntRange(1, 3).Draw(t, "windows") {
			from := start + rapid.Int64Range(0, 15_000).Draw(t, "from")
			e.Start = metering.InstantOf(from)
			e.End = metering.InstantOf(from + rapid.Int64Range(1, 9000).Draw(t, "length"))
			events = append(events, e)
		}
		for range rapid.IntRange(0, 2).Draw(t, "voids") {
			from := start + rapid.Int64Range(-100, 15_000).Draw(t, "void from")
			events = append(events, metering.Event{
				Kind: metering.Void, Tenant: "acme", Session: id, Start: metering.InstantOf(from),
				End: metering.InstantOf(from + rapid.Int64Range(1, 5000).Draw(t, "void length")),
			})
		}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "consumed") {
		nano, err := metering.QuantityOf(big.NewInt(rapid.Int64Range(1, 3e10).Draw(t, "nano")))
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, metering.Event{
			Kind: metering.Consumed, Tenant: "acme", Source: "/g", ID: fmt.Sprint(i),
			Facts:   metering.Facts{Project: "p", Purchase: "on_demand"},
			At:      metering.InstantOf(lawBase + rapid.Int64Range(0, 40_000).Draw(t, "at")),
			Amounts: []metering.Amount{{SKU: "tokens", Nano: nano}},
		})
	}
	return events
}

// scramble splits windows, repeats events and changes their order.
func scramble(t *rapid.T, events []metering.Event) []metering.Event {
	var out []metering.Event
	for _, e := range events {
		if length := int64(e.End - e.Start); e.Kind != metering.Consumed && length > 1 &&
			rapid.Bool().Draw(t, "split") {
			first, second := e, e
			first.End = e.Start + metering.Instant(rapid.Int64Range(1, length-1).Draw(t, "at"))
			second.Start = first.End
			out = append(out, first, second)
		} else {
			out = append(out, e)
		}
		if rapid.Bool().Draw(t, "repeat") {
			out = append(out, e)
		}
	}
	return rapid.Permutation(out).Draw(t, "order")
}

// bill prints all that rows come to.
func bill(t *rapid.T, l *Ledger, prices *catalog.Catalog) string {
	settled, err := Settle(l.Sums(), prices)
	if err != nil {
		t.Fatal(err)
	}
	items, err := l.LineItems(prices)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(items, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(Summary(settled), "\n") + "\n" + string(text)
}

func rateOnce(t *rapid.T, events []metering.Event, prices *catalog.Catalog) *Ledger {
	offline := NewOffline(prices)
	for i := range events {
		if why := offline.Rate(&events[i]); why != nil {
			t.Fatalf("event %d was rejected: %v", i, why)
		}
	}
	return offline.Ledger()
}

// rateTorn rates events as a service does whose writes land in part, late and again, whose state is
// evicted, and which crashes: then the records since the last commit are read anew.
func rateTorn(t *rapid.T, events []metering.Event, prices *catalog.Catalog) *Ledger {
	store := NewLedger()
	rater := NewRater(prices, store.Stored())
	committed := 0
	var older []Changes
	for i, crashes := 0, 0; i < len(events) || rater.Pending() > 0; {
		if i < len(events) {
			need := new(Need)
			rater.Need(&events[i], need)
			if err := rater.Load(need, store.Find(need)); err != nil {
				t.Fatal(err)
			}
			if why := rater.Rate(&events[i], Position{Offset: int64(i)}, 0); why != nil {
				t.Fatalf("event %d was rejected: %v", i, why)
			}
			i++
		}
		what := rapid.IntRange(0, 9).Draw(t, "what")
		switch {
		case what < 3 || i == len(events):
			changes := rater.Drain()
			older = append(older, changes)
			if what == 1 && crashes < 5 { // it lands in part, and the rater dies
				store.Apply(&Changes{Sessions: changes.Sessions, Voids: changes.Voids})
				store.Apply(&Changes{Hours: changes.Hours[:len(changes.Hours)/2]})
				rater, i, crashes = NewRater(prices, store.Stored()), committed, crashes+1
				continue
			}
			store.Apply(&changes)
			committed = i
			rater.Acknowledge(&changes)
			rater.Evict(rapid.Int64Range(0, 3000).Draw(t, "limit"))
		case what == 3 && len(older) > 0: // what was written before lands again
			again := older[rapid.IntRange(0, len(older)-1).Draw(t, "older")]
			store.Apply(&again)
		case what == 4 && crashes < 5:
			rater, i, crashes = NewRater(prices, store.Stored()), committed, crashes+1
		}
	}
	return store
}

// Property: splitting, repeating and reordering usage and voids changes no summary and no line
// item.
func orderLaw(t *rapid.T, prices *catalog.Catalog) {
	events := drawUsage(t)
	want := bill(t, rateOnce(t, events, prices), prices)
	if got := bill(t, rateOnce(t, scramble(t, events), prices), prices); got != want {
		t.Fatalf("the bill depends on how the usage came:\n%s\nnot\n%s", got, want)
	}
}

// Property: batches, evictions, torn and late writes and crashes change no summary and no line
// item.
func crashLaw(t *rapid.T, prices *catalog.Catalog) {
	events := drawUsage(t)
	want := bill(t, rateOnce(t, events, prices), prices)
	if got := bill(t, rateTorn(t, scramble(t, events), prices), prices); got != want {
		t.Fatalf("the bill depends on crashes:\n%s\nnot\n%s", got, want)
	}
}

// Property: the line items of a charge come to what its curve says, and nothing costs nothing.
func sumLaw(t *rapid.T, prices *catalog.Catalog) {
	ledger := rateOnce(t, drawUsage(t), prices)
	settled, err := Settle(ledger.Sums(), prices)
	if err != nil {
		t.Fatal(err)
	}
	items, err := ledger.LineItems(prices)
	if err != nil {
		t.Fatal(err)
	}
	var sum, total big.Rat
	for _, item := range items {
		amount, ok := new(big.Rat).SetString(item.Amount)
		if !ok {
			t.Fatalf("amount %q", item.Amount)
		}
		sum.Add(&sum, amount)
	}
	for i := range settled {
		amount, _ := new(big.Rat).SetString(settled[i].Amount.String())
		total.Add(&total, amount)
		curve, err := CurveOf(&settled[i].Charge, prices)
		if err != nil {
			t.Fatal(err)
		}
		if nothing := curve.Total(metering.Quantity{}); nothing.Sign() != 0 {
			t.Fatalf("nothing of %s costs %s", settled[i].Key(), nothing)
		}
		again, err := ParseCharge(settled[i].Tenant, settled[i].Key())
		if err != nil || again != settled[i].Charge {
			t.Fatalf("%s parses to %+v, %v", settled[i].Key(), again, err)
		}
	}
	if sum.Cmp(&total) != 0 {
		t.Fatalf("line items come to %s, charges to %s", sum.FloatString(12), total.FloatString(12))
	}
}

// Property: more of what has a price per unit, or graduated tiers, never costs less.
func monotoneLaw(t *rapid.T, prices *catalog.Catalog) {
	query := catalog.Query{Tenant: "acme", SKU: rapid.SampledFrom([]string{
		"flat", "hourly", "steps",
	}).Draw(t, "sku"), Purchase: "on_demand"}
	q, ok := prices.Quote(query, lawBase+rapid.Int64Range(0, 40_000).Draw(t, "at"))
	if !ok {
		t.Fatal("no price")
	}
	charge := chargeOf("acme", &q)
	curve, err := CurveOf(&charge, prices)
	if err != nil {
		t.Fatal(err)
	}
	amounts := []int64{
		rapid.Int64Range(0, 30_000_000).Draw(t, "less"), rapid.Int64Range(0, 30_000_000).Draw(t, "more"),
	}
	slices.Sort(amounts)
	less, more := metering.HeldFor(amounts[0], 1), metering.HeldFor(amounts[1], 1)
	if curve.Total(less).Cmp(curve.Total(more)) > 0 {
		t.Fatalf("%s cost %s, and %s cost %s", less, curve.Total(less), more, curve.Total(more))
	}
}

var laws = map[string]func(*rapid.T, *catalog.Catalog){
	"order": orderLaw, "crash": crashLaw, "sum": sumLaw, "monotone": monotoneLaw,
}

func TestLaws(t *testing.T) {
	for name, law := range laws {
		t.Run(name, func(t *testing.T) {
			prices := lawPrices(t)
			rapid.Check(t, func(r *rapid.T) { law(r, prices) })
		})
	}
}

// FuzzLaws runs the laws on what the fuzzer finds.
func FuzzLaws(f *testing.F) {
	prices := lawPrices(f)
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		laws[rapid.SampledFrom([]string{"order", "crash", "sum", "monotone"}).Draw(t, "law")](t, prices)
	}))
}

// TestCurve_volumeDips shows that a volume ladder is not monotone: its last units may make all of
// them cheaper.
func TestCurve_volumeDips(t *testing.T) {
	prices := lawPrices(t)
	q, ok := prices.Quote(catalog.Query{Tenant: "acme", SKU: "volume"}, lawBase)
	if !ok {
		t.Fatal("no price")
	}
	charge := chargeOf("acme", &q)
	curve, err := CurveOf(&charge, prices)
	if err != nil {
		t.Fatal(err)
	}
	half, more := curve.Total(metering.HeldFor(500, 3600)), curve.Total(metering.HeldFor(500, 3601))
	if half.String() != "1.5" || more.Cmp(half) >= 0 {
		t.Errorf("half an hour costs %s, a second more %s", half, more)
	}
}
