package metering

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var limit128 = new(big.Int).Lsh(big.NewInt(1), 127)

// anyBig draws integers of 127 bits and a sign, small ones and those around powers of two too.
func anyBig() *rapid.Generator[*big.Int] {
	return rapid.Custom(func(t *rapid.T) *big.Int {
		shift := rapid.UintRange(0, 126).Draw(t, "shift")
		n := new(big.Int).Lsh(big.NewInt(1), shift)
		n.Add(n, big.NewInt(rapid.Int64().Draw(t, "low")))
		n.Add(n, new(big.Int).Lsh(big.NewInt(rapid.Int64().Draw(t, "high")>>1), 64))
		if n.BitLen() > 127 {
			n.Rsh(n, 2)
		}
		if rapid.Bool().Draw(t, "negative") {
			n.Neg(n)
		}
		return n
	})
}

func mustQuantity(t interface{ Fatal(...any) }, n *big.Int) Quantity {
	q, err := QuantityOf(n)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// panicOf returns what f panics with, "" if it does not.
func panicOf(f func()) (message string) {
	defer func() {
		if r := recover(); r != nil {
			message = r.(string)
		}
	}()
	f()
	return ""
}

const overflow = "BUG: quantity overflows 128 bits"

// Property: QuantityOf(q.Big()) = q, and the sign is that of the integer.
func TestQuantity_bigRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := anyBig().Draw(t, "n")
		q := mustQuantity(t, n)
		if q.Big().Cmp(n) != 0 || mustQuantity(t, q.Big()) != q || q.Sign() != n.Sign() {
			t.Fatalf("%s became %s, sign %d", n, q.Big(), q.Sign())
		}
	})
}

// Property: sums and negations are those of integers, or panic where 128 bits end.
func TestQuantity_addAndNeg(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyBig().Draw(t, "a"), anyBig().Draw(t, "b")
		q, r := mustQuantity(t, a), mustQuantity(t, b)
		want := new(big.Int).Add(a, b)
		if fits := want.BitLen() <= 127; fits {
			if got := q.Add(r); got.Big().Cmp(want) != 0 || got != r.Add(q) {
				t.Fatalf("%s + %s = %s", a, b, got.Big())
			}
		} else if new(big.Int).Neg(limit128).Cmp(want) != 0 {
			if got := panicOf(func() { q.Add(r) }); got != overflow {
				t.Fatalf("%s + %s: panic %q", a, b, got)
			}
		}
		if got := q.Neg(); got.Big().Cmp(new(big.Int).Neg(a)) != 0 || got.Add(q) != (Quantity{}) {
			t.Fatalf("-(%s) = %s", a, got.Big())
		}
	})
}

// Property: a quantity is thousandths x seconds x 10^6 billionths.
func TestHeldFor_isTheProduct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		milli := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-1e18, 1e18)).Draw(t, "milli")
		seconds := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-86_400, 86_400)).Draw(t, "seconds")
		want := new(big.Int).Mul(big.NewInt(milli), big.NewInt(seconds))
		want.Mul(want, big.NewInt(1_000_000))
		if want.BitLen() > 127 {
			if got := panicOf(func() { HeldFor(milli, seconds) }); got != overflow {
				t.Fatalf("HeldFor(%d, %d): panic %q, want %s", milli, seconds, got, want)
			}
			return
		}
		if got := HeldFor(milli, seconds).Big(); got.Cmp(want) != 0 {
			t.Fatalf("HeldFor(%d, %d) = %s, want %s", milli, seconds, got, want)
		}
	})
}

func TestQuantity_extremes(t *testing.T) {
	largest := new(big.Int).Sub(limit128, big.NewInt(1))
	q := mustQuantity(t, largest)
	one := mustQuantity(t, big.NewInt(1))
	least := q.Neg().Add(one.Neg()) // -2^127 has no negation
	f := func(name string, f func()) {
		t.Helper()
		if got := panicOf(f); got != overflow {
			t.Errorf("%s: panic %q", name, got)
		}
	}
	f("largest + 1", func() { q.Add(one) })
	f("least - 1", func() { least.Add(one.Neg()) })
	f("-least", func() { least.Neg() })
	f("HeldFor", func() { HeldFor(math.MaxInt64, math.MaxInt64) })
	f("HeldFor of the least", func() { HeldFor(math.MinInt64, math.MinInt64) })
	if _, err := QuantityOf(limit128); err == nil || !strings.Contains(err.Error(), "128 bits") {
		t.Errorf("QuantityOf(2^127) error = %v", err)
	}
	// The most that a window can hold: 10^15 - 0.001 of a SKU for a day.
	if got := HeldFor(999_999_999_999_999_999, MaxWindowSeconds).String(); got !=
		"86399999999999999913.600000000" {
		t.Errorf("the most of a window = %s", got)
	}
}

func TestQuantity_string(t *testing.T) {
	f := func(n, want string) {
		t.Helper()
		b, ok := new(big.Int).SetString(n, 10)
		if !ok {
			t.Fatalf("%q is no integer", n)
		}
		if got := mustQuantity(t, b).String(); got != want {
			t.Errorf("%s prints as %s, want %s", n, got, want)
		}
	}
	f("0", "0.000000000")
	f("1", "0.000000001")
	f("-1", "-0.000000001")
	f("999999999", "0.999999999")
	f("1000000000", "1.000000000")
	f("-12345678901234567890", "-12345678901.234567890")
	f("18446744073709551616", "18446744073.709551616") // 2^64
}

// Property: what is printed is the exact value.
func TestQuantity_stringIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := anyBig().Draw(t, "n")
		got, ok := new(big.Rat).SetString(mustQuantity(t, n).String())
		if !ok || got.Cmp(new(big.Rat).SetFrac(n, big.NewInt(1e9))) != 0 {
			t.Fatalf("%s prints as %s", n, mustQuantity(t, n))
		}
	})
}
