package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/notify"
	"github.com/suanpan/suanpan/pkg/notify/notifytest"
)

// delivery is that of the n-th message to a webhook.
func delivery(n int, target string) notify.Delivery {
	to := catalog.Channel{Kind: catalog.Webhook, Target: target, Secret: "ops"}
	at := worldStart.Add(time.Duration(n) * time.Second)
	return notify.Delivery{
		Message: notify.Message{
			ID: fmt.Sprintf("msg_%d", n), Alert: fmt.Sprintf("budget,b,0,2026-01,%d", n),
			Type: "budget.threshold_reached", Time: at, Tenant: "acme", Severity: notify.Warning,
			Status: notify.Firing, Title: "it's 80 % \\ 预算", Summary: "a\nb",
			Labels: map[string]string{"budget": "b"}, Data: []byte(`{"a":"1"}`),
		},
		To: to, Channel: notify.ChannelName(to), State: notify.StatePending, Created: at, Next: at,
	}
}

// failing is a receiver that is never there.
type failing struct{}

func (failing) Send(context.Context, notify.Message) error {
	return &notify.SendError{Outcome: notify.Retry, Status: 502, Err: errors.New("bad gateway")}
}

// A message that nobody takes is given up a day after its first attempt, not before, although each
// attempt is another process that knows only what the store has. Analysts see all of it, without
// the secret in the receiver's URL.
func TestDeliveries_deadLetterAfterADay(t *testing.T) {
	s := store(t)
	ctx, d := t.Context(), s.Deliveries()
	one := delivery(0, "https://hooks.example.com:8443/a/secret?token=secret")
	err := notify.NewQueue(d).Add(ctx, notify.Posting{
		Message: one.Message, To: []catalog.Channel{one.To}, Now: worldStart,
	})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	open := func(catalog.Channel) (notify.Channel, error) { return failing{}, nil }
	now, dead := worldStart, []notify.Delivery(nil)
	for n := 0; len(dead) == 0; n++ {
		report, err := notify.NewDeliverer(d, open, log, notify.DelivererOptions{}).Step(ctx, now)
		if err != nil || len(report.Attempts) != 1 || n > 50 {
			t.Fatalf("step %d at %s: %d attempts, %v", n, now, len(report.Attempts), err)
		}
		if dead = report.Dead; len(dead) > 0 {
			break
		}
		shown := shown(t, s, "SELECT concat(state, ' ', toString(isNull(latency_ms))) "+
			"FROM delivery_states")
		if shown != "pending 1" {
			t.Fatalf("after %d attempts the view shows %s", n+1, shown)
		}
		pending, err := d.List(ctx, one.Message.ID, 10)
		if err != nil || len(pending) != 1 || !pending[0].Next.After(now) {
			t.Fatalf("%+v, %v", pending, err)
		}
		if early, err := d.Due(ctx, pending[0].Next.Add(-time.Millisecond), 10, 10); err != nil ||
			len(early) != 0 {
			t.Fatalf("it is due before its time: %+v, %v", early, err)
		}
		now = pending[0].Next
	}
	if took := now.Sub(worldStart); took != notify.DefaultSchedule().Horizon {
		t.Errorf("it was given up after %s", took)
	}
	if due, err := d.Due(ctx, now.AddDate(0, 1, 0), 10, 10); err != nil || len(due) != 0 {
		t.Errorf("a dead letter is due: %+v, %v", due, err)
	}
	f := func(query, want string) {
		t.Helper()
		if got := shown(t, s, query); got != want {
			t.Errorf("%s\nshows %s\nwant  %s", query, got, want)
		}
	}
	f(`SELECT concat(message, ' ', alert, ' ', tenant, ' ', type, ' ', receiver, ' ', state, ' ',
		outcome, ' ', toString(status), ' ', error, ' ', toString(attempts > 15), ' ',
		toString(intDiv(latency_ms, 3600000)), ' ', toString(isNull(due))) FROM delivery_states`,
		"msg_0 budget,b,0,2026-01,0 acme budget.threshold_reached webhook:hooks.example.com:8443 dead "+
			"expired 502 retry: status 502: bad gateway 1 24 1")
	f(`SELECT concat(toString(count()), ' ', toString(uniqExact(attempt)), ' ',
		toString(countIf(status = 502 AND outcome = 'retry' AND latency_ms < 60000 AND round = 0
			AND receiver = 'webhook:hooks.example.com:8443' AND tenant = 'acme'))) FROM delivery_attempts`,
		fmt.Sprintf("%[1]d %[1]d %[1]d", dead[0].Attempts))
	for _, view := range []string{"delivery_states", "delivery_attempts"} {
		f("SELECT toString(countIf(position(toString(tuple(*)), 'secret') > 0)) FROM "+view, "0")
	}
}

