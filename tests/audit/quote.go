package audit

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"sync"
	"time"
)

// quote is what one second of a SKU costs, and to which period it belongs.
type quote struct {
	price            *price
	contract         *contract // nil without one
	band, multiplier string
	spot             *big.Rat // clamped; nil if the price does not follow the market
	period           period
}

// terms is under what a tenant buys at a second.
type terms struct {
	contract *contract
	book     string
}

// terms looks up the tenant's contract, else its own book; false if it has none at that second.
func (c *catalog) terms(name string, s int64) (terms, bool) {
	var held *contract
	newest := map[string]*contract{}
	for _, k := range c.contracts[name] {
		if k.from <= s {
			newest[k.name] = k
		}
	}
	for _, k := range newest {
		if s < k.end {
			held = k
		}
	}
	if held != nil {
		return terms{held, held.book}, true
	}
	found := terms{}
	for _, t := range c.tenants[name] {
		if t.from <= s {
			found.book = t.book
		}
	}
	return found, found.book != ""
}

// since is the first second from which on the terms have been what they are at s.
func (c *catalog) since(name string, s int64) int64 {
	now, _ := c.terms(name, s)
	start := int64(always)
	consider := func(t int64) {
		if t <= s && t > start && t != always {
			if before, ok := c.terms(name, t-1); !ok || before != now {
				start = t
			}
		}
	}
	for _, k := range c.contracts[name] {
		consider(k.from)
		consider(k.end)
	}
	for _, t := range c.tenants[name] {
		consider(t.from)
	}
	return start
}

// version is the version of a book at a second, nil if it has none.
func (c *catalog) version(name string, s int64) *book {
	var found *book
	for _, b := range c.books[name] {
		if b.from <= s {
			found = b
		}
	}
	return found
}

// entry looks a price up in one version.
func (b *book) entry(sku, purchase, region string) *price {
	if b == nil {
		return nil
	}
	for _, want := range [][2]string{
		{purchase, region}, {purchase, ""}, {"on_demand", region}, {"on_demand", ""},
	} {
		for _, p := range b.prices {
			if p.sku == sku && p.purchase == want[0] && p.region == want[1] {
				return p
			}
		}
	}
	return nil
}

// quote prices one second; nil if there is no price.
func (c *catalog) quote(tenant, sku, purchase, region string, s int64) *quote {
	now, ok := c.terms(tenant, s)
	if !ok {
		return nil
	}
	current := c.version(now.book, s)
	if current == nil {
		return nil
	}
	zone := current.zone
	if now.contract != nil && now.contract.zone != "" {
		zone = now.contract.zone
	}
	q := &quote{contract: now.contract, band: "standard", multiplier: "1"}
	q.period = periodOf(zone, s)
	since := c.since(tenant, s)
	q.price = c.holding(now.book, sku, purchase, region, s,
		max(periodStart(zone, s), since), max(s-s%3600, since))
	if q.price == nil {
		return nil
	}
	if name := c.bandAt(q.price.book, s); name != "" {
		if m, ok := q.price.multipliers[name]; ok {
			q.band, q.multiplier = name, m
		}
	}
	if q.price.floor != nil {
		base := q.price.book.entry(sku, "on_demand", region)
		if base == nil || base.per != q.price.per {
			return nil
		}
		q.spot = c.spot(q.price, base.amount, region, s)
	}
	return q
}

// holding is the price in force: one with a ladder or a package stays to its window's end if it
// was there when the window began, the older one first; else it is that of the second itself.
func (c *catalog) holding(
	book, sku, purchase, region string, s, periodStart, hourStart int64,
) *price {
	var held *price
	consider := func(start int64, holds func(*price) bool) {
		p := c.version(book, start).entry(sku, purchase, region)
		if p != nil && holds(p) && (held == nil || p.book.from < held.book.from) {
			held = p
		}
	}
	consider(periodStart, func(p *price) bool {
		return p.pack != nil || p.ladder != nil && p.ladder.window == "period"
	})
	consider(hourStart, func(p *price) bool {
		return p.ladder != nil && p.ladder.window == "hour"
	})
	if held != nil {
		return held
	}
	return c.version(book, s).entry(sku, purchase, region)
}

