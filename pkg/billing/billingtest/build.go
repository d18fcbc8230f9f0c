package billingtest

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/money"
)

// The decimals of unrounded amounts and of quantities.
const (
	exactPlaces    = 12
	quantityPlaces = 9
)

// seconds is how long what a price is for lasts; a price per unit is for one.
var seconds = map[string]int64{"unit": 1, "second": 1, "hour": 3600, "day": 86400, "month": 2628000}

// rat reads a decimal.
func rat(text string) *big.Rat {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		panic("BUG: no decimal: " + text)
	}
	return r
}

// fixed prints a number with so many decimals, a half rounded away from zero.
func fixed(r *big.Rat, places int) string {
	return money.New(whole(r, places), places).Fixed(places)
}

// whole returns r in units of 10^-places, a half rounded away from zero.
func whole(r *big.Rat, places int) *big.Int {
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil)
	scaled := new(big.Rat).Mul(r, new(big.Rat).SetInt(scale))
	double := new(big.Int).Mul(new(big.Int).Abs(scaled.Num()), big.NewInt(2))
	double.Add(double, scaled.Denom())
	n := double.Div(double, new(big.Int).Mul(scaled.Denom(), big.NewInt(2)))
	if scaled.Sign() < 0 {
		n.Neg(n)
	}
	return n
}

// allot rounds parts to so many decimals so that they add up to their rounded sum: by the largest
// remainder, the first of equals first.
func allot(parts []*big.Rat, places int) []string {
	sum := new(big.Rat)
	floors := make([]*big.Int, len(parts))
	rests := make([]*big.Rat, len(parts))
	order := make([]int, len(parts))
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil)
	left := new(big.Int)
	for i, p := range parts {
		sum.Add(sum, p)
		scaled := new(big.Rat).Mul(p, new(big.Rat).SetInt(scale))
		floors[i] = new(big.Int).Div(scaled.Num(), scaled.Denom()) // Euclid: the floor
		rests[i] = new(big.Rat).Sub(scaled, new(big.Rat).SetInt(floors[i]))
		order[i] = i
		left.Sub(left, floors[i])
	}
	left.Add(left, whole(sum, places))
	slices.SortStableFunc(order, func(a, b int) int { return rests[b].Cmp(rests[a]) })
	for _, i := range order[:left.Int64()] {
		floors[i].Add(floors[i], big.NewInt(1))
	}
	texts := make([]string, len(parts))
	for i, n := range floors {
		texts[i] = money.New(n, places).Fixed(places)
	}
	return texts
}

// usage makes a usage line of the document's period; finish fills in what follows.
func usage(sku, purchase, band, quantity, price, per string) billing.Line {
	unit := "unit-second"
	if per == "unit" {
		unit = "unit"
	}
	exact := new(big.Rat).Mul(rat(quantity), rat(price))
	exact.Quo(exact, new(big.Rat).SetInt64(seconds[per]))
	return billing.Line{
		Kind: billing.UsageLine, SKU: sku, Purchase: purchase, Band: band,
		Quantity: quantity, Unit: unit, UnitPrice: price, Per: per,
		Exact: fixed(exact, exactPlaces),
	}
}

// sum makes a line of one piece that costs what it costs.
func sum(kind billing.LineKind, sku, description, exact string) billing.Line {
	return billing.Line{
		Kind: kind, SKU: sku, Description: description, Quantity: "1", Unit: "unit",
		UnitPrice: exact, Per: "unit", Exact: fixed(rat(exact), exactPlaces),
	}
}

// split divides the line's quantity: name, percent, name, percent ... The amounts follow.
func split(quantity string, names ...any) []billing.Share {
	var shares []billing.Share
	for i := 0; i < len(names); i += 2 {
		part := new(big.Rat).Mul(rat(quantity), big.NewRat(int64(names[i+1].(int)), 100))
		shares = append(shares, billing.Share{
			Name: names[i].(string), Quantity: fixed(part, quantityPlaces),
		})
	}
	return shares
}

