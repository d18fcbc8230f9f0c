package focus

import (
	"time"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/money"
)

// document writes the rows of a document that no line item has: credits, other lines that are no
// usage, taxes, and an adjustment by what its items and its total differ.
func (e *export) document(s *sheet) error {
	if s.Status == billing.Voided {
		return nil
	}
	if !s.items && s.Type == billing.CreditNote {
		if err := e.given(s); err != nil {
			return err
		}
	}
	if s.Type == billing.Invoice {
		for i := range s.Lines {
			if l := &s.Lines[i]; l.Kind == billing.CreditLine {
				if err := e.add(s, "Credit", "Credit "+l.Grant, parse(l.Net)); err != nil {
					return err
				}
			}
		}
	}
	for _, t := range s.Taxes {
		if tax := parse(t.Tax).Mul(s.sign); tax.Sign() != 0 {
			if err := e.add(s, "Tax", "Tax "+t.Rate+" %", tax); err != nil {
				return err
			}
		}
	}
	rest := parse(s.Total).Mul(s.sign).Sub(s.sum)
	if rest.Sign() == 0 {
		return nil
	}
	return e.add(s, "Adjustment", "Rounding, and lines at average prices", rest)
}

// given writes what a person gave back: one credit for each line.
func (e *export) given(s *sheet) error {
	for i := range s.Lines {
		l := &s.Lines[i]
		text := l.Description
		if text == "" {
			text = "Credit for " + s.Cites.Number
		}
		if err := e.add(s, "Credit", text, parse(l.Net).Mul(s.sign)); err != nil {
			return err
		}
	}
	return nil
}

// add writes a row of a document that is of no resource.
func (e *export) add(s *sheet, category, description string, cost money.Amount) error {
	s.sum = s.sum.Add(cost)
	r := e.base(s.Tenant, s.Contract, s.Currency, s)
	r.cost(cost)
	from, until := e.Bounds(s.Tenant, s.Contract, s.Period)
	r["ChargePeriodStart"] = stamp(time.Unix(from, 0))
	r["ChargePeriodEnd"] = stamp(time.Unix(until, 0))
	r["ChargeCategory"], r["ChargeDescription"] = category, description
	r["ChargeFrequency"] = "One-Time"
	r["x_UsagePeriod"] = s.Period
	if s.Type == billing.CreditNote {
		r["ChargeClass"] = "Correction"
	}
	return e.out.write(r)
}

func parse(text string) money.Amount {
	a, err := money.ParseSigned(text)
	if err != nil {
		panic("BUG: a document has the amount " + err.Error())
	}
	return a
}
