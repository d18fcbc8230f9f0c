package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/suanpan/suanpan/pkg/rating"
	"github.com/suanpan/suanpan/schemas"
)

// flight is a write that is under way. It is repeated as it is until it succeeds, or until its
// generation ends.
type flight struct {
	changes  rating.Changes
	letters  []DeadLetter
	forwards []Record
	next     map[int]int64
	seen     int // of Prices.Ignored

	cancel   context.CancelFunc
	done     chan error // has the result of one attempt; nil between attempts
	started  time.Time
	failures int
	retryAt  time.Time
}

// stop waits for the attempt that is under way, if any.
func (f *flight) stop() {
	if f.done != nil {
		f.cancel()
		for range f.done { // its rows are written again by whoever is next
		}
		f.done = nil
	}
}

// flush looks after the write that is under way, and starts one when it is due.
func (r *Rater) flush(ctx context.Context, now time.Time, report *RateReport) error {
	s := r.state
	if s.flight == nil {
		if !r.due(now) {
			return nil
		}
		s.flight = s.take()
		r.attempt(ctx, now)
	}
	f := s.flight
	if f.done == nil {
		if now.Before(f.retryAt) {
			return nil
		}
		r.attempt(ctx, now)
	}
	select {
	case err := <-f.done:
		f.cancel()
		f.done = nil
		return r.landed(err, now, report)
	default:
		return nil
	}
}

// due reports whether what was rated must be written.
func (r *Rater) due(now time.Time) bool {
	s := r.state
	if s.dirtySince.IsZero() {
		return false
	}
	wait := r.config.FlushBulk
	if s.live {
		wait = r.config.FlushLive
	}
	return s.rater.ClosingAny() || s.hurry ||
		s.rater.Pending()+len(s.letters)+len(s.forwards) >= r.config.FlushRows ||
		now.Sub(s.dirtySince) >= wait || s.rater.Bytes() > r.config.StateBytes
}

// pending counts what was rated and is not committed yet, the write that is under way included.
func (s *generationState) pending() int {
	n := s.rater.Pending() + len(s.letters) + len(s.forwards)
	if s.flight != nil {
		n += s.flight.changes.Len() + len(s.flight.letters) + len(s.flight.forwards)
	}
	return n
}

// take makes a write of all that was rated since the last one.
func (s *generationState) take() *flight {
	f := &flight{
		changes: s.rater.Drain(), letters: s.letters, forwards: s.forwards, next: maps.Clone(s.next),
		seen: s.seen,
	}
	s.letters, s.forwards, s.dirtySince, s.hurry = nil, nil, time.Time{}, false
	clear(s.next)
	return f
}

// attempt writes once. Order matters: what is committed must be durable elsewhere.
func (r *Rater) attempt(ctx context.Context, now time.Time) {
	s, f := r.state, r.state.flight
	ctx, f.cancel = context.WithCancel(ctx)
	done := make(chan error, 1)
	f.done, f.started = done, now
	generation := s.generation
	r.config.Background(func() {
		done <- r.write(ctx, f, generation)
		close(done)
	})
}

func (r *Rater) write(ctx context.Context, f *flight, generation Generation) error {
	if len(f.forwards) > 0 {
		if err := r.config.Log.Append(ctx, f.forwards...); err != nil {
			return fmt.Errorf("forward %d records: %w", len(f.forwards), err)
		}
	}
	if len(f.letters) > 0 {
		if err := r.config.Rows.WriteDeadLetters(ctx, f.letters); err != nil {
			return fmt.Errorf("write %d dead letters: %w", len(f.letters), err)
		}
		if err := r.config.Log.Append(ctx, deadLetterRecords(f.letters)...); err != nil {
			return fmt.Errorf("append %d dead letters: %w", len(f.letters), err)
		}
	}
	if f.changes.Len() > 0 {
		if err := r.config.Rows.Write(ctx, &f.changes); err != nil {
			return fmt.Errorf("write %d rows: %w", f.changes.Len(), err)
		}
	}
	if err := generation.Commit(ctx, f.next); err != nil {
		return fmt.Errorf("commit rated records: %w", err)
	}
	return nil
}

// landed takes the result of an attempt in.
func (r *Rater) landed(err error, now time.Time, report *RateReport) error {
	s, f := r.state, r.state.flight
	report.FlushTime = now.Sub(f.started)
	if generationEnded(err) {
		return err
	}
	if err != nil {
		f.failures++
		f.retryAt = now.Add(min(retryMax, retryMin<<min(f.failures, 10)))
		return err
	}
	report.Rows += f.changes.Len()
	report.Commits++
	s.flight, r.seen = nil, f.seen
	s.rater.Acknowledge(&f.changes)
	s.rater.Evict(r.config.StateBytes)
	return nil
}

// Headers of a dead letter record; its key and value are those of the record that it is about.
const (
	HeaderReason    = "suanpan-reason"
	HeaderDetail    = "suanpan-detail"
	HeaderTopic     = "suanpan-topic"
	HeaderPartition = "suanpan-partition"
	HeaderOffset    = "suanpan-offset"
)

func deadLetterRecords(letters []DeadLetter) []Record {
	records := make([]Record, len(letters))
	for i, l := range letters {
		records[i] = Record{
			Topic: schemas.TopicDeadLetter, Key: l.Key, Value: l.Value,
			Headers: append(slices.Clip(l.Headers),
				Header{HeaderReason, []byte(l.Reason)},
				Header{HeaderDetail, []byte(l.Detail)},
				Header{HeaderTopic, []byte(l.Topic)},
				Header{HeaderPartition, strconv.AppendInt(nil, int64(l.Partition), 10)},
				Header{HeaderOffset, strconv.AppendInt(nil, l.Offset, 10)}),
		}
	}
	return records
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
