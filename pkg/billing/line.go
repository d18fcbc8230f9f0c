package billing

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/rating"
)

// maxShares bounds each list of a breakdown; further names, those of the smallest amounts, are put
// together.
const maxShares = 500

// draftLine is a line whose amounts are not rounded yet.
type draftLine struct {
	Line
	treatment treatment
	exact     money.Amount
	quantity  metering.Quantity
	shares    [rating.Dimensions][]draftShare
	details   []draftLine
}

type draftShare struct {
	name     string
	quantity metering.Quantity
	exact    money.Amount
}

// usageLines makes the lines of uses of one usage period: one for each SKU, purchase and band.
func (d *drafting) usageLines(uses []priced) []draftLine {
	type key struct{ sku, purchase, band string }
	groups := make(map[key][]priced)
	for _, u := range uses {
		k := key{u.Charge.SKU, u.Charge.Purchase, u.Charge.Band}
		groups[k] = append(groups[k], u)
	}
	keys := slices.SortedFunc(maps.Keys(groups), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.sku, b.sku), cmp.Compare(a.purchase, b.purchase),
			cmp.Compare(a.band, b.band))
	})
	var lines []draftLine
	for _, k := range keys {
		line := d.usageLine(groups[k])
		if line.quantity.Sign() != 0 || line.exact.Sign() != 0 {
			lines = append(lines, line)
		}
	}
	return lines
}

func (d *drafting) usageLine(uses []priced) draftLine {
	first := &uses[0]
	l := draftLine{Line: Line{
		Kind: UsageLine, SKU: first.Charge.SKU, Purchase: first.Charge.Purchase,
		Band: first.Charge.Band, UsagePeriod: first.Charge.Period,
		Unit: first.curve.Per().Base(), Per: first.curve.Per().Name,
	}}
	firstDay, lastDay := first.FirstDay, first.LastDay
	for i := range uses {
		u := &uses[i]
		l.exact = l.exact.Add(u.amount)
		l.quantity = l.quantity.Add(u.quantity())
		firstDay, lastDay = min(firstDay, u.FirstDay), max(lastDay, u.LastDay)
	}
	l.Start, l.End = localDate(firstDay), localDate(lastDay)
	l.treatment = d.treatment(l.SKU, l.UsagePeriod)
	setPrice(&l, uses)
	l.Tiers = tiers(uses)
	l.shares = shares(uses)
	return l
}

func localDate(day int64) string {
	return time.Unix(day*daySeconds, 0).UTC().Format(time.DateOnly)
}

// setPrice gives the line its unit price: that of the book, where all its usage has the same one
// and every unit costs it, else the average.
func setPrice(l *draftLine, uses []priced) {
	first := &uses[0].curve
	same := first.Flat()
	for i := range uses {
		c := &uses[i].curve
		same = same && c.Flat() && c.Per() == first.Per() && c.UnitPrice().Cmp(first.UnitPrice()) == 0
		if c.Per() != first.Per() {
			l.Per = "second" // of what is held: all else is per unit
		}
	}
	l.Package = first.Package()
	if same || l.quantity.Sign() == 0 {
		l.UnitPrice = first.UnitPrice().String()
		return
	}
	per := first.Per().Nano()
	if l.Per != first.Per().Name {
		per = big.NewInt(1_000_000_000)
	}
	l.Average = true
	l.UnitPrice = l.exact.MulRatio(per, l.quantity.Big(), money.Scale, money.HalfUp).String()
}

// tiers adds up the tiers of the line's ladders, if they are alike.
func tiers(uses []priced) []Tier {
	var sum []rating.TierPart
	for i := range uses {
		u := &uses[i]
		parts := u.curve.Tiers(u.Now)
		for j, b := range u.curve.Tiers(u.Before) {
			parts[j].Quantity = parts[j].Quantity.Add(b.Quantity.Neg())
			parts[j].Amount = parts[j].Amount.Sub(b.Amount)
		}
		if i == 0 {
			sum = parts
			continue
		}
		if !sameTiers(sum, parts) {
			return nil
		}
		for j := range parts {
			sum[j].Quantity = sum[j].Quantity.Add(parts[j].Quantity)
			sum[j].Amount = sum[j].Amount.Add(parts[j].Amount)
		}
	}
	out := make([]Tier, 0, len(sum))
	for _, t := range sum {
		out = append(out, Tier{
			UpTo: t.UpTo, Quantity: t.Quantity.String(), UnitPrice: t.UnitPrice.String(),
			Exact: t.Amount.Fixed(money.Scale),
		})
	}
	return out
}

