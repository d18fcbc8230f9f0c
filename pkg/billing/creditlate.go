package billing

import (
	"math/big"
	"slices"

	"github.com/suanpan/suanpan/pkg/money"
)

// creditLate makes the credit notes for a period that late events made cheaper: on its own invoice
// and, where not enough is left of that, on those with late lines of it, the one with most left
// first. There are none where nothing was billed, or nothing is left.
func (d *drafting) creditLate(sum *lateSum) ([]*Document, error) {
	var lines []draftLine
	var exact []money.Amount
	var whole money.Amount
	for _, late := range sum.lines {
		for i := range late.details {
			line := late.details[i].negated().charged(sum)
			lines, exact = append(lines, line), append(exact, line.exact)
			whole = whole.Add(line.exact)
		}
	}
	amounts := money.Allocate(whole.Round(d.digits, d.rounding), exact, d.digits)
	var notes []*Document
	done := make(map[Key]bool)
	for len(lines) > 0 {
		invoice := d.History.billedFor(d.key(sum.period), done)
		if invoice == nil {
			break
		}
		done[invoice.doc.Key()] = true
		note, over, overAmounts := d.creditOn(invoice, sum.period, lines, amounts)
		if parse(note.Total).Sign() <= 0 {
			continue
		}
		if len(notes) == 0 && sum.uncharged.Sign() > 0 {
			note.Notes = append(note.Notes, d.notGivenBack(sum.period, sum.uncharged))
		}
		if err := d.History.Add(note); err != nil {
			return nil, err
		}
		notes, lines, amounts = append(notes, note), over, overAmounts
	}
	return notes, nil
}

func (d *drafting) key(period string) Key { return Key{d.Tenant, d.Contract, d.currency, period} }

// creditOn makes the credit note on one invoice, and lines for what is more than is left of that.
func (d *drafting) creditOn(invoice *billed, period string, lines []draftLine,
	amounts []money.Amount,
) (note *Document, over []draftLine, overAmounts []money.Amount) {
	note = creditOf(invoice.doc, lateID(d.Period, period, invoice.doc.Period),
		"late events of "+period)
	note.Proof = d.Proofs[d.currency]
	lines, amounts = slices.Clone(lines), slices.Clone(amounts)
	for i := range lines {
		lines[i].taxAs(invoice.doc)
	}
	left := invoice.remaining()
	groups := groupTaxes(lines, amounts, d.digits)
	for i := range groups {
		g := &groups[i]
		limit := taxed{treatment: g.treatment}
		at := slices.IndexFunc(left, func(t taxed) bool { return t.treatment == g.treatment })
		if at >= 0 {
			limit = left[at]
		}
		if g.taxable.Cmp(limit.taxable) > 0 {
			rest := g.paid().Sub(limit.paid())
			line := overLine(&lines[0], g.treatment, rest)
			over, overAmounts = append(over, line), append(overAmounts, rest)
			back := line.negated()
			back.Kind, back.Description = CreditLine, "more than is left of the invoice"
			back.UnitPrice, back.quantity = rest.Neg().String(), oneUnit
			lines, amounts = append(lines, back), append(amounts, rest.Neg())
			g.taxable = limit.taxable
		}
		if g.taxable.Cmp(limit.taxable) == 0 || g.tax.Cmp(limit.tax) > 0 {
			g.tax = limit.tax // the residual cents
		}
	}
	d.setLines(note, lines, amounts)
	note.close(groups, d.digits)
	return note, over, overAmounts
}

// paid is what the lines of the treatment come to: with the tax where prices include it.
func (t *taxed) paid() money.Amount {
	if t.Inclusive {
		return t.gross()
	}
	return t.taxable
}

// overLine is the line, on the next credit note, for what one could not give back.
func overLine(like *draftLine, t treatment, amount money.Amount) draftLine {
	return draftLine{
		Line: Line{
			Kind: LateLine, UsagePeriod: like.UsagePeriod, Start: like.Start, End: like.End,
			Unit: "unit", Per: "unit", UnitPrice: amount.String(),
		},
		treatment: t, quantity: oneUnit, exact: amount,
	}
}

// charged is the line, of a period that became cheaper, with its part of what had been charged.
func (l draftLine) charged(sum *lateSum) draftLine {
	if sum.uncharged.Sign() == 0 {
		return l
	}
	cheaper := sum.amount.Neg()
	whole, paid := pico(cheaper), pico(cheaper.Sub(sum.uncharged))
	scale := func(a money.Amount, places int) money.Amount {
		return a.MulRatio(paid, whole, places, money.HalfUp)
	}
	l.exact = scale(l.exact, money.Scale)
	l.UnitPrice, l.Average = scale(parse(l.UnitPrice), money.Scale).String(), true
	for dim := range l.shares {
		for i := range l.shares[dim] { // they are this line's own, see negated
			s := &l.shares[dim][i]
			s.exact = scale(s.exact, 2*money.Scale)
		}
	}
	return l
}

// pico is an amount of money.Scale decimals in units of the last.
func pico(a money.Amount) *big.Int {
	n, err := a.Scaled(money.Scale)
	if err != nil {
		panic("BUG: an exact amount has too many decimals: " + err.Error())
	}
	return n
}

// negated is the line as a credit note has it.
func (l *draftLine) negated() draftLine {
	out := *l
	out.Kind = LateLine
	out.exact, out.quantity = l.exact.Neg(), l.quantity.Neg()
	out.Tiers = nil // of what is billed, not of what is given back
	for dim := range l.shares {
		out.shares[dim] = make([]draftShare, len(l.shares[dim]))
		for i, s := range l.shares[dim] {
			out.shares[dim][i] = draftShare{s.name, s.quantity.Neg(), s.exact.Neg()}
		}
	}
	return out
}

// taxAs gives the line the tax that its SKU has on an invoice: what was taxed in one way is given
// back in the same, whatever the buyer and the rules have become.
func (l *draftLine) taxAs(invoice *Document) {
	for i := range invoice.Lines {
		line := &invoice.Lines[i]
		if line.UsagePeriod != l.UsagePeriod {
			continue
		}
		has := line.Kind == UsageLine && line.SKU == l.SKU
		if line.Kind == LateLine {
			has = l.SKU == "" || slices.ContainsFunc(line.Details, func(detail Line) bool {
				return detail.SKU == l.SKU
			})
		}
		if !has {
			continue
		}
		l.treatment = treatment{}
		if line.Tax != nil {
			l.treatment.LineTax = *line.Tax
			for _, t := range invoice.Taxes {
				if t.LineTax == *line.Tax {
					l.treatment.reason, l.treatment.reasonCode = t.Reason, t.ReasonCode
				}
			}
		}
		return
	}
}

// billedFor returns the next invoice that usage of a period is given back on.
func (h *History) billedFor(k Key, done map[Key]bool) *billed {
	var best *billed
	var most money.Amount
	for _, key := range h.order {
		b := h.invoices[key]
		own := key == k
		if done[key] || !own && (key.Tenant != k.Tenant || key.Contract != k.Contract ||
			key.Currency != k.Currency || !b.doc.hasLate(k.Period)) {
			continue
		}
		left := h.Remaining(key)
		if own && left.Sign() > 0 {
			return b
		}
		if left.Cmp(most) > 0 {
			best, most = b, left
		}
	}
	return best
}

func (d *Document) hasLate(period string) bool {
	return slices.ContainsFunc(d.Lines, func(l Line) bool {
		return l.Kind == LateLine && l.UsagePeriod == period
	})
}
