package alert

import (
	"fmt"
	"strings"
	"time"
)

// The queries show an analyst the figures of a finding. They read the documented tables and views
// of ClickHouse; percentages have four decimals, and times are UTC.

// quoted replaces the bytes that ClickHouse's string literals do not take as they are.
var quoted = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\x00", `\0`)

// quote returns text, whatever its bytes, as a string literal.
func quote(text string) string { return "'" + quoted.Replace(text) + "'" }

// quoteAll returns a list of string literals.
func quoteAll(texts []string) string {
	all := make([]string, len(texts))
	for i, t := range texts {
		all[i] = quote(t)
	}
	return strings.Join(all, ", ")
}

// instant returns a second as a literal.
func instant(second int64) string {
	return "'" + time.Unix(second, 0).UTC().Format(time.DateTime) + "'"
}

// windows is the view of windows that end after one second, up to another.
func windows(from, until int64) string {
	return fmt.Sprintf("telemetry_windows(from = %s, until = %s)", instant(from), instant(until))
}

// figures are the columns that tell what windows did.
const figures = `sum(seconds) AS covered,
  round(sum(util * seconds) / nullIf(covered, 0)) / 10000 AS mean_percent`

// QueryLoad shows what a session did: covered, mean_percent, peak_percent, mem_used and mem_total
// (MiB).
func QueryLoad(l *Load) string {
	// The newest window may end within the second after Until, which is floored.
	return fmt.Sprintf(`SELECT min(start) AS since, max(time) AS until, %s,
  maxIf(util, seconds > 0) / 10000 AS peak_percent, max(mem_used), max(mem_total)
FROM %s
WHERE tenant = %s AND session = %s AND node = %s AND start >= %s`, figures,
		windows(l.From, l.Until+1), quote(l.Tenant), quote(l.Session), quote(l.Node), instant(l.From))
}

// QueryCard shows what a card did while each session held it: covered and mean_percent, and those
// of all sessions, all_covered and all_mean_percent.
func QueryCard(c *CardLoad, from, until int64) string {
	return fmt.Sprintf(`SELECT tenant, session, min(start) AS since, max(time) AS until,
  %s,
  sum(sum(seconds)) OVER () AS all_covered,
  round(sum(sum(util * seconds)) OVER () / all_covered) / 10000 AS all_mean_percent
FROM %s
WHERE node = %s AND has(devices, %s) AND seconds > 0
GROUP BY tenant, session ORDER BY since`, figures, windows(from, until),
		quote(c.Node), quote(c.Card))
}

// QueryBusy shows how busy cards were by tenant, project and SKU, the idlest first: held and used
// (units x seconds), percent, and that of all together, all_percent. No tenants, projects or SKUs
// are all of them.
func QueryBusy(from, until int64, tenants, projects, skus []string) string {
	where := ""
	for _, scope := range []struct {
		column string
		names  []string
	}{{"f.tenant", tenants}, {"f.project", projects}, {"f.sku", skus}} {
		if len(scope.names) > 0 {
			where += " AND " + scope.column + " IN (" + quoteAll(scope.names) + ")"
		}
	}
	return fmt.Sprintf(`SELECT f.tenant AS tenant, f.project AS project, f.sku AS sku,
  sum(w.covered * f.held / 1000) AS held, sum(w.busy * f.held / 1000000000) AS used,
  round(100 * used / held, 4) AS percent,
  round(100 * sum(used) OVER () / sum(held) OVER (), 4) AS all_percent
FROM (SELECT tenant, session, node, project, sku, held FROM sessions FINAL
  WHERE match(sku, '^[gn]pu\\.') AND NOT match(sku, '^[gn]pu\\.memory\\.')) AS f
INNER JOIN (SELECT tenant, session, node, sum(seconds) AS covered, sum(util * seconds) AS busy
  FROM %s
  WHERE seconds > 0 GROUP BY tenant, session, node) AS w
ON w.tenant = f.tenant AND w.session = f.session AND w.node = f.node
WHERE 1%s
GROUP BY tenant, project, sku ORDER BY held - used DESC`, windows(from, until), where)
}

// QuerySilent shows the last windows that were heard of a session: their ends, and whether they
// said that they were the last.
func QuerySilent(l *LastSeen) string {
	return fmt.Sprintf(`SELECT start, time AS until, final FROM telemetry
WHERE tenant = %s AND session = %s AND node = %s AND time < %s
ORDER BY time DESC LIMIT 10`, quote(l.Tenant), quote(l.Session), quote(l.Node), instant(l.Until+1))
}
