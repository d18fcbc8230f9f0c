package session

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// held is a lease with labels and two devices, whose session is asked for.
func held() Grant {
	g := grant("a", boot)
	g.Region, g.Labels = "cn-north", map[string]string{"stage": "pretraining"}
	g.Devices = []Device{{"GPU-0", 1000}, {"GPU-1", 1000}}
	return g
}

// only is the session that goes on, the only one.
func only(t *testing.T, n *node) Session {
	t.Helper()
	all := n.Sessions()
	if len(all) != 1 {
		t.Fatalf("%d sessions", len(all))
	}
	return *all[0]
}

// TestEngine_idFollowsFromFacts begins a session on nodes that know nothing of each other: its id
// is the same where lease, node, devices, labels and start are, and else another one.
func TestEngine_idFollowsFromFacts(t *testing.T) {
	id := func(name string, change func(g *Grant)) string {
		t.Helper()
		g := held()
		change(&g)
		n := newNode()
		n.config.Node = name
		n.pass(10 * time.Second)
		n.see(g)
		return only(t, n).ID
	}
	same := func(*Grant) {}
	want := id("n1", same)
	for what, change := range map[string]func(*Grant){
		"nothing":          same,
		"order of devices": func(g *Grant) { g.Devices[0], g.Devices[1] = g.Devices[1], g.Devices[0] },
		"key":              func(g *Grant) { g.Key = "b" },
	} {
		if got := id("n1", change); got != want {
			t.Errorf("%s: id %s, want %s", what, got, want)
		}
	}
	seen := map[string]string{want: "nothing", id("n2", same): "node"}
	for what, change := range map[string]func(*Grant){
		"tenant":         func(g *Grant) { g.Tenant = "beta" },
		"lease":          func(g *Grant) { g.Lease = "lease-b" },
		"device":         func(g *Grant) { g.Devices[1].UUID = "GPU-2" },
		"one device":     func(g *Grant) { g.Devices = g.Devices[:1] },
		"label":          func(g *Grant) { g.Labels["stage"] = "finetuning" },
		"name of label":  func(g *Grant) { g.Labels = map[string]string{"team": "pretraining"} },
		"no label":       func(g *Grant) { g.Labels = nil },
		"another second": func(g *Grant) { g.Start = g.Start.Add(time.Second) },
	} {
		seen[id("n1", change)] = what
	}
	if len(seen) != 10 {
		t.Errorf("different sessions have one id: %v", seen)
	}
}

// TestEngine_changeOfAnyFactResumes changes one fact of a lease that goes on, as a migration to
// another device does: each has a session of its own from there on, and no second is lost.
func TestEngine_changeOfAnyFactResumes(t *testing.T) {
	for what, change := range map[string]func(*Grant){
		"project":  func(g *Grant) { g.Project = "chat" },
		"purchase": func(g *Grant) { g.Purchase = "reserved" },
		"region":   func(g *Grant) { g.Region = "eu" },
		"labels":   func(g *Grant) { g.Labels = map[string]string{"stage": "finetuning"} },
		"device":   func(g *Grant) { g.Devices = []Device{{"GPU-0", 1000}, {"GPU-2", 1000}} },
		"share":    func(g *Grant) { g.Devices = []Device{{"GPU-0", 1000}, {"GPU-1", 500}} },
		"held":     func(g *Grant) { g.Held = map[string]int64{"gpu.h100-80g": 2000} },
	} {
		n := newNode()
		g := held()
		n.see(g)
		first := only(t, n)
		n.pass(30 * time.Second)
		change(&g)
		n.see(g)
		n.pass(30 * time.Second)
		n.see(g)
		second := only(t, n)
		if first.Resumed || !second.Resumed || first.ID == second.ID || first.Lease != second.Lease {
			t.Errorf("%s: first %+v\nsecond %+v", what, first, second)
		}
		want := []string{"a 02:00:00 02:00:30", "a 02:00:30 02:01:00"}
		if diff := cmp.Diff(want, n.sent); diff != "" {
			t.Errorf("%s: windows (-want +got):\n%s", what, diff)
		}
	}
}

// TestEngine_leaseFromElsewhereIsResumed takes over a lease from another node, of which only the
// source knows.
func TestEngine_leaseFromElsewhereIsResumed(t *testing.T) {
	for _, resumed := range []bool{false, true} {
		n := newNode()
		g := held()
		g.Resumed = resumed
		n.see(g)
		if s := only(t, n); s.Resumed != resumed {
			t.Errorf("resumed is %t of a lease of which the source says %t", s.Resumed, resumed)
		}
	}
}

// TestEngine_eventIdsDiffer names each window of each session.
func TestEngine_eventIdsDiffer(t *testing.T) {
	n := newNode()
	a, b := grant("a", boot), grant("b", boot)
	ids := map[string]bool{}
	take := func(final bool) {
		t.Helper()
		due := n.Due(final)
		for i := range due {
			var e struct {
				ID string `json:"id"`
			}
			if err := json.Unmarshal(n.Event(&due[i], nil), &e); err != nil {
				t.Fatal(err)
			}
			ids[e.ID] = true
		}
	}
	n.Observe(n.now, n.now.Mono, "test", []Grant{a, b})
	n.pass(70 * time.Second)
	n.Observe(n.now, n.now.Mono, "test", []Grant{a, b})
	take(false)
	take(false) // nothing was noted: the same windows
	take(true)  // they begin alike, and end later
	n.Commit(n.Due(false))
	take(true)
	if len(ids) != 6 {
		t.Errorf("%d ids of 6 windows", len(ids))
	}
}
