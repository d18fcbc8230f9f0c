package metering

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

// Quantity is a signed 128-bit count of billionths of a base unit: of a unit-second for what is
// held, of a unit for what is consumed. Its sums are exact; beyond 128 bits (3.4e29 units) they
// panic. Quantities are comparable with ==.
type Quantity struct {
	hi int64
	lo uint64
}

// HeldFor is the quantity of an amount in thousandths that is held for a number of seconds.
func HeldFor(milli, seconds int64) Quantity {
	return scale(milli, seconds).times(1_000_000)
}

// scale returns a x b.
func scale(a, b int64) Quantity {
	hi, lo := bits.Mul64(abs(a), abs(b))
	q := Quantity{int64(hi), lo}
	if (a < 0) != (b < 0) {
		return q.Neg()
	}
	return q
}

func abs(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

// times multiplies by a small positive factor.
func (q Quantity) times(n uint64) Quantity {
	negative := q.hi < 0
	if negative {
		q = q.Neg()
	}
	carry, lo := bits.Mul64(q.lo, n)
	over, hi := bits.Mul64(uint64(q.hi), n)
	hi, c := bits.Add64(hi, carry, 0)
	if over != 0 || c != 0 || int64(hi) < 0 {
		panic("BUG: quantity overflows 128 bits")
	}
	q = Quantity{int64(hi), lo}
	if negative {
		return q.Neg()
	}
	return q
}

// Add returns q + r.
func (q Quantity) Add(r Quantity) Quantity {
	lo, carry := bits.Add64(q.lo, r.lo, 0)
	hi := q.hi + r.hi + int64(carry)
	if (q.hi < 0) == (r.hi < 0) && (hi < 0) != (q.hi < 0) {
		panic("BUG: quantity overflows 128 bits")
	}
	return Quantity{hi, lo}
}

// Neg returns -q.
func (q Quantity) Neg() Quantity {
	if q.hi == math.MinInt64 && q.lo == 0 {
		panic("BUG: quantity overflows 128 bits")
	}
	lo, carry := bits.Add64(^q.lo, 1, 0)
	return Quantity{^q.hi + int64(carry), lo}
}

// Sign is -1, 0 or +1.
func (q Quantity) Sign() int {
	switch {
	case q.hi < 0:
		return -1
	case q.hi == 0 && q.lo == 0:
		return 0
	}
	return 1
}

// Big returns the billionths as a big integer.
func (q Quantity) Big() *big.Int {
	n := new(big.Int).Lsh(big.NewInt(q.hi), 64)
	return n.Add(n, new(big.Int).SetUint64(q.lo))
}

// QuantityOf returns n billionths.
func QuantityOf(n *big.Int) (Quantity, error) {
	if n.BitLen() > 127 {
		return Quantity{}, fmt.Errorf("%s overflows 128 bits", n)
	}
	magnitude := new(big.Int).Abs(n)
	lo := new(big.Int).And(magnitude, new(big.Int).SetUint64(^uint64(0))).Uint64()
	q := Quantity{new(big.Int).Rsh(magnitude, 64).Int64(), lo}
	if n.Sign() < 0 {
		return q.Neg(), nil
	}
	return q, nil
}

// String prints the quantity with nine decimals.
func (q Quantity) String() string {
	n := q.Big()
	sign := ""
	if n.Sign() < 0 {
		sign, n = "-", n.Neg(n)
	}
	s := n.String()
	if pad := 10 - len(s); pad > 0 {
		s = strings.Repeat("0", pad) + s
	}
	return sign + s[:len(s)-9] + "." + s[len(s)-9:]
}

// parsePlain reads a plain decimal above 0 with at most `places` decimals, as a whole number of
// 10^-places.
func parsePlain(text string, places int) (Quantity, error) {
	whole, fraction, point := strings.Cut(text, ".")
	if !plainDigits(whole) || point && !plainDigits(fraction) {
		return Quantity{}, fmt.Errorf("%q is not a plain decimal such as 0.25", clip(text))
	}
	whole, fraction = strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")
	if len(whole) > MaxAmountDigits {
		return Quantity{}, fmt.Errorf("%q has more than %d digits before the point", clip(text),
			MaxAmountDigits)
	}
	if len(fraction) > places {
		return Quantity{}, fmt.Errorf("%q has more than %d decimals", clip(text), places)
	}
	if whole+fraction == "" {
		return Quantity{}, fmt.Errorf("%q is not above 0", clip(text))
	}
	var w, f uint64
	if whole != "" {
		w, _ = strconv.ParseUint(whole, 10, 64)
	}
	if fraction != "" {
		f, _ = strconv.ParseUint(fraction, 10, 64)
	}
	power := uint64(1)
	for range places {
		power *= 10
	}
	for range places - len(fraction) {
		f *= 10
	}
	return Quantity{lo: w}.times(power).Add(Quantity{lo: f}), nil
}

func plainDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
