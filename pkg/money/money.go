// Package money holds exact decimal numbers: prices, multipliers and amounts of money. Decimal text
// and whole-number ratios come in, exact decimals go out. It is the only place that divides or
// rounds, and the caller spells scale and mode there; it never uses a float and never rounds
// silently.
package money

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/shopspring/decimal"
)

// Limits of the decimal text that [Parse] accepts.
const (
	MaxIntegerDigits  = 15 // digits before the point, leading zeros not counted
	MaxFractionDigits = 18 // digits after the point, trailing zeros not counted
)

// Scale is the number of decimals at which amounts of money are settled.
const Scale = 12

// Rounding says which whole number a fraction becomes.
type Rounding uint8

// The rounding modes.
const (
	HalfUp   Rounding = iota // to the nearest, a half away from zero
	HalfEven                 // to the nearest, a half to the even neighbour
	Down                     // towards zero
)

// Amount is an exact decimal number. Its zero value is 0. Amounts that are equal as numbers may
// differ under ==; compare them with [Amount.Cmp].
type Amount struct{ d decimal.Decimal }

// Parse reads a plain decimal: digits with an optional fraction, no sign and no exponent.
func Parse(text string) (Amount, error) {
	return parse(text, MaxFractionDigits)
}

// ParseExact is [Parse] for what [Amount.String] printed of a product of amounts: with any number
// of decimals.
func ParseExact(text string) (Amount, error) {
	return parse(text, len(text))
}

func parse(text string, places int) (Amount, error) {
	whole, fraction, point := strings.Cut(text, ".")
	if whole == "" || !digits(whole) || point && (fraction == "" || !digits(fraction)) {
		return Amount{}, fmt.Errorf("%q is not a plain decimal such as 12.5", clip(text))
	}
	whole, fraction = strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")
	if len(whole) > MaxIntegerDigits {
		return Amount{}, fmt.Errorf("%q has more than %d digits before the point", clip(text),
			MaxIntegerDigits)
	}
	if len(fraction) > places {
		return Amount{}, fmt.Errorf("%q has more than %d decimals", clip(text), places)
	}
	if whole+fraction == "" {
		return Amount{}, nil
	}
	c, ok := new(big.Int).SetString(whole+fraction, 10)
	if !ok {
		panic("BUG: digits are not a number: " + text)
	}
	return Amount{decimal.NewFromBigInt(c, -int32(len(fraction)))}, nil
}

// MustParse is [Parse] for constants; it panics where Parse fails.
func MustParse(text string) Amount {
	a, err := Parse(text)
	if err != nil {
		panic("BUG: parse amount: " + err.Error())
	}
	return a
}

// New returns coefficient / 10^places.
func New(coefficient *big.Int, places int) Amount {
	return Amount{decimal.NewFromBigInt(coefficient, -int32(places))}
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}

// Add returns a + b.
func (a Amount) Add(b Amount) Amount { return Amount{a.d.Add(b.d)} }

// Sub returns a - b.
func (a Amount) Sub(b Amount) Amount { return Amount{a.d.Sub(b.d)} }

// Neg returns -a.
func (a Amount) Neg() Amount { return Amount{a.d.Neg()} }

// Mul returns a x b, exactly.
func (a Amount) Mul(b Amount) Amount { return Amount{a.d.Mul(b.d)} }

// MulInt returns a x n, exactly.
func (a Amount) MulInt(n *big.Int) Amount {
	return Amount{a.d.Mul(decimal.NewFromBigInt(n, 0))}
}

// Cmp compares a with b: -1, 0 or +1.
func (a Amount) Cmp(b Amount) int { return a.d.Cmp(b.d) }

// Sign is -1, 0 or +1.
func (a Amount) Sign() int { return a.d.Sign() }

// MulRatio returns a x num / den, rounded once to the given number of decimals. den is not 0.
func (a Amount) MulRatio(num, den *big.Int, places int, mode Rounding) Amount {
	n := new(big.Int).Mul(a.d.Coefficient(), num)
	d := new(big.Int).Set(den)
	if exp := int(a.d.Exponent()) + places; exp >= 0 {
		n.Mul(n, pow10(exp))
	} else {
		d.Mul(d, pow10(-exp))
	}
	return Amount{decimal.NewFromBigInt(divide(n, d, mode), -int32(places))}
}

// Round returns a with the given number of decimals.
func (a Amount) Round(places int, mode Rounding) Amount {
	one := big.NewInt(1)
	return a.MulRatio(one, one, places, mode)
}

// divide returns n / d as a whole number, rounded by mode.
func divide(n, d *big.Int, mode Rounding) *big.Int {
	if d.Sign() == 0 {
		panic("BUG: division by zero")
	}
	q, r := new(big.Int).QuoRem(n, d, new(big.Int))
	if r.Sign() == 0 || mode == Down {
		return q
	}
	half := new(big.Int).Abs(r)
	order := half.Lsh(half, 1).CmpAbs(d)
	if order < 0 || order == 0 && mode == HalfEven && q.Bit(0) == 0 {
		return q
	}
	return q.Add(q, big.NewInt(int64(n.Sign()*d.Sign())))
}

func pow10(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// Scaled returns a x 10^places, which must be a whole number.
func (a Amount) Scaled(places int) (*big.Int, error) {
	s := a.d.Shift(int32(places))
	if !s.IsInteger() {
		return nil, fmt.Errorf("%s has more than %d decimals", a, places)
	}
	return s.BigInt(), nil
}

// String prints a without an exponent and without trailing zeros in its fraction. It is canonical:
// equal amounts print alike.
func (a Amount) String() string {
	s := a.d.String()
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// Fixed prints a with exactly the given number of decimals. a must not have more: rounding is a
// step of its own.
func (a Amount) Fixed(places int) string {
	if !a.d.Shift(int32(places)).IsInteger() {
		panic(fmt.Sprintf("BUG: %s has more than %d decimals", a, places))
	}
	return a.d.StringFixed(int32(places))
}
