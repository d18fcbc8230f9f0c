package audit

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
)

// minorDigits are the decimals of currencies that do not have two.
var minorDigits = map[string]int{"JPY": 0, "KRW": 0, "KWD": 3, "BHD": 3}

// lateDays is how long after a period its usage is charged.
const lateDays = 60

// Bill returns the documents of the events, in the language of scenarios, and the events that are
// refused, see [Rate]. Closes in the events count.
func Bill(catalogYAML []byte, events [][]byte) (documents, rejected []string, err error) {
	a, rejected, err := run(catalogYAML, events, true)
	if err != nil {
		return nil, nil, err
	}
	type step struct {
		tenant, period, contract string
	}
	steps := map[step]bool{}
	for k := range a.closes {
		steps[step{k.tenant, k.period.String(), k.contract}] = true
	}
	for k, charges := range a.accounts {
		for _, byBilling := range charges {
			for billing := range byBilling {
				steps[step{k.tenant, billing, k.contract}] = true
			}
		}
	}
	sorted := slices.SortedFunc(maps.Keys(steps), func(x, y step) int {
		return cmp.Or(cmp.Compare(x.tenant, y.tenant), cmp.Compare(x.period, y.period),
			cmp.Compare(x.contract, y.contract))
	})
	b := &biller{auditor: a, spent: map[string]*big.Rat{}}
	for _, s := range sorted {
		b.tenant, b.contract = s.tenant, s.contract
		_, _ = fmt.Sscanf(s.period, "%d-%d", &b.period.year, &b.period.month)
		b.close()
	}
	for _, d := range b.made {
		documents = append(documents, d.text())
	}
	return documents, rejected, nil
}

// biller makes the documents of one period after the other.
type biller struct {
	*auditor
	tenant, contract string
	period           period
	from, until      int64
	seller           string
	currency         string
	digits           int
	halfEven         bool
	made             []*document
	spent            map[string]*big.Rat // of grants
}

// document is an invoice or a credit note.
type document struct {
	tenant, contract, currency string
	period                     period
	digits                     int
	note                       string // id of a credit note
	lines                      []line
	amounts                    []*big.Rat
	taxes                      []taxed
	subtotal, exact, total     *big.Rat
	prepaid                    []string
	due                        *big.Rat
	remarks                    []string
	remaining                  []taxed // of an invoice: what may be given back
}

type line struct {
	label, sku string
	late       string // usage period of a late line
	grant      bool
	quantity   *big.Rat
	unit       string
	exact      *big.Rat
	treatment  treatment
	parts      [dimensions]map[string]*share
	details    []line
}

type share struct{ quantity, exact *big.Rat }

type taxed struct {
	treatment      treatment
	net, tax, paid *big.Rat // paid: the sum of the lines
}

func (b *biller) close() {
	b.from, b.until, _ = b.cat.bounds(b.tenant, b.contract, b.period)
	name, seller := b.cat.sellerOf(b.tenant, b.contract)
	b.seller = name
	charges := b.accounts[accountKey{b.tenant, b.contract}]
	byCurrency := map[string][]charge{}
	for c, byBilling := range charges {
		if byBilling[b.period.String()] != nil {
			money := c.price.book.currency
			byCurrency[money] = append(byCurrency[money], c)
		}
	}
	books := b.cat.booksBefore(b.tenant, b.contract, b.until)
	empty := seller != nil && seller.empty
	if len(byCurrency) == 0 && empty && len(books) > 0 {
		byCurrency[books[0].currency] = nil
	}
	for _, money := range slices.Sorted(maps.Keys(byCurrency)) {
		b.currency = money
		b.digits = 2
		if digits, ok := minorDigits[money]; ok {
			b.digits = digits
		}
		for _, book := range books {
			if book.currency == money {
				b.halfEven = book.halfEven
				break
			}
		}
		b.bill(byCurrency[money], empty, seller)
	}
}

