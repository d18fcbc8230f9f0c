package alert

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/catalog"
)

// QuerySpend shows what a tenant's usage of the UTC hours in [from, until) costs, by hour, as far
// as it is settled; it also shows the hours of other currencies.
func QuerySpend(tenant string, from, until int64) string {
	return fmt.Sprintf(`SELECT toStartOfHour(usage_start) AS hour, currency, sum(amount) AS amount
FROM line_items
WHERE tenant = %s AND currency != '' AND usage_start >= %s AND usage_start < %s
GROUP BY hour, currency ORDER BY hour, currency`, quote(tenant), instant(from), instant(until))
}

// QueryBudget shows what a budget counts in a local month or day, as far as it is settled: its sum
// is the spend.
func QueryBudget(b *catalog.Budget, period string) string {
	amount := "amount"
	if b.List {
		amount = "list_amount"
	}
	where := []string{
		"tenant = " + quote(b.Tenant), "currency = " + quote(b.Currency),
		"usage_period = " + quote(period[:min(len(period), len("2006-01"))]),
	}
	if len(period) == len(time.DateOnly) {
		where = append(where, "day = "+quote(period))
	}
	if b.Project != "" {
		where = append(where, "project = "+quote(b.Project))
	}
	for _, name := range slices.Sorted(maps.Keys(b.Labels)) {
		where = append(where, "labels["+quote(name)+"] = "+quote(b.Labels[name]))
	}
	return fmt.Sprintf(`SELECT project, sku, purchase, band, sum(%s) AS spend
FROM line_items
WHERE %s
GROUP BY ALL ORDER BY spend DESC`, amount, strings.Join(where, "\n  AND "))
}

// QueryLetters shows a tenant's dead letters since a second that nobody sent again: how many there
// are of each reason, when the newest came, and what was wrong with one of them.
func QueryLetters(tenant string, since int64) string {
	return fmt.Sprintf(`SELECT reason, count() AS letters, max(record_time) AS newest, any(detail)
FROM dead_letters FINAL
WHERE key = %s AND record_time >= %s
  AND (topic, partition, offset) NOT IN (SELECT topic, partition, offset FROM dead_letter_retries)
GROUP BY reason ORDER BY letters DESC, reason`, quote(tenant), instant(since))
}

// QueryHeld shows a tenant's documents that wait for a person, and why.
func QueryHeld(tenant string) string {
	return fmt.Sprintf(`SELECT tenant, contract, period, type, currency, total, why
FROM invoice_states
WHERE tenant = %s AND status = 'held'
ORDER BY period, contract, type`, quote(tenant))
}
