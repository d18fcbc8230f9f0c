package alert

import (
	"maps"
	"strconv"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
)

// ClearLooks is how many looks in a row must find nothing before an alert resolves. It keeps what
// flutters about a threshold from being told again and again.
const ClearLooks = 5

// Finding is something that a policy found.
type Finding struct {
	Tenant  string // "" where it is about the platform
	Subject string // what it is about, such as a session: the same thing has the same one
	Labels  map[string]string
	Figures []Figure
	Query   string // SQL that shows the figures; "" is none
	Hint    *Hint  // nil: none
}

// Look is what a policy found at one moment.
type Look struct {
	Findings []Finding
	// Unsure reports whether nothing is known at this moment of what an alert is about: it stays
	// as it is then. Nil: all is known.
	Unsure func(a *Alert) bool
}

// Damper counts how often in a row what fires was not found.
type Damper struct{ clear map[string]int } // by stem

// NewDamper returns a damper that has counted nothing.
func NewDamper() *Damper { return &Damper{make(map[string]int)} }

// Decide returns the changes that a look of a policy makes: what fires, and what resolves.
func (d *Damper) Decide(h *History, p *catalog.Policy, look Look, now int64) []Alert {
	var out []Alert
	found := make(map[string]bool)
	for i := range look.Findings {
		f := &look.Findings[i]
		stem := stemOf(p.Name, f.Tenant, f.Subject)
		if found[stem] {
			continue
		}
		found[stem] = true
		delete(d.clear, stem)
		if !h.fires(stem, now, p.Cooldown) {
			out = append(out, fire(p, f, h.episode(stem), now))
		}
	}
	for a := range h.Open() {
		stem := a.stem()
		if a.Name != p.Name || a.Kind != Kind(p.Type) || found[stem] ||
			look.Unsure != nil && look.Unsure(a) {
			continue
		}
		d.clear[stem]++
		if d.clear[stem] >= ClearLooks {
			delete(d.clear, stem)
			out = append(out, quiet(p, a.resolve(Recovered, now), now))
		}
	}
	return out
}

// Drop returns what resolves because its policy is not in force any more.
func (d *Damper) Drop(h *History, policies []*catalog.Policy, now int64) []Alert {
	type rule struct {
		name string
		kind Kind
	}
	inForce := make(map[rule]bool)
	for _, p := range policies {
		inForce[rule{p.Name, Kind(p.Type)}] = true
	}
	var out []Alert
	fires := make(map[string]bool)
	for a := range h.Open() {
		if a.Kind == Budget {
			continue
		}
		fires[a.stem()] = true
		if !inForce[rule{a.Name, a.Kind}] {
			out = append(out, a.resolve(Ended, now))
		}
	}
	maps.DeleteFunc(d.clear, func(stem string, _ int) bool { return !fires[stem] })
	return out
}

func fire(p *catalog.Policy, f *Finding, episode, now int64) Alert {
	a := Alert{
		Status: Firing, Kind: Kind(p.Type), Tenant: f.Tenant, Name: p.Name, Version: p.From,
		Subject: f.Subject, Episode: episode, Labels: f.Labels, Figures: f.Figures, Query: f.Query,
		Hint: f.Hint, At: metering.InstantOf(now).String(), To: contacts(p.Notify),
	}
	a.Key = stemOf(p.Name, f.Tenant, f.Subject) + "," + strconv.FormatInt(episode, 10)
	a.ID = recordID(a.Key, Firing)
	return quiet(p, a, now)
}

// quiet has a message wait for the end of the policy's quiet hours.
func quiet(p *catalog.Policy, a Alert, now int64) Alert {
	if p.QuietHours != nil && p.QuietHours.Holds(now) {
		a.Wait = metering.InstantOf(p.QuietHours.End(now)).String()
	}
	return a
}
