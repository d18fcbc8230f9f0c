package money

import (
	"math/big"
	"slices"

	"github.com/bojanz/currency"
)

// Digits returns the decimals of a currency's minor unit by ISO 4217: 0 for JPY, 2 for CNY, 3 for
// KWD. It reports false for what is no currency.
func Digits(code string) (int, bool) {
	digits, ok := currency.GetDigits(code)
	return int(digits), ok
}

// Allocate rounds parts to the given number of decimals so that they add up to a total, by largest
// remainder: each part is cut down to the next lower number, and what is missing goes in units of
// the last decimal to those from which most was cut, the first of equals first. The total must have
// no more decimals, and must not differ from the sum of the parts by a unit or more.
func Allocate(total Amount, parts []Amount, places int) []Amount {
	type cut struct {
		at   int
		rest Amount
	}
	out := make([]Amount, len(parts))
	cuts := make([]cut, len(parts))
	missing := total
	for i, p := range parts {
		out[i] = p.floor(places)
		cuts[i] = cut{i, p.Sub(out[i])}
		missing = missing.Sub(out[i])
	}
	units, err := missing.Scaled(places)
	if err != nil || units.Sign() < 0 || units.Cmp(big.NewInt(int64(len(parts)))) > 0 {
		panic("BUG: " + total.String() + " is not the rounded sum of its parts")
	}
	slices.SortStableFunc(cuts, func(a, b cut) int { return b.rest.Cmp(a.rest) })
	unit := New(big.NewInt(1), places)
	for _, c := range cuts[:units.Int64()] {
		out[c.at] = out[c.at].Add(unit)
	}
	return out
}

// Sum adds amounts up.
func Sum(amounts []Amount) Amount {
	var sum Amount
	for _, a := range amounts {
		sum = sum.Add(a)
	}
	return sum
}

// floor is the largest number of the given decimals that is not above a.
func (a Amount) floor(places int) Amount {
	down := a.Round(places, Down)
	if down.Cmp(a) > 0 {
		return down.Sub(New(big.NewInt(1), places))
	}
	return down
}

// Min returns the smaller of two amounts.
func Min(a, b Amount) Amount {
	if a.Cmp(b) <= 0 {
		return a
	}
	return b
}

// ParseSigned is [ParseExact] with an optional minus sign: what [Amount.Fixed] printed.
func ParseSigned(text string) (Amount, error) {
	if len(text) > 0 && text[0] == '-' {
		a, err := ParseExact(text[1:])
		return a.Neg(), err
	}
	return ParseExact(text)
}
