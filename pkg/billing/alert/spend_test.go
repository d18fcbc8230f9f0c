package alert_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/money"
)

const judged = 1_767_225_600 // the hour that is judged

// scaled is a decimal of so many places as a whole number.
func scaled(t interface {
	Helper()
	Fatal(args ...any)
}, text string, places int,
) int64 {
	t.Helper()
	a, err := money.ParseSigned(text)
	if err != nil {
		t.Fatal(err)
	}
	n, err := a.Round(places, money.HalfUp).Scaled(places)
	if err != nil || !n.IsInt64() {
		t.Fatal(text, err)
	}
	return n.Int64()
}

// spends are the hours of acme that end with the judged one, "" is one without usage.
func spends(amounts ...string) []alert.HourSpend {
	var out []alert.HourSpend
	for i, text := range amounts {
		if text == "" {
			continue
		}
		out = append(out, alert.HourSpend{
			Tenant: "acme", Currency: "CNY", Hour: judged - int64(len(amounts)-1-i)*3600,
			Amount: money.MustParse(text),
		})
	}
	return out
}

// look judges hours by one policy.
func lookAt(t interface {
	Helper()
	Fatal(args ...any)
}, p *catalog.Policy, hours []alert.HourSpend,
) alert.Look {
	t.Helper()
	s := alert.NewSpends(judged, []*catalog.Policy{p})
	for _, h := range hours {
		if err := s.Add(h); err != nil {
			t.Fatal(err)
		}
	}
	return s.Looks()[0]
}

func TestSpends_outOfTheUsualRange(t *testing.T) {
	_, p := policyWorld(t, "type: spend_anomaly")
	f := func(name, want string, wantUnsure bool, amounts []string) {
		t.Helper()
		look := lookAt(t, p, spends(amounts...))
		if got := show(look); got != want || unsure(look, "acme", "CNY") != wantUnsure {
			t.Errorf("%s: %q, unsure %t, want %q, %t", name, got, unsure(look, "acme", "CNY"), want,
				wantUnsure)
		}
	}
	repeat := func(n int, amounts ...string) []string {
		return slices.Repeat(amounts, n)
	}
	after := func(history []string, last string) []string { return append(history, last) }
	// Always 100: a deviation is 5 % of it, the range 100 -+ 4 x 1.4826 x 5.
	steady := "acme/CNY spend=%sCNY median=100CNY deviation=7.41CNY usual_from=70.35CNY " +
		"usual_to=129.65CNY hour=2026-01-01T00:00:00Z history=72h"
	at := func(spend string) string { return strings.Replace(steady, "%s", spend, 1) }
	f("as always", "", false, after(repeat(72, "100"), "100"))
	f("at the upper end", "", false, after(repeat(72, "100"), "129.652"))
	f("above it", at("129.65"), false, after(repeat(72, "100"), "129.652001"))
	f("at the lower end", "", false, after(repeat(72, "100"), "70.348"))
	f("below it", at("70.35"), false, after(repeat(72, "100"), "70.347999"))
	f("nothing at all", at("0"), false, after(repeat(72, "100"), ""))
	f("too little history", "", true, after(repeat(71, "100"), "900"))
	// Medians of 100 and 110: the deviation is 5, its floor 5.25.
	f("two kinds of hours", "", false, after(repeat(36, "100", "110"), "136.13"))
	f("two kinds of hours, above", "acme/CNY spend=136.14CNY median=105CNY deviation=7.78CNY "+
		"usual_from=73.87CNY usual_to=136.13CNY hour=2026-01-01T00:00:00Z history=72h", false,
		after(repeat(36, "100", "110"), "136.14"))
	f("a night as every night", "", false,
		after(repeat(7, append(repeat(16, "100"), repeat(8, "")...)...), ""))
	f("hours without usage do not count where most are such", "", true,
		after(repeat(50, "100", "", ""), ""))
	f("nor is there enough of the others", "", true, after(repeat(70, "100", "", ""), "900"))
	f("with enough of them", "acme/CNY spend=900CNY median=100CNY deviation=7.41CNY "+
		"usual_from=70.35CNY usual_to=129.65CNY hour=2026-01-01T00:00:00Z history=80h", false,
		after(repeat(80, "100", "", ""), "900"))
	f("a trifle", "", false, after(repeat(72, "0.001"), "0.06"))
	f("more than a trifle", "acme/CNY spend=0.07CNY median=0CNY deviation=0.01CNY usual_from=0CNY "+
		"usual_to=0.06CNY hour=2026-01-01T00:00:00Z history=72h", false,
		after(repeat(72, "0.001"), "0.07"))
	f("what is older than the days does not count", "", true,
		after(append(repeat(100, "5"), repeat(28*24, "")...), "900"))
}

