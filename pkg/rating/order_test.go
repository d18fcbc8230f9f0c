package rating

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/suanpan/suanpan/pkg/metering"
)

// TestLineItems_orderIsTheContents rates what differs in nothing but its labels: the line items
// must not come in the order of chance.
func TestLineItems_orderIsTheContents(t *testing.T) {
	prices := lawPrices(t)
	nano := metering.HeldFor(1000, 1)
	want := ""
	for range 10 {
		offline := NewOffline(prices)
		for i := range 20 {
			e := metering.Event{
				Kind: metering.Consumed, Tenant: "acme", Source: "/g", ID: fmt.Sprint(i),
				Facts: metering.Facts{
					Project: "p", Purchase: "on_demand",
					Labels: []metering.Label{{Key: "team", Value: fmt.Sprint(i)}},
				},
				At:      metering.InstantOf(lawBase),
				Amounts: []metering.Amount{{SKU: "tokens", Nano: nano}},
			}
			if why := offline.Rate(&e); why != nil {
				t.Fatal(why)
			}
		}
		items, err := offline.Ledger().LineItems(prices)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(items)
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			want = string(text)
		}
		if string(text) != want {
			at := 0
			for text[at] == want[at] {
				at++
			}
			t.Fatalf("the same events have line items in two orders, from byte %d on:\n%.80s\n%.80s",
				at, text[at:], want[at:])
		}
	}
}
