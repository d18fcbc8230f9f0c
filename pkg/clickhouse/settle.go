package clickhouse

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
)

// landing bounds how long a row that is written may take until it is seen: its time of writing is
// that of the statement's start.
const landing = 2 * time.Minute

// Touched returns the periods that have rows written at or after an instant of the store's own
// clock, and the instant to ask with next time. The zero time asks for all.
func (s *Store) Touched(ctx context.Context, since time.Time) (
	[]pipeline.PeriodKey, time.Time, error,
) {
	next, err := s.landed(ctx)
	if err != nil {
		return nil, next, err
	}
	where := "1"
	if !since.IsZero() {
		where = "written_at >= " + quoteTime(since)
	}
	query := `SELECT DISTINCT tenant, parts[3] AS contract, parts[10] AS period FROM (
			SELECT tenant, splitByChar('|', toString(charge)) AS parts FROM (
				SELECT DISTINCT tenant, arrayJoin(seg_charge) AS charge FROM hours WHERE ` + where + `
				UNION DISTINCT SELECT DISTINCT tenant, charge FROM consumed WHERE ` + where + `))
		ORDER BY tenant, contract, period`
	var periods []pipeline.PeriodKey
	err = s.each(ctx, query, func(row scanner) error {
		var p pipeline.PeriodKey
		err := row.Scan(&p.Tenant, &p.Contract, &p.Period)
		periods = append(periods, p)
		return err
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("find periods touched since %s: %w",
			since.Format(time.RFC3339Nano), err)
	}
	return periods, next, nil
}

// landed is an instant of the store's clock: all that is written before it can be seen.
func (s *Store) landed(ctx context.Context) (time.Time, error) {
	var now time.Time
	if err := s.conn.QueryRow(ctx, "SELECT now64(3, 'UTC')").Scan(&now); err != nil {
		return time.Time{}, fmt.Errorf("read clock: %w", err)
	}
	return now.UTC().Add(-landing), nil
}

// Sums adds up the quantities of the charges of periods.
func (s *Store) Sums(ctx context.Context, periods []pipeline.PeriodKey) (rating.Sums, error) {
	sums := make(rating.Sums)
	wanted := make(map[pipeline.PeriodKey]bool, len(periods)) // once each
	for _, p := range periods {
		wanted[p] = true
	}
	tuples := make([]string, 0, len(wanted))
	tenants := make(map[string]bool)
	from, until := time.Time{}, time.Time{}
	for p := range wanted {
		tuples = append(tuples,
			"("+quote(p.Tenant)+","+quote(p.Contract)+","+quote(p.Period)+")")
		tenants[quote(p.Tenant)] = true
		month, err := time.Parse("2006-01", p.Period)
		if err != nil {
			return nil, fmt.Errorf("parse period %q of tenant %q: %w", p.Period, p.Tenant, err)
		}
		if from.IsZero() || month.Before(from) {
			from = month
		}
		if end := month.AddDate(0, 1, 0); end.After(until) {
			until = end
		}
	}
	slices.Sort(tuples)
	// No zone is a day away from UTC, so only these months' parts are read.
	hours := fmt.Sprintf(" AND hour >= %d AND hour < %d", from.AddDate(0, 0, -1).Unix(),
		until.AddDate(0, 0, 1).Unix())
	for _, list := range lists(tuples) {
		where := "(tenant, splitByChar('|', toString(charge))[3], " +
			"splitByChar('|', toString(charge))[10]) IN (" + list + ")"
		rows := "1"
		if len(tenants) <= 1000 {
			rows = "tenant IN (" + strings.Join(slices.Sorted(maps.Keys(tenants)), ",") + ")"
		}
		if err := s.sum(ctx, rows, hours, where, sums); err != nil {
			return nil, fmt.Errorf("sum charges: %w", err)
		}
	}
	return sums, nil
}

// AllSums adds up the quantities of all charges, or of those of one tenant and of one period of
// usage where these are not "".
func (s *Store) AllSums(ctx context.Context, tenant, period string) (rating.Sums, error) {
	rows, where := "1", "1"
	if tenant != "" {
		rows = "tenant = " + quote(tenant)
	}
	if period != "" {
		where = "splitByChar('|', toString(charge))[10] = " + quote(period)
	}
	sums := make(rating.Sums)
	if err := s.sum(ctx, rows, "", where, sums); err != nil {
		return nil, fmt.Errorf("sum charges: %w", err)
	}
	return sums, nil
}

// sum adds up the charges of rows for which the conditions on rows, on hours and on charges hold.
// Int128 does not overflow: 10^10 rows of the largest amount fit. The sum of 64 bits would wrap.
func (s *Store) sum(ctx context.Context, rows, hours, where string, sums rating.Sums) error {
	query := `SELECT tenant, charge, toString(sum(nano)) FROM (
			SELECT tenant, charge,
				toInt128(held) * 1000000 * if(kind IN (0, 3), 1, -1) * seconds AS nano
			FROM (SELECT tenant, held, seg_charge, seg_kind, seg_seconds FROM hours FINAL
				WHERE ` + rows + hours + `)
			ARRAY JOIN seg_charge AS charge, seg_kind AS kind, seg_seconds AS seconds
			UNION ALL
			SELECT tenant, charge, reinterpret(quantity, 'Int128') FROM consumed FINAL
			WHERE ` + rows + `)
		WHERE ` + where + ` GROUP BY tenant, charge`
	return s.each(ctx, query, func(row scanner) error {
		var tenant, key, text string
		if err := row.Scan(&tenant, &key, &text); err != nil {
			return err
		}
		charge, err := rating.ParseCharge(tenant, key)
		if err != nil {
			return fmt.Errorf("tenant %q: %w", tenant, err)
		}
		nano, ok := new(big.Int).SetString(text, 10)
		if !ok {
			return fmt.Errorf("tenant %q: charge %s: %q is not a number", tenant, key, text)
		}
		quantity, err := metering.QuantityOf(nano)
		if err != nil {
			return fmt.Errorf("tenant %q: charge %s: %w", tenant, key, err)
		}
		sums.Add(&charge, quantity)
		return nil
	})
}

// settlement is the columns of one row of the table.
type settlement struct {
	charges, quantities, units, prices, pers, amounts, currencies []string
	nums, dens                                                    []*big.Int
}

// WriteSettlements replaces the settlements of periods, each whole; the one with the later asOf
// stays. It fails for amounts of 10^26 and more, which the columns do not hold.
func (s *Store) WriteSettlements(ctx context.Context,
	settled map[pipeline.PeriodKey][]rating.Settled, asOf time.Time,
) error {
	n := len(settled)
	tenants, contracts, periods := make([]string, 0, n), make([]string, 0, n), make([]string, 0, n)
	rows := make([]settlement, 0, n)
	versions := make([]uint64, 0, n)
	for key, lines := range settled {
		row, err := settlementOf(lines)
		if err != nil {
			return fmt.Errorf("write settlement of tenant %q for %s: %w", key.Tenant, key.Period, err)
		}
		tenants, contracts = append(tenants, key.Tenant), append(contracts, key.Contract)
		periods, rows = append(periods, key.Period), append(rows, row)
		versions = append(versions, uint64(asOf.UnixNano()))
	}
	texts := func(of func(*settlement) []string) [][]string { return columnOf(rows, of) }
	return s.insert(ctx, "settlements", n,
		field{"tenant", "String", tenants},
		field{"contract", "String", contracts},
		field{"usage_period", "String", periods},
		field{"charge", "Array(String)", texts(func(r *settlement) []string { return r.charges })},
		field{
			"quantity", "Array(Decimal(38, 9))",
			texts(func(r *settlement) []string { return r.quantities }),
		},
		field{"base_unit", "Array(String)", texts(func(r *settlement) []string { return r.units })},
		field{
			"unit_price", "Array(Decimal(76, 36))",
			texts(func(r *settlement) []string { return r.prices }),
		},
		field{"per", "Array(String)", texts(func(r *settlement) []string { return r.pers })},
		field{
			"list_num", "Array(Int256)",
			columnOf(rows, func(r *settlement) []*big.Int { return r.nums }),
		},
		field{
			"list_den", "Array(Int256)",
			columnOf(rows, func(r *settlement) []*big.Int { return r.dens }),
		},
		field{
			"amount", "Array(Decimal(38, 12))",
			texts(func(r *settlement) []string { return r.amounts }),
		},
		field{"currency", "Array(String)", texts(func(r *settlement) []string { return r.currencies })},
		field{"as_of", "UInt64", versions})
}

func settlementOf(lines []rating.Settled) (settlement, error) {
	var r settlement
	for i := range lines {
		l := &lines[i]
		num, den, err := listRatio(l)
		if err == nil {
			err = fits(l)
		}
		if err != nil {
			return r, fmt.Errorf("charge %s: %w", l.Key(), err)
		}
		r.charges, r.quantities = append(r.charges, l.Key()), append(r.quantities, l.Quantity.String())
		r.units, r.prices = append(r.units, l.BaseUnit), append(r.prices, l.UnitPrice.String())
		r.pers, r.amounts = append(r.pers, l.Per.Name), append(r.amounts, l.Amount.Fixed(money.Scale))
		r.currencies = append(r.currencies, l.Currency)
		r.nums, r.dens = append(r.nums, num), append(r.dens, den)
	}
	return r, nil
}

// The digits of the column of unit prices, and those of them that are decimals: a price and the
// multiplier of its band may have 18 each.
const (
	priceDigits = 76
	priceScale  = 36
)

// maxListBits bounds list_num such that its product with the largest quantity of a row, 2^92, stays
// within the 256 bits in which the view multiplies.
const maxListBits = 160

// listRatio returns, in lowest terms, what a billionth of the base unit costs in 10^-12, before
// ladders.
func listRatio(l *rating.Settled) (num, den *big.Int, err error) {
	num, err = l.UnitPrice.Scaled(priceScale)
	if err != nil {
		return nil, nil, fmt.Errorf("unit price: %w", err)
	}
	if num.CmpAbs(pow10(priceDigits)) >= 0 {
		return nil, nil, fmt.Errorf("unit price %s is too large", l.UnitPrice)
	}
	den = pow10(priceScale - money.Scale)
	den.Mul(den, l.ListNano)
	if common := new(big.Int).GCD(nil, nil, num, den); common.Sign() > 0 {
		num, den = num.Quo(num, common), den.Quo(den, common)
	}
	if num.BitLen() > maxListBits {
		return nil, nil, fmt.Errorf("unit price %s has too many digits", l.UnitPrice)
	}
	return num, den, nil
}

// fits refuses what the columns do not hold: the driver would cut it without a word.
func fits(l *rating.Settled) error {
	limit := pow10(38)
	amount, err := l.Amount.Scaled(money.Scale)
	if err != nil {
		return fmt.Errorf("amount: %w", err)
	}
	if amount.CmpAbs(limit) >= 0 {
		return fmt.Errorf("amount %s has more than 26 digits before the point", l.Amount)
	}
	if l.Quantity.Big().CmpAbs(limit) >= 0 {
		return fmt.Errorf("quantity %s has more than 29 digits before the point", l.Quantity)
	}
	return nil
}

func pow10(n int64) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil) }
