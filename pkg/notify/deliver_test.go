package notify_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/notify"
	"github.com/suanpan/suanpan/pkg/notify/notifytest"
)

// far is a receiver of tests, whose sends a test answers.
type far struct {
	mu     sync.Mutex
	sent   []string // "target id"
	answer func(ctx context.Context, target string, m notify.Message) error
}

func (f *far) open(to catalog.Channel) (notify.Channel, error) {
	return farChannel{f, to.Target}, nil
}

type farChannel struct {
	far    *far
	target string
}

// Send implements notify.Channel.
func (c farChannel) Send(ctx context.Context, m notify.Message) error {
	c.far.mu.Lock()
	c.far.sent = append(c.far.sent, c.target+" "+m.ID)
	c.far.mu.Unlock()
	if c.far.answer == nil {
		return nil
	}
	return c.far.answer(ctx, c.target, m)
}

// webhooks are channels with these targets.
func webhooks(targets ...string) []catalog.Channel {
	var all []catalog.Channel
	for _, target := range targets {
		all = append(all, catalog.Channel{Kind: catalog.Webhook, Target: target})
	}
	return all
}

// numbered is the n-th message of tests.
func numbered(n int) notify.Message {
	m := reached()
	m.ID = fmt.Sprintf("msg_%03d", n)
	return m
}

// add queues a message.
func add(t *testing.T, s notify.Store, m notify.Message, to []catalog.Channel) {
	t.Helper()
	if err := notify.NewQueue(s).Add(t.Context(), posting(m, to, time.Time{})); err != nil {
		t.Fatal(err)
	}
}

