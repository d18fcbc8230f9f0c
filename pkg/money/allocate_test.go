package money_test

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/money"
)

func TestAllocate(t *testing.T) {
	for _, c := range []struct {
		name   string
		total  string
		parts  []string
		places int
		want   []string
	}{
		{
			"thirds: the first of equals has the cent", "1",
			[]string{"0.333", "0.333", "0.333"},
			2,
			[]string{"0.34", "0.33", "0.33"},
		},
		{
			"the largest remainder first", "0.03",
			[]string{"0.001", "0.019", "0.009"},
			2,
			[]string{"0.00", "0.02", "0.01"},
		},
		{"a negative part", "9.99", []string{"10.005", "-0.015"}, 2, []string{"10.01", "-0.02"}},
		{"no minor unit", "100", []string{"33.4", "33.3", "33.3"}, 0, []string{"34", "33", "33"}},
		{"three decimals", "0.002", []string{"0.0005", "0.0015"}, 3, []string{"0.001", "0.001"}},
		{"nothing", "0", nil, 2, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			parts := make([]money.Amount, len(c.parts))
			for i, p := range c.parts {
				parts[i] = signed(t, p)
			}
			for i, got := range money.Allocate(signed(t, c.total), parts, c.places) {
				if got.Fixed(c.places) != c.want[i] {
					t.Errorf("part %d is %s, want %s", i, got.Fixed(c.places), c.want[i])
				}
			}
		})
	}
}

func TestAllocateAddsUpAndStaysWithinAUnit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		places := rapid.IntRange(0, 3).Draw(t, "places")
		mode := rapid.SampledFrom([]money.Rounding{money.HalfUp, money.HalfEven, money.Down}).
			Draw(t, "mode")
		parts := rapid.SliceOf(rapid.Custom(func(t *rapid.T) money.Amount {
			return money.New(big.NewInt(rapid.Int64Range(-1e6, 1e6).Draw(t, "part")), 5)
		})).Draw(t, "parts")
		total := money.Sum(parts).Round(places, mode)
		got := money.Allocate(total, parts, places)
		if money.Sum(got).Cmp(total) != 0 {
			t.Fatalf("%v add up to %s, not %s", got, money.Sum(got), total)
		}
		unit := money.New(big.NewInt(1), places)
		for i := range parts {
			diff := parts[i].Sub(got[i])
			if diff.Sign() < 0 {
				diff = diff.Neg()
			}
			if diff.Cmp(unit) > 0 || diff.Cmp(unit) == 0 && total.Sign() >= 0 && mode != money.Down {
				t.Fatalf("part %s became %s", parts[i], got[i])
			}
		}
	})
}

func TestAllocateRefusesAnotherTotal(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("2 was given to parts that add up to 0.5")
		}
	}()
	money.Allocate(money.MustParse("2"), []money.Amount{money.MustParse("0.5")}, 0)
}

func TestDigits(t *testing.T) {
	for code, want := range map[string]int{"JPY": 0, "CNY": 2, "USD": 2, "KWD": 3} {
		if got, ok := money.Digits(code); !ok || got != want {
			t.Errorf("%s has %d decimals, want %d", code, got, want)
		}
	}
	if _, ok := money.Digits("XYZ"); ok {
		t.Error("XYZ is a currency")
	}
}

func signed(t testing.TB, text string) money.Amount {
	t.Helper()
	a, err := money.ParseSigned(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
