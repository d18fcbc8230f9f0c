package alert

import (
	"math/big"
	"slices"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
)

// PriceChange finds what costs another price than before, by the policy's fraction at least: list
// prices of a version of a book that came into force within a day, against the version before it,
// and prices of the market, against those of a day ago. A policy for some tenants finds what their
// books have; any other one what there is, once.
func PriceChange(p *catalog.Policy, c *catalog.Catalog, now int64) Look {
	var look Look
	for _, tenant := range tenantsOf(p) {
		for _, name := range c.Books() {
			book, ok := c.BookAt(name, now)
			if !ok || !has(c, tenant, now, name) || now-book.From >= daySeconds {
				continue
			}
			if before, ok := c.BookAt(name, book.From-1); ok {
				if f, ok := repriced(p, before, book); ok {
					f.Tenant = tenant
					look.Findings = append(look.Findings, f)
				}
			}
		}
		for _, t := range c.Traded() {
			price, book, ok := follows(c, tenant, t, now)
			if !ok || !p.Covers(tenant, "", t.SKU) {
				continue
			}
			before, after, ok := dayApart(c, t, now)
			if ok && changed(p, before.Price, after.Price) {
				look.Findings = append(look.Findings, Finding{
					Tenant: tenant, Subject: "market " + t.SKU + " " + t.Region,
					Labels:  map[string]string{"sku": t.SKU, "region": t.Region},
					Query:   queryMarket(t, now-2*daySeconds, now),
					Figures: change(before.Price, after.Price, unitOf(after, price, book)),
				})
			}
		}
	}
	look.Findings = sortFindings(look.Findings)
	return look
}

// tenantsOf returns the tenants of a policy, "" for one that is for all.
func tenantsOf(p *catalog.Policy) []string {
	if len(p.Tenants) == 0 {
		return []string{""}
	}
	return p.Tenants
}

// has reports whether a tenant has a price book now; "" has each.
func has(c *catalog.Catalog, tenant string, now int64, book string) bool {
	if tenant == "" {
		return true
	}
	v, ok := c.BookOf(tenant, now)
	return ok && v.Book == book
}

// repriced is the finding of what a version of a book changed. It shows the largest change.
func repriced(p *catalog.Policy, before, after *catalog.Version) (Finding, bool) {
	var count int64
	var most [2]money.Amount // before and after, per hour or per unit
	var of *catalog.Price
	for _, old := range before.Prices() {
		price := after.Exact(old.SKU, old.Purchase, old.Region)
		if price == nil || price.Region != old.Region || old.Market != nil || price.Market != nil ||
			old.Per.Consumed() != price.Per.Consumed() || !covers(p, old.SKU) {
			continue
		}
		was, is := perHour(old), perHour(price)
		if !changed(p, was, is) {
			continue
		}
		count++
		if of == nil || further(was, is, most[0], most[1]) {
			of, most = old, [2]money.Amount{was, is}
		}
	}
	if count == 0 {
		return Finding{}, false
	}
	unit := after.Currency + "/h"
	if of.Per.Consumed() {
		unit = after.Currency + "/unit"
	}
	from := metering.InstantOf(after.From).String()
	return Finding{
		Subject: "book " + after.Book + " " + from,
		Labels:  map[string]string{"book": after.Book, "sku": of.SKU, "purchase": of.Purchase},
		Query: QueryPrices(of.SKU, of.Purchase, of.Region, after.From-daySeconds,
			after.From+daySeconds),
		Figures: append([]Figure{
			{Name: "prices", Value: number(count)},
			{Name: "from", Value: from},
			{Name: "sku", Value: of.SKU},
		}, change(most[0], most[1], unit)...),
	}, true
}

// covers reports whether a policy is for a SKU, whoever has it.
func covers(p *catalog.Policy, sku string) bool {
	return len(p.SKUs) == 0 ||
		slices.ContainsFunc(p.SKUs, func(s catalog.Pattern) bool { return s.Matches(sku) })
}

// perHour is a price for an hour, or for a unit of what is consumed.
func perHour(p *catalog.Price) money.Amount {
	if p.Per.Consumed() {
		return p.Amount
	}
	return p.Amount.MulRatio(big.NewInt(metering.Hour), big.NewInt(p.Per.Seconds), 2*money.Scale,
		money.HalfUp)
}

// changed reports whether a price changed by the policy's fraction of what it was, or more.
func changed(p *catalog.Policy, was, is money.Amount) bool {
	return was.Cmp(is) != 0 && distance(was, is).Cmp(was.Mul(p.Threshold("fraction"))) >= 0
}

// further reports whether a change from a to b is a larger part of a than one from c to d is of c.
func further(a, b, c, d money.Amount) bool {
	return distance(a, b).Mul(c).Cmp(distance(c, d).Mul(a)) > 0
}

func change(was, is money.Amount, unit string) []Figure {
	const places = 6
	figures := []Figure{
		{"before", was.Round(places, money.HalfUp).String(), unit},
		{"price", is.Round(places, money.HalfUp).String(), unit},
	}
	if was.Sign() == 0 {
		return figures
	}
	scaled, err := was.Scaled(2 * money.Scale)
	if err != nil {
		panic("BUG: a price has too many decimals: " + err.Error())
	}
	part := is.Sub(was).MulInt(big.NewInt(100)).MulRatio(
		new(big.Int).Exp(big.NewInt(10), big.NewInt(2*money.Scale), nil), scaled, 2, money.HalfUp)
	return append(figures, Figure{"change", part.String(), "%"})
}

