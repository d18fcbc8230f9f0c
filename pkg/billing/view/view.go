// Package view puts a document into words: what its pages say, in its language and in the order of
// reading, before it is known how they look. PDF and HTML show the same page. Quantities are in the
// unit of their price, digits are grouped, lists are cut where they get too long to read; nothing
// is calculated that the document does not say, but for sums of shares in charts. It is pure.
package view

import (
	"fmt"

	"github.com/suanpan/suanpan/pkg/billing"
)

// Page is a document in words. All texts are plain; empty ones are left out.
type Page struct {
	Language string // BCP 47: en or zh-CN
	Title    string // of the kind of document
	Draft    string // the mark of drafts, "" on issued documents
	Number   string // "" on drafts
	Seller   Party
	Buyer    Party
	Logo     string // PNG in base64, or ""
	Facts    []Fact // number, dates and the like
	Due      Fact   // what is to be paid, with the currency
	DueBy    Fact   // until when, or without a value

	Headings Headings
	Lines    []Line
	NoLines  string // what to say where there are none
	Totals   []Total
	Payment  Section
	Notes    Section
	Charts   []Chart
	Proof    string
	PageOf   string // format of "page x of y", with two %d
	Follows  string // "continued"
}

// Party is the seller or the buyer.
type Party struct {
	Heading, Name string
	Lines         []string
}

// Fact is something with a name.
type Fact struct{ Label, Value string }

// Section is facts under a heading. Notes have no labels.
type Section struct {
	Heading string
	Facts   []Fact
}

// Headings are those of the columns of the lines.
type Headings struct{ Number, Description, Quantity, UnitPrice, Tax, Amount string }

// Line is a line of the document with what lies beneath it.
type Line struct {
	Number   int
	Title    string
	Subtitle []string // purchase, band, days, description
	Price    Price
	Tax      string
	Parts    []Part   // tiers of a ladder, details of late lines
	Shares   []Shares // by project, team, model, version and stage
}

// Price is a quantity, what one costs, and what all cost. Exact is the quantity as it was measured,
// where that is another unit.
type Price struct{ Quantity, Exact, UnitPrice, Amount string }

// Part is a tier or a detail of a line.
type Part struct {
	Title string
	Price Price
}

// Shares is a line's amount by names of one kind.
type Shares struct {
	Heading string
	Names   []Share
}

// Share is what one name has.
type Share struct{ Name, Quantity, Amount string }

// Total is a row beneath the lines.
type Total struct {
	Label, Value string
	Note         string // why there is no tax
	Strong       bool   // totals
	Last         bool   // what is due
}

// Chart is amounts by name as bars.
type Chart struct {
	Heading string
	Bars    []Bar
}

// Bar is one amount. Permille is its length against the chart's longest, 0 to 1000.
type Bar struct {
	Name, Amount string
	Permille     int
}

// viewer is a document that is put into words.
type viewer struct {
	*words
	d *billing.Document
}

// New puts a document into words. It fails for amounts and quantities that are no decimals.
func New(d *billing.Document) (*Page, error) {
	v := &viewer{wordsOf(d.Language), d}
	p := &Page{
		Language: v.Tag, Title: v.title(), Number: d.Number,
		Facts: v.facts(), Due: Fact{v.Due, d.Currency + " " + Group(d.Due)},
		Headings: Headings{
			v.Line, v.Description, v.Quantity, v.UnitPrice, v.Tax,
			fmt.Sprintf("%s (%s)", v.Amount, d.Currency),
		},
		NoLines: v.NoLines, Totals: v.totals(), Payment: v.payment(), Notes: v.notes(),
		Proof: v.proof(), PageOf: v.Page, Follows: v.Continued,
	}
	if d.Number == "" {
		p.Draft = v.Draft
	}
	if d.Type == billing.CreditNote {
		p.Due.Label = v.Credited
	}
	if v.payable() {
		p.DueBy = Fact{v.PayBy, d.DueDate}
	}
	p.Seller = v.party(v.From, d.Seller, "")
	p.Buyer = v.party(v.To, d.Buyer, d.Tenant)
	if d.Seller != nil {
		p.Logo = d.Seller.Logo
	}
	for i := range d.Lines {
		line, err := v.line(i+1, &d.Lines[i])
		if err != nil {
			return nil, fmt.Errorf("read line %d: %w", i+1, err)
		}
		p.Lines = append(p.Lines, line)
	}
	charts, err := v.charts()
	if err != nil {
		return nil, fmt.Errorf("sum up charts: %w", err)
	}
	p.Charts = charts
	return p, nil
}

