package alert

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
)

// Status is what has become of an alert.
type Status string

// The statuses of an alert. It begins as firing and ends as resolved.
const (
	Firing       Status = "firing"
	Acknowledged Status = "acknowledged" // by a person, who sees to it
	Resolved     Status = "resolved"
)

// Kind says what an alert is about: a budget, or what a policy's type watches.
type Kind string

// Budget is of a budget that has reached a threshold.
const Budget Kind = "budget"

// Why says why an alert resolved.
type Why string

// The reasons why alerts resolve.
const (
	Recovered Why = "recovered" // it is no longer so
	Over      Why = "over"      // of a budget: the period that it was about is over
	Ended     Why = "ended"     // the budget or policy was changed or is no more
)

// Alert is one decision to tell somebody something, or one change of it: a record of the billing
// log. The first record of an ID counts.
type Alert struct {
	ID      string `json:"id"`  // of this record: the key, and what became of it
	Key     string `json:"key"` // of all records of one alert
	Status  Status `json:"status"`
	Kind    Kind   `json:"kind"`
	Tenant  string `json:"tenant"`            // "" where it is about the platform
	Name    string `json:"name"`              // of the budget or policy
	Version int64  `json:"version"`           // second at which its version starts
	Subject string `json:"subject,omitempty"` // what a policy found, such as a session
	Episode int64  `json:"episode,omitempty"` // from 1: how often this policy found this subject

	Labels  map[string]string `json:"labels,omitempty"` // for programs
	Figures []Figure          `json:"figures,omitempty"`
	Query   string            `json:"query,omitempty"` // SQL that shows the figures
	Hint    *Hint             `json:"hint,omitempty"`

	// Of budgets only.
	Period    string `json:"period,omitempty"` // YYYY-MM or YYYY-MM-DD, local
	Threshold string `json:"threshold,omitempty"`
	Spend     string `json:"spend,omitempty"`
	Amount    string `json:"amount,omitempty"`
	Currency  string `json:"currency,omitempty"`
	Forecast  string `json:"forecast,omitempty"`

	At    string    `json:"at"`              // when this was decided, RFC 3339
	Since string    `json:"since,omitempty"` // when it began to fire, where that is not At
	Wait  string    `json:"wait,omitempty"`  // the end of quiet hours, before which nobody is told
	Why   Why       `json:"why,omitempty"`   // of a resolved one
	By    string    `json:"by,omitempty"`    // who acknowledged it
	Note  string    `json:"note,omitempty"`
	Owner string    `json:"owner,omitempty"`
	To    []Contact `json:"to"`
}

// Figure is one number that an alert rests on.
type Figure struct {
	Name  string `json:"name"`  // such as utilisation: messages have words for it
	Value string `json:"value"` // a decimal, an instant or a word
	Unit  string `json:"unit,omitempty"`
}

// Hint is what to do about an alert.
type Hint struct {
	// Options are what would do instead of what is held, the cheapest first.
	Options []Option `json:"options,omitempty"`
	Stop    *Stop    `json:"stop,omitempty"`
	// Lock is a price worth a commitment.
	Lock *Lock `json:"lock,omitempty"`
}

// Option is an amount of a SKU that would do.
type Option struct {
	SKU       string `json:"sku"`
	Amount    string `json:"amount"`
	MemoryMiB int64  `json:"memory_mib"`         // that it has
	Price     string `json:"price,omitempty"`    // of the amount at list prices, per Per
	Per       string `json:"per,omitempty"`      // unit of time
	Currency  string `json:"currency,omitempty"` // ISO 4217
}

// Stop suggests to a scheduler that it ends a lease.
type Stop struct {
	Tenant   string   `json:"tenant"`
	Lease    string   `json:"lease"`
	Sessions []string `json:"sessions"`
	Nodes    []string `json:"nodes,omitempty"`
}

