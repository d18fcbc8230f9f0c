// Package exporter runs on a GPU node: it asks who holds its devices, measures what they do, and
// sends usage events to the log, with nothing lost. It puts together the sources of leases, the
// engine of sessions, the sampler of devices and the spool, and owns the order in which things
// become durable:
//
//  1. a session that began or ended is in the state file,
//  2. its windows are in the spool, and then
//  3. the state file knows that they are;
//  4. what is in the spool is in the log, and then the spool forgets it.
//
// A crash between two of these repeats the second one, which changes no bill.
package exporter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/services/exporter/gauge"
	"github.com/suanpan/suanpan/services/exporter/lease"
	"github.com/suanpan/suanpan/services/exporter/session"
	"github.com/suanpan/suanpan/services/exporter/spool"
)

// Sampler is what the exporter needs to know of devices. A *gauge.Sampler is one.
type Sampler interface {
	Status() []gauge.Status
	Hold([]gauge.Holder)
	Telemetry(uuids []string, from, until time.Time) (gauge.Telemetry, bool)
}

// Source is a source of leases, and how often it is asked.
type Source struct {
	lease.Source
	Every time.Duration
}

// Clock tells the time by both clocks of the node.
type Clock func() session.Instant

// Config says what an exporter does.
type Config struct {
	Node     string
	Region   string // of leases that name none
	Dir      string // of state and spool
	Window   time.Duration
	Backfill time.Duration // see session.Config
	SpoolMax int64         // bytes; see spool.Config
	Clock    Clock
	Boot     string // names the node's boot
	Sampler  Sampler
	Zero     time.Time // what the sampler's clock shows at the monotonic clock's zero
	Log      *slog.Logger
}

// Exporter reports the usage of a node. Its methods may be called concurrently, but for Send, which
// belongs to one goroutine.
type Exporter struct {
	config Config
	spool  *spool.Spool

	mu       sync.Mutex
	engine   *session.Engine
	names    map[string]*lease.Lease // of sessions that have Kubernetes' names
	answered map[string]error        // source -> its last failure, nil: it answered
	failures map[string]int64
	events   int64
	sent     int64
	sending  error // why nothing is sent; nil: it is
	storing  error // why nothing is stored; nil: it is
	crowded  int   // devices of which leases hold more than all
}

// Open opens an exporter with what it knew before. Its folder belongs to it alone.
func Open(config Config) (*Exporter, error) {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open exporter: %w", err)
	}
	queue, err := spool.Open(spool.Config{
		Dir: filepath.Join(config.Dir, "spool"), MaxBytes: config.SpoolMax, Log: config.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("open exporter: %w", err)
	}
	state, err := loadState(config.Dir, config.Log)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open exporter: %w", err), queue.Close())
	}
	now := config.Clock()
	engine := session.New(session.Config{
		Node: config.Node, Window: config.Window, Backfill: config.Backfill,
	}, state, config.Boot, now)
	return &Exporter{
		config: config, spool: queue, engine: engine,
		sending: errNotConnected,
		names:   map[string]*lease.Lease{}, answered: map[string]error{}, failures: map[string]int64{},
	}, nil
}

var errNotConnected = errors.New("not connected to the log yet")

// Close closes the spool. Nothing is lost without it.
func (e *Exporter) Close() error { return e.spool.Close() }

// SamplerClock returns a clock for the sampler that is never set, so that what devices did in a
// window is found whatever happens to the wall clock, and what it shows at the monotonic clock's
// zero. Now it is the wall clock.
func SamplerClock(clock Clock) (now func() time.Time, zero time.Time) {
	at := clock()
	zero = at.Wall.Add(-at.Mono)
	return func() time.Time { return zero.Add(clock().Mono) }, zero
}

// Only ends the sessions of sources that are not among those named, when they were last seen. It is
// to be called with all sources before they are asked.
func (e *Exporter) Only(sources ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.engine.Only(sources...)
}

