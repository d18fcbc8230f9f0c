package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/rating"
)

const (
	pollWait     = 200 * time.Millisecond
	rateChunk    = 4096        // records that are decoded before their state is loaded
	heldBytes    = 64 << 20    // of records that wait for their prices
	liveLag      = time.Minute // records younger than this are live
	retryMin     = 100 * time.Millisecond
	retryMax     = 5 * time.Second
	refreshEvery = time.Second
	clockSkew    = 10 * time.Second // by which the log's clock may be ahead of ours
)

// RaterConfig says how a rater works. Rows, Log, Group, Prices and Partition are required.
type RaterConfig struct {
	Group     Group
	Rows      Rows
	Log       Appender // takes forwarded records and dead letters
	Prices    *Prices
	Partition func(tenant string) int // the usage partition of a tenant

	StateBytes int64         // bound of the state in memory; default 512 MiB
	FlushRows  int           // changed rows that are written together; default 50,000
	FlushLive  time.Duration // how long live changes wait at most; default 10 s
	FlushBulk  time.Duration // how long changes of old records wait at most; default 1 s

	// Background runs a write while rating goes on. Nil runs it at once.
	Background func(func())
}

// Rater reads usage records, and writes the rows that they change, the dead letters that they are
// and the records that it forwards; then it commits.
type Rater struct {
	config RaterConfig
	parser *metering.Parser
	events []metering.Event
	seen   int // of Prices.Ignored: their dead letters are written

	generation Generation
	state      *generationState
}

// generationState is all that a rater knows. It lives and dies with its generation.
type generationState struct {
	generation Generation
	rater      *rating.Rater
	backlog    []Record       // that were read, and could not be rated when they should have been
	waiting    map[int]*queue // by partition: records whose prices are not settled yet
	waitBytes  int
	next       map[int]int64 // offset after the last record that was rated
	letters    []DeadLetter
	forwards   []Record
	dirtySince time.Time // when something was rated that is not committed
	live       bool
	hurry      bool // what is pending must be written at once
	flight     *flight
	seen       int // of Prices.Ignored
}

// queue holds the records of a partition from the first one on that must wait.
type queue struct {
	until   metering.Instant // end of the first one
	records []Record
}

// RateReport says what a step did.
type RateReport struct {
	Records   int // that were rated
	Accepted  int
	Forwarded int
	Rejected  map[metering.Reason]int
	Rows      int // that were written
	Commits   int
	Ignored   int                   // new catalog and market records that must be ignored
	FlushTime time.Duration         // that the last write took
	Lag       map[int]time.Duration // by partition: how old the last rated record is
	State     int64                 // bytes
	Pending   int                   // rows and dead letters that are not written and committed yet
	Blocked   bool                  // nothing more is rated until the write that is under way ends
}

// NewRater returns a rater.
func NewRater(config RaterConfig) *Rater {
	if config.StateBytes == 0 {
		config.StateBytes = 512 << 20
	}
	if config.FlushRows == 0 {
		config.FlushRows = 50_000
	}
	if config.FlushLive == 0 {
		config.FlushLive = 10 * time.Second
	}
	if config.FlushBulk == 0 {
		config.FlushBulk = time.Second
	}
	if config.Background == nil {
		config.Background = func(f func()) { f() }
	}
	return &Rater{
		config: config, parser: metering.NewParser(), events: make([]metering.Event, rateChunk),
	}
}

// Step does some work: it reads what there is, rates what may be rated, and writes and commits what
// is due. An error of a write is returned, and the write repeated by a later step; rating goes on
// meanwhile, within bounds. When the generation ends, all state is dropped and the next step joins
// the next one.
func (r *Rater) Step(ctx context.Context, now time.Time) (RateReport, error) {
	report := RateReport{Rejected: make(map[metering.Reason]int), Lag: make(map[int]time.Duration)}
	err := r.step(ctx, now, &report)
	if generationEnded(err) {
		r.Stop()
		return report, nil
	}
	return report, err
}

// Stop drops the state. It waits for a write that is under way.
func (r *Rater) Stop() {
	if r.state != nil && r.state.flight != nil {
		r.state.flight.stop()
	}
	r.state, r.generation = nil, nil
}

