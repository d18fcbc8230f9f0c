package ubl

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/billingtest"
)

// short renders a document of one line and returns the line in short: quantity, unit, price and
// base, the name, and the note.
func short(t *testing.T, l billing.Line) string {
	t.Helper()
	d := billingtest.Plain()
	l.Tax = &billing.LineTax{Category: "S", Rate: "19", Inclusive: l.Tax != nil && l.Tax.Inclusive}
	if l.Net == "" {
		l.Net = l.Amount
	}
	if l.Start == "" {
		l.Start, l.End = d.PeriodStart, d.PeriodEnd
	}
	d.Lines, d.Taxes = []billing.Line{l}, nil
	text, err := Render(d)
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		Line struct {
			Note     string
			Quantity coded  `xml:"InvoicedQuantity"`
			Price    string `xml:"Price>PriceAmount"`
			Base     coded  `xml:"Price>BaseQuantity"`
			Name     string `xml:"Item>Name"`
		} `xml:"InvoiceLine"`
	}
	if err := xml.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	out := p.Line.Quantity.Value + " " + p.Line.Quantity.Unit + " at " + p.Line.Price
	if p.Line.Base.Value != "" {
		out += " per " + p.Line.Base.Value + " " + p.Line.Base.Unit
	}
	return strings.Join([]string{out, p.Line.Name, p.Line.Note}, " | ")
}

func TestLine_priced(t *testing.T) {
	usage := billing.Line{
		Kind: billing.UsageLine, SKU: "gpu.m", Purchase: "spot", Band: "night", Unit: "unit-second",
	}
	f := func(per, quantity, price, amount, want string) {
		t.Helper()
		l := usage
		l.Per, l.Quantity, l.UnitPrice, l.Amount = per, quantity, price, amount
		if per == "unit" {
			l.Unit = "unit"
		}
		if got := short(t, l); got != want {
			t.Errorf("%s at %s per %s is %q, want %q", quantity, price, per, got, want)
		}
	}
	const name = " | gpu.m, spot, night | "
	f("second", "10.000000000", "0.01", "0.10", "10 SEC at 0.01 per 1 SEC"+name)
	f("hour", "4812", "2.95", "3.94", "4812 SEC at 2.95 per 3600 SEC"+name)
	f("day", "86400", "24.50", "24.50", "86400 SEC at 24.5 per 86400 SEC"+name)
	f("month", "2628000", "0.04", "0.04", "2628000 SEC at 0.04 per 2628000 SEC"+name)
	f("unit", "12.5", "880", "11000.00", "12.5 C62 at 880"+name)
	f("unit", "-2", "3", "-6.00", "-2 C62 at 3"+name)
	f("hour", "3600", "0", "0.00", "3600 SEC at 0 per 3600 SEC"+name)
	// The largest remainder moved a cent; two cents are no rounding.
	f("hour", "4812", "2.95", "3.95", "4812 SEC at 2.95 per 3600 SEC"+name)
	f("hour", "4812", "2.95", "3.93",
		"1 C62 at 3.93"+name+"4812 unit-second at 2.95 EUR per hour")
	f("hour", "0", "2.95", "-0.01", "-1 C62 at 0.01"+name+"0 unit-second at 2.95 EUR per hour")
	f("unit", "2", "-3", "-6.00", "-1 C62 at 6.00"+name+"2 unit at -3 EUR per unit")
}

func TestLine_explained(t *testing.T) {
	f := func(l billing.Line, want string) {
		t.Helper()
		if got := short(t, l); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
	usage := billing.Line{
		Kind: billing.UsageLine, SKU: "tokens.m", Purchase: "per_task", Band: "standard",
		Quantity: "1500", Unit: "unit", Per: "unit", UnitPrice: "0.004", Amount: "6.00", Average: true,
	}
	const name = " | tokens.m, per_task, standard | "
	packed := usage
	packed.Package = "1000"
	f(packed, "1 C62 at 6.00"+name+"1500 unit, sold in packages of 1000")
	tiered := usage
	tiered.Tiers = []billing.Tier{
		{UpTo: "1000", Quantity: "1000", UnitPrice: "0.005"},
		{Quantity: "500.0", UnitPrice: "0.002"},
		{Quantity: "0", UnitPrice: "0.001"},
	}
	f(tiered, "1 C62 at 6.00"+name+
		"1500 unit; tier 1: 1000 at 0.005 EUR per unit; tier 2: 500 at 0.002 EUR per unit")
	inclusive := usage
	inclusive.Net, inclusive.Tax = "5.04", &billing.LineTax{Inclusive: true}
	f(inclusive, "1 C62 at 5.04"+name+
		"1500 unit at 0.004 EUR per unit on average; 6.00 EUR with tax")
	inclusive.Quantity, inclusive.UnitPrice, inclusive.Average = "1", "0.02", false
	inclusive.Amount, inclusive.Net = "0.02", "0.02" // as if the price were without tax
	f(inclusive, "1 C62 at 0.02"+name+"1 unit at 0.02 EUR per unit; 0.02 EUR with tax")
	fee := billing.Line{
		Kind: billing.CommitmentLine, SKU: "gpu.m", Quantity: "1", Unit: "unit", Per: "unit",
		UnitPrice: "6.004", Amount: "6.00",
	}
	f(fee, "1 C62 at 6.00 | Commitment, gpu.m | ")
	fee.Kind, fee.SKU, fee.Grant = billing.CreditLine, "", "welcome"
	fee.UnitPrice, fee.Amount = "-6", "-6.00"
	f(fee, "-1 C62 at 6.00 | Credit, welcome | ")
	fee.Kind, fee.Grant = billing.MinimumLine, ""
	f(fee, "-1 C62 at 6.00 | Minimum spend | ")
	late := fee
	late.Kind, late.UsagePeriod, late.Amount = billing.LateLine, "2026-08", "12.00"
	late.Details = []billing.Line{usage, usage}
	f(late, "1 C62 at 12.00 | Late usage of 2026-08 | tokens.m, per_task, standard: 1500 unit, "+
		"6.00 EUR; tokens.m, per_task, standard: 1500 unit, 6.00 EUR")
	back := usage
	back.Kind, back.UsagePeriod = billing.LateLine, "2026-08"
	f(back, "1500 C62 at 0.004 | tokens.m, per_task, standard, Late usage of 2026-08 | ")
}

// The period of an invoice is that from its first line's to its last one's.
func TestRender_period(t *testing.T) {
	d := billingtest.Plain()
	d.Lines = d.Lines[:3]
	d.Lines[0].Start, d.Lines[0].End = "2026-09-12", "2026-09-20"
	d.Lines[1].Start, d.Lines[1].End = "2026-10-02", "2026-10-29"
	d.Lines[2].Start, d.Lines[2].End = "2026-09-11", "2026-10-05"
	text, err := Render(d)
	if err != nil {
		t.Fatal(err)
	}
	var p parsed
	if err := xml.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	if want := (days{"2026-09-11", "2026-10-29"}); p.Period != want {
		t.Errorf("the period is %v, want %v", p.Period, want)
	}
	d.Lines[2].Start, d.Lines[2].End = "", ""
	if text, err = Render(d); err != nil {
		t.Fatal(err)
	}
	p = parsed{}
	if err := xml.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	if want := (days{"2026-09-12", "2026-10-31"}); p.Period != want {
		t.Errorf("with a line without days the period is %v, want %v", p.Period, want)
	}
}
