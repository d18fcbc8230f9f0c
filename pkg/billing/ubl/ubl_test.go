package ubl

import (
	"encoding/xml"
	"flag"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/billingtest"
	"github.com/suanpan/suanpan/pkg/money"
)

var update = flag.Bool("update", false, "write the golden files")

func TestRender_golden(t *testing.T) {
	for _, name := range []string{"plain", "ladder", "late", "credit_note", "reverse_charge"} {
		t.Run(name, func(t *testing.T) {
			got, err := Render(billingtest.Samples()[name])
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name+".xml")
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v; -update writes it", err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
		})
	}
}

func TestRender_saysAllThatIsMissing(t *testing.T) {
	f := func(change func(d *billing.Document), want ...string) {
		t.Helper()
		d := billingtest.Plain()
		change(d)
		_, err := Render(d)
		for _, text := range want {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("the error is %v, want one with %q", err, text)
			}
		}
	}
	f(func(d *billing.Document) { d.Number = "" }, "a number: it is a draft")
	f(func(d *billing.Document) { d.Seller = nil }, "a seller")
	f(func(d *billing.Document) { d.Buyer, d.Lines[0].Tax = nil, nil }, "a buyer", "line 1: how")
	f(func(d *billing.Document) { d.Buyer.Address, d.Buyer.LegalName = nil, "" },
		"Tenant/"+billingtest.Plain().Tenant+": address.country", ": legal_name")
	f(func(d *billing.Document) { d.Seller.TaxID, d.Seller.Endpoint = "", nil },
		"Seller/"+billingtest.Plain().Seller.Name+": tax_id", ": endpoint")
	f(func(d *billing.Document) { d.Buyer.Endpoint.Scheme = "EM" }, "four digits, not EM")
	f(func(d *billing.Document) { d.Lines[0].Tax.Category = "AE"; d.Buyer.TaxID = "" }, ": tax_id")
}

// randomDocument is an issued invoice with any lines, whose sums are right.
func randomDocument(t *rapid.T) *billing.Document {
	d := billingtest.Plain()
	d.Currency = rapid.SampledFrom([]string{"JPY", "EUR", "KWD"}).Draw(t, "currency")
	digits, _ := money.Digits(d.Currency)
	taxes := []billing.LineTax{
		{Category: "S", Rate: "19"}, {Category: "S", Rate: "6.5", Inclusive: true},
		{Category: "Z", Rate: "0"}, {Category: "S", Rate: "6.5"},
	}
	sums, nets := make([]money.Amount, len(taxes)), make([]money.Amount, len(taxes))
	d.Lines = nil
	var subtotal money.Amount
	for i := range rapid.IntRange(1, 12).Draw(t, "lines") {
		at := rapid.IntRange(0, len(taxes)-1).Draw(t, "tax")
		amount := money.New(big.NewInt(rapid.Int64Range(-2_000, 900_000).Draw(t, "amount")), digits)
		net := amount
		if taxes[at].Inclusive {
			net = amount.MulRatio(big.NewInt(1000), big.NewInt(1065), digits, money.HalfUp)
		}
		d.Lines = append(d.Lines, billing.Line{
			Kind: billing.UsageLine, SKU: fmt.Sprintf("sku-%d", i), Quantity: "1", Unit: "unit",
			Per: "unit", UnitPrice: amount.String(), Amount: amount.Fixed(digits),
			Net: net.Fixed(digits), Exact: amount.Fixed(money.Scale), Tax: &taxes[at],
			Start: d.PeriodStart, End: d.PeriodEnd,
		})
		sums[at], nets[at] = sums[at].Add(amount), nets[at].Add(net)
		subtotal = subtotal.Add(amount)
	}
	d.Taxes, d.Prepaid = []billing.Tax{}, []billing.Paid{}
	total := subtotal
	for at := range taxes {
		rate, tax := money.MustParse(taxes[at].Rate), sums[at].Sub(nets[at])
		if !taxes[at].Inclusive {
			tax = sums[at].Mul(rate).MulRatio(big.NewInt(1), big.NewInt(100), digits, money.HalfUp)
			total = total.Add(tax)
		}
		d.Taxes = append(d.Taxes, billing.Tax{
			LineTax: taxes[at], Taxable: nets[at].Fixed(digits), Tax: tax.Fixed(digits),
		})
	}
	d.Subtotal, d.Total, d.Due = subtotal.Fixed(digits), total.Fixed(digits), total.Fixed(digits)
	return d
}

