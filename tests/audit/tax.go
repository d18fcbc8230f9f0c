package audit

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"strings"
)

type seller struct {
	from  int64
	empty bool // it wants invoices of nothing
	notes []string
}

type taxRule struct {
	from                     int64
	name, seller, taxID      string
	countries, tenants, skus []string
	priority                 int
	treatment                treatment
}

// treatment is how something is taxed; its category is "" where no rule says anything.
type treatment struct {
	category, rate string // percent
	inclusive      bool
	reason, code   string
}

// grant is money that a tenant has in advance.
type grant struct {
	name, tenant, currency, source string
	amount                         *big.Rat
	from, expires                  int64
}

// addMoney reads the documents that only invoices need.
func (c *catalog) addMoney(doc map[string]any, name string, from int64) {
	switch text(doc, "kind") {
	case "Seller":
		s := &seller{from: from, empty: text(doc, "empty_invoices") == "true"}
		s.notes = texts(doc, "notes")
		c.sellers[name] = append(c.sellers[name], s)
	case "TaxRule":
		buyer := object(doc, "buyer")
		r := &taxRule{
			from: from, name: name, seller: text(doc, "seller"),
			taxID: cmp.Or(text(buyer, "tax_id"), "any"), countries: texts(buyer, "countries"),
			tenants: texts(buyer, "tenants"), skus: texts(doc, "skus"),
			treatment: treatment{
				text(doc, "category"), plainNumber(cmp.Or(text(doc, "rate"), "0")),
				text(doc, "inclusive") == "true", text(doc, "reason"), text(doc, "reason_code"),
			},
		}
		if p := number(doc, "priority"); p != nil {
			r.priority = int(p.Num().Int64())
		}
		c.taxRules[name] = append(c.taxRules[name], r)
	case "Grant":
		c.grants = append(c.grants, &grant{
			name, text(doc, "tenant"), text(doc, "currency"), text(doc, "source"),
			number(doc, "amount"), from, second(doc, "expires", math.MaxInt64),
		})
	}
}

func texts(m map[string]any, key string) []string {
	var out []string
	for _, item := range list(m, key) {
		out = append(out, item.(string))
	}
	return out
}

// plainNumber writes a decimal without zeros at its end.
func plainNumber(s string) string {
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// sellerOf is who sells, by the last versions: whom the contract names, else the tenant, else the
// only one; nil if there is none.
func (c *catalog) sellerOf(tenant, contract string) (string, *seller) {
	name := ""
	if versions := c.tenants[tenant]; len(versions) > 0 {
		name = versions[len(versions)-1].seller
	}
	by := ""
	for _, k := range c.contracts[tenant] {
		if k.name == contract {
			by = k.seller
		}
	}
	name = cmp.Or(by, name)
	if name == "" && len(c.sellers) == 1 {
		for only := range c.sellers {
			name = only
		}
	}
	versions := c.sellers[name]
	if len(versions) == 0 {
		return "", nil
	}
	return name, versions[len(versions)-1]
}

// tax is how what a seller sells to a tenant is taxed at a second.
func (c *catalog) tax(seller, buyer, sku string, at int64) treatment {
	who := &tenant{}
	if versions := c.tenants[buyer]; len(versions) > 0 {
		who = versions[len(versions)-1]
	}
	var best *taxRule
	for _, versions := range c.taxRules {
		var r *taxRule
		for _, v := range versions {
			if v.from <= at {
				r = v
			}
		}
		if r == nil || !r.matches(seller, buyer, who, sku) {
			continue
		}
		if best == nil || r.priority > best.priority ||
			r.priority == best.priority && r.name < best.name {
			best = r
		}
	}
	if best == nil {
		return treatment{}
	}
	return best.treatment
}

func (r *taxRule) matches(seller, buyer string, who *tenant, sku string) bool {
	if r.seller != "" && r.seller != seller ||
		r.tenants != nil && !slices.Contains(r.tenants, buyer) ||
		r.countries != nil && !slices.Contains(r.countries, who.country) ||
		r.taxID == "present" && who.taxID == "" || r.taxID == "absent" && who.taxID != "" {
		return false
	}
	for _, pattern := range r.skus {
		if prefix, open := strings.CutSuffix(pattern, "*"); pattern == sku ||
			open && strings.HasPrefix(sku, prefix) {
			return true
		}
	}
	return r.skus == nil
}

// grantsOf are the grants of a source, those first that expire first.
func (c *catalog) grantsOf(tenant, currency, source string) []*grant {
	var out []*grant
	for _, g := range c.grants {
		if g.tenant == tenant && g.currency == currency && g.source == source {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(a, b *grant) int {
		return cmp.Or(cmp.Compare(a.expires, b.expires), cmp.Compare(a.name, b.name))
	})
	return out
}
