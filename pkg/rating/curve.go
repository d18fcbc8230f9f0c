package rating

import (
	"fmt"
	"math/big"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
)

// Curve is the cumulative price of one charge: what its first units cost together.
type Curve struct {
	price    *catalog.Price
	currency string
	factor   money.Amount // of the band
	unit     money.Amount // price of one unit: the market's, or the book's for the first unit
}

// CurveOf returns the curve of a charge. It fails where the catalog does not have the price book
// version that the charge was made from.
func CurveOf(c *Charge, from *catalog.Catalog) (Curve, error) {
	version, ok := from.BookVersion(c.Book, c.BookVersion)
	if !ok {
		return Curve{}, fmt.Errorf("price book %s has no version that starts at %d", c.Book,
			c.BookVersion)
	}
	price := version.Exact(c.SKU, c.Purchase, c.Region)
	if price == nil {
		return Curve{}, fmt.Errorf("price book %s of %d has no price for %s %s", c.Book,
			c.BookVersion, c.SKU, c.Purchase)
	}
	curve := Curve{price: price, currency: version.Currency, factor: price.Multiplier(c.Band)}
	unit := price.Amount
	if c.Spot != "" {
		spot, err := money.ParseExact(c.Spot)
		if err != nil {
			return Curve{}, fmt.Errorf("parse spot price of charge %s: %w", c.Key(), err)
		}
		unit = spot
	}
	curve.unit = unit.Mul(curve.factor)
	return curve, nil
}

// Total is the cost of the first q, rounded once to [money.Scale] decimals, a half away from zero.
// q is not negative.
func (c Curve) Total(q metering.Quantity) money.Amount {
	if q.Sign() < 0 {
		panic("BUG: a charge has a negative quantity: " + q.String())
	}
	one := big.NewInt(1)
	units := q.Big()
	switch {
	case c.price.Package != nil:
		packages, rest := new(big.Int).QuoRem(units, c.price.Package, new(big.Int))
		if rest.Sign() > 0 {
			packages.Add(packages, one)
		}
		return c.unit.MulRatio(packages, one, money.Scale, money.HalfUp)
	case c.price.Ladder != nil:
		return c.climb(units).MulRatio(one, c.price.Per.Nano(), money.Scale, money.HalfUp)
	}
	return c.unit.MulRatio(units, c.price.Per.Nano(), money.Scale, money.HalfUp)
}

// climb returns the sum over the tiers of billionths of the base unit times the price of a unit.
func (c Curve) climb(units *big.Int) money.Amount {
	var sum money.Amount
	done := new(big.Int)
	for _, tier := range c.price.Ladder.Tiers {
		price := tier.Price.Mul(c.factor)
		reached := tier.UpTo == nil || units.Cmp(tier.UpTo) <= 0
		if c.price.Ladder.Volume {
			if reached {
				return price.MulInt(units)
			}
			continue
		}
		end := units
		if !reached {
			end = tier.UpTo
		}
		sum = sum.Add(price.MulInt(new(big.Int).Sub(end, done)))
		if reached {
			return sum
		}
		done = end
	}
	panic("BUG: a ladder ends")
}

// Flat reports whether every unit costs the same: the amount is the quantity times the price.
func (c Curve) Flat() bool { return c.price.Ladder == nil && c.price.Package == nil }

// UnitPrice is the price of the first unit, with the band's multiplier; of a package, if the price
// has one.
func (c Curve) UnitPrice() money.Amount { return c.unit }

// Per is what [Curve.UnitPrice] is for.
func (c Curve) Per() catalog.Per { return c.price.Per }

// Currency is that of the price book.
func (c Curve) Currency() string { return c.currency }

// Package is the number of units that are sold together, "" where each is sold by itself.
func (c Curve) Package() string {
	if c.price.Package == nil {
		return ""
	}
	return c.inUnits(c.price.Package)
}

// Sold is the number of billionths of the base unit that the unit price buys.
func (c Curve) Sold() *big.Int {
	if c.price.Package != nil {
		return c.price.Package
	}
	return c.price.Per.Nano()
}

// inUnits prints billionths of the base unit in units of the price.
func (c Curve) inUnits(nano *big.Int) string {
	one := money.New(big.NewInt(1), 0)
	return one.MulRatio(nano, c.price.Per.Nano(), metering.MaxPlaces, money.HalfUp).String()
}

// TierPart is the part of a quantity that lies in one tier of a ladder.
type TierPart struct {
	UpTo      string // in units of the price; "" in the last tier
	UnitPrice money.Amount
	Quantity  metering.Quantity
	Amount    money.Amount // to [money.Scale] decimals; the parts add up to the total
}

// Tiers splits q by the ladder, nil where there is none. All of a volume ladder is in the tier that
// is reached.
func (c Curve) Tiers(q metering.Quantity) []TierPart {
	if c.price.Ladder == nil {
		return nil
	}
	parts := make([]TierPart, len(c.price.Ladder.Tiers))
	units, done := q.Big(), new(big.Int)
	total, last := c.Total(q), 0
	for i, tier := range c.price.Ladder.Tiers {
		p := TierPart{UnitPrice: tier.Price.Mul(c.factor)}
		end := units
		if tier.UpTo != nil {
			p.UpTo = c.inUnits(tier.UpTo)
			if tier.UpTo.Cmp(units) < 0 {
				end = tier.UpTo
			}
		}
		in := new(big.Int).Sub(end, done)
		if c.price.Ladder.Volume && end != units {
			in.SetInt64(0)
		}
		if in.Sign() > 0 {
			quantity, err := metering.QuantityOf(in)
			if err != nil {
				panic("BUG: a part of a quantity is too large: " + err.Error())
			}
			p.Quantity, last = quantity, i
			p.Amount = p.UnitPrice.MulRatio(in, c.price.Per.Nano(), money.Scale, money.Down)
			total = total.Sub(p.Amount)
			if !c.price.Ladder.Volume {
				done = end
			} else {
				done = units
			}
		}
		parts[i] = p
	}
	parts[last].Amount = parts[last].Amount.Add(total) // what cutting left
	return parts
}
