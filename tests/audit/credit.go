package audit

import (
	"fmt"
	"math/big"
	"slices"
)

// paidFor is what a period was charged before this one, and what its usage that was known by then
// costs: within the limit of lateness as much as it costs, later never more than it costs nor more
// than before.
func (b *biller) paidFor(usage period) (paid, cost *big.Rat) {
	charges := b.accounts[accountKey{b.tenant, b.contract}]
	told := map[string]bool{} // billing periods that have usage of it
	for c, byBilling := range charges {
		for billing := range byBilling {
			if c.period == usage && billing < b.period.String() {
				told[billing] = true
			}
		}
	}
	_, ended, _ := b.cat.bounds(b.tenant, b.contract, usage)
	paid, cost = new(big.Rat), new(big.Rat)
	for month := usage; month.String() < b.period.String(); month = month.plus(1) {
		if !told[month.String()] {
			continue
		}
		cost = new(big.Rat)
		for c, byBilling := range charges {
			if c.period != usage || c.price.book.currency != b.currency {
				continue
			}
			known := new(big.Rat)
			for billing, p := range byBilling {
				if billing <= month.String() {
					known.Add(known, p.quantity)
				}
			}
			cost.Add(cost, round12(c.cost(known)))
		}
		from, _, _ := b.cat.bounds(b.tenant, b.contract, month)
		if from-ended <= lateDays*86400 || cost.Cmp(paid) < 0 {
			paid = cost
		}
	}
	return paid, cost
}

// notPaid is the remark about what became cheaper and was not paid.
func (b *biller) notPaid(usage string, amount *big.Rat) string {
	return fmt.Sprintf("Usage of %s worth %s %s was not charged, and is not given back.", usage,
		b.round(amount).FloatString(b.digits), b.currency)
}

// scaled is the line with a part of its amounts.
func (l line) scaled(part *big.Rat) line {
	l.exact = round12(new(big.Rat).Mul(l.exact, part))
	for d := range l.parts {
		for _, s := range l.parts[d] {
			s.exact.Mul(s.exact, part)
		}
	}
	return l
}

// credit gives back what late events made cheaper, as far as it was paid: on the period's own
// invoice, then on those with late lines of it, the one with most left first.
func (b *biller) credit(usage period, sum, paid *big.Rat, details []line) {
	cheaper := new(big.Rat).Neg(sum)
	lines := make([]line, 0, len(details))
	// The order is that of the late lines: by treatment.
	for _, g := range gather(usage.String(), details) {
		for _, d := range g.details {
			line := d.negated()
			if paid.Cmp(cheaper) < 0 {
				line = line.scaled(new(big.Rat).Quo(paid, cheaper))
			}
			lines = append(lines, line)
		}
	}
	whole := new(big.Rat)
	for _, exact := range exacts(lines) {
		whole.Add(whole, exact)
	}
	amounts := remainders(b.round(whole), exacts(lines), b.digits)
	told := paid.Cmp(cheaper) >= 0
	done := map[*document]bool{}
	for len(lines) > 0 {
		on := b.billedFor(usage, done)
		if on == nil {
			return
		}
		done[on] = true
		note := &document{
			tenant: b.tenant, contract: b.contract, currency: b.currency, period: on.period,
			digits: b.digits, note: "late-" + b.period.String(),
		}
		if on.period != usage {
			note.note += "-of-" + usage.String()
		}
		over, overAmounts := b.creditOn(note, on, usage, slices.Clone(lines), slices.Clone(amounts))
		if note.total.Sign() <= 0 {
			continue
		}
		for i := range note.taxes {
			for j := range on.remaining {
				if r := &on.remaining[j]; r.treatment == note.taxes[i].treatment {
					r.net.Sub(r.net, note.taxes[i].net)
					r.tax.Sub(r.tax, note.taxes[i].tax)
				}
			}
		}
		if !told {
			note.remarks = append(note.remarks, b.notPaid(usage.String(), minus(cheaper, paid)))
			told = true
		}
		b.made = append(b.made, note)
		lines, amounts = over, overAmounts
	}
}