// bill makes the documents of one currency.
func (b *biller) bill(charges []charge, empty bool, seller *seller) {
	inPeriod := map[string][]charge{}
	for _, c := range charges {
		inPeriod[c.period.String()] = append(inPeriod[c.period.String()], c)
	}
	invoice := &document{
		tenant: b.tenant, contract: b.contract, currency: b.currency, period: b.period,
		digits: b.digits,
	}
	if seller != nil {
		invoice.remarks = append(invoice.remarks, seller.notes...)
	}
	lines := b.lines(inPeriod[b.period.String()])
	wanted := empty || len(lines) > 0
	type credit struct {
		period    period
		sum, paid *big.Rat // what became cheaper, and what of it was paid
		lines     []line
	}
	var credits []credit
	lateSum := new(big.Rat)
	for _, name := range slices.Sorted(maps.Keys(inPeriod)) {
		if name == b.period.String() {
			continue
		}
		usage := inPeriod[name][0].period
		details := b.lines(inPeriod[name])
		sum := new(big.Rat)
		for _, l := range details {
			sum.Add(sum, l.exact)
		}
		_, ended, _ := b.cat.bounds(b.tenant, b.contract, usage)
		switch {
		case sum.Sign() < 0:
			paid, cost := b.paidFor(usage)
			back := minus(paid, new(big.Rat).Add(cost, sum))
			if back.Sign() > 0 {
				credits = append(credits, credit{usage, sum, back, details})
			} else {
				invoice.remarks = append(invoice.remarks, b.notPaid(name, new(big.Rat).Neg(sum)))
			}
		case sum.Sign() > 0 && b.from-ended > lateDays*86400:
			invoice.remarks = append(invoice.remarks, fmt.Sprintf("Usage of %s worth %s %s came more "+
				"than %d days after that period and is not charged.", name,
				b.round(sum).FloatString(b.digits), b.currency, lateDays))
		default:
			lateSum.Add(lateSum, sum)
			lines = append(lines, gather(name, details)...)
		}
	}
	if wanted || b.round(lateSum).Sign() != 0 {
		b.finish(invoice, lines)
		b.made = append(b.made, invoice)
	}
	for _, c := range credits {
		b.credit(c.period, c.sum, c.paid, c.lines)
	}
}

// lines are those of charges, one for each SKU, purchase and band.
func (b *biller) lines(charges []charge) []line {
	byLabel := map[[3]string]*line{}
	for _, c := range charges {
		key := [3]string{c.sku, c.price.purchase, c.band}
		l := byLabel[key]
		if l == nil {
			_, until, _ := b.cat.bounds(b.tenant, b.contract, c.period)
			l = &line{
				label: fmt.Sprintf("%s %s %s", c.sku, c.price.purchase, c.band), sku: c.sku,
				quantity: new(big.Rat), exact: new(big.Rat), unit: "seconds",
			}
			if c.price.per == "unit" {
				l.unit = "units"
			}
			if b.seller != "" {
				l.treatment = b.cat.tax(b.seller, b.tenant, c.sku, until-1)
			}
			for d := range l.parts {
				l.parts[d] = map[string]*share{}
			}
			byLabel[key] = l
		}
		b.addCharge(l, c)
	}
	keys := slices.SortedFunc(maps.Keys(byLabel), func(x, y [3]string) int {
		return slices.Compare(x[:], y[:])
	})
	var out []line
	for _, key := range keys {
		if l := byLabel[key]; l.quantity.Sign() != 0 || l.exact.Sign() != 0 {
			out = append(out, *l)
		}
	}
	return out
}

// addCharge adds what the billing period adds to a charge: what all of it costs by now, less what
// it cost before.
func (b *biller) addCharge(l *line, c charge) {
	before, now := new(big.Rat), new(big.Rat)
	var parts [dimensions]map[string][2]*big.Rat
	for billing, p := range b.accounts[accountKey{b.tenant, b.contract}][c] {
		if billing > b.period.String() {
			continue
		}
		now.Add(now, p.quantity)
		if billing < b.period.String() {
			before.Add(before, p.quantity)
		}
		for d := range p.parts {
			if parts[d] == nil {
				parts[d] = map[string][2]*big.Rat{}
			}
			for name, q := range p.parts[d] {
				known, ok := parts[d][name]
				if !ok {
					known = [2]*big.Rat{new(big.Rat), new(big.Rat)}
				}
				known[1].Add(known[1], q)
				if billing < b.period.String() {
					known[0].Add(known[0], q)
				}
				parts[d][name] = known
			}
		}
	}
	costBefore, costNow := round12(c.cost(before)), round12(c.cost(now))
	l.quantity.Add(l.quantity, minus(now, before))
	l.exact.Add(l.exact, minus(costNow, costBefore))
	for d := range parts {
		for name, q := range parts[d] {
			s := l.parts[d][name]
			if s == nil {
				s = &share{new(big.Rat), new(big.Rat)}
				l.parts[d][name] = s
			}
			s.quantity.Add(s.quantity, minus(q[1], q[0]))
			s.exact.Add(s.exact, minus(part(costNow, q[1], now), part(costBefore, q[0], before)))
		}
	}
}

