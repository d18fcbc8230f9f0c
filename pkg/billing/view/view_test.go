package view

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/billingtest"
)

func TestEveryLanguageHasEveryWord(t *testing.T) {
	for name, w := range map[string]words{"english": english, "chinese": chinese} {
		v := reflect.ValueOf(w)
		for i := range v.NumField() {
			if field := v.Field(i); field.Kind() == reflect.String && field.String() == "" {
				t.Errorf("%s has no word for %s", name, v.Type().Field(i).Name)
			}
		}
		for _, m := range []struct {
			got, all map[string]string
		}{{w.categories, english.categories}, {w.per, english.per}, {w.purchases, english.purchases}} {
			for code := range m.all {
				if m.got[code] == "" {
					t.Errorf("%s has no word for %s", name, code)
				}
			}
		}
		if len(w.kinds) != len(english.kinds) {
			t.Errorf("%s has words for %d kinds of lines", name, len(w.kinds))
		}
		if strings.Count(w.Page, "%d") != 2 {
			t.Errorf("%s: %q has not two numbers", name, w.Page)
		}
	}
	if chinese.Invoice != "账单" || chinese.CreditNote != "贷记通知" || chinese.Draft != "草稿" {
		t.Errorf("Chinese titles are %s, %s, %s", chinese.Invoice, chinese.CreditNote, chinese.Draft)
	}
}

func TestDigitsAreGrouped(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "12": "12", "123": "123", "1234": "1,234", "123456": "123,456",
		"1234567.125": "1,234,567.125", "-1234.50": "-1,234.50", "-123": "-123", "0.0005": "0.0005",
	} {
		if got := Group(text); got != want {
			t.Errorf("Group(%s) = %s, want %s", text, got, want)
		}
	}
}

func TestQuantitiesAreInTheUnitOfTheirPrice(t *testing.T) {
	for _, c := range []struct{ text, unit, per, want string }{
		{"7200", "unit-second", "hour", "2"},
		{"7201", "unit-second", "hour", "2.0003"},
		{"7200.18", "unit-second", "hour", "2.0001"}, // 2.00005, a half
		{"0.1", "unit-second", "hour", "0"},
		{"86400", "unit-second", "day", "1"},
		{"2628000", "unit-second", "month", "1"},
		{"7201", "unit-second", "second", "7201"},
		{"1234.567", "unit", "unit", "1234.567"},
		{"-7200", "unit-second", "hour", "-2"},
	} {
		got, err := quantity(c.text, c.unit, c.per)
		if err != nil || got != c.want {
			t.Errorf("%s %s per %s: %s, %v, want %s", c.text, c.unit, c.per, got, err, c.want)
		}
	}
	for _, bad := range []string{"", "1e3", "--1", "one"} {
		if _, err := quantity(bad, "unit", "unit"); err == nil {
			t.Errorf("quantity %q is one", bad)
		}
	}
}

func TestAveragesShowWhatTheyAre(t *testing.T) {
	for text, want := range map[string]string{
		"1.213755555556": "1.213756", "1.6": "1.6", "0.000003500479": "0.0000035",
		"0.000000000001": "0.000000000001", "123456.7891234": "123456.789123", "0": "0",
		"-0.00012345678": "-0.0001235",
	} {
		price, err := Amount(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := average(price).String(); got != want {
			t.Errorf("average(%s) = %s, want %s", text, got, want)
		}
	}
}

func TestAmountsHaveNoLimitOfSize(t *testing.T) {
	const large = "-123456789012345678901234567890.000000000000000000000001"
	if a, err := Amount(large); err != nil || a.String() != large {
		t.Errorf("Amount = %s, %v, want %s", a, err, large)
	}
	for _, bad := range []string{
		"", "-", ".", "1.", ".5", "+1", "1e3", "--1", "1 ", "1,000",
		strings.Repeat("1", maxDigits+1),
	} {
		if _, err := Amount(bad); err == nil {
			t.Errorf("%q is an amount", bad)
		}
	}
}

func TestTiersThatWereNotReachedAreLeftOut(t *testing.T) {
	d := billingtest.Ladder()
	tiers := d.Lines[0].Tiers
	tiers[1].Quantity, tiers[1].Exact, tiers[2].Quantity, tiers[2].Exact = "0", "0.0", "0", "0.0"
	p, err := New(d)
	if err != nil || len(p.Lines[0].Parts) != 1 || p.Lines[0].Parts[0].Title != "up to 500 h" {
		t.Errorf("parts %+v, %v", p.Lines[0].Parts, err)
	}
	d.Lines[0].Tiers = tiers[2:]
	if p, err = New(d); err != nil || len(p.Lines[0].Parts) != 0 {
		t.Errorf("one tier alone: parts %+v, %v", p.Lines[0].Parts, err)
	}
}

func TestLongListsAreCutToTheirLargest(t *testing.T) {
	list := []billing.Share{
		{Name: "b", Quantity: "1", Amount: "1.00"},
		{Name: "a", Quantity: "1", Amount: "1.00"},
		{Name: "c", Quantity: "5", Amount: "5.00"},
		{Quantity: "2", Amount: "2.50", Others: 7},
		{Name: "d", Quantity: "3", Amount: "-3.25"},
	}
	for most, want := range map[int][]billing.Share{
		5: {list[2], list[1], list[0], list[4], list[3]},
		3: {list[2], list[1], {Quantity: "6", Amount: "0.25", Others: 9}},
		1: {{Quantity: "12", Amount: "6.25", Others: 11}},
	} {
		got, err := shorten(list, most)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("at most %d (-want +got):\n%s", most, diff)
		}
	}
}

