package focus

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/money"
)

// register makes known which line items are on a document.
func (b *book) register(a *account, d *billing.Document) {
	if d.Type == billing.Invoice {
		b.invoices[d.Key()] = a
	}
	for i := range d.Lines {
		if !itemised(d, &d.Lines[i]) {
			continue
		}
		parts := d.Lines[i].Details
		if len(parts) == 0 {
			parts = d.Lines[i : i+1]
		}
		for j := range parts {
			b.add(a, &parts[j], lineID(d, i))
			if d.Type == billing.CreditNote {
				b.credits[lateKey(d.Key(), parts[j].UsagePeriod, parts[j].SKU, parts[j].Purchase,
					parts[j].Band)] = a
			}
		}
	}
}

// itemised reports whether the line items of the period say what a line consists of: usage and late
// usage on invoices and on credit notes that late events made. What did not fit on one such note is
// a line of another that names no SKU.
func itemised(d *billing.Document, l *billing.Line) bool {
	_, err := d.DecidedAt()
	return err == nil && (l.Kind == billing.UsageLine ||
		l.Kind == billing.LateLine && (l.SKU != "" || len(l.Details) > 0))
}

// lineID names a line, by its place in the document; "" in drafts.
func lineID(d *billing.Document, at int) string {
	if d.Number == "" {
		return ""
	}
	return d.Number + "-" + strconv.Itoa(at+1)
}

