package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
)

// bases are instants at which runs begin: an ordinary one, one before a month's end in New York,
// and ones before its clocks change.
var bases = []string{
	"2026-01-14T09:20:00Z", "2026-02-01T03:50:00Z", "2026-03-08T06:10:00Z", "2026-11-01T05:05:00Z",
}

var tenants = []string{"acme", "blue", "coral", "delta"}

// newcomer is a tenant whose document is published in the run, as one that always was: every record
// that the log has after it must find it.
const newcomer = "echo"

// intent is what the fleet means an event to be. Each event has bytes of its own.
type intent struct {
	id         string
	kind       string // held, void, consumed, market, other; "" for what cannot be read
	source     string
	tenant     string
	session    string
	skus       []string
	start, end time.Time // end is also the time of a consumed event
}

// fleet is all that sends.
type fleet struct {
	w       *world
	intents map[string]*intent // by value
	pending int                // sends that are still to come
	count   int
	longest int64 // increment of the run's book, in seconds
	leases  []*lease

	newcomer bool     // its document is in the log
	early    []func() // sends that wait for it
}

// lease is one session of the fleet.
type lease struct {
	tenant, project, session, purchase, region, node string
	start, end                                       time.Time
	held                                             map[string]string
	resumed                                          bool
	labels                                           map[string]string
	window                                           time.Duration
}