// The views name receivers as logs do.
func TestDeliveries_viewsHideURLs(t *testing.T) {
	s := store(t)
	receivers := []catalog.Channel{
		{Kind: catalog.Webhook, Target: "https://a.example"},
		{Kind: catalog.Webhook, Target: "http://a.example:8080?x", Secret: "ops"},
		{Kind: catalog.Webhook, Target: "https://[2001:db8::1]:9000/x:y/https://b.example"},
		{Kind: catalog.Alertmanager, Target: "http://am.example:9093/api"},
		{Kind: catalog.Alertmanager, Target: "https://am.example"},
		{Kind: catalog.Email, Target: "webhook@a.example"},
		{Kind: catalog.Log},
	}
	for i, to := range receivers {
		one := delivery(i, "")
		one.To, one.Channel = to, notify.ChannelName(to)
		if err := s.Deliveries().Record(t.Context(), one, notify.Attempt{
			Message: one.Message.ID, Channel: one.Channel,
		}); err != nil {
			t.Fatal(err)
		}
		for _, view := range []string{"delivery_states", "delivery_attempts"} {
			query := fmt.Sprintf("SELECT receiver FROM %s WHERE message = 'msg_%d'", view, i)
			if got, want := shown(t, s, query), notify.ShowChannel(to); got != want {
				t.Errorf("%s shows %s of %s, want %s", view, got, one.Channel, want)
			}
		}
	}
}

// Property: after any writes, repeated and in any order, the store has what that of tests has.
func TestDeliveries_areTheStoreOfTests(t *testing.T) {
	s, model, random := store(t), notifytest.NewStore(), rand.New(rand.NewPCG(5, 5))
	ctx, d := t.Context(), s.Deliveries()
	targets := []string{"https://a.example/'\\", "https://b.example/x", "https://c.example/?s=1"}
	both := func(write func(notify.Store) error) {
		t.Helper()
		for range 1 + random.IntN(2) { // a repeat changes nothing
			if err := errors.Join(write(d), write(model)); err != nil {
				t.Fatal(err)
			}
		}
	}
	state := func() notify.Delivery {
		one := delivery(random.IntN(20), targets[random.IntN(len(targets))])
		one.Attempts, one.Round = random.IntN(4), random.IntN(2)
		one.Next = one.Next.Add(time.Duration(one.Attempts) * time.Minute)
		one.State = []notify.State{
			notify.StatePending, notify.StatePending, notify.StateDelivered, notify.StateDead,
		}[random.IntN(4)]
		if one.State != notify.StatePending {
			one.Done, one.Outcome, one.Status = one.Next, notify.Delivered, 200
		}
		return one
	}
	for range 60 {
		one := state()
		switch random.IntN(4) {
		case 0:
			both(func(s notify.Store) error { return s.Disable(ctx, one.Channel, one.Next) })
		case 1:
			both(func(s notify.Store) error { return s.Add(ctx, []notify.Delivery{one}) })
		default:
			a := notify.Attempt{
				Message: one.Message.ID, Channel: one.Channel, Number: one.Attempts,
				Round: one.Round, Time: one.Next, Outcome: notify.Retry,
			}
			both(func(s notify.Store) error { return s.Record(ctx, one, a) })
		}
	}
	got, err := d.List(ctx, "", 1000)
	want := model.Deliveries()
	if diff := cmp.Diff(want, got); err != nil || diff != "" || len(got) < 15 {
		t.Errorf("%d deliveries, %v (-want +got):\n%s", len(got), err, diff)
	}
	for range 20 {
		now := worldStart.Add(time.Duration(random.IntN(300)) * time.Second)
		limit, perChannel := 1+random.IntN(12), 1+random.IntN(5)
		got, err := d.Due(ctx, now, limit, perChannel)
		want, err2 := model.Due(ctx, now, limit, perChannel)
		if diff := cmp.Diff(want, got); errors.Join(err, err2) != nil || diff != "" {
			t.Errorf("due at %s: %v (-want +got):\n%s", now, errors.Join(err, err2), diff)
		}
	}
	var channels []string
	for _, one := range want {
		channels = append(channels, one.Channel)
	}
	off, err := d.Disabled(ctx, channels)
	known, _ := model.Disabled(ctx, channels)
	if diff := cmp.Diff(known, off); err != nil || diff != "" || len(off) == 0 {
		t.Errorf("disabled are %v, %v (-want +got):\n%s", off, err, diff)
	}
}