// step makes one step that must not fail.
func step(t *testing.T, d *notify.Deliverer, now time.Time) notify.StepReport {
	t.Helper()
	report, err := d.Step(t.Context(), now)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func newDeliverer(s notify.Store, f *far) *notify.Deliverer {
	return notify.NewDeliverer(s, f.open, quiet(), notify.DelivererOptions{})
}

func TestDeliverer_triesForADayAndThenKeepsADeadLetter(t *testing.T) {
	store := notifytest.NewStore()
	receiver := &far{answer: func(context.Context, string, notify.Message) error {
		return &notify.SendError{Outcome: notify.Retry, Status: 500, Err: errors.New("broken")}
	}}
	add(t, store, numbered(1), webhooks("a"))
	var dead []notify.Delivery
	now := began
	for len(dead) == 0 && now.Sub(began) < 30*time.Hour {
		// Every step is another process: the store says all there is to know.
		dead = step(t, newDeliverer(store, receiver), now).Dead
		if pending := store.Deliveries()[0]; pending.State == notify.StatePending {
			now = pending.Next
		}
	}
	if len(dead) != 1 || now.Sub(began) != 24*time.Hour {
		t.Fatalf("%d dead after %s", len(dead), now.Sub(began))
	}
	d := store.Deliveries()[0]
	if d.State != notify.StateDead || d.Outcome != notify.Expired || d.Status != 500 ||
		d.Error != "retry: status 500: broken" || d.Latency() < 24*time.Hour {
		t.Errorf("%+v", d)
	}
	log := store.Attempts()
	if len(log) != d.Attempts || len(log) < 15 || len(receiver.sent) != len(log) {
		t.Errorf("%d attempts, %d in the log, %d sent", d.Attempts, len(log), len(receiver.sent))
	}
	for i, a := range log {
		if a.Number != i+1 || a.Outcome != notify.Retry || a.Status != 500 || a.Message != "msg_001" ||
			a.Tenant != "acme" || a.Channel != "webhook::a" {
			t.Errorf("attempt %d of the log: %+v", i, a)
		}
	}
	step(t, newDeliverer(store, receiver), now.Add(48*time.Hour))
	if len(receiver.sent) != len(log) {
		t.Error("a dead letter was sent")
	}
}

// After a crash between sending and writing the next process sends again, with the same id. A
// process that lives on knows what it sent and only writes again.
func TestDeliverer_crashSendsAgainAndAFailedWriteDoesNot(t *testing.T) {
	store, receiver := notifytest.NewStore(), &far{}
	add(t, store, numbered(1), webhooks("a"))
	broken := errors.New("disk full")
	store.Fault = func(method string) error {
		if method == "Record" {
			return broken
		}
		return nil
	}
	lives := newDeliverer(store, receiver)
	for range 3 {
		if _, err := lives.Step(t.Context(), began); !errors.Is(err, broken) {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"a msg_001"}, receiver.sent); diff != "" {
		t.Error(diff)
	}
	next := newDeliverer(store, receiver)
	store.Fault = nil
	if report := step(t, next, began); len(report.Attempts) != 1 {
		t.Errorf("%+v", report)
	}
	if diff := cmp.Diff([]string{"a msg_001", "a msg_001"}, receiver.sent); diff != "" {
		t.Error(diff)
	}
	step(t, lives, began) // it writes what it knows, and sends no more
	if d := store.Deliveries()[0]; len(receiver.sent) != 2 || d.State != notify.StateDelivered {
		t.Errorf("sent %v, %+v", receiver.sent, d)
	}
}

func TestDeliverer_goneReceiverIsDisabledForAllItsMessages(t *testing.T) {
	store := notifytest.NewStore()
	receiver := &far{answer: func(_ context.Context, target string, _ notify.Message) error {
		if target == "gone" {
			return &notify.SendError{Outcome: notify.Disabled, Status: 410}
		}
		return nil
	}}
	for n := range 3 {
		add(t, store, numbered(n), webhooks("gone", "here"))
	}
	d := newDeliverer(store, receiver)
	if report := step(t, d, began); len(report.Dead) != 3 || len(report.Attempts) != 4 {
		t.Errorf("%d dead, %d attempts", len(report.Dead), len(report.Attempts))
	}
	add(t, store, numbered(3), webhooks("gone"))
	step(t, newDeliverer(store, receiver), began)
	sent := 0
	for _, s := range receiver.sent {
		if strings.HasPrefix(s, "gone") {
			sent++
		}
	}
	if sent != 1 {
		t.Errorf("%d messages went to a receiver that wants none: %v", sent, receiver.sent)
	}
	for _, d := range store.Deliveries() {
		if gone := d.To.Target == "gone"; gone && d.Outcome != notify.Disabled ||
			!gone && d.Outcome != notify.Delivered {
			t.Errorf("%s to %s: %s", d.Message.ID, d.To.Target, d.Outcome)
		}
	}
	store.Enable("webhook::gone")
	receiver.answer = nil
	add(t, store, numbered(4), webhooks("gone"))
	if report := step(t, d, began); len(report.Dead) != 0 || len(report.Attempts) != 1 {
		t.Errorf("after it was enabled: %+v", report)
	}
}

// A receiver that does not answer costs its own messages one timeout a step, and others nothing.
func TestDeliverer_receiversAreBoundedAndDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := notifytest.NewStore()
		var mu sync.Mutex
		now, most, busy := 0, 0, make(map[string]int)
		receiver := &far{answer: func(ctx context.Context, target string, _ notify.Message) error {
			mu.Lock()
			now++
			busy[target]++
			most = max(most, now)
			if busy[target] > 1 {
				t.Errorf("two messages at a time to %s", target)
			}
			mu.Unlock()
			defer func() {
				mu.Lock()
				now--
				busy[target]--
				mu.Unlock()
			}()
			if target == "0 silent" {
				<-ctx.Done()
				return ctx.Err()
			}
			time.Sleep(time.Second)
			return nil
		}}
		for n := range 10 {
			add(t, store, numbered(n), webhooks("0 silent", "a", "b", "c", "d"))
		}
		d := notify.NewDeliverer(store, receiver.open, quiet(), notify.DelivererOptions{Concurrency: 3})
		start := time.Now()
		report := step(t, d, began)
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("the step took %s, want the timeout of one attempt", took)
		}
		if len(report.Attempts) != 41 || most != 3 {
			t.Errorf("%d attempts, %d at a time", len(report.Attempts), most)
		}
	})
}

