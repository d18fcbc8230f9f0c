package alert

import "github.com/suanpan/suanpan/pkg/money"

// Load is what one session did over the span that ends with its newest window.
type Load struct {
	Tenant, Project, Lease, Session, Node, Region string

	Held        map[string]int64 // SKU to thousandths of a unit
	From, Until int64            // seconds: start of the first window of the span, end of the newest
	Covered     int64            // seconds of windows that have a utilisation
	Mean, Peak  int64            // utilisation in millionths: by time, and of the busiest window
	MemoryUsed  int64            // MiB: the most that was used; 0: not known
	MemoryTotal int64            // MiB: of the devices held; 0: not known
	Final       bool             // the newest window said that the session ended
}

// CardLoad is what one card (device) did while it was held.
type CardLoad struct {
	Card, Node, SKU string

	Held int64 // seconds with readings
	Mean int64 // utilisation by time, in millionths
}

// Busy is how busy what was held of a SKU was.
type Busy struct {
	Tenant, Project, SKU string

	Held int64 // seconds x thousandths, of windows that have a utilisation
	Used int64 // the part of it that was busy, in the same unit
}

// HourSpend is what a tenant's usage of one UTC hour costs.
type HourSpend struct {
	Tenant, Currency string

	Hour   int64 // its first second
	Amount money.Amount
}

// LastSeen is a running session of which nothing was heard for a while.
type LastSeen struct {
	Tenant, Project, Lease, Session, Node string

	Until int64 // second: the end of its newest window
}

// Letters counts the dead letters of a tenant and reason that nobody sent again.
type Letters struct {
	Tenant string // the record's key; what it names need not exist
	Reason string

	Count  int64
	Newest int64 // second of its record
}

// HeldDocument is a document that waits for a person.
type HeldDocument struct {
	Tenant, ID, Period string

	Since int64 // second
	Why   []string
}
