package alert

import (
	"slices"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
)

// silenceSubject is what the silence of all sessions is called.
const silenceSubject = "all"

// ExporterSilent finds the running sessions of which nothing was heard for the policy's minutes.
// newest is when the newest usage event of all came, at a second; 0 is never. If that is too long
// ago and there are several such sessions, they are one finding of the platform: it is no single
// exporter that fails.
func ExporterSilent(p *catalog.Policy, all []LastSeen, newest, now int64) Look {
	var look Look
	after := p.Whole("minutes") * 60
	for _, s := range all {
		if !p.Covers(s.Tenant, s.Project, "") || now-s.Until < after {
			continue
		}
		labels := map[string]string{"project": s.Project, "lease": s.Lease, "session": s.Session}
		if s.Node != "" {
			labels["node"] = s.Node
		}
		look.Findings = append(look.Findings, Finding{
			Tenant: s.Tenant, Subject: s.Session, Labels: labels, Query: QuerySilent(&s),
			Figures: []Figure{
				{Name: "last_seen", Value: metering.InstantOf(s.Until).String()},
				{"silent", number((now - s.Until) / 60), "min"},
				{"minutes", number(after / 60), "min"},
			},
		})
	}
	look.Findings = sortFindings(look.Findings)
	if now-newest < after || len(look.Findings) < 2 {
		return look
	}
	return Look{
		Findings: []Finding{{
			Subject: silenceSubject, Query: queryNewest,
			Figures: []Figure{
				{Name: "sessions", Value: number(int64(len(look.Findings)))},
				{Name: "last_seen", Value: metering.InstantOf(newest).String()},
				{"silent", number((now - newest) / 60), "min"},
				{"minutes", number(after / 60), "min"},
			},
		}},
		Unsure: func(*Alert) bool { return true }, // nobody knows which sessions run
	}
}

// LettersWithin is for how many seconds a dead letter that nobody sent again is news.
const LettersWithin int64 = 30 * daySeconds

// DeadLetters finds the tenants and reasons that have as many dead letters as the policy says.
// Those of tenants that the catalog does not know are together: their names are anybody's.
func DeadLetters(p *catalog.Policy, all []Letters, c *catalog.Catalog, now int64) Look {
	sums := make(map[party]Letters)
	for _, l := range all {
		if !p.Covers(l.Tenant, "", "") {
			continue
		}
		key := party{l.Tenant, l.Reason}
		if !c.HasTenant(l.Tenant) {
			key.tenant = ""
		}
		sum := sums[key]
		if l.Newest >= sum.Newest {
			sum.Tenant, sum.Newest = l.Tenant, l.Newest
		}
		sum.Count += l.Count
		sums[key] = sum
	}
	var look Look
	for key, sum := range sums {
		if sum.Count < p.Whole("count") {
			continue
		}
		look.Findings = append(look.Findings, Finding{
			Tenant: key.tenant, Subject: key.name, Labels: map[string]string{"reason": key.name},
			Query: QueryLetters(sum.Tenant, now-LettersWithin),
			Figures: []Figure{
				{Name: "count", Value: number(sum.Count)},
				{Name: "newest", Value: metering.InstantOf(sum.Newest).String()},
			},
		})
	}
	look.Findings = sortFindings(look.Findings)
	return look
}

// heldSubject is what the documents of a tenant that wait for a person are called.
const heldSubject = "documents"

// HeldInvoices finds the tenants of whom as many documents wait for a person as the policy says.
func HeldInvoices(p *catalog.Policy, all []HeldDocument, _ int64) Look {
	byTenant := make(map[string][]HeldDocument)
	for _, d := range all {
		if p.Covers(d.Tenant, "", "") {
			byTenant[d.Tenant] = append(byTenant[d.Tenant], d)
		}
	}
	var look Look
	for tenant, documents := range byTenant {
		if int64(len(documents)) < p.Whole("count") {
			continue
		}
		oldest := slices.MinFunc(documents, func(a, b HeldDocument) int { return int(a.Since - b.Since) })
		f := Finding{
			Tenant: tenant, Subject: heldSubject, Labels: map[string]string{"document": oldest.ID},
			Query: QueryHeld(tenant),
			Figures: []Figure{
				{Name: "count", Value: number(int64(len(documents)))},
				{Name: "document", Value: oldest.ID},
				{Name: "period", Value: oldest.Period},
				{Name: "since", Value: metering.InstantOf(oldest.Since).String()},
			},
		}
		if len(oldest.Why) > 0 {
			f.Figures = append(f.Figures, Figure{Name: "reason", Value: oldest.Why[0]})
		}
		look.Findings = append(look.Findings, f)
	}
	look.Findings = sortFindings(look.Findings)
	return look
}
