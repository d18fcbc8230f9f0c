package rating

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
)

// Sums are the quantities of charges.
type Sums map[Charge]metering.Quantity

// Add adds a quantity to a charge.
func (s Sums) Add(c *Charge, q metering.Quantity) { s[*c] = s[*c].Add(q) }

// Settled is what a charge costs.
type Settled struct {
	Charge
	Quantity  metering.Quantity
	BaseUnit  string       // "unit-second" or "unit"
	UnitPrice money.Amount // of the first unit, with the band's multiplier
	Per       catalog.Per  // what UnitPrice is for, unless units are sold in packages
	ListNano  *big.Int     // billionths of the base unit that UnitPrice buys: a Per, or a package
	Amount    money.Amount // exact to money.Scale decimals
	Currency  string
}

// Settle prices sums: it puts the curve of each charge over its sum, once. The result is in the
// order of the charges and depends on nothing else. It fails where the catalog lacks a version.
func Settle(sums Sums, from *catalog.Catalog) ([]Settled, error) {
	settled := make([]Settled, 0, len(sums))
	charges := slices.SortedFunc(maps.Keys(sums), func(a, b Charge) int { return a.Compare(&b) })
	for _, charge := range charges { // in order, so that errors are the same each time
		quantity := sums[charge]
		if quantity.Sign() < 0 {
			return nil, fmt.Errorf("settle charge %s of tenant %s: its quantity is %s: its rows were not "+
				"all rated by this catalog", charge.Key(), charge.Tenant, quantity)
		}
		curve, err := CurveOf(&charge, from)
		if err != nil {
			return nil, fmt.Errorf("settle charge of tenant %s: %w", charge.Tenant, err)
		}
		settled = append(settled, Settled{
			Charge: charge, Quantity: quantity,
			BaseUnit: curve.price.Per.Base(), UnitPrice: curve.unit, Per: curve.price.Per,
			ListNano: curve.Sold(), Amount: curve.Total(quantity), Currency: curve.currency,
		})
	}
	return settled, nil
}

// SummaryHeader is the first line of a summary.
const SummaryHeader = "tenant,billing_period,sku,purchase,band," +
	"base_quantity,base_unit,amount,currency"

// Summary adds settled charges up by tenant, period, SKU, purchase and band and prints them as CSV
// lines without the header, in bytewise order of these columns. What comes to nothing is left out.
func Summary(settled []Settled) []string {
	type key struct{ tenant, period, sku, purchase, band, unit, currency string }
	type total struct {
		quantity metering.Quantity
		amount   money.Amount
	}
	totals := make(map[key]total)
	for i := range settled {
		s := &settled[i]
		k := key{s.Tenant, s.Period, s.SKU, s.Purchase, s.Band, s.BaseUnit, s.Currency}
		t := totals[k]
		totals[k] = total{t.quantity.Add(s.Quantity), t.amount.Add(s.Amount)}
	}
	type line struct {
		key  key
		text string
	}
	var lines []line
	for k, t := range totals {
		if t.quantity.Sign() == 0 {
			continue
		}
		lines = append(lines, line{k, strings.Join([]string{
			quoteCSV(k.tenant), k.period, quoteCSV(k.sku), k.purchase, quoteCSV(k.band),
			t.quantity.String(), k.unit, t.amount.Fixed(money.Scale), k.currency,
		}, ",")})
	}
	slices.SortFunc(lines, func(a, b line) int {
		return slices.Compare(
			[]string{a.key.tenant, a.key.period, a.key.sku, a.key.purchase, a.key.band, a.text},
			[]string{b.key.tenant, b.key.period, b.key.sku, b.key.purchase, b.key.band, b.text})
	})
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = l.text
	}
	return out
}

// quoteCSV quotes a field where RFC 4180 asks for it.
func quoteCSV(s string) string {
	if !strings.ContainsAny(s, ",\"\r\n") {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}
