package audit

import "math/big"

// charge is what one curve is applied to. The price stands for the book and its version too: it is
// the same pointer only if it is the same entry of the same version.
type charge struct {
	tenant, sku      string
	price            *price
	contract         *contract
	band, multiplier string
	spot             string // the clamped market price, as a fraction
	period           period
	window           int64 // the UTC hour of a ladder by hours
}

// charge says what a second (or a moment of consumption) at this quote belongs to.
func (q *quote) charge(tenant, sku string, second int64) charge {
	c := charge{
		tenant: tenant, sku: sku, price: q.price, contract: q.contract,
		band: q.band, multiplier: q.multiplier, period: q.period,
	}
	if q.spot != nil {
		c.spot = q.spot.RatString()
	}
	if l := q.price.ladder; l != nil && l.window == "hour" {
		c.window = second/3600 + 1
	}
	return c
}

// unitSeconds is how many unit-seconds a price's unit has.
var unitSeconds = map[string]int64{
	"second": 1, "hour": 3600, "day": 24 * 3600, "month": 730 * 3600, "unit": 1,
}

// cost is the price of a quantity (unit-seconds, or units), not rounded.
func (c charge) cost(quantity *big.Rat) *big.Rat {
	q := new(big.Rat).Quo(quantity, big.NewRat(unitSeconds[c.price.per], 1))
	var base *big.Rat
	switch {
	case c.spot != "":
		base = new(big.Rat).Mul(q, rat(c.spot))
	case c.price.pack != nil:
		base = new(big.Rat).Mul(ceil(new(big.Rat).Quo(q, c.price.pack)), c.price.amount)
	case c.price.ladder == nil:
		base = new(big.Rat).Mul(q, c.price.amount)
	case c.price.ladder.mode == "volume":
		base = c.price.ladder.volume(q)
	default:
		base = c.price.ladder.graduated(q)
	}
	return base.Mul(base, rat(c.multiplier))
}

// volume prices all of q at the tier that it reaches.
func (l *ladder) volume(q *big.Rat) *big.Rat {
	for _, t := range l.tiers {
		if t.upTo == nil || q.Cmp(t.upTo) <= 0 {
			return new(big.Rat).Mul(q, t.price)
		}
	}
	panic("BUG: ladder without an open tier")
}

// graduated prices each part of q at its own tier.
func (l *ladder) graduated(q *big.Rat) *big.Rat {
	sum, from := new(big.Rat), new(big.Rat)
	for _, t := range l.tiers {
		to := q
		if t.upTo != nil && t.upTo.Cmp(q) < 0 {
			to = t.upTo
		}
		part := new(big.Rat).Sub(to, from)
		sum.Add(sum, part.Mul(part, t.price))
		if from = to; to == q {
			break
		}
	}
	return sum
}

// ceil is the smallest whole number that is not below r, which is not negative.
func ceil(r *big.Rat) *big.Rat {
	whole, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	return new(big.Rat).SetInt(whole)
}

// round12 rounds to 12 decimals, half away from zero: as big.Rat prints.
func round12(r *big.Rat) *big.Rat { return rat(r.FloatString(12)) }

// rat reads a number that this package wrote or has checked.
func rat(text string) *big.Rat {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		panic("BUG: not a number: " + text)
	}
	return r
}
