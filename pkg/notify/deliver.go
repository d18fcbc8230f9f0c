package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/suanpan/suanpan/pkg/catalog"
)

// Opener returns the channel of a receiver. See [Gateway.Open].
type Opener func(to catalog.Channel) (Channel, error)

// DelivererOptions bound what a deliverer does at a time. Zero values have defaults.
type DelivererOptions struct {
	Schedule    Schedule      // default: DefaultSchedule
	Concurrency int           // receivers that are sent to at the same time; default 16
	Batch       int           // deliveries that one step takes up at most; default 500
	PerChannel  int           // and of one receiver; default 20
	SendTimeout time.Duration // of one attempt; default 30 s
	// StepTime is after how long a step begins no attempt any more; default 30 s. What is left
	// is due at the next step.
	StepTime time.Duration
}

func (o *DelivererOptions) setDefaults() {
	if o.Schedule == (Schedule{}) {
		o.Schedule = DefaultSchedule()
	}
	if !o.Schedule.valid() {
		panic("BUG: a schedule needs 0 < Min <= Max and a horizon")
	}
	defaults := func(n *int, value int) {
		if *n <= 0 {
			*n = value
		}
	}
	defaults(&o.Concurrency, 16)
	defaults(&o.Batch, 500)
	defaults(&o.PerChannel, 20)
	if o.SendTimeout <= 0 {
		o.SendTimeout = 30 * time.Second
	}
	if o.StepTime <= 0 {
		o.StepTime = 30 * time.Second
	}
}

// recordTime bounds writing a result, which goes on when the step's context has ended.
const recordTime = 10 * time.Second

// Deliverer sends what is due. It belongs to one goroutine.
type Deliverer struct {
	store   Store
	open    Opener
	log     *slog.Logger
	options DelivererOptions

	unwritten []result // of attempts that the store does not know yet
}

// result is what an attempt made of a delivery.
type result struct {
	delivery Delivery
	attempt  Attempt
}

// StepReport says what a step did.
type StepReport struct {
	Attempts []Attempt  // that were made and written, in no order
	Dead     []Delivery // that were given up, in no order
}

// NewDeliverer returns a deliverer over a store.
func NewDeliverer(store Store, open Opener, log *slog.Logger, o DelivererOptions) *Deliverer {
	o.setDefaults()
	return &Deliverer{store: store, open: open, log: log, options: o}
}

// Step makes one attempt at each delivery that is due, within the bounds of the options. The
// messages of one receiver go one after the other; after one that failed, the others of it wait
// for the next step. The error is the store's: attempts that it did not take are written first at
// the next step, and nothing is sent before they are.
func (d *Deliverer) Step(ctx context.Context, now time.Time) (StepReport, error) {
	var report StepReport
	if err := d.write(ctx, &report, now); err != nil {
		return report, err
	}
	due, err := d.store.Due(ctx, now, d.options.Batch, d.options.PerChannel)
	if err != nil {
		return report, fmt.Errorf("find due deliveries: %w", err)
	}
	groups := byChannel(due)
	names := make([]string, len(groups))
	for i, group := range groups {
		names[i] = group[0].Channel
	}
	if len(names) == 0 {
		return report, nil
	}
	disabled, err := d.store.Disabled(ctx, names)
	if err != nil {
		return report, fmt.Errorf("find disabled receivers: %w", err)
	}
	d.unwritten = d.sendAll(ctx, now, groups, disabled)
	return report, d.write(ctx, &report, now)
}

// byChannel groups deliveries by receiver, in the order of the first of each.
func byChannel(due []Delivery) [][]Delivery {
	var groups [][]Delivery
	index := make(map[string]int)
	for _, delivery := range due {
		i, ok := index[delivery.Channel]
		if !ok {
			i = len(groups)
			index[delivery.Channel] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], delivery)
	}
	return groups
}

