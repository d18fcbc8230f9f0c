package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/rating"
)

// settleBatch is the number of periods that are settled together.
const settleBatch = 200

// Settler keeps the settlements of all periods up to date with their rows.
type Settler struct {
	store  Settlements
	prices *Prices
	since  time.Time
}

// SettleReport says what a step did.
type SettleReport struct {
	Periods int // that were settled anew
	Charges int // of theirs
}

// NewSettler returns a settler that settles every period once, and then those that change.
func NewSettler(store Settlements, prices *Prices) *Settler {
	return &Settler{store: store, prices: prices}
}

// Step settles the periods that have changed since the last step.
func (s *Settler) Step(ctx context.Context, now time.Time) (SettleReport, error) {
	periods, next, err := s.store.Touched(ctx, s.since)
	if err != nil {
		return SettleReport{}, fmt.Errorf("find changed periods: %w", err)
	}
	report := SettleReport{Periods: len(periods)}
	var errs []error
	for len(periods) > 0 {
		n := min(len(periods), settleBatch)
		charges, err := s.settle(ctx, periods[:n], now)
		report.Charges += charges
		if err != nil {
			errs = append(errs, err)
		}
		periods = periods[n:]
	}
	if len(errs) > 0 {
		return report, errors.Join(errs...) // all are looked at again
	}
	s.since = next
	return report, nil
}

func (s *Settler) settle(ctx context.Context, periods []PeriodKey, now time.Time) (int, error) {
	sums, err := s.store.Sums(ctx, periods)
	if err != nil {
		return 0, fmt.Errorf("sum charges: %w", err)
	}
	// The catalog is read after the rows: it has every version that they were rated by.
	if err := s.prices.Refresh(ctx, now); err != nil {
		return 0, err
	}
	settled := make(map[PeriodKey][]rating.Settled, len(periods))
	var errs []error
	charges := 0
	for key, sums := range byPeriod(sums, periods) {
		// One that cannot be settled yet, such as half of a re-rating, holds no other up.
		lines, err := rating.Settle(sums, s.prices.Catalog)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		settled[key] = lines
		charges += len(lines)
	}
	if err := s.store.WriteSettlements(ctx, settled, now); err != nil {
		errs = append(errs, fmt.Errorf("write settlements: %w", err))
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return charges, errors.Join(errs...)
}

// byPeriod splits sums by the period that they are of. Periods without charges have no sums.
func byPeriod(sums rating.Sums, periods []PeriodKey) map[PeriodKey]rating.Sums {
	out := make(map[PeriodKey]rating.Sums, len(periods))
	for _, p := range periods {
		out[p] = make(rating.Sums)
	}
	for charge, quantity := range sums {
		key := PeriodKey{Tenant: charge.Tenant, Contract: charge.Contract, Period: charge.Period}
		if out[key] == nil {
			out[key] = make(rating.Sums)
		}
		out[key][charge] = quantity
	}
	return out
}
