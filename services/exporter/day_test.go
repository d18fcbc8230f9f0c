package exporter

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/nvml"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
	"github.com/suanpan/suanpan/services/exporter/gauge"
	"github.com/suanpan/suanpan/services/exporter/lease"
	"github.com/suanpan/suanpan/services/exporter/session"
)

const dayCatalog = `
kind: PriceBook
name: public
currency: CNY
timezone: UTC
prices:
- {sku: gpu.h100-80g, price: "1", per: second}
---
kind: Tenant
name: acme
price_book: public
`

// card is a GPU of a node in a test. Its energy grows by 400 J a second.
func card(i int) nvml.Device {
	return nvml.Device{
		UUID: fmt.Sprintf("GPU-%d", i), Name: "NVIDIA H100 80GB HBM3", Index: i,
		MIGIndex: nvml.None, MemoryMiB: 81559,
	}
}

// driver is a driver of cards that can go away and lose some.
type driver struct {
	cards []nvml.Device
	down  bool
	lost  map[string]bool
	now   func() time.Time
}

func (d *driver) Devices() ([]nvml.Device, error) {
	if d.down {
		return nil, nvml.ErrDriver
	}
	var there []nvml.Device
	for _, c := range d.cards {
		if !d.lost[c.UUID] {
			there = append(there, c)
		}
	}
	return there, nil
}

func (d *driver) Read(c nvml.Device) (nvml.Reading, error) {
	switch {
	case d.down:
		return nvml.Reading{}, nvml.ErrDriver
	case d.lost[c.UUID]:
		return nvml.Reading{}, nvml.ErrLost
	}
	return nvml.Reading{
		GPUUtil: nvml.Some(0.5), PowerW: nvml.Some(400.0),
		EnergyMJ: nvml.Some(uint64(d.now().Unix()) * 400_000),
	}, nil
}

func (d *driver) Events() ([]nvml.Event, error) { return nil, nil }
func (d *driver) Driver() string                { return "590.48.01" }

// scheduler is a source that knows when its leases began and ended, by the wall clock.
type scheduler struct {
	leases []lease.Lease
	ended  map[string]time.Duration // lease -> when, by the monotonic clock
	away   bool
	now    func() session.Instant
}

func (s *scheduler) Name() string { return "scheduler" }

func (s *scheduler) Leases(context.Context) ([]lease.Lease, error) {
	if s.away {
		return nil, errors.New("the scheduler is away")
	}
	var recent []lease.Lease // as Slurm, it forgets jobs after a while
	now := s.now().Mono
	for _, l := range s.leases {
		if end, over := s.ended[l.Lease]; !over || now-end < 3*time.Hour {
			recent = append(recent, l)
		}
	}
	return recent, nil
}

// broker is a log that rates what it is sent.
type broker struct {
	t       *testing.T
	away    bool
	forgets bool // it takes events, and does not say so
	offline *rating.Offline
	parser  *metering.Parser
	last    map[string]metering.Instant // session -> end of its last window
	now     func() time.Time
	count   int
}

func (b *broker) Append(_ context.Context, records ...pipeline.Record) error {
	if b.away {
		return errors.New("no broker answers")
	}
	for _, r := range records {
		var e metering.Event
		if why := b.parser.Parse(r.Value, &e); why != nil {
			b.t.Fatalf("%s: %v", r.Value, why)
		}
		if ahead := e.End.Time().Sub(b.now()); ahead > time.Minute {
			b.t.Fatalf("%s is %s ahead", r.Value, ahead)
		}
		if why := b.offline.Rate(&e); why != nil {
			b.t.Fatalf("%s: %v", r.Value, why)
		}
		if last, ok := b.last[e.Session]; ok && e.Start > last {
			b.t.Fatalf("a window of session %s begins at %s, the one before ended at %s", e.Session,
				e.Start, last)
		}
		b.last[e.Session] = max(b.last[e.Session], e.End)
		b.count++
	}
	if b.forgets {
		b.forgets = false
		return errors.New("connection reset")
	}
	return nil
}

