// Package notifytest has a store of deliveries in memory, for tests and simulations: what a store
// must do, in as few words as possible, with faults on request.
package notifytest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/suanpan/suanpan/pkg/notify"
)

// Store is a [notify.Store] in memory. It may be used by several goroutines.
type Store struct {
	// Fault, if not nil, is asked before each method (by its name) and fails it with its error.
	Fault func(method string) error

	mu         sync.Mutex
	deliveries map[[2]string]notify.Delivery
	attempts   []notify.Attempt
	disabled   map[string]bool
}

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{
		deliveries: make(map[[2]string]notify.Delivery), disabled: make(map[string]bool),
	}
}

func key(d notify.Delivery) [2]string { return [2]string{d.Message.ID, d.Channel} }

func (s *Store) begin(ctx context.Context, method string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.Fault != nil {
		if err := s.Fault(method); err != nil {
			return err
		}
	}
	s.mu.Lock()
	return nil
}

// Add implements [notify.Store].
func (s *Store) Add(ctx context.Context, deliveries []notify.Delivery) error {
	if err := s.begin(ctx, "Add"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, d := range deliveries {
		s.keep(d)
	}
	return nil
}

// keep keeps the larger version.
func (s *Store) keep(d notify.Delivery) {
	old, known := s.deliveries[key(d)]
	if !known || old.Version() < d.Version() {
		s.deliveries[key(d)] = d
	}
}

// Due implements [notify.Store].
func (s *Store) Due(
	ctx context.Context, now time.Time, limit, perChannel int,
) ([]notify.Delivery, error) {
	if err := s.begin(ctx, "Due"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var due []notify.Delivery
	for _, d := range s.deliveries {
		if d.State == notify.StatePending && !d.Next.After(now) {
			due = append(due, d)
		}
	}
	slices.SortFunc(due, func(a, b notify.Delivery) int {
		if c := a.Next.Compare(b.Next); c != 0 {
			return c
		}
		return strings.Compare(a.Message.ID+" "+a.Channel, b.Message.ID+" "+b.Channel)
	})
	of := make(map[string]int)
	due = slices.DeleteFunc(due, func(d notify.Delivery) bool {
		of[d.Channel]++
		return of[d.Channel] > perChannel
	})
	return due[:min(limit, len(due))], nil
}

// Record implements [notify.Store].
func (s *Store) Record(ctx context.Context, d notify.Delivery, a notify.Attempt) error {
	if err := s.begin(ctx, "Record"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.keep(d)
	s.attempts = append(s.attempts, a)
	return nil
}

// Disable implements [notify.Store].
func (s *Store) Disable(ctx context.Context, channel string, _ time.Time) error {
	if err := s.begin(ctx, "Disable"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.disabled[channel] = true
	return nil
}

// Disabled implements [notify.Store].
func (s *Store) Disabled(ctx context.Context, channels []string) (map[string]bool, error) {
	if err := s.begin(ctx, "Disabled"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	found := make(map[string]bool)
	for _, channel := range channels {
		if s.disabled[channel] {
			found[channel] = true
		}
	}
	return found, nil
}

// Enable lets a receiver have messages again.
func (s *Store) Enable(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.disabled, channel)
}

// Deliveries returns all deliveries, by message and channel.
func (s *Store) Deliveries() []notify.Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []notify.Delivery
	for _, d := range s.deliveries {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b notify.Delivery) int {
		return strings.Compare(a.Message.ID+" "+a.Channel, b.Message.ID+" "+b.Channel)
	})
	return all
}

// Attempts returns the delivery log.
func (s *Store) Attempts() []notify.Attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.attempts)
}
