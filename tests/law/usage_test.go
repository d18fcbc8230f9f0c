package law

import (
	"fmt"
	"strings"
	"time"
)

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
	for range w.IntN(8) {
		w.market()
	}
	for s := range 1 + w.IntN(5) {
		w.session(s)
	}
	for range w.IntN(5) {
		w.consumed()
	}
	for range w.IntN(3) {
		w.events = append(w.events, w.broken())
	}
	w.Shuffle(len(w.events), func(i, j int) { w.events[i], w.events[j] = w.events[j], w.events[i] })
	return w.events
}

// market draws a price, sometimes at the instant of another one or in a currency of its own.
func (w *world) market() {
	at := w.at(w.IntN(12 * 3600))
	if w.chance(50) {
		at = w.start.Add(time.Hour).Format("2006-01-02T15:04:05Z07:00")
	}
	data := fmt.Sprintf(`"sku":"spotty","region":%q,"price":"%d.%d","time":%q`,
		pick(w, []string{"r1", "r2"}), w.IntN(30), w.IntN(10), at)
	if w.chance(15) {
		data += `,"currency":` + pick(w, []string{`"CNY"`, `"USD"`, `"EUR"`, `null`})
	}
	if w.chance(15) {
		data += `,"per":` + pick(w, []string{`"hour"`, `"day"`, `"week"`})
	}
	w.event("market.price.v1", data)
}

// consumed draws an amount of one or two SKUs, some of which are not for sale by the unit.
func (w *world) consumed() {
	amounts := fmt.Sprintf(`%q:"%d.%d"`, pick(w, []string{"tokens", "egress", "gpu"}), w.IntN(50),
		w.IntN(1_000_000_000))
	if w.chance(30) {
		amounts = fmt.Sprintf(`"tokens":%d,"egress":0.%d`, 1+w.IntN(50), 1+w.IntN(1_000_000_000))
	}
	data := fmt.Sprintf(`"tenant":%q,"project":"p","time":%q,"consumed":{%s}`,
		pick(w, []string{"acme", "blue", "late"}), w.at(w.IntN(14*3600)), amounts)
	if w.chance(20) {
		data += `,"purchase":` + pick(w, []string{`"spot"`, `"per_task"`, `""`, `"gift"`, `null`})
	}
	if w.chance(20) {
		data += `,"region":"r1","labels":{"team":"a"}`
	}
	w.event("usage.consumed.v1", data)
}

// broken draws what is refused for its form, or is of no account to a bill.
func (w *world) broken() string {
	return pick(w, []string{
		`[]`, `{"id":"x"`, `{"id":"x"} {}`, `null`, `{}`, `{"type":"suanpan.usage.held.v1"}`,
		`{"specversion":"1.0","id":"t","source":"/s","type":"suanpan.other.v1","data":{}}`,
		`{"specversion":"0.3","id":"v","source":"/s","type":"suanpan.usage.void.v1","data":{}}`,
		`{"specversion":"1.0","id":"n","source":"/s","type":"suanpan.usage.void.v1","data":{"tenant":` +
			`"acme","session":"s0","start":"2026-01-31T12:00:00Z","end":"2026-01-31T12:00:01Z",` +
			`"reason":"r","by":null}}`,
		`{"specversion":"1.0","id":"w","source":"/s","type":"suanpan.usage.void.v1","data":{"tenant":` +
			`"acme","session":"s0","start":"2026-01-31T12:00:00Z","end":"2026-02-01T12:00:00.1Z",` +
			`"reason":"r","by":"b"}}`,
		`{"specversion":"1.0","id":"m","source":"/s","type":"suanpan.market.price.v1","data":{"sku":` +
			`"spotty","region":"r1","price":"0","time":"2026-01-31T12:00:00Z"}}`,
		`{"specversion":"1.0","id":"c","source":"/s","type":"suanpan.usage.consumed.v1","data":` +
			`{"tenant":"acme","project":"p","time":"2026-02-30T12:00:00Z","consumed":{"tokens":"1"}}}`,
	})
}

func (w *world) session(n int) {
	tenant := pick(w, []string{"acme", "acme", "acme", "blue", "blue", "blue", "late", "nobody"})
	if tenant == "nobody" && w.chance(70) {
		tenant = "acme"
	}
	begin := w.IntN(10 * 3600)
	if w.chance(20) {
		begin = 3000 // around the prices that tie
	}
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
			this = pick(w, []string{
				`"gpu":"1e2"`, `"gpu":1e2`, `"gpu":-1`, `"gpu":"1.0000"`,
				`"gpu":"0001.5"`, `"gpu":"0"`, `"gpu":"1234567890123456"`, `"cpu":"1.2345"`, ``,
			})
		}
		told := facts
		if w.chance(4) { // a fact that changes
			told += pick(w, []string{`,"node":"n2"`, `,"labels":{"a":"b"}`, `,"node":""`, `,"labels":null`})
		}
		if w.chance(2) {
			length = pick(w, []int{86_400, 86_401, 0})
		}
		w.event("usage.held.v1", fmt.Sprintf(`%s,"start":%q,"end":%q,"held":{%s}`, told, w.at(from),
			w.at(from+length), this))
	}
	for range w.IntN(3) {
		from := begin + w.IntN(4000) - 100
		w.event("usage.void.v1", fmt.Sprintf(`"tenant":%q,"session":"s%d","start":%q,"end":%q,`+
			`"reason":"r","by":"b"`, tenant, n, w.at(from), w.at(from+w.IntN(3000))))
	}
}
