package ubl

import (
	"fmt"
	"math/big"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/money"
)

// group is the tax of one category and rate: no two subtotals may have the same.
type group struct {
	billing.Tax
	taxable, tax money.Amount
	lines        []int
}

// taxes sums the taxes by category and rate, sets the net amounts of the lines so that they add up
// to them, and returns the sum of what is taxed, too.
func (r *rendering) taxes() (taxTotal, money.Amount) {
	var groups []*group
	find := func(t *billing.LineTax) *group {
		for _, g := range groups {
			if g.Category == t.Category && g.Rate == t.Rate {
				return g
			}
		}
		groups = append(groups, &group{Tax: billing.Tax{LineTax: *t}})
		return groups[len(groups)-1]
	}
	for _, t := range r.Taxes {
		g := find(&t.LineTax)
		g.taxable, g.tax = g.taxable.Add(parse(t.Taxable)), g.tax.Add(parse(t.Tax))
		g.Reason, g.ReasonCode = t.Reason, t.ReasonCode
	}
	for i := range r.Lines {
		g := find(r.Lines[i].Tax)
		g.lines = append(g.lines, i)
	}
	r.nets = make([]money.Amount, len(r.Lines))
	var sum, taxed money.Amount
	out := taxTotal{}
	for _, g := range groups {
		g.round(r)
		sum, taxed = sum.Add(g.taxable), taxed.Add(g.tax)
		c := category{ID: g.Category, Percent: g.Rate, Scheme: vat}
		c.Reason, c.ReasonCode = g.Reason, g.ReasonCode
		if g.Category == "O" {
			c.Percent = ""
		}
		out.Subtotals = append(out.Subtotals, taxSubtotal{r.amount(g.taxable), r.amount(g.tax), c})
	}
	out.Amount = r.amount(taxed)
	return out, sum
}

// round brings the group, and the net amounts of its lines, to the decimals that are allowed.
func (g *group) round(r *rendering) {
	nets := make([]money.Amount, len(g.lines))
	for i, at := range g.lines {
		nets[i] = parse(r.Lines[at].Net)
	}
	exact := money.Sum(nets)
	rounded := exact.Round(r.digits(), money.HalfUp)
	if rounded.Cmp(exact) != 0 { // a currency of three decimals
		rate := parse(g.Rate)
		g.tax = rounded.Mul(rate).MulRatio(big.NewInt(1), big.NewInt(100), r.digits(), money.HalfUp)
	}
	g.taxable, g.tax = rounded, g.tax.Round(r.digits(), money.HalfUp)
	for i, net := range money.Allocate(rounded, nets, r.digits()) {
		r.nets[g.lines[i]] = net
	}
}

func (r *rendering) total(excluding, tax money.Amount) monetaryTotal {
	including := excluding.Add(tax)
	t := monetaryTotal{
		Lines: r.amount(excluding), TaxExclusive: r.amount(excluding),
		TaxInclusive: r.amount(including), Payable: r.amount(r.round(r.Due)),
	}
	var prepaid money.Amount
	for _, p := range r.Prepaid {
		prepaid = prepaid.Add(parse(p.Amount))
	}
	prepaid = prepaid.Round(r.digits(), money.HalfUp)
	if prepaid.Sign() != 0 {
		paid := r.amount(prepaid)
		t.Prepaid = &paid
	}
	if rest := r.round(r.Due).Sub(including.Sub(prepaid)); rest.Sign() != 0 {
		rounding := r.amount(rest)
		t.Rounding = &rounding
	}
	return t
}

// seconds is what one unit of a price is held for.
var seconds = map[string]string{
	"second": "1", "hour": "3600", "day": "86400", "month": "2628000",
}

const (
	unitSecond = "SEC"
	unitOne    = "C62"
)

