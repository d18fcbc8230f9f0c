package focus

import (
	"slices"
	"time"

	"github.com/suanpan/suanpan/pkg/billing"
)

// The columns of Billing Period, alphabetically.
const (
	periodCreated = iota
	periodEnd
	periodLastUpdated
	periodStart
	periodStatus
	periodIssuer
	periodColumnCount
)

var periodColumns = [periodColumnCount]column{
	periodCreated:     {name: "BillingPeriodCreated", kind: instant},
	periodEnd:         {name: "BillingPeriodEnd", kind: instant},
	periodLastUpdated: {name: "BillingPeriodLastUpdated", kind: instant},
	periodStart:       {name: "BillingPeriodStart", kind: instant},
	periodStatus:      {name: "BillingPeriodStatus"},
	periodIssuer:      {name: "InvoiceIssuerName"},
}

type periodRow [periodColumnCount]string

// periods are the billing periods of each issuer; they differ by time zone. A period is closed when
// it has documents only.
type periods struct {
	rows map[[3]string]*periodRow
}

func newPeriods() *periods { return &periods{rows: make(map[[3]string]*periodRow)} }

// add returns the row of a period.
func (p *periods) add(base *row) *periodRow {
	key := [3]string{base[billingPeriodStart], base[billingPeriodEnd], base[invoiceIssuerName]}
	r := p.rows[key]
	if r == nil {
		r = &periodRow{
			periodCreated: key[0], periodStart: key[0], periodEnd: key[1], periodIssuer: key[2],
			periodLastUpdated: key[0], periodStatus: "Closed",
		}
		p.rows[key] = r
	}
	return r
}

func (p *periods) document(a *account, d *billing.Document) {
	r := p.add(&a.base)
	updated := a.base[billingPeriodEnd]
	if issued, err := time.Parse(time.DateOnly, d.IssueDate); err == nil {
		updated = max(updated, clock(midnight(issued, a.zone)))
	}
	r[periodLastUpdated] = max(r[periodLastUpdated], updated)
}

// openPeriod takes in a line item that is on no document.
func (e *export) openPeriod(i *Item) error {
	if e.book.find(i) != nil {
		return nil
	}
	var base row
	e.common(&base, i.Tenant, i.Contract, i.Currency, e.zone(i))
	if base[invoiceIssuerName] == "" {
		return errNoProvider
	}
	r := e.periods.add(&base)
	r[periodStatus] = "Open"
	r[periodLastUpdated] = max(r[periodLastUpdated], i.UsageEnd)
	return nil
}

func (e *export) writePeriods() error {
	var keys [][3]string
	for key := range e.periods.rows {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b [3]string) int { return slices.Compare(a[:], b[:]) })
	for _, key := range keys {
		if err := e.put(e.periods.rows[key][:]); err != nil {
			return err
		}
	}
	return nil
}
