package notify

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/suanpan/suanpan/pkg/catalog"
)

// State says where a delivery is in its life.
type State string

// The states. A delivery begins pending and ends as one of the others.
const (
	StatePending   State = "pending"
	StateDelivered State = "delivered"
	StateDead      State = "dead" // a dead letter: Outcome says why
)

// Delivery is one message on its way to one receiver. Its key is (Message.ID, Channel); of two
// states of it, the one with the larger Version counts.
type Delivery struct {
	Message  Message
	To       catalog.Channel
	Channel  string // the name of To, see [ChannelName]
	State    State
	Round    int // how often a person began anew after it was given up, see [Queue.Again]
	Attempts int // of this round
	Created  time.Time
	First    time.Time // of the first attempt of this round; the zero time before it
	Next     time.Time // pending: when the next attempt is due
	Done     time.Time // not pending: when it ended
	Outcome  Outcome   // of the last attempt; Expired in the end of a delivery that was given up
	Status   int       // of the last attempt: HTTP's or SMTP's; 0 is none
	Error    string    // of the last attempt; "" is none
}

// Version orders the states of a delivery, whoever wrote them and however late: what arrived has
// arrived, also when another process still tries or has given up.
func (d *Delivery) Version() uint64 {
	rank := uint64(0)
	switch d.State {
	case StatePending:
	case StateDead:
		rank = 1
	case StateDelivered:
		rank = 2
	}
	return uint64(d.Round)<<34 | rank<<32 | uint64(d.Attempts)
}

// Latency is how long the message took from its decision to its receiver, or until it was given
// up; 0 while it is pending.
func (d *Delivery) Latency() time.Duration {
	if d.State == StatePending {
		return 0
	}
	return d.Done.Sub(d.Message.Time)
}

// Attempt is one entry of the delivery log.
type Attempt struct {
	Message, Channel, Tenant, Type string
	Round                          int // of the delivery
	Number                         int // from 1; 0: none was made, as the receiver is disabled
	Time                           time.Time
	Outcome                        Outcome
	Status                         int           // HTTP's or SMTP's; 0 is none
	Latency                        time.Duration // of the attempt
	Error                          string        // "" is none
}

// Store keeps deliveries and their log. It must be durable when a method returns nil. Writes may be
// repeated after an error, and two processes may write the same delivery: the state with the larger
// Version stays, and of equal ones any.
type Store interface {
	// Add keeps deliveries: all of them, or after an error any part.
	Add(ctx context.Context, deliveries []Delivery) error
	// Due returns deliveries that are pending, by the state that stays, and whose Next is not after
	// now: at most limit in all and perChannel of each channel, in the order of Next, message and
	// channel.
	Due(ctx context.Context, now time.Time, limit, perChannel int) ([]Delivery, error)
	// Record keeps the new state of a delivery and the log's entry, both or neither.
	Record(ctx context.Context, d Delivery, a Attempt) error
	// Disable keeps that a receiver wants no more messages, until somebody enables it again.
	Disable(ctx context.Context, channel string, at time.Time) error
	// Disabled returns which of the channels are disabled.
	Disabled(ctx context.Context, channels []string) (map[string]bool, error)
}

// ChannelName names a channel in stores: kind, secret and target, such as
// "webhook:default:https://example.com/hook". It may hold what [ShowChannel] hides.
func ChannelName(c catalog.Channel) string {
	switch c.Kind {
	case catalog.Log:
		return string(catalog.Log)
	case catalog.Webhook:
		return string(c.Kind) + ":" + c.Secret + ":" + c.Target
	case catalog.Email, catalog.Alertmanager:
	}
	return string(c.Kind) + ":" + c.Target
}

// ShowChannel names a channel for logs: of a URL only the host, as the rest may be a secret.
func ShowChannel(c catalog.Channel) string {
	if c.Kind == catalog.Webhook || c.Kind == catalog.Alertmanager {
		host := "?"
		if u, err := url.Parse(c.Target); err == nil {
			host = u.Host
		}
		return string(c.Kind) + ":" + host
	}
	return ChannelName(c)
}

// Queue takes messages for delivery.
type Queue struct{ store Store }

// NewQueue returns a queue over a store.
func NewQueue(store Store) *Queue { return &Queue{store} }

// Posting is a message and who is to have it.
type Posting struct {
	Message   Message
	To        []catalog.Channel
	Now       time.Time
	NotBefore time.Time // when quiet hours end; a past one is now
}

// Add keeps one delivery per message and channel: all of them, or after an error any part. A
// message that was added already is not sent again, so it may be repeated until it returns nil.
func (q *Queue) Add(ctx context.Context, postings ...Posting) error {
	var deliveries []Delivery
	for i := range postings {
		p := &postings[i]
		if err := p.Message.Validate(); err != nil {
			return fmt.Errorf("add message %q: %w", p.Message.ID, err)
		}
		deliveries = append(deliveries, p.deliveries()...)
	}
	if len(deliveries) == 0 {
		return nil
	}
	if err := q.store.Add(ctx, deliveries); err != nil {
		return fmt.Errorf("add %d messages: %w", len(postings), err)
	}
	return nil
}

// deliveries are one per channel.
func (p *Posting) deliveries() []Delivery {
	next := p.Now
	if p.NotBefore.After(p.Now) {
		next = p.NotBefore
	}
	var all []Delivery
	known := make(map[string]bool)
	for _, c := range p.To {
		name := ChannelName(c)
		if known[name] {
			continue
		}
		known[name] = true
		all = append(all, Delivery{
			Message: p.Message, To: c, Channel: name, State: StatePending, Created: p.Now, Next: next,
		})
	}
	return all
}

// Again begins a dead letter anew, when what it failed of is mended: with the same id, due now, and
// for another day. A receiver that is disabled must be enabled first.
func (q *Queue) Again(ctx context.Context, d Delivery, now time.Time) error {
	if d.State != StateDead {
		return fmt.Errorf("deliver message %q again: it is %s, not dead", d.Message.ID, d.State)
	}
	again := Delivery{
		Message: d.Message, To: d.To, Channel: d.Channel, State: StatePending, Round: d.Round + 1,
		Created: d.Created, Next: now,
	}
	if err := q.store.Add(ctx, []Delivery{again}); err != nil {
		return fmt.Errorf("deliver message %q again: %w", d.Message.ID, err)
	}
	return nil
}
