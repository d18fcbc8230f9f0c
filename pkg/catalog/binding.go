package catalog

import (
	"slices"
	"time"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
)

// Binding says under which contract and price book a tenant is in [From, Until), and what follows
// from that for its billing periods. Location is nil, and what follows from the book empty, where
// the catalog does not have the book.
type Binding struct {
	From, Until int64  // seconds
	Contract    string // "" without one
	Book        string
	Zone        string // of billing periods: the contract's, else the book's
	Location    *time.Location
	Currency    string // ISO 4217
	Rounding    money.Rounding
}

// Bindings returns the bindings of a tenant in the order of time. A binding ends where another
// contract, contract version or book begins, and where a version of the book changes its rounding.
func (c *Catalog) Bindings(tenant string) []Binding {
	t := c.tenants[tenant]
	if t == nil {
		return nil
	}
	var out []Binding
	for i, b := range t.bindings {
		if b.book == "" {
			continue // between two contracts, before the tenant's first version
		}
		until := metering.MaxSecond
		if i+1 < len(t.bindings) {
			until = t.bindings[i+1].from
		}
		bound := Binding{
			From: b.from, Until: until, Contract: b.contract, Book: b.book, Zone: b.zone,
			Location: b.location,
		}
		out = append(out, c.books[b.book].split(bound)...)
	}
	return out
}

// split sets what follows from the book, in pieces of the same rounding.
func (b *book) split(whole Binding) []Binding {
	if b == nil {
		return []Binding{whole}
	}
	first := b.versions[0].doc
	if v, ok := b.versions.at(whole.From); ok {
		first = v.doc
	}
	if whole.Location == nil {
		whole.Zone, whole.Location = first.Zone, first.location
	}
	whole.Currency, whole.Rounding = first.Currency, first.Rounding
	pieces := []Binding{whole}
	for _, v := range b.versions {
		last := &pieces[len(pieces)-1]
		if v.from <= last.From || v.from >= last.Until || v.doc.Rounding == last.Rounding {
			continue
		}
		next := *last
		last.Until, next.From, next.Rounding = v.from, v.from, v.doc.Rounding
		pieces = append(pieces, next)
	}
	return pieces
}

// PeriodBounds returns from when until when a billing period, YYYY-MM, of a tenant's contract (""
// without one) may have usage: the local month, in the zone of the binding that it lies in. Over
// several zones it is from the first start until the last end. Months go on after the last
// binding, in its zone. It reports false where the period is none or lies before all bindings.
func (c *Catalog) PeriodBounds(tenant, contract, period string) (from, until int64, ok bool) {
	month, err := time.Parse("2006-01", period)
	if err != nil || month.Year() < 1970 || month.Year() > 2099 {
		return 0, 0, false
	}
	touched := false
	for _, b := range slices.Backward(c.Bindings(tenant)) {
		if b.Contract != contract || b.Location == nil {
			continue
		}
		start, end := monthBounds(month, b.Location)
		switch {
		case b.From >= end:
		case b.Until <= start:
			if !ok { // if nothing touches the period, the zone of the last one before it goes on
				from, until, ok = start, end, true
			}
		case !touched: // by an earlier one in a zone that is ahead, perhaps
			from, until, ok, touched = start, end, true, true
		default:
			from, until = min(from, start), max(until, end)
		}
	}
	return from, until, ok
}

// monthBounds returns the first second of a local month and that of the next one.
func monthBounds(month time.Time, location *time.Location) (from, until int64) {
	const noon = 12
	middle := func(m time.Month) int64 {
		return periodStart(time.Date(month.Year(), m, 15, noon, 0, 0, 0, location).Unix(), location)
	}
	return middle(month.Month()), middle(month.Month() + 1)
}

// PeriodAt returns the billing period that a second of a tenant's contract lies in, "" where the
// contract has no price book then. Months go on after the last binding, in its zone.
func (c *Catalog) PeriodAt(tenant, contract string, second int64) string {
	for _, b := range slices.Backward(c.Bindings(tenant)) {
		if b.Contract == contract && b.Location != nil && b.From <= second {
			return time.Unix(second, 0).In(b.Location).Format("2006-01")
		}
	}
	return ""
}

// PeriodOf returns the local day or month of a budget that a second lies in, YYYY-MM-DD or YYYY-MM,
// by the zone of the tenant's contract; "" where the tenant has no price book then.
func (c *Catalog) PeriodOf(b *Budget, second int64) string {
	for _, binding := range slices.Backward(c.Bindings(b.Tenant)) {
		if binding.From > second || binding.Location == nil {
			continue
		}
		local := time.Unix(second, 0).In(binding.Location)
		if b.Daily {
			return local.Format(time.DateOnly)
		}
		return local.Format("2006-01")
	}
	return ""
}
