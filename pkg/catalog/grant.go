package catalog

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bojanz/currency"
	"go.yaml.in/yaml/v3"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
)

// The sources of grants.
const (
	Paid  = "paid"  // a top-up: it pays what is due
	Promo = "promo" // a gift: it reduces what is taxed
)

// Grant is money that a tenant has in advance. It is given once and has no further versions.
type Grant struct {
	Name     string
	Tenant   string
	Amount   money.Amount // above 0
	Currency string       // ISO 4217
	Source   string       // Paid or Promo
	From     int64        // the second from which it holds
	Expires  int64        // the first second at which it no longer holds; metering.MaxSecond: never
}

func (r *reader) grant(n *yaml.Node, common []field, d *Document) *Grant {
	g := &Grant{Expires: metering.MaxSecond}
	var expires *yaml.Node
	r.mapping(n, "Grant", append(common,
		field{"tenant", true, func(n *yaml.Node) { g.Tenant = r.name(n, "tenant") }},
		field{"amount", true, func(n *yaml.Node) { g.Amount = r.positive(n, "amount") }},
		field{"currency", true, func(n *yaml.Node) { g.Currency = r.currency(n) }},
		field{"source", true, func(n *yaml.Node) { g.Source = r.oneOf(n, "source", Paid, Promo) }},
		field{"expires", false, func(n *yaml.Node) {
			expires, g.Expires = n, r.instant(n, "expires").Second()
		}})...)
	g.Name, g.From = d.Name, d.From
	if expires != nil && g.Expires <= g.From && d.Set {
		r.fail(expires, "the grant expires before it starts: give it a later expires")
	}
	return g
}

func (r *reader) currency(n *yaml.Node) string {
	s := r.text(n, "currency")
	if !currency.IsValid(s) {
		r.fail(n, "currency %q is not in ISO 4217", s)
	}
	return s
}

// positive reads an amount above 0.
func (r *reader) positive(n *yaml.Node, what string) money.Amount {
	before := len(r.errs)
	a := r.amount(n, what)
	if len(r.errs) == before && a.Sign() == 0 {
		r.fail(n, "%s must be above 0", what)
	}
	return a
}

// Grants returns the grants of a tenant in a currency, from whatever second on: those that expire
// first come first, then by name.
func (c *Catalog) Grants(tenant, currency string) []*Grant {
	var out []*Grant
	for _, g := range c.grants {
		if g.Tenant == tenant && g.Currency == currency {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(a, b *Grant) int {
		return cmp.Or(cmp.Compare(a.Expires, b.Expires), strings.Compare(a.Name, b.Name))
	})
	return out
}
