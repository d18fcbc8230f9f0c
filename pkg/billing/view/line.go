package view

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/money"
)

// Lists are cut where they get too long to read. What is left out is one entry of its sum; CSV has
// all names.
const (
	maxShares = 8
	maxBars   = 6
)

// line puts a line into words.
func (v *viewer) line(number int, l *billing.Line) (Line, error) {
	price, err := v.price(l)
	if err != nil {
		return Line{}, err
	}
	out := Line{Number: number, Title: v.lineTitle(l), Price: price, Tax: v.rate(l.Tax)}
	out.Subtitle = filled([]string{v.origin(l), l.Description, v.days(l)})
	if l.Package != "" {
		out.Subtitle = append(out.Subtitle, v.Packages+" "+Group(l.Package))
	}
	if out.Parts, err = v.parts(l); err != nil {
		return Line{}, err
	}
	out.Shares, err = v.shares(l)
	return out, err
}

// lineTitle says in few words what a line is about.
func (v *viewer) lineTitle(l *billing.Line) string {
	kind := v.kinds[l.Kind]
	switch l.Kind {
	case billing.UsageLine:
		return cmp.Or(l.SKU, kind)
	case billing.LateLine:
		return v.Late + " " + l.UsagePeriod
	case billing.CreditLine:
		return join(" · ", kind, l.Grant, l.SKU)
	case billing.CommitmentLine, billing.AllowanceLine, billing.MinimumLine:
	}
	return join(" · ", kind, l.SKU)
}

// origin says how usage was bought.
func (v *viewer) origin(l *billing.Line) string {
	band := ""
	if l.Band != "" {
		band = word(v.bands, l.Band)
	}
	return join(" · ", word(v.purchases, l.Purchase), band)
}

// days says when the usage was, where that is not simply in the document's period.
func (v *viewer) days(l *billing.Line) string {
	if l.Start == "" || l.Start == v.d.PeriodStart && l.End == v.d.PeriodEnd {
		return ""
	}
	if l.Start == l.End {
		return l.Start
	}
	return fmt.Sprintf("%s %s %s", l.Start, v.Until, l.End)
}

// exactly gives the quantity as it was measured, where it is shown in another unit.
func (v *viewer) exactly(l *billing.Line) (string, error) {
	if l.Unit != "unit-second" || seconds[l.Per] <= 1 {
		return "", nil
	}
	q, err := Amount(l.Quantity)
	if err != nil {
		return "", fmt.Errorf("read quantity: %w", err)
	}
	return Group(q.String()) + " " + v.unitSecond, nil
}

// price puts quantity, unit price and amount of a line into words.
func (v *viewer) price(l *billing.Line) (Price, error) {
	q, err := quantity(l.Quantity, l.Unit, l.Per)
	if err != nil {
		return Price{}, err
	}
	unit, err := Amount(l.UnitPrice)
	if err != nil {
		return Price{}, fmt.Errorf("read unit price: %w", err)
	}
	exact, err := v.exactly(l)
	if err != nil {
		return Price{}, err
	}
	p := Price{Group(q), exact, Group(atLeast(unit, l.Amount)), Group(l.Amount)}
	switch {
	case l.Kind != billing.UsageLine && q == "1":
		p.UnitPrice = "" // a fee, or a sum: the amount says it all
	case l.Average:
		p.UnitPrice = v.Average + " " + Group(atLeast(average(unit), l.Amount))
	}
	if l.Kind == billing.UsageLine {
		if l.Per != "unit" {
			p.Quantity += " " + word(v.per, l.Per)
		}
		p.UnitPrice += " / " + word(v.per, l.Per)
	}
	return p, nil
}

// rate prints the rate of a tax.
func (v *viewer) rate(tax *billing.LineTax) string {
	switch {
	case tax == nil:
		return ""
	case tax.Category == "S" || tax.Category == "L" || tax.Category == "M":
		return tax.Rate + " %"
	default:
		return tax.Category
	}
}

// parts lists the tiers of a ladder, or what a late line is the sum of.
func (v *viewer) parts(l *billing.Line) ([]Part, error) {
	parts, err := v.tiers(l)
	if err != nil {
		return nil, err
	}
	for i := range l.Details {
		detail := &l.Details[i]
		price, err := v.price(detail)
		if err != nil {
			return nil, fmt.Errorf("read detail %d: %w", i+1, err)
		}
		title := join(" · ", v.lineTitle(detail), v.origin(detail), detail.Description)
		parts = append(parts, Part{title, price})
	}
	return parts, nil
}

