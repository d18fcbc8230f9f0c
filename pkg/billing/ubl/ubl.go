// Package ubl renders documents as e-invoices: UBL 2.1 for EN 16931 and Peppol BIS Billing 3.0,
// invoices (380) and credit notes (381). The same document gives the same bytes. It is pure.
package ubl

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"strings"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/money"
)

const (
	customization = "urn:cen.eu:en16931:2017#compliant#" +
		"urn:fdc:peppol.eu:2017:poacc:billing:3.0"
	profile    = "urn:fdc:peppol.eu:2017:poacc:billing:01:1.0"
	schemas    = "urn:oasis:names:specification:ubl:schema:xsd:"
	invoice380 = "380"
	credit381  = "381"
	vat        = "VAT"
	outside    = "O" // category of what is not subject to VAT
	// places is the number of decimals that EN 16931 allows amounts.
	places = 2
)

// Render prints a document. It fails where the document lacks what an e-invoice must have, and
// names all of it, with where the catalog should say it; and where an amount is none.
//
// What has no price that times its quantity is its amount (packages, ladders, prices with tax,
// fees, credits) is 1 x amount, or -1 x amount, with its explanation in the line's note. The
// invoice's period is the envelope of those of its lines.
//
// Amounts of currencies with three decimals are rounded to two, as EN 16931 has no more: the sums
// by tax rate first, then the lines so that they add up to these. All sums are exact then; what
// that changes of the amount due is the rounding amount (BT-114), and the amount with all decimals
// stands in the note.
//
// A party without an endpoint is reached by its VAT number, where Peppol knows that as an address.
func Render(d *billing.Document) ([]byte, error) {
	if err := readable(d); err != nil {
		return nil, fmt.Errorf("render %s as UBL: %w", d.ID(), err)
	}
	if missing := missing(d); len(missing) > 0 {
		return nil, fmt.Errorf("render %s as UBL: an e-invoice needs more: %s", d.ID(),
			strings.Join(missing, "; "))
	}
	r := &rendering{Document: d}
	doc := r.document()
	var out bytes.Buffer
	out.WriteString(xml.Header)
	encoder := xml.NewEncoder(&out)
	encoder.Indent("", "  ")
	if err := errors.Join(encoder.Encode(doc), encoder.Close()); err != nil {
		return nil, fmt.Errorf("render %s as UBL: %w", d.ID(), err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// rendering is a document at work.
type rendering struct {
	*billing.Document
	nets []money.Amount // of the lines, with at most two decimals
}

func (r *rendering) amount(a money.Amount) amount {
	return amount{r.Currency, a.Fixed(r.digits())}
}

func (r *rendering) digits() int {
	digits, ok := money.Digits(r.Currency)
	if !ok {
		panic("BUG: a document has the currency " + r.Currency)
	}
	return min(digits, places)
}

// round is an amount of the document with as many decimals as are allowed.
func (r *rendering) round(text string) money.Amount {
	return parse(text).Round(r.digits(), money.HalfUp)
}

func (r *rendering) document() *document {
	tax, excluding := r.taxes()
	doc := &document{
		XMLName: xml.Name{Local: "Invoice"}, XMLNS: schemas + "Invoice-2",
		CAC: schemas + "CommonAggregateComponents-2", CBC: schemas + "CommonBasicComponents-2",
		CustomizationID: customization, ProfileID: profile,
		ID: r.Number, IssueDate: r.IssueDate, DueDate: r.DueDate, InvoiceType: invoice380,
		Currency: r.Currency, BuyerReference: r.reference(), Period: r.envelope(),
		Supplier: r.party(r.Seller), Customer: r.party(r.Buyer),
		PaymentMeans: r.paymentMeans(), TaxTotal: tax,
	}
	doc.Total = r.total(excluding, parse(tax.Amount.Value))
	doc.Note = r.note()
	doc.Delivery = r.delivery()
	if r.Contract != "" {
		doc.Contract = &reference{r.Contract}
	}
	for i := range r.Lines {
		doc.InvoiceLines = append(doc.InvoiceLines, r.line(i))
	}
	if r.Type == billing.CreditNote {
		doc.XMLName.Local, doc.XMLNS = "CreditNote", schemas+"CreditNote-2"
		doc.DueDate, doc.InvoiceType, doc.CreditNoteType = "", "", credit381
		doc.BillingReference = &billingReference{r.Cites.Number, r.Cites.IssueDate}
		doc.InvoiceLines, doc.CreditNoteLines = nil, doc.InvoiceLines
		for i := range doc.CreditNoteLines {
			l := &doc.CreditNoteLines[i]
			l.Invoiced, l.Credited = nil, l.Invoiced
		}
	}
	return doc
}

func (r *rendering) reference() string {
	switch {
	case r.Buyer.Reference != "":
		return r.Buyer.Reference
	case r.Contract != "":
		return r.Contract
	}
	return r.Tenant
}

// envelope is the days from the first to the last of all lines, late ones too.
func (r *rendering) envelope() period {
	p := r.period(&r.Lines[0])
	for i := range r.Lines[1:] {
		l := r.period(&r.Lines[i+1])
		p.Start, p.End = min(p.Start, l.Start), max(p.End, l.End)
	}
	return p
}

// note is all that is to be said: one note is all that is allowed.
func (r *rendering) note() string {
	notes := r.Notes
	if r.Type == billing.CreditNote {
		notes = append([]string{r.Cites.Reason}, notes...)
	}
	if r.round(r.Due).Cmp(parse(r.Due)) != 0 {
		notes = append(notes[:len(notes):len(notes)],
			fmt.Sprintf("The exact amount due is %s %s.", r.Due, r.Currency))
	}
	return strings.TrimSpace(join("\n", notes...))
}
