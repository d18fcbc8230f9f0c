package clickhouse

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/rating"
)

const worldCatalog = `
kind: Tenant
name: acme
price_book: public
---
kind: Tenant
name: 蓝-co
price_book: public
---
kind: PriceBook
name: public
currency: CNY
timezone: Asia/Shanghai
effective_from: "2025-12-01T00:00:00+08:00"
rounding: half_up
bands:
  - name: off_peak
    when: [{from: "22:00", to: "08:00"}]
prices:
  - sku: gpu.flat
    per: hour
    price: "7.77"
    minimum: 60s
    bands: {off_peak: {multiplier: "0.617"}}
  - sku: gpu.ladder
    per: hour
    ladder:
      mode: graduated
      tiers: [{up_to: "10", price: "30"}, {up_to: "25.5", price: "27.53"}, {price: "24.01"}]
  - sku: gpu.volume
    per: day
    ladder:
      mode: volume
      window: hour
      tiers: [{up_to: "0.2", price: "99.7"}, {price: "80.3"}]
  - {sku: gpu.flat, purchase: spot, per: hour, market: {floor: "0.10", cap: "0.50"}}
  - {sku: network.egress, per: unit, package: "100", price: "9.90"}
  - {sku: tokens.trained, per: unit, price: "0.000000375"}
---
kind: Contract
name: term
tenant: acme
price_book: public
timezone: Asia/Shanghai
effective_from: "2026-02-01T02:30:00+08:00"
`