func newFleet(w *world, duration time.Duration, sessions int) *fleet {
	f := &fleet{w: w, intents: make(map[string]*intent)}
	w.fleet = f
	f.longest = []int64{60, 600, 600, 3600}[w.rng.IntN(4)]
	f.catalog(duration)
	f.market(duration)
	for i := range sessions {
		f.lease(i, duration)
	}
	f.consumption(duration)
	f.poison(duration)
	return f
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// value makes the bytes of an event.
func (f *fleet) value(typ string, in *intent, data map[string]any) string {
	f.count++
	if in.id == "" {
		in.id = fmt.Sprintf("e%d", f.count)
	}
	if in.source == "" {
		in.source = "/sim"
	}
	text, err := json.Marshal(map[string]any{
		"specversion": "1.0", "type": typ, "source": in.source, "id": in.id, "data": data,
		"serial": f.count, // so that the bytes of no two events are equal
	})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	f.intents[string(text)] = in
	return string(text)
}

// send has a usage record appended at an instant, in its tenant's partition or elsewhere.
func (f *fleet) send(at time.Time, tenant, value string, headers ...pipeline.Header) {
	record := pipeline.Record{
		Topic: schemas.TopicUsage, Key: []byte(tenant), Value: []byte(value), Headers: headers,
	}
	partition := partitionOf(tenant)
	if f.w.chance(30) {
		partition = f.w.rng.IntN(partitions)
	}
	if f.w.chance(15) {
		record.Key = []byte(tenants[f.w.rng.IntN(len(tenants))])
		partition = partitionOf(string(record.Key))
	}
	f.deliver(at, record, partition)
}

// deliver appends a record and repeats that until it is acknowledged.
func (f *fleet) deliver(at time.Time, record pipeline.Record, partition int) {
	f.pending++
	f.w.at(at, func() {
		f.pending--
		again := f.w.now.Add(f.w.between(100*time.Millisecond, 15*time.Second))
		in := f.intents[string(record.Value)]
		if in != nil && in.tenant == newcomer && !f.newcomer {
			f.pending++
			f.early = append(f.early, func() {
				f.pending--
				f.deliver(f.w.now.Add(f.w.between(0, time.Second)), record, partition)
			})
			return
		}
		if f.w.fault(30) {
			f.deliver(again, record, partition)
			return
		}
		f.w.log.append(record, partition)
		f.arrived(record)
		if f.w.fault(20) {
			f.w.met("producer's repeat")
			f.deliver(again, record, partition)
		}
	})
}

// arrived sends what waited for the newcomer's document.
func (f *fleet) arrived(record pipeline.Record) {
	if record.Topic != schemas.TopicCatalog || !strings.Contains(string(record.Value), newcomer) {
		return
	}
	f.newcomer = true
	for _, send := range f.early {
		send()
	}
	f.early = nil
}

// lease makes the events of one session.
func (f *fleet) lease(i int, duration time.Duration) {
	w := f.w
	l := &lease{
		tenant: tenants[w.rng.IntN(len(tenants))], project: fmt.Sprintf("p%d", w.rng.IntN(2)),
		session: fmt.Sprintf("s%d", i), purchase: "on_demand", region: "us-east",
		node: fmt.Sprintf("n%d", i), resumed: w.chance(200), held: make(map[string]string),
		window: w.between(20*time.Second, 4*time.Minute),
	}
	if w.chance(150) {
		l.tenant = newcomer
	}
	l.start = w.start.Add(w.between(-20*time.Minute, duration*3/4))
	l.end = l.start.Add(w.between(30*time.Second, 35*time.Minute))
	if w.chance(250) {
		l.region = "eu-west"
	}
	switch w.rng.IntN(5) {
	case 0, 1:
		l.held["gpu.a"] = "8"
		l.purchase = []string{"on_demand", "spot", "spot"}[w.rng.IntN(3)]
	case 2:
		l.held["gpu.b"] = "0.125"
		l.purchase = []string{"on_demand", "reserved"}[w.rng.IntN(2)]
	case 3:
		l.held["gpu.a"], l.purchase = "1", "spot"
		l.held["cpu.core"] = "16.5"
	default:
		l.held["cpu.core"], l.held["mem.gib"] = "3.333", "64"
	}
	if w.chance(300) {
		l.labels = map[string]string{"stage": "pretraining", "team": "x"}
	}
	f.leases = append(f.leases, l)
	for from := l.start; from.Before(l.end); {
		to := from.Add(l.window)
		if to.After(l.end) {
			to = l.end
		}
		f.window(l, from, to)
		from = to
	}
	if w.chance(500) {
		value := f.held(l, "/platform", l.start, l.end)
		for range 1 + w.rng.IntN(2) {
			f.send(l.end.Add(w.between(-3*time.Second, 10*time.Minute)), l.tenant, value)
		}
	}
	for range w.rng.IntN(3) {
		f.void(l)
	}
	if w.chance(300) {
		f.contradiction(l)
	}
}

// window reports one window of a session: in time, too early, late, twice or never.
func (f *fleet) window(l *lease, from, to time.Time) {
	w := f.w
	value := f.held(l, "/exporter", from, to)
	var at time.Time
	switch n := w.rng.IntN(100); {
	case n < 3:
		return
	case n < 70:
		at = to.Add(w.between(-4*time.Second, 4*time.Second))
	case n < 85:
		at = to.Add(-w.between(5*time.Second, 58*time.Second))
	default:
		at = to.Add(w.between(4*time.Second, 25*time.Minute))
	}
	f.send(at, l.tenant, value)
	for w.chance(150) {
		f.send(at.Add(w.between(0, 20*time.Minute)), l.tenant, value)
	}
	if l.purchase == "spot" && w.chance(400) { // a price that changes just before the window ends
		soon := to.Add(-w.between(500*time.Millisecond, 4*time.Second))
		f.spot(soon, soon.Add(w.between(0, 500*time.Millisecond)), l.region, nil)
	}
	if w.chance(100) {
		overlap := f.held(l, "/second", from.Add(l.window/3), to)
		f.send(to.Add(w.between(0, 2*time.Minute)), l.tenant, overlap)
	}
}

func (f *fleet) held(l *lease, source string, from, to time.Time) string {
	if !from.Before(to) {
		from = to.Add(-time.Second)
	}
	return f.value(schemas.TypeHeld, &intent{
		kind: "held", source: source, tenant: l.tenant, session: l.session, start: from, end: to,
		skus: slices.Sorted(maps.Keys(l.held)),
	}, l.data(from, to))
}

func (l *lease) data(from, to time.Time) map[string]any {
	held := make(map[string]any)
	for sku, amount := range l.held {
		held[sku] = amount
	}
	data := map[string]any{
		"tenant": l.tenant, "project": l.project, "lease": "lease-" + l.session,
		"session": l.session, "session_start": stamp(l.start), "purchase": l.purchase,
		"region": l.region, "node": l.node, "start": stamp(from), "end": stamp(to), "held": held,
	}
	if l.resumed {
		data["resumed"] = true
	}
	if l.labels != nil {
		data["labels"] = l.labels
	}
	return data
}

// void takes a part of a session off, before or after it is reported.
func (f *fleet) void(l *lease) {
	w := f.w
	from := l.start.Add(w.between(-time.Minute, l.end.Sub(l.start)+time.Second))
	to := from.Add(w.between(500*time.Millisecond, 15*time.Minute))
	at := to.Add(w.between(-90*time.Second, 20*time.Minute))
	value := f.value(schemas.TypeVoid, &intent{
		kind: "void", tenant: l.tenant, session: l.session, start: from, end: to,
	}, map[string]any{
		"tenant": l.tenant, "session": l.session, "start": stamp(from), "end": stamp(to),
		"reason": "node fault", "by": "ops",
	})
	f.send(at, l.tenant, value)
	if w.chance(200) {
		f.send(at.Add(w.between(0, 10*time.Minute)), l.tenant, value)
	}
}

// contradiction reports a session with another fact. The first in the log is right.
func (f *fleet) contradiction(l *lease) {
	w := f.w
	other := *l
	switch w.rng.IntN(4) {
	case 0:
		other.project = "p9"
	case 1:
		other.labels = map[string]string{"stage": "finetuning"}
	case 2:
		other.start = l.start.Add(500 * time.Millisecond)
	default:
		other.held = maps.Clone(l.held)
		for sku := range other.held {
			other.held[sku] = "2.5"
		}
	}
	to := l.end
	from := to.Add(-min(l.window, to.Sub(other.start)))
	value := f.held(&other, "/impostor", from, to)
	f.send(to.Add(w.between(0, 5*time.Minute)), l.tenant, value)
}

func (f *fleet) consumption(duration time.Duration) {
	w := f.w
	for i := range 12 {
		tenant := tenants[w.rng.IntN(len(tenants))]
		at := w.start.Add(w.between(0, duration*9/10))
		for range 1 + w.rng.IntN(3) {
			amount := fmt.Sprintf("%d.%d", 1+w.rng.IntN(5000), w.rng.IntN(10))
			if w.chance(200) {
				at = at.Add(time.Hour / 4) // another second, perhaps another price
			}
			value := f.value(schemas.TypeConsumed, &intent{
				id: fmt.Sprintf("c%d", i), kind: "consumed", tenant: tenant, end: at,
				skus: []string{"license", "tokens"},
			}, map[string]any{
				"tenant": tenant, "project": "p0", "time": stamp(at),
				"consumed": map[string]any{"tokens": amount, "license": json.Number("1.5")},
			})
			for range 1 + w.rng.IntN(2) {
				f.send(at.Add(w.between(-80*time.Second, 9*time.Minute)), tenant, value)
			}
		}
	}
}