func TestLinesSayWhatTheyAreAbout(t *testing.T) {
	p, err := New(billingtest.Ladder())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range p.Lines {
		got = append(got, l.Title+" | "+l.Price.Quantity+" | "+l.Price.Exact+" | "+
			l.Price.UnitPrice+" | "+l.Price.Amount)
	}
	want := []string{
		"gpu.a100-80g | 2,000 h | 7,200,000 unit-seconds | average 1.60 / h | 3,200.00",
		"gpu.a100-80g | 5,952 h | 21,427,200 unit-seconds | 0.00 / h | 0.00",
		"gpu.h100-80g | 1,000 h | 3,600,000 unit-seconds | average 1.213756 / h | 1,213.76",
		"tokens.trained | 2,345,678,901 |  | average 0.0000035 / unit | 8,211.00",
		"Commitment · gpu.a100-80g | 1 |  |  | 6,400.00",
		"Allowance · gpu.h100-80g | 1 |  |  | -121.38",
		"Minimum spend | 1 |  |  | 1,096.62",
		"Credit · gpu.a100-80g | 1 |  |  | -48.00",
		"Credit · welcome-2026 | 1 |  |  | -250.00",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	parts := []Part{
		{"up to 500 h", Price{"500", "", "1.80", "900.00"}},
		{"up to 1,500 h", Price{"1,000", "", "1.60", "1,600.00"}},
		{"beyond 1,500 h", Price{"500", "", "1.40", "700.00"}},
	}
	if diff := cmp.Diff(parts, p.Lines[0].Parts); diff != "" {
		t.Errorf("tiers (-want +got):\n%s", diff)
	}
	if sub := strings.Join(p.Lines[3].Subtitle, "|"); !strings.Contains(sub, "packages of 1,000,000") {
		t.Errorf("a package line says %q", sub)
	}
}

func TestLateLinesSayWhenTheirUsageWas(t *testing.T) {
	p, err := New(billingtest.Late())
	if err != nil {
		t.Fatal(err)
	}
	late := p.Lines[len(p.Lines)-1]
	if late.Title != "Late usage of 2026-09" || late.Subtitle[0] != "2026-09-11 to 2026-09-13" {
		t.Errorf("late line %q, %q", late.Title, late.Subtitle)
	}
	if len(late.Parts) != 2 || late.Parts[0].Title != "gpu.h100-80g · On demand · standard" {
		t.Errorf("details %+v", late.Parts)
	}
}

// Charts add up to the subtotal: what no name has is a bar too.
func TestBarsAddUpToTheSubtotal(t *testing.T) {
	for name, d := range billingtest.Samples() {
		p, err := New(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, chart := range p.Charts {
			sum, err := Amount(d.Subtotal)
			if err != nil {
				t.Fatal(err)
			}
			longest := 0
			for _, bar := range chart.Bars {
				a, err := Amount(strings.ReplaceAll(bar.Amount, ",", ""))
				if err != nil {
					t.Fatal(err)
				}
				sum = sum.Sub(a)
				longest = max(longest, bar.Permille)
			}
			if sum.Sign() != 0 || longest != 1000 || len(chart.Bars) > maxBars+1 {
				t.Errorf("%s: %s: %s is missing, the longest bar is %d, bars: %d", name,
					chart.Heading, sum, longest, len(chart.Bars))
			}
		}
	}
}

func TestNobodyIsAskedToPayWhatIsNotDue(t *testing.T) {
	paid := billingtest.Plain()
	paid.Due = "0.00"
	for name, d := range map[string]*billing.Document{
		"draft": billingtest.Draft(), "credit note": billingtest.CreditNote(),
		"empty": billingtest.Empty(), "paid": paid,
	} {
		p, err := New(d)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Payment.Facts) > 0 || p.DueBy.Value != "" {
			t.Errorf("%s: asks to pay: %v, %v", name, p.Payment.Facts, p.DueBy)
		}
	}
	p, err := New(billingtest.Plain())
	if err != nil || len(p.Payment.Facts) != 6 || p.DueBy.Value != "2026-12-03" {
		t.Errorf("an invoice says %v, %v, %v", p.Payment.Facts, p.DueBy, err)
	}
}