// tiers lists the tiers that were reached. A single one says no more than its line.
func (v *viewer) tiers(l *billing.Line) ([]Part, error) {
	if len(l.Tiers) == 1 {
		return nil, nil
	}
	var parts []Part
	below := ""
	for _, t := range l.Tiers {
		q, err := quantity(t.Quantity, l.Unit, l.Per)
		if err != nil {
			return nil, fmt.Errorf("read tier: %w", err)
		}
		amount, err := Amount(t.Exact)
		if err != nil {
			return nil, fmt.Errorf("read tier: %w", err)
		}
		title := fmt.Sprintf("%s %s %s", v.UpTo, Group(t.UpTo), word(v.per, l.Per))
		if t.UpTo == "" {
			title = fmt.Sprintf("%s %s %s", v.Beyond, Group(below), word(v.per, l.Per))
		}
		below = t.UpTo
		if q == "0" && amount.Sign() == 0 {
			continue
		}
		parts = append(parts, Part{title, Price{
			Quantity: Group(q), UnitPrice: Group(t.UnitPrice),
			Amount: Group(atLeast(amount, l.Amount)),
		}})
	}
	return parts, nil
}

// dimension is a way to divide a line.
type dimension struct {
	heading string
	of      func(*billing.Breakdown) []billing.Share
	words   map[string]string // of known names
}

// dimensions lists the ways to divide a line, stages last because they are few.
func (v *viewer) dimensions() []dimension {
	return []dimension{
		{v.Projects, func(b *billing.Breakdown) []billing.Share { return b.Projects }, nil},
		{v.Teams, func(b *billing.Breakdown) []billing.Share { return b.Teams }, nil},
		{v.Models, func(b *billing.Breakdown) []billing.Share { return b.Models }, nil},
		{v.ModelVersions, func(b *billing.Breakdown) []billing.Share { return b.ModelVersions }, nil},
		{v.Stages, func(b *billing.Breakdown) []billing.Share { return b.Stages }, v.stages},
	}
}

// shares lists a line's breakdowns, each cut at maxShares names.
func (v *viewer) shares(l *billing.Line) ([]Shares, error) {
	var out []Shares
	for _, dim := range v.dimensions() {
		list := dim.of(&l.Breakdown)
		if len(list) == 0 {
			continue
		}
		s := Shares{Heading: dim.heading}
		list, err := shorten(list, maxShares)
		if err != nil {
			return nil, fmt.Errorf("read breakdown: %w", err)
		}
		for _, share := range list {
			q, err := quantity(share.Quantity, l.Unit, l.Per)
			if err != nil {
				return nil, fmt.Errorf("read breakdown: %w", err)
			}
			s.Names = append(s.Names, Share{v.name(dim, share), Group(q), Group(share.Amount)})
		}
		out = append(out, s)
	}
	return out, nil
}

// name says whose a share is.
func (v *viewer) name(dim dimension, s billing.Share) string {
	switch {
	case s.Others > 0:
		return strconv.Itoa(s.Others) + " " + v.OtherNames
	case s.Name == "":
		return v.None
	}
	return word(dim.words, s.Name)
}

