package billing

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/rating"
)

const draftCatalog = `
{kind: Seller, name: us, legal_name: Us, timezone: UTC}
---
{kind: TaxRule, name: std, category: S, rate: "19", skus: ["flat", "steps"]}
---
{kind: TaxRule, name: incl, category: S, rate: "7", inclusive: true, skus: ["volume"]}
---
{kind: Tenant, name: acme, price_book: public}
---
kind: PriceBook
name: public
currency: EUR
timezone: Europe/Berlin
bands: [{name: night, when: [{from: "22:00", to: "06:00"}]}]
prices:
- {sku: flat, per: hour, price: "3.333", bands: {night: {multiplier: "0.37"}}}
- {sku: steps, per: hour, ladder: {mode: graduated,
    tiers: [{up_to: "1.5", price: "3"}, {price: "2.7"}]}}
- {sku: volume, per: hour, ladder: {mode: volume,
    tiers: [{up_to: "2", price: "3"}, {price: "2"}]}}
- {sku: tokens, per: unit, package: "10", price: "0.33"}
`

const draftBase int64 = 1_769_882_400 // 2026-01-31T18:00:00Z

func draftPrices(t testing.TB) *catalog.Catalog {
	t.Helper()
	documents, err := catalog.Parse("draft.yaml", []byte(draftCatalog))
	if err != nil {
		t.Fatal(err)
	}
	prices, err := catalog.New(documents)
	if err != nil {
		t.Fatal(err)
	}
	return prices
}

func drawEvents(t *rapid.T) []metering.Event {
	var events []metering.Event
	for s := range rapid.IntRange(1, 5).Draw(t, "sessions") {
		start := draftBase + rapid.Int64Range(0, 20_000).Draw(t, "start")
		id := fmt.Sprint("s", s)
		e := metering.Event{Kind: metering.Held, Tenant: "acme", Session: id, Facts: metering.Facts{
			Project: rapid.SampledFrom([]string{"p", "q"}).Draw(t, "project"), Lease: id,
			Purchase: "on_demand", SessionStart: metering.InstantOf(start),
		}}
		if rapid.Bool().Draw(t, "labels") {
			e.Labels = []metering.Label{{Key: "stage", Value: id}, {Key: "team", Value: "a"}}
		}
		sku := rapid.SampledFrom([]string{"flat", "steps", "volume"}).Draw(t, "sku")
		e.Amounts = []metering.Amount{
			{SKU: sku, Milli: rapid.Int64Range(1, 5000).Draw(t, "milli")},
		}
		for range rapid.IntRange(1, 3).Draw(t, "windows") {
			from := start + rapid.Int64Range(0, 15_000).Draw(t, "from")
			e.Start = metering.InstantOf(from)
			e.End = metering.InstantOf(from + rapid.Int64Range(1, 9000).Draw(t, "length"))
			events = append(events, e)
		}
		for range rapid.IntRange(0, 2).Draw(t, "voids") {
			from := start + rapid.Int64Range(0, 15_000).Draw(t, "void")
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
			At:      metering.InstantOf(draftBase + rapid.Int64Range(0, 40_000).Draw(t, "at")),
			Amounts: []metering.Amount{{SKU: "tokens", Nano: nano}},
		})
	}
	return events
}

