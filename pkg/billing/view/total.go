package view

import (
	"fmt"
	"strings"

	"github.com/suanpan/suanpan/pkg/billing"
)

// totals lists what stands beneath the lines, down to what is due.
func (v *viewer) totals() []Total {
	d := v.d
	totals := []Total{{Label: v.Subtotal, Value: Group(d.Subtotal)}}
	var included []Total
	for i := range d.Taxes {
		row := v.taxRow(&d.Taxes[i])
		if d.Taxes[i].Inclusive {
			included = append(included, row)
		} else {
			totals = append(totals, row)
		}
	}
	totals = append(totals, Total{
		Label: v.Total, Value: d.Currency + " " + Group(d.Total), Strong: true,
	})
	totals = append(totals, included...)
	for _, p := range d.Prepaid {
		totals = append(totals, Total{
			Label: join(" · ", v.Prepaid, p.Grant), Value: Group("-" + p.Amount),
		})
	}
	due := v.Due
	if d.Type == billing.CreditNote {
		due = v.Credited
	}
	return append(totals, Total{Label: due, Value: d.Currency + " " + Group(d.Due), Last: true})
}

// taxRow describes a tax. One that the prices include stands below the total, of which it is a
// part.
func (v *viewer) taxRow(t *billing.Tax) Total {
	label := word(v.categories, t.Category)
	if rate := v.rate(&t.LineTax); strings.HasSuffix(rate, "%") {
		label += " " + rate
	}
	label = fmt.Sprintf("%s %s %s", label, v.TaxOn, Group(t.Taxable))
	if t.Inclusive {
		label = v.TaxIncluded + v.colon + label
	}
	return Total{Label: label, Value: Group(t.Tax), Note: join(" · ", t.Reason, t.ReasonCode)}
}

// join joins the texts that are there.
func join(separator string, texts ...string) string {
	return strings.Join(filled(texts), separator)
}

// filled returns the texts that are there.
func filled(texts []string) []string {
	var there []string
	for _, t := range texts {
		if t != "" {
			there = append(there, t)
		}
	}
	return there
}
