package money

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParse_success(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		got, err := Parse(text)
		if err != nil || got.String() != want {
			t.Errorf("Parse(%q) = %s, %v; want %s", text, got, err, want)
		}
	}
	f("0", "0")
	f("0.000", "0")
	f("30.00", "30")
	f("007", "7")
	f("0.000000375", "0.000000375")
	f("999999999999999.999999999999999999", "999999999999999.999999999999999999")
	f("1.50000000000000000000000000", "1.5") // trailing zeros do not count
	f("100", "100")
}

func TestParse_failure(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) error = %v; want %q", text, err, want)
		}
	}
	for _, text := range []string{
		"", ".", "1.", ".5", "-1", "+1", "1e3", "NaN", "Infinity", "1,5",
		" 1", "1 ", "0x10", "１", "1.2.3",
	} {
		f(text, "is not a plain decimal")
	}
	f("1000000000000000", "more than 15 digits")
	f("0.0000000000000000001", "more than 18 decimals")
}

func TestMulRatio_rounding(t *testing.T) {
	f := func(amount string, num, den int64, places int, mode Rounding, want string) {
		t.Helper()
		a := MustParse(strings.TrimPrefix(amount, "-"))
		if strings.HasPrefix(amount, "-") {
			a = a.Neg()
		}
		got := a.MulRatio(big.NewInt(num), big.NewInt(den), places, mode).Fixed(places)
		if got != want {
			t.Errorf("%s x %d/%d to %d = %s, want %s", amount, num, den, places, got, want)
		}
	}
	f("0.015", 109, 10, 2, HalfUp, "0.16")   // neither the rate nor the hours are cut first
	f("0.004", 10009, 10, 2, HalfUp, "4.00") // 4.0036
	f("10.999", 1, 1, 2, HalfUp, "11.00")
	f("0.005", 1, 1, 2, HalfUp, "0.01")
	f("-0.005", 1, 1, 2, HalfUp, "-0.01")
	f("0.005", 1, 1, 2, HalfEven, "0.00")
	f("0.015", 1, 1, 2, HalfEven, "0.02")
	f("-0.015", 1, 1, 2, HalfEven, "-0.02")
	f("-0.025", 1, 1, 2, HalfEven, "-0.02")
	f("0.0051", 1, 1, 2, HalfEven, "0.01")
	f("0.019", 1, 1, 2, Down, "0.01")
	f("-0.019", 1, 1, 2, Down, "-0.01")
	f("30", 1, 3600, 12, HalfUp, "0.008333333333")
	f("1250", 1, 1, 0, HalfUp, "1250")
	f("7", 1, -2, 0, HalfUp, "-4")
}

func TestFixed_neverRounds(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Fixed(1) of 0.25 did not panic")
		}
	}()
	MustParse("0.25").Fixed(1)
}

func TestScaled(t *testing.T) {
	if n, err := MustParse("25.5").Scaled(9); err != nil || n.Int64() != 25_500_000_000 {
		t.Errorf("Scaled = %v, %v", n, err)
	}
	if _, err := MustParse("0.01").Scaled(1); err == nil {
		t.Error("0.01 has two decimals and was scaled by 10")
	}
}

// Property: parse(print(x)) = x.
func TestParse_roundTrip(t *testing.T) { rapid.Check(t, roundTrip) }

// FuzzRoundTrip runs the same law on inputs that the fuzzer finds.
func FuzzRoundTrip(f *testing.F) { f.Fuzz(rapid.MakeFuzz(roundTrip)) }

func roundTrip(t *rapid.T) {
	a := New(big.NewInt(rapid.Int64Range(0, 999_999_999_999_999_999).Draw(t, "coefficient")),
		rapid.IntRange(3, MaxFractionDigits).Draw(t, "places"))
	b, err := Parse(a.String())
	if err != nil || a.Cmp(b) != 0 || a.String() != b.String() {
		t.Fatalf("%s parsed to %s, %v", a, b, err)
	}
}

// FuzzParse: Parse never panics, and what it accepts prints and parses to the same number.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"0", "30.00", "1e400", "NaN", "-1", "0.1234", "..", "9999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := Parse(text)
		if err != nil {
			return
		}
		if b, err := Parse(a.String()); err != nil || a.Cmp(b) != 0 {
			t.Fatalf("%q parsed to %s, which parses to %s, %v", text, a, b, err)
		}
	})
}
