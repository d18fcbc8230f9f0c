package einvoice

import (
	"bytes"
	"strings"
	"testing"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/billingtest"
	"github.com/suanpan/suanpan/pkg/billing/ubl"
)

// Every document that is complete is an e-invoice without a finding; the rules find a fault that is
// planted.
func TestSamples(t *testing.T) {
	documents := make(map[string][]byte)
	for name, d := range samples() {
		text, err := ubl.Render(d)
		if err != nil {
			t.Logf("%s is no e-invoice: %v", name, err)
			continue
		}
		documents[name] = text
	}
	if len(documents) < 13 {
		t.Fatalf("only %d samples are e-invoices", len(documents))
	}
	total := []byte("<cbc:PayableAmount currencyID=")
	at := bytes.Index(documents["plain"], total)
	end := at + bytes.IndexByte(documents["plain"][at:], '>') + 1
	documents["planted"] = append(append(bytes.Clone(documents["plain"][:end]), '1'),
		documents["plain"][end:]...)
	findings := Check(t, documents)
	planted := false
	for _, f := range findings["planted"] {
		planted = planted || strings.Contains(f.Rule, "BR-CO-16")
	}
	if !planted {
		t.Errorf("a wrong amount due was not found: %v", findings["planted"])
	}
	delete(findings, "planted")
	for name, found := range findings {
		for _, f := range found {
			t.Errorf("%s: %s %s: %s", name, f.Level, f.Rule, f.Text)
		}
	}
}

// samples are those that all renderings are tested with, and more: of parties that have all that is
// needed, in currencies of none and three decimals, of every tax category.
func samples() map[string]*billing.Document {
	all := billingtest.Samples()
	plain := billingtest.Plain()
	for _, d := range []*billing.Document{all["inclusive"], all["dinar"]} {
		d.Seller, d.Buyer = plain.Seller, billingtest.ReverseCharge().Buyer
	}
	for category, code := range map[string]string{
		"Z": "", "E": "VATEX-EU-132", "G": "VATEX-EU-G", "O": "VATEX-EU-O", "K": "VATEX-EU-IC",
	} {
		d := billingtest.Plain()
		d.Buyer = billingtest.ReverseCharge().Buyer
		untax(d, category, code)
		all["category_"+category] = d
	}
	return all
}

// untax makes a document one without tax.
func untax(d *billing.Document, category, code string) {
	t := billing.Tax{LineTax: billing.LineTax{Category: category, Rate: "0"}, Taxable: d.Subtotal, Tax: "0.00"}
	if code != "" {
		t.Reason, t.ReasonCode = "no tax is due", code
	}
	for i := range d.Lines {
		d.Lines[i].Tax, d.Lines[i].Net = &t.LineTax, d.Lines[i].Amount
	}
	d.Taxes, d.TaxTotal, d.Total, d.Due = []billing.Tax{t}, "0.00", d.Subtotal, d.Subtotal
	d.Prepaid = []billing.Paid{}
}