// spot is the market price in force at s within its bounds.
func (c *catalog) spot(p *price, base *big.Rat, region string, s int64) *big.Rat {
	floor, top := new(big.Rat).Mul(p.floor, base), new(big.Rat).Mul(p.cap, base)
	at := time.Unix(s, 0)
	var latest *marketPrice
	for i := range c.market {
		m := &c.market[i]
		if m.sku == p.sku && m.region == region && m.fits(p) && !m.at.After(at) &&
			(latest == nil || !m.at.Before(latest.at)) {
			latest = m
		}
	}
	switch {
	case latest == nil || latest.price.Cmp(floor) < 0:
		return floor
	case latest.price.Cmp(top) > 0:
		return top
	default:
		return latest.price
	}
}

// marketFits says whether a market price is in the currency and unit of any entry that would
// follow it, or none would.
func (c *catalog) marketFits(e *event) bool {
	stated := marketPrice{currency: e.currency, per: e.per}
	followed := false
	for _, versions := range c.books {
		for _, b := range versions {
			p := b.entry(e.sku, "spot", e.region)
			if p == nil || p.floor == nil {
				continue
			}
			if stated.fits(p) {
				return true
			}
			followed = true
		}
	}
	return !followed
}

// bandAt is the first band that holds at s, "" if none does.
func (c *catalog) bandAt(b *book, s int64) string {
	for _, candidate := range b.bands {
		local := time.Unix(s, 0).In(location(candidate.zone))
		for _, clause := range candidate.when {
			if c.clauseHolds(clause, local) {
				return candidate.name
			}
		}
	}
	return ""
}

func (c *catalog) clauseHolds(clause map[string]any, local time.Time) bool {
	y, m, d := local.Date()
	day := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	if name := text(clause, "calendar"); name != "" {
		return c.holiday(name, day, local.Unix())
	}
	from, to := clock(text(clause, "from")), clock(text(clause, "to"))
	now := local.Hour()*3600 + local.Minute()*60 + local.Second()
	if from < to && (now < from || now >= to) {
		return false
	}
	if from > to && now < from {
		if now >= to {
			return false
		}
		day = day.AddDate(0, 0, -1)
	}
	if days := list(clause, "days"); days != nil {
		found := false
		for _, name := range days {
			found = found || name == strings.ToLower(day.Weekday().String()[:3])
		}
		if !found {
			return false
		}
	}
	except := text(clause, "except")
	return except == "" || !c.holiday(except, day, local.Unix())
}

// holiday says whether the calendar's version of second s has the day.
func (c *catalog) holiday(name string, day time.Time, s int64) bool {
	holds := false
	for _, version := range c.calendars[name] {
		if version.from <= s {
			holds = version.days[day.Format(time.DateOnly)]
		}
	}
	return holds
}

// clock reads hh:mm as seconds.
func clock(text string) int {
	hours, minutes, _ := strings.Cut(text, ":")
	h, _ := strconv.Atoi(hours)
	m, _ := strconv.Atoi(minutes)
	return h*3600 + m*60
}

var (
	locations sync.Map // zone to *time.Location
	starts    sync.Map // zone and month to its first second
)

func location(zone string) *time.Location {
	if known, ok := locations.Load(zone); ok {
		return known.(*time.Location)
	}
	l, err := time.LoadLocation(zone)
	if err != nil {
		panic("BUG: invalid catalog: " + err.Error())
	}
	locations.Store(zone, l)
	return l
}

// period is a local month.
type period struct {
	year  int
	month time.Month
}

// String prints YYYY-MM.
func (p period) String() string { return fmt.Sprintf("%04d-%02d", p.year, p.month) }

// periodOf is the local month of a second.
func periodOf(zone string, s int64) period {
	year, month, _ := time.Unix(s, 0).In(location(zone)).Date()
	return period{year, month}
}

// periodStart walks back to the first second of the local month.
func periodStart(zone string, s int64) int64 {
	type key struct {
		zone string
		period
	}
	month := periodOf(zone, s)
	if known, ok := starts.Load(key{zone, month}); ok {
		return known.(int64)
	}
	start := s
	for _, step := range []int64{86400, 3600, 60, 1} {
		for periodOf(zone, start-step) == month {
			start -= step
		}
	}
	starts.Store(key{zone, month}, start)
	return start
}
