package ubl

import (
	"fmt"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/view"
	"github.com/suanpan/suanpan/pkg/money"
)

// parse reads a decimal of a readable document.
func parse(text string) money.Amount {
	a, err := view.Amount(text)
	if err != nil {
		panic("BUG: a readable document has an amount that is none: " + err.Error())
	}
	return a
}

// trim drops the zeros at the end of a decimal.
func trim(text string) string { return parse(text).String() }

// readable fails where the document has a currency or an amount that is none.
func readable(d *billing.Document) error {
	if _, ok := money.Digits(d.Currency); !ok {
		return fmt.Errorf("%q is no currency", d.Currency)
	}
	var first error
	check := func(of string, texts ...string) {
		for _, text := range texts {
			if _, err := view.Amount(text); err != nil && first == nil {
				first = fmt.Errorf("read amount of %s: %w", of, err)
			}
		}
	}
	check("the document", d.Due)
	for i := range d.Prepaid {
		check("the document", d.Prepaid[i].Amount)
	}
	for i := range d.Taxes {
		check("the taxes", d.Taxes[i].Taxable, d.Taxes[i].Tax, d.Taxes[i].Rate)
	}
	for i := range d.Lines {
		l := &d.Lines[i]
		of := fmt.Sprint("line ", i+1)
		check(of, l.Quantity, l.UnitPrice, l.Amount, l.Net)
		if l.Tax != nil {
			check(of, l.Tax.Rate)
		}
		for j := range l.Tiers {
			check(of, l.Tiers[j].Quantity)
		}
		for j := range l.Details {
			check(of, l.Details[j].Quantity)
		}
	}
	return first
}
