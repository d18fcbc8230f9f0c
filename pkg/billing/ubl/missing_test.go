package ubl

import (
	"strings"
	"testing"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/billingtest"
	"github.com/suanpan/suanpan/pkg/billing/ubl/ubltest"
)

// refuses checks that a document is refused for just these reasons, "" for none.
func refuses(t *testing.T, d *billing.Document, want ...string) {
	t.Helper()
	_, err := Render(d)
	got := ""
	if err != nil {
		_, got, _ = strings.Cut(err.Error(), "an e-invoice needs more: ")
	}
	if wanted := strings.Join(want, "; "); got != wanted {
		t.Errorf("it needs more: %q, want %q (%v)", got, wanted, err)
	}
}

func TestRender_saysAllThatIsMissing(t *testing.T) {
	f := func(change func(d *billing.Document), want ...string) {
		t.Helper()
		d := billingtest.Plain()
		change(d)
		refuses(t, d, want...)
	}
	seller, buyer := "Seller/rheinland", "Tenant/nordlicht"
	f(func(*billing.Document) {})
	f(func(d *billing.Document) { d.Number = "" }, "a number: it is a draft")
	f(func(d *billing.Document) { d.IssueDate = "" }, "a number: it is a draft")
	f(func(d *billing.Document) { d.DueDate = "" }, "a due date")
	f(func(d *billing.Document) { d.Lines = nil }, "a line")
	f(func(d *billing.Document) { d.Currency = "STN" },
		"a currency of ISO 4217 that e-invoices may have, not STN")
	f(func(d *billing.Document) { d.Seller = nil }, "a seller: apply a document of kind Seller")
	f(func(d *billing.Document) { d.Buyer, d.Lines[0].Tax, d.Lines[3].Tax = nil, nil, nil },
		"line 1: how gpu.h100-80g, on_demand, standard is taxed: apply a document of kind TaxRule that "+
			"it matches",
		"line 4: how storage.gib, on_demand, standard is taxed: apply a document of kind TaxRule that "+
			"it matches",
		"a buyer: apply "+buyer+" with its legal_name and address")
	f(func(d *billing.Document) {
		d.Buyer.Address, d.Buyer.LegalName, d.Buyer.Endpoint = nil, "", nil
	}, buyer+": legal_name", buyer+": address.country", buyer+": endpoint")
	f(func(d *billing.Document) { d.Buyer.Address.Country = "XK" },
		buyer+": address.country as ISO 3166 has it, not XK")
	f(func(d *billing.Document) { d.Seller.TaxID, d.Seller.Endpoint = "", nil },
		seller+": endpoint, its scheme and id in Peppol", seller+": tax_id")
	f(func(d *billing.Document) { d.Buyer.Endpoint.Scheme = "EM" },
		buyer+": endpoint.scheme of Peppol, such as 0088 or 9930, not EM")
	f(func(d *billing.Document) { d.Buyer.Endpoint = &billing.Endpoint{Scheme: "0088", ID: "124"} },
		buyer+": endpoint.id of scheme 0088, with right check digits, not 124")
	f(func(d *billing.Document) { d.Type, d.Cites = billing.CreditNote, &billing.Citation{} },
		"the number of the invoice that it cites")
}

func TestRender_taxNeedsParties(t *testing.T) {
	f := func(category, code string, change func(d *billing.Document), want ...string) {
		t.Helper()
		d := billingtest.ReverseCharge()
		for i := range d.Lines {
			d.Lines[i].Tax = &billing.LineTax{Category: category, Rate: "0"}
		}
		d.Taxes[0].Category, d.Taxes[0].ReasonCode = category, code
		change(d)
		refuses(t, d, want...)
	}
	buyer := func(taxID, registration string) func(d *billing.Document) {
		return func(d *billing.Document) { d.Buyer.TaxID, d.Buyer.Registration = taxID, registration }
	}
	seller := func(taxID, registration string) func(d *billing.Document) {
		return func(d *billing.Document) { d.Seller.TaxID, d.Seller.Registration = taxID, registration }
	}
	f("AE", "VATEX-EU-AE", buyer("", ""), "Tenant/moulin: tax_id or registration")
	f("AE", "VATEX-EU-AE", buyer("", "123"))
	f("K", "VATEX-EU-IC", buyer("", "123"), "Tenant/moulin: tax_id")
	f("G", "VATEX-EU-G", buyer("", ""))
	f("E", "VATEX-EU-132", seller("", "123"), "Seller/rheinland: tax_id")
	f("O", "VATEX-EU-O", seller("", ""), "Seller/rheinland: registration")
	f("O", "VATEX-EU-O", seller("123", ""))
	f("O", "VATEX-EU-O", seller("", "123"))
	f("E", "VATEX-EU-AE", buyer("", ""),
		"TaxRule: reason_code VATEX-EU-AE is of category AE, not E")
	f("E", "OWN", func(d *billing.Document) { d.Taxes[0].Reason = "" },
		"TaxRule of category E: reason")
	f("O", "VATEX-EU-O", func(d *billing.Document) {
		d.Lines = append(d.Lines, billingtest.Plain().Lines...)
	}, "one tax treatment: what is not subject to tax (O) may not stand beside what is")
}

