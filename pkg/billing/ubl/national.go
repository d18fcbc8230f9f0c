package ubl

import (
	"regexp"
	"strings"

	"github.com/suanpan/suanpan/pkg/billing"
)

// Numbers as national rules want them.
var (
	ibanPattern  = regexp.MustCompile(`^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$`)
	swedishVAT   = regexp.MustCompile(`^SE[0-9]{12}$`)
	norwegianVAT = regexp.MustCompile(`^NO[0-9]{9}MVA$`)
)

const swedishRates = " 6 12 25 "

// national checks what Peppol wants besides of sellers of some countries.
func (c *checking) national() {
	domestic := c.Buyer.Address.Country == c.Seller.Address.Country
	switch c.Seller.Address.Country {
	case "DE":
		c.german(domestic)
	case "DK":
		c.danish(domestic)
	case "GR":
		c.need(false, "what only Greece's tax platform gives: a MARK and a number in its form")
	case "IS":
		c.address(c.seller, c.Seller, "street", "postal_code")
		c.registered(c.seller, c.Seller, true)
		if domestic {
			c.address(c.buyer, c.Buyer, "street", "postal_code")
			c.registered(c.buyer, c.Buyer, true)
		}
	case "IT":
		c.address(c.seller, c.Seller, "street", "city", "postal_code")
	case "NL":
		c.dutch(domestic)
	case "NO":
		id := vatID(c.Seller)
		c.need(c.Seller.TaxID == "" || c.categories[outside] || !strings.HasPrefix(id, "NO") ||
			norwegianVAT.MatchString(id) && norwegian(id[2:11]),
			"%s: tax_id as NO, nine digits and MVA, not %s", c.seller, id)
	case "SE":
		c.swedish()
	}
}

func (c *checking) german(domestic bool) {
	if !domestic {
		return
	}
	c.address(c.seller, c.Seller, "city", "postal_code")
	c.address(c.buyer, c.Buyer, "city", "postal_code")
	c.need(c.Seller.Phone != "", "%s: phone", c.seller)
	c.need(c.Seller.Email != "", "%s: email", c.seller)
	c.need(c.Type == billing.CreditNote || c.Seller.Bank != nil, "%s: bank", c.seller)
}

func (c *checking) danish(domestic bool) {
	c.registered(c.seller, c.Seller, true)
	if !domestic {
		return
	}
	c.registered(c.buyer, c.Buyer, false)
	if bank := c.Seller.Bank; bank != nil {
		c.need(ibanPattern.MatchString(strings.ReplaceAll(bank.Account, " ", "")),
			"%s: bank.account as an IBAN", c.seller)
	}
}

func (c *checking) dutch(domestic bool) {
	c.address(c.seller, c.Seller, "street", "city", "postal_code")
	c.registered(c.seller, c.Seller, false)
	c.need(c.Seller.Bank != nil || c.Type == billing.CreditNote || parse(c.Due).Sign() <= 0,
		"%s: bank", c.seller)
	if domestic {
		c.address(c.buyer, c.Buyer, "street", "city", "postal_code")
		c.registered(c.buyer, c.Buyer, false)
	}
}

func (c *checking) swedish() {
	id := vatID(c.Seller)
	if c.Seller.TaxID != "" && !c.categories[outside] && strings.HasPrefix(id, "SE") {
		c.need(swedishVAT.MatchString(id), "%s: tax_id as SE and twelve digits, not %s", c.seller, id)
		for i := range c.Taxes {
			t := &c.Taxes[i]
			c.need(t.Category != "S" || known(swedishRates, t.Rate),
				"TaxRule: a rate of 6, 12 or 25, as Sweden has, not %s", t.Rate)
		}
	}
	company := companyID(c.Document, c.Seller).Value
	c.need(company == "" || wellFormed("0007", company),
		"%s: registration of ten digits, with a right check digit, not %s", c.seller, company)
}

// address checks parts of an address that has a country.
func (c *checking) address(of string, p *billing.Party, parts ...string) {
	have := map[string]string{
		"street": p.Address.Street, "city": p.Address.City, "postal_code": p.Address.PostalCode,
	}
	for _, part := range parts {
		c.need(have[part] != "", "%s: address.%s", of, part)
	}
}

// registered checks the number of a company in its country's register.
func (c *checking) registered(of string, p *billing.Party, must bool) {
	id := companyID(c.Document, p)
	if id.Value == "" {
		c.need(!must, "%s: registration", of)
		return
	}
	c.need(id.Scheme != "" && wellFormed(id.Scheme, id.Value),
		"%s: registration as the register of %s has it, not %s", of, p.Address.Country, id.Value)
}
