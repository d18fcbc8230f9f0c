package audit

import (
	"math/big"
	"slices"
	"time"
)

// The dimensions of a breakdown: the project, and the labels that are known.
const dimensions = 5

var dimensionNames = [dimensions]string{"project", "team", "model", "model_version", "stage"}

// names are what the event says of each dimension.
func (e *event) names() [dimensions]string {
	names := [dimensions]string{e.project}
	for i := 1; i < dimensions; i++ {
		names[i], _ = e.labels[dimensionNames[i]].(string)
	}
	return names
}

type closeKey struct {
	tenant, contract string
	period           period
}

type accountKey struct{ tenant, contract string }

// account is what a tenant used under a contract: by charge and billing period.
type account map[charge]map[string]*posted

// posted is a quantity, whole and by the names of each dimension.
type posted struct {
	quantity *big.Rat
	parts    [dimensions]map[string]*big.Rat
}

func (k *contract) named() string {
	if k == nil {
		return ""
	}
	return k.name
}

// takeClose closes the period that ends where the event says.
func (a *auditor) takeClose(e *event) string {
	last := e.end.Add(-time.Second).UTC()
	for shift := -1; shift <= 1; shift++ {
		month := period{last.Year(), last.Month()}.plus(shift)
		_, until, ok := a.cat.bounds(e.tenant, e.contract, month)
		if ok && e.end.Equal(time.Unix(until, 0)) {
			key := closeKey{e.tenant, e.contract, month}
			if _, known := a.closes[key]; !known {
				a.closes[key] = a.place
			}
			return ""
		}
	}
	return "invalid_window"
}

// plus is the month some months later.
func (p period) plus(months int) period {
	t := time.Date(p.year, p.month, 1, 0, 0, 0, 0, time.UTC).AddDate(0, months, 0)
	return period{t.Year(), t.Month()}
}

// billing is the period in which usage of a charge counts that an event at a place told of: its
// own, or the next one that was not closed before.
func (a *auditor) billing(c charge, place int) string {
	key := closeKey{c.tenant, c.contract.named(), c.period}
	for {
		closed, ok := a.closes[key]
		if !ok || closed > place {
			return key.period.String()
		}
		key.period = key.period.plus(1)
	}
}

func (a *auditor) post(c charge, billing string, quantity *big.Rat, names [dimensions]string) {
	key := accountKey{c.tenant, c.contract.named()}
	if a.accounts[key] == nil {
		a.accounts[key] = account{}
	}
	if a.accounts[key][c] == nil {
		a.accounts[key][c] = map[string]*posted{}
	}
	p := a.accounts[key][c][billing]
	if p == nil {
		p = &posted{quantity: new(big.Rat)}
		for d := range p.parts {
			p.parts[d] = map[string]*big.Rat{}
		}
		a.accounts[key][c][billing] = p
	}
	p.quantity.Add(p.quantity, quantity)
	for d, name := range names {
		if p.parts[d][name] == nil {
			p.parts[d][name] = new(big.Rat)
		}
		p.parts[d][name].Add(p.parts[d][name], quantity)
	}
}

// stretch is a time in which a tenant's terms do not change.
type stretch struct {
	from, until int64
	terms       terms
	zone        string
}

// stretches are the times that a tenant is under a contract, "" for none.
func (c *catalog) stretches(tenant, contract string) []stretch {
	var edges []int64
	for _, t := range c.tenants[tenant] {
		edges = append(edges, t.from)
	}
	for _, k := range c.contracts[tenant] {
		edges = append(edges, k.from, k.end)
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	const end = 4_102_444_800 // 2100
	var out []stretch
	for i, from := range edges {
		until := int64(end)
		if i+1 < len(edges) {
			until = edges[i+1]
		}
		now, ok := c.terms(tenant, from)
		if !ok || now.contract.named() != contract || len(c.books[now.book]) == 0 {
			continue
		}
		zone := c.books[now.book][0].zone
		if now.contract != nil && now.contract.zone != "" {
			zone = now.contract.zone
		}
		out = append(out, stretch{from, until, now, zone})
	}
	return out
}

// bounds is when a contract's usage of a month may be: the month, by the zones of all stretches in
// it, or by that of the last one before it.
func (c *catalog) bounds(tenant, contract string, month period) (from, until int64, ok bool) {
	var before *stretch
	all := c.stretches(tenant, contract)
	for i := range all {
		s := &all[i]
		start, end := monthOf(s.zone, month)
		switch {
		case s.from >= end:
		case s.until <= start:
			before = s
		case !ok:
			from, until, ok = start, end, true
		default:
			from, until = min(from, start), max(until, end)
		}
	}
	if !ok && before != nil {
		from, until = monthOf(before.zone, month)
		ok = true
	}
	return from, until, ok
}

// monthOf is a month in a zone.
func monthOf(zone string, month period) (from, until int64) {
	middle := func(p period) int64 {
		return time.Date(p.year, p.month, 15, 12, 0, 0, 0, location(zone)).Unix()
	}
	return periodStart(zone, middle(month)), periodStart(zone, middle(month.plus(1)))
}

// books are the currency and the rounding of a contract's books, the last one before a second
// first.
func (c *catalog) booksBefore(tenant, contract string, until int64) []*book {
	var out []*book
	for _, s := range slices.Backward(c.stretches(tenant, contract)) {
		if s.from >= until {
			continue
		}
		found := c.version(s.terms.book, min(s.until, until)-1)
		if found == nil {
			found = c.books[s.terms.book][0]
		}
		out = append(out, found)
	}
	return out
}