func generationEnded(err error) bool { return errors.Is(err, ErrGenerationEnded) }

func (r *Rater) step(ctx context.Context, now time.Time, report *RateReport) error {
	if err := r.join(ctx, now); err != nil {
		return err
	}
	s := r.state
	records, err := r.read(ctx, report)
	if err != nil {
		return err
	}
	if r.stale(records, now) {
		if err := r.config.Prices.Refresh(ctx, now); err != nil {
			s.backlog = records
			return err
		}
		r.ignored(now, report)
	}
	for len(records) > 0 {
		n := min(len(records), rateChunk)
		done, err := r.rate(ctx, records[:n], now, report)
		if err != nil {
			s.backlog = records
			return err
		}
		records = records[done:]
		if done < n { // a close must be taken to be written before what comes after it
			s.backlog = records
			break
		}
	}
	report.State = s.rater.Bytes()
	err = r.flush(ctx, now, report)
	report.Pending = s.pending()
	report.Blocked = report.Blocked || len(s.backlog) > 0 && s.flight != nil
	return err
}

// stale reports whether catalog and market must be read before the records are rated: what was
// appended to them before a record was must be known when it is rated.
func (r *Rater) stale(records []Record, now time.Time) bool {
	readAt := r.config.Prices.readAt
	if now.Sub(readAt) >= refreshEvery {
		return true
	}
	for i := range records {
		if records[i].Time.After(readAt.Add(-clockSkew)) {
			return true
		}
	}
	return false
}

// read returns the records to be rated next: those that could not be rated before, else those whose
// prices are settled by now and what the log has.
func (r *Rater) read(ctx context.Context, report *RateReport) ([]Record, error) {
	s := r.state
	if len(s.backlog) > 0 {
		records := s.backlog
		s.backlog = nil
		return records, nil
	}
	records := s.settledRecords(r.config.Prices)
	if !r.mayRead() {
		report.Blocked = len(records) == 0
		return records, nil
	}
	wait := pollWait
	if len(records) > 0 {
		wait = 0
	} else if len(s.waiting) > 0 || s.flight != nil {
		wait = pollWait / 10
	}
	fetched, err := s.generation.Fetch(ctx, wait)
	if err != nil {
		s.backlog = records
		return nil, fmt.Errorf("fetch usage to rate: %w", err)
	}
	return append(records, fetched...), nil
}

// join gets a generation if there is none, and what the store has of each tenant.
func (r *Rater) join(ctx context.Context, now time.Time) error {
	if r.state != nil {
		return nil
	}
	if r.generation == nil {
		generation, err := r.config.Group.Next(ctx)
		if err != nil {
			return fmt.Errorf("join the raters: %w", err)
		}
		r.generation = generation
	}
	// Both are read after the partitions are ours: by then nobody else may commit their rows.
	if err := r.config.Prices.Refresh(ctx, now); err != nil {
		return err
	}
	stored, err := r.config.Rows.Stored(ctx)
	if err != nil {
		return fmt.Errorf("read what is stored of each tenant: %w", err)
	}
	closes, err := r.config.Rows.Closes(ctx, r.generation.Partitions())
	if err != nil {
		return fmt.Errorf("read closes: %w", err)
	}
	rerates, err := r.config.Rows.Rerates(ctx, r.generation.Partitions())
	if err != nil {
		return fmt.Errorf("read re-ratings: %w", err)
	}
	rater := rating.NewRater(r.config.Prices.Catalog, stored, closes...)
	rater.Obey(r.config.Prices.Amended, rerates...)
	r.state = &generationState{
		generation: r.generation, rater: rater,
		waiting: make(map[int]*queue), next: make(map[int]int64), seen: r.seen,
	}
	return nil
}

// mayRead bounds what is held in memory: while a write fails, only so much more is read.
func (r *Rater) mayRead() bool {
	s := r.state
	if s.waitBytes >= heldBytes {
		return false
	}
	return s.flight == nil ||
		s.rater.Pending()+len(s.letters)+len(s.forwards) < r.config.FlushRows &&
			s.rater.Bytes() < 2*r.config.StateBytes
}

