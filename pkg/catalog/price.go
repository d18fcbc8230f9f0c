package catalog

import (
	"math/big"

	"go.yaml.in/yaml/v3"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
)

// MaxIncrement is the longest increment or minimum, in seconds.
const MaxIncrement int64 = 31 * 86_400

const onDemand = string(metering.OnDemand)

// MaxFractionDigits is the number of decimals of floors and caps, and of multipliers beside them: a
// spot price is a product of three numbers, and stays within 36 decimals.
const MaxFractionDigits = 9

// Standard is the band of every second that no rule of a price is for.
const Standard = "standard"

// Per is the unit that a price, its tiers and its packages count in.
type Per struct {
	Name    string // second, hour, day, month or unit
	Seconds int64  // that one unit is held for; 0 for what is consumed
}

var pers = map[string]Per{
	"second": {"second", 1},
	"hour":   {"hour", 3600},
	"day":    {"day", 86_400},
	"month":  {"month", 730 * 3600},
	"unit":   {"unit", 0},
}

// Consumed reports whether the price is for amounts that are consumed, not held.
func (p Per) Consumed() bool { return p.Seconds == 0 }

// Base is the unit of quantities: "unit-second", or "unit" for what is consumed.
func (p Per) Base() string {
	if p.Consumed() {
		return "unit"
	}
	return "unit-second"
}

// Nano is the number of billionths of the base unit in one unit of the price.
func (p Per) Nano() *big.Int {
	return new(big.Int).Mul(big.NewInt(max(p.Seconds, 1)), big.NewInt(1_000_000_000))
}

// Price is what a SKU costs for a purchase, in a region or everywhere.
type Price struct {
	SKU       string
	Purchase  string
	Region    string // "" is everywhere
	Per       Per
	Amount    money.Amount // price of one unit; with a ladder that of its first tier
	Increment int64        // seconds, at least 1
	Minimum   int64        // seconds
	Ladder    *Ladder      // optional
	Package   *big.Int     // optional: billionths of the base unit that are sold together
	Market    *Market      // optional: the price follows the market

	multipliers map[string]money.Amount // by band
}

// Ladder makes the price depend on the quantity.
type Ladder struct {
	Volume bool // all units at the tier reached, not each tier's part at its own price
	Hourly bool // counts anew each UTC hour, not each billing period
	Tiers  []Tier
}

// Tier is the price of the units up to a limit.
type Tier struct {
	UpTo  *big.Int // inclusive, in billionths of the base unit; nil in the last tier
	Price money.Amount
}

// Market bounds a spot price by fractions of the price on demand.
type Market struct{ Floor, Cap money.Amount }

// windowed reports whether the price counts quantities over a window of the given kind.
func (p *Price) windowed(hourly bool) bool {
	if p.Package != nil {
		return !hourly
	}
	return p.Ladder != nil && p.Ladder.Hourly == hourly
}

func (r *reader) price(n *yaml.Node, v *Version) *Price {
	p := &Price{Purchase: onDemand, Increment: 1, multipliers: make(map[string]money.Amount)}
	var amount *money.Amount
	var ladder, pack, timed, bands *yaml.Node
	r.mapping(n, "price",
		field{"sku", true, func(n *yaml.Node) { p.SKU = r.name(n, "sku") }},
		field{"purchase", false, func(n *yaml.Node) {
			p.Purchase = r.text(n, "purchase")
			if !metering.Purchase(p.Purchase).Valid() {
				r.fail(n, "purchase %q is none of on_demand, reserved, spot, per_task", p.Purchase)
			}
		}},
		field{"region", false, func(n *yaml.Node) { p.Region = r.name(n, "region") }},
		field{"per", true, func(n *yaml.Node) { p.Per = r.per(n) }},
		field{"price", false, func(n *yaml.Node) {
			a := r.amount(n, "price")
			amount = &a
		}},
		field{"increment", false, func(n *yaml.Node) {
			timed, p.Increment = n, r.duration(n, "increment")
			if p.Increment == 0 {
				r.fail(n, "increment is at least 1s")
			}
		}},
		field{"minimum", false, func(n *yaml.Node) { timed, p.Minimum = n, r.duration(n, "minimum") }},
		field{"ladder", false, func(n *yaml.Node) { ladder = n }},
		field{"package", false, func(n *yaml.Node) { pack = n }},
		field{"market", false, func(n *yaml.Node) { p.Market = r.market(n) }},
		field{"bands", false, func(n *yaml.Node) { bands = n }},
	)
	if p.Increment == 0 {
		p.Increment = 1
	}
	if ladder != nil {
		p.Ladder = r.ladder(ladder, p.Per)
	}
	if pack != nil {
		p.Package = r.nano(pack, "package", p.Per)
	}
	r.checkPrice(n, p, amount)
	if bands != nil {
		r.multipliers(bands, p, v)
	}
	if timed != nil && (p.Increment != 1 || p.Minimum != 0) && (p.Per.Consumed() || p.Market != nil) {
		r.fail(timed, "increment and minimum are for prices of what is held, and not for the market's")
	}
	return p
}