func TestDeliverer_stepEndsAndLeavesTheRestDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := notifytest.NewStore()
		receiver := &far{answer: func(context.Context, string, notify.Message) error {
			time.Sleep(14 * time.Second)
			return nil
		}}
		for n := range 10 {
			add(t, store, numbered(n), webhooks("slow"))
		}
		d := newDeliverer(store, receiver)
		for want := 10; want > 0; want -= 3 {
			if n := len(step(t, d, began).Attempts); n != min(want, 3) {
				t.Errorf("%d attempts, want %d", n, min(want, 3))
			}
		}
	})
}

func TestDeliverer_boundsOfAStep(t *testing.T) {
	store, receiver := notifytest.NewStore(), &far{}
	for n := range 9 {
		add(t, store, numbered(n), webhooks("a", "b", "c"))
	}
	d := notify.NewDeliverer(store, receiver.open, quiet(),
		notify.DelivererOptions{Batch: 5, PerChannel: 4, Concurrency: 1})
	step(t, d, began)
	want := []string{"a msg_000", "a msg_001", "b msg_000", "b msg_001", "c msg_000"}
	if diff := cmp.Diff(want, receiver.sent); diff != "" {
		t.Error(diff)
	}
}

// When the program is told to stop, what was cut off did not happen, and what arrived is written.
func TestDeliverer_stopWritesWhatArrived(t *testing.T) {
	store := notifytest.NewStore()
	ctx, cancel := context.WithCancel(t.Context())
	receiver := &far{answer: func(ctx context.Context, target string, _ notify.Message) error {
		if target == "quick" {
			cancel()
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}}
	add(t, store, numbered(1), webhooks("quick", "slow"))
	if _, err := newDeliverer(store, receiver).Step(ctx, began); err != nil {
		t.Fatal(err)
	}
	for _, d := range store.Deliveries() {
		if d.To.Target == "quick" && d.State != notify.StateDelivered ||
			d.To.Target == "slow" && (d.State != notify.StatePending || d.Attempts != 0) {
			t.Errorf("%s: %s, %d attempts", d.To.Target, d.State, d.Attempts)
		}
	}
}

func TestQueue_keepsEachMessageOncePerReceiver(t *testing.T) {
	store, receiver := notifytest.NewStore(), &far{}
	queue := notify.NewQueue(store)
	to := append(webhooks("a", "a", "b"), catalog.Channel{Kind: catalog.Log},
		catalog.Channel{Kind: catalog.Webhook, Target: "a", Secret: "other"})
	for range 2 { // decided by one process, and again by the next
		if err := queue.Add(t.Context(), posting(reached(), to, began.Add(-time.Hour))); err != nil {
			t.Fatal(err)
		}
		step(t, newDeliverer(store, receiver), began)
	}
	if n := len(receiver.sent); n != 4 {
		t.Errorf("%d sent: %v", n, receiver.sent)
	}
	if err := queue.Add(t.Context(), posting(reached(), nil, began)); err != nil {
		t.Errorf("no receiver: %v", err)
	}
	wrong := reached()
	wrong.ID = "a.b"
	err := queue.Add(t.Context(), posting(reached(), to, began), posting(wrong, to, began))
	if err == nil {
		t.Error("a wrong id was queued")
	}
}

// posting is of when it began.
func posting(m notify.Message, to []catalog.Channel, notBefore time.Time) notify.Posting {
	return notify.Posting{Message: m, To: to, Now: began, NotBefore: notBefore}
}

func TestQueue_quietHoursPostpone(t *testing.T) {
	store, receiver := notifytest.NewStore(), &far{}
	morning := began.Add(9 * time.Hour)
	err := notify.NewQueue(store).Add(t.Context(), posting(reached(), webhooks("a"), morning))
	if err != nil {
		t.Fatal(err)
	}
	d := newDeliverer(store, receiver)
	step(t, d, morning.Add(-time.Second))
	if len(receiver.sent) != 0 {
		t.Error("sent in quiet hours")
	}
	step(t, d, morning)
	if len(receiver.sent) != 1 {
		t.Error("not sent after them")
	}
}

// Property: whatever fails, stops or runs twice, every message either arrived at its receiver, with
// its own id, or is a dead letter after its day; nothing is sent that was not queued.
func TestDeliverer_losesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		store := notifytest.NewStore()
		var mu sync.Mutex // faults are drawn by several goroutines
		draw := func(name string, percent int) bool {
			mu.Lock()
			defer mu.Unlock()
			return rapid.IntRange(1, 100).Draw(rt, name) <= percent
		}
		arrived := make(map[string]int)
		receiver := &far{answer: func(_ context.Context, target string, m notify.Message) error {
			if draw("receiver fails", 40) {
				return errors.New("no route")
			}
			mu.Lock()
			defer mu.Unlock()
			arrived[target+" "+m.ID]++
			return nil
		}}
		faults := true
		store.Fault = func(string) error {
			if faults && draw("store fails", 15) {
				return errors.New("timeout")
			}
			return nil
		}
		options := notify.DelivererOptions{Concurrency: 1}
		start := func() *notify.Deliverer {
			return notify.NewDeliverer(store, receiver.open, quiet(), options)
		}
		two := []*notify.Deliverer{start(), start()}
		messages := rapid.IntRange(1, 5).Draw(rt, "messages")
		want := make(map[string]int)
		for n := range messages {
			for _, target := range []string{"a", "b"} {
				want[target+" "+numbered(n).ID] = 0
			}
			for notify.NewQueue(store).Add(t.Context(), posting(numbered(n), webhooks("a", "b"),
				began)) != nil {
			}
		}
		now := began
		for range 60 {
			i := rapid.IntRange(0, 1).Draw(rt, "process")
			if draw("crash", 20) {
				two[i] = start()
			}
			_, _ = two[i].Step(t.Context(), now)
			now = now.Add(time.Hour / 2)
		}
		faults = false
		for range 40 { // receivers still fail
			if _, err := two[0].Step(t.Context(), now); err != nil {
				rt.Fatal(err)
			}
			now = now.Add(5 * time.Hour)
		}
		for _, d := range store.Deliveries() {
			key := d.To.Target + " " + d.Message.ID
			if _, known := want[key]; !known || d.State == notify.StatePending {
				rt.Fatalf("%s is %s", key, d.State)
			}
			if d.State == notify.StateDelivered && arrived[key] == 0 {
				rt.Fatalf("%s is said to be delivered", key)
			}
			if d.State == notify.StateDead && now.Sub(d.First) < 24*time.Hour {
				rt.Fatalf("%s was given up after %s", key, now.Sub(d.First))
			}
		}
		if n := len(store.Deliveries()); n != 2*messages {
			rt.Fatalf("%d deliveries of %d", n, 2*messages)
		}
		for _, key := range slices.Collect(maps.Keys(arrived)) {
			if _, known := want[key]; !known {
				rt.Fatalf("%s was never queued", key)
			}
		}
	})
}