func TestRender_sellersOfSomeCountriesNeedMore(t *testing.T) {
	f := func(from, to string, change func(d *billing.Document), want ...string) {
		t.Helper()
		d := billingtest.Plain()
		parties := ubltest.Parties()
		d.Seller, d.Buyer = parties[from], ubltest.Parties()[to]
		for i := range d.Lines {
			d.Lines[i].Tax.Rate = "25"
		}
		d.Taxes[0].Rate = "25"
		change(d)
		for i := range want {
			want[i] = strings.Replace(want[i], "seller", "Seller/party-of-"+from, 1)
			want[i] = strings.Replace(want[i], "buyer", "Tenant/nordlicht", 1)
		}
		refuses(t, d, want...)
	}
	bare := func(d *billing.Document) {
		for _, p := range []*billing.Party{d.Seller, d.Buyer} {
			p.Address = &billing.Address{Country: p.Address.Country}
			p.Email, p.Phone, p.Registration, p.Bank = "", "", "", nil
		}
	}
	f("DE", "FR", bare)
	f("DE", "DE", bare, "seller: address.city", "seller: address.postal_code", "buyer: address.city",
		"buyer: address.postal_code", "seller: phone", "seller: email", "seller: bank")
	f("DE", "DE", func(d *billing.Document) {
		d.Type, d.Cites, d.Seller.Bank = billing.CreditNote, &billing.Citation{Number: "1"}, nil
	})
	f("DK", "FR", bare, "seller: registration")
	f("DK", "DK", bare, "seller: registration")
	f("DK", "DK", func(d *billing.Document) {
		d.Seller.Registration, d.Buyer.Registration, d.Seller.Bank.Account = "1", "DK2", "0400 1234"
	}, "seller: registration as the register of DK has it, not 1",
		"buyer: registration as the register of DK has it, not DK2", "seller: bank.account as an IBAN")
	f("IS", "FR", bare, "seller: address.street", "seller: address.postal_code",
		"seller: registration")
	f("IS", "IS", bare, "seller: address.street", "seller: address.postal_code",
		"seller: registration", "buyer: address.street", "buyer: address.postal_code",
		"buyer: registration")
	f("IT", "FR", bare, "seller: address.street", "seller: address.city",
		"seller: address.postal_code")
	f("NL", "FR", bare, "seller: address.street", "seller: address.city",
		"seller: address.postal_code", "seller: bank")
	f("NL", "FR", func(d *billing.Document) { d.Seller.Bank, d.Due = nil, "0.00" })
	f("NL", "NL", func(d *billing.Document) {
		d.Seller.Registration, d.Buyer.Registration = "KVK", "12345678901234567890"
		d.Buyer.Address.City = ""
	}, "seller: registration as the register of NL has it, not KVK", "buyer: address.city")
	f("SE", "FR", func(d *billing.Document) {
		d.Seller.TaxID, d.Seller.Registration, d.Taxes[0].Rate = "SE1", "5566778890", "19"
	}, "seller: tax_id as SE and twelve digits, not SE1",
		"TaxRule: a rate of 6, 12 or 25, as Sweden has, not 19",
		"seller: registration of ten digits, with a right check digit, not 5566778890")
	f("SE", "FR", func(d *billing.Document) {
		for i := range d.Lines {
			d.Lines[i].Tax.Category = "O"
		}
		d.Taxes[0].Category, d.Taxes[0].Reason, d.Seller.TaxID = "O", "x", "SE1"
	})
	norway := func(taxID string) func(d *billing.Document) {
		return func(d *billing.Document) {
			d.Seller.TaxID = taxID
		}
	}
	f("NO", "FR", norway("123456785MVA"))
	f("NO", "FR", norway("NO123456784MVA"), "seller: tax_id as NO, nine digits and MVA, not "+
		"NO123456784MVA")
	f("DE", "FR", func(d *billing.Document) { d.Seller.Address.Country = "GR" },
		"what only Greece's tax platform gives: a MARK and a number in its form")
}

func TestWellFormed(t *testing.T) {
	f := func(scheme, id string, want bool) {
		t.Helper()
		if got := wellFormed(scheme, id); got != want {
			t.Errorf("wellFormed(%s, %s) = %t", scheme, id, got)
		}
	}
	for scheme, id := range map[string]string{
		"0007": "1234567897", "0088": "1234567890128", "0151": "51824753556", "0192": "123456785",
		"0208": "0123456749",
	} {
		f(scheme, id, true)
		last := id[len(id)-1]
		f(scheme, id[:len(id)-1]+string('0'+(last-'0'+1)%10), false)
		f(scheme, id+"x", false)
		f(scheme, "", false)
	}
	f("0184", "DK12345674", true)
	f("0184", "12345674", true)
	f("0184", "SE12345674", false)
	f("0198", "12345674", false)
	f("0096", "1234567890", true)
	f("9930", "anything", true)
}

func TestVATID(t *testing.T) {
	f := func(country, taxID, want string) {
		t.Helper()
		got := vatID(&billing.Party{TaxID: taxID, Address: &billing.Address{Country: country}})
		if got != want {
			t.Errorf("the VAT number of %s in %s is %s, want %s", taxID, country, got, want)
		}
	}
	f("DE", "DE123456789", "DE123456789")
	f("DE", "123 456 789", "DE123456789")
	f("DE", "FR40303265045", "FR40303265045")
	f("GR", "123456789", "EL123456789")
	f("GR", "EL123456789", "EL123456789")
	f("SG", "MR-8500180-1", "SGMR-8500180-1")
	f("CH", "CHE-123.456.789", "CHE-123.456.789")
	f("CN", "91330100MA2B0XYZ1K", "CN91330100MA2B0XYZ1K")
	f("GB", "1", "GB1")
}
