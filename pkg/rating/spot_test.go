package rating

import (
	"testing"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
)

// TestCurveOf_spotOfManyDecimals clamps to a floor that has more decimals than a price may have.
func TestCurveOf_spotOfManyDecimals(t *testing.T) {
	documents, err := catalog.Parse("spot.yaml", []byte(`
kind: Tenant
name: acme
price_book: public
---
kind: PriceBook
name: public
currency: CNY
timezone: UTC
prices:
- {sku: gpu, per: hour, price: "0.000000000000000001"}
- {sku: gpu, purchase: spot, per: hour, market: {floor: "0.000000001", cap: "1"}}
`))
	if err != nil {
		t.Fatal(err)
	}
	prices, err := catalog.New(documents)
	if err != nil {
		t.Fatal(err)
	}
	q, ok := prices.Quote(catalog.Query{Tenant: "acme", SKU: "gpu", Purchase: "spot"}, 3600)
	if !ok || q.Spot != "0.000000000000000000000000001" {
		t.Fatalf("spot price is %q, %v; want the floor, 1e-27", q.Spot, ok)
	}
	charge := chargeOf("acme", &q)
	curve, err := CurveOf(&charge, prices)
	if err != nil {
		t.Fatal(err)
	}
	if got := curve.Total(metering.HeldFor(1000, 3600)).String(); got != "0" {
		t.Errorf("an hour costs %s, want what rounds to 0", got)
	}
}