func sameTiers(a, b []rating.TierPart) bool {
	return slices.EqualFunc(a, b, func(x, y rating.TierPart) bool {
		return x.UpTo == y.UpTo && x.UnitPrice.Cmp(y.UnitPrice) == 0
	})
}

// shares splits a line by each dimension. Within a charge all share its curve by quantity.
func shares(uses []priced) (out [rating.Dimensions][]draftShare) {
	for dim := range rating.Dimensions {
		byName := make(map[string]draftShare)
		for i := range uses {
			u := &uses[i]
			for _, p := range u.Parts[dim] {
				s := byName[p.Name]
				s.name = p.Name
				s.quantity = s.quantity.Add(p.Now.Add(p.Before.Neg()))
				s.exact = s.exact.Add(part(u.now, p.Now, u.Now).Sub(part(u.before, p.Before, u.Before)))
				byName[p.Name] = s
			}
		}
		for _, name := range sortedKeys(byName) {
			if s := byName[name]; s.quantity.Sign() != 0 || s.exact.Sign() != 0 {
				out[dim] = append(out[dim], s)
			}
		}
		// What nobody labelled need not be said, but whose project it is always.
		if dim != rating.ByProject && len(out[dim]) == 1 && out[dim][0].name == "" {
			out[dim] = nil
		}
	}
	return out
}

// part is amount x q / of. Its rounding is far below that of the line, which corrects it.
func part(amount money.Amount, q, of metering.Quantity) money.Amount {
	if of.Sign() == 0 {
		return money.Amount{}
	}
	return amount.MulRatio(q.Big(), of.Big(), 2*money.Scale, money.HalfUp)
}

// lateSum is what late events made of an earlier period.
type lateSum struct {
	period string
	amount money.Amount // exact, negative where the period became cheaper
	lines  []draftLine  // one for each tax treatment
	// uncharged is what of a period that became cheaper was never charged; see there.
	uncharged money.Amount
}

// late adds the uses of an earlier period up.
func (d *drafting) late(of *ofPeriod) lateSum {
	sum := lateSum{period: of.period}
	for _, detail := range d.usageLines(of.uses) {
		sum.amount = sum.amount.Add(detail.exact)
		i := slices.IndexFunc(sum.lines, func(l draftLine) bool {
			return l.treatment == detail.treatment
		})
		if i < 0 {
			i = len(sum.lines)
			sum.lines = append(sum.lines, draftLine{
				Line: Line{
					Kind: LateLine, UsagePeriod: of.period, Unit: "unit", Per: "unit",
					Start: detail.Start, End: detail.End,
				},
				treatment: detail.treatment, quantity: oneUnit,
			})
		}
		l := &sum.lines[i]
		l.Start, l.End = min(l.Start, detail.Start), max(l.End, detail.End)
		l.exact = l.exact.Add(detail.exact)
		l.details = append(l.details, detail)
	}
	for i := range sum.lines {
		sum.lines[i].UnitPrice = sum.lines[i].exact.String()
	}
	return sum
}

var oneUnit = func() metering.Quantity {
	q, err := metering.QuantityOf(big.NewInt(1_000_000_000))
	if err != nil {
		panic("BUG: one unit is too much: " + err.Error())
	}
	return q
}()

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// bound puts the smallest shares of a long list together, at its end under the name "".
func bound(shares []draftShare) (bounded []draftShare, others int) {
	if len(shares) <= maxShares {
		return shares, 0
	}
	bySize := slices.Clone(shares)
	slices.SortStableFunc(bySize, func(a, b draftShare) int { return b.exact.Cmp(a.exact) })
	rest := draftShare{}
	for _, s := range bySize[maxShares-1:] {
		rest.quantity, rest.exact = rest.quantity.Add(s.quantity), rest.exact.Add(s.exact)
	}
	kept := bySize[:maxShares-1]
	slices.SortFunc(kept, func(a, b draftShare) int { return cmp.Compare(a.name, b.name) })
	return append(kept, rest), len(shares) - len(kept)
}