// Poll asks a source once. An error means that it did not answer, and changes nothing.
func (e *Exporter) Poll(ctx context.Context, source lease.Source) error {
	asked := e.config.Clock()
	leases, err := source.Leases(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	name := source.Name()
	if before, known := e.answered[name]; err != nil && (!known || before == nil) && ctx.Err() == nil {
		e.config.Log.Warn("a source of leases does not answer; what it says later makes up for it",
			"source", name, "error", err)
	} else if err == nil && before != nil {
		e.config.Log.Info("a source of leases answers again", "source", name)
	}
	e.answered[name] = err
	if err != nil {
		e.failures[name]++
		return err
	}
	e.engine.Observe(e.config.Clock(), asked.Mono, name, e.grants(leases))
	e.hold(name, leases)
	return nil
}

// Report stores the windows that are due; all that there are, where final is set. An error means
// that they are due again at the next call, in one piece with what comes until then.
func (e *Exporter) Report(final bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := e.report(final)
	switch {
	case err != nil && e.storing == nil:
		e.config.Log.Error("usage cannot be stored; windows grow until it can", "error", err)
	case err == nil && e.storing != nil:
		e.config.Log.Info("usage is stored again")
	}
	e.storing = err
	return err
}

func (e *Exporter) report(final bool) error {
	if e.engine.Changed() {
		if err := e.save(); err != nil {
			e.engine.Touch()
			return err
		}
	}
	due := e.engine.Due(final)
	if len(due) == 0 {
		return nil
	}
	records := make([]spool.Record, len(due))
	for i := range due {
		w := &due[i]
		records[i] = spool.Record{
			Key: []byte(w.Session.Tenant), Value: e.engine.Event(w, e.telemetry(w)),
			NotBefore: w.End.Add(-aheadMost),
		}
	}
	if err := e.spool.Append(records...); err != nil {
		return err
	}
	e.engine.Commit(due)
	e.events += int64(len(due))
	return e.save()
}

// Sessions returns copies of the sessions that go on, by their start.
func (e *Exporter) Sessions() []session.Session {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []session.Session
	for _, s := range e.engine.Sessions() {
		all = append(all, *s)
	}
	return all
}

const (
	// aheadMost is by how much an event may end after the log's time when it is sent: less than the
	// minute after which the rater takes it for a mistake.
	aheadMost  = 20 * time.Second
	batchMost  = 500
	batchBytes = 512 << 10
)

// Send sends the oldest events of the spool to the log, and returns how long to wait before the
// next call. Events whose session runs ahead, because the wall clock was set back since it began,
// wait for the wall clock.
func (e *Exporter) Send(ctx context.Context, log pipeline.Appender) (time.Duration, error) {
	pause, err := e.send(ctx, log)
	e.mu.Lock()
	defer e.mu.Unlock()
	if ctx.Err() == nil {
		e.sending = err
	}
	return pause, err
}

// idlePause is how often the spool is looked at while it is empty.
const idlePause = 200 * time.Millisecond

func (e *Exporter) send(ctx context.Context, log pipeline.Appender) (time.Duration, error) {
	batch, err := e.spool.Peek(batchMost, batchBytes)
	if err != nil {
		return 0, err
	}
	now := e.config.Clock().Wall
	records := make([]pipeline.Record, 0, len(batch))
	for i := range batch {
		if wait := batch[i].Wait(now); wait > 0 {
			if i == 0 {
				return min(wait, time.Second), nil
			}
			break
		}
		records = append(records, pipeline.Record{
			Topic: usageTopic, Key: batch[i].Key, Value: batch[i].Value,
		})
	}
	if len(records) == 0 {
		return idlePause, nil
	}
	if err := log.Append(ctx, records...); err != nil {
		return 0, fmt.Errorf("send usage: %w", err)
	}
	if err := e.spool.Ack(len(records)); err != nil {
		return 0, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sent += int64(len(records))
	return 0, nil
}

// hold tells the sampler who holds which device.
func (e *Exporter) hold(source string, leases []lease.Lease) {
	for key, l := range e.names {
		if l.Key == source {
			delete(e.names, key)
		}
	}
	for i := range leases {
		if l := leases[i]; l.Pod != "" {
			name := source + "\x00" + l.Key
			l.Key = source
			e.names[name] = &l
		}
	}
	var holders []gauge.Holder
	for _, s := range e.engine.Sessions() {
		for _, d := range s.Devices {
			h := gauge.Holder{
				Device: d.UUID, Tenant: s.Tenant, Project: s.Project, Lease: s.Lease,
				Share: float64(d.Milli) / 1000,
			}
			if l := e.names[s.Source+"\x00"+s.Key]; l != nil {
				h.Pod, h.Namespace, h.Container = l.Pod, l.Namespace, l.Container
			}
			holders = append(holders, h)
		}
	}
	e.config.Sampler.Hold(slices.Clip(holders))
	e.count(source)
}

// count counts the devices of which leases hold more than there is: somebody is billed for what
// somebody else has.
func (e *Exporter) count(source string) {
	held := map[string]int64{}
	crowded := 0
	for _, s := range e.engine.Sessions() {
		for _, d := range s.Devices {
			before := held[d.UUID]
			held[d.UUID] += d.Milli
			if before <= wholeDevice && held[d.UUID] > wholeDevice {
				crowded++
			}
		}
	}
	if crowded > e.crowded {
		e.config.Log.Error("leases hold more of a device than there is", "devices", crowded,
			"source", source)
	}
	e.crowded = crowded
}

// wholeDevice is a device in thousandths.
const wholeDevice = 1000
