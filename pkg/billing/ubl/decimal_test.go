package ubl

import (
	"strings"
	"testing"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/billingtest"
)

func TestRender_refusesWhatIsNoAmount(t *testing.T) {
	f := func(change func(d *billing.Document, text string), of string) {
		t.Helper()
		for _, text := range []string{"", "x", "1,5", "1e3", ".5", "1.", "--1", "+1", " 1"} {
			d := billingtest.Late()
			d.Lines[0].Tax = &billing.LineTax{Category: "S", Rate: "19"}
			d.Lines[0].Tiers = []billing.Tier{{Quantity: "1", UnitPrice: "1"}}
			d.Prepaid = []billing.Paid{{Amount: "1"}}
			change(d, text)
			_, err := Render(d)
			if err == nil || !strings.Contains(err.Error(), "read amount of "+of+": ") {
				t.Errorf("%q as an amount of %s: %v", text, of, err)
			}
		}
	}
	f(func(d *billing.Document, text string) { d.Due = text }, "the document")
	f(func(d *billing.Document, text string) { d.Prepaid[0].Amount = text }, "the document")
	f(func(d *billing.Document, text string) { d.Taxes[0].Tax = text }, "the taxes")
	f(func(d *billing.Document, text string) { d.Taxes[0].Taxable = text }, "the taxes")
	f(func(d *billing.Document, text string) { d.Taxes[0].Rate = text }, "the taxes")
	f(func(d *billing.Document, text string) { d.Lines[0].Net = text }, "line 1")
	f(func(d *billing.Document, text string) { d.Lines[0].Quantity = text }, "line 1")
	f(func(d *billing.Document, text string) { d.Lines[0].UnitPrice = text }, "line 1")
	f(func(d *billing.Document, text string) { d.Lines[0].Tax.Rate = text }, "line 1")
	f(func(d *billing.Document, text string) { d.Lines[0].Tiers[0].Quantity = text }, "line 1")
	f(func(d *billing.Document, text string) { d.Lines[4].Details[1].Quantity = text }, "line 5")
}

func TestRender_refusesWhatIsNoCurrency(t *testing.T) {
	d := billingtest.Plain()
	d.Currency = "GPU"
	if _, err := Render(d); err == nil || !strings.Contains(err.Error(), `"GPU" is no currency`) {
		t.Errorf("the error is %v", err)
	}
}

func TestRender_largeQuantities(t *testing.T) {
	got := short(t, billing.Line{
		Kind: billing.UsageLine, SKU: "tokens", Quantity: "123456789012345678901.500000000",
		Unit: "unit", Per: "unit", UnitPrice: "0.000000000001", Amount: "123456789.01",
	})
	if want := "123456789012345678901.5 C62 at 0.000000000001 | tokens | "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
