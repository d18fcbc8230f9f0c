package alert

import (
	"cmp"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/money"
)

// Finding is what a policy sees of a subject at one look. What is told of it is decided by the life
// of the alert.
type Finding struct {
	Policy  *catalog.Policy
	Tenant  string // "" where it is about the platform
	Project string // "" where it is about no project
	Subject string // what it is about, within policy and tenant: a session, a lease, a card
	Labels  map[string]string
	Figures []Figure
	Query   string // SQL that shows the figures; "" is none
	Hint    *Hint  // nil: none
}

// Figure is one number that a finding rests on.
type Figure struct {
	Name  string `json:"name"` // a word such as utilisation; messages name it in their language
	Value string `json:"value"`
	Unit  string `json:"unit,omitempty"` // such as %, MiB, or a currency
}

// Action is what a hint proposes.
type Action string

// What can be proposed.
const (
	UseFraction Action = "use_fraction" // hold less of the same SKU
	UseSKU      Action = "use_sku"      // hold another SKU
	Stop        Action = "stop"         // end the sessions
	Lock        Action = "lock"         // lock the price
)

// Hint is what could be done. Members that an action does not need are empty.
type Hint struct {
	Action   Action   `json:"action"`
	SKU      string   `json:"sku,omitempty"`
	Held     string   `json:"held,omitempty"` // how much of it: 0.3, 2
	Region   string   `json:"region,omitempty"`
	Price    string   `json:"price,omitempty"` // of all that is held, for an hour, at list prices
	Saves    string   `json:"saves,omitempty"` // the same: the present price less Price
	Currency string   `json:"currency,omitempty"`
	Lease    string   `json:"lease,omitempty"`
	Sessions []string `json:"sessions,omitempty"`
	Nodes    []string `json:"nodes,omitempty"`
}

// Key is what a finding is about: findings at other looks with the same one continue it.
func (f *Finding) Key() string {
	return strings.Join([]string{f.Policy.Name, f.Tenant, f.Subject}, ",")
}

// sortFindings orders findings by what they are about.
func sortFindings(all []Finding) []Finding {
	slices.SortFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Subject, b.Subject))
	})
	return all
}

// whole is a number as an amount.
func whole(n int64) money.Amount { return money.New(big.NewInt(n), 0) }

// number prints a whole number.
func number(n int64) string { return strconv.FormatInt(n, 10) }

// percent prints millionths in percent, with two decimals at most.
func percent(millionths int64) string {
	return money.New(big.NewInt(millionths), 4).Round(2, money.HalfUp).String()
}

// below reports whether a utilisation in millionths is below a policy's threshold, in percent.
func below(p *catalog.Policy, millionths int64) bool {
	return money.New(big.NewInt(millionths), 4).Cmp(p.Threshold("utilisation")) < 0
}

// utilisation are the figures of a utilisation and its threshold.
func utilisation(p *catalog.Policy, name string, millionths int64) []Figure {
	return []Figure{
		{name, percent(millionths), "%"},
		{"threshold", p.Threshold("utilisation").String(), "%"},
	}
}