func TestSpends_judgesTenantsApartAndByScope(t *testing.T) {
	_, all := policyWorld(t, "type: spend_anomaly")
	_, one := policyWorld(t, "type: spend_anomaly, scope: {tenants: [zeta]}, thresholds: {days: 3}")
	s := alert.NewSpends(judged, []*catalog.Policy{all, one})
	if want := int64(judged - 28*86_400); s.From() != want {
		t.Errorf("it begins at %d, want %d", s.From(), want)
	}
	usual := append(slices.Repeat([]string{"100"}, 80), "100")
	odd := append(slices.Repeat([]string{"100"}, 80), "900")
	for _, tenant := range []struct {
		name, currency string
		hours          []string
	}{{"acme", "CNY", odd}, {"acme", "USD", usual}, {"beta", "CNY", usual}, {"zeta", "CNY", odd}} {
		for _, h := range spends(tenant.hours...) {
			h.Tenant, h.Currency = tenant.name, tenant.currency
			if err := s.Add(h); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []string{"acme/CNY zeta/CNY", "zeta/CNY"}
	for i, look := range s.Looks() {
		var got []string
		for _, f := range look.Findings {
			got = append(got, f.Tenant+"/"+f.Subject)
		}
		if text := strings.Join(got, " "); text != want[i] {
			t.Errorf("policy %d finds %s, want %s", i, text, want[i])
		}
	}
	if err := s.Add(spends("1")[0]); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(spends("1")[0]); err == nil {
		t.Error("an hour comes twice")
	}
}

// Property: the range does not depend on the order of its hours, holds the median, and what fires
// at some number of deviations fires at every smaller one.
func TestSpends_rangeFollowsFromTheSetOfHours(t *testing.T) {
	_, strict := policyWorld(t, "type: spend_anomaly, thresholds: {deviations: 2}")
	_, lax := policyWorld(t, "type: spend_anomaly, thresholds: {deviations: 6}")
	amount := rapid.Map(rapid.Int64Range(1, 100_000), func(n int64) string {
		return money.MustParse("0.01").Mul(money.MustParse(money.New(bigInt(n), 0).String())).String()
	})
	rapid.Check(t, func(t *rapid.T) {
		history := rapid.SliceOfN(amount, 72, 120).Draw(t, "history")
		last := amount.Draw(t, "last")
		hours := spends(append(slices.Clone(history), last)...)
		shuffled := spends(append(rapid.Permutation(history).Draw(t, "order"), last)...)
		a, b := show(lookAt(t, strict, hours)), show(lookAt(t, strict, shuffled))
		if a != b {
			t.Errorf("%q in another order is %q", a, b)
		}
		if len(lookAt(t, lax, hours).Findings) > 0 && a == "" {
			t.Error("it fires at 6 deviations and not at 2")
		}
		middle := slices.Clone(history)
		slices.SortFunc(middle, func(a, b string) int {
			return money.MustParse(a).Cmp(money.MustParse(b))
		})
		typical := spends(append(slices.Clone(history), middle[len(middle)/2])...)
		if got := show(lookAt(t, strict, typical)); got != "" {
			t.Errorf("the median is odd: %s", got)
		}
	})
}
