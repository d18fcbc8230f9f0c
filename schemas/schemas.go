// Package schemas holds the contracts that Suanpan shares with other systems: topic and event
// names, the JSON Schemas of events and catalog documents, and ClickHouse's data definitions. It
// embeds them so that every binary carries its own contracts. It has no logic.
package schemas

// Topics of the log. Each keeps its records for ever; usage is partitioned by tenant, the others
// that have an order of their own have one partition.
const (
	TopicUsage      = "suanpan.usage"
	TopicCatalog    = "suanpan.catalog"
	TopicMarket     = "suanpan.market"
	TopicBilling    = "suanpan.billing"
	TopicDeadLetter = "suanpan.deadletter"
)

// UsagePartitions is the number of partitions of [TopicUsage]. Changing it needs a drained topic,
// as a tenant's records must stay in one partition.
const UsagePartitions = 64

// Event types (CloudEvents `type`).
const (
	TypeHeld        = "suanpan.usage.held.v1"
	TypeConsumed    = "suanpan.usage.consumed.v1"
	TypeVoid        = "suanpan.usage.void.v1"
	TypeMarketPrice = "suanpan.market.price.v1"
	TypeOutage      = "suanpan.outage.v1"
	TypeCheckpoint  = "suanpan.checkpoint.v1"
	TypeInterrupted = "suanpan.lease.interrupted.v1"
	TypeQueue       = "suanpan.queue.v1"
	TypeRerate      = "suanpan.rerate.v1"
	TypePeriodClose = "suanpan.period.close.v1"
)

// Types of the records of [TopicBilling].
const (
	TypeBillingPeriod  = "suanpan.billing.period.v1"  // the documents of a closed period
	TypeBillingCredit  = "suanpan.billing.credit.v1"  // a credit note that a person made
	TypeBillingRelease = "suanpan.billing.release.v1" // a held draft is issued
	TypeBillingVoid    = "suanpan.billing.void.v1"    // a held draft is voided
	TypeBillingAlert   = "suanpan.billing.alert.v1"   // somebody is told something, once
)
