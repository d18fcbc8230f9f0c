package view

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/suanpan/suanpan/pkg/money"
)

// The decimals of quantities in the unit of their price and of average prices, and how many digits
// of those that are not zeros in front are shown.
const (
	quantityPlaces = 4
	averagePlaces  = 6
	shownDigits    = 4
)

// seconds is how long the unit of a price lasts.
var seconds = map[string]int64{"second": 1, "hour": 3600, "day": 86400, "month": 2628000}

// maxDigits bounds the decimals that are read: no amount and no quantity comes near.
const maxDigits = 100

// Amount reads a decimal that may have a minus sign: what documents say has no limit of size.
func Amount(text string) (money.Amount, error) {
	unsigned, negative := strings.CutPrefix(text, "-")
	whole, fraction, point := strings.Cut(unsigned, ".")
	digits := whole + fraction
	if whole == "" || point && fraction == "" || len(digits) > maxDigits ||
		strings.Trim(digits, "0123456789") != "" {
		return money.Amount{}, fmt.Errorf("%.40q is no decimal", text)
	}
	coefficient, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		panic("BUG: digits are no number: " + digits)
	}
	a := money.New(coefficient, len(fraction))
	if negative {
		a = a.Neg()
	}
	return a, nil
}

// average rounds an average price for reading: to 6 decimals, or to as many as show 4 digits of it.
func average(price money.Amount) money.Amount {
	for places := averagePlaces; places < money.Scale; places++ {
		rounded := price.Round(places, money.HalfUp)
		digits := strings.ReplaceAll(rounded.Fixed(places), ".", "")
		if len(strings.TrimLeft(digits, "-0")) >= shownDigits || rounded.Cmp(price) == 0 {
			return rounded
		}
	}
	return price.Round(money.Scale, money.HalfUp)
}

// Group puts a comma between every three digits before the point of a decimal.
func Group(decimal string) string {
	sign := ""
	if rest, negative := strings.CutPrefix(decimal, "-"); negative {
		sign, decimal = "-", rest
	}
	whole, fraction, point := strings.Cut(decimal, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if point {
		whole += "." + fraction
	}
	return sign + whole
}

// quantity turns a line's quantity into the unit of its price: unit-seconds into hours, say.
func quantity(text, unit, per string) (string, error) {
	q, err := Amount(text)
	if err != nil {
		return "", fmt.Errorf("read quantity: %w", err)
	}
	if n := seconds[per]; unit == "unit-second" && n > 1 {
		q = q.MulRatio(big.NewInt(1), big.NewInt(n), quantityPlaces, money.HalfUp)
	}
	return q.String(), nil
}

// atLeast prints a decimal without zeros at its end, but with as many decimals as another text has.
func atLeast(a money.Amount, like string) string {
	_, most, _ := strings.Cut(like, ".")
	text := a.String()
	_, fraction, _ := strings.Cut(text, ".")
	if len(fraction) < len(most) {
		return a.Fixed(len(most))
	}
	return text
}

// fixed prints an amount with as many decimals as another text has.
func fixed(a money.Amount, like string) string {
	_, fraction, _ := strings.Cut(like, ".")
	return a.Fixed(len(fraction))
}