// title returns the kind of document.
func (v *viewer) title() string {
	if v.d.Type == billing.CreditNote {
		return v.CreditNote
	}
	return v.Invoice
}

// facts lists what identifies the document.
func (v *viewer) facts() []Fact {
	d := v.d
	facts := []Fact{
		{v.Number, d.Number},
		{v.IssueDate, d.IssueDate},
		{v.DueDate, d.DueDate},
		{v.words.Period, fmt.Sprintf("%s %s %s", d.PeriodStart, v.Until, d.PeriodEnd)},
		{v.Timezone, d.Timezone},
	}
	if d.Cites != nil {
		cited := join(" · ", d.Cites.Number, d.Cites.IssueDate)
		if cited == "" {
			cited = d.Cites.Key
		}
		facts = append(facts, Fact{v.Cites, cited}, Fact{v.Reason, d.Cites.Reason})
	}
	facts = append(facts, Fact{v.Tenant, d.Tenant}, Fact{v.Contract, d.Contract})
	if d.Buyer != nil {
		facts = append(facts, Fact{v.Reference, d.Buyer.Reference})
	}
	return present(facts)
}

// present leaves out facts without a value.
func present(facts []Fact) []Fact {
	var there []Fact
	for _, f := range facts {
		if f.Value != "" {
			there = append(there, f)
		}
	}
	return there
}

// party describes the seller or the buyer, of whom perhaps only a name is known.
func (v *viewer) party(heading string, p *billing.Party, name string) Party {
	if p == nil {
		if name == "" {
			return Party{}
		}
		return Party{Heading: heading, Name: name}
	}
	out := Party{Heading: heading, Name: p.LegalName}
	if out.Name == "" {
		out.Name = p.Name
	}
	if p.Address != nil {
		out.Lines = v.address(p.Address)
	}
	for _, f := range present([]Fact{
		{v.TaxID, p.TaxID},
		{v.Registration, p.Registration},
	}) {
		out.Lines = append(out.Lines, f.Label+v.colon+f.Value)
	}
	out.Lines = filled(append(out.Lines, p.Email, p.Phone, p.Website))
	return out
}

// address orders an address as its readers do: Chinese ones from the large to the small.
func (v *viewer) address(a *billing.Address) []string {
	if v.words == &chinese && a.Country == "CN" {
		return []string{
			join("", a.Region, a.City), join(" ", a.Street, a.Line2),
			join(" ", a.PostalCode, a.Country),
		}
	}
	return []string{
		a.Street, a.Line2, join(", ", join(" ", a.PostalCode, a.City), a.Region, a.Country),
	}
}

// notes lists the notes.
func (v *viewer) notes() Section {
	s := Section{Heading: v.Notes}
	for _, n := range v.d.Notes {
		s.Facts = append(s.Facts, Fact{Value: n})
	}
	return s
}

// payment says how to pay, which nobody is to do by a draft, by a credit note or for nothing.
func (v *viewer) payment() Section {
	d := v.d
	s := Section{Heading: v.Payment}
	if d.Number == "" || !v.payable() || d.Seller == nil || d.Seller.Bank == nil {
		return s
	}
	bank := d.Seller.Bank
	s.Facts = present([]Fact{
		{v.Holder, bank.Holder},
		{v.Account, bank.Account},
		{"BIC", bank.BIC},
		{v.Bank, bank.Name},
		{v.PayReference, d.Number},
		{v.PayBy, d.DueDate},
	})
	return s
}

// payable reports whether anybody is to pay anything.
func (v *viewer) payable() bool {
	due, err := Amount(v.d.Due)
	return err == nil && due.Sign() > 0 && v.d.Type == billing.Invoice
}

// proof says by what the document can be checked.
func (v *viewer) proof() string {
	p := v.d.Proof
	text := fmt.Sprintf("%s%sSHA-256 %s · %d %s", v.Proof, v.colon, p.RowsSHA256, p.Rows, v.Rows)
	if p.TimeZoneData != "" {
		text += " · tzdata " + p.TimeZoneData
	}
	return text + fmt.Sprintf(" · %s %d/%d", v.Position, p.Partition, p.CloseOffset)
}