// shorten puts all shares after the most that may be shown together. The largest come first, equals
// by their names, what is already together last.
func shorten(list []billing.Share, most int) ([]billing.Share, error) {
	list = slices.Clone(list)
	amounts := make(map[billing.Share]money.Amount, len(list))
	quantities := make(map[billing.Share]money.Amount, len(list))
	for _, s := range list {
		var err error
		if amounts[s], err = Amount(s.Amount); err != nil {
			return nil, err
		}
		if quantities[s], err = Amount(s.Quantity); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(list, func(a, b billing.Share) int {
		return cmp.Or(cmp.Compare(min(a.Others, 1), min(b.Others, 1)),
			amounts[b].Cmp(amounts[a]), strings.Compare(a.Name, b.Name))
	})
	if len(list) <= most {
		return list, nil
	}
	rest := billing.Share{}
	var amount, quantity money.Amount
	for _, s := range list[most-1:] {
		amount, quantity = amount.Add(amounts[s]), quantity.Add(quantities[s])
		rest.Others += max(s.Others, 1)
	}
	rest.Amount, rest.Quantity = fixed(amount, list[0].Amount), quantity.String()
	return append(list[:most-1], rest), nil
}

// charts sums up the lines by stage and by project.
func (v *viewer) charts() ([]Chart, error) {
	dims := v.dimensions()
	var charts []Chart
	for _, c := range []struct {
		heading string
		dim     dimension
	}{{v.ByStage, dims[4]}, {v.ByProject, dims[0]}} {
		bars, err := v.bars(c.dim)
		if err != nil {
			return nil, err
		}
		if len(bars) > 0 {
			charts = append(charts, Chart{c.heading, bars})
		}
	}
	return charts, nil
}

// bars sums up the lines by the names of one dimension. What no name has is the last bar, so that
// all of them add up to the subtotal.
func (v *viewer) bars(dim dimension) ([]Bar, error) {
	sums, others, err := v.sums(dim)
	if err != nil || len(sums) == 0 {
		return nil, err
	}
	list := make([]billing.Share, 0, len(sums)+1)
	rest, err := Amount(v.d.Subtotal)
	if err != nil {
		return nil, err
	}
	for name, amount := range sums {
		rest = rest.Sub(amount)
		share := billing.Share{Name: name, Amount: fixed(amount, v.d.Subtotal), Quantity: "0"}
		list = append(list, share)
	}
	slices.SortFunc(list, func(a, b billing.Share) int { return strings.Compare(a.Name, b.Name) })
	if others.amount.Sign() != 0 {
		rest = rest.Sub(others.amount)
		amount := fixed(others.amount, v.d.Subtotal)
		list = append(list, billing.Share{Amount: amount, Quantity: "0", Others: others.names})
	}
	if list, err = shorten(list, maxBars); err != nil {
		return nil, err
	}
	bars := make([]Bar, 0, len(list)+1)
	for _, s := range list {
		bars = append(bars, Bar{Name: v.name(dim, s), Amount: s.Amount})
	}
	if rest.Sign() != 0 {
		bars = append(bars, Bar{Name: v.OtherLines, Amount: fixed(rest, v.d.Subtotal)})
	}
	return measure(bars)
}

// together is what names that a document does not tell apart have.
type together struct {
	amount money.Amount
	names  int
}

// sums adds up the shares of one dimension. A line without a breakdown may have details with one.
func (v *viewer) sums(dim dimension) (map[string]money.Amount, together, error) {
	sums, others := map[string]money.Amount{}, together{}
	add := func(shares []billing.Share) error {
		for _, s := range shares {
			a, err := Amount(s.Amount)
			if err != nil {
				return err
			}
			if s.Others > 0 {
				others.amount = others.amount.Add(a)
				others.names = max(others.names, s.Others)
			} else {
				sums[s.Name] = sums[s.Name].Add(a)
			}
		}
		return nil
	}
	for i := range v.d.Lines {
		l := &v.d.Lines[i]
		shares := slices.Clone(dim.of(&l.Breakdown))
		for j := range l.Details {
			if len(dim.of(&l.Breakdown)) == 0 {
				shares = append(shares, dim.of(&l.Details[j].Breakdown)...)
			}
		}
		if err := add(shares); err != nil {
			return nil, together{}, err
		}
	}
	return sums, others, nil
}

// measure gives each bar its length, none to amounts below zero, and groups the digits.
func measure(bars []Bar) ([]Bar, error) {
	longest := big.NewInt(0)
	lengths := make([]*big.Int, len(bars))
	for i, b := range bars {
		a, err := Amount(b.Amount)
		if err != nil {
			return nil, err
		}
		if lengths[i], err = a.Scaled(money.Scale); err != nil {
			return nil, fmt.Errorf("measure bar: %w", err)
		}
		if lengths[i].Cmp(longest) > 0 {
			longest = lengths[i]
		}
	}
	for i := range bars {
		if lengths[i].Sign() > 0 {
			permille := new(big.Int).Mul(lengths[i], big.NewInt(1000))
			bars[i].Permille = int(permille.Quo(permille, longest).Int64())
		}
		bars[i].Amount = Group(bars[i].Amount)
	}
	return bars, nil
}