// finish fills in the dates of the lines and all amounts.
func finish(d *billing.Document, places int, tax *billing.LineTax, reason, code string) {
	d.Schema = billing.Schema
	if d.Lines == nil {
		d.Lines = []billing.Line{}
	}
	exact := make([]*big.Rat, len(d.Lines))
	unrounded := new(big.Rat)
	for i := range d.Lines {
		l := &d.Lines[i]
		complete(d, l, tax)
		exact[i] = rat(l.Exact)
		if l.Grant == "" {
			unrounded.Add(unrounded, exact[i])
		}
	}
	d.UnroundedTotal = fixed(unrounded, exactPlaces)
	net := make([]*big.Rat, len(d.Lines))
	subtotal := new(big.Rat)
	for i, amount := range allot(exact, places) {
		d.Lines[i].Amount = amount
		fill(&d.Lines[i], places)
		subtotal.Add(subtotal, rat(amount))
		net[i] = rat(amount)
		if tax != nil && tax.Inclusive {
			net[i].Quo(net[i], new(big.Rat).Add(big.NewRat(1, 1), percent(tax)))
		}
	}
	for i, amount := range allot(net, places) {
		d.Lines[i].Net = amount
	}
	d.Subtotal = fixed(subtotal, places)
	total(d, places, tax, subtotal)
	if tax != nil && len(d.Taxes) > 0 {
		d.Taxes[0].Reason, d.Taxes[0].ReasonCode = reason, code
	}
}

// complete fills in what a line has of its document.
func complete(d *billing.Document, l *billing.Line, tax *billing.LineTax) {
	l.UsagePeriod = cmp.Or(l.UsagePeriod, d.Period)
	l.Start, l.End = cmp.Or(l.Start, d.PeriodStart), cmp.Or(l.End, d.PeriodEnd)
	l.Tax = tax
	l.Quantity = fixed(rat(l.Quantity), quantityPlaces)
	for i := range l.Tiers {
		l.Tiers[i].Quantity = fixed(rat(l.Tiers[i].Quantity), quantityPlaces)
	}
	for i := range l.Details {
		detail := &l.Details[i]
		detail.UsagePeriod, detail.Start, detail.End = l.UsagePeriod, l.Start, l.End
		detail.Tax = tax
		detail.Quantity = fixed(rat(detail.Quantity), quantityPlaces)
	}
}

// fill gives the shares and the details of a line their part of its amount.
func fill(l *billing.Line, places int) {
	b := &l.Breakdown
	for _, list := range [][]billing.Share{
		b.Projects, b.Teams, b.Models, b.ModelVersions, b.Stages,
	} {
		parts := make([]*big.Rat, len(list))
		for i, s := range list {
			parts[i] = new(big.Rat).Mul(rat(l.Amount), rat(s.Quantity))
			parts[i].Quo(parts[i], rat(l.Quantity))
		}
		for i, amount := range allot(parts, places) {
			list[i].Amount = amount
		}
	}
	parts := make([]*big.Rat, len(l.Details))
	for i := range l.Details {
		parts[i] = rat(l.Details[i].Exact)
	}
	for i, amount := range allot(parts, places) {
		l.Details[i].Amount, l.Details[i].Net = amount, amount
	}
}

// percent returns the rate of a tax as a ratio.
func percent(tax *billing.LineTax) *big.Rat {
	return new(big.Rat).Quo(rat(tax.Rate), big.NewRat(100, 1))
}

// total fills in the taxes and what is to be paid.
func total(d *billing.Document, places int, tax *billing.LineTax, subtotal *big.Rat) {
	d.Taxes = []billing.Tax{}
	taxed, sum := new(big.Rat), new(big.Rat).Set(subtotal)
	if tax != nil && len(d.Lines) > 0 {
		taxable := new(big.Rat).Set(subtotal)
		if tax.Inclusive {
			net := new(big.Rat).Quo(subtotal, new(big.Rat).Add(big.NewRat(1, 1), percent(tax)))
			taxable = rat(fixed(net, places))
			taxed.Sub(subtotal, taxable)
		} else {
			taxed = rat(fixed(new(big.Rat).Mul(subtotal, percent(tax)), places))
			sum.Add(sum, taxed)
		}
		d.Taxes = append(d.Taxes, billing.Tax{
			LineTax: *tax, Taxable: fixed(taxable, places), Tax: fixed(taxed, places),
		})
	}
	d.TaxTotal = fixed(taxed, places)
	d.Total = fixed(sum, places)
	if d.Prepaid == nil {
		d.Prepaid = []billing.Paid{}
	}
	for _, p := range d.Prepaid {
		sum.Sub(sum, rat(p.Amount))
	}
	d.Due = fixed(sum, places)
	if d.Notes == nil {
		d.Notes = []string{}
	}
	d.Proof = billing.Proof{
		Rows: 2976, TimeZoneData: "2026b", Partition: 17, CloseOffset: 481516,
		RowsSHA256:    "9f2c6a1b7d3e4f5061728394a5b6c7d8e9fa0b1c2d3e4f5061728394a5b6c7d8",
		CatalogOffset: 42, MarketOffset: 2342,
	}
}

// number prints a number of a series.
func number(series string, n int) string { return fmt.Sprintf("%s-2026-%d", series, n) }
