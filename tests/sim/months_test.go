package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
)

// ends are months' ends at which runs begin: in New York, two of them with a change of its clocks
// near, and in Shanghai, where a contract is.
var ends = []string{
	"2026-02-01T05:00:00Z", "2026-04-01T04:00:00Z", "2026-11-01T04:00:00Z", "2026-01-31T16:00:00Z",
}

// months is what a world has in which periods are closed.
type months struct {
	grace   time.Duration
	idle    map[*node]bool  // the last step of a biller found nothing to do
	given   map[string]bool // tenants that a person gave something back, or voided a draft of
	rerates bool            // some usage is priced anew
}

// order gives orders in the usage log, which no fleet sent, their intents.
func (f *fleet) order(r pipeline.Record) {
	if _, ok := f.intents[string(r.Value)]; ok {
		return
	}
	var e struct {
		Type string `json:"type"`
		Data struct {
			Tenant string    `json:"tenant"`
			Until  time.Time `json:"until"`
		} `json:"data"`
	}
	if err := json.Unmarshal(r.Value, &e); err != nil {
		panic("BUG: an unknown record: " + err.Error())
	}
	kinds := map[string]string{schemas.TypePeriodClose: "close", schemas.TypeRerate: "rerate"}
	kind := kinds[e.Type]
	if kind == "" {
		panic("BUG: an unknown record of type " + e.Type)
	}
	f.intents[string(r.Value)] = &intent{kind: kind, tenant: e.Data.Tenant, end: e.Data.Until}
}

// newMonths makes the world one that closes periods, and returns when its run starts.
func newMonths(w *world) time.Time {
	w.months = &months{
		grace: w.between(time.Minute, 12*time.Minute), idle: make(map[*node]bool),
		given: make(map[string]bool),
	}
	w.months.rerates = w.chance(400)
	end, err := time.Parse(time.RFC3339, ends[w.rng.IntN(len(ends))])
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return end.Add(-w.between(8*time.Minute, 35*time.Minute)).Truncate(time.Second)
}

func (w *world) newBiller() {
	n := w.newNode("biller")
	n.biller = true
	biller := pipeline.NewBiller(pipeline.BillerConfig{
		Bills: plantBills(w.bug, bills{n, w.store}, n), Log: appender{n},
		Billing: plantTail(w.bug, &tail{n: n, records: &w.log.billing}, n), Prices: n.prices,
		Grace: w.months.grace, Batch: 1 + w.rng.IntN(4),
	})
	n.step = func(ctx context.Context, now time.Time) error {
		if n.job != nil {
			return nil
		}
		n.background(func() {
			report, err := biller.Step(ctx, now)
			// What dead letters hold back has later periods and other contracts wait with it.
			w.months.idle[n] = err == nil && !report.More && report.Closed+report.Decided == 0 &&
				(report.Left == 0 || report.Waiting > 0)
			if err != nil {
				n.errors++
				w.event("%s: %v", n.name, err)
			}
			if report.Closed+report.Decided+report.Issued+report.Held+report.Ignored > 0 {
				w.event("%s: %+v", n.name, report)
			}
			if report.Ignored > 0 {
				w.met("decision ignored")
			}
		})
		return nil
	}
}

// monthEnd is the first end of a month in New York after an instant.
func monthEnd(after time.Time) time.Time {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	local := after.In(zone)
	return time.Date(local.Year(), local.Month()+1, 1, 0, 0, 0, 0, zone)
}

// goOn runs the months after the fleet's: each begins a while after the periods that are closed in
// it, with late events of what was billed before.
func (w *world) goOn(c raterConfig) {
	end := w.start
	for range 2 {
		end = monthEnd(end.Add(time.Second))
		for _, hop := range []time.Time{
			end.Add(w.months.grace), end.Add(w.months.grace).AddDate(0, 0, 5),
		} {
			if hop.Add(time.Minute).Before(w.now) {
				continue
			}
			w.advance(hop.Add(-w.between(0, 3*time.Minute)).Sub(w.now))
			w.event("a later month")
			for range 3 + w.rng.IntN(6) {
				w.fleet.late()
			}
			if w.months.rerates && w.chance(700) {
				w.fleet.rerate()
			}
			if w.chance(700) {
				w.at(w.now.Add(w.between(0, 9*time.Minute)), w.giveBack)
			}
			for range w.rng.IntN(4) {
				w.at(w.now.Add(w.between(0, 9*time.Minute)), w.decideHeld)
			}
			for until := w.now.Add(10 * time.Minute); w.now.Before(until) || w.fleet.pending > 0; {
				w.advance(w.pace())
				w.chaos(c)
				w.turns()
				if len(w.problems) > 5 {
					return
				}
			}
			w.settleDown()
		}
	}
}

