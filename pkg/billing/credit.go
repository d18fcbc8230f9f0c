package billing

import (
	"errors"
	"fmt"
	"slices"

	"github.com/suanpan/suanpan/pkg/money"
)

// CreditRequest is what a person wants to give back of an invoice: all that is left of it, a line,
// or an amount.
type CreditRequest struct {
	Key    Key    // of the invoice
	ID     string // of the credit note, unique for the invoice
	Reason string
	Line   int           // counted from 1; 0 is not a line
	Amount *money.Amount // with tax; nil is not an amount
}

// Credit makes the draft of a credit note. It fails where more would be given back than is left of
// the invoice. The credit note that gives back all that is left has the residual cents.
func Credit(h *History, r CreditRequest) (*Document, error) {
	invoice := h.invoices[r.Key]
	if invoice == nil {
		return nil, fmt.Errorf("credit invoice %s: there is no such invoice", r.Key)
	}
	digits, ok := money.Digits(r.Key.Currency)
	if !ok {
		return nil, fmt.Errorf("credit invoice %s: %s is no currency", r.Key, r.Key.Currency)
	}
	if r.Reason == "" {
		return nil, errors.New("credit invoice " + r.Key.String() + ": a reason is needed")
	}
	note := creditOf(invoice.doc, r.ID, r.Reason)
	left := invoice.remaining()
	var groups []taxed
	var lines []Line
	var err error
	switch {
	case r.Line > 0:
		groups, lines, err = creditLine(invoice.doc, left, r.Line, digits)
	case r.Amount != nil:
		groups, lines, err = creditAmount(note, left, *r.Amount, digits)
	default:
		groups, lines = left, restLines(note, left, digits)
		if len(invoice.credits) == 0 {
			lines = slices.Clone(invoice.doc.Lines)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("credit invoice %s: %w", r.Key, err)
	}
	note.Lines = lines
	note.close(groups, digits)
	if parse(note.Total).Sign() <= 0 {
		return nil, fmt.Errorf("credit invoice %s: nothing is left of it", r.Key)
	}
	return note, nil
}

// creditOf makes a credit note without lines, with all that it shares with its invoice.
func creditOf(invoice *Document, id, reason string) *Document {
	note := *invoice
	note.Type = CreditNote
	note.Number, note.IssueDate, note.DueDate = "", "", ""
	note.Cites = &Citation{
		Key: invoice.Key().String(), Number: invoice.Number, IssueDate: invoice.IssueDate,
		Reason: reason, ID: id,
	}
	note.Lines, note.Taxes, note.Prepaid, note.Notes = []Line{}, []Tax{}, []Paid{}, []string{}
	note.Proof = Proof{}
	return &note
}

// close writes the sums of a credit note. Its lines must add up to what the groups say.
func (d *Document) close(groups []taxed, digits int) {
	var subtotal, exact money.Amount
	for i := range d.Lines {
		subtotal = subtotal.Add(parse(d.Lines[i].Amount))
		if d.Lines[i].Grant == "" {
			exact = exact.Add(parse(d.Lines[i].Exact))
		}
	}
	d.UnroundedTotal = exact.Fixed(money.Scale)
	groups = slices.DeleteFunc(slices.Clone(groups), func(t taxed) bool {
		return t.taxable.Sign() == 0 && t.tax.Sign() == 0
	})
	d.setTaxes(groups, subtotal, digits)
}

// creditLine gives one line back, and its part of the tax.
func creditLine(invoice *Document, left []taxed, n, digits int) ([]taxed, []Line, error) {
	if n > len(invoice.Lines) {
		return nil, nil, fmt.Errorf("it has %d lines, not %d", len(invoice.Lines), n)
	}
	line := invoice.Lines[n-1]
	for i := range left {
		if !left[i].is(line.Tax) {
			continue
		}
		want := left[i].levy(parse(line.Amount), digits)
		if err := want.limit(&left[i]); err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", n, err)
		}
		return []taxed{want}, []Line{line}, nil
	}
	return nil, nil, fmt.Errorf("line %d: its tax is not on the invoice", n)
}

func (t *taxed) is(tax *LineTax) bool {
	if tax == nil {
		return t.Category == ""
	}
	return t.LineTax == *tax
}

// limit makes sure that no more is given back than is left; the last has the residual cents.
func (t *taxed) limit(left *taxed) error {
	if t.taxable.Cmp(left.taxable) > 0 {
		return fmt.Errorf("%s is more than the %s that is left", t.taxable, left.taxable)
	}
	if t.taxable.Cmp(left.taxable) == 0 || t.tax.Cmp(left.tax) > 0 {
		t.tax = left.tax
	}
	return nil
}

// creditAmount gives an amount with tax back: of each tax treatment by what is left of it.
func creditAmount(note *Document, left []taxed, amount money.Amount, digits int,
) ([]taxed, []Line, error) {
	if _, err := amount.Scaled(digits); err != nil || amount.Sign() <= 0 {
		return nil, nil, fmt.Errorf("%s is not an amount above 0 with %d decimals", amount, digits)
	}
	var sum money.Amount
	for i := range left {
		sum = sum.Add(left[i].gross())
	}
	if amount.Cmp(sum) > 0 {
		return nil, nil, fmt.Errorf("%s is more than the %s that is left",
			amount.Fixed(digits), sum.Fixed(digits))
	}
	if amount.Cmp(sum) == 0 {
		return left, restLines(note, left, digits), nil
	}
	parts := make([]money.Amount, len(left))
	for i := range left {
		num, den := ratio(left[i].gross(), sum, digits)
		parts[i] = amount.MulRatio(num, den, 2*money.Scale, money.HalfUp)
	}
	var groups []taxed
	for i, part := range money.Allocate(amount, parts, digits) {
		inclusive := left[i].treatment
		inclusive.Inclusive = true // the amount is with tax, whatever the prices are
		group := inclusive.levy(part, digits)
		group.treatment = left[i].treatment
		if group.taxable.Cmp(left[i].taxable) > 0 {
			group.taxable = left[i].taxable
			group.tax = part.Sub(group.taxable)
		}
		if group.tax.Cmp(left[i].tax) > 0 {
			group.tax = left[i].tax
			group.taxable = part.Sub(group.tax)
		}
		groups = append(groups, group)
	}
	return groups, restLines(note, groups, digits), nil
}

// restLines are lines that name nothing but the sum of each tax treatment.
func restLines(note *Document, groups []taxed, digits int) []Line {
	lines := []Line{}
	for i := range groups {
		g := &groups[i]
		amount := g.taxable
		if g.Inclusive {
			amount = g.gross()
		}
		if amount.Sign() == 0 && g.tax.Sign() == 0 {
			continue
		}
		lines = append(lines, Line{
			Kind: CreditLine, UsagePeriod: note.Period, Start: note.PeriodStart, End: note.PeriodEnd,
			Description: note.Cites.Reason, Quantity: "1", Unit: "unit", Per: "unit",
			UnitPrice: amount.String(), Amount: amount.Fixed(digits), Net: g.taxable.Fixed(digits),
			Exact: amount.Fixed(money.Scale), Tax: g.line(),
		})
	}
	return lines
}

// Remaining is how much of an invoice, with tax, can still be given back.
func (h *History) Remaining(k Key) money.Amount {
	var left money.Amount
	if b := h.invoices[k]; b != nil {
		for _, t := range b.remaining() {
			left = left.Add(t.gross())
		}
	}
	return left
}
