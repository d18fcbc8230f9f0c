package rating

import (
	"fmt"
	"testing"

	"github.com/suanpan/suanpan/pkg/metering"
)

func heldEvent(session string, from, until int64) *metering.Event {
	start := metering.InstantOf(lawBase)
	return &metering.Event{
		Kind: metering.Held, Tenant: "acme", Session: session,
		Facts: metering.Facts{
			Project: "p", Lease: session, Purchase: "on_demand", SessionStart: start,
		},
		Start: metering.InstantOf(from), End: metering.InstantOf(until),
		Amounts: []metering.Amount{{SKU: "flat", Milli: 1000}},
	}
}

func voidEvent(session string, from, until int64) *metering.Event {
	return &metering.Event{
		Kind: metering.Void, Tenant: "acme", Session: session,
		Start: metering.InstantOf(from), End: metering.InstantOf(until),
	}
}

// replay rates an event as the service does, with what the store has of it.
func replay(t *testing.T, r *Rater, store *Ledger, e *metering.Event, offset int64) {
	t.Helper()
	need := new(Need)
	r.Need(e, need)
	if err := r.Load(need, store.Find(need)); err != nil {
		t.Fatal(err)
	}
	if why := r.Rate(e, Position{Offset: offset}, 0); why != nil {
		t.Fatal(why)
	}
}

// TestEvict_givesAllBytesBack counts the memory of sessions that are first met in each possible
// way: what is counted twice is never given back, and in the end nothing could be kept.
func TestEvict_givesAllBytesBack(t *testing.T) {
	f := func(name string, stored bool, events ...*metering.Event) {
		t.Helper()
		prices, store := lawPrices(t), NewLedger()
		if stored {
			first := NewOffline(prices)
			if why := first.Rate(heldEvent("other", lawBase, lawBase+60)); why != nil {
				t.Fatal(why)
			}
			store = first.Ledger()
		}
		r := NewRater(prices, store.Stored())
		for i, e := range events {
			replay(t, r, store, e, int64(i))
		}
		if r.Bytes() == 0 {
			t.Errorf("%s: the state takes no bytes", name)
		}
		r.Evict(0)
		if r.Bytes() == 0 {
			t.Errorf("%s: what is not acknowledged was evicted", name)
		}
		changes := r.Drain()
		r.Evict(0)
		if r.Bytes() == 0 {
			t.Errorf("%s: what is not acknowledged was evicted", name)
		}
		store.Apply(&changes)
		r.Acknowledge(&changes)
		r.Evict(0)
		if r.Bytes() != 0 || len(r.sessions) != 0 || r.recent.Len() != 0 {
			t.Errorf("%s: %d bytes and %d sessions are left", name, r.Bytes(), len(r.sessions))
		}
	}
	held, void := heldEvent("s", lawBase, lawBase+7300), voidEvent("s", lawBase, lawBase+60)
	empty := heldEvent("s", lawBase, lawBase)
	empty.End++
	empty.Resumed = true
	f("held", false, held)
	f("held in a tenant that is stored", true, held)
	f("void, then held", false, void, held)
	f("void, then held in a tenant that is stored", true, void, held)
	f("nothing but facts", false, empty)
	f("nothing but facts in a tenant that is stored", true, empty)
}

// TestEvict_theOldestTouchGoesFirst keeps the hours that were touched last.
func TestEvict_theOldestTouchGoesFirst(t *testing.T) {
	prices, store := lawPrices(t), NewLedger()
	r := NewRater(prices, nil)
	for i := range 10 {
		replay(t, r, store, heldEvent(fmt.Sprint(i), lawBase, lawBase+60), int64(i))
	}
	replay(t, r, store, heldEvent("0", lawBase, lawBase+70), 10)
	changes := r.Drain()
	store.Apply(&changes)
	r.Acknowledge(&changes)
	r.Evict(r.Bytes() / 2)
	if r.sessions[SessionKey{"acme", "0"}] == nil || r.sessions[SessionKey{"acme", "1"}] != nil ||
		r.sessions[SessionKey{"acme", "9"}] == nil {
		t.Errorf("sessions that are left: %v", r.sessions)
	}
	replay(t, r, store, heldEvent("1", lawBase+30, lawBase+90), 11)
	changes = r.Drain()
	if len(changes.Hours) != 1 || changes.Hours[0].Used.Len() != 90 {
		t.Errorf("an evicted hour comes back as %+v", changes.Hours)
	}
	if len(changes.Sessions) != 0 {
		t.Errorf("a stored session is new again: %+v", changes.Sessions)
	}
}