func TestDeliverer_realReceiverThatRecovers(t *testing.T) {
	answers := []int{503, 500, 200}
	var r *receiver
	r = receive(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(answers[len(r.all())-1])
	})
	var lines strings.Builder
	log := slog.New(slog.NewTextHandler(&lines, nil))
	gateway, err := notify.NewGateway(log, trusting(t, r))
	if err != nil {
		t.Fatal(err)
	}
	store := notifytest.NewStore()
	target := hook(r, "/services/T0KEN")
	add(t, store, reached(), []catalog.Channel{target, {Kind: catalog.Log}})
	d := notify.NewDeliverer(store, gateway.Open, log, notify.DelivererOptions{})
	now := began
	for range 3 {
		step(t, d, now)
		now = now.Add(time.Hour)
	}
	got := r.all()
	if len(got) != 3 || got[0].header.Get("webhook-id") != got[2].header.Get("webhook-id") {
		t.Fatalf("%d requests", len(got))
	}
	for _, d := range store.Deliveries() {
		wantAttempts, wantLatency := 3, 2*time.Hour
		if d.To.Kind == catalog.Log {
			wantAttempts, wantLatency = 1, 0
		}
		if late := d.Latency() - wantLatency; d.State != notify.StateDelivered ||
			d.Attempts != wantAttempts || late < 0 || late > 10*time.Second {
			t.Errorf("%s: %s, %d attempts, latency %s", d.Channel, d.State, d.Attempts, d.Latency())
		}
	}
	var statuses []int
	for _, a := range store.Attempts() {
		if a.Channel != "log" {
			statuses = append(statuses, a.Status)
			if a.Latency <= 0 {
				t.Errorf("attempt %d took %s", a.Number, a.Latency)
			}
		}
	}
	if diff := cmp.Diff([]int{503, 500, 0}, statuses); diff != "" {
		t.Error(diff)
	}
	contains(t, lines.String(), "level=WARN msg=\"Budget research reached 80 %\"",
		"evidence.Spend=\"812.50 USD\"", "message was not delivered and is tried again", "status=503")
	if strings.Contains(lines.String(), "T0KEN") {
		t.Errorf("the log shows a secret path:\n%s", lines.String())
	}
}

