package catalog

import (
	"time"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
)

// Query asks for the price of a SKU.
type Query struct {
	Tenant   string
	SKU      string
	Purchase string // "" is on_demand
	Region   string // "" is none
}

// Quote says how a SKU is priced at a second, and until when that stays so.
type Quote struct {
	Until           int64 // the first second for which to ask again; at most the end of the UTC hour
	Price           *Price
	Book            string
	BookVersion     int64  // start of the version that the price and its bands are from
	Contract        string // "" without one
	ContractVersion int64  // start of its version, 0 without one
	Band            string
	Spot            string // the clamped market price, canonical; "" unless the price is the market's
	Period          string // billing period of the second, YYYY-MM
	Day             int64  // local day, since 1970-01-01
	Window          int64  // start of the UTC hour if the ladder counts by hours, else 0
}

// Quote prices a second. Where there is no price it returns false, with Until set all the same.
func (c *Catalog) Quote(q Query, at int64) (Quote, bool) {
	out := Quote{Until: metering.HourOf(at) + metering.Hour}
	t := c.tenants[q.Tenant]
	if t == nil {
		return out, false
	}
	bound, until := t.binding(at)
	out.Until = min(out.Until, until)
	b := c.books[bound.book]
	if b == nil {
		return out, false
	}
	out.Until = min(out.Until, b.versions.next(at))
	current, ok := b.versions.at(at)
	if !ok {
		return out, false
	}
	location := bound.location
	if location == nil {
		location = current.doc.location
	}
	l := localAt(at, location)
	out.Until = min(out.Until, l.next(nil))
	v, p := b.hold(current, q, at, bound.from, location)
	if p == nil {
		return out, false
	}
	out.Price, out.Book, out.BookVersion = p, b.name, v.From
	out.Contract, out.ContractVersion = bound.contract, bound.contractVersion
	out.Period, out.Day = periodOf(l.day), l.day
	if p.Ladder != nil && p.Ladder.Hourly {
		out.Window = metering.HourOf(at)
	}
	out.Band = c.band(v, p, at, &out.Until)
	return out, c.spot(&out, v, p, q, at)
}

// hold returns the price at a second, and its version. That is the one of the current version,
// unless an older price whose quantities are counted over a window was in force when the window of
// that second started: it stays to the window's end. A new contract or book starts new windows.
func (b *book) hold(current dated[*Version], q Query, at, bound int64, location *time.Location) (
	*Version, *Price,
) {
	purchase := q.Purchase
	if purchase == "" {
		purchase = onDemand
	}
	if len(b.versions) > 1 {
		month := window{max(periodStart(at, location), bound), false}
		hour := window{max(metering.HourOf(at), bound), true}
		first, second := month, hour
		if hour.start < month.start {
			first, second = hour, month
		}
		for _, w := range []window{first, second} {
			v, ok := b.versions.at(w.start)
			if !ok || v.from == current.from {
				continue
			}
			if p := v.doc.Price(q.SKU, purchase, q.Region); p != nil && p.windowed(w.hourly) {
				return v.doc, p
			}
		}
	}
	return current.doc, current.doc.Price(q.SKU, purchase, q.Region)
}

type window struct {
	start  int64
	hourly bool
}

// band returns the name of the band that the price has a rule for, at a second.
func (c *Catalog) band(v *Version, p *Price, at int64, until *int64) string {
	if len(v.bands) == 0 || len(p.multipliers) == 0 {
		return Standard
	}
	name, end := v.bandAt(at, func(name string, day int64) bool {
		h, ok := c.calendars[name].at(at)
		return ok && h.doc.days[day]
	})
	*until = min(*until, end)
	for _, calendar := range v.calendars {
		*until = min(*until, c.calendars[calendar].next(at))
	}
	if _, ok := p.multipliers[name]; !ok {
		return Standard
	}
	return name
}

// spot sets the clamped market price. It reports false where the price on demand, of which floor
// and cap are fractions, is missing.
func (c *Catalog) spot(out *Quote, v *Version, p *Price, q Query, at int64) bool {
	if p.Market == nil {
		return true
	}
	base := v.Exact(q.SKU, onDemand, q.Region)
	if base == nil {
		return false
	}
	floor, ceiling := base.Amount.Mul(p.Market.Floor), base.Amount.Mul(p.Market.Cap)
	price, until := c.spotAt(p, v.Currency, q.Region, at)
	out.Until = min(out.Until, until)
	switch {
	case price == nil || price.Cmp(floor) < 0:
		out.Spot = floor.String()
	case price.Cmp(ceiling) > 0:
		out.Spot = ceiling.String()
	default:
		out.Spot = price.String()
	}
	return true
}

// Multiplier returns the factor of a band, 1 for those that the price has no rule for.
func (p *Price) Multiplier(band string) money.Amount {
	if m, ok := p.multipliers[band]; ok {
		return m
	}
	return one
}

var one = money.MustParse("1")

// periodOf is the month of a local day, YYYY-MM.
func periodOf(day int64) string {
	year, month, _ := time.Unix(day*daySeconds, 0).UTC().Date()
	return string([]byte{
		byte('0' + year/1000), byte('0' + year/100%10), byte('0' + year/10%10), byte('0' + year%10), '-',
		byte('0' + month/10), byte('0' + month%10),
	})
}

// periodStart is the first second of the local month that a second lies in.
func periodStart(at int64, location *time.Location) int64 {
	t := time.Unix(at, 0).In(location)
	start := time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, location)
	if start.Month() != t.Month() { // clocks jumped over midnight
		_, start = start.ZoneBounds()
	}
	if from, _ := start.ZoneBounds(); !from.IsZero() {
		before := from.Add(-time.Second)
		if before.In(location).Month() == t.Month() && start.Sub(from) < 24*time.Hour {
			_, old := before.In(location).Zone()
			_, new := start.Zone()
			start = start.Add(-time.Duration(old-new) * time.Second) // midnight came twice
		}
	}
	return start.Unix()
}
