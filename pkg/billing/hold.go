package billing

import (
	"fmt"
	"math/big"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/money"
)

// medianOf is the number of earlier invoices that a total is compared with.
const medianOf = 3

// Decide says of drafts whether they are issued at once: how, and why a person must look first.
// They must have been added to the history, as [Draft] does. overlaps are leases of which one
// device was covered by two sessions in one second.
func Decide(c *Closing, drafts []*Document, overlaps []string) []Drafted {
	seller, err := c.Catalog.SellerOf(c.Tenant, c.Contract, c.AsOf)
	out := make([]Drafted, len(drafts))
	for i, doc := range drafts {
		out[i] = Drafted{Document: *doc, Terms: TermsOf(seller, doc.Type)}
		if err != nil {
			out[i].Held = append(out[i].Held, err.Error())
		}
		if doc.Type == Invoice {
			out[i].Held = append(out[i].Held, c.doubts(doc, seller, overlaps)...)
		}
	}
	return out
}

// TermsOf are the terms of a seller; nil has none.
func TermsOf(s *catalog.Seller, of Type) Terms {
	if s == nil {
		return Terms{}
	}
	t := Terms{Series: s.InvoiceSeries, Timezone: s.Zone, PaymentDays: int(s.PaymentDays)}
	if of == CreditNote {
		t.Series = s.CreditNoteSeries
	}
	return t
}

// doubts are the bounds of what is usual that an invoice breaks.
func (c *Closing) doubts(doc *Document, seller *catalog.Seller, overlaps []string) []string {
	var why []string
	total := parse(doc.Total)
	if total.Sign() < 0 {
		why = append(why, "its total is negative")
	}
	factor := money.New(big.NewInt(10), 0)
	if seller != nil {
		factor = seller.HoldFactor
	}
	if median, ok := c.History.medianOfLast(medianOf, doc.Key()); ok && median.Sign() > 0 &&
		total.Cmp(median.Mul(factor)) > 0 {
		why = append(why, fmt.Sprintf("its total is more than %s times %s, the median of the last %d",
			factor, median, medianOf))
	}
	for _, lease := range overlaps {
		why = append(why, "two sessions of lease "+lease+" held one device in the same second")
	}
	return why
}
