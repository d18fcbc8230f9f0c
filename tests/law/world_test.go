package law

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// world draws a catalog and events from one seed.
type world struct {
	*rand.Rand
	zones  []string
	skus   []string
	start  time.Time
	events []string
	id     int
}

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 1))}
	w.zones = []string{
		"UTC", "Asia/Shanghai", "America/New_York", "Asia/Kolkata", "Asia/Kathmandu",
		"Australia/Lord_Howe", "Europe/Berlin", "America/Sao_Paulo", "Asia/Beirut", "Africa/Cairo",
		"America/Havana", "Pacific/Apia",
	}
	w.skus = []string{"gpu", "cpu", "mem"}
	// Shortly before months end, days begin, and clocks change.
	starts := []string{
		"2026-01-31T12:00:00Z", "2026-03-08T03:00:00Z", "2026-11-01T02:00:00Z", "2026-03-28T20:00:00Z",
		"2026-10-03T10:00:00Z", "2026-02-16T15:00:00Z", "2026-04-30T17:20:00Z",
		// Clocks that skip midnight or show it twice: Sao Paulo, Cairo at a month's end, Beirut, Apia.
		"2018-11-03T22:00:00Z", "2018-02-17T20:00:00Z", "2024-10-31T14:00:00Z", "2026-03-28T15:00:00Z",
		"2011-12-30T01:00:00Z",
	}
	start, err := time.Parse(time.RFC3339, pick(w, starts))
	if err != nil {
		panic(err)
	}
	w.start = start
	return w
}

func pick[T any](w *world, from []T) T { return from[w.IntN(len(from))] }

func (w *world) chance(percent int) bool { return w.IntN(100) < percent }

// at is an instant some seconds after the start, sometimes between two seconds.
func (w *world) at(seconds int) string {
	t := w.start.Add(time.Duration(seconds) * time.Second)
	if w.chance(20) {
		t = t.Add(time.Duration(w.IntN(1_000_000_000)))
	}
	return t.Format(time.RFC3339Nano)
}

// catalog draws a book of one to three versions, tenants, and sometimes a contract.
func (w *world) catalog() string {
	var out strings.Builder
	out.WriteString("kind: Calendar\nname: cal\n" +
		"days: [\"2026-02-17\", \"2026-03-08\", \"2026-11-01\"]\n")
	zone := pick(w, w.zones)
	from := w.start.Add(-60 * 24 * time.Hour)
	for range 1 + w.IntN(3) {
		w.version(&out, "public", zone, from)
		from = w.start.Add(time.Duration(w.IntN(12*3600)) * time.Second)
	}
	other := pick(w, w.zones)
	w.version(&out, "other", other, w.start.Add(-90*24*time.Hour))
	if w.chance(30) {
		w.version(&out, "other", other, w.start.Add(time.Duration(w.IntN(9*3600))*time.Second))
	}
	out.WriteString("---\n{kind: Tenant, name: acme, price_book: public}\n")
	out.WriteString("---\n{kind: Tenant, name: blue, price_book: other}\n")
	if w.chance(25) { // a tenant that changes its book
		fmt.Fprintf(&out, "---\n{kind: Tenant, name: %s, price_book: %s, effective_from: %q}\n",
			pick(w, []string{"acme", "blue", "late"}), pick(w, []string{"public", "other"}),
			w.at(w.IntN(10*3600)))
	}
	if w.chance(25) {
		fmt.Fprintf(&out, "---\nkind: Calendar\nname: cal\neffective_from: %q\n"+
			"days: [\"2026-03-09\", \"2026-02-01\", \"2018-11-04\"]\n", w.at(w.IntN(12*3600)))
	}
	w.contracts(&out)
	return out.String()
}

// contracts draws amendments of one contract, then sometimes another one after a gap or none.
func (w *world) contracts(out *strings.Builder) {
	if !w.chance(50) {
		return
	}
	begin, end := w.IntN(8*3600), 10*3600
	for range 1 + w.IntN(2) {
		w.contract(out, "c", begin, end)
		begin += 1 + w.IntN(2*3600)
	}
	if w.chance(40) {
		w.contract(out, "d", end+w.IntN(2)*1800, -1)
	}
}

// contract draws one version of a contract; an end below 0 is none.
func (w *world) contract(out *strings.Builder, name string, begin, end int) {
	fmt.Fprintf(out, "---\n{kind: Contract, name: %s, tenant: acme, price_book: %s, "+
		"effective_from: %q", name, pick(w, []string{"public", "other"}),
		w.start.Add(time.Duration(begin)*time.Second).Format(time.RFC3339))
	if end >= 0 {
		fmt.Fprintf(out, ", end: %q",
			w.start.Add(time.Duration(end)*time.Second+time.Duration(w.IntN(2))).Format(time.RFC3339Nano))
	}
	if w.chance(70) {
		fmt.Fprintf(out, ", timezone: %s", pick(w, w.zones))
	}
	out.WriteString("}\n")
}

