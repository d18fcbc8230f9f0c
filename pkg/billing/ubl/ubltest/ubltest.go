// Package ubltest draws documents that can be e-invoices: of any lines, tax treatments, signs and
// currencies, between parties of several countries. Their amounts add up as those of real ones.
package ubltest

import (
	"fmt"
	"maps"
	"math/big"
	"slices"

	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/money"
)

// treatment is how lines are taxed, and why they are not.
type treatment struct {
	billing.LineTax
	reason, code string
}

// treatments may stand beside each other; outside stands alone.
var (
	treatments = []treatment{
		{billing.LineTax{Category: "S", Rate: "19"}, "", ""},
		{billing.LineTax{Category: "S", Rate: "6.5"}, "", ""},
		{billing.LineTax{Category: "S", Rate: "6.5", Inclusive: true}, "", ""},
		{billing.LineTax{Category: "Z", Rate: "0"}, "", ""},
		{billing.LineTax{Category: "E", Rate: "0"}, "exempt", "VATEX-EU-132"},
		{billing.LineTax{Category: "E", Rate: "0", Inclusive: true}, "by our own law", "OWN-LAW"},
		{billing.LineTax{Category: "AE", Rate: "0"}, "reverse charge", "VATEX-EU-AE"},
		{billing.LineTax{Category: "G", Rate: "0"}, "export", "VATEX-EU-G"},
		{billing.LineTax{Category: "K", Rate: "0"}, "within the community", "VATEX-EU-IC"},
		{billing.LineTax{Category: "L", Rate: "7"}, "", ""},
		{billing.LineTax{Category: "M", Rate: "0.5"}, "", ""},
	}
	outside = []treatment{
		{billing.LineTax{Category: "O", Rate: "0"}, "not subject to VAT", "VATEX-EU-O"},
	}
)

// drawing is a document at work.
type drawing struct {
	*billing.Document
	t       *rapid.T
	places  int
	allowed []treatment
	of      []int // the treatment of each line
	exact   []money.Amount
}

// Document draws an issued invoice or credit note. The n makes its number unique.
func Document(t *rapid.T, n int) *billing.Document {
	parties := Parties()
	countries := slices.Sorted(maps.Keys(parties))
	countries = slices.DeleteFunc(countries, func(c string) bool { return c == "SE" }) // few rates
	party := func(what string) *billing.Party {
		p := *parties[rapid.SampledFrom(countries).Draw(t, what)]
		return &p
	}
	d := &drawing{t: t, allowed: treatments, Document: &billing.Document{
		Schema: billing.Schema, Type: billing.Invoice, Number: fmt.Sprint("R-2026-", n),
		IssueDate: "2026-11-03", DueDate: "2026-12-03", Tenant: "acme",
		Contract: rapid.SampledFrom([]string{"", "acme-2026"}).Draw(t, "contract"),
		Period:   "2026-10", PeriodStart: "2026-10-01", PeriodEnd: "2026-10-31",
		Currency: rapid.SampledFrom([]string{"EUR", "JPY", "KWD", "USD"}).Draw(t, "currency"),
		Seller:   party("seller"), Buyer: party("buyer"), Notes: []string{"a < b & \"c\""},
	}}
	d.places, _ = money.Digits(d.Currency)
	if rapid.IntRange(0, 9).Draw(t, "outside") == 0 {
		d.allowed = outside
	}
	if rapid.IntRange(0, 3).Draw(t, "credit note") == 0 {
		d.Type, d.DueDate = billing.CreditNote, ""
		d.Cites = &billing.Citation{
			Key: d.Key().String(), Number: "R-2026-0", Reason: "a fault", ID: "fault-1",
		}
		d.Cites.IssueDate = rapid.SampledFrom([]string{"", "2026-11-01"}).Draw(t, "cited date")
	}
	for i := range rapid.IntRange(1, 12).Draw(t, "lines") {
		d.line(fmt.Sprint("gpu.m", i))
	}
	d.finish()
	return d.Document
}

