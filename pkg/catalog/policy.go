package catalog

import (
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/suanpan/suanpan/pkg/money"
)

// Policy is one version of a rule that raises alerts.
type Policy struct {
	Name       string
	From       int64 // the second from which it holds
	Type       PolicyType
	Enabled    bool
	Tenants    []string // empty is all
	Projects   []string // empty is all
	SKUs       []Pattern
	Notify     []Channel
	QuietHours *QuietHours // nil: none
	Cooldown   int64       // seconds between two alerts about the same thing

	thresholds map[string]money.Amount
}

// DefaultCooldown is the cooldown of a policy that names none, in seconds.
const DefaultCooldown = 3600

// Threshold returns a threshold by its name, as the policy's type has it. See [Thresholds].
func (p *Policy) Threshold(name string) money.Amount {
	a, ok := p.thresholds[name]
	if !ok {
		panic("BUG: policies of type " + string(p.Type) + " have no threshold " + name)
	}
	return a
}

// Whole returns a threshold that is a whole number, such as minutes.
func (p *Policy) Whole(name string) int64 {
	n, err := p.Threshold(name).Scaled(0)
	if err != nil {
		panic("BUG: threshold " + name + " is not a whole number")
	}
	return n.Int64()
}

// Covers reports whether the policy is for a tenant, project and SKU.
func (p *Policy) Covers(tenant, project, sku string) bool {
	return (len(p.Tenants) == 0 || slices.Contains(p.Tenants, tenant)) &&
		(len(p.Projects) == 0 || slices.Contains(p.Projects, project)) &&
		(len(p.SKUs) == 0 || slices.ContainsFunc(p.SKUs, func(s Pattern) bool { return s.Matches(sku) }))
}

// QuietHours are a time of day on some days at which messages wait. Like a band's, they belong to
// the day they began on.
type QuietHours struct {
	clause   clause
	location *time.Location
}

// Holds reports whether a second is quiet.
func (q *QuietHours) Holds(at int64) bool {
	l := localAt(at, q.location)
	return q.clause.holds(l.day, l.second, func(string, int64) bool { return false })
}

// longestQuiet bounds how long quiet hours last: where all days are quiet, a message goes after so
// many seconds all the same.
const longestQuiet = 7 * daySeconds

// End is the first second from a quiet one on that is not quiet any more; a week later at most.
func (q *QuietHours) End(at int64) int64 {
	edges := []int64{min(q.clause.from, q.clause.to), max(q.clause.from, q.clause.to)}
	last := at + longestQuiet
	for at < last && q.Holds(at) {
		at = localAt(at, q.location).next(edges)
	}
	return min(at, last)
}

func (r *reader) policy(n *yaml.Node, common []field, d *Document) *Policy {
	p := &Policy{Enabled: true, Cooldown: DefaultCooldown}
	var scope, thresholds *yaml.Node
	r.mapping(n, "Policy", append(common,
		field{"type", true, func(n *yaml.Node) {
			p.Type = PolicyType(r.choice(n, "type", policyNames()...))
		}},
		field{"enabled", false, func(n *yaml.Node) { p.Enabled = r.boolean(n, "enabled") }},
		field{"scope", false, func(n *yaml.Node) {
			scope = n
			r.policyScope(n, p)
		}},
		field{"thresholds", false, func(n *yaml.Node) { thresholds = n }},
		field{"quiet_hours", false, func(n *yaml.Node) { p.QuietHours = r.quietHours(n) }},
		field{"cooldown", false, func(n *yaml.Node) { p.Cooldown = r.duration(n, "cooldown") }},
		field{"notify", false, func(n *yaml.Node) { p.Notify = r.channels(n) }})...)
	p.Name, p.From = d.Name, d.From
	if thresholds == nil {
		thresholds = &yaml.Node{Kind: yaml.MappingNode}
	}
	if _, ok := policyThresholds[p.Type]; ok {
		p.thresholds = r.policyThresholds(thresholds, p.Type)
		r.checkScope(scope, p.Type)
	}
	if p.Name == "budget" {
		r.fail(n, "the name budget is taken: keys of alerts begin with it that are of budgets")
	}
	if _, is := policyThresholds[PolicyType(p.Name)]; is && PolicyType(p.Name) != p.Type {
		r.fail(n, "the name %s is that of the default policy of type %s: give it another", p.Name, p.Name)
	}
	return p
}