// sendAll sends the groups, Concurrency at a time, and returns when all are done.
func (d *Deliverer) sendAll(
	ctx context.Context, now time.Time, groups [][]Delivery, disabled map[string]bool,
) []result {
	var mu sync.Mutex
	var results []result
	var workers sync.WaitGroup
	work := make(chan []Delivery, len(groups))
	for _, group := range groups {
		work <- group
	}
	close(work)
	began := time.Now()
	more := func() bool { return ctx.Err() == nil && time.Since(began) < d.options.StepTime }
	for range min(d.options.Concurrency, len(groups)) {
		workers.Go(func() {
			for group := range work {
				got := d.sendGroup(ctx, now, group, disabled[group[0].Channel], more)
				mu.Lock()
				results = append(results, got...)
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return results
}

// sendGroup sends the messages of one receiver until one fails.
func (d *Deliverer) sendGroup(
	ctx context.Context, now time.Time, group []Delivery, disabled bool, more func() bool,
) []result {
	var results []result
	for _, delivery := range group {
		if disabled {
			results = append(results, refused(delivery, now))
			continue
		}
		if !more() {
			break
		}
		r, made := d.attempt(ctx, now, delivery)
		if !made {
			break
		}
		results = append(results, r)
		disabled = r.attempt.Outcome == Disabled
		if r.attempt.Outcome == Retry {
			break
		}
	}
	return results
}

// attempt makes one attempt. False means that the step ended within it: nothing is known, so
// nothing counts.
func (d *Deliverer) attempt(ctx context.Context, now time.Time, to Delivery) (result, bool) {
	began := time.Now()
	channel, err := d.open(to.To)
	if err == nil {
		sending, cancel := context.WithTimeout(ctx, d.options.SendTimeout)
		err = channel.Send(sending, to.Message)
		cancel()
	}
	if err != nil && ctx.Err() != nil {
		return result{}, false
	}
	return d.judge(to, classify(err), now, time.Since(began)), true
}

// judge returns what follows from an attempt at now.
func (d *Deliverer) judge(to Delivery, e SendError, now time.Time, took time.Duration) result {
	to.Attempts++
	if to.First.IsZero() {
		to.First = now
	}
	to.Outcome, to.Status, to.Error = e.Outcome, e.Status, ""
	if e.Err != nil {
		to.Error = oneLine(e.Err.Error(), maxErrorBytes)
	}
	a := Attempt{
		Message: to.Message.ID, Channel: to.Channel, Tenant: to.Message.Tenant,
		Type: to.Message.Type, Round: to.Round, Number: to.Attempts, Time: now, Outcome: e.Outcome,
		Status: e.Status, Latency: took, Error: to.Error,
	}
	switch e.Outcome {
	case Delivered:
		to.State, to.Done = StateDelivered, now.Add(took)
	case Retry:
		key := to.Message.ID + " " + to.Channel
		next, again := d.options.Schedule.Next(key, to.Attempts, to.First, now, e.After)
		if to.Next = next; !again {
			to.State, to.Outcome, to.Done = StateDead, Expired, now.Add(took)
		}
	case Rejected, Disabled, Expired:
		to.State, to.Done = StateDead, now.Add(took)
	}
	return result{to, a}
}

// maxErrorBytes bounds what is kept of an error.
const maxErrorBytes = 500

// refused returns what becomes of a delivery to a receiver that wants no more messages.
func refused(to Delivery, now time.Time) result {
	to.State, to.Done, to.Outcome, to.Status = StateDead, now, Disabled, 0
	to.Error = "receiver is disabled since it answered that it wants no more messages"
	return result{to, Attempt{
		Message: to.Message.ID, Channel: to.Channel, Tenant: to.Message.Tenant,
		Type: to.Message.Type, Round: to.Round, Time: now, Outcome: Disabled, Error: to.Error,
	}}
}

// write records results. Those that the store does not take are kept.
func (d *Deliverer) write(ctx context.Context, report *StepReport, now time.Time) error {
	if len(d.unwritten) == 0 {
		return nil
	}
	// What was sent was sent: that must be known even when the step is being ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	var left []result
	var errs []error
	for _, r := range d.unwritten {
		if err := d.record(ctx, r, now); err != nil {
			left, errs = append(left, r), append(errs, err)
			continue
		}
		if r.attempt.Number > 0 {
			report.Attempts = append(report.Attempts, r.attempt)
		}
		if r.delivery.State == StateDead {
			report.Dead = append(report.Dead, r.delivery)
		}
		d.tell(ctx, r)
	}
	d.unwritten = left
	if len(errs) > 0 {
		return fmt.Errorf("record deliveries: %w", errors.Join(errs...))
	}
	return nil
}

// record writes one result. A disabled receiver is known before its delivery ends.
func (d *Deliverer) record(ctx context.Context, r result, now time.Time) error {
	if r.attempt.Outcome == Disabled && r.attempt.Number > 0 {
		if err := d.store.Disable(ctx, r.delivery.Channel, now); err != nil {
			return err
		}
	}
	return d.store.Record(ctx, r.delivery, r.attempt)
}

// tell logs what an operator may want to know.
func (d *Deliverer) tell(ctx context.Context, r result) {
	if r.delivery.State == StateDelivered {
		return
	}
	text, level := "message was not delivered and is tried again", slog.LevelInfo
	if r.delivery.State == StateDead {
		text, level = "message is given up: a dead letter", slog.LevelWarn
	}
	d.log.Log(ctx, level, text, "message", r.attempt.Message, "type", r.attempt.Type,
		"tenant", r.attempt.Tenant, "channel", ShowChannel(r.delivery.To),
		"attempts", r.delivery.Attempts, "outcome", string(r.delivery.Outcome),
		"status", r.delivery.Status, "next", r.delivery.Next, "error", r.delivery.Error)
}