// settleDown lets a month end without faults.
func (w *world) settleDown() {
	w.drain()
	for range 12 { // billers look for new contracts every ten minutes
		w.advance(time.Minute)
		w.turns()
	}
	w.drain()
	w.faults = true
}

// late sends what comes long after its usage.
func (f *fleet) late() {
	w := f.w
	at := w.now.Add(w.between(0, 8*time.Minute))
	l := f.leases[w.rng.IntN(len(f.leases))]
	switch w.rng.IntN(6) {
	case 0: // all of it, with what was never reported
		f.send(at, l.tenant, f.held(l, "/reconcile", l.start, l.end))
	case 1:
		f.takeSome(l, at)
	case 2: // all of it is taken off
		f.takeOff(l, at)
	case 3: // usage of today, of a new session
		f.today(l, at)
	case 4:
		f.longer(l, at)
	default:
		value := f.value(schemas.TypeConsumed, &intent{
			kind: "consumed", tenant: l.tenant, end: l.start.Truncate(time.Second),
			skus: []string{"license", "tokens"},
		}, map[string]any{
			"tenant": l.tenant, "project": "p1", "time": stamp(l.start.Truncate(time.Second)),
			"consumed": map[string]any{"tokens": fmt.Sprint(1 + w.rng.IntN(3000)), "license": "1"},
		})
		f.send(at, l.tenant, value)
	}
}

// rerate has another price published that held in the past, and what it holds for priced anew.
func (f *fleet) rerate() {
	w := f.w
	at := w.now.Add(w.between(0, 3*time.Minute))
	from := w.start.Add(w.between(-20*time.Minute, 20*time.Minute)).Truncate(time.Second)
	f.deliver(at, pipeline.Record{
		Topic: schemas.TopicCatalog, Value: []byte(f.book(5+w.rng.IntN(3), from, f.longest)),
		Headers: []pipeline.Header{{Key: pipeline.HeaderBatch, Value: []byte("past")}},
	}, 0)
	tenant := tenants[w.rng.IntN(len(tenants))]
	begin := w.start.Add(w.between(-3*time.Hour, 0)).Unix()
	until := w.start.Add(w.between(0, 4*time.Hour)).Unix()
	for range 1 + w.rng.IntN(2) {
		w.at(at.Add(w.between(20*time.Second, 3*time.Minute)), func() {
			r, err := pipeline.RerateRecord(tenant, begin-begin%3600, until-until%3600,
				int64(len(w.log.catalog)), "/ops")
			if err != nil {
				w.fail("%v", err)
				return
			}
			w.met("re-rating")
			f.deliver(w.now, r, partitionOf(tenant))
		})
	}
}

// takeOff takes a whole session off.
func (f *fleet) takeOff(l *lease, at time.Time) {
	from := l.start.Truncate(time.Second)
	to := l.end.Add(time.Second).Truncate(time.Second)
	f.send(at, l.tenant, f.value(schemas.TypeVoid, &intent{
		kind: "void", tenant: l.tenant, session: l.session, start: from, end: to,
	}, map[string]any{
		"tenant": l.tenant, "session": l.session, "start": stamp(from), "end": stamp(to),
		"reason": "goodwill", "by": "ops",
	}))
}

// takeSome takes a part of a session off, long after it.
func (f *fleet) takeSome(l *lease, at time.Time) {
	w := f.w
	from := l.start.Add(w.between(0, l.end.Sub(l.start)))
	to := from.Add(w.between(time.Second, 15*time.Minute))
	f.send(at, l.tenant, f.value(schemas.TypeVoid, &intent{
		kind: "void", tenant: l.tenant, session: l.session, start: from, end: to,
	}, map[string]any{
		"tenant": l.tenant, "session": l.session, "start": stamp(from), "end": stamp(to),
		"reason": "found later", "by": "ops",
	}))
}

// today has a lease like another one used now.
func (f *fleet) today(like *lease, at time.Time) {
	l := *like
	l.session = fmt.Sprintf("m%d", f.count)
	l.start = at.Add(-f.w.between(time.Minute, 40*time.Minute))
	l.end = at
	f.leases = append(f.leases, &l)
	f.send(at, l.tenant, f.held(&l, "/exporter", l.start, l.end))
}

// longer has a session go on for longer than was known.
func (f *fleet) longer(l *lease, at time.Time) {
	from := l.end
	l.end = l.end.Add(f.w.between(time.Minute, 90*time.Minute))
	if l.end.After(at) {
		l.end = from
		return
	}
	f.send(at, l.tenant, f.held(l, "/exporter", from, l.end))
}

// billed says whether all that is closed is decided on, and no biller has more to do.
func (w *world) billed() bool {
	return w.months == nil || !slices.ContainsFunc(w.nodes, func(n *node) bool {
		return n.alive && n.biller && !w.months.idle[n]
	})
}

// rerated says whether the world has re-ratings, after which the bill is not that of a file.
func (w *world) rerated() bool { return w.months != nil && w.months.rerates }
