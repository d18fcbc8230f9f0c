package pipeline

import (
	"context"
	"fmt"
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
	for len(periods) > 0 {
		n := min(len(periods), settleBatch)
		charges, err := s.settle(ctx, periods[:n], now)
		if err != nil {
			return report, err
		}
		report.Charges += charges
		periods = periods[n:]
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
	lines, err := rating.Settle(sums, s.prices.Catalog)
	if err != nil {
		return 0, err
	}
	settled := make(map[PeriodKey][]rating.Settled, len(periods))
	for _, p := range periods {
		settled[p] = nil
	}
	for _, line := range lines {
		key := PeriodKey{Tenant: line.Tenant, Contract: line.Contract, Period: line.Period}
		settled[key] = append(settled[key], line)
	}
	if err := s.store.WriteSettlements(ctx, settled, now); err != nil {
		return 0, fmt.Errorf("write settlements: %w", err)
	}
	return len(lines), nil
}
