package rating

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
)

// curve returns the curve of the only price of a book.
func curve(t *testing.T, price, band string) Curve {
	t.Helper()
	documents, err := catalog.Parse("curve.yaml", []byte(`
kind: PriceBook
name: public
currency: CNY
timezone: UTC
bands:
- {name: night, when: [{from: "22:00", to: "06:00"}]}
prices:
- {sku: a, `+price+`}
`))
	if err != nil {
		t.Fatal(err)
	}
	prices, err := catalog.New(documents)
	if err != nil {
		t.Fatal(err)
	}
	c, err := CurveOf(&Charge{
		Tenant: "acme", Book: "public", BookVersion: catalog.Always, SKU: "a", Purchase: "on_demand",
		Band: band, Period: "2026-01",
	}, prices)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// nano reads a quantity with nine decimals.
func nano(t *testing.T, text string) metering.Quantity {
	t.Helper()
	r, ok := new(big.Rat).SetString(text)
	if !ok || !r.Mul(r, big.NewRat(1_000_000_000, 1)).IsInt() {
		t.Fatalf("%q is not a quantity", text)
	}
	q, err := metering.QuantityOf(r.Num())
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestTotal_boundaries(t *testing.T) {
	f := func(price, band, quantity, want string) {
		t.Helper()
		if got := curve(t, price, band).Total(nano(t, quantity)).Fixed(12); got != want {
			t.Errorf("{%s} in band %s: %s costs %s, want %s", price, band, quantity, got, want)
		}
	}
	const standard = "standard"
	const free = `per: unit, ladder: {mode: graduated, ` +
		`tiers: [{up_to: "250", price: "0"}, {price: "2"}]}`
	f(free, standard, "0", "0.000000000000")
	f(free, standard, "250", "0.000000000000")
	f(free, standard, "250.000000001", "0.000000002000")
	f(free, standard, "251", "2.000000000000")

	// Tiers of 0 to 5 and from 5 on: there is no gap for 5.5 to fall into.
	const gap = `per: unit, ladder: {mode: graduated, tiers: [{up_to: "5", price: "1"}, ` +
		`{up_to: "10", price: "0.5"}, {price: "0.1"}]}`
	f(gap, standard, "5.5", "5.250000000000")
	f(gap, standard, "10", "7.500000000000")
	f(gap, standard, "10.000000001", "7.500000000100")

	// Fractional limits count in the price's unit: 0.5 h are 1800 unit-seconds.
	const hours = `per: hour, ladder: {mode: graduated, tiers: [{up_to: "0.5", price: "36"}, ` +
		`{price: "3.6"}]}, bands: {night: {multiplier: "0.1"}}`
	f(hours, standard, "1800", "18.000000000000")
	f(hours, standard, "1801", "18.001000000000")
	f(hours, "night", "1801", "1.800100000000")

	const volume = `per: unit, ladder: {mode: volume, ` +
		`tiers: [{up_to: "10", price: "3"}, {price: "2"}]}`
	f(volume, standard, "10", "30.000000000000")
	f(volume, standard, "10.000000001", "20.000000002000")

	const packs = `per: unit, package: "100", price: "9.90"`
	f(packs, standard, "0", "0.000000000000")
	f(packs, standard, "0.000000001", "9.900000000000")
	f(packs, standard, "100", "9.900000000000")
	f(packs, standard, "100.000000001", "19.800000000000")
	f(`per: hour, package: "0.5", price: "1"`, standard, "1801", "2.000000000000")

	// Rounded once, a half away from zero.
	f(`per: hour, price: "0.0000000018"`, standard, "1", "0.000000000001")
	f(`per: hour, price: "0.0000000017999"`, standard, "1", "0.000000000000")
	f(`per: second, price: "0.015"`, standard, "10.9", "0.163500000000")
	f(`per: month, price: "730"`, standard, "3600", "1.000000000000")
	f(`per: day, price: "1999.99"`, standard, "86400", "1999.990000000000")
}

// TestRate_manyForAMonth holds the largest amount that an event may have for all of January: no sum
// and no product on the way may wrap or lose a digit.
func TestRate_manyForAMonth(t *testing.T) {
	const price = "999999999999999.999999999999999999"
	documents, err := catalog.Parse("big.yaml", []byte(fmt.Sprintf(`
{kind: Tenant, name: acme, price_book: public}
---
kind: PriceBook
name: public
currency: CNY
timezone: UTC
prices:
- {sku: flat, per: second, price: %q}
- {sku: steps, per: second, ladder: {mode: graduated,
    tiers: [{up_to: "1", price: "0"}, {price: %q}]}}
`, price, price)))
	if err != nil {
		t.Fatal(err)
	}
	prices, err := catalog.New(documents)
	if err != nil {
		t.Fatal(err)
	}
	const first, seconds = int64(1_767_225_600), int64(31 * 86_400)
	const milli int64 = 999_999_999_999_999_999
	offline := NewOffline(prices)
	for day := range int64(31) {
		e := heldEvent("s", first+day*86_400, first+(day+1)*86_400)
		e.SessionStart = metering.InstantOf(first)
		e.Amounts = []metering.Amount{{SKU: "flat", Milli: milli}, {SKU: "steps", Milli: milli}}
		if why := offline.Rate(e); why != nil {
			t.Fatal(why)
		}
	}
	settled, err := Settle(offline.Ledger().Sums(), prices)
	if err != nil {
		t.Fatal(err)
	}
	unit, _ := new(big.Rat).SetString(price)
	for i := range settled {
		s := &settled[i]
		quantity := new(big.Rat).Mul(big.NewRat(milli, 1000), big.NewRat(seconds, 1))
		if got, want := s.Quantity.String(), quantity.FloatString(9); got != want {
			t.Errorf("%s: quantity %s, want %s", s.SKU, got, want)
		}
		if s.SKU == "steps" {
			quantity.Sub(quantity, big.NewRat(1, 1))
		}
		if got, want := s.Amount.Fixed(12), quantity.Mul(quantity, unit).FloatString(12); got != want {
			t.Errorf("%s: amount %s, want %s", s.SKU, got, want)
		}
	}
	if len(settled) != 2 {
		t.Errorf("%d charges", len(settled))
	}
}
