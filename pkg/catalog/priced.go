package catalog

import (
	"cmp"
	"slices"

	"github.com/suanpan/suanpan/pkg/money"
)

// Books returns the names of all price books, from whatever second on, ascending.
func (c *Catalog) Books() []string { return keys(c.books) }

// BookAt returns the version of a price book that is in force at a second.
func (c *Catalog) BookAt(name string, at int64) (*Version, bool) {
	b := c.books[name]
	if b == nil {
		return nil, false
	}
	v, ok := b.versions.at(at)
	return v.doc, ok
}

// BookOf returns the version of a tenant's price book that is in force at a second.
func (c *Catalog) BookOf(tenant string, at int64) (*Version, bool) {
	t := c.tenants[tenant]
	if t == nil {
		return nil, false
	}
	bound, _ := t.binding(at)
	return c.BookAt(bound.book, at)
}

// Prices returns the prices of a version, by SKU, purchase and region.
func (v *Version) Prices() []*Price {
	all := make([]*Price, 0, len(v.prices))
	for _, p := range v.prices {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *Price) int {
		return cmp.Or(cmp.Compare(a.SKU, b.SKU), cmp.Compare(a.Purchase, b.Purchase),
			cmp.Compare(a.Region, b.Region))
	})
	return all
}

// Traded is a SKU that the market has prices of, in a region.
type Traded struct{ SKU, Region string }

// Traded returns what the market has prices of, by SKU and region.
func (c *Catalog) Traded() []Traded {
	all := make([]Traded, 0, len(c.market))
	for key := range c.market {
		all = append(all, Traded{key.sku, key.region})
	}
	slices.SortFunc(all, func(a, b Traded) int {
		return cmp.Or(cmp.Compare(a.SKU, b.SKU), cmp.Compare(a.Region, b.Region))
	})
	return all
}

// MarketPrice is a price of the market and the second from which it holds: until the next one.
type MarketPrice struct {
	From     int64
	Price    money.Amount
	Currency string // "" is that of the book
	Per      string // "" is that of the price that follows the market
}

// MarketPrices returns the market's prices that hold at some second of [from, until), in the order
// of time, as they were published. Currency and unit may differ from one to the next.
func (c *Catalog) MarketPrices(t Traded, from, until int64) []MarketPrice {
	var out []MarketPrice
	points := c.market[marketKey{t.SKU, t.Region}]
	for i, p := range points {
		if i+1 < len(points) && points[i+1].second() <= from {
			continue // the next one holds before it
		}
		if p.second() >= until {
			break
		}
		out = append(out, MarketPrice{p.second(), p.price, p.currency, p.per})
	}
	return out
}
