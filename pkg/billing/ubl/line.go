package ubl

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/money"
)

// seconds is what one unit of a price is held for.
var seconds = map[string]string{
	"second": "1", "hour": "3600", "day": "86400", "month": "2628000",
}

// Unit codes of UN/ECE Recommendation 20.
const (
	unitSecond = "SEC"
	unitOne    = "C62"
)

// line makes a line: quantity x price where that is its amount, else 1 x amount with what the
// amount consists of in the note.
func (r *rendering) line(i int) line {
	l := &r.Lines[i]
	net := r.nets[i]
	out := line{
		ID: strconv.Itoa(i + 1), Amount: r.amount(net), Period: r.period(l),
		Item: item{
			Name: name(l), Description: l.Description,
			Category: category{ID: l.Tax.Category, Percent: l.Tax.Rate, Scheme: vat},
		},
	}
	if l.Tax.Category == outside {
		out.Item.Category.Percent = ""
	}
	if l.SKU != "" {
		out.Item.SKU = &reference{l.SKU}
	}
	if priced(l, net) {
		out.Invoiced = &quantity{unitOne, trim(l.Quantity)}
		out.Price = price{Amount: amount{r.Currency, trim(l.UnitPrice)}}
		if base, held := seconds[l.Per]; held && l.Unit == unitHeld {
			out.Invoiced.Unit = unitSecond
			out.Price.Base = &quantity{unitSecond, base}
		}
		return out
	}
	out.Invoiced = &quantity{unitOne, "1"}
	if net.Sign() < 0 { // a price may not be negative
		out.Invoiced.Value, net = "-1", net.Neg()
	}
	out.Price = price{Amount: r.amount(net)}
	out.Note = explanation(l, r.Currency)
	return out
}

// period is the days of a line.
func (r *rendering) period(l *billing.Line) period {
	if l.Start == "" || l.End == "" {
		return period{r.PeriodStart, r.PeriodEnd}
	}
	return period{l.Start, l.End}
}

// unitHeld is the unit of what is held for a time, as lines have it.
const unitHeld = "unit-second"

// measured reports whether a line has the usage of one SKU at one price.
func measured(l *billing.Line) bool {
	return (l.Kind == billing.UsageLine || l.Kind == billing.LateLine) && l.SKU != "" &&
		len(l.Details) == 0
}

// priced reports whether quantity x price gives the amount, as the rules check it. Prices are
// printed without tax, so those that include it do not.
func priced(l *billing.Line, net money.Amount) bool {
	unit, q := parse(l.UnitPrice), parse(l.Quantity)
	if !measured(l) || l.Tax.Inclusive || l.Package != "" || len(l.Tiers) > 0 ||
		unit.Sign() < 0 || q.Sign() == 0 {
		return false
	}
	base, ok := seconds[l.Per]
	if !ok || l.Unit != unitHeld {
		base = "1"
	}
	den, err := parse(base).Scaled(0)
	if err != nil {
		panic("BUG: a unit has a fraction of a second")
	}
	diff := unit.Mul(q).MulRatio(bigOne, den, money.Scale, money.HalfUp).Sub(net)
	if diff.Sign() < 0 {
		diff = diff.Neg()
	}
	return diff.Cmp(tolerance) <= 0
}

// tolerance is how far quantity x price may be from the amount of a line: that is where the largest
// remainders left it. PEPPOL-EN16931-R120 allows 0.02.
var tolerance = money.MustParse("0.01")

// name says what is sold.
func name(l *billing.Line) string {
	kind := map[billing.LineKind]string{
		billing.UsageLine: "Usage", billing.CommitmentLine: "Commitment",
		billing.AllowanceLine: "Allowance", billing.MinimumLine: "Minimum spend",
		billing.CreditLine: "Credit", billing.LateLine: "Late usage of " + l.UsagePeriod,
	}[l.Kind]
	var parts []string
	switch l.Kind {
	case billing.UsageLine:
		parts = []string{l.SKU, l.Purchase, l.Band}
	case billing.LateLine:
		parts = []string{l.SKU, l.Purchase, l.Band, kind}
	case billing.CreditLine:
		parts = []string{kind, l.Grant, l.SKU}
	case billing.CommitmentLine, billing.AllowanceLine, billing.MinimumLine:
		parts = []string{kind, l.SKU}
	}
	return join(", ", parts...)
}

// join joins the texts that are not empty.
func join(separator string, texts ...string) string {
	out := ""
	for _, text := range texts {
		if text != "" && out != "" {
			out += separator
		}
		out += text
	}
	return out
}

// explanation says what a line of 1 x amount is made of: "" where the amount says it all.
func explanation(l *billing.Line, currency string) string {
	var parts []string
	for i := range l.Details {
		d := &l.Details[i]
		parts = append(parts, fmt.Sprintf("%s: %s %s, %s %s", join(", ", d.SKU, d.Purchase, d.Band),
			trim(d.Quantity), d.Unit, d.Amount, currency))
	}
	if !measured(l) {
		return strings.Join(parts, "; ")
	}
	text := fmt.Sprintf("%s %s", trim(l.Quantity), l.Unit)
	switch {
	case l.Package != "":
		text += fmt.Sprintf(", sold in packages of %s", l.Package)
	case len(l.Tiers) > 0:
		for i, t := range l.Tiers {
			if parse(t.Quantity).Sign() != 0 {
				text += fmt.Sprintf("; tier %d: %s at %s %s per %s", i+1, trim(t.Quantity), t.UnitPrice,
					currency, l.Per)
			}
		}
	case l.Average:
		text += fmt.Sprintf(" at %s %s per %s on average", l.UnitPrice, currency, l.Per)
	default:
		text += fmt.Sprintf(" at %s %s per %s", l.UnitPrice, currency, l.Per)
	}
	if l.Tax.Inclusive {
		text += fmt.Sprintf("; %s %s with tax", l.Amount, currency)
	}
	return text
}
