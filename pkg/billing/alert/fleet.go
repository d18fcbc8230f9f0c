package alert

import (
	"maps"
	"math/big"
	"slices"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
)

// heldPart is the part of the days of a policy for which a card must have been held and read, at
// least, to be judged: one day of seven.
const heldPart = 7

// LowUtilisation finds the cards that were below the policy's utilisation over its days, while they
// were held. Cards belong to the platform, not to a tenant.
func LowUtilisation(p *catalog.Policy, cards []CardLoad, now int64) Look {
	var look Look
	unsure := make(map[string]bool)
	days := p.Whole("days")
	for _, c := range cards {
		switch {
		case !p.Covers("", "", c.SKU) || !below(p, c.Mean):
		case c.Held < days*daySeconds/heldPart:
			unsure[c.Card] = true
		default:
			look.Findings = append(look.Findings, Finding{
				Subject: c.Card, Labels: map[string]string{"card": c.Card, "node": c.Node, "sku": c.SKU},
				Query: QueryCard(&c, now-days*daySeconds, now),
				Figures: []Figure{
					utilisation("utilisation", c.Mean), threshold(p),
					{"days", number(days), "d"},
					{"held", number(c.Held / metering.Hour), "h"},
					{Name: "until", Value: metering.InstantOf(now).String()},
				},
			})
		}
	}
	look.Findings = sortFindings(look.Findings)
	look.Unsure = func(a *Alert) bool { return unsure[a.Subject] }
	return look
}

// fleetLeast is what must have been held for the fleet to be judged: an hour of a unit, in
// thousandths x seconds. The first minutes of a job say nothing of a fleet.
var fleetLeast = big.NewInt(metering.Hour * 1000)

// fleetSubject is what all cards together are called.
const fleetSubject = "fleet"

// FleetUtilisation finds whether all that was held over the policy's hours, and that the policy is
// for, was below its utilisation together.
func FleetUtilisation(p *catalog.Policy, all []Busy, now int64) Look {
	held, used := new(big.Int), new(big.Int)
	skus := make(map[string]bool)
	for _, b := range all {
		if p.Covers(b.Tenant, b.Project, b.SKU) {
			skus[b.SKU] = true
			held.Add(held, big.NewInt(b.Held))
			used.Add(used, big.NewInt(b.Used))
		}
	}
	if held.Cmp(fleetLeast) < 0 {
		return Look{Unsure: func(*Alert) bool { return true }} // too little has readings
	}
	const places = 4
	percent := whole(100).MulRatio(used, held, places, money.HalfUp)
	// The threshold is compared with what was not rounded.
	if money.New(used, 0).MulInt(big.NewInt(100)).
		Cmp(money.New(held, 0).Mul(p.Threshold("utilisation"))) >= 0 {
		return Look{}
	}
	return Look{Findings: []Finding{{
		Subject: fleetSubject,
		Query: QueryBusy(now-p.Whole("hours")*metering.Hour, now, p.Tenants, p.Projects,
			slices.Sorted(maps.Keys(skus))),
		Figures: []Figure{
			{"utilisation", percent.Round(2, money.HalfUp).String(), "%"},
			threshold(p),
			{"hours", number(p.Whole("hours")), "h"},
			{"held", unitHours(held), "unit-hours"},
			{"used", unitHours(used), "unit-hours"},
			{Name: "until", Value: metering.InstantOf(now).String()},
		},
	}}}
}

// unitHours prints seconds x thousandths of a unit in hours of a unit.
func unitHours(n *big.Int) string {
	return whole(1).MulRatio(n, big.NewInt(metering.Hour*1000), 2, money.HalfUp).String()
}

// whole is a whole number as an amount.
func whole(n int64) money.Amount { return money.New(big.NewInt(n), 0) }
