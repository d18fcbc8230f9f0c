// Package alert decides what people must hear of: budgets that are spent, and what the policies of
// the catalog watch.
//
// In go what was used and seen ([ScopeUse] for budgets, observations such as [Load] and [Busy] for
// policies) and the catalog; out come decisions, each an [Alert] of the billing log. An alert has a
// life: it fires, a person may acknowledge it, it resolves. It is known by its key, and two records
// of the log that say the same about one key are one, of which the first counts. So two that decide
// alike, or one that decides again after a crash, change nothing.
//
// It never reads a clock, queries, sends or writes anything: what it is given has integers and
// exact amounts only, and the same observations make the same decisions.
package alert
