package ubl

import (
	"fmt"
	"slices"

	"github.com/suanpan/suanpan/pkg/billing"
)

// checking looks for what a document lacks.
type checking struct {
	*billing.Document
	seller, buyer string // where the catalog has them
	categories    map[string]bool
	out           []string
}

// missing says all that the document lacks to be an e-invoice.
func missing(d *billing.Document) []string {
	c := &checking{Document: d, buyer: "Tenant/" + d.Tenant, categories: make(map[string]bool)}
	c.issue()
	c.taxes()
	c.need(d.Seller != nil, "a seller: apply a document of kind Seller")
	c.need(d.Buyer != nil, "a buyer: apply %s with its legal_name and address", c.buyer)
	if d.Seller != nil {
		c.seller = "Seller/" + d.Seller.Name
		c.party(c.seller, d.Seller)
		if c.categories[outside] {
			c.need(companyID(d, d.Seller).Value != "", "%s: registration", c.seller)
		} else {
			c.need(d.Seller.TaxID != "", "%s: tax_id", c.seller)
		}
	}
	if d.Buyer != nil {
		c.party(c.buyer, d.Buyer)
		c.need(!c.categories["K"] || d.Buyer.TaxID != "", "%s: tax_id", c.buyer)
		c.need(!c.categories["AE"] || d.Buyer.TaxID != "" || d.Buyer.Registration != "",
			"%s: tax_id or registration", c.buyer)
	}
	if d.Seller != nil && d.Buyer != nil && d.Seller.Address != nil && d.Buyer.Address != nil {
		c.national()
	}
	return c.out
}

// need notes what is missing, once.
func (c *checking) need(ok bool, format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !ok && !slices.Contains(c.out, text) {
		c.out = append(c.out, text)
	}
}

// noCurrencies and noCountries are known to us, but not to the rules' code lists.
const (
	noCurrencies = " STN XAD "
	noCountries  = " AC DG IC TA XK "
)

// issue checks what issuing gives.
func (c *checking) issue() {
	c.need(c.Number != "" && c.IssueDate != "", "a number: it is a draft")
	if c.Type == billing.CreditNote {
		c.need(c.Cites.Number != "", "the number of the invoice that it cites")
	} else {
		c.need(c.Number == "" || c.DueDate != "", "a due date")
	}
	c.need(len(c.Lines) > 0, "a line")
	c.need(!known(noCurrencies, c.Currency), "a currency of ISO 4217 that e-invoices may have, not %s",
		c.Currency)
}

// ofCategory are the categories that codes of reasons belong to.
var ofCategory = map[string]string{
	"VATEX-EU-G": "G", "VATEX-EU-O": outside, "VATEX-EU-IC": "K", "VATEX-EU-AE": "AE",
	"VATEX-EU-D": "E", "VATEX-EU-F": "E", "VATEX-EU-I": "E", "VATEX-EU-J": "E",
}

func (c *checking) taxes() {
	for i := range c.Lines {
		l := &c.Lines[i]
		if l.Tax == nil {
			c.need(false, "line %d: how %s is taxed: apply a document of kind TaxRule that it matches",
				i+1, name(l))
			continue
		}
		c.categories[l.Tax.Category] = true
	}
	c.need(!c.categories[outside] || len(c.categories) == 1,
		"one tax treatment: what is not subject to tax (O) may not stand beside what is")
	for i := range c.Taxes {
		t := &c.Taxes[i]
		if !exempt(t.Category) {
			continue
		}
		c.need(t.Reason != "" || known(reasonCodes, t.ReasonCode), "TaxRule of category %s: reason",
			t.Category)
		of, bound := ofCategory[t.ReasonCode]
		c.need(!bound || of == t.Category, "TaxRule: reason_code %s is of category %s, not %s",
			t.ReasonCode, of, t.Category)
	}
}

// party checks what every party needs.
func (c *checking) party(of string, p *billing.Party) {
	c.need(p.LegalName != "", "%s: legal_name", of)
	if p.Address == nil || p.Address.Country == "" {
		c.need(false, "%s: address.country", of)
		c.need(p.Endpoint != nil, "%s: endpoint", of)
		return
	}
	c.need(!known(noCountries, p.Address.Country),
		"%s: address.country as ISO 3166 has it, not %s", of, p.Address.Country)
	endpoint, ok := endpointOf(p)
	switch {
	case !ok:
		c.need(false, "%s: endpoint, its scheme and id in Peppol", of)
	case !known(schemes, endpoint.Scheme):
		c.need(false, "%s: endpoint.scheme of Peppol, such as 0088 or 9930, not %s", of, endpoint.Scheme)
	default:
		c.need(wellFormed(endpoint.Scheme, endpoint.ID),
			"%s: endpoint.id of scheme %s, with right check digits, not %s", of, endpoint.Scheme,
			endpoint.ID)
	}
}
