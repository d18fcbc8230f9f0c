package pipeline

import (
	"errors"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/billing/alert"
)

// after is so many minutes after noon.
func after(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }

func TestWatcher_firesAndResolvesOnceWithTwo(t *testing.T) {
	w := newAlertWorld(t)
	a, b := w.decider(), w.decider()
	w.letters = []alert.Letters{{Tenant: "acme", Reason: "no_price", Count: 3, Newest: noon.Unix()}}
	must(t, a.policies(after(0)))
	must(t, b.policies(after(0)))
	must(t, b.policies(after(1)))
	fires := "dead_letters,acme,no_price,1"
	w.check("fires", fires+"")
	w.letters = nil
	for i := range 5 {
		must(t, b.policies(after(2+i)))
		if i == 2 {
			b = w.decider() // it starts to count anew
		}
		must(t, a.policies(after(2+i)))
	}
	w.check("resolved", fires+"; "+fires+",resolved")
	w.letters = []alert.Letters{{Tenant: "acme", Reason: "no_price", Count: 1, Newest: noon.Unix()}}
	must(t, b.policies(after(7)))
	must(t, w.decider().policies(after(8)))
	w.check("within the cooldown", fires+"; "+fires+",resolved")
	must(t, a.policies(after(70)))
	must(t, b.policies(after(70)))
	w.check("after it", fires+"; "+fires+",resolved; dead_letters,acme,no_price,2")
}

func TestWatcher_twoThatDecideAtOnce(t *testing.T) {
	w := newAlertWorld(t)
	w.letters = []alert.Letters{{Tenant: "acme", Reason: "no_price", Count: 3, Newest: noon.Unix()}}
	// The second appends what it decided before it could read what the first did.
	must(t, w.decider().policies(after(0)))
	log := w.log
	w.log, w.last, w.told = nil, -1, make(map[string]bool)
	must(t, w.decider().policies(after(0)))
	w.log = append(log, w.log...)
	w.last, w.told = -1, make(map[string]bool)
	must(t, w.decider().policies(after(1)))
	w.check("one of the two counts", "dead_letters,acme,no_price,1")
}

func TestWatcher_whatFailsDoesNotKeepOthersFromLooking(t *testing.T) {
	w := newAlertWorld(t)
	d := w.decider()
	w.fails["loads"], w.fails["spend"], w.fails["cards"] = errFake, errFake, errFake
	w.held = []alert.HeldDocument{{Tenant: "blue", ID: "d", Period: "2025-12", Since: noon.Unix()}}
	if err := d.policies(after(0)); !errors.Is(err, errFake) {
		t.Errorf("nothing is said of what failed: %v", err)
	}
	w.check("held", "held_invoices,blue,documents,1")
	w.fails = nil
	before := w.asked["cards"]
	must(t, d.policies(after(1)))
	if w.asked["cards"] != before+1 {
		t.Error("what failed was not asked for again")
	}
}

func TestWatcher_asksForHoursAndDaysOnceAnHour(t *testing.T) {
	w := newAlertWorld(t)
	d := w.decider()
	for i := range 120 {
		w.newest = after(i)
		must(t, d.policies(after(i)))
	}
	for what, want := range map[string]int{
		"cards": 2, "busy": 2, "spend": 3, "letters": 120, "held": 120, "loads": 240,
	} {
		if w.asked[what] != want {
			t.Errorf("%s was asked for %d times, want %d", what, w.asked[what], want)
		}
	}
	must(t, d.policies(after(-600))) // the clock goes back, and looks again
	if w.asked["cards"] != 3 {
		t.Error("after a step of the clock nobody looks")
	}
}

// idle is a session that does nothing, until a minute after noon.
func idle(session string, until int) alert.Load {
	return alert.Load{
		Tenant: "acme", Project: "p", Lease: "l-" + session, Session: session, Node: "n",
		Held: map[string]int64{"gpu.a": 1000}, From: after(until - 30).Unix(), Until: after(until).Unix(),
		Covered: 1800, Mean: 1, Peak: 1,
	}
}

func TestWatcher_idleSessions(t *testing.T) {
	w := newAlertWorld(t)
	d := w.decider()
	w.loads = []alert.Load{idle("s", 0)}
	must(t, d.policies(after(0)))
	fires := "idle_gpu,acme,s,1; unreleased,acme,l-s,1"
	w.check("idle", fires)

	// Nothing arrives at all: nothing is known of it.
	w.loads = nil
	for i := range 10 {
		must(t, d.policies(after(6+i)))
	}
	w.check("darkness", fires)

	// Others arrive, and it is silent.
	w.silent = []alert.LastSeen{{
		Tenant: "acme", Project: "p", Lease: "l-s", Session: "s", Until: noon.Unix(),
	}}
	for i := range 10 {
		w.newest = after(16 + i)
		must(t, d.policies(after(16+i)))
	}
	w.check("silence", "exporter_silent,acme,s,1; "+fires)

	// It is there again, and works.
	w.silent = nil
	for i := range 5 {
		busy := idle("s", 26+i)
		busy.Mean, busy.Peak = 900_000, 900_000
		w.newest, w.loads = after(26+i), []alert.Load{busy}
		must(t, d.policies(after(26+i)))
	}
	w.check("work", "exporter_silent,acme,s,1; exporter_silent,acme,s,1,resolved; "+
		"idle_gpu,acme,s,1; idle_gpu,acme,s,1,resolved; unreleased,acme,l-s,1; "+
		"unreleased,acme,l-s,1,resolved")
}

func TestWatcher_aPolicyThatIsTurnedOffResolves(t *testing.T) {
	w := newAlertWorld(t)
	d := w.decider()
	w.letters = []alert.Letters{{Tenant: "acme", Reason: "no_price", Count: 3, Newest: noon.Unix()}}
	must(t, d.policies(after(0)))
	w.documents = append(w.documents, `{"kind":"Policy","name":"dead_letters","type":"dead_letters",`+
		`"enabled":false,"effective_from":"2026-01-05T12:01:00Z"}`)
	must(t, d.policies(after(1)))
	w.check("off", "dead_letters,acme,no_price,1; dead_letters,acme,no_price,1,resolved")
}

func TestWatcher_decidesAgainWhatWasNotAppended(t *testing.T) {
	w := newAlertWorld(t)
	d := w.decider()
	w.letters = []alert.Letters{{Tenant: "acme", Reason: "no_price", Count: 3, Newest: noon.Unix()}}
	w.fails["append"] = errFake
	if err := d.policies(after(0)); !errors.Is(err, errFake) {
		t.Errorf("it fails with %v", err)
	}
	w.check("nothing", "")
	w.fails = nil
	must(t, d.policies(after(0)))
	w.check("fires", "dead_letters,acme,no_price,1")
}
