package session

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/suanpan/suanpan/pkg/metering"
)

// boot is when the node of all tests was booted, by its wall clock.
var boot = time.Date(2026, 1, 5, 2, 0, 0, 0, time.UTC)

// node is a node in a test: an engine and two clocks.
type node struct {
	*Engine
	now  Instant
	sent []string // windows, as "key start end"
	skip bool     // nothing can be stored

	finals bool // sent tells which windows are final
}

func newNode() *node {
	n := &node{now: Instant{0, boot}}
	n.Engine = New(Config{Node: "n1"}, State{}, "boot 1", n.now)
	return n
}

// pass lets time pass by both clocks.
func (n *node) pass(d time.Duration) {
	n.now.Mono += d
	n.now.Wall = n.now.Wall.Add(d)
}

// see lets the source tell its grants, and sends what is due.
func (n *node) see(grants ...Grant) {
	n.Observe(n.now, n.now.Mono, "test", grants)
	n.send(false)
}

func (n *node) send(final bool) {
	due := n.Due(final)
	if n.skip {
		return
	}
	for _, w := range due {
		line := fmt.Sprintf("%s %s %s", w.Session.Key,
			w.Start.Format("15:04:05"), w.End.Format("15:04:05"))
		if n.finals && w.Final {
			line += " final"
		}
		n.sent = append(n.sent, line)
	}
	n.Commit(due)
}

// kill starts the engine again from its saved state.
func (n *node) kill(t fataler, bootID string) {
	t.Helper()
	data, err := json.Marshal(n.State())
	if err != nil {
		t.Fatal(err)
	}
	var state State
	if err := json.Unmarshal(data, &state); err != nil {
		t.Fatal(err)
	}
	n.Engine = New(n.config, state, bootID, n.now)
}

type fataler interface {
	Helper()
	Fatal(args ...any)
}

func grant(key string, start time.Time) Grant {
	return Grant{
		Key: key, Tenant: "acme", Project: "llm", Lease: "lease-" + key, Purchase: "on_demand",
		Devices: []Device{{"GPU-" + key, 1000}}, Held: map[string]int64{"gpu.h100-80g": 1000},
		Start: start,
	}
}

func expect(t *testing.T, n *node, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, n.sent); diff != "" {
		t.Errorf("windows (-want +got):\n%s", diff)
	}
}

func TestEngine_alignedWindowsAndAClosingOne(t *testing.T) {
	n := newNode()
	n.pass(20 * time.Second)
	g := grant("a", boot.Add(17*time.Second))
	for range 120 {
		n.see(g)
		n.pass(time.Second)
	}
	g.End = boot.Add(139 * time.Second)
	n.see(g)
	n.see(g)
	n.see()
	expect(t, n, "a 02:00:17 02:01:00", "a 02:01:00 02:02:00", "a 02:02:00 02:02:19")
}

func TestEngine_reconcilesAfterARestart(t *testing.T) {
	n := newNode()
	n.see(grant("a", boot), grant("b", boot))
	n.pass(90 * time.Second)
	n.see(grant("a", boot), grant("b", boot))
	n.kill(t, "boot 1")
	n.pass(time.Hour)
	b := grant("b", boot)
	b.End = boot.Add(30 * time.Minute)
	n.see(grant("a", boot), b)
	expect(t, n, "a 02:00:00 02:01:00", "b 02:00:00 02:01:00",
		"a 02:01:00 03:01:00", "b 02:01:00 02:30:00")
}

// TestEngine_silentSource holds windows back until the source vouches for them, and reports nothing
// of a lease that is gone then.
func TestEngine_silentSource(t *testing.T) {
	n := newNode()
	n.see(grant("a", boot), grant("b", boot))
	n.pass(70 * time.Second)
	n.see(grant("a", boot), grant("b", boot))
	n.pass(10 * time.Minute)
	n.send(false)
	expect(t, n, "a 02:00:00 02:01:00", "b 02:00:00 02:01:00")
	n.see(grant("a", boot))
	expect(t, n, "a 02:00:00 02:01:00", "b 02:00:00 02:01:00",
		"a 02:01:00 02:11:00", "b 02:01:00 02:01:10")
}