// day is a node for a day, with its exporter.
type day struct {
	t         *testing.T
	random    *rand.Rand
	dir       string
	now       session.Instant
	boot      string
	driver    *driver
	scheduler *scheduler
	broker    *broker
	exporter  *Exporter // nil: killed
	sampler   *gauge.Sampler
	requests  *lease.Requests
	truths    map[string]*truth
	holds     map[int]string // card -> lease
	kills     int
	losses    int // of cards
}

// truth is a lease as it really was.
type truth struct {
	name     string
	cards    []int
	scripted int // its place in the scheduler; -1: it was requested
	began    time.Duration
	end      time.Duration // 0: it goes on
}

func (d *day) clock() session.Instant { return d.now }

func newSampler(d *driver, now func() time.Time) *gauge.Sampler {
	return gauge.New(d, gauge.Config{Now: now, SKU: SKUs{}.Of})
}

// start starts the exporter, as after kill -9.
func (d *day) start() {
	d.t.Helper()
	now, zero := SamplerClock(d.clock)
	d.sampler = newSampler(d.driver, now)
	d.driver.now = now
	var err error
	d.exporter, err = Open(Config{
		Node: "n1", Region: "cn-north", Dir: d.dir, SpoolMax: 100 << 10, Clock: d.clock,
		Boot: d.boot, Sampler: d.sampler, Zero: zero,
	})
	if err != nil {
		d.t.Fatal(err)
	}
	d.requests, err = lease.OpenRequests(filepath.Join(d.dir, "requests.json"), func() time.Time {
		return d.now.Wall
	})
	if err != nil {
		d.t.Fatal(err)
	}
	_ = d.sampler.Step(now()) // the driver may be away
}

// kill ends the exporter without a word; torn: after windows were stored, and before that was
// noted.
func (d *day) kill(torn bool) {
	d.t.Helper()
	path := filepath.Join(d.dir, stateName)
	before, err := os.ReadFile(path)
	if torn && err == nil {
		_ = d.exporter.Report(false)
		if err := os.WriteFile(path, before, 0o600); err != nil {
			d.t.Fatal(err)
		}
	}
	if err := d.exporter.Close(); err != nil { // it closes files, and does nothing else
		d.t.Fatal(err)
	}
	d.exporter = nil
	d.kills++
}

// second lets a second pass, in which everything does what it does each second.
func (d *day) second() {
	d.now.Mono += time.Second
	d.now.Wall = d.now.Wall.Add(time.Second)
	if d.exporter == nil {
		return
	}
	_ = d.sampler.Step(d.driver.now())
	_ = d.exporter.Poll(d.t.Context(), d.scheduler)
	if err := d.exporter.Poll(d.t.Context(), d.requests); err != nil {
		d.t.Fatal(err)
	}
	_ = d.exporter.Report(false) // the spool may be full
	_, _ = d.exporter.Send(d.t.Context(), d.broker)
}

func (d *day) seconds(n int) {
	for range n {
		d.second()
	}
}

// usable reports whether a lease of a card can begin: it does with the card.
func (d *day) usable(card int) bool {
	uuid := d.driver.cards[card].UUID
	if d.exporter == nil || d.driver.lost[uuid] {
		return !d.driver.lost[uuid]
	}
	return slices.ContainsFunc(d.sampler.Status(), func(s gauge.Status) bool {
		return s.UUID == uuid && !s.Lost
	})
}

// seen reports whether the exporter knows of all leases that go on.
func (d *day) seen() bool {
	if d.exporter == nil {
		return false
	}
	known := map[string]bool{}
	for _, s := range d.exporter.Sessions() {
		known[s.Lease] = true
	}
	for _, l := range d.truths {
		if l.end == 0 && !known[l.name] {
			return false
		}
	}
	return true
}

// lose lets a card fall off the bus, be it held or not, or brings back the one that did.
func (d *day) lose() {
	if len(d.driver.lost) > 0 {
		clear(d.driver.lost)
		return
	}
	d.driver.lost[d.driver.cards[d.random.IntN(len(d.driver.cards))].UUID] = true
	d.losses++
}

