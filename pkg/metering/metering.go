// Package metering holds what was used: usage events and the sets of seconds that they cover.
// CloudEvents in JSON come in; valid events, instants, sets and exact quantities go out. It never
// looks at a price, does no I/O, reads no clock and uses no float.
package metering

import "fmt"

// Reason names why an event was not accepted. Reasons are checked in the order in which they are
// declared here; the first that applies is given.
type Reason string

// The reasons of a rejection.
const (
	InvalidJSON     Reason = "invalid_json"     // not a JSON object
	UnknownType     Reason = "unknown_type"     // not one of our event types
	InvalidEvent    Reason = "invalid_event"    // missing or empty fields, malformed times, a limit
	NoTenant        Reason = "no_tenant"        // the catalog has no such tenant
	InvalidWindow   Reason = "invalid_window"   // the window is empty, too long or before the session
	InvalidAmount   Reason = "invalid_amount"   // not a plain decimal above 0, or too many digits
	SessionConflict Reason = "session_conflict" // differs from the session's first accepted event
	NoPrice         Reason = "no_price"         // at some second that it covers, or the wrong unit
	Future          Reason = "future"           // ends too long after the log received it
	PriceMismatch   Reason = "price_mismatch"   // a market price in another currency or per
	Misrouted       Reason = "misrouted"        // in another tenant's partition, after forwarding
)

// Rejection says why an event was not accepted. It leaves no facts behind.
type Rejection struct {
	Reason Reason
	Detail string // what, where, and how to mend it
}

// Error prints the reason and its detail.
func (r *Rejection) Error() string { return string(r.Reason) + ": " + r.Detail }

// Reject returns a rejection with a formatted detail.
func Reject(reason Reason, format string, args ...any) *Rejection {
	return &Rejection{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// Limits of an event. They are far above what exporters send; what is beyond them is rejected with
// a reason that names the limit.
const (
	MaxEventBytes    = 256 << 10
	MaxStringBytes   = 256 // ids, names, label keys and values
	MaxSKUs          = 64  // of one event
	MaxLabels        = 64
	MaxWindowSeconds = 86_400 // of one usage or void window
	MaxHeldPlaces    = 3      // decimals of a held amount
	MaxPlaces        = 9      // decimals of a consumed amount
	MaxAmountDigits  = 15     // digits before the point, leading zeros not counted
	MaxPricePlaces   = 12     // decimals of a market price
	FutureSeconds    = 60     // how far an event may end after the log received it
)

// Purchase is the way in which a SKU is paid for.
type Purchase string

// The purchases.
const (
	OnDemand Purchase = "on_demand"
	Reserved Purchase = "reserved"
	Spot     Purchase = "spot"
	PerTask  Purchase = "per_task"
)

// Valid reports whether p is one of the purchases.
func (p Purchase) Valid() bool {
	return p == OnDemand || p == Reserved || p == Spot || p == PerTask
}