func (r *reader) policyScope(n *yaml.Node, p *Policy) {
	r.mapping(n, "scope",
		field{"tenants", false, func(n *yaml.Node) {
			r.some(n, "tenants", func(n *yaml.Node) {
				p.Tenants = append(p.Tenants, r.name(n, "tenant"))
			})
		}},
		field{"projects", false, func(n *yaml.Node) {
			r.some(n, "projects", func(n *yaml.Node) {
				p.Projects = append(p.Projects, r.line(n, "project"))
			})
		}},
		field{"skus", false, func(n *yaml.Node) { p.SKUs = r.patterns(n, "skus") }})
}

// checkScope refuses what says nothing about what a type watches: it would find nothing.
func (r *reader) checkScope(n *yaml.Node, of PolicyType) {
	for _, name := range []string{"tenants", "projects", "skus"} {
		if n != nil && member(n, name) != nil && !slices.Contains(policyScopes[of], name) {
			r.fail(n, "policies of type %s have no scope by %s: they may have %s", of, name,
				strings.Join(policyScopes[of], ", "))
		}
	}
}

func (r *reader) quietHours(n *yaml.Node) *QuietHours {
	q := &QuietHours{clause: clause{days: everyDay}}
	r.mapping(n, "quiet_hours",
		field{"from", true, func(n *yaml.Node) { q.clause.from = r.timeOfDay(n, "from") }},
		field{"to", true, func(n *yaml.Node) { q.clause.to = r.timeOfDay(n, "to") }},
		field{"timezone", true, func(n *yaml.Node) { _, q.location = r.zone(n) }},
		field{"days", false, func(n *yaml.Node) { q.clause.days = r.days(n) }})
	switch {
	case member(n, "from") == nil || member(n, "to") == nil: // reported already
	case q.clause.from == q.clause.to:
		r.fail(n, "from equals to: whole days are 00:00 to 24:00")
	case q.clause.from == daySeconds:
		r.fail(n, "from is before 24:00")
	}
	return q
}

// policyThresholds reads the thresholds that a type has; those that are not given have defaults.
func (r *reader) policyThresholds(n *yaml.Node, of PolicyType) map[string]money.Amount {
	got := make(map[string]money.Amount)
	var fields []field
	for _, t := range policyThresholds[of] {
		got[t.Name] = t.Default
		fields = append(fields, field{t.Name, false, func(n *yaml.Node) {
			a := r.amount(n, t.Name)
			places := MaxFractionDigits
			if t.Whole {
				places = 0
			}
			if _, err := a.Scaled(places); err != nil {
				r.fail(n, "%s: %v", t.Name, err)
			} else if a.Cmp(t.Least) < 0 || a.Cmp(t.Most) > 0 {
				r.fail(n, "%s %s is not from %s to %s", t.Name, a, t.Least, t.Most)
			}
			got[t.Name] = a
		}})
	}
	r.mapping(n, "thresholds of "+string(of), fields...)
	return got
}

// DefaultPolicies returns one policy of each type, in the order of their names: enabled, for all,
// with the default thresholds, to the log.
func DefaultPolicies() []*Policy {
	var all []*Policy
	for _, name := range policyNames() {
		p := &Policy{
			Name: name, From: Always, Type: PolicyType(name), Enabled: true, Cooldown: DefaultCooldown,
			Notify: []Channel{{Kind: Log}}, thresholds: make(map[string]money.Amount),
		}
		for _, t := range policyThresholds[p.Type] {
			p.thresholds[t.Name] = t.Default
		}
		all = append(all, p)
	}
	slices.SortFunc(all, byName)
	return all
}

func byName(a, b *Policy) int { return strings.Compare(a.Name, b.Name) }

// Policies returns the policies in force at a second that are enabled, by name: those of the
// catalog and the default ones. A default policy has the name of its type; a document of that name
// takes its place.
func (c *Catalog) Policies(at int64) []*Policy {
	var out []*Policy
	for _, p := range DefaultPolicies() {
		if _, ok := c.policies[p.Name].at(at); !ok {
			out = append(out, p)
		}
	}
	for _, h := range c.policies {
		if v, ok := h.at(at); ok && v.doc.Enabled {
			out = append(out, v.doc)
		}
	}
	slices.SortFunc(out, byName)
	return out
}