// line draws a line and its exact amount.
func (d *drawing) line(sku string) {
	at := rapid.IntRange(0, len(d.allowed)-1).Draw(d.t, "treatment")
	tax := d.allowed[at].LineTax
	l := billing.Line{
		Kind: rapid.SampledFrom([]billing.LineKind{
			billing.UsageLine, billing.UsageLine, billing.UsageLine, billing.CommitmentLine,
			billing.AllowanceLine, billing.MinimumLine, billing.CreditLine, billing.LateLine,
		}).Draw(d.t, "kind"),
		UsagePeriod: d.Period, Start: d.PeriodStart, End: d.PeriodEnd, Quantity: "1", Unit: "unit",
		Per: "unit", Tax: &tax,
	}
	exact := d.amount(-100_000, 1_000_000, 4, "fee")
	l.UnitPrice = exact.String()
	switch l.Kind {
	case billing.UsageLine:
		l.SKU, l.Purchase, l.Band = sku, "on_demand", "standard"
		exact = d.usage(&l)
	case billing.LateLine:
		l.UsagePeriod, l.Start, l.End = "2026-09", "2026-09-03", "2026-09-29"
		exact = d.late(&l, sku)
	case billing.CreditLine:
		l.Grant = rapid.SampledFrom([]string{"", "welcome"}).Draw(d.t, "grant")
		exact = d.amount(-100_000, 0, 2, "credit")
		l.UnitPrice = exact.String()
	case billing.CommitmentLine, billing.AllowanceLine, billing.MinimumLine:
		l.Description = "what it is about"
	}
	l.Exact = exact.Fixed(money.Scale)
	d.Lines, d.of, d.exact = append(d.Lines, l), append(d.of, at), append(d.exact, exact)
}

// amount draws a number of so many decimals.
func (d *drawing) amount(least, most int64, places int, what string) money.Amount {
	return money.New(big.NewInt(rapid.Int64Range(least, most).Draw(d.t, what)), places)
}

// seconds is what one unit of a price is held for.
var seconds = map[string]int64{"second": 1, "hour": 3600, "day": 86400, "month": 2628000, "unit": 1}

// usage draws quantity and price, and returns what they come to.
func (d *drawing) usage(l *billing.Line) money.Amount {
	l.Per = rapid.SampledFrom(slices.Sorted(maps.Keys(seconds))).Draw(d.t, "per")
	if l.Per != "unit" {
		l.Unit = "unit-second"
	}
	quantity := d.amount(-1_000, 100_000_000, rapid.IntRange(0, 3).Draw(d.t, "digits"), "quantity")
	price := d.amount(0, 1_000_000, 5, "price")
	l.Quantity, l.UnitPrice = quantity.String(), price.String()
	exact := quantity.Mul(price).MulRatio(big.NewInt(1), big.NewInt(seconds[l.Per]), money.Scale,
		money.HalfUp)
	switch rapid.IntRange(0, 5).Draw(d.t, "form") {
	case 0:
		l.Package = "1000" // rounded up to whole ones: the price is an average
		exact = exact.Add(price).Round(0, money.Down)
		l.Average = true
	case 1:
		l.Average = true
		l.Tiers = []billing.Tier{
			{UpTo: "10", Quantity: "10", UnitPrice: "2", Exact: "20.000000000000"},
			{Quantity: quantity.Sub(money.MustParse("10")).String(), UnitPrice: "1", Exact: "1"},
		}
		exact = exact.Add(money.MustParse("12.345"))
	}
	return exact
}

// late draws a late line: of one SKU, as credit notes have them, or with details.
func (d *drawing) late(l *billing.Line, sku string) money.Amount {
	if rapid.Bool().Draw(d.t, "one SKU") {
		l.SKU, l.Purchase, l.Band = sku, "spot", "standard"
		return d.usage(l)
	}
	var sum money.Amount
	for i := range rapid.IntRange(1, 3).Draw(d.t, "details") {
		detail := *l
		detail.SKU, detail.Purchase, detail.Band = fmt.Sprint(sku, "-", i), "on_demand", "standard"
		exact := d.usage(&detail)
		detail.Exact = exact.Fixed(money.Scale)
		detail.Amount = exact.Round(d.places, money.HalfUp).Fixed(d.places)
		sum = sum.Add(exact)
		l.Details = append(l.Details, detail)
	}
	l.UnitPrice = sum.String()
	return sum
}