func TestEngine_listingWithAHoleGoesOn(t *testing.T) {
	n := newNode()
	n.see(grant("a", boot))
	n.pass(90 * time.Second)
	n.see(grant("a", boot))
	id := n.Sessions()[0].ID
	n.pass(time.Second)
	n.see()
	n.pass(40 * time.Second)
	n.see(grant("a", boot))
	if again := n.Sessions(); len(again) != 1 || again[0].ID != id {
		t.Errorf("sessions %v, want %s again", again, id)
	}
	expect(t, n, "a 02:00:00 02:01:00", "a 02:01:00 02:01:30", "a 02:01:30 02:02:00")
}

func TestEngine_unusableWaits(t *testing.T) {
	n := newNode()
	n.pass(5 * time.Second)
	g := grant("a", boot)
	g.Unusable = true
	n.see(g)
	n.kill(t, "boot 1")
	n.pass(20 * time.Second)
	n.see(g)
	n.pass(5 * time.Second)
	g.Unusable = false
	n.see(g)
	n.pass(time.Minute)
	g.Unusable = true // the driver restarts, the lease goes on
	n.see(g)
	expect(t, n, "a 02:00:30 02:01:00")
	if s := n.Sessions(); len(s) != 1 || s[0].Resumed {
		t.Errorf("sessions %+v", s)
	}
}

// TestEngine_countsWhatWaits ends a lease whose device never came: nothing is reported of it, also
// when the device comes while the source still tells of the lease.
func TestEngine_countsWhatWaits(t *testing.T) {
	n := newNode()
	g, lost := grant("a", boot), grant("b", boot)
	lost.Unusable = true
	f := func(want int, grants ...Grant) {
		t.Helper()
		n.pass(10 * time.Second)
		n.see(grants...)
		if got := n.Counts().Waiting; got != want {
			t.Errorf("%d leases wait, want %d", got, want)
		}
	}
	f(1, g, lost)
	g.Unusable = true // it began: it goes on
	f(1, g, lost)
	n.kill(t, "boot 1")
	f(1, g, lost)
	lost.End = n.now.Wall
	f(0, g, lost)
	lost.Unusable = false
	f(0, g, lost)
	n.send(true)
	expect(t, n, "a 02:00:00 02:00:50")
}

// TestEngine_stepsOfTheWallClock sets the wall clock back and forth: a lease is as long as it was,
// and one that began before is found by the clock of then.
func TestEngine_stepsOfTheWallClock(t *testing.T) {
	for _, step := range []time.Duration{
		-time.Hour, time.Hour, -20 * time.Second, 90 * 24 * time.Hour,
	} {
		n := newNode()
		n.see(grant("a", boot))
		n.pass(50 * time.Second)
		n.see(grant("a", boot))
		b := grant("b", n.now.Wall) // seen only after the step
		n.pass(500 * time.Millisecond)
		n.now.Wall = n.now.Wall.Add(step)
		n.pass(9500 * time.Millisecond)
		n.see(grant("a", boot), b)
		n.kill(t, "boot 1")
		n.pass(60 * time.Second)
		a := grant("a", boot)
		a.End, b.End = n.now.Wall, n.now.Wall
		n.see(a, b)
		expect(t, n, "a 02:00:00 02:01:00", "b 02:00:50 02:01:00",
			"a 02:01:00 02:02:00", "b 02:01:00 02:02:00")
	}
}

func TestEngine_rebootIsMeasuredByTheWallClock(t *testing.T) {
	n := newNode()
	n.now.Mono += 5000 * time.Second // booted long ago
	n.Engine = New(n.config, State{}, "boot 1", n.now)
	n.see(grant("a", boot))
	n.now.Wall = n.now.Wall.Add(-time.Hour)
	n.pass(60 * time.Second)
	n.see(grant("a", boot))
	n.now.Mono = 30 * time.Second
	n.now.Wall = n.now.Wall.Add(4 * time.Minute)
	n.kill(t, "boot 2")
	n.see(grant("a", boot))
	expect(t, n, "a 02:00:00 02:01:00", "a 02:01:00 02:05:00")
}

func TestEngine_fullStoreMakesLongerWindows(t *testing.T) {
	n := newNode()
	g := grant("a", boot)
	n.see(g)
	n.skip = true
	for range 300 {
		n.pass(time.Second)
		n.see(g)
	}
	g.End = boot.Add(299 * time.Second)
	n.see(g)
	n.see()
	n.skip = false
	n.see()
	expect(t, n, "a 02:00:00 02:04:59")
}

