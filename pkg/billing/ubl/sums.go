package ubl

import (
	"math/big"
	"slices"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/money"
)

// group is the tax of one category and rate: no two subtotals may have the same.
type group struct {
	billing.LineTax
	taxable, tax   money.Amount
	reasons, codes []string
	lines          []int
}

var (
	one    = money.MustParse("1")
	bigOne = big.NewInt(1)
)

// taxes sums the taxes by category and rate, sets the net amounts of the lines so that they add up
// to them, and returns the sum of what is taxed, too.
func (r *rendering) taxes() (taxTotal, money.Amount) {
	var groups []*group
	find := func(t *billing.LineTax) *group {
		for _, g := range groups {
			if g.Category == t.Category && trim(g.Rate) == trim(t.Rate) {
				return g
			}
		}
		groups = append(groups, &group{LineTax: *t})
		return groups[len(groups)-1]
	}
	for i := range r.Taxes {
		t := &r.Taxes[i]
		g := find(&t.LineTax)
		g.taxable, g.tax = g.taxable.Add(parse(t.Taxable)), g.tax.Add(parse(t.Tax))
		g.because(t)
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
		c := g.category()
		if g.Category == outside && !r.both("DE") { // where a rate is demanded
			c.Percent = ""
		}
		out.Subtotals = append(out.Subtotals, taxSubtotal{r.amount(g.taxable), r.amount(g.tax), c})
	}
	out.Amount = r.amount(taxed)
	return out, sum
}

// because adds why there is no tax.
func (g *group) because(t *billing.Tax) {
	if !exempt(t.Category) {
		return
	}
	if t.Reason != "" && !slices.Contains(g.reasons, t.Reason) {
		g.reasons = append(g.reasons, t.Reason)
	}
	if t.ReasonCode != "" && !slices.Contains(g.codes, t.ReasonCode) {
		g.codes = append(g.codes, t.ReasonCode)
	}
}

// category is how the group is taxed. A code that no list has, and the codes of several reasons,
// are left out: the reasons say the same.
func (g *group) category() category {
	c := category{ID: g.Category, Percent: g.Rate, Scheme: vat, Reason: join("; ", g.reasons...)}
	if len(g.codes) == 1 && known(reasonCodes, g.codes[0]) {
		c.ReasonCode = g.codes[0]
	}
	return c
}

// exempt reports whether there is a reason for the tax of a category, which is 0.
func exempt(category string) bool { return known(" E AE O G K ", category) }

// reasonCodes are the codes of reasons for no tax (BR-CL-22).
const reasonCodes = " VATEX-EU-79-C VATEX-EU-132 VATEX-EU-132-1A VATEX-EU-132-1B VATEX-EU-132-1C" +
	" VATEX-EU-132-1D VATEX-EU-132-1E VATEX-EU-132-1F VATEX-EU-132-1G VATEX-EU-132-1H" +
	" VATEX-EU-132-1I VATEX-EU-132-1J VATEX-EU-132-1K VATEX-EU-132-1L VATEX-EU-132-1M" +
	" VATEX-EU-132-1N VATEX-EU-132-1O VATEX-EU-132-1P VATEX-EU-132-1Q VATEX-EU-135-1" +
	" VATEX-EU-143 VATEX-EU-143-1A VATEX-EU-143-1B VATEX-EU-143-1C VATEX-EU-143-1D" +
	" VATEX-EU-143-1E VATEX-EU-143-1F VATEX-EU-143-1FA VATEX-EU-143-1G VATEX-EU-143-1H" +
	" VATEX-EU-143-1I VATEX-EU-143-1J VATEX-EU-143-1K VATEX-EU-143-1L VATEX-EU-144" +
	" VATEX-EU-146-1E VATEX-EU-148 VATEX-EU-148-A VATEX-EU-148-B VATEX-EU-148-C VATEX-EU-148-D" +
	" VATEX-EU-148-E VATEX-EU-148-F VATEX-EU-148-G VATEX-EU-151 VATEX-EU-151-1A VATEX-EU-151-1AA" +
	" VATEX-EU-151-1B VATEX-EU-151-1C VATEX-EU-151-1D VATEX-EU-151-1E VATEX-EU-153 VATEX-EU-159" +
	" VATEX-EU-309 VATEX-EU-AE VATEX-EU-D VATEX-EU-F VATEX-EU-G VATEX-EU-I VATEX-EU-IC" +
	" VATEX-EU-J VATEX-EU-O VATEX-FR-FRANCHISE VATEX-FR-CNWVAT VATEX-FR-CGI261-1" +
	" VATEX-FR-CGI261-2 VATEX-FR-CGI261-3 VATEX-FR-CGI261-4 VATEX-FR-CGI261-5 VATEX-FR-CGI261-7" +
	" VATEX-FR-CGI261-8 VATEX-FR-CGI261A VATEX-FR-CGI261B VATEX-FR-CGI261C-1 VATEX-FR-CGI261C-2" +
	" VATEX-FR-CGI261C-3 VATEX-FR-CGI261D-1 VATEX-FR-CGI261D-1BIS VATEX-FR-CGI261D-2" +
	" VATEX-FR-CGI261D-3 VATEX-FR-CGI261D-4 VATEX-FR-CGI261E-1 VATEX-FR-CGI261E-2" +
	" VATEX-FR-CGI275 VATEX-FR-CGI277A VATEX-FR-298SEXDECIESA VATEX-FR-CGI295 VATEX-FR-AE "

// round brings the group, and the net amounts of its lines, to the decimals that are allowed.
func (g *group) round(r *rendering) {
	nets := make([]money.Amount, len(g.lines))
	for i, at := range g.lines {
		nets[i] = parse(r.Lines[at].Net)
	}
	exact := money.Sum(nets)
	rounded := exact.Round(r.digits(), money.HalfUp)
	rated := rounded.Mul(parse(g.Rate)).MulRatio(bigOne, big.NewInt(100), places, money.HalfUp)
	off := g.tax.Sub(rated)
	if off.Sign() < 0 {
		off = off.Neg()
	}
	// A currency of three decimals, or one without decimals in which some prices include the tax and
	// some do not: each is rounded by itself, and the rules allow less than 1 in all (BR-CO-17).
	if rounded.Cmp(exact) != 0 || off.Cmp(one) >= 0 {
		g.tax = rated
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
