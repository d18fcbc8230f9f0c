package focus

import (
	"fmt"
	"time"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/money"
)

// The columns of Invoice Detail, alphabetically.
const (
	ofBilledCost = iota
	ofBillingAccountID
	ofBillingCurrency
	ofBillingPeriodEnd
	ofBillingPeriodStart
	ofChargeCategory
	ofCreated
	ofDescription
	ofGrain
	ofDetailID
	ofLastUpdated
	ofInvoiceID
	ofIssueDate
	ofIssueStatus
	ofIssuerName
	ofDueDate
	ofTerms
	ofReference
	detailColumnCount
)

var invoiceColumns = [detailColumnCount]column{
	ofBilledCost:         {name: "BilledCost", kind: decimal, scale: money.Scale},
	ofBillingAccountID:   {name: "BillingAccountId"},
	ofBillingCurrency:    {name: "BillingCurrency"},
	ofBillingPeriodEnd:   {name: "BillingPeriodEnd", kind: instant},
	ofBillingPeriodStart: {name: "BillingPeriodStart", kind: instant},
	ofChargeCategory:     {name: "ChargeCategory"},
	ofCreated:            {name: "InvoiceDetailCreated", kind: instant},
	ofDescription:        {name: "InvoiceDetailDescription"},
	ofGrain:              {name: "InvoiceDetailGrain"},
	ofDetailID:           {name: "InvoiceDetailId"},
	ofLastUpdated:        {name: "InvoiceDetailLastUpdated", kind: instant},
	ofInvoiceID:          {name: "InvoiceId"},
	ofIssueDate:          {name: "InvoiceIssueDate", kind: instant},
	ofIssueStatus:        {name: "InvoiceIssueStatus"},
	ofIssuerName:         {name: "InvoiceIssuerName"},
	ofDueDate:            {name: "PaymentDueDate", kind: instant},
	ofTerms:              {name: "PaymentTerms"},
	ofReference:          {name: "ReferenceInvoiceId"},
}

// detailRow is the cells of one row of Invoice Detail.
type detailRow [detailColumnCount]string

// details writes the lines of an issued document: each at its exact amount, with an adjustment that
// makes its net amount of it, then the taxes. Drafts are no invoices yet and have no rows.
func (e *export) details(a *account, d *billing.Document) error {
	if d.Number == "" {
		return nil
	}
	base, err := e.detailBase(a, d)
	if err != nil {
		return err
	}
	rest := a.signed(d.Total)
	for i := range d.Lines {
		l := &d.Lines[i]
		amount, net := a.signed(l.Amount), a.signed(l.Net)
		if itemised(d, l) {
			amount = a.signed(l.Exact)
		}
		rest = rest.Sub(net)
		id := lineID(d, i)
		if err := e.detail(base, id, category(l), describeLine(l), amount); err != nil {
			return err
		}
		if adjusted := net.Sub(amount); adjusted.Sign() != 0 || itemised(d, l) {
			if err := e.detail(base, adjustmentID(id), adjustment,
				"Rounding and included tax of line "+fmt.Sprint(i+1), adjusted); err != nil {
				return err
			}
		}
	}
	for i := range d.Taxes {
		t := &d.Taxes[i]
		rest = rest.Sub(a.signed(t.Tax))
		text := "Tax " + t.Category + " " + t.Rate + " %"
		if err := e.detail(base, taxID(d, i), tax, text, a.signed(t.Tax)); err != nil {
			return err
		}
	}
	if rest.Sign() == 0 {
		return nil
	}
	return e.detail(base, roundingID(d), adjustment, "Rounding of the tax that prices include", rest)
}

func (e *export) detail(r detailRow, id, category, description string, cost money.Amount) error {
	r[ofDetailID], r[ofChargeCategory], r[ofDescription] = id, category, description
	r[ofBilledCost] = cost.Fixed(money.Scale)
	return e.put(r[:])
}

// detailBase is what all rows of a document share.
func (e *export) detailBase(a *account, d *billing.Document) (detailRow, error) {
	var r detailRow
	issued, err := time.Parse(time.DateOnly, d.IssueDate)
	if err != nil {
		return r, fmt.Errorf("parse issue date: %w", err)
	}
	r[ofBillingAccountID], r[ofBillingCurrency] = d.Tenant, d.Currency
	r[ofBillingPeriodStart] = a.base[billingPeriodStart]
	r[ofBillingPeriodEnd] = a.base[billingPeriodEnd]
	r[ofInvoiceID], r[ofReference] = d.Number, d.Number
	r[ofIssuerName], r[ofIssueStatus] = a.base[invoiceIssuerName], "Issued"
	r[ofIssueDate] = clock(midnight(issued, a.zone))
	r[ofCreated], r[ofLastUpdated] = r[ofIssueDate], r[ofIssueDate]
	r[ofTerms] = "Credited to the account"
	if d.Type == billing.CreditNote {
		r[ofReference] = d.Cites.Number
		return r, nil
	}
	due, err := time.Parse(time.DateOnly, d.DueDate)
	if err != nil {
		return r, fmt.Errorf("parse due date: %w", err)
	}
	r[ofDueDate] = clock(midnight(due, a.zone))
	r[ofTerms] = "Due on " + d.DueDate
	return r, nil
}
