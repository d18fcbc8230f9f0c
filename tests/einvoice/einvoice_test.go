package einvoice

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/billingtest"
	"github.com/suanpan/suanpan/pkg/billing/ubl"
	"github.com/suanpan/suanpan/pkg/billing/ubl/ubltest"
)

// random is how many drawn documents are checked.
const random = 36

// Every document that is rendered is an e-invoice without a finding; the rules find each fault that
// is planted.
func TestRules(t *testing.T) {
	documents := make(map[string][]byte)
	all := samples()
	maps.Copy(all, drafted(t))
	for name, d := range all {
		text, err := ubl.Render(d)
		if refused(name) != (err != nil) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			documents[name] = text
		}
	}
	draw := rapid.Custom(func(t *rapid.T) *billing.Document { return ubltest.Document(t, 1) })
	for seed := range random {
		text, err := ubl.Render(draw.Example(seed))
		if err != nil {
			t.Fatalf("drawn by seed %d: %v", seed, err)
		}
		documents[fmt.Sprintf("random_%02d", seed)] = text
	}
	faults := plant(t, documents)
	findings := Check(t, documents)
	for name, rule := range faults {
		if !slices.ContainsFunc(findings[name], func(f Finding) bool {
			return f.Level == "fatal_error" && strings.Contains(f.Rule, rule)
		}) {
			t.Errorf("%s: the rules did not find %s: %v", name, rule, findings[name])
		}
		delete(findings, name)
	}
	for _, name := range slices.Sorted(maps.Keys(findings)) {
		for _, f := range findings[name] {
			// A warning that cannot be heeded: only companies of some forms have to say that they are
			// in Norway's register, and which form a seller has is nothing that we know.
			if f.Level == "warn" && strings.HasPrefix(f.Rule, "NO-R-002") {
				continue
			}
			t.Errorf("%s: %s %s: %s\n%s", name, f.Level, f.Rule, f.Text, documents[name])
		}
	}
}

// plant adds documents with faults, and returns the rules that find them.
func plant(t *testing.T, documents map[string][]byte) map[string]string {
	t.Helper()
	faults := make(map[string]string)
	f := func(rule, of, from, to string) {
		t.Helper()
		if !bytes.Contains(documents[of], []byte(from)) {
			t.Fatalf("%s has no %q to plant a fault in", of, from)
		}
		name := "planted_" + rule + "_" + of
		documents[name] = bytes.Replace(documents[of], []byte(from), []byte(to), 1)
		faults[name] = rule
	}
	for _, of := range []string{"plain", "credit_note"} {
		f("BR-CO-16", of, `<cbc:PayableAmount currencyID="EUR">`, `<cbc:PayableAmount currencyID="EUR">1`)
		f("BR-CO-10", of, `<cbc:LineExtensionAmount currencyID="EUR">`,
			`<cbc:LineExtensionAmount currencyID="EUR">1`)
		f("BR-CO-14", of, `<cbc:TaxAmount currencyID="EUR">`, `<cbc:TaxAmount currencyID="EUR">1`)
		f("PEPPOL-EN16931-R120", of, `<cbc:PriceAmount currencyID="EUR">`,
			`<cbc:PriceAmount currencyID="EUR">1`)
		f("PEPPOL-EN16931-R110", of, `<cbc:StartDate>2026-10-01`, `<cbc:StartDate>2026-10-02`)
	}
	f("BR-S-10", "plain", `<cbc:Percent>19</cbc:Percent>`, `<cbc:Percent>19</cbc:Percent>
        <cbc:TaxExemptionReason>none</cbc:TaxExemptionReason>`)
	return faults
}

// refused are the samples that lack what an e-invoice needs: see their catalogs.
func refused(name string) bool {
	return slices.Contains([]string{"draft", "empty", "chinese", "chinese_credit"}, name)
}

// samples are those that all renderings are tested with, and more: of parties that have all that is
// needed, in currencies of none and three decimals, of every tax category, of sellers of countries
// with rules of their own, at home and abroad.
func samples() map[string]*billing.Document {
	all := billingtest.Samples()
	plain := billingtest.Plain()
	for _, d := range []*billing.Document{all["inclusive"], all["dinar"]} {
		d.Seller, d.Buyer = plain.Seller, billingtest.Moulin()
	}
	for category, code := range map[string]string{
		"Z": "", "E": "VATEX-EU-132", "G": "VATEX-EU-G", "O": "VATEX-EU-O", "K": "VATEX-EU-IC",
	} {
		d := billingtest.Plain()
		untax(d, category, code)
		all["domestic_"+category] = d
		d = billingtest.Plain()
		d.Buyer = billingtest.Moulin()
		untax(d, category, code)
		all["category_"+category] = d
	}
	parties := ubltest.Parties()
	for country, seller := range parties {
		for _, buyer := range []string{country, "FR"} {
			for name, d := range map[string]*billing.Document{
				"invoice": billingtest.Plain(), "credit_note": billingtest.CreditNote(),
			} {
				untax(d, "Z", "")
				d.Seller, d.Buyer = seller, parties[buyer]
				all[name+"_from_"+country+"_to_"+buyer] = d
			}
		}
	}
	return all
}

// untax makes a document one without tax.
func untax(d *billing.Document, category, code string) {
	t := billing.Tax{
		LineTax: billing.LineTax{Category: category, Rate: "0"}, Taxable: d.Subtotal, Tax: "0.00",
	}
	if code != "" {
		t.Reason, t.ReasonCode = "no tax is due", code
	}
	for i := range d.Lines {
		d.Lines[i].Tax, d.Lines[i].Net = &t.LineTax, d.Lines[i].Amount
	}
	d.Taxes, d.TaxTotal, d.Total, d.Due = []billing.Tax{t}, "0.00", d.Subtotal, d.Subtotal
	d.Prepaid = []billing.Paid{}
}
