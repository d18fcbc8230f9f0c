package sim

import (
	"fmt"
	"time"

	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
)

// poison sends what cannot be rated, for every reason that there is.
func (f *fleet) poison(duration time.Duration) {
	w := f.w
	when := func() time.Time { return w.start.Add(w.between(0, duration)) }
	pick := func() string { return tenants[w.rng.IntN(len(tenants))] }
	for _, text := range []string{
		"", "[]", `{"specversion":"1.0"`, "\x00\xff", `{"id":1} x`,
	} {
		f.intents[text] = &intent{}
		f.send(when(), pick(), text)
	}
	sound := func() (*lease, time.Time) {
		end := when()
		return &lease{
			tenant: pick(), project: "p0", session: fmt.Sprintf("x%d", f.count), purchase: "on_demand",
			region: "us-east", start: end.Add(-time.Minute), end: end,
			held: map[string]string{"gpu.a": "1"},
		}, end
	}
	spoil := func(change func(l *lease, data map[string]any)) {
		l, end := sound()
		data := l.data(l.start, l.end)
		change(l, data)
		tenant, _ := data["tenant"].(string)
		value := f.value(schemas.TypeHeld, &intent{
			kind: "held", tenant: tenant, session: l.session, start: l.start, end: l.end,
		}, data)
		f.send(end.Add(w.between(0, 3*time.Minute)), l.tenant, value)
	}
	// Without a tenant that can be read, it stays where it is.
	spoil(func(_ *lease, d map[string]any) { delete(d, "tenant") })
	spoil(func(_ *lease, d map[string]any) { d["tenant"] = "nobody" })
	spoil(func(l *lease, d map[string]any) { d["end"] = d["start"] })
	spoil(func(l *lease, d map[string]any) { d["session_start"] = stamp(l.start.Add(time.Second)) })
	spoil(func(l *lease, d map[string]any) { d["start"] = stamp(l.end.Add(-25 * time.Hour)) })
	for _, amount := range []string{"0", "-1", "1e3", "0.0001", "x"} {
		spoil(func(_ *lease, d map[string]any) { d["held"] = map[string]any{"gpu.a": amount} })
	}
	for _, sku := range []string{"gpu.none", "tokens", "gpu.later"} {
		spoil(func(_ *lease, d map[string]any) { d["held"] = map[string]any{"gpu.a": "1", sku: "1"} })
	}
	f.unreadable(when, pick)
	f.fromTheFuture(sound)
	f.elsewhere(when, pick)
}

// unreadable events name a tenant, but are rejected before that is looked at.
func (f *fleet) unreadable(when func() time.Time, pick func() string) {
	tenant := pick()
	f.send(when(), tenant, f.value("suanpan.usage.held.v9", &intent{},
		map[string]any{"tenant": tenant}))
	f.send(when(), tenant, f.value(schemas.TypeHeld, &intent{},
		map[string]any{"tenant": tenant, "start": "yesterday"}))
	f.send(when(), tenant, f.value(schemas.TypeVoid, &intent{}, map[string]any{"tenant": tenant}))
	for _, sku := range []string{"gpu.a", "none"} { // one before and one behind what has a price
		at := when()
		f.send(at, tenant, f.value(schemas.TypeConsumed, &intent{
			kind: "consumed", tenant: tenant, end: at, skus: []string{sku},
		}, map[string]any{
			"tenant": tenant, "project": "p0", "time": stamp(at),
			"consumed": map[string]any{sku: "1", "license": "1"},
		}))
	}
}

// fromTheFuture sends sound events too early, of sessions that nobody else reports.
func (f *fleet) fromTheFuture(sound func() (*lease, time.Time)) {
	for range 3 {
		l, end := sound()
		early := f.w.between(61*time.Second, 50*time.Minute)
		f.send(end.Add(-early), l.tenant, f.held(l, "/ahead", l.start, l.end))
	}
}

// elsewhere sends what belongs elsewhere, and what is only archived.
func (f *fleet) elsewhere(when func() time.Time, pick func() string) {
	tenant := pick()
	at := when()
	f.send(at, tenant, f.value(schemas.TypeMarketPrice, &intent{kind: "market", end: at},
		map[string]any{"sku": "gpu.a", "region": "us-east", "price": "1.2", "time": stamp(at)}))
	f.send(when(), tenant, f.value(schemas.TypeQueue, &intent{kind: "other"},
		map[string]any{"pool": "a", "time": stamp(at), "depth": 3, "wait_seconds": 9}))
	f.send(when(), tenant, f.value(schemas.TypeOutage, &intent{kind: "other", tenant: tenant},
		map[string]any{
			"tenant": tenant, "start": stamp(at), "end": stamp(at.Add(time.Minute)), "cause": "x",
		}))
	f.send(when(), "nobody", f.value(schemas.TypeCheckpoint, &intent{kind: "other", tenant: "nobody"},
		map[string]any{"tenant": "nobody", "session": "s", "time": stamp(at)}))
	// It says that it was forwarded, and is still in another partition.
	l := &lease{
		tenant: tenant, project: "p0", session: "lost", purchase: "on_demand", region: "us-east",
		start: at.Add(-time.Minute), end: at, held: map[string]string{"gpu.a": "1"},
	}
	f.deliver(at.Add(10*time.Second), pipeline.Record{
		Topic: schemas.TopicUsage, Key: []byte(tenant),
		Value: []byte(f.held(l, "/lost", l.start, l.end)),
		Headers: []pipeline.Header{
			{Key: pipeline.HeaderForwardedFrom, Value: []byte("suanpan.usage/9/1")},
			{Key: pipeline.HeaderForwardedTime, Value: []byte(stamp(at))},
		},
	}, (partitionOf(tenant)+1)%partitions)
}
