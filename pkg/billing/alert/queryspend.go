package alert

import "fmt"

// QuerySpend shows what a tenant's usage of the UTC hours in [from, until) costs, by hour, as far
// as it is settled; it also shows the hours of other currencies.
func QuerySpend(tenant string, from, until int64) string {
	return fmt.Sprintf(`SELECT toStartOfHour(usage_start) AS hour, currency, sum(amount) AS amount
FROM line_items
WHERE tenant = %s AND currency != '' AND usage_start >= %s AND usage_start < %s
GROUP BY hour, currency ORDER BY hour, currency`, quote(tenant), instant(from), instant(until))
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