// follows returns the price that follows the market's price of a SKU for a tenant, or for any one,
// and its book.
func follows(c *catalog.Catalog, tenant string, t catalog.Traded, now int64) (
	*catalog.Price, *catalog.Version, bool,
) {
	for _, name := range c.Books() {
		book, ok := c.BookAt(name, now)
		if !ok || !has(c, tenant, now, name) {
			continue
		}
		p := book.Exact(t.SKU, string(metering.Spot), t.Region)
		if p != nil && p.Market != nil {
			return p, book, true
		}
	}
	return nil, nil, false
}

// unitOf names what a market price is in.
func unitOf(m catalog.MarketPrice, p *catalog.Price, book *catalog.Version) string {
	if m.Currency == "" {
		m.Currency = book.Currency
	}
	if m.Per == "" {
		m.Per = p.Per.Name
	}
	return m.Currency + "/" + m.Per
}

// alike reports whether two market prices are in the same currency and unit.
func alike(a, b catalog.MarketPrice) bool { return a.Currency == b.Currency && a.Per == b.Per }

// dayApart returns the market's price of a day ago and that of now. It reports false where one of
// them is missing, or where they are in different currencies or units.
func dayApart(c *catalog.Catalog, t catalog.Traded, now int64) (was, is catalog.MarketPrice,
	ok bool,
) {
	prices := c.MarketPrices(t, now-daySeconds, now+1)
	if len(prices) == 0 || prices[0].From > now-daySeconds {
		return was, is, false
	}
	was, is = prices[0], prices[len(prices)-1]
	return was, is, alike(was, is)
}

// leastKnown is for how many days the market's price must be known, or all days of the policy where
// they are fewer.
const leastKnown = 7

// PriceLow finds the prices of the market that are at or below the policy's quantile of the prices
// of its days, each weighted by how long it held. A price that is as usual, such as one that never
// changes, is not low: it must be below the median, too. It suggests to lock it.
func PriceLow(p *catalog.Policy, c *catalog.Catalog, now int64) Look {
	var look Look
	days := p.Whole("days")
	for _, tenant := range tenantsOf(p) {
		for _, t := range c.Traded() {
			price, book, ok := follows(c, tenant, t, now)
			if !ok || !p.Covers(tenant, "", t.SKU) {
				continue
			}
			held, is, ok := heldPrices(c, t, now-days*daySeconds, now)
			if !ok || held.total < min(days, leastKnown)*daySeconds {
				continue
			}
			low, median := held.quantile(p.Threshold("quantile")), held.quantile(half)
			if is.Price.Cmp(low) > 0 || is.Price.Cmp(median) >= 0 {
				continue
			}
			unit := unitOf(is, price, book)
			lock := &Lock{
				SKU: t.SKU, Region: t.Region, Price: is.Price.String(), Per: price.Per.Name,
				Currency: book.Currency,
			}
			look.Findings = append(look.Findings, Finding{
				Tenant: tenant, Subject: "market " + t.SKU + " " + t.Region,
				Labels: map[string]string{"sku": t.SKU, "region": t.Region},
				Query:  queryMarket(t, now-days*daySeconds, now),
				Figures: []Figure{
					{"price", is.Price.String(), unit},
					{"low", low.String(), unit},
					{"median", median.String(), unit},
					{Name: "quantile", Value: p.Threshold("quantile").String()},
					{"days", number(held.total / daySeconds), "d"},
				},
				Hint: &Hint{Lock: lock},
			})
		}
	}
	look.Findings = sortFindings(look.Findings)
	return look
}

// weighted is a price and for how many seconds it held.
type weighted struct {
	price   money.Amount
	seconds int64
}

// held are prices, ascending, and for how long all of them held.
type held struct {
	prices []weighted
	total  int64
}

// heldPrices returns the prices of the market between two seconds that are in the currency and unit
// of the last one, and that one. It reports false where there is none now.
func heldPrices(c *catalog.Catalog, t catalog.Traded, from, now int64) (held, catalog.MarketPrice,
	bool,
) {
	prices := c.MarketPrices(t, from, now+1)
	if len(prices) == 0 {
		return held{}, catalog.MarketPrice{}, false
	}
	last := prices[len(prices)-1]
	var h held
	for i, m := range prices {
		until := now
		if i+1 < len(prices) {
			until = prices[i+1].From
		}
		if seconds := until - max(m.From, from); seconds > 0 && alike(m, last) {
			h.prices = append(h.prices, weighted{m.Price, seconds})
			h.total += seconds
		}
	}
	slices.SortStableFunc(h.prices, func(a, b weighted) int { return a.price.Cmp(b.price) })
	return h, last, h.total > 0
}

// quantile is the lowest price at or below which the price was for a part of the time.
func (h *held) quantile(part money.Amount) money.Amount {
	least := part.Mul(whole(h.total))
	var passed int64
	for _, w := range h.prices {
		passed += w.seconds
		if whole(passed).Cmp(least) >= 0 {
			return w.price
		}
	}
	return h.prices[len(h.prices)-1].price
}