func (r *rendering) line(i int) line {
	l := &r.Lines[i]
	net := r.nets[i]
	out := line{
		ID: fmt.Sprint(i + 1), Amount: r.amount(net), Period: period{l.Start, l.End},
		Item: item{Name: name(l), Category: category{
			ID: l.Tax.Category, Percent: l.Tax.Rate, Scheme: vat,
		}},
	}
	if l.Tax.Category == "O" {
		out.Item.Category.Percent = ""
	}
	if l.Description != "" {
		out.Item.Description = l.Description
	}
	if r.priced(l, net) {
		out.Invoiced = &quantity{unitOne, trim(l.Quantity)}
		out.Price = price{Amount: amount{r.Currency, l.UnitPrice}}
		if base, held := seconds[l.Per]; held && l.Unit == "unit-second" {
			out.Invoiced.Unit = unitSecond
			out.Price.Base = &quantity{unitSecond, base}
		}
		return out
	}
	one := "1"
	if net.Sign() < 0 {
		one, net = "-1", net.Neg() // a price may not be negative
	}
	out.Invoiced = &quantity{unitOne, one}
	out.Price = price{Amount: r.amount(net)}
	out.Note = explanation(l, r.Currency)
	return out
}

// priced reports whether quantity x price gives the amount, as the rules check it.
func (r *rendering) priced(l *billing.Line, net money.Amount) bool {
	unit, q := parse(l.UnitPrice), parse(l.Quantity)
	if l.Kind != billing.UsageLine || l.Tax.Inclusive || l.Package != "" || len(l.Tiers) > 0 ||
		unit.Sign() < 0 || q.Sign() <= 0 {
		return false
	}
	base, ok := seconds[l.Per]
	if !ok || l.Unit != "unit-second" {
		base = "1"
	}
	den, err := parse(base).Scaled(0)
	if err != nil {
		panic("BUG: a unit has a fraction of a second")
	}
	product := unit.Mul(q).MulRatio(big.NewInt(1), den, places, money.HalfUp)
	diff := product.Sub(net)
	if diff.Sign() < 0 {
		diff = diff.Neg()
	}
	return diff.Cmp(tolerance) <= 0
}

// tolerance is how far quantity x price may be from the amount of a line (PEPPOL-EN16931-R120).
var tolerance = money.MustParse("0.02")

// trim drops the zeros at the end of a decimal.
func trim(decimal string) string { return parse(decimal).String() }

// name says what is sold.
func name(l *billing.Line) string {
	switch l.Kind {
	case billing.UsageLine:
		return fmt.Sprintf("%s, %s, %s", l.SKU, l.Purchase, l.Band)
	case billing.LateLine:
		if l.SKU != "" {
			return fmt.Sprintf("%s, %s, %s, late usage of %s", l.SKU, l.Purchase, l.Band, l.UsagePeriod)
		}
		return "Late usage of " + l.UsagePeriod
	case billing.CreditLine:
		if l.Grant != "" {
			return "Credit " + l.Grant
		}
		return "Credit"
	case billing.CommitmentLine, billing.AllowanceLine, billing.MinimumLine:
	}
	return string(l.Kind)
}

// explanation says what a line of 1 x amount is made of.
func explanation(l *billing.Line, currency string) string {
	if l.Kind != billing.UsageLine {
		text := ""
		for i := range l.Details {
			d := &l.Details[i]
			if i > 0 {
				text += "; "
			}
			text += fmt.Sprintf("%s, %s, %s: %s %s, %s %s", d.SKU, d.Purchase, d.Band, trim(d.Quantity),
				d.Unit, d.Amount, currency)
		}
		return text
	}
	text := fmt.Sprintf("%s %s", trim(l.Quantity), l.Unit)
	switch {
	case l.Package != "":
		text += fmt.Sprintf(" in packages of %s", l.Package)
	case len(l.Tiers) > 0:
		for i, t := range l.Tiers {
			if parse(t.Quantity).Sign() == 0 {
				continue
			}
			text += fmt.Sprintf("; tier %d: %s at %s %s per %s", i+1, trim(t.Quantity), t.UnitPrice,
				currency, l.Per)
		}
	default:
		text += fmt.Sprintf(" at %s %s per %s", l.UnitPrice, currency, l.Per)
	}
	return text
}