// charges writes what no line item says: other lines, taxes, and what the tax that prices include
// is rounded by.
func (e *export) charges(a *account, d *billing.Document) error {
	e.book.register(a, d)
	rest := a.signed(d.Total)
	for i := range d.Lines {
		l := &d.Lines[i]
		if itemised(d, l) {
			continue
		}
		rest = rest.Sub(a.signed(l.Net))
		if err := e.line(a, l, lineID(d, i)); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	for _, g := range e.book.order[e.grouped:] {
		rest = rest.Sub(g.net)
	}
	e.grouped = len(e.book.order)
	for i := range d.Taxes {
		t := &d.Taxes[i]
		rest = rest.Sub(a.signed(t.Tax))
		if err := e.tax(a, t, taxID(d, i)); err != nil {
			return err
		}
	}
	if rest.Sign() == 0 {
		return nil
	}
	r := a.row(adjustment, "Rounding of the tax that prices include")
	r[ownReason], r[invoiceDetailID] = rounding, roundingID(d)
	r.cost(rest)
	return e.put(r[:])
}

// adjustmentID names the adjustments of a line: it is a line of the invoice of its own, as each has
// one category of charges.
func adjustmentID(line string) string {
	if line == "" {
		return ""
	}
	return line + "-adjustment"
}

func taxID(d *billing.Document, at int) string {
	if d.Number == "" {
		return ""
	}
	return d.Number + "-tax-" + strconv.Itoa(at+1)
}

func roundingID(d *billing.Document) string {
	if d.Number == "" {
		return ""
	}
	return d.Number + "-rounding"
}

// row begins a row of a document that is about all of its period.
func (a *account) row(category, description string) row {
	r := a.base
	r[chargeCategory], r[chargeDescription], r[chargeFrequency] = category, description, "One-Time"
	switch category {
	case tax, purchase:
		r[chargeFrequency] = "Recurring"
	case usage:
		r[chargeFrequency] = "Usage-Based"
	}
	r[chargePeriodStart], r[chargePeriodEnd] = r[billingPeriodStart], r[billingPeriodEnd]
	serviceOf("").set(&r)
	return r
}

// sku writes what a row is for.
func (r *row) sku(sku, bought, band string) {
	if sku == "" {
		return
	}
	s := serviceOf(sku)
	s.set(r)
	r[skuID], r[skuMeter], r[ownPurchase], r[ownBand] = sku, s.name, bought, band
}

// category is what a line is to FOCUS.
func category(l *billing.Line) string {
	switch l.Kind {
	case billing.LateLine:
		if l.SKU == "" && len(l.Details) == 0 {
			return credit
		}
		return usage
	case billing.UsageLine:
		return usage
	case billing.CommitmentLine:
		return purchase
	case billing.AllowanceLine:
		if amount, err := money.ParseSigned(l.Amount); err == nil && amount.Sign() > 0 {
			return purchase
		}
		return credit
	case billing.CreditLine:
		return credit
	case billing.MinimumLine:
	}
	return adjustment
}

// describeLine says what a line is about.
func describeLine(l *billing.Line) string {
	switch {
	case l.Description != "":
		return l.Description
	case l.Grant != "":
		return "Promotional credit " + l.Grant
	case l.SKU != "":
		return describe(l.SKU, l.Purchase, l.Band)
	}
	return string(l.Kind) + " of " + l.UsagePeriod
}

// line writes the row of a line that has no line items.
func (e *export) line(a *account, l *billing.Line, id string) error {
	r := a.row(category(l), describeLine(l))
	start, err := time.Parse(time.DateOnly, l.Start)
	if err != nil {
		return fmt.Errorf("parse its first day: %w", err)
	}
	end, err := time.Parse(time.DateOnly, l.End)
	if err != nil {
		return fmt.Errorf("parse its last day: %w", err)
	}
	r[chargePeriodStart] = clock(midnight(start, a.zone))
	r[chargePeriodEnd] = clock(midnight(end.AddDate(0, 0, 1), a.zone))
	r.sku(l.SKU, l.Purchase, l.Band)
	r[ownKind], r[ownGrant], r[ownUsagePeriod] = string(l.Kind), l.Grant, l.UsagePeriod
	amount := a.signed(l.Amount)
	r.cost(amount)
	if r[chargeCategory] == purchase {
		r.bought(l, amount)
	}
	r[invoiceDetailID] = id
	if err := e.put(r[:]); err != nil {
		return err
	}
	return e.included(a, r, id, a.signed(l.Net).Sub(amount))
}

// bought writes the price of a fee: one piece of what it is.
func (r *row) bought(l *billing.Line, amount money.Amount) {
	r[pricingQuantity], r[pricingUnit], r[pricingCategory] = "1", "Fees", "Standard"
	price := amount
	if amount.Sign() < 0 {
		r[pricingQuantity], price = "-1", amount.Neg()
	}
	for _, c := range []int{
		listUnitPrice, contractedUnitPrice, localListUnitPrice,
		localContractedUnitPrice,
	} {
		r[c] = price.String()
	}
	r[skuID] = cmp.Or(l.SKU, string(l.Kind))
	r[skuMeter] = serviceOf(l.SKU).name
	r[skuPriceID] = r[skuID] + "/" + string(l.Kind)
	if l.Kind == billing.CommitmentLine {
		// The usage that it covers carries its cost.
		r[effectiveCost], r[localEffectiveCost] = "0", "0"
	}
}

// included takes the tax that a price includes off a row again: tax is negative, of invoices.
func (e *export) included(a *account, of row, id string, tax money.Amount) error {
	if tax.Sign() == 0 {
		return nil
	}
	r := a.row(adjustment, "Tax that is included: "+of[chargeDescription])
	r.sku(of[skuID], of[ownPurchase], of[ownBand])
	r[chargeClass], r[ownUsagePeriod] = of[chargeClass], of[ownUsagePeriod]
	r[ownReason] = includedTax
	r.cost(tax)
	r[invoiceDetailID] = adjustmentID(id)
	return e.put(r[:])
}

// tax writes the row of a tax.
func (e *export) tax(a *account, t *billing.Tax, id string) error {
	r := a.row(tax, "Tax "+t.Category+" "+t.Rate+" %")
	if t.Reason != "" {
		r[chargeDescription] += ": " + t.Reason
	}
	r[ownTaxCategory], r[ownTaxRate], r[invoiceDetailID] = t.Category, t.Rate, id
	r.cost(a.signed(t.Tax))
	return e.put(r[:])
}

// adjustments say what an adjustment of a line is.
var adjustments = map[string]string{
	rounding: "Rounding of ", averagePrice: "Average price of ", notBilled: "Not charged: ",
	noItems: "Without line items: ",
}

// adjust writes what the line items and their lines differ by.
func (e *export) adjust() error {
	for _, g := range e.book.order {
		what, why := describe(g.sku, g.purchase, g.band), g.reason()
		r := g.of.row(adjustment, adjustments[why]+what)
		r.sku(g.sku, g.purchase, g.band)
		r[ownUsagePeriod], r[ownReason] = g.usagePeriod, why
		if g.usagePeriod != e.Period {
			r[chargeClass] = correction
		}
		if rest := g.amount.Sub(g.sum); rest.Sign() != 0 {
			r.cost(rest)
			r[invoiceDetailID] = adjustmentID(g.detail)
			if err := e.put(r[:]); err != nil {
				return err
			}
		}
		r[chargeDescription] = what
		if err := e.included(g.of, r, g.detail, g.net.Sub(g.amount)); err != nil {
			return err
		}
	}
	return nil
}
