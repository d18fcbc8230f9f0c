package ubl

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"flag"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/billing/billingtest"
	"github.com/suanpan/suanpan/pkg/billing/ubl/ubltest"
	"github.com/suanpan/suanpan/pkg/money"
)

var update = flag.Bool("update", false, "write the golden files")

func TestRender_golden(t *testing.T) {
	for _, name := range []string{
		"plain", "ladder", "late", "credit_note", "reverse_charge",
	} {
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
			if diff := gocmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
		})
	}
}

// parsed is what the calculation rules of EN 16931 are about.
type parsed struct {
	Period    days   `xml:"InvoicePeriod"`
	Tax       string `xml:"TaxTotal>TaxAmount"`
	Subtotals []struct {
		Taxable string `xml:"TaxableAmount"`
		Tax     string `xml:"TaxAmount"`
		ID      string `xml:"TaxCategory>ID"`
		Rate    string `xml:"TaxCategory>Percent"`
	} `xml:"TaxTotal>TaxSubtotal"`
	Sum       string       `xml:"LegalMonetaryTotal>LineExtensionAmount"`
	Exclusive string       `xml:"LegalMonetaryTotal>TaxExclusiveAmount"`
	Inclusive string       `xml:"LegalMonetaryTotal>TaxInclusiveAmount"`
	Prepaid   string       `xml:"LegalMonetaryTotal>PrepaidAmount"`
	Rounding  string       `xml:"LegalMonetaryTotal>PayableRoundingAmount"`
	Payable   string       `xml:"LegalMonetaryTotal>PayableAmount"`
	Invoiced  []parsedLine `xml:"InvoiceLine"`
	Credited  []parsedLine `xml:"CreditNoteLine"`
}

type days struct{ StartDate, EndDate string }

type parsedLine struct {
	Invoiced coded  `xml:"InvoicedQuantity"`
	Credited coded  `xml:"CreditedQuantity"`
	Amount   string `xml:"LineExtensionAmount"`
	Period   days   `xml:"InvoicePeriod"`
	Price    string `xml:"Price>PriceAmount"`
	Base     coded  `xml:"Price>BaseQuantity"`
	ID       string `xml:"Item>ClassifiedTaxCategory>ID"`
	Rate     string `xml:"Item>ClassifiedTaxCategory>Percent"`
}

type coded struct {
	Unit  string `xml:"unitCode,attr"`
	Value string `xml:",chardata"`
}

// orZero reads an amount that may be absent.
func orZero(text string) money.Amount { return parse(cmp.Or(text, "0")) }

// equal fails where two amounts differ, or by more than a tolerance.
func equal(t *rapid.T, what string, got, want money.Amount, tolerance string) {
	diff := got.Sub(want)
	if diff.Sign() < 0 {
		diff = diff.Neg()
	}
	if diff.Cmp(parse(tolerance)) > 0 {
		t.Fatalf("%s: %s is not %s", what, got, want)
	}
}

// Property: the calculation rules BR-CO-10 and 13 to 17, the sums by rate (BR-S-08 and 09 and those
// of the other categories), BR-27, BR-DEC and PEPPOL-EN16931-R110, R111 and R120 hold, exactly but
// where said.
func TestRender_addsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := ubltest.Document(t, 1)
		text, err := Render(d)
		if err != nil {
			t.Fatal(err)
		}
		var p parsed
		if err := xml.Unmarshal(text, &p); err != nil {
			t.Fatal(err)
		}
		places, _ := money.Digits(d.Currency)
		byRate, sum := p.checkLines(t, len(d.Lines))
		var taxable, tax money.Amount
		seen := make(map[string]bool)
		for _, s := range p.Subtotals {
			key := s.ID + strings.TrimPrefix(s.Rate, "0")
			if seen[key] {
				t.Fatalf("two subtotals of %s %s", s.ID, s.Rate)
			}
			seen[key] = true
			equal(t, "what is taxed at "+s.ID+s.Rate, parse(s.Taxable), byRate[key], "0")
			taxable, tax = taxable.Add(parse(s.Taxable)), tax.Add(parse(s.Tax))
			// Prices with and without tax share a subtotal, each rounded by itself.
			off := map[int]string{0: "0.99", 2: "0.015", 3: "0.015"}[places]
			rated := parse(s.Taxable).Mul(orZero(s.Rate)).MulRatio(big.NewInt(1), big.NewInt(100), 9,
				money.HalfUp)
			equal(t, "tax of "+s.ID+s.Rate, parse(s.Tax), rated, off)
		}
		equal(t, "sum of lines", parse(p.Sum), sum, "0")
		equal(t, "sum of what is taxed", parse(p.Exclusive), taxable, "0")
		equal(t, "sum of taxes", parse(p.Tax), tax, "0")
		equal(t, "with tax", parse(p.Inclusive), parse(p.Exclusive).Add(parse(p.Tax)), "0")
		due := parse(p.Inclusive).Sub(orZero(p.Prepaid)).Add(orZero(p.Rounding))
		equal(t, "due", parse(p.Payable), due, "0")
		equal(t, "due of the document", parse(p.Payable), parse(d.Due), "0.005")
		if places == 2 && p.Rounding != "" {
			t.Fatalf("rounding of %s %s", p.Rounding, d.Currency)
		}
	})
}

// checkLines checks each line and returns their sums by category and rate, and of all.
func (p *parsed) checkLines(t *rapid.T, want int) (map[string]money.Amount, money.Amount) {
	lines := slices.Concat(p.Invoiced, p.Credited)
	if len(lines) != want {
		t.Fatalf("%d lines, want %d", len(lines), want)
	}
	byRate, sum := make(map[string]money.Amount), money.Amount{}
	for _, l := range lines {
		if _, fraction, _ := strings.Cut(l.Amount, "."); len(fraction) > 2 {
			t.Fatalf("amount %s has more than two decimals", l.Amount)
		}
		quantity := parse(l.Invoiced.Value + l.Credited.Value)
		if parse(l.Price).Sign() < 0 || quantity.Sign() == 0 {
			t.Fatalf("quantity %s, price %s", quantity, l.Price)
		}
		if unit := l.Invoiced.Unit + l.Credited.Unit; cmp.Or(l.Base.Unit, unit) != unit {
			t.Fatalf("%s is priced per %s", unit, l.Base.Unit)
		}
		base, err := parse(cmp.Or(l.Base.Value, "1")).Scaled(0)
		if err != nil || base.Sign() <= 0 {
			t.Fatalf("base quantity %q", l.Base.Value)
		}
		product := quantity.Mul(parse(l.Price)).MulRatio(big.NewInt(1), base, 12, money.HalfUp)
		equal(t, "quantity x price", parse(l.Amount), product, "0.02")
		if l.Period.StartDate < p.Period.StartDate || l.Period.EndDate > p.Period.EndDate {
			t.Fatalf("line of %v in an invoice of %v", l.Period, p.Period)
		}
		sum = sum.Add(parse(l.Amount))
		key := l.ID + strings.TrimPrefix(l.Rate, "0")
		byRate[key] = byRate[key].Add(parse(l.Amount))
	}
	return byRate, sum
}

// Property: a rendering is a function of the document, which it leaves as it was.
func TestRender_pure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := ubltest.Document(t, 1)
		before, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		first, err := Render(d)
		if err != nil {
			t.Fatal(err)
		}
		if after, _ := json.Marshal(d); !bytes.Equal(before, after) {
			t.Fatalf("the document was changed from %s to %s", before, after)
		}
		if second, _ := Render(d); !bytes.Equal(first, second) {
			t.Fatal("the second rendering differs")
		}
	})
}
