package alert

import "github.com/suanpan/suanpan/pkg/catalog"

// Alert is one decision to tell somebody something, made once.
type Alert struct {
	ID        string    `json:"id"` // what it is about: the same decision has the same one
	Kind      Kind      `json:"kind"`
	Tenant    string    `json:"tenant"`
	Name      string    `json:"name"`    // of the budget
	Version   int64     `json:"version"` // second at which its version starts
	Period    string    `json:"period"`  // YYYY-MM or YYYY-MM-DD, local
	Threshold string    `json:"threshold"`
	Spend     string    `json:"spend"`
	Amount    string    `json:"amount"`
	Currency  string    `json:"currency"`
	Forecast  string    `json:"forecast"`
	At        string    `json:"at"` // when it was decided, RFC 3339
	Owner     string    `json:"owner,omitempty"`
	To        []Contact `json:"to"`
}

// Kind says what an alert is about.
type Kind string

// Budget is of a budget that has reached a threshold.
const Budget Kind = "budget"

// Contact is a channel that an alert goes to.
type Contact struct {
	Kind   catalog.ChannelKind `json:"kind"`
	Target string              `json:"target,omitempty"`
	Secret string              `json:"secret,omitempty"` // its name
}
