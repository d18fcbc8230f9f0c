package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/rating"
	"github.com/suanpan/suanpan/schemas"
)

// Rerater is what a preview of a re-rating reads.
type Rerater interface {
	Closes(ctx context.Context, partitions []int) ([]rating.Close, error)
	Rerates(ctx context.Context, partitions []int) ([]rating.Rerate, error)
	Find(ctx context.Context, need *rating.Need) (*rating.Known, error)
	Sums(ctx context.Context, periods []PeriodKey) (rating.Sums, error)
}

// RerateLine is what a re-rating would make of one line.
type RerateLine struct {
	Contract, Period    string
	SKU, Purchase, Band string
	Before, After       money.Amount // exact
	QuantityBefore      metering.Quantity
	QuantityAfter       metering.Quantity
	BaseUnit, Currency  string
}

const daySeconds = 86_400

// RerateDays splits a span of time into those of single UTC days, so that what one event changes
// fits into memory.
func RerateDays(from, until int64) [][2]int64 {
	var days [][2]int64
	for from < until {
		end := min(until, from-from%daySeconds+daySeconds)
		days = append(days, [2]int64{from, end})
		from = end
	}
	return days
}

// rerateOffset is a place in the log that is after all others.
const rerateOffset = 1 << 46

// PreviewRerate says which lines a re-rating of a tenant's usage would change, and how. The prices
// must have been refreshed; nothing is written.
func PreviewRerate(ctx context.Context, store Rerater, prices *Prices, tenant string,
	from, until int64, now time.Time,
) ([]RerateLine, error) {
	closes, err := store.Closes(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("read closes: %w", err)
	}
	rerates, err := store.Rerates(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("read re-ratings: %w", err)
	}
	before, after := make(rating.Sums), make(rating.Sums)
	for _, day := range RerateDays(from, until) {
		r := rating.NewRater(prices.Catalog, nil, closes...)
		r.Obey(prices.Amended, rerates...)
		if err := rerateDay(ctx, store, r, prices, tenant, day, now, before, after); err != nil {
			return nil, err
		}
	}
	return rerateLines(ctx, store, prices, before, after)
}

func rerateDay(ctx context.Context, store Rerater, r *rating.Rater, prices *Prices, tenant string,
	day [2]int64, now time.Time, before, after rating.Sums,
) error {
	e := metering.Event{
		Kind: metering.Rerate, Tenant: tenant, Start: metering.InstantOf(day[0]),
		End: metering.InstantOf(day[1]), CatalogOffset: prices.CatalogEnd,
	}
	need := new(rating.Need)
	r.Need(&e, need)
	known, err := store.Find(ctx, need)
	if err != nil {
		return fmt.Errorf("find stored rows: %w", err)
	}
	old := rating.NewLedger()
	old.Apply(&rating.Changes{
		Sessions: known.Sessions, Hours: slices.Clone(known.Hours), Consumed: known.Consumed,
	})
	add(before, old.Sums())
	if err := r.Load(need, known); err != nil {
		return err
	}
	received := metering.InstantOf(now.Unix())
	if why := r.Rate(&e, rating.Position{Offset: rerateOffset}, received); why != nil {
		return fmt.Errorf("re-rate %s: %w", metering.InstantOf(day[0]), why)
	}
	changes := r.Drain()
	old.Apply(&changes)
	add(after, old.Sums())
	return nil
}

func add(to, sums rating.Sums) {
	for charge, q := range sums {
		to.Add(&charge, q)
	}
}

// rerateLines settles the periods that are touched, as they are and as they would be.
func rerateLines(ctx context.Context, store Rerater, prices *Prices, before, after rating.Sums,
) ([]RerateLine, error) {
	touched := make(map[PeriodKey]bool)
	for _, sums := range []rating.Sums{before, after} {
		for c := range sums {
			touched[PeriodKey{Tenant: c.Tenant, Contract: c.Contract, Period: c.Period}] = true
		}
	}
	if len(touched) == 0 {
		return nil, nil
	}
	stored, err := store.Sums(ctx, slices.Collect(maps.Keys(touched)))
	if err != nil {
		return nil, fmt.Errorf("sum charges: %w", err)
	}
	would := maps.Clone(stored)
	add(would, after)
	for c, q := range before {
		would.Add(&c, q.Neg())
	}
	lines := make(map[rerateKey]*RerateLine)
	for i, sums := range []rating.Sums{stored, would} {
		settled, err := rating.Settle(sums, prices.Catalog)
		if err != nil {
			return nil, err
		}
		for j := range settled {
			s := &settled[j]
			l := lineFor(lines, s)
			if i == 0 {
				l.Before, l.QuantityBefore = l.Before.Add(s.Amount), l.QuantityBefore.Add(s.Quantity)
			} else {
				l.After, l.QuantityAfter = l.After.Add(s.Amount), l.QuantityAfter.Add(s.Quantity)
			}
		}
	}
	out := make([]RerateLine, 0, len(lines))
	for _, l := range lines {
		if l.Before.Cmp(l.After) != 0 || l.QuantityBefore != l.QuantityAfter {
			out = append(out, *l)
		}
	}
	slices.SortFunc(out, func(a, b RerateLine) int {
		return cmp.Or(cmp.Compare(a.Period, b.Period), cmp.Compare(a.Contract, b.Contract),
			cmp.Compare(a.SKU, b.SKU), cmp.Compare(a.Purchase, b.Purchase),
			cmp.Compare(a.Band, b.Band), cmp.Compare(a.Currency, b.Currency))
	})
	return out, nil
}

type rerateKey struct{ contract, period, sku, purchase, band, currency string }

func lineFor(lines map[rerateKey]*RerateLine, s *rating.Settled) *RerateLine {
	key := rerateKey{s.Contract, s.Period, s.SKU, s.Purchase, s.Band, s.Currency}
	if lines[key] == nil {
		lines[key] = &RerateLine{
			Contract: s.Contract, Period: s.Period, SKU: s.SKU, Purchase: s.Purchase, Band: s.Band,
			BaseUnit: s.BaseUnit, Currency: s.Currency,
		}
	}
	return lines[key]
}

// RerateRecord is the event that re-rates a tenant's usage in [from, until). Its ID follows from
// what it says, so that sending it twice changes nothing more.
func RerateRecord(tenant string, from, until, catalogOffset int64, source string) (Record, error) {
	value, err := json.Marshal(map[string]any{
		"specversion": "1.0", "type": schemas.TypeRerate, "source": source,
		"id": fmt.Sprintf("rerate,%s,%d,%d,%d", tenant, from, until, catalogOffset),
		"data": map[string]any{
			"tenant": tenant, "from": metering.InstantOf(from).String(),
			"until": metering.InstantOf(until).String(), "catalog_offset": catalogOffset,
		},
	})
	if err != nil {
		return Record{}, fmt.Errorf("encode re-rating: %w", err)
	}
	return Record{Topic: schemas.TopicUsage, Key: []byte(tenant), Value: value}, nil
}