// checkPrice sets the price of the first unit and refuses rules that exclude one another.
func (r *reader) checkPrice(n *yaml.Node, p *Price, amount *money.Amount) {
	switch {
	case p.Market != nil && (amount != nil || p.Ladder != nil || p.Package != nil):
		r.fail(n, "a market price has neither price, ladder nor package")
	case p.Market != nil && (p.Purchase != string(metering.Spot) || p.Per.Consumed()):
		r.fail(n, "a market price is for purchase spot and per time")
	case p.Market != nil:
	case p.Ladder != nil && p.Package != nil:
		r.fail(n, "a price has a ladder or a package, not both")
	case p.Ladder != nil:
		if len(p.Ladder.Tiers) == 0 {
			return // reported already
		}
		p.Amount = p.Ladder.Tiers[0].Price
		if amount != nil && amount.Cmp(p.Amount) != 0 {
			r.fail(n, "price %s beside a ladder must equal its first tier, %s", amount, p.Amount)
		}
	case amount == nil:
		r.fail(n, "a price needs one of price, ladder, market")
	default:
		p.Amount = *amount
	}
}

func (r *reader) per(n *yaml.Node) Per {
	s := r.text(n, "per")
	per, ok := pers[s]
	if !ok {
		r.fail(n, "per %q is none of second, hour, day, month, unit", s)
		return pers["hour"]
	}
	return per
}

func (r *reader) amount(n *yaml.Node, what string) money.Amount {
	a, err := money.Parse(r.text(n, what))
	if err != nil {
		r.fail(n, "%s: %v", what, err)
	}
	return a
}

// nano reads an amount above 0 in the price's unit and returns it in billionths of the base unit.
func (r *reader) nano(n *yaml.Node, what string, per Per) *big.Int {
	scaled, err := r.amount(n, what).Scaled(metering.MaxPlaces)
	if err != nil {
		r.fail(n, "%s: %v", what, err)
		return big.NewInt(1)
	}
	if scaled.Sign() == 0 {
		r.fail(n, "%s must be above 0", what)
		return big.NewInt(1)
	}
	return scaled.Mul(scaled, big.NewInt(max(per.Seconds, 1)))
}

// fraction reads an amount that a price is multiplied by more than once.
func (r *reader) fraction(n *yaml.Node, what string) money.Amount {
	a := r.amount(n, what)
	if _, err := a.Scaled(MaxFractionDigits); err != nil {
		r.fail(n, "%s: %v", what, err)
	}
	return a
}

func (r *reader) market(n *yaml.Node) *Market {
	m := new(Market)
	r.mapping(n, "market",
		field{"floor", true, func(n *yaml.Node) { m.Floor = r.fraction(n, "floor") }},
		field{"cap", true, func(n *yaml.Node) { m.Cap = r.fraction(n, "cap") }})
	if m.Floor.Cmp(m.Cap) > 0 {
		r.fail(n, "floor %s is above cap %s", m.Floor, m.Cap)
	}
	return m
}

func (r *reader) multipliers(n *yaml.Node, p *Price, v *Version) {
	if n.Kind != yaml.MappingNode {
		r.fail(n, "bands is not a mapping of band names to rules")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		if !v.hasBand(name) {
			r.fail(n.Content[i], "the book has no band %q", name)
		}
		if _, twice := p.multipliers[name]; twice {
			r.fail(n.Content[i], "bands has %q twice", name)
		}
		r.mapping(n.Content[i+1], "band rule", field{"multiplier", true, func(n *yaml.Node) {
			if p.Market != nil {
				p.multipliers[name] = r.fraction(n, "multiplier")
			} else {
				p.multipliers[name] = r.amount(n, "multiplier")
			}
		}})
	}
}

func (r *reader) ladder(n *yaml.Node, per Per) *Ladder {
	l := new(Ladder)
	r.mapping(n, "ladder",
		field{"mode", true, func(n *yaml.Node) {
			l.Volume = r.oneOf(n, "mode", "graduated", "volume") == "volume"
		}},
		field{"window", false, func(n *yaml.Node) {
			l.Hourly = r.oneOf(n, "window", "period", "hour") == "hour"
		}},
		field{"tiers", true, func(n *yaml.Node) {
			r.list(n, "tiers", func(n *yaml.Node) { l.Tiers = append(l.Tiers, r.tier(n, per)) })
			r.checkTiers(n, l.Tiers)
		}})
	return l
}

func (r *reader) oneOf(n *yaml.Node, what, first, second string) string {
	s := r.text(n, what)
	if s != first && s != second {
		r.fail(n, "%s %q is neither %s nor %s", what, s, first, second)
	}
	return s
}

func (r *reader) tier(n *yaml.Node, per Per) Tier {
	var t Tier
	r.mapping(n, "tier",
		field{"up_to", false, func(n *yaml.Node) { t.UpTo = r.nano(n, "up_to", per) }},
		field{"price", true, func(n *yaml.Node) { t.Price = r.amount(n, "price") }})
	return t
}

// checkTiers holds tiers to their rule: each ends where the next begins, and the last has no end.
func (r *reader) checkTiers(n *yaml.Node, tiers []Tier) {
	if len(tiers) == 0 {
		r.fail(n, "a ladder needs tiers")
	}
	for i, t := range tiers {
		last := i == len(tiers)-1
		switch {
		case last && t.UpTo != nil:
			r.fail(n.Content[i], "the last tier has no up_to: the ladder would end there")
		case !last && t.UpTo == nil:
			r.fail(n.Content[i], "only the last tier has no up_to")
		case i > 0 && t.UpTo != nil && tiers[i-1].UpTo != nil && t.UpTo.Cmp(tiers[i-1].UpTo) <= 0:
			r.fail(n.Content[i], "up_to must be above that of the tier before")
		}
	}
}
