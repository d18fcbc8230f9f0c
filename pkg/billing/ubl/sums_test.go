package ubl

import (
	"encoding/xml"
	"slices"
	"strings"
	"testing"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/billingtest"
)

// sold is a document of fees of one currency, by their net amounts and treatments.
func sold(currency string, tax billing.LineTax, nets ...string) *billing.Document {
	d := billingtest.ReverseCharge()
	d.Currency, d.Lines, d.Taxes, d.Notes = currency, nil, nil, nil
	for _, net := range nets {
		d.Lines = append(d.Lines, billing.Line{
			Kind: billing.MinimumLine, Quantity: "1", UnitPrice: net, Amount: net, Net: net, Tax: &tax,
			Start: d.PeriodStart, End: d.PeriodEnd,
		})
	}
	return d
}

// sums renders a document and returns its sums: of the lines, by rate, of the document.
func sums(t *testing.T, d *billing.Document) string {
	t.Helper()
	text, err := Render(d)
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		parsed
		Note string
	}
	if err := xml.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, l := range p.Invoiced {
		out = append(out, l.Amount)
	}
	for _, s := range p.Subtotals {
		out = append(out, "| "+s.ID+s.Rate, s.Taxable, s.Tax)
	}
	out = append(out, "|", p.Sum, p.Tax, p.Inclusive, p.Prepaid, p.Rounding, p.Payable, "|", p.Note)
	return strings.Join(slices.DeleteFunc(out, func(s string) bool { return s == "" }), " ")
}

// Three decimals become two so that every sum is exact; the rest is the rounding amount.
func TestSums_threeDecimals(t *testing.T) {
	tax := billing.LineTax{Category: "S", Rate: "5"}
	d := sold("KWD", tax, "1.005", "2.004", "-0.002")
	d.Taxes = []billing.Tax{{LineTax: tax, Taxable: "3.007", Tax: "0.150"}}
	d.Due = "3.157"
	const lines = "1.01 2.00 0.00 | S5 3.01 0.15 | 3.01 0.15 3.16 "
	if got, want := sums(t, d), lines+"3.16 | The exact amount due is 3.157 KWD."; got != want {
		t.Errorf("the sums are %s, want %s", got, want)
	}
	d.Prepaid, d.Due = []billing.Paid{{Amount: "1.002"}, {Amount: "1.002"}}, "1.153"
	want := lines + "2.00 -0.01 1.15 | The exact amount due is 1.153 KWD."
	if got := sums(t, d); got != want {
		t.Errorf("partly paid, the sums are %s, want %s", got, want)
	}
	// What is taxed was rounded, so the tax is computed anew.
	half := billing.LineTax{Category: "S", Rate: "50"}
	d = sold("KWD", half, "1.005")
	d.Taxes = []billing.Tax{{LineTax: half, Taxable: "1.005", Tax: "0.503"}}
	d.Due = "1.508"
	want = "1.01 | S50 1.01 0.51 | 1.01 0.51 1.52 -0.01 1.51 | The exact amount due is 1.508 KWD."
	if got := sums(t, d); got != want {
		t.Errorf("the sums are %s, want %s", got, want)
	}
	d.Notes = append(make([]string, 0, 2), "thank you")
	if sums(t, d); d.Notes[:2][1] != "" {
		t.Errorf("the document's notes were written to: %q", d.Notes[:2])
	}
}

// The rate of what is outside of VAT is demanded between Germans only.
func TestSums_outside(t *testing.T) {
	tax := billing.LineTax{Category: "O", Rate: "0"}
	d := sold("EUR", tax, "5.00")
	d.Taxes, d.Due = []billing.Tax{{LineTax: tax, Taxable: "5.00", Tax: "0.00", Reason: "x"}}, "5.00"
	if got, want := sums(t, d), "5.00 | O 5.00 0.00 | 5.00 0.00 5.00 5.00 |"; got != want {
		t.Errorf("the sums are %s, want %s", got, want)
	}
	d.Buyer = billingtest.Nordlicht()
	if got, want := sums(t, d), "5.00 | O0 5.00 0.00 | 5.00 0.00 5.00 5.00 |"; got != want {
		t.Errorf("between Germans, the sums are %s, want %s", got, want)
	}
}

// Prices with tax and without it, in a currency without decimals, can come to a tax that is further
// from the rate than the rules allow: the rest is the rounding amount.
func TestSums_mixedPrices(t *testing.T) {
	f := func(gross, excluded, included, want string) {
		t.Helper()
		tax := billing.LineTax{Category: "S", Rate: "19"}
		with := billing.LineTax{Category: "S", Rate: "19.0", Inclusive: true}
		d := sold("JPY", tax, gross, "40")
		d.Lines[1].Tax = &with
		d.Taxes = []billing.Tax{
			{LineTax: tax, Taxable: gross, Tax: excluded}, {LineTax: with, Taxable: "40", Tax: included},
		}
		d.Due = "108"
		if got := sums(t, d); got != want {
			t.Errorf("the sums are %s, want %s", got, want)
		}
	}
	f("50", "10", "8", "50 40 | S19 90 18 | 90 18 108 108 |")       // 17.1
	f("60", "12", "8", "60 40 | S19 100 19 | 100 19 119 -11 108 |") // 20 is not allowed
	f("50", "10", "9", "50 40 | S19 90 17 | 90 17 107 1 108 |")
}

func TestSums_reasons(t *testing.T) {
	f := func(want string, taxes ...billing.Tax) {
		t.Helper()
		d := sold("EUR", billing.LineTax{Category: taxes[0].Category, Rate: "0"}, "5.00")
		for i := range taxes {
			taxes[i].Rate, taxes[i].Taxable, taxes[i].Tax = "0", "5.00", "0.00"
		}
		d.Taxes, d.Due = taxes, "5.00"
		text, err := Render(d)
		if err != nil {
			t.Fatal(err)
		}
		var p struct {
			Code   string `xml:"TaxTotal>TaxSubtotal>TaxCategory>TaxExemptionReasonCode"`
			Reason string `xml:"TaxTotal>TaxSubtotal>TaxCategory>TaxExemptionReason"`
		}
		if err := xml.Unmarshal(text, &p); err != nil {
			t.Fatal(err)
		}
		if got := p.Code + " | " + p.Reason; got != want {
			t.Errorf("the reason is %q, want %q", got, want)
		}
	}
	exempt := func(reason, code string) billing.Tax {
		return billing.Tax{LineTax: billing.LineTax{Category: "E"}, Reason: reason, ReasonCode: code}
	}
	f("VATEX-EU-132 | school", exempt("school", "VATEX-EU-132"))
	f("VATEX-EU-132 | school", exempt("school", "VATEX-EU-132"), exempt("school", "VATEX-EU-132"))
	f(" | school; bank", exempt("school", "VATEX-EU-132"), exempt("bank", "VATEX-EU-135-1"))
	f(" | our law", exempt("our law", "LAW-7"))
	f("VATEX-EU-132 | ", exempt("", "VATEX-EU-132"))
	f(" | ", billing.Tax{LineTax: billing.LineTax{Category: "Z"}, Reason: "none", ReasonCode: "X"})
}
