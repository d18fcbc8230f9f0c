package alert

import (
	"maps"
	"slices"
	"strconv"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/rating"
)

// ScopeUse is what a charge of the running billing period has, in whole and by what budgets count.
type ScopeUse struct {
	Charge rating.Charge
	Whole  metering.Quantity
	Parts  []ScopePart

	// Worked out when a budget first asks; many budgets share a charge.
	curve    *rating.Curve
	total    money.Amount
	projects map[string][]int // parts by project
}

// ScopePart is the part of a charge that one project, combination of labels and local day has.
type ScopePart struct {
	Project  string
	Labels   map[string]string // those that budgets name
	Day      int64             // local, since 1970-01-01
	Quantity metering.Quantity
}

// of returns the parts of a project; of all for "".
func (u *ScopeUse) of(project string, visit func(*ScopePart)) {
	if project == "" {
		for i := range u.Parts {
			visit(&u.Parts[i])
		}
		return
	}
	if u.projects == nil {
		u.projects = make(map[string][]int)
		for i := range u.Parts {
			p := &u.Parts[i]
			u.projects[p.Project] = append(u.projects[p.Project], i)
		}
	}
	for _, i := range u.projects[project] {
		visit(&u.Parts[i])
	}
}

// DayUse is what one project and combination of labels has of a charge by the hours of one day of
// UTC. The charge and the labels may be shared with others: they are not changed.
type DayUse struct {
	UTCDay int64 // since 1970-01-01
	Charge *rating.Charge
	ScopePart
}

// Uses is what tenants have used, kept by days of UTC, so that one that has changed is read anew
// without the others. The sum over the days is what [Standing] asks for.
type Uses map[string]map[int64][]DayUse // by tenant and day

// Add adds a use.
func (u Uses) Add(use *DayUse) {
	days := u[use.Charge.Tenant]
	if days == nil {
		days = make(map[int64][]DayUse)
		u[use.Charge.Tenant] = days
	}
	days[use.UTCDay] = append(days[use.UTCDay], *use)
}

// Remove forgets the days of a tenant from the first to before the last.
func (u Uses) Remove(tenant string, from, until int64) {
	maps.DeleteFunc(u[tenant], func(day int64, _ []DayUse) bool { return from <= day && day < until })
}

// Of returns the charges of a tenant, in an order that depends on nothing else than them.
func (u Uses) Of(tenant string) []ScopeUse {
	type key struct { // of a part
		project string
		labels  string
		day     int64
	}
	type place struct {
		use   *ScopeUse
		parts map[key]int
	}
	charges := make(map[rating.Charge]*place)
	days := u[tenant]
	for _, day := range slices.Sorted(maps.Keys(days)) {
		for i := range days[day] {
			d := &days[day][i]
			at := charges[*d.Charge]
			if at == nil {
				at = &place{&ScopeUse{Charge: *d.Charge}, make(map[key]int)}
				charges[*d.Charge] = at
			}
			at.use.Whole = at.use.Whole.Add(d.Quantity)
			k := key{d.Project, labelText(d.Labels), d.Day}
			if n, ok := at.parts[k]; ok {
				part := &at.use.Parts[n]
				part.Quantity = part.Quantity.Add(d.Quantity)
				continue
			}
			at.parts[k] = len(at.use.Parts)
			at.use.Parts = append(at.use.Parts, d.ScopePart)
		}
	}
	out := make([]ScopeUse, 0, len(charges))
	for _, at := range charges {
		out = append(out, *at.use)
	}
	slices.SortFunc(out, func(a, b ScopeUse) int { return a.Charge.Compare(&b.Charge) })
	return out
}

// labelText is a text that only the same labels have.
func labelText(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	var out []byte
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		out = strconv.AppendQuote(strconv.AppendQuote(out, name), labels[name])
	}
	return string(out)
}
