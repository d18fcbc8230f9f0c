package ubltest

import "github.com/suanpan/suanpan/pkg/billing"

// Parties returns one party of each country that has rules of its own in Peppol, and of some that
// have none, by country. Each has what it needs to sell and to buy there.
func Parties() map[string]*billing.Party {
	parties := map[string]*billing.Party{
		"BE": {TaxID: "BE0123456749", Endpoint: &billing.Endpoint{Scheme: "0208", ID: "0123456749"}},
		"DE": {TaxID: "DE123456789", Registration: "HRB 98765"},
		"DK": {TaxID: "DK12345674", Registration: "12345674", Endpoint: &billing.Endpoint{
			Scheme: "0184", ID: "12345674",
		}},
		"FR": {TaxID: "FR40303265045"},
		"IS": {TaxID: "IS12345", Registration: "5402697509", Endpoint: &billing.Endpoint{
			Scheme: "0196", ID: "5402697509",
		}},
		"IT": {TaxID: "IT12345670017"},
		"NL": {TaxID: "123456789B12", Registration: "12345678"},
		"NO": {TaxID: "123456785MVA", Endpoint: &billing.Endpoint{Scheme: "0192", ID: "123456785"}},
		"SE": {TaxID: "SE556677889901", Registration: "556677-8899", Endpoint: &billing.Endpoint{
			Scheme: "0007", ID: "5566778899",
		}},
		"SG": {TaxID: "M90312345A", Endpoint: &billing.Endpoint{Scheme: "0195", ID: "SGUEN202612345K"}},
		"US": {TaxID: "12-3456789", Endpoint: &billing.Endpoint{Scheme: "0088", ID: "1234567890128"}},
	}
	for country, p := range parties {
		p.Name, p.LegalName = "party-of-"+country, "Party of "+country+" Ltd."
		p.Address = &billing.Address{
			Street: "1 Abacus Street", City: "Beadville", PostalCode: "12345", Country: country,
		}
		p.Email, p.Phone = "billing@"+country+".example", "+1 555 0123"
		p.Bank = &billing.Bank{Account: "DE02 1203 0000 0000 2020 51", BIC: "BYLADEM1001"}
	}
	return parties
}
