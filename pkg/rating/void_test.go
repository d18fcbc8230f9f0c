package rating

import (
	"testing"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
)

// TestRate_voidWhoseRowsWereLost replays a void of which the store has the void row, but not the
// rows that it changed: a write landed in part, and its rater died before it could repeat it.
func TestRate_voidWhoseRowsWereLost(t *testing.T) {
	prices := replayCatalog(t)
	held := replayEvent(t, `"type":"suanpan.usage.held.v1","data":{"tenant":"acme","project":"p",`+
		`"lease":"l","session":"s","session_start":"2026-01-05T02:00:00Z","purchase":"on_demand",`+
		`"start":"2026-01-05T02:00:00Z","end":"2026-01-05T02:10:00Z","held":{"gpu":"1"}}`)
	void := replayEvent(t, `"type":"suanpan.usage.void.v1","data":{"tenant":"acme","session":"s",`+
		`"start":"2026-01-05T02:01:00Z","end":"2026-01-05T02:02:00Z","reason":"r","by":"b"}`)

	first := NewRater(prices, nil)
	replayRate(t, first, held, 0)
	stored := NewLedger()
	changes := first.Drain()
	stored.Apply(&changes)
	replayRate(t, first, void, 1)
	changes = first.Drain()
	stored.Apply(&Changes{Voids: changes.Voids}) // and not the hours

	second := NewRater(prices, stored.Stored())
	need := new(Need)
	second.Need(void, need)
	if err := second.Load(need, stored.Find(need)); err != nil {
		t.Fatal(err)
	}
	replayRate(t, second, void, 1)
	changes = second.Drain()
	stored.Apply(&changes)
	for charge, quantity := range stored.Sums() {
		if got, want := quantity.String(), "540.000000000"; got != want {
			t.Errorf("%s comes to %s, want %s: the void is lost", charge.Key(), got, want)
		}
	}
}

func replayCatalog(t *testing.T) *catalog.Catalog {
	t.Helper()
	documents, err := catalog.Parse("test", []byte(`
kind: Tenant
name: acme
price_book: public
---
kind: PriceBook
name: public
currency: USD
timezone: UTC
prices: [{sku: gpu, per: hour, price: "1"}]
`))
	if err != nil {
		t.Fatal(err)
	}
	prices, err := catalog.New(documents)
	if err != nil {
		t.Fatal(err)
	}
	return prices
}

func replayEvent(t *testing.T, rest string) *metering.Event {
	t.Helper()
	e := new(metering.Event)
	text := `{"specversion":"1.0","id":"1","source":"/t",` + rest + `}`
	if rejection := metering.NewParser().Parse([]byte(text), e); rejection != nil {
		t.Fatal(rejection)
	}
	return e
}

func replayRate(t *testing.T, r *Rater, e *metering.Event, offset int64) {
	t.Helper()
	if rejection := r.Rate(e, Position{Offset: offset}, 0); rejection != nil {
		t.Fatal(rejection)
	}
}
