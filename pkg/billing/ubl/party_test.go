package ubl

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/billingtest"
	"github.com/suanpan/suanpan/pkg/billing/ubl/ubltest"
)

// A party without an endpoint is reached by its VAT number, if that is an address.
func TestEndpointOf(t *testing.T) {
	f := func(country, taxID, want string) {
		t.Helper()
		p := &billing.Party{TaxID: taxID, Address: &billing.Address{Country: country}}
		e, ok := endpointOf(p)
		if !ok {
			e = billing.Endpoint{}
		}
		if got := strings.Trim(e.Scheme+":"+e.ID, ":"); got != want {
			t.Errorf("%s in %s is reached at %q, want %q", taxID, country, got, want)
		}
	}
	f("DE", "123456789", "9930:DE123456789")
	f("DE", "FR40303265045", "9957:FR40303265045")
	f("IT", "IT12345670017", "0211:IT12345670017")
	f("SG", "M90312345A", "")
	f("DE", "", "")
	given := &billing.Party{TaxID: "DE1", Endpoint: &billing.Endpoint{Scheme: "0088", ID: "7"}}
	if e, ok := endpointOf(given); !ok || e != *given.Endpoint {
		t.Errorf("the endpoint that is given became %v", e)
	}
	if _, ok := endpointOf(&billing.Party{TaxID: "DE1"}); ok {
		t.Error("a party without an address has an endpoint")
	}
	for country, scheme := range vatSchemes {
		if !known(schemes, scheme) || len(country) != 2 {
			t.Errorf("the scheme %s of %s is none of Peppol's", scheme, country)
		}
	}
}

// means are the payment means and the registrations of a document.
func means(t *testing.T, from, to string, change func(d *billing.Document)) string {
	t.Helper()
	d := billingtest.ReverseCharge()
	d.Seller, d.Buyer = ubltest.Parties()[from], ubltest.Parties()[to]
	change(d)
	text, err := Render(d)
	if err != nil {
		t.Fatal(err)
	}
	type company struct {
		Scheme string `xml:"schemeID,attr"`
		ID     string `xml:",chardata"`
	}
	var p struct {
		Code    string  `xml:"PaymentMeans>PaymentMeansCode"`
		Account string  `xml:"PaymentMeans>PayeeFinancialAccount>ID"`
		BIC     string  `xml:"PaymentMeans>PayeeFinancialAccount>FinancialInstitutionBranch>ID"`
		Seller  company `xml:"AccountingSupplierParty>Party>PartyLegalEntity>CompanyID"`
		VAT     string  `xml:"AccountingSupplierParty>Party>PartyTaxScheme>CompanyID"`
	}
	if err := xml.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	return strings.Join([]string{p.Code, p.Account, p.BIC, p.Seller.Scheme, p.Seller.ID, p.VAT}, " ")
}

func TestPartiesAndPaymentMeans(t *testing.T) {
	f := func(from, to string, change func(d *billing.Document), want string) {
		t.Helper()
		if got := means(t, from, to, change); got != want {
			t.Errorf("from %s to %s: %q, want %q", from, to, got, want)
		}
	}
	same := func(*billing.Document) {}
	credit := func(d *billing.Document) {
		d.Type, d.Cites = billing.CreditNote, &billing.Citation{Number: "1"}
	}
	const bank = "DE02120300000000202051 BYLADEM1001"
	f("DE", "FR", same, "30 "+bank+"  HRB 98765 DE123456789")
	f("DE", "FR", func(d *billing.Document) { d.Seller.Bank = nil }, "    HRB 98765 DE123456789")
	f("DE", "FR", func(d *billing.Document) { d.Seller.Bank.BIC = "" },
		"30 DE02120300000000202051   HRB 98765 DE123456789")
	f("DE", "DE", credit, "97    HRB 98765 DE123456789")
	f("DE", "FR", credit, "    HRB 98765 DE123456789")
	f("DK", "DK", same, "58 "+bank+" 0184 12345674 DK12345674")
	f("DK", "FR", same, "30 "+bank+" 0184 12345674 DK12345674")
	f("NL", "NL", same, "30 "+bank+" 0106 12345678 NL123456789B12")
	f("NL", "FR", func(d *billing.Document) { d.Seller.Registration = "12345678901234567890" },
		"30 "+bank+" 0190 12345678901234567890 NL123456789B12")
	f("SE", "FR", same, "30 "+bank+"  5566778899 SE556677889901")
	f("FR", "DE", func(d *billing.Document) {
		d.Lines[0].Tax.Category, d.Taxes[0].Category, d.Taxes[0].ReasonCode = "O", "O", ""
	}, "30 "+bank+"  FR40303265045 ")
}
