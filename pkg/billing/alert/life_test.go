package alert_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
)

// policies returns the policies of documents that are in force at the beginning of tests.
func policies(t testing.TB, text string) []*catalog.Policy {
	t.Helper()
	documents, err := catalog.Parse("policy.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.New(documents)
	if err != nil {
		t.Fatal(err)
	}
	return c.Policies(begin)
}

func policy(t testing.TB, text string) *catalog.Policy {
	t.Helper()
	for _, p := range policies(t, text) {
		if p.Name == "idle" {
			return p
		}
	}
	t.Fatal("there is no policy idle")
	return nil
}

// begin is Monday, 2026-01-05T12:00:00Z.
const begin int64 = 1_767_614_400

const idlePolicy = `
kind: Policy
name: idle
type: idle_gpu
cooldown: 10m
notify: [{webhook: https://example.com/h}, {alertmanager: https://am.example.com}]
`

// life is a log and one who decides.
type life struct {
	t       testing.TB
	log     []alert.Alert
	history *alert.History
	damper  *alert.Damper
	policy  *catalog.Policy
}

func newLife(t testing.TB, text string) *life {
	t.Helper()
	return &life{
		t: t, history: alert.NewHistory(100), damper: alert.NewDamper(), policy: policy(t, text),
	}
}

func (l *life) append(all []alert.Alert) string {
	var ids []string
	for i := range all {
		if l.history.Add(&all[i]) {
			l.log = append(l.log, all[i])
			ids = append(ids, all[i].ID)
		}
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

// look decides on subjects of acme that are found, and returns the IDs of what follows.
func (l *life) look(now int64, subjects ...string) string {
	var look alert.Look
	for _, s := range subjects {
		look.Findings = append(look.Findings, alert.Finding{Tenant: "acme", Subject: s})
	}
	return l.append(l.damper.Decide(l.history, l.policy, look, now))
}

func TestDecide_firesOnceAndResolvesOnce(t *testing.T) {
	l := newLife(t, idlePolicy)
	now := begin
	f := func(want string, subjects ...string) {
		t.Helper()
		if got := l.look(now, subjects...); got != want {
			t.Errorf("minute %d: %q, want %q", (now-begin)/60, got, want)
		}
		now += 60
	}
	f("idle,acme,s,1", "s")
	f("", "s", "s")
	f("idle,acme,r,1", "s", "r")
	for range 4 {
		f("", "r")
	}
	f("", "s", "r") // it flutters
	for range 4 {
		f("", "r")
	}
	f("idle,acme,s,1,resolved", "r")
	for range 9 {
		f("", "s", "r") // within the cooldown
	}
	f("idle,acme,s,2", "s", "r")
	resolved := l.log[2]
	if resolved.Since != l.log[0].At || resolved.Why != alert.Recovered || len(resolved.To) != 2 {
		t.Errorf("resolved is %+v", resolved)
	}
	for i := range l.log {
		text, err := (&billing.Record{Alert: &l.log[i]}).Encode("/biller")
		if err != nil {
			t.Fatal(err)
		}
		if r, err := billing.ParseRecord(text); err != nil || r.Alert.ID != l.log[i].ID {
			t.Errorf("%s comes back as %+v, %v", text, r, err)
		}
	}
}

func TestDecide_whatIsNotKnownIsNotClear(t *testing.T) {
	l := newLife(t, idlePolicy)
	l.look(begin, "s", "r")
	unsure := alert.Look{Unsure: func(a *alert.Alert) bool { return a.Subject == "s" }}
	var got []string
	for i := range int64(10) {
		got = append(got, l.append(l.damper.Decide(l.history, l.policy, unsure, begin+60*i)))
	}
	if text := strings.Join(got, "|"); text != "||||idle,acme,r,1,resolved|||||" {
		t.Errorf("it resolves %s", text)
	}
}

func TestDecide_clockSteps(t *testing.T) {
	l := newLife(t, idlePolicy)
	f := func(now int64, want string, subjects ...string) {
		t.Helper()
		if got := l.look(now, subjects...); got != want {
			t.Errorf("at %d: %q, want %q", now-begin, got, want)
		}
	}
	f(begin, "idle,acme,s,1", "s")
	f(begin-86_400, "", "s")
	f(begin+86_400, "", "s")
	for range 4 {
		f(begin+86_400, "")
	}
	f(begin+86_400, "idle,acme,s,1,resolved")
	f(begin+86_400-300, "", "s") // back, within the cooldown
	f(begin, "idle,acme,s,2", "s")
}

func TestDecide_waitsForTheEndOfQuietHours(t *testing.T) {
	f := func(hours string, now int64, want string) {
		t.Helper()
		l := newLife(t, idlePolicy+"quiet_hours: "+hours+"\n")
		l.look(now, "s")
		if got := l.log[0].Wait; got != want {
			t.Errorf("%s: it waits until %q, want %q", hours, got, want)
		}
	}
	f("{from: '22:00', to: '08:00', timezone: UTC}", begin, "")
	f("{from: '10:00', to: '12:30', timezone: UTC}", begin, "2026-01-05T12:30:00Z")
	f("{from: '20:00', to: '08:00', timezone: Asia/Shanghai}", begin, "2026-01-06T00:00:00Z")
	f("{from: '00:00', to: '24:00', timezone: UTC, days: [mon, tue]}", begin, "2026-01-07T00:00:00Z")
	f("{from: '00:00', to: '24:00', timezone: UTC}", begin, "2026-01-12T12:00:00Z")
	// The night of 23 March has 7 hours less one in Berlin.
	f("{from: '22:00', to: '05:00', timezone: Europe/Berlin}", second(t, "2026-03-29T00:59:59Z"),
		"2026-03-29T03:00:00Z")
}

func TestAcknowledge(t *testing.T) {
	l := newLife(t, idlePolicy)
	l.look(begin, "s")
	a, ok := l.history.Find("idle,acme,s,1")
	if !ok {
		t.Fatal("it does not fire")
	}
	taken, err := a.Acknowledge("ann", "on it", begin+60)
	if err != nil {
		t.Fatal(err)
	}
	if got := l.append([]alert.Alert{taken, taken}); got != "idle,acme,s,1,acknowledged" {
		t.Errorf("the log took %q", got)
	}
	a, _ = l.history.Find("idle,acme,s,1")
	if _, err := a.Acknowledge("bob", "", begin+120); err == nil {
		t.Error("it can be acknowledged twice")
	}
	if got := l.look(begin+120, "s"); got != "" {
		t.Errorf("what was acknowledged fires %q", got)
	}
	for range alert.ClearLooks {
		l.look(begin + 180)
	}
	last := l.log[len(l.log)-1]
	if last.Status != alert.Resolved || last.By != "ann" || last.Since != l.log[0].At {
		t.Errorf("last is %+v", last)
	}
}

func TestDrop_resolvesWhatNoPolicyWatches(t *testing.T) {
	l := newLife(t, idlePolicy)
	l.look(begin, "s")
	all := policies(t, idlePolicy)
	if got := l.append(l.damper.Drop(l.history, all, begin)); got != "" {
		t.Errorf("dropped %q", got)
	}
	off := policies(t, idlePolicy+"enabled: false\n")
	if got := l.append(l.damper.Drop(l.history, off, begin)); got != "idle,acme,s,1,resolved" {
		t.Errorf("dropped %q", got)
	}
	if l.log[1].Why != alert.Ended {
		t.Errorf("why is %q", l.log[1].Why)
	}
}

func TestHistory_forgetsByTheLogAloneAndRepeatsNoKey(t *testing.T) {
	l := newLife(t, idlePolicy)
	l.history = alert.NewHistory(3)
	now := begin
	keys := make(map[string]bool)
	for round := range 4 {
		for s := range 5 {
			now += 3600
			l.look(now, fmt.Sprint("s", s))
			for range alert.ClearLooks {
				l.look(now)
			}
			fired := l.log[len(l.log)-2]
			if keys[fired.Key] || fired.Status != alert.Firing {
				t.Fatalf("round %d: %s is decided again", round, fired.ID)
			}
			keys[fired.Key] = true
		}
	}
	again := alert.NewHistory(3)
	for i := range l.log {
		if !again.Add(&l.log[i]) {
			t.Errorf("one who reads the log later ignores %s", l.log[i].ID)
		}
	}
	for i := range l.log {
		if again.Add(&l.log[i]) {
			t.Errorf("the log again takes %s", l.log[i].ID)
		}
	}
}

// Property: however many decide, with whatever delay between deciding and appending, no two records
// that count have one ID, each episode fires once and resolves at most once, and nobody fires what
// fires.
func TestHistory_deciders(t *testing.T) {
	p := policy(t, idlePolicy)
	rapid.Check(t, func(t *rapid.T) {
		var log []alert.Alert // as appended
		type decider struct {
			history *alert.History
			damper  *alert.Damper
			read    int
			late    []alert.Alert // decided, and not appended yet
		}
		deciders := make([]decider, 3)
		for i := range deciders {
			deciders[i] = decider{history: alert.NewHistory(1000), damper: alert.NewDamper()}
		}
		now := begin
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			now += 60
			d := &deciders[rapid.IntRange(0, 2).Draw(t, "who")]
			if rapid.IntRange(0, 9).Draw(t, "crash") == 0 {
				*d = decider{history: alert.NewHistory(1000), damper: alert.NewDamper()}
			}
			log = append(log, d.late...)
			d.late = nil
			for ; d.read < len(log); d.read++ {
				d.history.Add(&log[d.read])
			}
			var look alert.Look
			for s := range 2 {
				if rapid.IntRange(0, 3).Draw(t, "found") == 0 {
					look.Findings = append(look.Findings,
						alert.Finding{Tenant: "acme", Subject: fmt.Sprint(s)})
				}
			}
			decided := d.damper.Decide(d.history, p, look, now)
			if rapid.Bool().Draw(t, "late") {
				d.late = decided
			} else {
				log = append(log, decided...)
			}
		}
		history, last := alert.NewHistory(1000), make(map[string]alert.Status)
		seen := make(map[string]bool)
		for i := range log {
			a := &log[i]
			if !history.Add(a) {
				continue
			}
			if seen[a.ID] {
				t.Fatalf("%s counts twice", a.ID)
			}
			seen[a.ID] = true
			if fires := last[a.Subject] == alert.Firing; fires == (a.Status == alert.Firing) {
				t.Fatalf("%s follows %s", a.ID, last[a.Subject])
			}
			last[a.Subject] = a.Status
		}
	})
}

func TestValidate(t *testing.T) {
	l := newLife(t, idlePolicy)
	l.look(begin, "s")
	good := l.log[0]
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	f := func(what string, change func(*alert.Alert)) {
		t.Helper()
		bad := good
		change(&bad)
		if bad.Validate() == nil {
			t.Errorf("%s is valid", what)
		}
	}
	f("another key", func(a *alert.Alert) { a.Key = "x" })
	f("another id", func(a *alert.Alert) { a.ID = "x" })
	f("another status", func(a *alert.Alert) { a.Status = "x" })
	f("another kind", func(a *alert.Alert) { a.Kind = "x" })
	f("no time", func(a *alert.Alert) { a.At = "" })
	f("no episode", func(a *alert.Alert) { a.Episode = 0 })
	if _, err := metering.ParseInstant(good.At); err != nil {
		t.Error(err)
	}
}