// begin begins a lease on free cards, if there are some that can be used.
func (d *day) begin() {
	scripted := d.random.IntN(2) == 0
	if d.driver.down || d.exporter == nil && !scripted {
		return
	}
	var cards []int
	for i := range d.driver.cards {
		if d.holds[i] == "" && len(cards) < 1+d.random.IntN(4) && d.usable(i) {
			cards = append(cards, i)
		}
	}
	if len(cards) == 0 {
		return
	}
	l := &truth{
		name: fmt.Sprintf("lease-%d", len(d.truths)), cards: cards, scripted: -1, began: d.now.Mono,
	}
	var devices []lease.Device
	var names []string
	for _, i := range cards {
		d.holds[i] = l.name
		names = append(names, strconv.Itoa(i))
		devices = append(devices, lease.Device{Name: d.driver.cards[i].UUID, Milli: 1000})
	}
	if scripted {
		l.scripted = len(d.scheduler.leases)
		d.scheduler.leases = append(d.scheduler.leases, lease.Lease{
			Key: l.name, Tenant: "acme", Project: "llm", Lease: l.name, Purchase: "on_demand",
			Devices: devices, Start: d.now.Wall,
		})
	} else if _, err := d.requests.Start(lease.Document{
		Lease: l.name, Tenant: "acme", Devices: names,
	}); err != nil {
		d.t.Fatal(err)
	}
	d.truths[l.name] = l
}

// pick returns a lease that goes on, or nil.
func (d *day) pick() *truth {
	for range 10 {
		if l := d.truths[fmt.Sprintf("lease-%d", d.random.IntN(len(d.truths)+1))]; l != nil &&
			l.end == 0 && l.began < d.now.Mono && (l.scripted >= 0 || d.exporter != nil) {
			return l
		}
	}
	return nil
}

func (d *day) finish(l *truth) {
	if l == nil {
		return
	}
	l.end = d.now.Mono
	for _, i := range l.cards {
		delete(d.holds, i)
	}
	if l.scripted >= 0 {
		d.scheduler.leases[l.scripted].End = d.now.Wall
		d.scheduler.ended[l.name] = d.now.Mono
	} else if err := d.requests.End("acme", l.name, time.Time{}); err != nil {
		d.t.Fatal(err)
	}
}

// restage changes the stage of a lease.
func (d *day) restage(l *truth) {
	if l == nil || l.scripted >= 0 {
		return
	}
	var names []string
	for _, i := range l.cards {
		names = append(names, strconv.Itoa(i))
	}
	if _, err := d.requests.Start(lease.Document{
		Lease: l.name, Tenant: "acme", Devices: names,
		Labels: map[string]string{"stage": fmt.Sprint(d.random.IntN(1000))},
	}); err != nil {
		d.t.Fatal(err)
	}
}

// step sets the wall clock. What a source noted just before a setting back has two meanings
// afterwards, so it is heard before.
func (d *day) step(by time.Duration) {
	d.scheduler.away = false
	if d.exporter == nil {
		d.start()
	}
	d.seconds(2)
	d.now.Wall = d.now.Wall.Add(by)
	d.seconds(2)
}

// TestDay lets a node live through a day with every fault, a thousand times as fast: the seconds
// that are billed for each lease are those in which it held its cards.
func TestDay(t *testing.T) {
	documents, err := catalog.Parse("day.yaml", []byte(dayCatalog))
	if err != nil {
		t.Fatal(err)
	}
	prices, err := catalog.New(documents)
	if err != nil {
		t.Fatal(err)
	}
	d := &day{
		t: t, random: rand.New(rand.NewPCG(6, 6)), dir: t.TempDir(), boot: "boot 1",
		now:       session.Instant{Mono: time.Hour, Wall: time.Date(2026, 1, 5, 2, 0, 0, 0, time.UTC)},
		driver:    &driver{lost: map[string]bool{}},
		scheduler: &scheduler{ended: map[string]time.Duration{}},
		truths:    map[string]*truth{}, holds: map[int]string{},
	}
	d.broker = &broker{
		t: t, offline: rating.NewOffline(prices), parser: metering.NewParser(),
		last: map[string]metering.Instant{}, now: func() time.Time { return d.now.Wall },
	}
	for i := range 8 {
		d.driver.cards = append(d.driver.cards, card(i))
	}
	d.scheduler.now = d.clock
	d.start()
	began := d.now.Mono
	full, late := int64(0), int64(0)
	for second := 0; d.now.Mono-began < 24*time.Hour; second++ {
		d.second()
		if d.exporter != nil {
			stats := d.exporter.spool.Stats()
			full, late = max(full, stats.Full), max(late, stats.Records)
			if stats.Lost > 0 || stats.Torn > 0 {
				t.Fatalf("the spool lost something: %+v", stats)
			}
		}
		d.fault(second)
	}
	d.end()
	d.check(prices)
	counts := d.exporter.engine.Counts()
	if counts.Early != 0 || counts.TooOld != 0 || counts.Twice != 0 {
		t.Errorf("counts %+v", counts)
	}
	if full == 0 || late < 150 || d.kills < 20 || d.losses < 10 || len(d.truths) < 100 {
		t.Errorf("a quiet day: full %d times, %d events waited, %d kills, %d cards lost, %d leases",
			full, late, d.kills, d.losses, len(d.truths))
	}
	t.Logf("%d leases, %d events, %d kills, %d cards lost, spool full %d times, at most %d events "+
		"waited", len(d.truths), d.broker.count, d.kills, d.losses, full, late)
}

