package catalog

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
)

// Limits of budgets.
const (
	MaxThresholds      = 10
	maxThresholdPlaces = 4
)

// Budget is one version of what a tenant wants to spend at most, and who hears of it.
type Budget struct {
	Name       string
	From       int64 // the second from which it holds
	Tenant     string
	Project    string            // "" is all
	Labels     map[string]string // usage counts that has all of them; nil is all
	Daily      bool              // counts local days, not billing periods
	Amount     money.Amount      // above 0, in Currency
	Currency   string            // ISO 4217
	List       bool              // counts at list prices, not at effective ones
	Thresholds []money.Amount    // fractions of Amount, above 0, ascending
	Notify     []Channel
	Owner      string
	Deleted    bool // it ends here
}

func (r *reader) budget(n *yaml.Node, common []field, d *Document) *Budget {
	b := &Budget{Thresholds: []money.Amount{money.MustParse("0.8"), one}}
	fields := append(common,
		field{"tenant", true, func(n *yaml.Node) { b.Tenant = r.name(n, "tenant") }},
		field{"scope", false, func(n *yaml.Node) { r.budgetScope(n, b) }},
		field{"period", true, func(n *yaml.Node) {
			b.Daily = r.oneOf(n, "period", "day", "month") == "day"
		}},
		field{"amount", true, func(n *yaml.Node) { b.Amount = r.budgetAmount(n) }},
		field{"currency", false, func(n *yaml.Node) { b.Currency = r.currency(n) }},
		field{"basis", false, func(n *yaml.Node) {
			b.List = r.oneOf(n, "basis", "effective", "list") == "list"
		}},
		field{"thresholds", false, func(n *yaml.Node) { b.Thresholds = r.thresholds(n) }},
		field{"notify", false, func(n *yaml.Node) { b.Notify = r.channels(n) }},
		r.lineField("owner", &b.Owner),
		field{"deleted", false, func(n *yaml.Node) { b.Deleted = r.boolean(n, "deleted") }})
	if deleted := member(n, "deleted"); deleted != nil && deleted.Value == "true" {
		for i := range fields { // nothing of it counts any more
			fields[i].required = fields[i].required && fields[i].name != "period" &&
				fields[i].name != "amount"
		}
	}
	r.mapping(n, "Budget", fields...)
	b.Name, b.From = d.Name, d.From
	return b
}

func (r *reader) budgetScope(n *yaml.Node, b *Budget) {
	r.mapping(n, "scope",
		field{"project", false, func(n *yaml.Node) { b.Project = r.line(n, "project") }},
		field{"labels", false, func(n *yaml.Node) { b.Labels = r.labels(n) }})
}

func (r *reader) labels(n *yaml.Node) map[string]string {
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		r.fail(n, "labels is not a mapping of names to values, such as {team: research}")
		return nil
	}
	if len(n.Content)/2 > metering.MaxLabels {
		r.fail(n, "there are %d labels, more than %d", len(n.Content)/2, metering.MaxLabels)
	}
	labels := make(map[string]string)
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := r.line(n.Content[i], "name of a label"), r.text(n.Content[i+1], "label")
		if _, twice := labels[name]; twice {
			r.fail(n.Content[i], "labels has %q twice", name)
		}
		if len(value) > metering.MaxStringBytes {
			r.fail(n.Content[i+1], "label has %d bytes, more than %d", len(value), metering.MaxStringBytes)
		}
		labels[name] = value
	}
	return labels
}

func (r *reader) budgetAmount(n *yaml.Node) money.Amount {
	before := len(r.errs)
	a := r.amount(n, "amount")
	if len(r.errs) == before && a.Sign() == 0 {
		r.fail(n, "amount must be above 0: every spend is beyond a budget of 0 from the first cent, so "+
			"it could only fire at once; give a small amount instead")
	}
	return a
}

func (r *reader) thresholds(n *yaml.Node) []money.Amount {
	var all []money.Amount
	r.some(n, "thresholds", func(n *yaml.Node) {
		a := r.positive(n, "threshold")
		if _, err := a.Scaled(maxThresholdPlaces); err != nil {
			r.fail(n, "threshold: %v", err)
		}
		if a.Cmp(ten) > 0 {
			r.fail(n, "threshold %s is above 10: it is a fraction, 0.8 means 80 %%", a)
		}
		if len(all) > 0 && a.Cmp(all[len(all)-1]) <= 0 {
			r.fail(n, "threshold %s is not above the one before it, %s: they ascend", a, all[len(all)-1])
		}
		all = append(all, a)
	})
	if len(all) > MaxThresholds {
		r.fail(n, "there are %d thresholds, more than %d", len(all), MaxThresholds)
	}
	return all
}

var ten = money.MustParse("10")

// Budgets returns the budgets in force at a second, by name. One that names no currency has that of
// its tenant's price book at that second, "" where there is none.
func (c *Catalog) Budgets(at int64) []*Budget {
	var out []*Budget
	for _, h := range c.budgets {
		v, ok := h.at(at)
		if !ok || v.doc.Deleted {
			continue
		}
		b := v.doc
		if b.Currency == "" {
			resolved := *b
			resolved.Currency = c.currencyOf(b.Tenant, at)
			b = &resolved
		}
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b *Budget) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// currencyOf is the currency of the price book that a tenant has at a second.
func (c *Catalog) currencyOf(tenant string, at int64) string {
	t := c.tenants[tenant]
	if t == nil {
		return ""
	}
	bound, _ := t.binding(at)
	if b := c.books[bound.book]; b != nil {
		return b.versions[0].doc.Currency
	}
	return ""
}
