package clickhouse

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/rating"
)

// LineItemFilter chooses line items; what is empty chooses all.
type LineItemFilter struct {
	Tenant string
	Period string // billing period, YYYY-MM
	Limit  int    // how many at most; 0 is all
}

// quantityPlaces is the number of decimals in which quantities are printed.
const quantityPlaces = 9

const lineItemColumns = `tenant, project, lease, session, node, region, sku, purchase, band,
	usage_start, usage_end, toString(day), billing_period, usage_period, kind, labels,
	toString(base_quantity), base_unit, toString(unit_price), per, toString(list_amount),
	toString(amount), toString(effective_amount), currency`

// LineItems reads the view, in the order of tenant, billing period, start, session, SKU and what
// else tells line items apart.
func (s *Store) LineItems(ctx context.Context, filter LineItemFilter) ([]rating.LineItem, error) {
	return s.lineItems(ctx, filter, `tenant, billing_period, usage_start, session, sku, purchase,
		band, kind, toString(unit_price), project, toString(base_quantity), usage_end, region`)
}

// TopLineItems returns the n line items of the largest amounts, largest first.
func (s *Store) TopLineItems(ctx context.Context, n int) ([]rating.LineItem, error) {
	return s.lineItems(ctx, LineItemFilter{Limit: n},
		"amount DESC, tenant, usage_start, session, sku, band, kind")
}

func (s *Store) lineItems(ctx context.Context, filter LineItemFilter, order string) (
	[]rating.LineItem, error,
) {
	query := "SELECT " + lineItemColumns + " FROM line_items WHERE 1"
	if filter.Tenant != "" {
		query += " AND tenant = " + quote(filter.Tenant)
	}
	if filter.Period != "" {
		query += " AND billing_period = " + quote(filter.Period)
	}
	query += " ORDER BY " + order
	if filter.Limit > 0 {
		query += fmt.Sprintf(" LIMIT %d", filter.Limit)
	}
	var out []rating.LineItem
	err := s.each(ctx, query, func(row scanner) error {
		i, err := scanItem(row)
		out = append(out, i)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read line items: %w", err)
	}
	return out, nil
}

// scanItem reads a row of lineItemColumns, and what is selected behind them.
func scanItem(row scanner, more ...any) (rating.LineItem, error) {
	var i rating.LineItem
	var start, end time.Time
	err := row.Scan(append([]any{
		&i.Tenant, &i.Project, &i.Lease, &i.Session, &i.Node, &i.Region, &i.SKU, &i.Purchase, &i.Band,
		&start, &end, &i.Day, &i.BillingPeriod, &i.UsagePeriod, &i.Kind, &i.Labels, &i.BaseQuantity,
		&i.BaseUnit, &i.UnitPrice, &i.Per, &i.ListAmount, &i.Amount, &i.EffectiveAmount, &i.Currency,
	}, more...)...)
	i.UsageStart = start.UTC().Format(time.RFC3339)
	i.UsageEnd = end.UTC().Format(time.RFC3339)
	i.BaseQuantity = fixed(i.BaseQuantity, quantityPlaces)
	i.ListAmount, i.Amount = fixed(i.ListAmount, money.Scale), fixed(i.Amount, money.Scale)
	i.EffectiveAmount = fixed(i.EffectiveAmount, money.Scale)
	return i, err
}

// EachLineItem visits the line items of a billing period, each with its charge, in an order that
// follows from what they say.
func (s *Store) EachLineItem(ctx context.Context, period string,
	visit func(item *rating.LineItem, charge *rating.Charge) error,
) error {
	query := "SELECT " + lineItemColumns + ", charge FROM charge_items WHERE billing_period = " +
		quote(period) + ` ORDER BY tenant, usage_start, session, sku, purchase, band, kind, project,
			usage_end, base_quantity, amount, charge`
	var charge rating.Charge
	last := ""
	err := s.each(ctx, query, func(row scanner) error {
		var key string
		i, err := scanItem(row, &key)
		if err != nil {
			return err
		}
		if key != last || i.Tenant != charge.Tenant {
			if charge, err = rating.ParseCharge(i.Tenant, key); err != nil {
				return fmt.Errorf("tenant %q: %w", i.Tenant, err)
			}
			last = key
		}
		return visit(&i, &charge)
	})
	if err != nil {
		return fmt.Errorf("read line items of %s: %w", period, err)
	}
	return nil
}

// fixed adds the trailing zeros that ClickHouse leaves out.
func fixed(decimal string, places int) string {
	_, fraction, point := strings.Cut(decimal, ".")
	if !point {
		decimal += "."
	}
	return decimal + strings.Repeat("0", max(0, places-len(fraction)))
}

// Spend is what a tenant's usage of a billing period costs, by its last settlement.
type Spend struct {
	Tenant   string
	Period   string // of the usage, YYYY-MM
	Currency string
	Amount   string // with money.Scale decimals
	AsOf     time.Time
}

// Spend adds settlements up by tenant, period and currency; "" for a tenant or a period is all.
func (s *Store) Spend(ctx context.Context, tenant, period string) ([]Spend, error) {
	query := `SELECT tenant, usage_period, each_currency, toString(sum(each_amount)), max(as_of)
		FROM settlements FINAL ARRAY JOIN currency AS each_currency, amount AS each_amount WHERE 1`
	if tenant != "" {
		query += " AND tenant = " + quote(tenant)
	}
	if period != "" {
		query += " AND usage_period = " + quote(period)
	}
	query += " GROUP BY tenant, usage_period, each_currency ORDER BY 1, 2, 3"
	var out []Spend
	err := s.each(ctx, query, func(row scanner) error {
		var line Spend
		var asOf uint64
		err := row.Scan(&line.Tenant, &line.Period, &line.Currency, &line.Amount, &asOf)
		line.Amount = fixed(line.Amount, money.Scale)
		line.AsOf = time.Unix(0, int64(asOf)).UTC()
		out = append(out, line)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read spend: %w", err)
	}
	return out, nil
}

// Counts says how many rows a table has once repeats are dropped.
func (s *Store) Counts(ctx context.Context) (map[string]uint64, error) {
	counts := make(map[string]uint64)
	for _, table := range []string{
		"usage_events", "sessions", "voids", "consumed", "hours", "dead_letters", "settlements",
	} {
		var n uint64
		if err := s.conn.QueryRow(ctx, "SELECT count() FROM "+table+" FINAL").Scan(&n); err != nil {
			return nil, fmt.Errorf("count %s: %w", table, err)
		}
		counts[table] = n
	}
	return counts, nil
}
