package billing

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/money"
)

// validate makes sure that a record of the log has the form that is relied on: it comes from
// outside. It fails with what is wrong with it.
func (r *Record) validate() error {
	switch {
	case r.Decision != nil:
		d := r.Decision
		for i := range d.Documents {
			doc := &d.Documents[i]
			if doc.Tenant != d.Tenant || doc.Contract != d.Contract ||
				doc.Type == Invoice && doc.Period != d.Period {
				return fmt.Errorf("document %s is not of period %s of tenant %s, contract %q",
					doc.Document.Key(), d.Period, d.Tenant, d.Contract)
			}
			if err := doc.validate(); err != nil {
				return err
			}
		}
		return validKey(Key{Tenant: d.Tenant, Contract: d.Contract, Period: d.Period})
	case r.Credit != nil:
		return r.Credit.validate()
	case r.Alert != nil:
		return r.Alert.Validate()
	case r.Release != nil && r.Release.Document != nil:
		if err := r.Release.Document.validate(); err != nil {
			return err
		}
		if id := r.Release.Document.ID(); id != r.Release.ID {
			return fmt.Errorf("the release of document %s has document %s", r.Release.ID, id)
		}
		return r.Release.Terms.validate()
	}
	return nil
}

func (d *Drafted) validate() error {
	if err := d.Document.validate(); err != nil {
		return err
	}
	if err := d.Terms.validate(); err != nil {
		return fmt.Errorf("document %s: %w", d.Document.ID(), err)
	}
	return nil
}

func (t *Terms) validate() error {
	if t.PaymentDays < 0 || t.PaymentDays > catalog.MaxPaymentDays {
		return fmt.Errorf("payment_days %d are not in 0 to %d", t.PaymentDays, catalog.MaxPaymentDays)
	}
	return nil
}

func validKey(k Key) error {
	if _, err := time.Parse("2006-01", k.Period); err != nil {
		return fmt.Errorf("%q is not a month", k.Period)
	}
	if k.Tenant == "" || strings.Contains(k.Tenant+k.Contract+k.Currency, ",") {
		return fmt.Errorf("%s names no document", k)
	}
	return nil
}

// validate makes sure that the amounts of a document are numbers and add up.
func (d *Document) validate() error {
	if err := validKey(d.Key()); err != nil {
		return err
	}
	switch {
	case d.Type != Invoice && d.Type != CreditNote:
		return fmt.Errorf("document %s is neither invoice nor credit note", d.Key())
	case d.Type == CreditNote && (d.Cites == nil || d.Cites.ID == ""):
		return fmt.Errorf("credit note on %s has no id", d.Key())
	case d.Type == CreditNote && d.Cites.Key != d.Key().String():
		return fmt.Errorf("credit note %s cites %q", d.ID(), d.Cites.Key)
	}
	digits, ok := money.Digits(d.Currency)
	if !ok {
		return fmt.Errorf("document %s: %q is no currency", d.ID(), d.Currency)
	}
	v := validating{digits: digits}
	v.amounts(digits, d.Subtotal, d.TaxTotal, d.Total, d.Due)
	v.amounts(money.Scale, d.UnroundedTotal)
	for i := range d.Lines {
		v.line(&d.Lines[i], 0)
	}
	for _, t := range d.Taxes {
		v.amounts(digits, t.Taxable, t.Tax)
		v.rate(&t.LineTax)
	}
	for _, p := range d.Prepaid {
		v.amounts(digits, p.Amount)
	}
	if v.err == nil {
		v.err = d.CheckSums()
	}
	if v.err == nil && d.Type == CreditNote && parse(d.Total).Sign() <= 0 {
		v.err = errors.New("a credit note gives something back")
	}
	if v.err != nil {
		return fmt.Errorf("document %s: %w", d.ID(), v.err)
	}
	return nil
}

// validating keeps the first fault of a document.
type validating struct {
	digits int
	err    error
}

func (v *validating) amounts(places int, texts ...string) {
	for _, text := range texts {
		a, err := money.ParseSigned(text)
		if err == nil {
			_, err = a.Scaled(places)
		}
		if err != nil && v.err == nil {
			v.err = err
		}
	}
}

// line checks a line and its details, which have none of their own.
func (v *validating) line(l *Line, depth int) {
	v.amounts(v.digits, l.Amount, l.Net)
	v.amounts(money.Scale, l.Exact)
	if l.Tax != nil {
		v.rate(l.Tax)
	}
	if depth > 0 && len(l.Details) > 0 && v.err == nil {
		v.err = errors.New("details have details")
	}
	for i := range l.Details {
		if depth == 0 {
			v.line(&l.Details[i], 1)
		}
	}
	b := &l.Breakdown
	for _, s := range slices.Concat(b.Projects, b.Teams, b.Models, b.ModelVersions, b.Stages) {
		v.amounts(v.digits, s.Amount)
	}
}

// rate checks what is computed with: a percentage.
func (v *validating) rate(t *LineTax) {
	v.amounts(catalog.MaxRatePlaces, t.Rate)
	if v.err != nil {
		return
	}
	if rate := parse(t.Rate); t.Category == "" || rate.Sign() < 0 || rate.Cmp(hundredPercent) > 0 {
		v.err = fmt.Errorf("tax %q of %s percent is none", t.Category, t.Rate)
	}
}

var hundredPercent = money.MustParse("100")
