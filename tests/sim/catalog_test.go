package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
)

// book is the text of a price book version. Prices go up with its number; from the second one on it
// has one SKU more.
func (f *fleet) book(number int, from time.Time, increment int64) string {
	price := func(base int) string { return fmt.Sprintf("%d.%02d", base+number, 17*number%100) }
	later := ""
	if number > 1 {
		later = `{"sku":"gpu.later","per":"hour","price":"3"},`
	}
	return fmt.Sprintf(`{"kind":"PriceBook","name":"public","currency":"USD",`+
		`"timezone":"America/New_York","effective_from":%q,`+
		`"bands":[{"name":"night","when":[{"from":"23:00","to":"05:00"}]}],"prices":[%s`+
		`{"sku":"gpu.a","per":"hour","price":%q,"minimum":"60s","bands":{"night":{"multiplier":"0.5"}}},`+
		`{"sku":"gpu.a","purchase":"spot","per":"hour","market":{"floor":"0.3","cap":"0.9"}},`+
		`{"sku":"gpu.b","per":"hour","price":%q,"increment":"%ds"},`+
		`{"sku":"gpu.b","purchase":"reserved","region":"us-east","per":"day","price":%q},`+
		`{"sku":"cpu.core","per":"hour","ladder":{"mode":"graduated","window":"hour",`+
		`"tiers":[{"up_to":"1.5","price":"0.05%d"},{"price":"0.03"}]}},`+
		`{"sku":"mem.gib","per":"hour","ladder":{"mode":"volume",`+
		`"tiers":[{"up_to":"10","price":"0.004"},{"price":"0.003%d"}]}},`+
		`{"sku":"tokens","per":"unit","package":"1000","price":"0.2%d"},`+
		`{"sku":"license","per":"unit","price":"5.%d"}]}`,
		stamp(from), later, price(2), price(7), increment, price(99), number, number, number, number)
}

// catalog has the price book and the tenants published before the run, and in it versions that
// readers take in and versions that they must ignore.
func (f *fleet) catalog(duration time.Duration) {
	w := f.w
	past := w.start.Add(-90 * 24 * time.Hour)
	before := w.start.Add(-10 * time.Minute)
	publish := func(at time.Time, batch, text string) {
		f.deliver(at, pipeline.Record{
			Topic: schemas.TopicCatalog, Value: []byte(text),
			Headers: []pipeline.Header{{Key: pipeline.HeaderBatch, Value: []byte(batch)}},
		}, 0)
	}
	publish(before, "first", f.book(0, past, f.longest))
	publish(before.Add(time.Second), "first", f.book(1, past.Add(24*time.Hour), f.longest))
	if w.months != nil {
		publish(before, "first", fmt.Sprintf(`{"kind":"Seller","name":"cloud","legal_name":"Cloud Ltd",`+
			`"timezone":"Asia/Tokyo","effective_from":%q}`, stamp(past)))
	}
	if w.months != nil {
		f.money(publish, past, before)
	}
	for _, t := range tenants {
		publish(before.Add(2*time.Second), "first", fmt.Sprintf(
			`{"kind":"Tenant","name":%q,"price_book":"public","effective_from":%q}`, t, stamp(past)))
	}
	lead := time.Duration(f.longest) * time.Second
	for i, batch := range []string{"b", "c", "d"} {
		at := w.start.Add(w.between(0, duration/2))
		from := at.Add(lead + w.between(20*time.Second, 20*time.Minute))
		if w.chance(400) { // too early: it changes what may have been rated
			from = at.Add(w.between(-10*time.Minute, lead-time.Second))
		}
		publish(at, batch, f.book(2+i, from.Truncate(time.Second), f.longest))
		if w.chance(300) { // another version that starts together with it
			publish(at.Add(w.between(0, time.Minute)), batch+"x",
				f.book(7, from.Truncate(time.Second), f.longest))
		}
	}
	contract := func(at, from, end time.Time) {
		publish(at, "k", fmt.Sprintf(`{"kind":"Contract","name":"coral-%d","tenant":"coral",`+
			`"price_book":"public","timezone":"Asia/Shanghai","effective_from":%q,"end":%q}`,
			from.Unix(), stamp(from), stamp(end)))
	}
	at := w.start.Add(w.between(0, duration/3))
	from := at.Add(lead + w.between(30*time.Second, 10*time.Minute)).Truncate(time.Second)
	contract(at, from, from.Add(25*time.Minute))
	contract(at.Add(time.Minute), at.Add(-5*time.Minute).Truncate(time.Second),
		at.Add(-time.Minute).Truncate(time.Second))
	publish(w.start.Add(duration/3), "late", fmt.Sprintf(
		`{"kind":"Tenant","name":"acme","price_book":"none","effective_from":%q}`,
		stamp(w.start.Add(duration/4))))
	publish(w.start.Add(w.between(0, duration/2)), "new", fmt.Sprintf(
		`{"kind":"Tenant","name":%q,"price_book":"public","effective_from":%q}`, newcomer, stamp(past)))
	publish(w.start.Add(duration/4), "bad", `{"kind":"PriceBook"`)
}