func minus(x, y *big.Rat) *big.Rat { return new(big.Rat).Sub(x, y) }

func part(cost, q, of *big.Rat) *big.Rat {
	if of.Sign() == 0 {
		return new(big.Rat)
	}
	return new(big.Rat).Quo(new(big.Rat).Mul(cost, q), of)
}

func exacts(lines []line) []*big.Rat {
	out := make([]*big.Rat, len(lines))
	for i := range lines {
		out[i] = lines[i].exact
	}
	return out
}

func total(amounts []*big.Rat) *big.Rat {
	sum := new(big.Rat)
	for _, a := range amounts {
		sum.Add(sum, a)
	}
	return sum
}

// finish rounds, taxes and pays an invoice.
func (b *biller) finish(d *document, lines []line) {
	d.exact = total(exacts(lines))
	amounts := remainders(b.round(d.exact), exacts(lines), b.digits)
	left := total(amounts)
	for _, g := range b.cat.grantsOf(b.tenant, b.currency, "promo") {
		take := smaller(left, b.leftOf(g))
		if take.Sign() <= 0 {
			continue
		}
		left = minus(left, take)
		b.spend(g, take)
		groups := taxGroups(lines, amounts, b.digits)
		base := make([]*big.Rat, len(groups))
		sum := total(amounts)
		for i := range groups {
			base[i] = part(take, groups[i].paid, sum)
		}
		for i, amount := range remainders(take, base, b.digits) {
			if amount.Sign() != 0 {
				lines = append(lines, line{
					label: g.name, grant: true, treatment: groups[i].treatment,
					exact: new(big.Rat).Neg(amount),
				})
				amounts = append(amounts, new(big.Rat).Neg(amount))
			}
		}
	}
	d.put(lines, amounts, taxGroups(lines, amounts, b.digits))
	for _, g := range b.cat.grantsOf(b.tenant, b.currency, "paid") {
		if take := smaller(d.due, b.leftOf(g)); take.Sign() > 0 {
			d.due = minus(d.due, take)
			b.spend(g, take)
			d.prepaid = append(d.prepaid, g.name+" = "+take.FloatString(b.digits))
		}
	}
}

// put writes lines and taxes, and what follows from them.
func (d *document) put(lines []line, amounts []*big.Rat, taxes []taxed) {
	d.lines, d.amounts, d.taxes = lines, amounts, taxes
	d.subtotal = total(amounts)
	d.total = new(big.Rat).Set(d.subtotal)
	for _, t := range taxes {
		if !t.treatment.inclusive {
			d.total.Add(d.total, t.tax)
		}
		d.remaining = append(d.remaining, taxed{
			t.treatment, new(big.Rat).Set(t.net), new(big.Rat).Set(t.tax), new(big.Rat).Set(t.paid),
		})
	}
	d.due = new(big.Rat).Set(d.total)
}

// leftOf is what earlier documents left of a grant, if it holds in the period.
func (b *biller) leftOf(g *grant) *big.Rat {
	if g.from >= b.until || g.expires <= b.from {
		return new(big.Rat)
	}
	left := new(big.Rat).Set(g.amount)
	if spent := b.spent[g.name]; spent != nil {
		left.Sub(left, spent)
	}
	return cut(left, b.digits)
}

func (b *biller) spend(g *grant, amount *big.Rat) {
	if b.spent[g.name] == nil {
		b.spent[g.name] = new(big.Rat)
	}
	b.spent[g.name].Add(b.spent[g.name], amount)
}

// taxGroups taxes rounded lines by treatment, in the order of their first lines.
func taxGroups(lines []line, amounts []*big.Rat, digits int) []taxed {
	var out []taxed
	for i := range lines {
		at := slices.IndexFunc(out, func(t taxed) bool { return t.treatment == lines[i].treatment })
		if at < 0 {
			at = len(out)
			out = append(out, taxed{treatment: lines[i].treatment, paid: new(big.Rat)})
		}
		out[at].paid.Add(out[at].paid, amounts[i])
	}
	for i := range out {
		t := &out[i]
		rate := new(big.Rat).Quo(rat(cmp.Or(t.treatment.rate, "0")), big.NewRat(100, 1))
		if t.treatment.inclusive {
			t.net = nearest(new(big.Rat).Quo(t.paid, new(big.Rat).Add(rate, big.NewRat(1, 1))), digits)
			t.tax = minus(t.paid, t.net)
			continue
		}
		t.net = new(big.Rat).Set(t.paid)
		t.tax = nearest(new(big.Rat).Mul(t.paid, rate), digits)
	}
	return out
}