// hostile are names that a careless statement would trip over.
var hostile = []string{
	"plain", "it's", `back\slash`, `quote"`, "tick`", "new\nline", "tab\tcr\r",
	"'; DROP TABLE hours; --",
	`\'; --`, "{x:String}", "a|b", "账单🧮", "$1 ? @p :n", "%s%d", "nul\x00byte", `\`, "'", "",
}

func worldPrices(t testing.TB) *catalog.Catalog {
	t.Helper()
	documents, err := catalog.Parse("world.yaml", []byte(worldCatalog))
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.New(documents)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// world makes random events, rates them and drains the rater now and then.
type world struct {
	random  *rand.Rand
	catalog *catalog.Catalog
	rater   *rating.Rater
	changes []rating.Changes
	offset  int64
	hours   map[rating.HourKey]bool
}

func newWorld(t testing.TB, seed uint64) *world {
	prices := worldPrices(t)
	return &world{
		random: rand.New(rand.NewPCG(seed, 1)), catalog: prices,
		rater: rating.NewRater(prices, nil), hours: make(map[rating.HourKey]bool),
	}
}

func (w *world) pick(from ...string) string { return from[w.random.IntN(len(from))] }

// worldStart is shortly before a month ends in Shanghai, some hours before it does in UTC.
var worldStart = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func (w *world) run(t testing.TB, events int) {
	t.Helper()
	for i := range 4 {
		at := metering.Instant(worldStart.Add(time.Duration(i) * 5 * time.Hour).UnixNano())
		e := metering.Event{
			Kind: metering.MarketPrice, SKU: "gpu.flat", At: at,
			Price: w.pick("0.1", "1.234567", "3.1", "99"),
		}
		e.Region = "r1"
		if why := w.catalog.AddMarket(&e); why != nil {
			t.Fatal(why)
		}
	}
	w.more(t, events)
}

// more is run at the market prices that there are.
func (w *world) more(t testing.TB, events int) {
	t.Helper()
	rejected := 0
	for range events {
		w.offset++
		e := w.event()
		if why := w.rater.Rate(&e, rating.Position{Partition: 3, Offset: w.offset}, 1<<62); why != nil {
			if rejected++; rejected > events/2 {
				t.Fatalf("most events are rejected, such as %+v: %v", e, why)
			}
		}
		if w.random.IntN(20) == 0 {
			w.drain()
		}
	}
	w.drain()
}

func (w *world) drain() {
	changes := w.rater.Drain()
	for _, row := range changes.Hours {
		w.hours[row.HourKey] = true
	}
	for _, row := range changes.Voids {
		w.hours[row.HourKey] = true
	}
	w.changes = append(w.changes, changes)
}

func (w *world) event() metering.Event {
	tenant := w.pick("acme", "蓝-co")
	number := w.random.IntN(12)
	session := fmt.Sprintf("%d-%s", number, hostile[number%(len(hostile)-1)])
	anchor := worldStart.Add(time.Duration(number) * 71 * time.Minute).Unix()
	from := anchor + int64(w.random.IntN(30_000))
	e := metering.Event{Tenant: tenant, Source: w.pick(hostile...), ID: w.pick(hostile...)}
	e.Start = metering.Instant(from * 1e9)
	e.End = metering.Instant((from + 1 + int64(w.random.IntN(9000))) * 1e9)
	switch w.random.IntN(10) {
	case 0:
		e.Kind, e.Session = metering.Void, session
	case 1, 2:
		e.Kind, e.At = metering.Consumed, metering.Instant(from*1e9)
		e.Project, e.Region = w.pick(hostile...), w.pick("", "r1")
		e.Labels = []metering.Label{{Key: w.pick(hostile...), Value: w.pick(hostile...)}}
		if w.random.IntN(2) == 0 {
			e.Labels = append(e.Labels, metering.Label{
				Key: w.pick(rating.DimensionLabels[1:]...), Value: w.pick(hostile...),
			})
		}
		e.Amounts = []metering.Amount{
			{SKU: "network.egress", Nano: quantity(w.random.Int64N(1 << 40))},
			{SKU: "tokens.trained", Nano: quantity(1 + w.random.Int64N(1<<60))},
		}
	default:
		e.Kind, e.Session = metering.Held, session
		e.Project, e.Lease = hostile[number], "lease "+hostile[(number+3)%len(hostile)]
		e.Node, e.Region = hostile[(number+1)%len(hostile)], []string{"", "r1"}[number%2]
		e.Purchase = []metering.Purchase{"on_demand", "spot"}[number%2]
		e.SessionStart, e.Resumed = metering.Instant(anchor*1e9+123_456_789), number%5 == 0
		e.Start = max(e.Start, e.SessionStart)
		for i := range number % 3 {
			e.Labels = append(e.Labels, metering.Label{
				Key: fmt.Sprintf("%d", i) + hostile[(number+i)%len(hostile)], Value: hostile[number],
			})
		}
		for i, key := range rating.DimensionLabels[1:] {
			if number>>i%2 == 0 {
				e.Labels = append(e.Labels, metering.Label{Key: key, Value: hostile[(number+i)%7]})
			}
		}
		milli := int64(1 + number*333)
		e.Amounts = []metering.Amount{{SKU: "gpu.flat", Milli: milli}}
		if number%2 == 0 {
			e.Amounts = append(e.Amounts, metering.Amount{SKU: "gpu.ladder", Milli: 2 * milli},
				metering.Amount{SKU: "gpu.volume", Milli: 7})
		}
	}
	return e
}

func quantity(nano int64) metering.Quantity {
	q, err := metering.QuantityOf(big.NewInt(nano))
	if err != nil {
		panic(err)
	}
	return q
}

// need asks for all that the world has written, and for what it has not.
func (w *world) need() *rating.Need {
	need := &rating.Need{Sessions: make(map[rating.SessionKey]bool), Hours: w.hours}
	for key := range w.hours {
		need.Sessions[key.SessionKey] = true
	}
	for _, c := range w.changes {
		for _, s := range c.Sessions {
			need.Sessions[s.SessionKey] = true
		}
	}
	unknown := rating.SessionKey{Tenant: "nobody's", Session: `\`}
	need.Sessions[unknown] = true
	need.Hours[rating.HourKey{SessionKey: unknown}] = true
	return need
}