// Lock suggests to commit to a SKU while its price is low.
type Lock struct {
	SKU      string `json:"sku"`
	Region   string `json:"region"`
	Price    string `json:"price"`
	Per      string `json:"per"`
	Currency string `json:"currency"`
}

// Contact is a channel that an alert goes to.
type Contact struct {
	Kind   catalog.ChannelKind `json:"kind"`
	Target string              `json:"target,omitempty"`
	Secret string              `json:"secret,omitempty"` // its name
}

func contacts(channels []catalog.Channel) []Contact {
	to := make([]Contact, len(channels))
	for i, c := range channels {
		to[i] = Contact{c.Kind, c.Target, c.Secret}
	}
	return to
}

// recordID is the ID of the record that says what became of an alert.
func recordID(key string, status Status) string {
	if status == Firing {
		return key
	}
	return key + "," + string(status)
}

// stem is the key without its episode: what fires again has the same one.
func (a *Alert) stem() string {
	if a.Kind == Budget {
		return a.Key
	}
	return strings.TrimSuffix(a.Key, ","+strconv.FormatInt(a.Episode, 10))
}

func stemOf(policy, tenant, subject string) string {
	return policy + "," + tenant + "," + subject
}

func budgetKey(name string, version int64, period, threshold string) string {
	return fmt.Sprintf("%s,%s,%d,%s,%s", Budget, name, version, period, threshold)
}

// Validate makes sure that an alert of the log has the form that is relied on: it comes from
// outside. It fails with what is wrong with it.
func (a *Alert) Validate() error {
	key := budgetKey(a.Name, a.Version, a.Period, a.Threshold)
	if a.Kind != Budget {
		key = stemOf(a.Name, a.Tenant, a.Subject) + "," + strconv.FormatInt(a.Episode, 10)
	}
	_, err := metering.ParseInstant(a.At)
	switch {
	case a.Kind == Budget && a.Tenant == "":
		return errors.New("an alert of a budget has no tenant")
	case a.Kind != Budget && (catalog.Thresholds(catalog.PolicyType(a.Kind)) == nil || a.Episode < 1):
		return fmt.Errorf("alert %q is of no policy", a.ID)
	case a.Key != key:
		return fmt.Errorf("alert %q has the key %q, not %q", a.ID, a.Key, key)
	case a.Status != Firing && a.Status != Acknowledged && a.Status != Resolved:
		return fmt.Errorf("alert %q has the status %q", a.ID, a.Status)
	case a.ID != recordID(a.Key, a.Status):
		return fmt.Errorf("alert %q is the record of %q", a.ID, recordID(a.Key, a.Status))
	case err != nil:
		return fmt.Errorf("alert %q: %w", a.ID, err)
	}
	return nil
}

// become returns the record that says what became of a.
func (a *Alert) become(status Status, now int64) Alert {
	next := *a
	next.Status, next.ID = status, recordID(a.Key, status)
	next.At, next.Wait = metering.InstantOf(now).String(), ""
	if next.Since == "" {
		next.Since = a.At
	}
	return next
}

// Acknowledge returns the record that says that a person sees to an alert. It fails where that is
// too late.
func (a *Alert) Acknowledge(by, note string, now int64) (Alert, error) {
	if a.Status != Firing {
		return Alert{}, fmt.Errorf("acknowledge alert %s: it is %s already", a.Key, a.Status)
	}
	next := a.become(Acknowledged, now)
	next.By, next.Note = by, note
	return next, nil
}

// resolve returns the record that says that an alert is over, and to whom that is told: that a
// period has passed is no news, but Alertmanager shows an alert until somebody ends it.
func (a *Alert) resolve(why Why, now int64) Alert {
	next := a.become(Resolved, now)
	next.Why = why
	if why == Over {
		next.To = []Contact{}
		for _, c := range a.To {
			if c.Kind == catalog.Alertmanager {
				next.To = append(next.To, c)
			}
		}
	}
	return next
}
