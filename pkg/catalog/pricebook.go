package catalog

import (
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/suanpan/suanpan/pkg/money"
)

// Version is one version of a price book.
type Version struct {
	Book     string
	From     int64 // the second from which it holds
	Currency string
	Zone     string
	Rounding money.Rounding

	location  *time.Location
	bands     []band
	memory    map[string]int64 // MiB that one unit of a SKU has
	prices    map[priceKey]*Price
	edges     []int64  // local seconds of the day at which some clause begins or ends, ascending
	calendars []string // that its bands name, ascending
}

type priceKey struct{ sku, purchase, region string }

// Longest is the longest increment or minimum of the version, in seconds: a version that changes
// prices must be known that long before it holds.
func (v *Version) Longest() int64 {
	var longest int64
	for _, p := range v.prices {
		longest = max(longest, p.Increment, p.Minimum)
	}
	return longest
}

// Price returns the price of a SKU for a purchase in a region. If there is none for the purchase it
// is the one on demand; nil if there is none at all.
func (v *Version) Price(sku, purchase, region string) *Price {
	if p := v.Exact(sku, purchase, region); p != nil {
		return p
	}
	return v.Exact(sku, onDemand, region)
}

// Exact looks a price up for one purchase, in the region or else without one.
func (v *Version) Exact(sku, purchase, region string) *Price {
	if p := v.prices[priceKey{sku, purchase, region}]; p != nil {
		return p
	}
	return v.prices[priceKey{sku, purchase, ""}]
}

func (r *reader) priceBook(n *yaml.Node, common []field, d *Document) *Version {
	v := &Version{prices: make(map[priceKey]*Price)}
	var prices *yaml.Node
	r.mapping(n, "PriceBook", append(common,
		field{"currency", true, func(n *yaml.Node) { v.Currency = r.currency(n) }},
		field{"timezone", true, func(n *yaml.Node) { v.Zone, v.location = r.zone(n) }},
		field{"rounding", false, func(n *yaml.Node) { v.Rounding = r.rounding(n) }},
		field{"bands", false, func(n *yaml.Node) {
			r.list(n, "bands", func(n *yaml.Node) { v.bands = append(v.bands, r.band(n)) })
		}},
		field{"skus", false, func(n *yaml.Node) { v.memory = r.skus(n) }},
		field{"prices", true, func(n *yaml.Node) { prices = n }},
	)...)
	v.Book, v.From = d.Name, d.From
	v.finishBands(r, n)
	if prices != nil {
		lines := make(map[priceKey]*yaml.Node)
		r.list(prices, "prices", func(n *yaml.Node) {
			p := r.price(n, v)
			key := priceKey{p.SKU, p.Purchase, p.Region}
			lines[key] = n
			if v.prices[key] != nil {
				r.fail(n, "there are two prices for %s", key)
			}
			v.prices[key] = p
		})
		r.checkMarkets(lines, v)
	}
	return v
}

// maxMemoryGiB is the most memory that one unit of a SKU has.
const maxMemoryGiB = 1 << 20

// skus reads what a book says of SKUs besides their prices. It prices nothing.
func (r *reader) skus(n *yaml.Node) map[string]int64 {
	memory := make(map[string]int64)
	r.list(n, "skus", func(n *yaml.Node) {
		var sku string
		var mib int64
		r.mapping(n, "SKU",
			field{"sku", true, func(n *yaml.Node) { sku = r.name(n, "sku") }},
			field{"memory_gib", true, func(n *yaml.Node) {
				mib = r.whole(n, "memory_gib", 1, maxMemoryGiB) * mibPerGiB
			}})
		if _, twice := memory[sku]; twice {
			r.fail(n, "skus has %s twice", sku)
		}
		memory[sku] = mib
	})
	return memory
}

const mibPerGiB = 1024

// MemoryMiB is the GPU memory that one unit of a SKU has, in MiB; 0 where the book does not say.
func (v *Version) MemoryMiB(sku string) int64 { return v.memory[sku] }

// String prints the key as messages show it.
func (k priceKey) String() string {
	s := k.sku + " " + k.purchase
	if k.region != "" {
		s += " in " + k.region
	}
	return s
}

func (r *reader) zone(n *yaml.Node) (string, *time.Location) {
	name := r.text(n, "timezone")
	location, err := time.LoadLocation(name)
	if err != nil || name == "" || strings.EqualFold(name, "local") {
		r.fail(n, "timezone %q is not an IANA time zone such as Asia/Shanghai", name)
		return name, time.UTC
	}
	return name, location
}

func (r *reader) rounding(n *yaml.Node) money.Rounding {
	switch s := r.text(n, "rounding"); s {
	case "half_up":
		return money.HalfUp
	case "half_even":
		return money.HalfEven
	default:
		r.fail(n, "rounding %q is neither half_up nor half_even", s)
		return money.HalfUp
	}
}

// checkMarkets holds every market price to its rule: its floor and cap are fractions of a price on
// demand that counts in the same unit of time.
func (r *reader) checkMarkets(lines map[priceKey]*yaml.Node, v *Version) {
	for key, market := range v.prices {
		if market.Market == nil {
			continue
		}
		found := false
		for other, base := range v.prices {
			if other.sku != key.sku || other.purchase != onDemand ||
				key.region != "" && base != v.Exact(key.sku, onDemand, key.region) {
				continue
			}
			found = true
			if base.Per != market.Per {
				r.fail(lines[key], "market price of %s is per %s, its on_demand price per %s", key,
					market.Per.Name, base.Per.Name)
			}
		}
		if !found {
			r.fail(lines[key], "market price of %s has no on_demand price to be a fraction of", key)
		}
	}
}