func TestEngine_longGapsAreSplitByDays(t *testing.T) {
	n := newNode()
	n.see(grant("a", boot))
	n.pass(50 * time.Hour)
	n.see(grant("a", boot))
	if len(n.sent) != 3 {
		t.Errorf("windows %q", n.sent)
	}
	n.pass(30 * 24 * time.Hour)
	old := grant("old", boot)
	n.see(old)
	if got := n.Counts().TooOld; got != 25*24*time.Hour+2*time.Hour {
		t.Errorf("too old: %s", got)
	}
}

func TestEngine_finalSendsTheRest(t *testing.T) {
	n := newNode()
	n.see(grant("a", boot))
	n.pass(70 * time.Second)
	n.see(grant("a", boot))
	n.send(true)
	expect(t, n, "a 02:00:00 02:01:00", "a 02:01:00 02:01:10")
}

// TestEngine_sourceThatIsNoMore lets another source take over a lease.
func TestEngine_sourceThatIsNoMore(t *testing.T) {
	n := newNode()
	n.see(grant("a", boot))
	n.pass(90 * time.Second)
	n.see(grant("a", boot))
	n.kill(t, "boot 1")
	n.Only("other")
	n.pass(40 * time.Second)
	n.Observe(n.now, n.now.Mono, "other", []Grant{grant("a", boot)})
	n.send(false)
	expect(t, n, "a 02:00:00 02:01:00", "a 02:01:00 02:01:30", "a 02:01:30 02:02:00")
	if s := n.Sessions(); len(s) != 1 || s[0].Source != "other" || !s[0].Resumed {
		t.Errorf("sessions %+v", s)
	}
}

func TestEngine_futureAndPastGrants(t *testing.T) {
	n := newNode()
	later := grant("later", boot.Add(time.Minute))
	over := grant("over", boot.Add(-time.Hour))
	over.End = boot.Add(-30 * time.Minute)
	n.see(later, over)
	n.see(later, over)
	expect(t, n, "over 01:00:00 01:30:00")
	n.pass(2 * time.Minute)
	n.see(later, over)
	expect(t, n, "over 01:00:00 01:30:00", "later 02:01:00 02:02:00")
}

func TestEngine_eventIsAccepted(t *testing.T) {
	n := newNode()
	g := grant("a", boot)
	g.Labels, g.Region = map[string]string{"team": "x"}, "cn-north"
	g.Held = map[string]int64{"gpu.h100-80g": 333, "cpu.core": 16000}
	n.Observe(n.now, n.now.Mono, "test", []Grant{g})
	n.pass(time.Minute)
	n.Observe(n.now, n.now.Mono, "test", []Grant{g})
	due := n.Due(false)
	text := n.Event(&due[0], json.RawMessage(`{"gpu_util":0.5}`))
	var e metering.Event
	if why := metering.NewParser().Parse(text, &e); why != nil || e.Problem() != nil {
		t.Fatalf("%s: %v %v", text, why, e.Problem())
	}
	want := []metering.Amount{{SKU: "cpu.core", Milli: 16000}, {SKU: "gpu.h100-80g", Milli: 333}}
	if diff := cmp.Diff(want, e.Amounts, cmp.AllowUnexported(metering.Quantity{})); diff != "" {
		t.Errorf("amounts (-want +got):\n%s", diff)
	}
	if again := n.Event(&due[0], json.RawMessage(`{"gpu_util":0.5}`)); string(again) != string(text) {
		t.Errorf("a repeat is not the same:\n%s\n%s", text, again)
	}
}

func TestFormatMilli(t *testing.T) {
	for milli, want := range map[int64]string{
		1: "0.001", 333: "0.333", 500: "0.5", 1000: "1", 16250: "16.25", 8000: "8",
	} {
		if got := FormatMilli(milli); got != want {
			t.Errorf("%d: %s, want %s", milli, got, want)
		}
	}
}