// TestRate_rejectedLeavesNoFacts sends an event whose second SKU nobody sells, then another one of
// the same session with other facts.
func TestRate_rejectedLeavesNoFacts(t *testing.T) {
	r := NewRater(lawPrices(t), nil)
	bad := heldEvent("s", lawBase, lawBase+60)
	bad.Amounts = append(bad.Amounts, metering.Amount{SKU: "none", Milli: 1000})
	bad.Project = "q"
	if why := r.Rate(bad, Position{}, 0); why == nil || why.Reason != metering.NoPrice {
		t.Fatalf("rejection %v", why)
	}
	if r.Pending() != 0 || r.Bytes() != 0 {
		t.Errorf("%d rows and %d bytes of a rejected event", r.Pending(), r.Bytes())
	}
	good := heldEvent("s", lawBase, lawBase+60)
	good.Amounts[0].Milli = 7
	if why := r.Rate(good, Position{Offset: 1}, 0); why != nil {
		t.Fatal(why)
	}
	if why := r.Rate(bad, Position{Offset: 2}, 0); why == nil ||
		why.Reason != metering.SessionConflict {
		t.Errorf("rejection %v", why)
	}
}

// TestRate_future judges by the log's clock, and only where there is one.
func TestRate_future(t *testing.T) {
	f := func(received metering.Instant, want metering.Reason) {
		t.Helper()
		for _, e := range []*metering.Event{
			heldEvent("s", lawBase, lawBase+61), voidEvent("s", lawBase, lawBase+61),
		} {
			var got metering.Reason
			r := NewRater(lawPrices(t), nil)
			if why := r.Rate(e, Position{}, received); why != nil {
				got = why.Reason
			}
			if got != want {
				t.Errorf("received at %s: %q, want %q", received, got, want)
			}
			if got != "" && r.Pending() != 0 {
				t.Errorf("%d rows of a rejected event", r.Pending())
			}
		}
	}
	f(0, "")
	f(metering.InstantOf(lawBase+1), "")
	f(metering.InstantOf(lawBase+1)-1, metering.Future)
}

// TestVersion_growsWithBothSets: of two states of a row the one that saw more wins.
func TestVersion_growsWithBothSets(t *testing.T) {
	store := NewLedger()
	r := NewRater(lawPrices(t), nil)
	var last uint64
	var states []Changes
	for i, e := range []*metering.Event{
		heldEvent("s", lawBase, lawBase+60), heldEvent("s", lawBase+10, lawBase+90),
		voidEvent("s", lawBase, lawBase+5), voidEvent("s", lawBase, lawBase+6),
		heldEvent("s", lawBase, lawBase+3600),
	} {
		replay(t, r, store, e, int64(i))
		states = append(states, r.Drain())
		row := &states[i].Hours[0]
		if row.Version() <= last {
			t.Errorf("event %d: version %d after %d", i, row.Version(), last)
		}
		last = row.Version()
	}
	for i := len(states) - 1; i >= 0; i-- { // the older a state, the later it lands
		store.Apply(&states[i])
	}
	for charge, quantity := range store.Sums() {
		if charge.SKU == "flat" && quantity.String() != "3594.000000000" {
			t.Errorf("%s comes to %s", charge.Key(), quantity)
		}
	}
}