func (w *world) version(out *strings.Builder, name, zone string, from time.Time) {
	currency := map[string]string{"public": "CNY", "other": "USD"}[name]
	fmt.Fprintf(out, "---\nkind: PriceBook\nname: %s\ncurrency: %s\ntimezone: %s\n"+
		"effective_from: %q\n", name, currency, zone, from.Format(time.RFC3339))
	bands := w.chance(60)
	if bands {
		fmt.Fprintf(out, "bands:\n- {name: night, when: [{from: \"22:00\", to: \"06:30\", "+
			"days: [mon, wed, sat, sun], except: cal}, {from: \"12:00\", to: \"24:00\", days: [fri]}]}\n"+
			"- {name: feast, timezone: %s, when: [{calendar: cal}, {from: \"01:15\", to: \"01:45\"}]}\n",
			pick(w, w.zones))
	}
	out.WriteString("prices:\n")
	for _, sku := range w.skus {
		if w.chance(4) {
			continue // not sold in this version
		}
		w.price(out, sku, "", bands)
		if w.chance(40) {
			w.price(out, sku, ", region: r1", bands)
		}
		if w.chance(20) {
			w.price(out, sku, ", purchase: reserved", bands)
		}
	}
	if w.chance(70) {
		w.spot(out, bands)
	}
	fmt.Fprintf(out, "- {sku: tokens, per: unit, price: \"0.0%d\"}\n", w.IntN(1000))
	fmt.Fprintf(out, "- {sku: egress, per: unit, package: \"%d.5\", price: \"9.9\"}\n", 1+w.IntN(20))
}

// spot draws prices that follow the market, for all regions or for r1 alone.
func (w *world) spot(out *strings.Builder, bands bool) {
	per := pick(w, []string{"hour", "hour", "day"})
	region, rule := "", ""
	if w.chance(20) {
		region = ", region: r1"
	}
	if bands && w.chance(50) {
		rule = ", bands: {night: {multiplier: \"0.9\"}}"
	}
	fmt.Fprintf(out, "- {sku: spotty, per: %s, price: \"%d\"}\n", per, 1+w.IntN(30))
	if w.chance(30) {
		fmt.Fprintf(out, "- {sku: spotty, region: r2, per: %s, ladder: {mode: volume, "+
			"tiers: [{up_to: 2, price: 17}, {price: 3}]}}\n", per)
	}
	fmt.Fprintf(out, "- {sku: spotty, purchase: spot%s, per: %s, market: {floor: \"0.2\", "+
		"cap: \"0.%d\"}%s}\n", region, per, 3+w.IntN(6), rule)
}

// What prices are counted in and cost at least; a day is rare, as it takes the auditor long.
var (
	increments = []string{"1s", "60s", "1h", "7s", "90m", "60s", "1h", "7s", "3h", "1d"}
	minimums   = []string{"0s", "60s", "100s", "2h", "60s", "1s", "100s", "0s", "61m", "1d"}
)

func (w *world) price(out *strings.Builder, sku, more string, bands bool) {
	fmt.Fprintf(out, "- {sku: %s%s, per: %s", sku, more,
		pick(w, []string{"second", "hour", "hour", "day", "month"}))
	if w.chance(40) {
		fmt.Fprintf(out, ", increment: %s", pick(w, increments))
	}
	if w.chance(40) {
		fmt.Fprintf(out, ", minimum: %s", pick(w, minimums))
	}
	if bands && w.chance(60) {
		out.WriteString(", bands: {night: {multiplier: \"0.4\"}")
		if w.chance(50) {
			out.WriteString(", feast: {multiplier: \"1.75\"}")
		}
		out.WriteString("}")
	}
	switch {
	case w.chance(40):
		fmt.Fprintf(out, ", ladder: {mode: %s, window: %s, tiers: [{up_to: \"%d.25\", price: \"3\"}, "+
			"{up_to: \"9\", price: \"2.%d\"}, {price: \"1.1\"}]}",
			pick(w, []string{"graduated", "volume"}), pick(w, []string{"period", "hour"}), w.IntN(8),
			w.IntN(100))
	case w.chance(20):
		fmt.Fprintf(out, ", package: \"%d\", price: \"5\"", 1+w.IntN(5))
	default:
		fmt.Fprintf(out, ", price: \"%d.%d\"", w.IntN(40), w.IntN(1000))
	}
	out.WriteString("}\n")
}
