package ubl

import (
	"strings"

	"github.com/suanpan/suanpan/pkg/billing"
)

// Codes of payment means.
const (
	creditTransfer = "30"
	sepaTransfer   = "58"
	clearing       = "97" // between partners
)

func (r *rendering) party(p *billing.Party) party {
	endpoint, _ := endpointOf(p)
	out := party{
		Name: p.LegalName, Endpoint: identifier{endpoint.Scheme, endpoint.ID},
		Address: addressOf(p), Legal: legalEntity{Name: p.LegalName},
	}
	if p.TaxID != "" && !isOutside(r.Document) {
		out.Tax = &taxScheme{vatID(p), vat}
	}
	if id := companyID(r.Document, p); id.Value != "" {
		out.Legal.CompanyID = &id
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

// isOutside reports whether the document is outside the scope of VAT: all of its lines are then.
func isOutside(d *billing.Document) bool {
	return len(d.Lines) > 0 && d.Lines[0].Tax != nil && d.Lines[0].Tax.Category == outside
}

// unionPrefixes begin VAT numbers of the European Union, with Northern Ireland.
const unionPrefixes = " AT BE BG CY CZ DE DK EE EL ES FI FR HR HU IE IT LT LU LV MT NL PL PT RO" +
	" SE SI SK XI "

// vatID is a tax number with the country before it, as the rules want. A number of the European
// Union stays what it is: a party may be registered in another country than the one it is in.
func vatID(p *billing.Party) string {
	id := strings.ReplaceAll(p.TaxID, " ", "")
	country := p.Address.Country
	if country == "GR" {
		country = "EL"
	}
	if strings.HasPrefix(id, country) || len(id) > 2 && known(unionPrefixes, id[:2]) {
		return id
	}
	return country + id
}

// companyID is the number of a party in a register, with its scheme where national rules want one.
// No VAT number may stand in a document that is not subject to VAT: then it is all that tells who
// the party is.
func companyID(d *billing.Document, p *billing.Party) identifier {
	id := identifier{Value: p.Registration}
	if id.Value == "" && isOutside(d) {
		id.Value = p.TaxID
	}
	if p.Address == nil {
		return id
	}
	switch digits := allDigits(id.Value); p.Address.Country {
	case "DK":
		id.Scheme = "0184"
	case "IS":
		id.Scheme = "0196"
	case "NL":
		if digits && len(id.Value) == len("12345678") {
			id.Scheme = "0106"
		}
		if digits && len(id.Value) == len("12345678901234567890") {
			id.Scheme = "0190"
		}
	case "SE":
		id.Value = strings.ReplaceAll(id.Value, "-", "")
	}
	return id
}

func allDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// paymentMeans is where an invoice is paid to. Credit notes are cleared, and say so where national
// rules want means of payment.
func (r *rendering) paymentMeans() *paymentMeans {
	bank := r.Seller.Bank
	switch {
	case r.Type == billing.CreditNote && r.both("DE"):
		return &paymentMeans{Code: clearing, ID: r.Number}
	case r.Type == billing.CreditNote || bank == nil:
		return nil
	}
	means := &paymentMeans{
		Code: creditTransfer, ID: r.Number,
		Account: &account{ID: strings.ReplaceAll(bank.Account, " ", ""), Name: bank.Holder},
	}
	if r.both("DK") {
		means.Code = sepaTransfer // of those that are allowed there, the one for an IBAN
	}
	if bank.BIC != "" {
		means.Account.Branch = &reference{bank.BIC}
	}
	return means
}

// both reports whether seller and buyer are in a country.
func (r *rendering) both(country string) bool {
	return r.Seller.Address.Country == country && r.Buyer.Address.Country == country
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