// money has tenants taxed, and some of them have money in advance.
func (f *fleet) money(publish func(time.Time, string, string), past, before time.Time) {
	publish(before, "first", fmt.Sprintf(`{"kind":"TaxRule","name":"vat","category":"S","rate":"7.5",`+
		`"effective_from":%q}`, stamp(past)))
	from := before.Add(time.Duration(f.longest+1) * time.Second)
	for i, t := range tenants {
		source := []string{"paid", "promo"}[f.w.rng.IntN(2)]
		if source == "promo" { // what a gift paid is not given back
			f.w.months.given[t] = true
		}
		publish(before, "first", fmt.Sprintf(`{"kind":"Grant","name":"grant-%d","tenant":%q,`+
			`"amount":"%d.35","currency":"USD","source":%q,"effective_from":%q}`, i, t,
			f.w.rng.IntN(40), source, stamp(from)))
	}
}

// market has spot prices published: in time, too late, or wrong.
func (f *fleet) market(duration time.Duration) {
	w := f.w
	for at := w.start; at.Before(w.start.Add(duration)); {
		at = at.Add(w.between(5*time.Second, 100*time.Second))
		region := []string{"us-east", "eu-west"}[w.rng.IntN(2)]
		switch n := w.rng.IntN(20); {
		case n < 14:
			ahead := []time.Duration{10 * time.Second, 90 * time.Second}[w.rng.IntN(2)]
			f.spot(at, at.Add(w.between(0, ahead)), region, nil)
		case n < 17:
			f.spot(at, at.Add(-w.between(time.Millisecond, 10*time.Minute)), region, nil)
		case n < 18:
			f.spot(at, at.Add(time.Minute), region, map[string]any{"currency": "EUR"})
		case n < 19:
			f.spot(at, at.Add(time.Minute), region, map[string]any{"price": "-1"})
		default:
			f.deliver(at, pipeline.Record{
				Topic: schemas.TopicMarket, Value: []byte(f.value(schemas.TypeQueue, &intent{kind: "other"},
					map[string]any{"pool": "a", "time": stamp(at), "depth": 3, "wait_seconds": 9})),
			}, 0)
		}
	}
}

// spot has a spot price published at one instant that holds from another one on.
func (f *fleet) spot(at, holds time.Time, region string, more map[string]any) {
	data := map[string]any{
		"sku": "gpu.a", "region": region, "time": stamp(holds),
		"price": fmt.Sprintf("%d.%02d", f.w.rng.IntN(4), f.w.rng.IntN(100)+1),
	}
	for k, v := range more {
		data[k] = v
	}
	value := f.value(schemas.TypeMarketPrice, &intent{kind: "market", end: holds}, data)
	f.deliver(at, pipeline.Record{Topic: schemas.TopicMarket, Value: []byte(value)}, 0)
}

// published is a document as the auditor reads it.
type published struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	From  string `json:"effective_from"`
	text  string
	batch string
}

// effective works out, by the rules alone, which documents all readers take in.
func effective(records []pipeline.Record, longest int64) (texts []string, ignored int) {
	var taken []published
	firsts := make(map[string]string)
	for _, r := range records {
		p := published{text: string(r.Value), batch: string(r.Headers[0].Value)}
		if json.Unmarshal(r.Value, &p) != nil {
			ignored++
			continue
		}
		id := p.Kind + "/" + p.Name
		first, seen := firsts[id]
		from, err := time.Parse(time.RFC3339Nano, p.From)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		may := p.Kind != "Contract" && p.Kind != "Grant" && (!seen || first == p.batch)
		if !may && from.Unix() < r.Time.Unix()+longest {
			ignored++
			continue
		}
		twin := slices.IndexFunc(taken, func(q published) bool {
			return q.Kind == p.Kind && q.Name == p.Name && q.From == p.From
		})
		switch {
		case twin >= 0 && taken[twin].text != p.text:
			ignored++
		case twin < 0:
			taken = append(taken, p)
			if !seen {
				firsts[id] = p.batch
			}
		}
	}
	for _, p := range taken {
		texts = append(texts, strings.TrimSpace(p.text))
	}
	return texts, ignored
}