// settledRecords takes out the queues whose first record need wait no longer.
func (s *generationState) settledRecords(prices *Prices) []Record {
	var out []Record
	for _, partition := range sortedKeys(s.waiting) {
		q := s.waiting[partition]
		if !prices.Settled(q.until) {
			continue
		}
		out = append(out, q.records...)
		for i := range q.records {
			s.waitBytes -= len(q.records[i].Value) + len(q.records[i].Key)
		}
		delete(s.waiting, partition)
	}
	return out
}

// wait keeps a record, and with it all later ones of its partition, until its prices are settled.
func (s *generationState) wait(record Record, until metering.Instant) {
	q := s.waiting[record.Partition]
	if q == nil {
		q = &queue{until: until}
		s.waiting[record.Partition] = q
	}
	q.records = append(q.records, record)
	s.waitBytes += len(record.Value) + len(record.Key)
}

// rate decodes records, loads what the store knows of their sessions, and rates them. It returns
// how many: it stops before the first record of a tenant that has a close which is not being
// written yet. So rows that were rated after a close are never written before it, and what is read
// again after a crash finds no effect of them.
func (r *Rater) rate(ctx context.Context, records []Record, now time.Time, report *RateReport,
) (int, error) {
	s := r.state
	rejections := make(map[int]*metering.Rejection)
	need := new(rating.Need)
	for i := range records {
		e := &r.events[i]
		if rejection := r.parser.Parse(records[i].Value, e); rejection != nil {
			rejections[i] = rejection
			continue
		}
		if e.Kind == metering.Rerate && (i > 0 || s.pending() > 0) {
			s.hurry = i == 0 // it reads what is stored, so all before it must be
			records = records[:i]
			break
		}
		s.rater.Need(e, need)
	}
	if !need.Empty() {
		known, err := r.config.Rows.Find(ctx, need)
		if err != nil {
			return 0, fmt.Errorf("find stored rows: %w", err)
		}
		if err := s.rater.Load(need, known); err != nil {
			return 0, err
		}
	}
	for i := range records {
		record, e := &records[i], &r.events[i]
		end, settled := metering.Instant(0), true
		if rejections[i] == nil {
			end, settled = r.settled(e, record)
		}
		if s.waiting[record.Partition] != nil || !settled {
			s.wait(*record, end)
			continue
		}
		if rejections[i] == nil && e.Kind != metering.PeriodClose && s.rater.Closing(e.Tenant) {
			return i, nil
		}
		r.rateOne(record, e, rejections[i], now, report)
	}
	return len(records), nil
}

// settled reports whether all that may price an event, which ends at end, was read. One that ends
// too long after the log received it is rejected anyway and must not hold others up.
func (r *Rater) settled(e *metering.Event, record *Record) (end metering.Instant, settled bool) {
	end = e.End
	if e.Kind == metering.Consumed {
		end = e.At
	}
	limit := received(record) + metering.InstantOf(metering.FutureSeconds)
	return end, end > limit || r.config.Prices.Settled(end)
}

func (r *Rater) rateOne(record *Record, e *metering.Event, rejection *metering.Rejection,
	now time.Time, report *RateReport,
) {
	s := r.state
	report.Records++
	if s.dirtySince.IsZero() {
		s.dirtySince = now
	}
	age := now.Sub(record.Time)
	s.live = age < liveLag
	report.Lag[record.Partition] = age
	s.next[record.Partition] = record.Offset + 1
	if rejection == nil && r.misplaced(record, e) {
		if header(*record, HeaderForwardedFrom) == "" {
			s.forwards = append(s.forwards, forward(record, e.Tenant))
			report.Forwarded++
			return
		}
		rejection = metering.Reject(metering.Misrouted,
			"it was forwarded and is still not in the partition of tenant %q", e.Tenant)
	}
	if rejection == nil {
		rejection = s.rater.Rate(e, rating.Position{
			Partition: record.Partition, Offset: record.Offset,
		}, received(record))
	}
	if rejection == nil {
		report.Accepted++
		return
	}
	report.Rejected[rejection.Reason]++
	s.letters = append(s.letters, DeadLetter{
		Record: *record, Reason: string(rejection.Reason), Detail: rejection.Detail,
		Source: e.Source, ID: e.ID, SeenAt: now,
	})
}
