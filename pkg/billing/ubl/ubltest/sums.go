package ubltest

import (
	"math/big"

	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/money"
)

// finish rounds the lines, as drafts do, and fills in the taxes and what is due.
func (d *drawing) finish() {
	subtotal := money.Sum(d.exact).Round(d.places, money.HalfUp)
	amounts := money.Allocate(subtotal, d.exact, d.places)
	for i := range d.Lines {
		d.Lines[i].Amount = amounts[i].Fixed(d.places)
	}
	total, taxes := subtotal, money.Amount{}
	for at := range d.allowed {
		taxed, tax, some := d.levy(at, amounts)
		if !some {
			continue
		}
		taxes = taxes.Add(tax.tax)
		if !d.allowed[at].Inclusive {
			total = total.Add(tax.tax)
		}
		d.Taxes = append(d.Taxes, taxed)
	}
	d.Subtotal, d.TaxTotal = subtotal.Fixed(d.places), taxes.Fixed(d.places)
	d.UnroundedTotal = money.Sum(d.exact).Fixed(money.Scale)
	due := total
	if total.Sign() > 0 && rapid.Bool().Draw(d.t, "prepaid") {
		paid := total.MulRatio(big.NewInt(rapid.Int64Range(1, 10).Draw(d.t, "tenths")), big.NewInt(10),
			d.places, money.HalfUp)
		d.Prepaid = []billing.Paid{{Grant: "top-up", Amount: paid.Fixed(d.places)}}
		due = due.Sub(paid)
	}
	d.Total, d.Due = total.Fixed(d.places), due.Fixed(d.places)
}

// levied is what lines of one treatment are taxed.
type levied struct{ net, tax money.Amount }

// levy taxes the lines of one treatment. It reports false where there is none.
func (d *drawing) levy(at int, amounts []money.Amount) (billing.Tax, levied, bool) {
	t := d.allowed[at]
	rate := money.MustParse(t.Rate)
	var sum money.Amount
	var lines []int
	var parts []money.Amount
	for i := range d.Lines {
		if d.of[i] == at {
			lines, sum = append(lines, i), sum.Add(amounts[i])
			parts = append(parts, netOf(amounts[i], t, rate, 2*money.Scale))
		}
	}
	if len(lines) == 0 {
		return billing.Tax{}, levied{}, false
	}
	out := levied{net: netOf(sum, t, rate, d.places)}
	out.tax = sum.Sub(out.net)
	if !t.Inclusive {
		out.tax = sum.Mul(rate).MulRatio(big.NewInt(1), big.NewInt(100), d.places, money.HalfUp)
	}
	for i, net := range money.Allocate(out.net, parts, d.places) {
		d.Lines[lines[i]].Net = net.Fixed(d.places)
	}
	return billing.Tax{
		LineTax: t.LineTax, Taxable: out.net.Fixed(d.places), Tax: out.tax.Fixed(d.places),
		Reason: t.reason, ReasonCode: t.code,
	}, out, true
}

// netOf is an amount without the tax that it includes.
func netOf(gross money.Amount, t treatment, rate money.Amount, places int) money.Amount {
	if !t.Inclusive {
		return gross
	}
	den, err := rate.Add(money.MustParse("100")).Scaled(4)
	if err != nil {
		panic("BUG: a rate has more than four decimals")
	}
	return gross.MulRatio(big.NewInt(1_000_000), den, places, money.HalfUp)
}
