package catalog

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/suanpan/suanpan/pkg/money"
)

// TaxRule is one version of a rule that says how what is sold is taxed. A criterion that is not
// given is met by all.
type TaxRule struct {
	Name      string
	From      int64  // the second from which it holds
	Seller    string // "" is any
	Countries []string
	TaxID     string // of the buyer: present, absent or any
	Tenants   []string
	SKUs      []Pattern
	Priority  int64 // of rules that match, the highest; then the first by name
	Treatment TaxTreatment
}

// TaxTreatment is how something is taxed.
type TaxTreatment struct {
	Rule       string       // its name
	Category   string       // of EN 16931: S, Z, E, AE, O, G, K, L or M
	Rate       money.Amount // percent, 0 to 100; above 0 for S, L and M only
	Inclusive  bool         // whether prices include the tax
	Reason     string       // why there is none; of E, AE, O, G and K
	ReasonCode string       // the same as a code, such as VATEX-EU-AE
}

// MaxRatePlaces is the number of decimals of a tax rate in percent.
const MaxRatePlaces = 4

// MaxPriority is the highest priority of a tax rule.
const MaxPriority = 1_000_000

var (
	categories = []string{"S", "Z", "E", "AE", "O", "G", "K", "L", "M"}
	taxed      = []string{"S", "L", "M"} // those that may have a rate
	exempt     = []string{"E", "AE", "O", "G", "K"}
	hundred    = money.MustParse("100")
)

func (r *reader) taxRule(n *yaml.Node, common []field, d *Document) *TaxRule {
	rule := &TaxRule{TaxID: "any"}
	t := &rule.Treatment
	rated := false
	r.mapping(n, "TaxRule", append(common,
		field{"seller", false, func(n *yaml.Node) { rule.Seller = r.name(n, "seller") }},
		field{"buyer", false, func(n *yaml.Node) { r.taxBuyer(n, rule) }},
		field{"skus", false, func(n *yaml.Node) { rule.SKUs = r.patterns(n, "skus") }},
		field{"category", true, func(n *yaml.Node) {
			if t.Category = r.text(n, "category"); !slices.Contains(categories, t.Category) {
				r.fail(n, "category %q is none of %s (EN 16931; S is the standard)", t.Category,
					strings.Join(categories, ", "))
			}
		}},
		field{"rate", false, func(n *yaml.Node) { rated, t.Rate = true, r.rate(n) }},
		field{"inclusive", false, func(n *yaml.Node) { t.Inclusive = r.boolean(n, "inclusive") }},
		r.lineField("reason", &t.Reason),
		field{"reason_code", false, func(n *yaml.Node) { t.ReasonCode = r.name(n, "reason_code") }},
		field{"priority", false, func(n *yaml.Node) {
			rule.Priority = r.whole(n, "priority", 0, MaxPriority)
		}})...)
	rule.Name, rule.From, t.Rule = d.Name, d.From, d.Name
	switch {
	case slices.Contains(taxed, t.Category) && !rated:
		r.fail(n, "category %s needs the field \"rate\", in percent", t.Category)
	case t.Category == "S" && t.Rate.Sign() == 0:
		r.fail(n, "category S needs a rate above 0: what is taxed at 0 is category Z")
	case !slices.Contains(taxed, t.Category) && t.Rate.Sign() > 0:
		r.fail(n, "category %s has the rate 0: leave the rate out, or choose S", t.Category)
	}
	switch reasons := t.Reason != "" || t.ReasonCode != ""; {
	case slices.Contains(exempt, t.Category) && (t.Reason == "" || t.ReasonCode == ""):
		r.fail(n, "category %s needs the fields \"reason\" and \"reason_code\": why there is no tax",
			t.Category)
	case reasons && !slices.Contains(exempt, t.Category):
		r.fail(n, "category %s has neither reason nor reason_code: they say why there is no tax",
			t.Category)
	}
	return rule
}

func (r *reader) rate(n *yaml.Node) money.Amount {
	rate := r.amount(n, "rate")
	if _, err := rate.Scaled(MaxRatePlaces); err != nil {
		r.fail(n, "rate: %v", err)
	}
	if rate.Cmp(hundred) > 0 {
		r.fail(n, "rate %s is above 100: it is in percent", rate)
	}
	return rate
}

func (r *reader) taxBuyer(n *yaml.Node, rule *TaxRule) {
	r.mapping(n, "buyer",
		field{"countries", false, func(n *yaml.Node) {
			r.some(n, "countries", func(n *yaml.Node) {
				rule.Countries = append(rule.Countries, r.country(n))
			})
		}},
		field{"tax_id", false, func(n *yaml.Node) {
			rule.TaxID = r.choice(n, "tax_id", "present", "absent", "any")
		}},
		field{"tenants", false, func(n *yaml.Node) {
			r.some(n, "tenants", func(n *yaml.Node) {
				rule.Tenants = append(rule.Tenants, r.name(n, "tenant"))
			})
		}})
}

// some is a list of at least one: an empty one would be met by nobody, not by all.
func (r *reader) some(n *yaml.Node, what string, read func(n *yaml.Node)) {
	r.list(n, what, read)
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		r.fail(n, "%s is empty: leave it out for all", what)
	}
}

// choice reads one of several words.
func (r *reader) choice(n *yaml.Node, what string, words ...string) string {
	s := r.text(n, what)
	if !slices.Contains(words, s) {
		r.fail(n, "%s %q is none of %s", what, s, strings.Join(words, ", "))
	}
	return s
}

// matches reports whether the rule is for what a seller sells to a buyer.
func (t *TaxRule) matches(seller string, buyer *Buyer, sku string) bool {
	return (t.Seller == "" || t.Seller == seller) &&
		(len(t.Tenants) == 0 || slices.Contains(t.Tenants, buyer.Name)) &&
		(len(t.Countries) == 0 || slices.Contains(t.Countries, buyer.Address.Country)) &&
		(t.TaxID == "any" || (t.TaxID == "present") == (buyer.TaxID != "")) &&
		(len(t.SKUs) == 0 || slices.ContainsFunc(t.SKUs, func(p Pattern) bool { return p.Matches(sku) }))
}

// Tax returns how a SKU that a seller sells to a buyer is taxed at a second: by the rule in force
// that matches and has the highest priority, the first by name among equals. It reports false where
// no rule matches. The buyer may be of another second than the rules: those of the time of supply
// are for the buyer as the invoice has it. A nil buyer is nobody known.
func (c *Catalog) Tax(seller string, buyer *Buyer, sku string, at int64) (TaxTreatment, bool) {
	if buyer == nil {
		buyer = new(Buyer)
	}
	var best *TaxRule
	for _, h := range c.taxRules {
		v, ok := h.at(at)
		if !ok || !v.doc.matches(seller, buyer, sku) {
			continue
		}
		if best == nil || v.doc.Priority > best.Priority ||
			v.doc.Priority == best.Priority && v.doc.Name < best.Name {
			best = v.doc
		}
	}
	if best == nil {
		return TaxTreatment{}, false
	}
	return best.Treatment, true
}
