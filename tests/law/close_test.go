package law

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// money draws who sells, how it is taxed, and what was paid in advance.
func (w *world) money() string {
	var out strings.Builder
	if w.chance(80) {
		fmt.Fprintf(&out, "---\n{kind: Seller, name: us, legal_name: Us, timezone: UTC, "+
			"empty_invoices: %t}\n", w.chance(30))
	}
	for i, rule := range []string{
		"category: S, rate: \"25\"", "category: S, rate: \"6.5\", inclusive: true",
		"category: AE, reason: reverse charge, reason_code: VATEX-EU-AE", "category: Z",
	} {
		if w.chance(40) {
			fmt.Fprintf(&out, "---\n{kind: TaxRule, name: t%d, %s, priority: %d", i, rule, w.IntN(3))
			if w.chance(60) {
				fmt.Fprintf(&out, ", skus: [%q, %q]", pick(w, w.skus), pick(w, []string{"spot*", "gpu", "t*"}))
			}
			out.WriteString("}\n")
		}
	}
	for i := range w.IntN(5) {
		fmt.Fprintf(&out, "---\n{kind: Grant, name: g%d, tenant: %s, currency: %s, amount: \"%d.%02d\", "+
			"source: %s", i, pick(w, []string{"acme", "blue"}), pick(w, []string{"CNY", "USD"}),
			w.IntN(200), 1+w.IntN(99), pick(w, []string{"promo", "paid"}))
		if w.chance(50) {
			fmt.Fprintf(&out, ", expires: %q",
				w.start.Add(time.Duration(w.IntN(90*24))*time.Hour).Format(time.RFC3339))
		}
		out.WriteString("}\n")
	}
	return out.String()
}

// closes puts closes of some months among the events, in the order of the months, so that there is
// late usage, and some of it too late.
func (w *world) closes(lines [][]byte) []string {
	events := make([]string, len(lines))
	for i, line := range lines {
		events[i] = string(line)
	}
	type target struct{ tenant, contract string }
	for _, of := range []target{{"acme", ""}, {"acme", "c"}, {"acme", "d"}, {"blue", ""}} {
		if w.chance(30) {
			continue
		}
		at := w.IntN(len(events) + 1)
		for month := range 1 + w.IntN(5) {
			for _, zone := range w.zones {
				location, err := time.LoadLocation(zone)
				if err != nil {
					panic(err)
				}
				y, m, _ := w.start.In(location).Date()
				until := time.Date(y, m+time.Month(month+1), 1, 0, 0, 0, 0, location)
				w.id++
				e := fmt.Sprintf(`{"specversion":"1.0","type":"suanpan.period.close.v1","source":"/s",`+
					`"id":"e%d","data":{"tenant":%q,"contract":%q,"from":%q,"until":%q}}`, w.id, of.tenant,
					of.contract, until.AddDate(0, -1, 0).Format(time.RFC3339), until.Format(time.RFC3339))
				events = slices.Insert(events, at, e)
				at++
			}
			at += w.IntN(len(events) - at + 1)
		}
	}
	return events
}
