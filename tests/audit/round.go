package audit

import (
	"math/big"
	"slices"
)

// scaled is r in units of 10^-digits, and the next whole number below it.
func scaled(r *big.Rat, digits int) (*big.Rat, *big.Int) {
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)
	s := new(big.Rat).Mul(r, new(big.Rat).SetInt(unit))
	return s, new(big.Int).Div(s.Num(), s.Denom()) // Euclid's division: downwards
}

func units(n *big.Int, digits int) *big.Rat {
	return new(big.Rat).SetFrac(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil))
}

// nearest rounds, a half away from zero.
func nearest(r *big.Rat, digits int) *big.Rat { return rat(r.FloatString(digits)) }

// cut rounds a number that is not negative downwards.
func cut(r *big.Rat, digits int) *big.Rat {
	if r.Sign() < 0 {
		return new(big.Rat)
	}
	_, below := scaled(r, digits)
	return units(below, digits)
}

// round rounds to the currency's digits as the book says.
func (b *biller) round(r *big.Rat) *big.Rat {
	s, below := scaled(r, b.digits)
	if rest := minus(s, new(big.Rat).SetInt(below)); b.halfEven && rest.Cmp(big.NewRat(1, 2)) == 0 {
		if below.Bit(0) == 1 {
			below.Add(below, big.NewInt(1))
		}
		return units(below, b.digits)
	}
	return nearest(r, b.digits)
}

// remainders rounds parts so that they come to a total: all downwards, then a unit more for those
// that lost most, the first of equals first.
func remainders(total *big.Rat, parts []*big.Rat, digits int) []*big.Rat {
	out := make([]*big.Rat, len(parts))
	lost := make([]*big.Rat, len(parts))
	order := make([]int, len(parts))
	missing, _ := scaled(total, digits)
	for i, p := range parts {
		s, below := scaled(p, digits)
		out[i], order[i] = units(below, digits), i
		lost[i] = minus(s, new(big.Rat).SetInt(below))
		missing.Sub(missing, new(big.Rat).SetInt(below))
	}
	slices.SortStableFunc(order, func(x, y int) int { return lost[y].Cmp(lost[x]) })
	one := units(big.NewInt(1), digits)
	for _, i := range order[:missing.Num().Int64()] {
		out[i] = new(big.Rat).Add(out[i], one)
	}
	return out
}

func smaller(x, y *big.Rat) *big.Rat {
	if x.Cmp(y) < 0 {
		return x
	}
	return y
}
