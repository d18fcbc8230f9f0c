package billing

import (
	"math/big"
	"slices"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/money"
)

// treatment is how lines are taxed, comparable. Its category is "" where no rule says anything.
type treatment struct {
	LineTax
	reason, reasonCode string
}

func treatmentOf(t catalog.TaxTreatment) treatment {
	return treatment{LineTax{t.Category, t.Rate.String(), t.Inclusive}, t.Reason, t.ReasonCode}
}

// treatment is how a SKU is taxed that was used in a period: by the rules in force in its last
// second, as a service that goes on is supplied when its period ends.
func (d *drafting) treatment(sku, period string) treatment {
	_, until, ok := d.Catalog.PeriodBounds(d.Tenant, d.Contract, period)
	if d.seller == nil || !ok {
		return treatment{}
	}
	t, ok := d.Catalog.Tax(d.seller.Name, d.buyer, sku, until-1)
	if !ok {
		return treatment{}
	}
	return treatmentOf(t)
}

func (t *treatment) line() *LineTax {
	if t.Category == "" {
		return nil
	}
	tax := t.LineTax
	return &tax
}

// taxed are the amounts of one treatment: what is taxed, without the tax, and the tax.
type taxed struct {
	treatment
	taxable, tax money.Amount
}

// gross is what is paid for it.
func (t *taxed) gross() money.Amount { return t.taxable.Add(t.tax) }

// levy works the tax on a sum of rounded lines out.
func (t *treatment) levy(sum money.Amount, digits int) taxed {
	out := taxed{treatment: *t, taxable: sum}
	if t.Category == "" {
		return out
	}
	rate := parse(t.Rate)
	hundred := big.NewInt(100)
	if !t.Inclusive {
		out.tax = sum.Mul(rate).MulRatio(big.NewInt(1), hundred, digits, money.HalfUp)
		return out
	}
	out.taxable = t.net(sum, digits)
	out.tax = sum.Sub(out.taxable)
	return out
}

// net is an amount without the tax that it includes, rounded to the given decimals.
func (t *treatment) net(gross money.Amount, places int) money.Amount {
	if t.Category == "" || !t.Inclusive {
		return gross
	}
	// gross / (1 + rate/100) = gross x 100 x 10^k / ((100 + rate) x 10^k), in whole numbers
	divisor, err := parse(t.Rate).Add(money.New(big.NewInt(100), 0)).Scaled(catalog.MaxRatePlaces)
	if err != nil {
		panic("BUG: a tax rate has too many decimals: " + err.Error())
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(catalog.MaxRatePlaces+2), nil)
	return gross.MulRatio(scale, divisor, places, money.HalfUp)
}

// groupTaxes sums rounded lines by treatment, in the order of their first lines.
func groupTaxes(lines []draftLine, amounts []money.Amount, digits int) []taxed {
	var groups []treatment
	var sums []money.Amount
	for i := range lines {
		at := slices.Index(groups, lines[i].treatment)
		if at < 0 {
			at = len(groups)
			groups, sums = append(groups, lines[i].treatment), append(sums, money.Amount{})
		}
		sums[at] = sums[at].Add(amounts[i])
	}
	out := make([]taxed, len(groups))
	for i := range groups {
		out[i] = groups[i].levy(sums[i], digits)
	}
	return out
}

// taxedOf reads the amounts of a document by treatment.
func taxedOf(d *Document) []taxed {
	out := make([]taxed, 0, len(d.Taxes)+1)
	for _, t := range d.Taxes {
		out = append(out, taxed{
			treatment{t.LineTax, t.Reason, t.ReasonCode}, parse(t.Taxable), parse(t.Tax),
		})
	}
	var free money.Amount
	untaxed := false
	for i := range d.Lines {
		if d.Lines[i].Tax == nil {
			free, untaxed = free.Add(parse(d.Lines[i].Amount)), true
		}
	}
	if untaxed {
		out = append(out, taxed{taxable: free})
	}
	return out
}

// setTaxes writes the taxes and what follows from them.
func (d *Document) setTaxes(groups []taxed, subtotal money.Amount, digits int) {
	total, taxTotal := subtotal, money.Amount{}
	d.Taxes = []Tax{}
	for i := range groups {
		g := &groups[i]
		if g.Category == "" {
			continue
		}
		taxTotal = taxTotal.Add(g.tax)
		if !g.Inclusive {
			total = total.Add(g.tax)
		}
		d.Taxes = append(d.Taxes, Tax{
			LineTax: g.LineTax, Taxable: g.taxable.Fixed(digits), Tax: g.tax.Fixed(digits),
			Reason: g.reason, ReasonCode: g.reasonCode,
		})
	}
	d.Subtotal, d.TaxTotal = subtotal.Fixed(digits), taxTotal.Fixed(digits)
	d.Total = total.Fixed(digits)
	d.Due = d.Total
}
