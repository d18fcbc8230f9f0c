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
	transfer30 = "30" // payment means: credit transfer
	vat        = "VAT"
	// places is the number of decimals that EN 16931 allows amounts.
	places = 2
)

// Render prints a document. It fails where the document lacks what an e-invoice must have, and names
// all of it, with where the catalog should say it.
//
// Amounts of currencies with three decimals are rounded to two, as EN 16931 has no more: the sums
// by tax rate first, then the lines so that they add up to these; what that changes of the amount
// due is the rounding amount, and the exact amount stands in the note.
func Render(d *billing.Document) ([]byte, error) {
	if missing := missing(d); len(missing) > 0 {
		return nil, fmt.Errorf("render %s as UBL: an e-invoice needs more: %s", d.ID(),
			strings.Join(missing, "; "))
	}
	r := &rendering{Document: d}
	doc, err := r.document()
	if err != nil {
		return nil, fmt.Errorf("render %s as UBL: %w", d.ID(), err)
	}
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

// missing says what the document lacks.
func missing(d *billing.Document) []string {
	var out []string
	need := func(ok bool, format string, args ...any) {
		if !ok {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	need(d.Number != "", "a number: it is a draft")
	need(d.Type != billing.CreditNote || d.Cites.Number != "",
		"the number of the invoice that it cites")
	need(len(d.Lines) > 0, "a line")
	need(d.Seller != nil, "a seller: apply a document of kind Seller")
	need(d.Buyer != nil, "a buyer: apply Tenant/%s with its legal_name and address", d.Tenant)
	seen := make(map[string]bool)
	for i := range d.Lines {
		l := &d.Lines[i]
		need(l.Tax != nil, "line %d: how %s is taxed: apply a document of kind TaxRule that it matches",
			i+1, l.SKU)
		if l.Tax != nil {
			seen[l.Tax.Category] = true
		}
	}
	need(!seen["O"] || len(seen) == 1,
		"one tax treatment: what is not subject to tax (O) may not stand beside what is")
	if d.Seller != nil {
		of := "Seller/" + d.Seller.Name
		out = append(out, missingOf(of, d.Seller)...)
		need(seen["O"] || d.Seller.TaxID != "", "%s: tax_id", of)
		need(!seen["O"] || d.Seller.Registration != "" || d.Seller.TaxID != "", "%s: registration", of)
	}
	if d.Buyer != nil {
		of := "Tenant/" + d.Tenant
		out = append(out, missingOf(of, d.Buyer)...)
		need(!seen["AE"] && !seen["K"] || d.Buyer.TaxID != "", "%s: tax_id", of)
	}
	return out
}

func missingOf(of string, p *billing.Party) []string {
	var out []string
	if p.LegalName == "" {
		out = append(out, of+": legal_name")
	}
	if p.Address == nil || p.Address.Country == "" {
		out = append(out, of+": address.country")
	}
	switch {
	case p.Endpoint == nil:
		out = append(out, of+": endpoint")
	case len(p.Endpoint.Scheme) != len("0088"):
		out = append(out, of+": an endpoint of Peppol, whose scheme is four digits, not "+
			p.Endpoint.Scheme)
	}
	return out
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

func parse(text string) money.Amount {
	a, err := money.ParseSigned(text)
	if err != nil {
		panic("BUG: a document has the amount " + err.Error())
	}
	return a
}

func (r *rendering) document() (*document, error) {
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
	doc.Note = r.note(&doc.Total)
	doc.Delivery = r.delivery()
	for i := range r.Lines {
		doc.InvoiceLines = append(doc.InvoiceLines, r.line(i))
	}
	if r.Type == billing.CreditNote {
		doc.XMLName.Local, doc.XMLNS = "CreditNote", schemas+"CreditNote-2"
		doc.DueDate, doc.InvoiceType, doc.CreditNoteType = "", "", credit381
		doc.BillingReference = &billingReference{r.Cites.Number, r.Cites.IssueDate}
		doc.PaymentTerms = &paymentTerms{r.Cites.Reason}
		doc.InvoiceLines, doc.CreditNoteLines = nil, doc.InvoiceLines
		for i := range doc.CreditNoteLines {
			l := &doc.CreditNoteLines[i]
			l.Invoiced, l.Credited = nil, l.Invoiced
		}
	}
	return doc, nil
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

// envelope is the billing period, widened to the days of all lines.
func (r *rendering) envelope() period {
	p := period{r.PeriodStart, r.PeriodEnd}
	for i := range r.Lines {
		p.Start, p.End = min(p.Start, r.Lines[i].Start), max(p.End, r.Lines[i].End)
	}
	return p
}

func (r *rendering) party(p *billing.Party) party {
	out := party{
		Name: p.LegalName, Endpoint: identifier{p.Endpoint.Scheme, p.Endpoint.ID},
		Address: addressOf(p), Legal: legalEntity{p.LegalName, p.Registration},
	}
	if p.TaxID != "" && !r.outside() {
		out.Tax = &taxScheme{withCountry(p), vat}
	}
	if r.outside() && out.Legal.CompanyID == "" {
		out.Legal.CompanyID = p.TaxID // no VAT number may stand beside what is not subject to VAT
	}
	if p.Phone != "" || p.Email != "" {
		out.Contact = &contact{p.LegalName, p.Phone, p.Email}
	}
	return out
}

func addressOf(p *billing.Party) address {
	return address{
		Street: p.Address.Street, Line2: p.Address.Line2, City: p.Address.City,
		Postal: p.Address.PostalCode, Region: p.Address.Region, Country: p.Address.Country,
	}
}

// outside reports whether the document is outside the scope of VAT.
func (r *rendering) outside() bool { return r.Lines[0].Tax.Category == "O" }

// withCountry is a tax number with the country before it, as the rules want.
func withCountry(p *billing.Party) string {
	country := p.Address.Country
	if strings.HasPrefix(p.TaxID, country) || country == "GR" && strings.HasPrefix(p.TaxID, "EL") {
		return p.TaxID
	}
	return country + p.TaxID
}

func (r *rendering) paymentMeans() *paymentMeans {
	bank := r.Seller.Bank
	if bank == nil {
		return nil
	}
	means := &paymentMeans{
		Code: transfer30, ID: r.Number,
		Account: account{ID: strings.ReplaceAll(bank.Account, " ", ""), Name: bank.Holder},
	}
	if bank.BIC != "" {
		means.Account.Branch = &branch{bank.BIC}
	}
	return means
}

// delivery says where to, for what is delivered within the community (K).
func (r *rendering) delivery() *delivery {
	for i := range r.Lines {
		if r.Lines[i].Tax.Category == "K" {
			return &delivery{r.PeriodEnd, addressOf(r.Buyer)}
		}
	}
	return nil
}

func (r *rendering) note(total *monetaryTotal) string {
	notes := r.Notes
	if total.Rounding != nil {
		notes = append(notes[:len(notes):len(notes)],
			fmt.Sprintf("The exact amount due is %s %s.", r.Due, r.Currency))
	}
	return strings.Join(notes, "\n")
}