// parsed is what the calculation rules of EN 16931 are about.
type parsed struct {
	Tax       string `xml:"TaxTotal>TaxAmount"`
	Subtotals []struct {
		Taxable string `xml:"TaxableAmount"`
		Tax     string `xml:"TaxAmount"`
		ID      string `xml:"TaxCategory>ID"`
		Rate    string `xml:"TaxCategory>Percent"`
	} `xml:"TaxTotal>TaxSubtotal"`
	Sum       string `xml:"LegalMonetaryTotal>LineExtensionAmount"`
	Exclusive string `xml:"LegalMonetaryTotal>TaxExclusiveAmount"`
	Inclusive string `xml:"LegalMonetaryTotal>TaxInclusiveAmount"`
	Rounding  string `xml:"LegalMonetaryTotal>PayableRoundingAmount"`
	Payable   string `xml:"LegalMonetaryTotal>PayableAmount"`
	Lines     []struct {
		Amount string `xml:"LineExtensionAmount"`
		Price  string `xml:"Price>PriceAmount"`
		ID     string `xml:"Item>ClassifiedTaxCategory>ID"`
		Rate   string `xml:"Item>ClassifiedTaxCategory>Percent"`
	} `xml:"InvoiceLine"`
}

// The calculation rules BR-CO-10 to 16, BR-S-08 and that amounts have at most two decimals.
func TestRender_addsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, err := Render(randomDocument(t))
		if err != nil {
			t.Fatal(err)
		}
		var p parsed
		if err := xml.Unmarshal(text, &p); err != nil {
			t.Fatal(err)
		}
		equal := func(what string, a, b money.Amount) {
			if a.Cmp(b) != 0 {
				t.Fatalf("%s: %s is not %s in\n%s", what, a, b, text)
			}
		}
		var lines, taxed, tax money.Amount
		byRate := make(map[string]money.Amount)
		for _, l := range p.Lines {
			if _, fraction, _ := strings.Cut(l.Amount, "."); len(fraction) > 2 {
				t.Fatalf("amount %s has more than two decimals", l.Amount)
			}
			if parse(l.Price).Sign() < 0 {
				t.Fatalf("price %s is negative", l.Price)
			}
			lines = lines.Add(parse(l.Amount))
			byRate[l.ID+l.Rate] = byRate[l.ID+l.Rate].Add(parse(l.Amount))
		}
		seen := make(map[string]bool)
		for _, s := range p.Subtotals {
			if seen[s.ID+s.Rate] {
				t.Fatalf("two subtotals of %s %s", s.ID, s.Rate)
			}
			seen[s.ID+s.Rate] = true
			equal("what is taxed at "+s.ID+s.Rate, parse(s.Taxable), byRate[s.ID+s.Rate])
			taxed, tax = taxed.Add(parse(s.Taxable)), tax.Add(parse(s.Tax))
		}
		equal("sum of lines", parse(p.Sum), lines)
		equal("sum of what is taxed", parse(p.Exclusive), taxed)
		equal("sum of taxes", parse(p.Tax), tax)
		equal("with tax", parse(p.Inclusive), parse(p.Exclusive).Add(parse(p.Tax)))
		due := parse(p.Inclusive)
		if p.Rounding != "" {
			due = due.Add(parse(p.Rounding))
		}
		equal("due", parse(p.Payable), due)
	})
}
