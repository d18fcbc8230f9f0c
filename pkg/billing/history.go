package billing

import (
	"fmt"
	"slices"

	"github.com/suanpan/suanpan/pkg/money"
)

// History is what was billed before: all documents of a tenant that count, in the order in which
// they were decided on. Drafts that were voided do not count.
type History struct {
	invoices map[Key]*billed
	order    []Key
	used     map[string]money.Amount // of the grants of money, by name
}

// billed is an invoice and what was given back of it.
type billed struct {
	doc     *Document
	credits []*Document
}

// NewHistory returns an empty history.
func NewHistory() *History {
	return &History{invoices: make(map[Key]*billed), used: make(map[string]money.Amount)}
}

// Add takes a document in. A credit note must come after its invoice. A document that is there
// already, as a draft or issued, is replaced.
func (h *History) Add(d *Document) error {
	if d.Type == CreditNote {
		invoice := h.invoices[d.Key()]
		if invoice == nil {
			return fmt.Errorf("add credit note %s: its invoice %s is not known", d.Cites.ID, d.Key())
		}
		i := slices.IndexFunc(invoice.credits, func(c *Document) bool { return c.Cites.ID == d.Cites.ID })
		if i >= 0 {
			invoice.credits[i] = d
			return nil
		}
		invoice.credits = append(invoice.credits, d)
		return nil
	}
	if old := h.invoices[d.Key()]; old != nil {
		old.doc = d
		return nil
	}
	h.invoices[d.Key()] = &billed{doc: d}
	h.order = append(h.order, d.Key())
	for grant, amount := range grantsUsed(d) {
		h.used[grant] = h.used[grant].Add(amount)
	}
	return nil
}

// Invoice returns the invoice of a key.
func (h *History) Invoice(k Key) (*Document, bool) {
	b := h.invoices[k]
	if b == nil {
		return nil, false
	}
	return b.doc, true
}

// grantsUsed is what a document took of each grant of money.
func grantsUsed(d *Document) map[string]money.Amount {
	used := make(map[string]money.Amount)
	for i := range d.Lines {
		if l := &d.Lines[i]; l.Grant != "" {
			used[l.Grant] = used[l.Grant].Sub(parse(l.Amount))
		}
	}
	for _, p := range d.Prepaid {
		used[p.Grant] = used[p.Grant].Add(parse(p.Amount))
	}
	return used
}

// remaining is what is left of an invoice that can be given back: by tax treatment, without
// exclusive tax, and the tax.
func (b *billed) remaining() []taxed {
	left := taxedOf(b.doc)
	for _, c := range b.credits {
		for _, t := range taxedOf(c) {
			for i := range left {
				if left[i].treatment == t.treatment {
					left[i].taxable = left[i].taxable.Sub(t.taxable)
					left[i].tax = left[i].tax.Sub(t.tax)
				}
			}
		}
	}
	return left
}

// medianOfLast is the median total of the last n invoices of a contract and currency before a
// period; false if there are fewer.
func (h *History) medianOfLast(n int, before Key) (money.Amount, bool) {
	var totals []money.Amount
	for _, k := range slices.Backward(h.order) {
		if k.Tenant == before.Tenant && k.Contract == before.Contract &&
			k.Currency == before.Currency && k.Period < before.Period {
			totals = append(totals, parse(h.invoices[k].doc.Total))
		}
		if len(totals) == n {
			slices.SortFunc(totals, money.Amount.Cmp)
			return totals[n/2], true
		}
	}
	return money.Amount{}, false
}

// parse reads an amount of a document, which is valid.
func parse(text string) money.Amount {
	a, err := money.ParseSigned(text)
	if err != nil {
		panic("BUG: a document has the amount " + err.Error())
	}
	return a
}
