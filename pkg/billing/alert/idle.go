package alert

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
)

// stillness says how little a session did over the minutes of a policy.
type stillness int

const (
	busy    stillness = iota // at least one window was at the threshold or above
	unknown                  // no window was, but some have no reading, or it is too young
	still                    // all windows were below it
)

// judge says how little a session did. Its windows have to follow one another without a gap, all
// with a reading.
func judge(p *catalog.Policy, l *Load) stillness {
	switch span := l.Until - l.From; {
	case !below(p, l.Peak):
		return busy
	case span < p.Whole("minutes")*60 || l.Covered < span:
		return unknown
	}
	return still
}

// IdleGPU finds the running sessions whose GPUs were below the policy's utilisation in every window
// of so many minutes. Loads are over at least so many minutes.
func IdleGPU(p *catalog.Policy, loads []Load, c *catalog.Catalog, now int64) Look {
	var look Look
	unsure := make(map[party]bool)
	for i := range loads {
		l := &loads[i]
		sku, ok := gpuOf(p, l)
		if !ok || l.Final {
			continue
		}
		switch judge(p, l) {
		case busy:
		case unknown:
			unsure[party{l.Tenant, l.Session}] = true
		case still:
			f := Finding{
				Tenant: l.Tenant, Subject: l.Session, Labels: labelsOf(l), Figures: loadFigures(p, l),
				Query: QueryLoad(l),
			}
			if sku != "" {
				f.Labels["sku"] = sku
				f.Figures = append(f.Figures, Figure{"held", units(l.Held[sku]), sku})
				if options := suffices(l, sku, c, now); len(options) > 0 {
					f.Hint = &Hint{Options: options}
				}
			}
			look.Findings = append(look.Findings, f)
		}
	}
	look.Findings = sortFindings(look.Findings)
	look.Unsure = func(a *Alert) bool { return unsure[party{a.Tenant, a.Subject}] }
	return look
}

// party is a tenant and something of it, such as a session.
type party struct{ tenant, name string }

// Unreleased finds the leases of which every running session stayed below the policy's utilisation
// for so many minutes. It suggests to stop them.
func Unreleased(p *catalog.Policy, loads []Load, _ int64) Look {
	type lease struct {
		least    stillness
		sessions []*Load
		covered  bool
	}
	leases := make(map[party]*lease)
	for i := range loads {
		l := &loads[i]
		if l.Final {
			continue
		}
		key := party{l.Tenant, l.Lease}
		if leases[key] == nil {
			leases[key] = &lease{least: still}
		}
		one := leases[key]
		_, covered := gpuOf(p, l)
		one.covered = one.covered || covered
		one.least = min(one.least, judge(p, l))
		one.sessions = append(one.sessions, l)
	}
	var look Look
	for key, one := range leases {
		if one.covered && one.least == still {
			look.Findings = append(look.Findings, unreleased(p, key, one.sessions))
		}
	}
	look.Findings = sortFindings(look.Findings)
	look.Unsure = func(a *Alert) bool {
		one := leases[party{a.Tenant, a.Subject}]
		return one != nil && one.least == unknown
	}
	return look
}

func unreleased(p *catalog.Policy, key party, sessions []*Load) Finding {
	slices.SortFunc(sessions, func(a, b *Load) int { return cmp.Compare(a.Session, b.Session) })
	busiest := sessions[0]
	stop := &Stop{Tenant: key.tenant, Lease: key.name}
	for _, l := range sessions {
		if l.Peak > busiest.Peak {
			busiest = l
		}
		stop.Sessions = append(stop.Sessions, l.Session)
		if l.Node != "" && !slices.Contains(stop.Nodes, l.Node) {
			stop.Nodes = append(stop.Nodes, l.Node)
		}
	}
	labels := labelsOf(busiest)
	delete(labels, "session")
	delete(labels, "node")
	return Finding{
		Tenant: key.tenant, Subject: key.name, Labels: labels, Hint: &Hint{Stop: stop},
		Query: QueryLoad(busiest),
		Figures: append(loadFigures(p, busiest),
			Figure{Name: "sessions", Value: number(int64(len(sessions)))}),
	}
}

func labelsOf(l *Load) map[string]string {
	labels := map[string]string{"project": l.Project, "lease": l.Lease, "session": l.Session}
	if l.Node != "" {
		labels["node"] = l.Node
	}
	return labels
}

func loadFigures(p *catalog.Policy, l *Load) []Figure {
	figures := []Figure{
		utilisation("utilisation", l.Mean), utilisation("peak", l.Peak), threshold(p),
		{"minutes", number((l.Until - l.From) / 60), "min"},
		{Name: "until", Value: metering.InstantOf(l.Until).String()},
	}
	if l.MemoryUsed > 0 {
		figures = append(figures, Figure{"memory_used", number(l.MemoryUsed), "MiB"})
	}
	if l.MemoryTotal > 0 {
		figures = append(figures, Figure{"memory_total", number(l.MemoryTotal), "MiB"})
	}
	return figures
}

