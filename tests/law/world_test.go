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
		"Australia/Lord_Howe", "Europe/Berlin",
	}
	w.skus = []string{"gpu", "cpu", "mem"}
	// Shortly before months end, days begin, and clocks change.
	starts := []string{
		"2026-01-31T12:00:00Z", "2026-03-08T03:00:00Z", "2026-11-01T02:00:00Z", "2026-03-28T20:00:00Z",
		"2026-10-03T10:00:00Z", "2026-02-16T15:00:00Z", "2026-04-30T17:20:00Z",
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
	w.version(&out, "other", pick(w, w.zones), w.start.Add(-90*24*time.Hour))
	out.WriteString("---\n{kind: Tenant, name: acme, price_book: public}\n")
	out.WriteString("---\n{kind: Tenant, name: blue, price_book: other}\n")
	if w.chance(40) {
		begin := w.IntN(8 * 3600)
		for range 1 + w.IntN(2) {
			fmt.Fprintf(&out, "---\n{kind: Contract, name: c, tenant: acme, price_book: %s, "+
				"timezone: %s, effective_from: %q, end: %q}\n", pick(w, []string{"public", "other"}),
				pick(w, w.zones), w.start.Add(time.Duration(begin)*time.Second).Format(time.RFC3339),
				w.start.Add(11*time.Hour).Format(time.RFC3339))
			begin += 1 + w.IntN(2*3600)
		}
	}
	return out.String()
}

func (w *world) version(out *strings.Builder, name, zone string, from time.Time) {
	fmt.Fprintf(out, "---\nkind: PriceBook\nname: %s\ncurrency: CNY\ntimezone: %s\n"+
		"effective_from: %q\n", name, zone, from.Format(time.RFC3339))
	bands := w.chance(60)
	if bands {
		fmt.Fprintf(out, "bands:\n- {name: night, when: [{from: \"22:00\", to: \"06:30\", "+
			"days: [mon, wed, sat, sun], except: cal}, {from: \"12:00\", to: \"24:00\", days: [fri]}]}\n"+
			"- {name: feast, timezone: %s, when: [{calendar: cal}, {from: \"01:15\", to: \"01:45\"}]}\n",
			pick(w, w.zones))
	}
	out.WriteString("prices:\n")
	for _, sku := range w.skus {
		w.price(out, sku, "", bands)
		if w.chance(40) {
			w.price(out, sku, ", region: r1", bands)
		}
		if w.chance(20) {
			w.price(out, sku, ", purchase: reserved", bands)
		}
	}
	if w.chance(70) {
		fmt.Fprintf(out, "- {sku: spotty, per: hour, price: \"%d\"}\n- {sku: spotty, purchase: spot, "+
			"per: hour, market: {floor: \"0.2\", cap: \"0.%d\"}}\n", 1+w.IntN(30), 3+w.IntN(6))
	}
	fmt.Fprintf(out, "- {sku: tokens, per: unit, price: \"0.0%d\"}\n", w.IntN(1000))
	fmt.Fprintf(out, "- {sku: egress, per: unit, package: \"%d.5\", price: \"9.9\"}\n", 1+w.IntN(20))
}

func (w *world) price(out *strings.Builder, sku, more string, bands bool) {
	fmt.Fprintf(out, "- {sku: %s%s, per: %s", sku, more,
		pick(w, []string{"second", "hour", "hour", "day", "month"}))
	if w.chance(40) {
		fmt.Fprintf(out, ", increment: %s", pick(w, []string{"1s", "60s", "1h", "7s"}))
	}
	if w.chance(40) {
		fmt.Fprintf(out, ", minimum: %s", pick(w, []string{"0s", "60s", "100s", "2h"}))
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

func (w *world) event(kind, data string) {
	w.id++
	id := fmt.Sprintf("e%d", w.id)
	if kind == "usage.consumed.v1" && w.chance(20) {
		id = "again" // another content under the same id
	}
	w.events = append(w.events, fmt.Sprintf(`{"specversion":"1.0","type":"suanpan.%s","source":"/s",`+
		`"id":%q,"data":{%s}}`, kind, id, data))
	if w.chance(15) {
		w.events = append(w.events, w.events[w.IntN(len(w.events))])
	}
}

// usage draws the events, in an order of their own.
func (w *world) usage() []string {
	for range w.IntN(6) {
		w.event("market.price.v1", fmt.Sprintf(`"sku":"spotty","region":%q,"price":"%d.%d","time":%q`,
			pick(w, []string{"r1", "r2"}), w.IntN(30), w.IntN(10), w.at(w.IntN(12*3600))))
	}
	for s := range 1 + w.IntN(5) {
		w.session(s)
	}
	for range w.IntN(5) {
		w.event("usage.consumed.v1", fmt.Sprintf(`"tenant":%q,"project":"p","time":%q,"consumed":`+
			`{%q:"%d.%d"}`, pick(w, []string{"acme", "blue"}), w.at(w.IntN(14*3600)),
			pick(w, []string{"tokens", "egress", "gpu"}), w.IntN(50), w.IntN(1_000_000_000)))
	}
	w.Shuffle(len(w.events), func(i, j int) { w.events[i], w.events[j] = w.events[j], w.events[i] })
	return w.events
}

func (w *world) session(n int) {
	tenant := pick(w, []string{"acme", "acme", "blue", "nobody"})
	if tenant == "nobody" && w.chance(70) {
		tenant = "acme"
	}
	begin := w.IntN(10 * 3600)
	held := fmt.Sprintf(`%q:"%d.%d"`, pick(w, append(w.skus, "spotty", "spotty")), w.IntN(3),
		1+w.IntN(999))
	if w.chance(30) {
		held = fmt.Sprintf(`"cpu":"%d","mem":%d`, 1+w.IntN(9), 1+w.IntN(9))
	}
	facts := fmt.Sprintf(`"tenant":%q,"project":"p","lease":"l%d","session":"s%d","session_start":%q,`+
		`"purchase":%q`, tenant, n, n, w.at(begin),
		pick(w, []string{"on_demand", "on_demand", "spot", "reserved"}))
	if w.chance(50) {
		facts += `,"region":` + pick(w, []string{`"r1"`, `"r2"`})
	}
	if w.chance(30) {
		facts += `,"resumed":true`
	}
	for range 1 + w.IntN(4) {
		from := begin + w.IntN(5000) - 20
		length := w.IntN(4000)
		this := held
		if w.chance(4) {
			this = strings.Replace(held, `"`, `"x`, 1) // a SKU that nobody sells
		}
		if w.chance(4) {
			this = `"gpu":"1e2"`
		}
		w.event("usage.held.v1", fmt.Sprintf(`%s,"start":%q,"end":%q,"held":{%s}`, facts, w.at(from),
			w.at(from+length), this))
	}
	for range w.IntN(3) {
		from := begin + w.IntN(4000) - 100
		w.event("usage.void.v1", fmt.Sprintf(`"tenant":%q,"session":"s%d","start":%q,"end":%q,`+
			`"reason":"r","by":"b"`, tenant, n, w.at(from), w.at(from+w.IntN(3000))))
	}
}
