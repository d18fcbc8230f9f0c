package catalog

import (
	"slices"
	"strings"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
)

// point is a market price from an instant on.
type point struct {
	at       metering.Instant
	price    money.Amount
	currency string // "" is the book's
	per      string // "" is the price's
}

// second is the first whole second at which the point holds.
func (p point) second() int64 {
	s := p.at.Second()
	if p.at > metering.InstantOf(s) {
		s++
	}
	return s
}

type marketKey struct{ sku, region string }

// AddMarket takes a market price into the catalog. Of prices at one instant the last one added
// holds. A price in another currency or unit than the books' is rejected; it is kept all the same,
// and prices nothing unless a later version of some book is in that currency and unit. So readers
// that meet it before and after that version price alike.
func (c *Catalog) AddMarket(e *metering.Event) *metering.Rejection {
	price, err := money.Parse(e.Price)
	if err != nil {
		return metering.Reject(metering.InvalidAmount, "price: %v", err)
	}
	key := marketKey{strings.Clone(e.SKU), strings.Clone(e.Region)}
	points := c.market[key]
	i := len(points)
	for i > 0 && points[i-1].at > e.At {
		i--
	}
	c.market[key] = slices.Insert(points, i,
		point{e.At, price, strings.Clone(e.Currency), strings.Clone(e.Per)})
	c.Revision++
	return c.checkMarket(e)
}

// checkMarket rejects a price whose currency or per no market entry for it has.
func (c *Catalog) checkMarket(e *metering.Event) *metering.Rejection {
	var entry string
	for _, b := range c.books {
		for _, v := range b.versions {
			p := v.doc.Exact(e.SKU, string(metering.Spot), e.Region)
			if p == nil || p.Market == nil {
				continue
			}
			if (e.Currency == "" || e.Currency == v.doc.Currency) &&
				(e.Per == "" || e.Per == p.Per.Name) {
				return nil
			}
			entry = v.doc.Currency + " per " + p.Per.Name
		}
	}
	if entry == "" {
		return nil // no price follows it yet
	}
	return metering.Reject(metering.PriceMismatch,
		"the market price of %s in %s is in %s per %s, the price book's in %s", e.SKU, e.Region,
		orSame(e.Currency), orSame(e.Per), entry)
}

func orSame(s string) string {
	if s == "" {
		return "(not said)"
	}
	return s
}

// spotAt returns the market's price of a SKU for a price entry at a second, nil before the first,
// and the second at which it may change next.
func (c *Catalog) spotAt(p *Price, currency, region string, at int64) (price *money.Amount,
	until int64,
) {
	points := c.market[marketKey{p.SKU, region}]
	until = metering.MaxSecond
	i, _ := slices.BinarySearchFunc(points, at+1, func(p point, s int64) int {
		return int(min(1, max(-1, p.second()-s)))
	})
	if i < len(points) {
		until = points[i].second()
	}
	for i--; i >= 0; i-- {
		q := &points[i]
		if (q.currency == "" || q.currency == currency) && (q.per == "" || q.per == p.Per.Name) {
			return &q.price, until
		}
	}
	return nil, until
}
