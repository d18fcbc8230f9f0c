package billingtest

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/suanpan/suanpan/pkg/billing"
)

// f adds up decimals.
func f(t *testing.T, texts ...string) *big.Rat {
	t.Helper()
	sum := new(big.Rat)
	for _, text := range texts {
		r, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("%q is no decimal", text)
		}
		sum.Add(sum, r)
	}
	return sum
}

// equal reports sums that are not what they should be.
func equal(t *testing.T, what string, got *big.Rat, want string) {
	t.Helper()
	if got.Cmp(f(t, want)) != 0 {
		t.Errorf("%s: the parts come to %s, the whole says %s", what, got.FloatString(12), want)
	}
}

func TestAmountsOfSamplesAddUp(t *testing.T) {
	for name, d := range Samples() {
		t.Run(name, func(t *testing.T) {
			var amounts, nets, exacts, taxes, taxables, extra, paid []string
			for _, l := range d.Lines {
				amounts, nets = append(amounts, l.Amount), append(nets, l.Net)
				if l.Grant == "" {
					exacts = append(exacts, l.Exact)
				}
				lineAddsUp(t, &l)
			}
			for _, x := range d.Taxes {
				taxes, taxables = append(taxes, x.Tax), append(taxables, x.Taxable)
				if !x.Inclusive {
					extra = append(extra, x.Tax)
				}
			}
			for _, p := range d.Prepaid {
				paid = append(paid, "-"+p.Amount)
			}
			equal(t, "subtotal", f(t, amounts...), d.Subtotal)
			equal(t, "unrounded total", f(t, exacts...), d.UnroundedTotal)
			equal(t, "taxes", f(t, taxes...), d.TaxTotal)
			if len(d.Taxes) > 0 {
				equal(t, "net", f(t, nets...), f(t, taxables...).FloatString(6))
			}
			equal(t, "total", f(t, append(extra, d.Subtotal)...), d.Total)
			equal(t, "due", f(t, append(paid, d.Total)...), d.Due)
		})
	}
}

// lineAddsUp compares a line with its parts.
func lineAddsUp(t *testing.T, l *billing.Line) {
	t.Helper()
	b := l.Breakdown
	for i, list := range [][]billing.Share{
		b.Projects, b.Teams, b.Models, b.ModelVersions, b.Stages,
	} {
		if len(list) == 0 {
			continue
		}
		var amounts, quantities []string
		for _, s := range list {
			amounts, quantities = append(amounts, s.Amount), append(quantities, s.Quantity)
		}
		equal(t, l.SKU+" breakdown "+string(rune('0'+i)), f(t, amounts...), l.Amount)
		equal(t, l.SKU+" quantities "+string(rune('0'+i)), f(t, quantities...), l.Quantity)
	}
	if len(l.Tiers) > 0 {
		var exacts, quantities []string
		for _, tier := range l.Tiers {
			exacts, quantities = append(exacts, tier.Exact), append(quantities, tier.Quantity)
		}
		equal(t, l.SKU+" tiers", f(t, exacts...), l.Exact)
		equal(t, l.SKU+" quantities of tiers", f(t, quantities...), l.Quantity)
	}
	if len(l.Details) > 0 {
		var amounts, exacts []string
		for _, d := range l.Details {
			amounts, exacts = append(amounts, d.Amount), append(exacts, d.Exact)
		}
		equal(t, l.SKU+" details", f(t, amounts...), l.Amount)
		equal(t, l.SKU+" exact details", f(t, exacts...), l.Exact)
	}
}

func TestSamplesCoverWhatDocumentsMayHave(t *testing.T) {
	kinds, currencies := map[billing.LineKind]bool{}, map[string]string{}
	for _, d := range Samples() {
		currencies[d.Currency] = d.Total
		for _, l := range d.Lines {
			kinds[l.Kind] = true
		}
	}
	for _, kind := range []billing.LineKind{
		billing.UsageLine, billing.CommitmentLine, billing.AllowanceLine, billing.MinimumLine,
		billing.CreditLine, billing.LateLine,
	} {
		if !kinds[kind] {
			t.Errorf("no sample has a line of kind %s", kind)
		}
	}
	for currency, places := range map[string]int{"JPY": 0, "EUR": 2, "CNY": 2, "KWD": 3} {
		_, fraction, _ := strings.Cut(currencies[currency], ".")
		if len(fraction) != places {
			t.Errorf("%s: total %q, want %d decimals", currency, currencies[currency], places)
		}
	}
}

func TestLargestRemainderGetsTheCent(t *testing.T) {
	for _, c := range []struct{ parts, want string }{
		{"0.333 0.333 0.334", "0.33 0.33 0.34"},
		{"1.005 1.005", "1.01 1.00"},
		{"-0.005 0.015", "0.00 0.01"},
		{"", ""},
	} {
		var parts []*big.Rat
		for _, text := range strings.Fields(c.parts) {
			parts = append(parts, f(t, text))
		}
		if got := allot(parts, 2); !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("allot(%s) = %v, want %s", c.parts, got, c.want)
		}
	}
}
