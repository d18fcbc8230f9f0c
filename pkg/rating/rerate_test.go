package rating

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
)

// lawAmendment is a version that starts in the past: it is known to re-ratings only. Increments and
// minimums are as before, as a session keeps those of its anchor.
const lawAmendment = `
---
kind: PriceBook
name: public
currency: CNY
timezone: Europe/Berlin
effective_from: "2026-03-31T20:23:20Z"
prices:
- {sku: flat, per: hour, price: "28", minimum: 60s}
- {sku: hourly, per: hour, price: "3.9", increment: 1h}
- {sku: steps, per: hour, price: "1.7"}
- {sku: volume, per: hour, ladder: {mode: volume, window: hour,
    tiers: [{up_to: "1", price: "2"}, {price: "1"}]}}
- {sku: flat, purchase: spot, per: hour, market: {floor: "0.2", cap: "0.8"}}
- {sku: tokens, per: unit, price: "0.02"}
`

func amendedPrices(t testing.TB) *catalog.Catalog {
	t.Helper()
	documents, err := catalog.Parse("law.yaml", []byte(strings.Replace(lawCatalog, "prices: &",
		"prices:", 1)+lawAmendment+lawChange))
	if err != nil {
		t.Fatal(err)
	}
	prices, err := catalog.New(documents)
	if err != nil {
		t.Fatal(err)
	}
	for i, price := range []string{"12.5", "1", "100", "7.77"} { // as lawPrices has them
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

// world is what a re-rating law rates by.
type rerateWorld struct {
	prices, amended *catalog.Catalog
}

func (w *rerateWorld) rater(store *Ledger) *Rater {
	r := NewRater(w.prices, store.Stored(), store.Closes().Sorted()...)
	r.Obey(func(offset int64) *catalog.Catalog {
		if offset == 0 {
			return w.prices
		}
		return w.amended
	}, store.Rerates()...)
	return r
}

// step rates a record as the service does: what a re-rating is about must be in the store, and a
// close is drained before what follows it.
func (w *rerateWorld) step(t *rapid.T, r *Rater, store *Ledger, e *metering.Event, at int) {
	need := new(Need)
	r.Need(e, need)
	if err := r.Load(need, store.Find(need)); err != nil {
		t.Fatal(err)
	}
	if why := r.Rate(e, Position{Offset: int64(at)}, 0); why != nil {
		t.Fatalf("record %d was rejected: %v", at, why)
	}
}

func drainFirst(r *Rater, e *metering.Event) bool {
	return e.Kind == metering.Rerate && r.Pending() > 0 || r.Closing(e.Tenant)
}

// calm rates all records one after the other and lets see what is stored after each.
func (w *rerateWorld) calm(t *rapid.T, events []metering.Event, seen func(int, *Ledger)) *Ledger {
	store := NewLedger()
	r := w.rater(store)
	for i := range events {
		w.step(t, r, store, &events[i], i)
		changes := r.Drain()
		store.Apply(&changes)
		r.Acknowledge(&changes)
		if seen != nil {
			seen(i, store)
		}
	}
	return store
}

// torn rates them as a service whose writes land in part, late and again, and which crashes.
func (w *rerateWorld) torn(t *rapid.T, events []metering.Event) *Ledger {
	store := NewLedger()
	r := w.rater(store)
	committed, crashes := 0, 0
	var older []Changes
	for i := 0; i < len(events) || r.Pending() > 0; {
		what := rapid.IntRange(0, 9).Draw(t, "what")
		if i == len(events) || what < 3 || drainFirst(r, &events[i]) {
			changes := r.Drain()
			older = append(older, changes)
			if what == 1 && crashes < 6 {
				store.Apply(&Changes{Sessions: changes.Sessions, Voids: changes.Voids})
				store.Apply(&Changes{
					Hours:    changes.Hours[:len(changes.Hours)/2],
					Consumed: changes.Consumed[:len(changes.Consumed)/2],
				})
				r, i, crashes = w.rater(store), committed, crashes+1
				continue
			}
			store.Apply(&changes)
			if what != 2 || crashes >= 6 {
				committed = i
				r.Acknowledge(&changes)
				r.Evict(rapid.Int64Range(0, 3000).Draw(t, "limit"))
			} else { // it dies between the write and the commit
				r, i, crashes = w.rater(store), committed, crashes+1
			}
			continue
		}
		if what == 3 && len(older) > 0 {
			again := older[rapid.IntRange(0, len(older)-1).Draw(t, "older")]
			store.Apply(&again)
		}
		w.step(t, r, store, &events[i], i)
		i++
	}
	return store
}

// counted are the quantities by charge and billing period.
func counted(l *Ledger) map[string]string {
	sums := make(map[string]metering.Quantity)
	for _, line := range l.hours {
		for i := range line.Segments {
			s := &line.Segments[i]
			key := s.Billing + " " + s.Charge.Key()
			sums[key] = sums[key].Add(s.Quantity(line.Milli))
		}
	}
	for _, row := range l.consumed {
		key := row.Billing + " " + row.Charge.Key()
		sums[key] = sums[key].Add(row.Nano)
	}
	return printed(sums)
}

// printed leaves out what comes to nothing.
func printed[K comparable](sums map[K]metering.Quantity) map[string]string {
	out := make(map[string]string)
	for key, q := range sums {
		if q.Sign() != 0 {
			out[fmt.Sprint(key)] = q.String()
		}
	}
	return out
}

func rerateAll(offset int64) metering.Event {
	return metering.Event{
		Kind: metering.Rerate, Tenant: "acme", CatalogOffset: offset,
		Start: metering.InstantOf(lawBase - 86_400), End: metering.InstantOf(lawBase + 200_000),
	}
}

func closeOfMonth(t *rapid.T, prices *catalog.Catalog, contract, period string) metering.Event {
	from, until, ok := prices.PeriodBounds("acme", contract, period)
	if !ok {
		t.Fatalf("contract %q has no period %s", contract, period)
	}
	return metering.Event{
		Kind: metering.PeriodClose, Tenant: "acme", Contract: contract,
		Start: metering.InstantOf(from), End: metering.InstantOf(until),
	}
}

// drawRecords puts closes and re-ratings among usage.
func drawRecords(t *rapid.T, prices *catalog.Catalog, draw func() metering.Event) []metering.Event {
	events := scramble(t, drawUsage(t))
	insert := func(at int, e metering.Event) int {
		events = append(events[:at], append([]metering.Event{e}, events[at:]...)...)
		return at + 1
	}
	for _, contract := range []string{"", "c1"} {
		at := 0
		for _, period := range []string{"2026-03", "2026-04", "2026-05"} {
			if contract == "c1" && period == "2026-03" {
				continue // it is April there when it begins
			}
			if rapid.Bool().Draw(t, "closed") {
				at = rapid.IntRange(at, len(events)).Draw(t, "close at")
				at = insert(at, closeOfMonth(t, prices, contract, period))
			}
		}
	}
	for range rapid.IntRange(1, 4).Draw(t, "re-ratings") {
		insert(rapid.IntRange(0, len(events)).Draw(t, "re-rating at"), draw())
	}
	return events
}

// sumsOf rates only the usage, by one catalog and without closes.
func sumsOf(t *rapid.T, events []metering.Event, prices *catalog.Catalog) map[string]string {
	var usage []metering.Event
	for _, e := range events {
		if e.Kind != metering.Rerate && e.Kind != metering.PeriodClose {
			usage = append(usage, e)
		}
	}
	return printed(rateOnce(t, usage, prices).Sums())
}

// Property: a re-rating by the same prices changes no sum; one by others makes all sums those of
// rating everything by these, usage that comes later included; closed periods stay as they are.
func TestRerate_sumsAreThoseOfTheNewCatalog(t *testing.T) {
	prices, amended := lawPrices(t), amendedPrices(t)
	rapid.Check(t, func(t *rapid.T) {
		events := drawRecords(t, prices, func() metering.Event { return rerateAll(1) })
		same := rerateWorld{prices, prices}
		if d := cmp.Diff(sumsOf(t, events, prices), printed(same.calm(t, events, nil).Sums())); d != "" {
			t.Fatalf("unchanged prices changed sums (-want +got):\n%s", d)
		}
		changed := rerateWorld{prices, amended}
		closed := make(map[string]map[string]string) // contract and period to what it has
		see := func(i int, l *Ledger) {
			now := counted(l)
			for key := range l.Closes() {
				of := make(map[string]string)
				for name, q := range now {
					if strings.HasPrefix(name, key.Period+" ") &&
						strings.Split(name, separator)[2] == key.Contract {
						of[name] = q
					}
				}
				id := key.Contract + " " + key.Period
				if was, ok := closed[id]; !ok {
					closed[id] = of
				} else if d := cmp.Diff(was, of); d != "" {
					t.Fatalf("record %d changed the closed period %q (-was +is):\n%s", i, id, d)
				}
			}
		}
		got := changed.calm(t, events, see)
		if d := cmp.Diff(sumsOf(t, events, amended), printed(got.Sums())); d != "" {
			t.Fatalf("sums are not those of the amended prices (-want +got):\n%s", d)
		}
	})
}

// Property: crashes, torn and repeated writes change nothing of it.
func TestRerate_survivesCrashes(t *testing.T) {
	prices, amended := lawPrices(t), amendedPrices(t)
	rapid.Check(t, func(t *rapid.T) {
		events := drawRecords(t, prices, func() metering.Event {
			e := rerateAll(rapid.Int64Range(0, 1).Draw(t, "catalog"))
			from := lawBase + rapid.Int64Range(-3, 8).Draw(t, "from")*metering.Hour
			e.Start = metering.InstantOf(from)
			e.End = metering.InstantOf(from + rapid.Int64Range(1, 6).Draw(t, "hours")*metering.Hour)
			return e
		})
		w := rerateWorld{prices, amended}
		want, got := w.calm(t, events, nil), w.torn(t, events)
		if d := cmp.Diff(counted(want), counted(got)); d != "" {
			t.Fatalf("crashes changed what is billed (-want +got):\n%s", d)
		}
	})
}

// TestRerate_rowsGrowLittle re-rates an hour again and again, to and fro, each time after the month
// of the last one was closed: what was taken off once is not taken off and added for ever.
func TestRerate_rowsGrowLittle(t *testing.T) {
	prices := lawPrices(t)
	amended := amendedPrices(t)
	r := NewRater(prices, nil)
	r.Obey(func(offset int64) *catalog.Catalog {
		if offset%2 == 1 {
			return amended
		}
		return prices
	})
	at := int64(0)
	rate := func(e metering.Event) {
		t.Helper()
		if why := r.Rate(&e, Position{Offset: at}, 0); why != nil {
			t.Fatal(why)
		}
		at++
	}
	start := metering.InstantOf(lawBase + 6000)
	rate(metering.Event{
		Kind: metering.Held, Tenant: "acme", Session: "s", Start: start, End: start + 600_000_000_000,
		Facts: metering.Facts{
			Project: "p", Lease: "s", Purchase: "reserved", SessionStart: start,
		},
		Amounts: []metering.Amount{{SKU: "steps", Milli: 1000}},
	})
	ledger := NewLedger()
	period := "2026-03"
	for month := range int64(30) {
		_, until, ok := prices.PeriodBounds("acme", "", period)
		if !ok {
			t.Fatal("no period")
		}
		rate(metering.Event{
			Kind: metering.PeriodClose, Tenant: "acme", Start: metering.InstantOf(until - 1),
			End: metering.InstantOf(until),
		})
		period = NextPeriod(period)
		rate(rerateAll(month + 1))
		changes := r.Drain()
		ledger.Apply(&changes)
	}
	if sums := printed(ledger.Sums()); len(sums) != 1 {
		t.Errorf("after all %v is left", sums)
	}
	for _, row := range ledger.hours {
		if len(row.Segments) > 1+2*30 {
			t.Errorf("an hour has %d segments", len(row.Segments))
		}
	}
}