// fault lets things happen in a second of the day.
func (d *day) fault(second int) {
	chance := func(of int) bool { return d.random.IntN(of) == 0 }
	if chance(150) {
		d.begin()
	}
	if chance(200) {
		d.finish(d.pick())
	}
	if chance(900) && d.exporter != nil {
		d.restage(d.pick())
	}
	switch { // Kafka is away for two hours, and later for six
	case second == 7200, second == 36_000:
		d.broker.away = true
	case second == 14_400, second == 57_600:
		d.broker.away = false
	case chance(700):
		d.broker.forgets = true
	}
	if chance(2500) && (d.driver.down || d.seen()) {
		d.driver.down = !d.driver.down
	}
	if chance(1200) && d.seen() {
		d.lose()
	}
	if second == 30_000 { // hot plug
		d.driver.cards = append(d.driver.cards, card(len(d.driver.cards)))
	}
	if chance(1200) {
		d.scheduler.away = !d.scheduler.away
	}
	switch {
	case d.exporter == nil && chance(120):
		d.start()
	case d.exporter != nil && chance(1500):
		d.kill(chance(2))
	}
	if chance(4000) {
		steps := []time.Duration{
			-time.Hour, time.Hour, -90 * time.Second, 10 * time.Minute, -13 * time.Second,
		}
		d.step(steps[d.random.IntN(len(steps))])
	}
}

// end ends all leases, and lets everything recover.
func (d *day) end() {
	if d.exporter == nil {
		d.start()
	}
	d.scheduler.away, d.broker.away, d.broker.forgets, d.driver.down = false, false, false, false
	clear(d.driver.lost)
	d.seconds(2)
	for _, l := range d.truths {
		if l.end == 0 {
			d.finish(l)
		}
	}
	for range 100_000 { // sessions that run ahead wait for the wall clock
		d.second()
		if d.exporter.spool.Stats().Records == 0 && len(d.exporter.Sessions()) == 0 {
			return
		}
	}
	d.t.Fatalf("left in the end: %+v", d.exporter.spool.Stats())
}

// check compares what was billed with the truth.
func (d *day) check(prices *catalog.Catalog) {
	items, err := d.broker.offline.Ledger().LineItems(prices)
	if err != nil {
		d.t.Fatal(err)
	}
	billed := map[string]int64{}
	for _, item := range items {
		whole, fraction, _ := strings.Cut(item.BaseQuantity, ".")
		if strings.Trim(fraction, "0") != "" {
			d.t.Errorf("%s: parts of seconds: %s", item.Lease, item.BaseQuantity)
		}
		seconds, err := strconv.ParseInt(whole, 10, 64)
		if err != nil {
			d.t.Fatal(err)
		}
		billed[item.Lease] += seconds
	}
	for name, l := range d.truths {
		want := int64((l.end-l.began)/time.Second) * int64(len(l.cards))
		if billed[name] != want {
			d.t.Errorf("%s (scripted %d, %s to %s): %d seconds billed, %d held", name, l.scripted,
				l.began, l.end, billed[name], want)
		}
		delete(billed, name)
	}
	if len(billed) > 0 {
		d.t.Errorf("billed without a lease: %v", billed)
	}
}