// scrambled splits windows, repeats events and changes their order.
func scrambled(t *rapid.T, events []metering.Event) []metering.Event {
	var out []metering.Event
	for _, e := range events {
		if length := int64(e.End - e.Start); e.Kind != metering.Consumed && length > 1 &&
			rapid.Bool().Draw(t, "split") {
			first, second := e, e
			first.End = e.Start + metering.Instant(rapid.Int64Range(1, length-1).Draw(t, "split at"))
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

func closeAt(t *rapid.T, prices *catalog.Catalog, period string) metering.Event {
	from, until, ok := prices.PeriodBounds("acme", "", period)
	if !ok {
		t.Fatal("no period " + period)
	}
	return metering.Event{
		Kind: metering.PeriodClose, Tenant: "acme", Start: metering.InstantOf(from),
		End: metering.InstantOf(until),
	}
}

func rated(t *rapid.T, events []metering.Event, prices *catalog.Catalog) *rating.Ledger {
	offline := rating.NewOffline(prices)
	offline.ObeyCloses()
	for i := range events {
		if why := offline.Rate(&events[i]); why != nil {
			t.Fatalf("event %d was rejected: %v", i, why)
		}
	}
	return offline.Ledger()
}

func drafts(t *rapid.T, l *rating.Ledger, prices *catalog.Catalog) []*Document {
	var out []*Document
	for d, err := range (Offline{AsOf: metering.MaxSecond - 1}).Bill(l, prices) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, d)
	}
	return out
}

// Property: the same events, split, repeated and in any order, closed at the end, give the same
// drafts byte for byte, whose exact sums are those of the line items of their period.
func TestDraft_doesNotDependOnHowEventsCame(t *testing.T) {
	prices := draftPrices(t)
	rapid.Check(t, func(t *rapid.T) {
		events := drawEvents(t)
		ends := []metering.Event{closeAt(t, prices, "2026-01"), closeAt(t, prices, "2026-02")}
		ledger := rated(t, append(events[:len(events):len(events)], ends...), prices)
		want := drafts(t, ledger, prices)
		again := rated(t, append(scrambled(t, events), ends...), prices)
		if a, b := encoded(t, want), encoded(t, drafts(t, again, prices)); !bytes.Equal(a, b) {
			t.Fatalf("drafts depend on how events came:\n%s\n%s", a, b)
		}
		items := itemSums(t, ledger, prices, func(i *rating.LineItem) string {
			return i.BillingPeriod
		})
		for _, d := range want {
			sound(t, d)
			if got := parse(d.UnroundedTotal); got.Cmp(items[d.Period]) != 0 {
				t.Fatalf("%s: unrounded %s, line items %s", d.Key(), got, items[d.Period])
			}
		}
	})
}

// Property: wherever a period is closed, the exact sums of all documents of a usage period are
// those of its line items; only what comes to less than a cent may make no document.
func TestDraft_lateSumsAreWhatWasNotBilled(t *testing.T) {
	prices := draftPrices(t)
	rapid.Check(t, func(t *rapid.T) {
		events := scrambled(t, drawEvents(t))
		at := 0
		for _, period := range []string{"2026-01", "2026-02"} {
			at = rapid.IntRange(at, len(events)).Draw(t, "close at")
			events = append(events[:at], append([]metering.Event{closeAt(t, prices, period)},
				events[at:]...)...)
			at++
		}
		ledger := rated(t, events, prices)
		billedSums := make(map[string]money.Amount)
		for _, d := range drafts(t, ledger, prices) {
			sound(t, d)
			for i := range d.Lines {
				l := &d.Lines[i]
				exact := parse(l.Exact)
				if d.Type == CreditNote {
					exact = exact.Neg()
				}
				billedSums[l.UsagePeriod] = billedSums[l.UsagePeriod].Add(exact)
			}
		}
		items := itemSums(t, ledger, prices, func(i *rating.LineItem) string { return i.UsagePeriod })
		for period, want := range items {
			difference := want.Sub(billedSums[period])
			if difference.Sign() < 0 {
				difference = difference.Neg()
			}
			// One late sum below half a cent for each close, and what rounding gave on notes.
			if difference.Cmp(money.MustParse("0.02")) >= 0 {
				t.Fatalf("%s: billed %s, line items %s", period, billedSums[period], want)
			}
		}
	})
}

func encoded(t *rapid.T, documents []*Document) []byte {
	text, err := json.MarshalIndent(documents, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func itemSums(t *rapid.T, l *rating.Ledger, prices *catalog.Catalog,
	by func(*rating.LineItem) string,
) map[string]money.Amount {
	items, err := l.LineItems(prices)
	if err != nil {
		t.Fatal(err)
	}
	sums := make(map[string]money.Amount)
	for i := range items {
		sums[by(&items[i])] = sums[by(&items[i])].Add(parse(items[i].Amount))
	}
	return sums
}

// sound fails where parts of a document do not add up to it.
func sound(t *rapid.T, d *Document) {
	if err := d.validate(); err != nil {
		t.Fatal(err)
	}
	var exact, net, taxable, untaxed money.Amount
	for i := range d.Lines {
		l := &d.Lines[i]
		soundLine(t, l)
		exact, net = exact.Add(parse(l.Exact)), net.Add(parse(l.Net))
		if l.Tax == nil {
			untaxed = untaxed.Add(parse(l.Net))
		}
	}
	for _, tax := range d.Taxes {
		taxable = taxable.Add(parse(tax.Taxable))
	}
	if exact.Cmp(parse(d.UnroundedTotal)) != 0 {
		t.Fatalf("%s: lines come to %s, unrounded total is %s", d.ID(), exact, d.UnroundedTotal)
	}
	if d.Type == Invoice && net.Cmp(taxable.Add(untaxed)) != 0 {
		t.Fatalf("%s: nets come to %s, what is taxed to %s", d.ID(), net, taxable.Add(untaxed))
	}
}

func soundLine(t *rapid.T, l *Line) {
	b := &l.Breakdown
	for _, list := range [][]Share{b.Projects, b.Teams, b.Models, b.ModelVersions, b.Stages} {
		var sum money.Amount
		quantity := new(big.Rat)
		for _, s := range list {
			sum = sum.Add(parse(s.Amount))
			q, _ := new(big.Rat).SetString(s.Quantity)
			quantity.Add(quantity, q)
		}
		whole, _ := new(big.Rat).SetString(l.Quantity)
		if len(list) > 0 && (sum.Cmp(parse(l.Amount)) != 0 || quantity.Cmp(whole) != 0) {
			t.Fatalf("%s: shares %+v do not come to %s, %s", l.SKU, list, l.Amount, l.Quantity)
		}
	}
	var amount, net, exact money.Amount
	for i := range l.Details {
		soundLine(t, &l.Details[i])
		amount = amount.Add(parse(l.Details[i].Amount))
		net = net.Add(parse(l.Details[i].Net))
		exact = exact.Add(parse(l.Details[i].Exact))
	}
	if len(l.Details) > 0 && (amount.Cmp(parse(l.Amount)) != 0 || net.Cmp(parse(l.Net)) != 0 ||
		exact.Cmp(parse(l.Exact)) != 0) {
		t.Fatalf("details of %s come to %s, net %s, exact %s, and not to %s, %s, %s", l.UsagePeriod,
			amount, net, exact, l.Amount, l.Net, l.Exact)
	}
	if len(l.Tiers) > 0 {
		var sum money.Amount
		for _, tier := range l.Tiers {
			sum = sum.Add(parse(tier.Exact))
		}
		if sum.Cmp(parse(l.Exact)) != 0 {
			t.Fatalf("tiers of %s come to %s, not %s", l.SKU, sum, l.Exact)
		}
	}
}

// TestDecide_holdsWhatIsUnusual compares totals with the median of the last three.
func TestDecide_holdsWhatIsUnusual(t *testing.T) {
	prices := draftPrices(t)
	f := func(cents int64, earlier []int64, overlaps []string, want string) {
		t.Helper()
		h := NewHistory()
		for i, c := range earlier {
			if err := h.Add(plainInvoice("acme", fmt.Sprintf("2025-%02d", i+1), c)); err != nil {
				t.Fatal(err)
			}
		}
		doc := plainInvoice("acme", "2026-01", cents)
		if err := h.Add(doc); err != nil {
			t.Fatal(err)
		}
		closing := &Closing{
			Tenant: "acme", Period: "2026-01", Catalog: prices, History: h, AsOf: draftBase,
		}
		got := Decide(closing, []*Document{doc}, overlaps)[0].Held
		if !strings.HasPrefix(strings.Join(got, ";"), want) || want == "" && len(got) > 0 {
			t.Errorf("%d after %v is held for %q, want %q", cents, earlier, got, want)
		}
	}
	f(1000, []int64{100, 100, 100}, nil, "")
	f(1004, []int64{100, 100, 100}, nil, "its total is more than 10 times 1.25")
	f(1004, []int64{100, 100}, nil, "") // there are not three yet
	f(1004, []int64{1, 100, 5000, 300}, nil, "")
	f(-5, nil, nil, "its total is negative")
	f(5, nil, []string{"l"}, "two sessions of lease l")
}

// TestDecidedAt_lateCreditNotes reads the billing period of what late events made.
func TestDecidedAt_lateCreditNotes(t *testing.T) {
	for _, invoice := range []string{"2026-01", "2026-02"} {
		d := &Document{
			Type: CreditNote, Period: invoice,
			Cites: &Citation{ID: lateID("2026-03", "2026-01", invoice)},
		}
		if period, err := d.DecidedAt(); err != nil || period != "2026-03" {
			t.Errorf("%s was decided on with %s, %v", d.Cites.ID, period, err)
		}
	}
	own, other := lateID("2026-03", "2026-01", "2026-01"), lateID("2026-03", "2026-01", "2026-02")
	if same := lateID("2026-03", "2026-02", "2026-02"); own == other || other == same {
		t.Errorf("two credit notes have one ID: %s, %s, %s", own, other, same)
	}
	if _, err := (&Document{Type: CreditNote, Cites: &Citation{ID: "c1"}}).DecidedAt(); err == nil {
		t.Error("a person's credit note follows from events")
	}
}
