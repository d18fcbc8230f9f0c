package rating

import (
	"testing"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
)

// The list amount of a line item is before ladders, and for what is sold in packages by the part of
// a package that it is.
func TestLineItems_listAmountOfPackages(t *testing.T) {
	documents, err := catalog.Parse("packages.yaml", []byte(`
kind: PriceBook
name: public
currency: CNY
timezone: UTC
prices: [{sku: tokens.trained, per: unit, package: "1000", price: "0.50"}]
---
{kind: Tenant, name: acme, price_book: public}
`))
	if err != nil {
		t.Fatal(err)
	}
	prices, err := catalog.New(documents)
	if err != nil {
		t.Fatal(err)
	}
	offline := NewOffline(prices)
	var e metering.Event
	why := metering.NewParser().Parse([]byte(`{"specversion":"1.0","type":"suanpan.usage.consumed.v1","source":"/t","id":"1",`+
		`"data":{"tenant":"acme","project":"p","time":"2026-01-05T00:00:00Z",`+
		`"consumed":{"tokens.trained":"1500"}}}`), &e)
	if why == nil {
		why = offline.Rate(&e)
	}
	if why != nil {
		t.Fatal(why)
	}
	items, err := offline.Ledger().LineItems(prices)
	if err != nil {
		t.Fatal(err)
	}
	if len(items) != 1 || items[0].ListAmount != "0.750000000000" ||
		items[0].Amount != "1.000000000000" {
		t.Errorf("the line items are %+v", items)
	}
}
