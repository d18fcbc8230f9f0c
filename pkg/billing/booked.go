package billing

import (
	"fmt"

	"github.com/suanpan/suanpan/pkg/money"
)

// BookedIn returns the billing period, YYYY-MM, whose export to finance systems has the document:
// that of an invoice is its own. A credit note is booked when it is made, so that a period that was
// exported does not change: in the period whose close found that usage became cheaper, else in the
// month of its issue date. The draft of a credit note by a person is booked with its invoice.
func (d *Document) BookedIn() string {
	if period, err := d.DecidedAt(); err == nil {
		return period
	}
	if len(d.IssueDate) >= len("2026-01") {
		return d.IssueDate[:len("2026-01")]
	}
	return d.Period
}

// CheckSums makes sure that the document's lines and taxes add up to its subtotal, tax total and
// total, and its balances to what is due. It fails for a sum that does not hold.
func (d *Document) CheckSums() error {
	sums := summing{}
	subtotal, taxes, total, due := money.Amount{}, money.Amount{}, money.Amount{}, money.Amount{}
	for i := range d.Lines {
		subtotal = subtotal.Add(sums.read(d.Lines[i].Amount))
		sums.read(d.Lines[i].Net)
	}
	total = subtotal
	for _, t := range d.Taxes {
		taxes = taxes.Add(sums.read(t.Tax))
		if !t.Inclusive {
			total = total.Add(sums.read(t.Tax))
		}
	}
	due = total
	for _, p := range d.Prepaid {
		due = due.Sub(sums.read(p.Amount))
	}
	sums.same("lines", subtotal, d.Subtotal)
	sums.same("taxes", taxes, d.TaxTotal)
	sums.same("subtotal and taxes", total, d.Total)
	sums.same("total and balances", due, d.Due)
	if sums.err != nil {
		return fmt.Errorf("check document %s: %w", d.ID(), sums.err)
	}
	return nil
}

// summing keeps the first fault of a document's amounts.
type summing struct{ err error }

func (s *summing) read(text string) money.Amount {
	a, err := money.ParseSigned(text)
	if err != nil && s.err == nil {
		s.err = err
	}
	return a
}

func (s *summing) same(what string, sum money.Amount, text string) {
	if s.read(text).Cmp(sum) != 0 && s.err == nil {
		s.err = fmt.Errorf("its %s come to %s, it says %s", what, sum, text)
	}
}
