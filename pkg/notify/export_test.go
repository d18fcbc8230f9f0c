package notify

import "net/netip"

// CheckAddress is the judgement on an address where none is allowed by settings.
func CheckAddress(a netip.Addr) error { return guard{}.check(a) }

// Built-in bounds that tests look at.
const (
	MaxSubjectBytes = maxSubjectBytes
	MaxErrorBytes   = maxErrorBytes
)