// TestEngine_oneSessionOfALeaseAtATime lets two allocations claim one lease: the second one waits.
func TestEngine_oneSessionOfALeaseAtATime(t *testing.T) {
	n := newNode()
	a, b := grant("a", boot), grant("b", boot)
	b.Lease = a.Lease
	n.see(a, b)
	n.pass(30 * time.Second)
	n.see(b)
	n.pass(30 * time.Second)
	n.see(b)
	if n.Counts().Twice != 1 {
		t.Errorf("counts %+v", n.Counts())
	}
	n.pass(time.Second)
	n.see(b)
	expect(t, n, "b 02:00:00 02:01:00")
}

// TestEngine_saysWhichWindowIsTheLast ends sessions in every way, also when all was reported
// already: then the last window is sent again, to say that it was the last.
func TestEngine_saysWhichWindowIsTheLast(t *testing.T) {
	f := func(do func(n *node, g Grant), want ...string) {
		t.Helper()
		n := newNode()
		n.finals = true
		do(n, grant("a", boot))
		expect(t, n, want...)
		if open := n.State().Open; len(open) > 0 && open[0].Ended {
			t.Error("an ended session stays open")
		}
	}
	f(func(n *node, g Grant) {
		n.see(g)
		n.pass(70 * time.Second)
		n.see(g)
		n.pass(20 * time.Second)
		g.End = boot.Add(80 * time.Second)
		n.see(g)
		n.see(g)
	}, "a 02:00:00 02:01:00", "a 02:01:00 02:01:20 final")
	f(func(n *node, g Grant) { // on the border of two windows
		n.see(g)
		n.pass(60 * time.Second)
		n.see(g)
		n.pass(time.Second)
		g.End = boot.Add(60 * time.Second)
		n.see(g)
		n.see(g)
	}, "a 02:00:00 02:01:00", "a 02:00:00 02:01:00 final")
	f(func(n *node, g Grant) { // earlier than was thought
		n.see(g)
		n.pass(125 * time.Second)
		n.see(g)
		n.skip = true
		n.pass(time.Second)
		g.End = boot.Add(50 * time.Second)
		n.see(g)
		n.kill(t, "boot 1")
		n.skip = false
		n.see(g)
	}, "a 02:00:00 02:02:00", "a 02:00:00 02:02:00 final")
	f(func(n *node, g Grant) { // after a stop, while nobody looked
		n.see(g)
		n.pass(70 * time.Second)
		n.see(g)
		n.send(true)
		n.kill(t, "boot 1")
		n.pass(time.Hour)
		n.see()
	}, "a 02:00:00 02:01:00", "a 02:01:00 02:01:10", "a 02:01:00 02:01:10 final")
	f(func(n *node, g Grant) { // it was only missed for a while
		n.see(g)
		n.pass(90 * time.Second)
		n.see(g)
		n.see()
		n.pass(40 * time.Second)
		n.see(g)
		n.see()
	}, "a 02:00:00 02:01:00", "a 02:01:00 02:01:30 final", "a 02:01:30 02:02:00",
		"a 02:02:00 02:02:10 final")
	f(func(n *node, _ Grant) { n.see(); n.pass(time.Minute); n.see() })
}

// TestEngine_eventSaysWhetherItIsTheLast holds an id to one content.
func TestEngine_eventSaysWhetherItIsTheLast(t *testing.T) {
	n := newNode()
	g := grant("a", boot)
	n.Observe(n.now, n.now.Mono, "test", []Grant{g})
	n.pass(time.Minute)
	n.Observe(n.now, n.now.Mono, "test", []Grant{g})
	read := func() (id string, final bool) {
		t.Helper()
		due := n.Due(false)
		if len(due) != 1 {
			t.Fatalf("%d windows are due", len(due))
		}
		var e struct {
			ID   string `json:"id"`
			Data struct {
				Final *bool `json:"final"`
			} `json:"data"`
		}
		if err := json.Unmarshal(n.Event(&due[0], nil), &e); err != nil || e.Data.Final == nil {
			t.Fatalf("event %+v, %v", e, err)
		}
		n.Commit(due)
		return e.ID, *e.Data.Final
	}
	before, final := read()
	if final {
		t.Error("the session goes on, and the event says that it ended")
	}
	n.Observe(n.now, n.now.Mono, "test", nil)
	after, final := read()
	if !final || before == after {
		t.Errorf("ids %s and %s; final %t", before, after, final)
	}
}
