package billingtest

import (
	"fmt"
	"math/big"

	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/money"
)

// taxes are treatments that random lines have.
var taxes = []*billing.LineTax{
	nil,
	{Category: "S", Rate: "19"},
	{Category: "S", Rate: "7.7"},
	{Category: "AE", Rate: "0"},
	{Category: "S", Rate: "10", Inclusive: true},
	{Category: "S", Rate: "8", Inclusive: true},
}

// Random draws an issued document of October 2026 whose amounts add up as those of real ones: lines
// of all kinds, some with tax that the price includes, some with details, and balances. The n makes
// its number and its tenant unique.
func Random(t *rapid.T, n int) *billing.Document {
	buyer := Nordlicht()
	buyer.Name = fmt.Sprint("tenant-", n)
	currency := rapid.SampledFrom([]string{"JPY", "EUR", "KWD"}).Draw(t, "currency")
	d := october(number("RE", n), Rheinland(), buyer, currency, "Europe/Berlin")
	d.Schema = billing.Schema
	places, _ := money.Digits(currency)
	if rapid.Bool().Draw(t, "credit note") {
		id := rapid.SampledFrom([]string{"late-2026-10", "goodwill"}).Draw(t, "id")
		d.Type, d.IssueDate, d.DueDate = billing.CreditNote, "2026-10-30", ""
		d.Cites = &billing.Citation{Number: "RE-2026-0", Reason: "fault", ID: id}
	}
	var exact []money.Amount
	for i := range rapid.IntRange(0, 6).Draw(t, "lines") {
		l := randomLine(t, d, fmt.Sprint("gpu.m", i))
		exact = append(exact, must(l.Exact))
		d.Lines = append(d.Lines, l)
	}
	subtotal := money.Sum(exact).Round(places, money.HalfUp)
	for i, a := range money.Allocate(subtotal, exact, places) {
		d.Lines[i].Amount = a.Fixed(places)
	}
	d.Subtotal = subtotal.Fixed(places)
	levy(d, subtotal, places)
	if total := must(d.Total); d.Type == billing.Invoice && total.Sign() > 0 {
		paid := total.MulRatio(big.NewInt(rapid.Int64Range(0, 100).Draw(t, "paid")), big.NewInt(100),
			places, money.Down)
		d.Prepaid = []billing.Paid{{Grant: "top-up", Amount: paid.Fixed(places)}}
		d.Due = total.Sub(paid).Fixed(places)
	}
	return d
}

func randomLine(t *rapid.T, d *billing.Document, sku string) billing.Line {
	kinds := []billing.LineKind{
		billing.UsageLine, billing.UsageLine, billing.LateLine, billing.CommitmentLine,
		billing.AllowanceLine, billing.MinimumLine, billing.CreditLine,
	}
	l := billing.Line{
		Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), SKU: sku, Purchase: "on_demand",
		Band: "standard", UsagePeriod: d.Period, Start: d.PeriodStart, End: d.PeriodEnd,
		Tax: rapid.SampledFrom(taxes).Draw(t, "tax"), Quantity: "1", UnitPrice: "1", Per: "hour",
	}
	amount := func() money.Amount {
		pico := rapid.Int64Range(-1_000_000_000, 100_000_000_000_000_000).Draw(t, "amount")
		return money.New(big.NewInt(pico), money.Scale)
	}
	l.Exact = amount().Fixed(money.Scale)
	if l.Kind == billing.CreditLine && rapid.Bool().Draw(t, "promo") {
		l.Grant = "welcome"
	}
	if l.Kind == billing.LateLine {
		l.UsagePeriod = "2026-09"
		var sum money.Amount
		for i := range rapid.IntRange(0, 3).Draw(t, "details") {
			detail := l
			detail.SKU, detail.Exact = fmt.Sprint(sku, "-", i), amount().Fixed(money.Scale)
			sum = sum.Add(must(detail.Exact))
			l.Details = append(l.Details, detail)
		}
		if len(l.Details) > 0 {
			l.SKU, l.Exact = "", sum.Fixed(money.Scale)
		}
	}
	return l
}

// levy fills in the net amounts, the taxes and the totals.
func levy(d *billing.Document, subtotal money.Amount, places int) {
	total, all := subtotal, money.Amount{}
	for _, tax := range taxes {
		var of []*billing.Line
		var sum money.Amount
		for i := range d.Lines {
			if d.Lines[i].Tax == tax {
				of, sum = append(of, &d.Lines[i]), sum.Add(must(d.Lines[i].Amount))
			}
		}
		if len(of) == 0 {
			continue
		}
		taxable, taxed := sum, money.Amount{}
		switch {
		case tax == nil:
		case tax.Inclusive:
			taxable = netOf(sum, tax, places)
			taxed = sum.Sub(taxable)
		default:
			taxed = sum.Mul(must(tax.Rate)).MulRatio(big.NewInt(1), big.NewInt(100), places, money.HalfUp)
			total = total.Add(taxed)
		}
		nets(of, taxable, tax, places)
		if tax != nil {
			all = all.Add(taxed)
			d.Taxes = append(d.Taxes, billing.Tax{
				LineTax: *tax, Taxable: taxable.Fixed(places), Tax: taxed.Fixed(places),
			})
		}
	}
	d.TaxTotal, d.Total, d.Due = all.Fixed(places), total.Fixed(places), total.Fixed(places)
}

// nets fills in the net amounts of the lines of one tax, and their details.
func nets(of []*billing.Line, taxable money.Amount, tax *billing.LineTax, places int) {
	parts := make([]money.Amount, len(of))
	for i, l := range of {
		parts[i] = netOf(must(l.Amount), tax, 2*money.Scale)
	}
	for i, net := range money.Allocate(taxable, parts, places) {
		l := of[i]
		l.Net = net.Fixed(places)
		if len(l.Details) == 0 {
			continue
		}
		exact, details := make([]money.Amount, len(l.Details)), make([]*billing.Line, len(l.Details))
		for j := range l.Details {
			details[j], exact[j] = &l.Details[j], must(l.Details[j].Exact)
		}
		// Late amounts differ by less than a unit from their line, by which it was rounded.
		rounded := money.Sum(exact).Round(places, money.HalfUp)
		for j, a := range money.Allocate(rounded, exact, places) {
			details[j].Amount = a.Fixed(places)
		}
		first := must(details[0].Amount).Add(must(l.Amount).Sub(rounded))
		details[0].Amount = first.Fixed(places)
		if tax == nil || !tax.Inclusive {
			for j := range details {
				details[j].Net = details[j].Amount
			}
			continue
		}
		nets(details, netOf(must(l.Amount), tax, places), tax, places)
	}
}

// netOf is an amount without the tax that it includes.
func netOf(gross money.Amount, tax *billing.LineTax, places int) money.Amount {
	if tax == nil || !tax.Inclusive {
		return gross
	}
	rate, err := must(tax.Rate).Add(must("100")).Scaled(3)
	if err != nil {
		panic("BUG: a rate has more than 3 decimals")
	}
	return gross.MulRatio(big.NewInt(100_000), rate, places, money.HalfUp)
}

// must reads an amount.
func must(text string) money.Amount {
	a, err := money.ParseSigned(text)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return a
}