// creditOn writes the note on one invoice; it returns what that has not enough left for.
func (b *biller) creditOn(note, on *document, usage period, lines []line, amounts []*big.Rat,
) (over []line, overAmounts []*big.Rat) {
	for i := range lines {
		lines[i].treatment = on.taxOf(usage, &lines[i])
	}
	groups := taxGroups(lines, amounts, b.digits)
	for i := range groups {
		g := &groups[i]
		left := taxed{net: new(big.Rat), tax: new(big.Rat)}
		for _, r := range on.remaining {
			if r.treatment == g.treatment {
				left = r
			}
		}
		if g.net.Cmp(left.net) > 0 {
			rest := minus(g.net, left.net)
			if g.treatment.inclusive {
				rest.Add(rest, minus(g.tax, left.tax))
			}
			over = append(over, line{
				late: usage.String(), treatment: g.treatment, exact: rest,
			})
			overAmounts = append(overAmounts, rest)
			back := new(big.Rat).Neg(rest)
			lines = append(lines, line{label: "limit", grant: true, treatment: g.treatment, exact: back})
			amounts = append(amounts, back)
			g.net = new(big.Rat).Set(left.net)
		}
		if g.net.Cmp(left.net) == 0 || g.tax.Cmp(left.tax) > 0 {
			g.tax = new(big.Rat).Set(left.tax)
		}
	}
	note.exact = total(exacts(lines))
	note.put(lines, amounts, groups)
	return over, overAmounts
}

func (l *line) negated() line {
	out := *l
	out.quantity, out.exact = new(big.Rat).Neg(l.quantity), new(big.Rat).Neg(l.exact)
	for d := range l.parts {
		out.parts[d] = map[string]*share{}
		for name, s := range l.parts[d] {
			out.parts[d][name] = &share{new(big.Rat).Neg(s.quantity), new(big.Rat).Neg(s.exact)}
		}
	}
	return out
}

// taxOf is how the SKU of a line is taxed on the invoice, as the line says if it is not there.
func (d *document) taxOf(usage period, l *line) treatment {
	for _, has := range d.lines {
		switch {
		case has.late == usage.String() && (l.sku == "" ||
			slices.ContainsFunc(has.details, func(x line) bool { return x.sku == l.sku })):
			return has.treatment
		case has.late == "" && !has.grant && has.sku == l.sku && l.sku != "" && d.period == usage:
			return has.treatment
		}
	}
	return l.treatment
}

// billedFor is the next invoice on which usage of a period is given back.
func (b *biller) billedFor(usage period, done map[*document]bool) *document {
	var best *document
	most := new(big.Rat)
	for _, d := range b.made {
		own := d.period == usage
		if d.note != "" || done[d] || d.tenant != b.tenant || d.contract != b.contract ||
			d.currency != b.currency || !own && !slices.ContainsFunc(d.lines, func(l line) bool {
			return l.late == usage.String()
		}) {
			continue
		}
		left := new(big.Rat)
		for _, r := range d.remaining {
			left.Add(left, r.net)
			left.Add(left, r.tax)
		}
		if own && left.Sign() > 0 {
			return d
		}
		if left.Cmp(most) > 0 {
			best, most = d, left
		}
	}
	return best
}

// gather makes the late lines of a period: one for each treatment.
func gather(period string, details []line) []line {
	var out []line
	for _, d := range details {
		i := slices.IndexFunc(out, func(l line) bool { return l.treatment == d.treatment })
		if i < 0 {
			i = len(out)
			out = append(out, line{late: period, treatment: d.treatment, exact: new(big.Rat)})
		}
		out[i].exact.Add(out[i].exact, d.exact)
		out[i].details = append(out[i].details, d)
	}
	return out
}