func TestQueue_deadLetterBeginsAnew(t *testing.T) {
	store := notifytest.NewStore()
	receiver := &far{answer: func(context.Context, string, notify.Message) error {
		return &notify.SendError{Outcome: notify.Rejected, Err: errors.New("no such user")}
	}}
	add(t, store, numbered(1), webhooks("a"))
	d, queue := newDeliverer(store, receiver), notify.NewQueue(store)
	if err := queue.Again(t.Context(), store.Deliveries()[0], began); err == nil {
		t.Error("a pending delivery began anew")
	}
	if report := step(t, d, began); len(report.Dead) != 1 {
		t.Fatalf("%+v", report)
	}
	add(t, store, numbered(1), webhooks("a")) // deciding it again changes nothing
	later := began.Add(72 * time.Hour)
	if report := step(t, d, later); len(report.Attempts) != 0 {
		t.Fatalf("%+v", report)
	}
	if err := queue.Again(t.Context(), store.Deliveries()[0], later); err != nil {
		t.Fatal(err)
	}
	receiver.answer = nil
	step(t, d, later)
	got := store.Deliveries()[0]
	if got.State != notify.StateDelivered || got.Round != 1 || got.Attempts != 1 ||
		len(receiver.sent) != 2 || receiver.sent[0] != receiver.sent[1] {
		t.Errorf("%+v, sent %v", got, receiver.sent)
	}
	if log := store.Attempts(); len(log) != 2 || log[1].Round != 1 || log[1].Number != 1 {
		t.Errorf("%+v", log)
	}
}

// Of what two processes write, the arrival counts, however late it is written.
func TestDelivery_versionsAreOrdered(t *testing.T) {
	d := func(round int, state notify.State, attempts int) uint64 {
		d := notify.Delivery{Round: round, State: state, Attempts: attempts}
		return d.Version()
	}
	ascending := []uint64{
		d(0, notify.StatePending, 0), d(0, notify.StatePending, 1), d(0, notify.StatePending, 99),
		d(0, notify.StateDead, 0), d(0, notify.StateDead, 20), d(0, notify.StateDelivered, 1),
		d(0, notify.StateDelivered, 2), d(1, notify.StatePending, 0), d(1, notify.StateDead, 1),
		d(2, notify.StatePending, 0),
	}
	for i, v := range ascending[1:] {
		if v <= ascending[i] {
			t.Errorf("state %d: version %d is not above %d", i+1, v, ascending[i])
		}
	}
}