// gpuOf returns the GPU that a session holds most of, "" where no SKU looks like one, and whether
// the policy is for the session.
func gpuOf(p *catalog.Policy, l *Load) (string, bool) {
	best, covered := "", false
	for _, sku := range slices.Sorted(maps.Keys(l.Held)) {
		if !p.Covers(l.Tenant, l.Project, sku) {
			continue
		}
		covered = true
		if isGPU(sku) && (best == "" || l.Held[sku] > l.Held[best]) {
			best = sku
		}
	}
	return best, covered
}

// isGPU reports whether a SKU is of cards, by its name.
func isGPU(sku string) bool {
	return (strings.HasPrefix(sku, "gpu.") || strings.HasPrefix(sku, "npu.")) &&
		!strings.HasPrefix(sku, "gpu.memory.")
}

// suffices returns what would do instead of the SKU that a session holds, the cheapest first: less
// of the same, and the cheapest other SKU. Both have the memory in use and a tenth more; that much
// must be known.
func suffices(l *Load, sku string, c *catalog.Catalog, now int64) []Option {
	book, ok := c.BookOf(l.Tenant, now)
	held := l.Held[sku]
	if !ok || l.MemoryUsed <= 0 || max(l.MemoryUsed, l.MemoryTotal, held) > maxSane {
		return nil
	}
	need, cards := ceil(l.MemoryUsed*11, 10), ceil(held, 1000)
	var options []Option
	unit := book.MemoryMiB(sku)
	if unit == 0 {
		unit = l.MemoryTotal / cards // of one card, whatever part of it is held: never too much
	}
	less := fraction(need, unit, l.Peak*cards)
	if unit > 0 && less < held {
		options = append(options, option(book, sku, l.Region, less, unit*less/1000))
	}
	other, price, ok := cheapest(book, sku, l.Region, held, need)
	if !ok {
		return options
	}
	if own, _ := hourly(book, sku, l.Region, less); len(options) > 0 && own.Cmp(price) <= 0 {
		return append(options, other)
	}
	return append([]Option{other}, options...)
}

// maxSane bounds what counts as an amount of memory or of cards: telemetry is anybody's.
const maxSane = 1 << 30

// fraction returns how many thousandths of a unit have so much memory and can do so much, in
// millionths of a unit: in tenths up to one unit, and in whole ones beyond.
func fraction(need, unit, work int64) int64 {
	if unit <= 0 {
		return 0
	}
	least := max(ceil(need*1000, unit), ceil(work, 1000), 1)
	if least <= 1000 {
		return ceil(least, 100) * 100
	}
	return ceil(least, 1000) * 1000
}

// cheapest returns the cheapest other SKU of a book with as many cards as are held and enough
// memory. It must cost less than what is held.
func cheapest(book *catalog.Version, sku, region string, held, need int64) (Option, money.Amount,
	bool,
) {
	now, ok := hourly(book, sku, region, held)
	if !ok {
		return Option{}, now, false
	}
	cards := ceil(held, 1000)
	best, found := "", false
	for _, p := range book.Prices() {
		if p.SKU == sku || p.SKU == best || book.MemoryMiB(p.SKU)*cards < need {
			continue
		}
		if price, ok := hourly(book, p.SKU, region, cards*1000); ok && price.Cmp(now) < 0 {
			best, now, found = p.SKU, price, true
		}
	}
	if !found {
		return Option{}, now, false
	}
	return option(book, best, region, cards*1000, book.MemoryMiB(best)*cards), now, true
}

// hourly is the list price of thousandths of a SKU for an hour, on demand.
func hourly(book *catalog.Version, sku, region string, thousandths int64) (money.Amount, bool) {
	p := book.Price(sku, string(metering.OnDemand), region)
	if p == nil || p.Per.Consumed() || p.Market != nil {
		return money.Amount{}, false
	}
	return p.Amount.MulRatio(big.NewInt(metering.Hour*thousandths), big.NewInt(p.Per.Seconds*1000),
		money.Scale, money.HalfUp), true
}

func option(book *catalog.Version, sku, region string, thousandths, memory int64) Option {
	o := Option{SKU: sku, Amount: units(thousandths), MemoryMiB: memory}
	if price, ok := hourly(book, sku, region, thousandths); ok {
		o.Price, o.Per, o.Currency = price.String(), "hour", book.Currency
	}
	return o
}

// units prints thousandths of a unit.
func units(thousandths int64) string { return money.New(big.NewInt(thousandths), 3).String() }

// ceil is a / b rounded up, for numbers that are not negative.
func ceil(a, b int64) int64 { return (a + b - 1) / b }
