package billing

import (
	"math/big"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/rating"
)

// finish rounds the lines, once, and gives the invoice its lines, taxes and balances.
func (d *drafting) finish(doc *Document, lines []draftLine) {
	exact := make([]money.Amount, len(lines))
	for i := range lines {
		exact[i] = lines[i].exact
	}
	sum := money.Sum(exact)
	doc.UnroundedTotal = sum.Fixed(money.Scale)
	total := sum.Round(d.digits, d.rounding)
	amounts := money.Allocate(total, exact, d.digits)
	promos, amounts := d.promo(lines, amounts)
	lines = append(lines, promos...)
	d.setLines(doc, lines, amounts)
	doc.setTaxes(groupTaxes(lines, amounts, d.digits), money.Sum(amounts), d.digits)
	d.prepay(doc)
}

// setLines writes the lines with their rounded amounts.
func (d *drafting) setLines(doc *Document, lines []draftLine, amounts []money.Amount) {
	nets := d.nets(lines, amounts)
	for i := range lines {
		doc.Lines = append(doc.Lines, d.line(&lines[i], amounts[i], nets[i]))
	}
}

// nets are the lines without the tax that they include: they add up to what is taxed.
func (d *drafting) nets(lines []draftLine, amounts []money.Amount) []money.Amount {
	nets := make([]money.Amount, len(lines))
	done := make([]bool, len(lines))
	for i := range lines {
		if done[i] {
			continue
		}
		var at []int
		var parts []money.Amount
		var sum money.Amount
		for j := i; j < len(lines); j++ {
			if lines[j].treatment == lines[i].treatment {
				at = append(at, j)
				parts = append(parts, lines[j].treatment.net(amounts[j], 2*money.Scale))
				sum = sum.Add(amounts[j])
			}
		}
		for k, net := range money.Allocate(lines[i].treatment.net(sum, d.digits), parts, d.digits) {
			nets[at[k]], done[at[k]] = net, true
		}
	}
	return nets
}

// line writes one line. What it consists of is rounded so that it adds up to it.
func (d *drafting) line(l *draftLine, amount, net money.Amount) Line {
	out := l.Line
	out.Quantity = l.quantity.String()
	out.Amount, out.Net = amount.Fixed(d.digits), net.Fixed(d.digits)
	out.Exact = l.exact.Fixed(money.Scale)
	out.Tax = l.treatment.line()
	lists := [rating.Dimensions]*[]Share{
		&out.Breakdown.Projects, &out.Breakdown.Teams, &out.Breakdown.Models,
		&out.Breakdown.ModelVersions, &out.Breakdown.Stages,
	}
	for dim, shares := range l.shares {
		*lists[dim] = d.shareList(shares, amount)
	}
	if len(l.details) > 0 {
		exact := make([]money.Amount, len(l.details))
		for i := range l.details {
			exact[i] = l.details[i].exact
		}
		amounts := money.Allocate(amount, exact, d.digits)
		parts := make([]money.Amount, len(l.details))
		for i := range l.details {
			parts[i] = l.treatment.net(amounts[i], 2*money.Scale)
		}
		nets := money.Allocate(net, parts, d.digits)
		for i := range l.details {
			out.Details = append(out.Details, d.line(&l.details[i], amounts[i], nets[i]))
		}
	}
	return out
}

// shareList rounds the shares of a line.
func (d *drafting) shareList(shares []draftShare, amount money.Amount) []Share {
	if len(shares) == 0 {
		return nil
	}
	shares, others := bound(shares)
	exact := make([]money.Amount, len(shares))
	for i := range shares {
		exact[i] = shares[i].exact
	}
	amounts := money.Allocate(amount, exact, d.digits)
	out := make([]Share, len(shares))
	for i := range shares {
		out[i] = Share{
			Name: shares[i].name, Quantity: shares[i].quantity.String(),
			Amount: amounts[i].Fixed(d.digits),
		}
	}
	if others > 0 {
		out[len(out)-1].Others = others
	}
	return out
}

// promo uses promotional money up: it lowers what is taxed, those grants first that expire first.
// It returns lines, one for each grant and tax treatment, and all amounts with those of the lines.
func (d *drafting) promo(lines []draftLine, amounts []money.Amount) ([]draftLine, []money.Amount) {
	left := money.Sum(amounts)
	var added []draftLine
	for _, g := range d.grants(catalog.Promo) {
		take := money.Min(left, g.left)
		if take.Sign() <= 0 {
			continue
		}
		left = left.Sub(take)
		groups := groupTaxes(append(lines, added...), amounts, d.digits)
		base := make([]money.Amount, len(groups))
		var sum money.Amount
		for i := range groups {
			base[i] = groups[i].taxable
			if groups[i].Inclusive {
				base[i] = groups[i].gross()
			}
			sum = sum.Add(base[i])
		}
		for i := range base {
			num, den := ratio(base[i], sum, d.digits)
			base[i] = take.MulRatio(num, den, 2*money.Scale, money.HalfUp)
		}
		for i, part := range money.Allocate(take, base, d.digits) {
			if part.Sign() == 0 {
				continue
			}
			amount := part.Neg()
			added = append(added, draftLine{
				Line: Line{
					Kind: CreditLine, UsagePeriod: d.Period, Start: d.date(d.from), End: d.date(d.until - 1),
					Unit: "unit", Per: "unit", UnitPrice: amount.String(), Grant: g.Name,
				},
				treatment: groups[i].treatment, quantity: oneUnit, exact: amount,
			})
			amounts = append(amounts, amount)
		}
	}
	return added, amounts
}

// ratio is a / b as whole numbers.
func ratio(a, b money.Amount, places int) (num, den *big.Int) {
	num, errA := a.Scaled(places)
	den, errB := b.Scaled(places)
	if errA != nil || errB != nil {
		panic("BUG: a rounded amount has too many decimals")
	}
	return num, den
}

// balance is a grant and what is left of it.
type balance struct {
	*catalog.Grant
	left money.Amount
}

// grants are the grants of money of one source that hold at some second of the period, with what
// earlier documents left of them.
func (d *drafting) grants(source string) []balance {
	var out []balance
	for _, g := range d.Catalog.Grants(d.Tenant, d.currency) {
		if g.Source != source || g.From >= d.until || g.Expires <= d.from {
			continue
		}
		left := g.Amount.Sub(d.History.used[g.Name]).Round(d.digits, money.Down)
		if left.Sign() > 0 {
			out = append(out, balance{g, left})
		}
	}
	return out
}

// prepay lets paid grants pay what they can.
func (d *drafting) prepay(doc *Document) {
	due := parse(doc.Total)
	for _, g := range d.grants(catalog.Paid) {
		take := money.Min(due, g.left)
		if take.Sign() <= 0 {
			continue
		}
		due = due.Sub(take)
		doc.Prepaid = append(doc.Prepaid, Paid{g.Name, take.Fixed(d.digits)})
	}
	doc.Due = due.Fixed(d.digits)
}
