package rating

import (
	"cmp"
	"maps"
	"slices"

	"github.com/suanpan/suanpan/pkg/metering"
)

// Dimension is what usage is broken down by.
type Dimension uint8

// The dimensions: the project, and the labels that we know.
const (
	ByProject Dimension = iota
	ByTeam
	ByModel
	ByModelVersion
	ByStage
	Dimensions // their number
)

// DimensionLabels are the labels of the dimensions; the project is none.
var DimensionLabels = [Dimensions]string{"", "team", "model", "model_version", "stage"}

// Use is what one charge has in the billing periods up to one, in which it has some. With a charge
// of an earlier period than the billing period come all others of its period: what a period was
// charged follows from all of them.
type Use struct {
	Charge   Charge
	Before   metering.Quantity // in earlier billing periods
	Now      metering.Quantity // in these and the billing period
	FirstDay int64             // local, of its seconds in the billing period
	LastDay  int64
	Parts    [Dimensions][]Part // each adds up to the whole; ascending by name
	// Steps are what each billing period up to this one added, ascending; only of a charge of an
	// earlier period.
	Steps []Step
	// Elsewhere: nothing of it counts in the billing period. It is there for its steps, and has no
	// days.
	Elsewhere bool
}

// Step is what a billing period added to a charge.
type Step struct {
	Billing  string
	Quantity metering.Quantity
}

// Part is the part of a [Use] that one name of a dimension has. Name is "" for usage without one.
type Part struct {
	Name        string
	Before, Now metering.Quantity
}

// Account is the usage of one contract of a tenant: of all billing periods.
type Account struct {
	Tenant   string
	Contract string // "" for usage without one
	charges  map[Charge]*accountCharge
}

// accountCharge is a charge by billing period.
type accountCharge struct {
	whole byPeriod
	days  map[string][2]int64
	parts [Dimensions]map[string]byPeriod
}

type byPeriod map[string]metering.Quantity

func (b byPeriod) until(period string) (before, now metering.Quantity) {
	for p, q := range b {
		if p < period {
			before = before.Add(q)
		}
		if p <= period {
			now = now.Add(q)
		}
	}
	return before, now
}

// steps are what the periods up to one added, ascending.
func (b byPeriod) steps(until string) []Step {
	var steps []Step
	for _, p := range slices.Sorted(maps.Keys(b)) {
		if p <= until {
			steps = append(steps, Step{p, b[p]})
		}
	}
	return steps
}

// Accounts adds the rows up by tenant and contract, in this order.
func (l *Ledger) Accounts() []*Account {
	accounts := make(map[[2]string]*Account)
	charge := func(c *Charge) *accountCharge {
		key := [2]string{c.Tenant, c.Contract}
		a := accounts[key]
		if a == nil {
			a = &Account{c.Tenant, c.Contract, make(map[Charge]*accountCharge)}
			accounts[key] = a
		}
		return a.charge(c)
	}
	for key, row := range l.hours {
		facts := l.sessions[ledgerSession{row.SessionKey, key.sku}].Facts
		for i := range row.Segments {
			s := &row.Segments[i]
			charge(s.Charge).add(s.Billing, s.Day, s.Quantity(row.Milli), facts.Project, facts.Labels)
		}
	}
	for _, row := range l.consumed {
		charge(row.Charge).add(row.Billing, row.Day, row.Nano, row.Project, row.Labels)
	}
	out := make([]*Account, 0, len(accounts))
	for _, a := range accounts {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b *Account) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Contract, b.Contract))
	})
	return out
}

func (a *Account) charge(c *Charge) *accountCharge {
	known := a.charges[*c]
	if known == nil {
		known = &accountCharge{whole: make(byPeriod), days: make(map[string][2]int64)}
		a.charges[*c] = known
	}
	return known
}

func (c *accountCharge) add(billing string, day int64, q metering.Quantity, project string,
	labels []metering.Label,
) {
	c.whole[billing] = c.whole[billing].Add(q)
	days, ok := c.days[billing]
	if !ok {
		days = [2]int64{day, day}
	}
	c.days[billing] = [2]int64{min(days[0], day), max(days[1], day)}
	for d := range Dimensions {
		name := project
		if d != ByProject {
			name = labelOf(labels, DimensionLabels[d])
		}
		if c.parts[d] == nil {
			c.parts[d] = make(map[string]byPeriod)
		}
		part := c.parts[d][name]
		if part == nil {
			part = make(byPeriod)
			c.parts[d][name] = part
		}
		part[billing] = part[billing].Add(q)
	}
}

func labelOf(labels []metering.Label, key string) string {
	for _, l := range labels {
		if l.Key == key {
			return l.Value
		}
	}
	return ""
}

// Periods returns the billing periods that the account has usage in, ascending.
func (a *Account) Periods() []string {
	var periods []string
	for _, c := range a.charges {
		for p := range c.whole {
			periods = append(periods, p)
		}
	}
	slices.Sort(periods)
	return slices.Compact(periods)
}

// Uses returns the charges that have usage in a billing period, and what else [Use] tells of, in
// their order.
func (a *Account) Uses(billing string) []Use {
	late := make(map[string]bool)
	for charge, c := range a.charges {
		if _, here := c.days[billing]; here && charge.Period < billing {
			late[charge.Period] = true
		}
	}
	var uses []Use
	for charge, c := range a.charges {
		days, here := c.days[billing]
		if !here && !late[charge.Period] {
			continue
		}
		u := Use{Charge: charge, FirstDay: days[0], LastDay: days[1], Elsewhere: !here}
		if late[charge.Period] {
			u.Steps = c.whole.steps(billing)
		}
		if !here && len(u.Steps) == 0 {
			continue // of a later billing period
		}
		u.Before, u.Now = c.whole.until(billing)
		for d := range Dimensions {
			for name, q := range c.parts[d] {
				before, now := q.until(billing)
				if before.Sign() != 0 || now.Sign() != 0 {
					u.Parts[d] = append(u.Parts[d], Part{name, before, now})
				}
			}
			slices.SortFunc(u.Parts[d], func(a, b Part) int { return cmp.Compare(a.Name, b.Name) })
		}
		uses = append(uses, u)
	}
	slices.SortFunc(uses, func(a, b Use) int { return a.Charge.Compare(&b.Charge) })
	return uses
}
