package clickhouse

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
)

// span is a billing or usage period, and the hours that can have usage of it: no zone is more than
// a day away from UTC.
type span struct {
	period      string
	from, until int64
}

func spanOf(period string) (span, error) {
	month, err := time.Parse("2006-01", period)
	if err != nil {
		return span{}, fmt.Errorf("parse period %q: %w", period, err)
	}
	return span{
		period, month.AddDate(0, 0, -1).Unix(), month.AddDate(0, 1, 1).Unix(),
	}, nil
}

// byPeriods groups the tenants of periods, each list for one statement.
func byPeriods(keys []pipeline.PeriodKey) map[string][]string {
	tenants := make(map[string]map[string]bool)
	for _, k := range keys {
		if tenants[k.Period] == nil {
			tenants[k.Period] = make(map[string]bool)
		}
		tenants[k.Period][quote(k.Tenant)] = true
	}
	out := make(map[string][]string, len(tenants))
	for period, names := range tenants {
		out[period] = lists(slices.Sorted(maps.Keys(names)))
	}
	return out
}

// Uses returns what the charges of contracts have in billing periods, each list in the order of its
// charges.
func (s *Store) Uses(ctx context.Context, keys []pipeline.PeriodKey) (
	map[pipeline.PeriodKey][]rating.Use, error,
) {
	wanted := make(map[pipeline.PeriodKey]bool, len(keys))
	for _, k := range keys {
		wanted[k] = true
	}
	found := make(map[pipeline.PeriodKey]map[rating.Charge]*rating.Use, len(keys))
	for period, tenants := range byPeriods(keys) {
		billing, err := spanOf(period)
		if err != nil {
			return nil, err
		}
		for _, list := range tenants {
			late, err := s.latePeriods(ctx, list, billing)
			if err != nil {
				return nil, fmt.Errorf("find late usage: %w", err)
			}
			if err := s.uses(ctx, list, billing, period, wanted, found); err != nil {
				return nil, fmt.Errorf("sum usage of %s: %w", period, err)
			}
			for usage, names := range late {
				names := strings.Join(names, ",") // no more than are in the list
				if err := s.uses(ctx, names, billing, usage, wanted, found); err != nil {
					return nil, fmt.Errorf("sum usage of %s: %w", usage, err)
				}
			}
		}
	}
	out := make(map[pipeline.PeriodKey][]rating.Use, len(found))
	for key, charges := range found {
		for _, u := range charges {
			for d := range u.Parts {
				slices.SortFunc(u.Parts[d], func(a, b rating.Part) int {
					return cmp.Compare(a.Name, b.Name)
				})
			}
			out[key] = append(out[key], *u)
		}
		slices.SortFunc(out[key], func(a, b rating.Use) int { return a.Charge.Compare(&b.Charge) })
	}
	return out, nil
}

// latePeriods returns the earlier usage periods that have rows which count in a billing period, and
// the tenants that they are of. Such rows were written after the billing period began.
func (s *Store) latePeriods(ctx context.Context, tenants string, billing span) (
	map[string][]string, error,
) {
	where := fmt.Sprintf("tenant IN (%s) AND written_at >= %s", tenants,
		quoteTime(time.Unix(billing.from, 0)))
	query := `SELECT DISTINCT tenant, splitByChar('|', toString(charge))[10] AS usage FROM (
			SELECT DISTINCT tenant, charge FROM hours
			ARRAY JOIN seg_charge AS charge, seg_billing_period AS billing
			WHERE ` + where + ` AND billing = ` + quote(billing.period) + `
			UNION DISTINCT
			SELECT DISTINCT tenant, charge FROM consumed
			WHERE ` + where + ` AND billing_period = ` + quote(billing.period) + `)
		WHERE usage < ` + quote(billing.period)
	names := make(map[string][]string)
	err := s.each(ctx, query, func(row scanner) error {
		var tenant, usage string
		err := row.Scan(&tenant, &usage)
		names[usage] = append(names[usage], quote(tenant))
		return err
	})
	return names, err
}

// usesQuery sums charges of a usage period up to a billing period: as a whole, and by each
// dimension. Sessions are joined to what is summed by session already.
const usesQuery = `
WITH
    held AS
    (
        SELECT
            tenant, session, sku, charge, billing, sum(nano) AS nano, min(day) AS first,
            max(day) AS last
        FROM
        (
            SELECT
                tenant, session, sku, charge, billing, day,
                toInt128(held) * 1000000 * if(kind IN (0, 3), 1, -1) * seconds AS nano
            FROM (SELECT tenant, session, sku, held, seg_charge, seg_billing_period, seg_kind, seg_day,
                seg_seconds FROM hours FINAL WHERE {tenants} AND hour >= {from} AND hour < {until})
            ARRAY JOIN seg_charge AS charge, seg_billing_period AS billing, seg_kind AS kind,
                seg_day AS day, seg_seconds AS seconds
            WHERE billing <= {billing}
        )
        GROUP BY tenant, session, sku, charge, billing
        HAVING splitByChar('|', toString(charge))[10] = {usage}
    ),
    all AS
    (
        SELECT h.tenant AS tenant, toString(h.charge) AS charge, toString(h.billing) AS billing,
            h.nano AS nano, h.first AS first, h.last AS last, toString(s.project) AS project,
            s.labels['team'] AS team, s.labels['model'] AS model,
            s.labels['model_version'] AS model_version, s.labels['stage'] AS stage
        FROM held AS h
        LEFT JOIN (SELECT tenant, session, sku, project, labels FROM sessions FINAL WHERE {tenants}) AS s
            ON h.tenant = s.tenant AND h.session = s.session AND h.sku = s.sku
        UNION ALL
        SELECT tenant, toString(charge), toString(billing_period), reinterpret(quantity, 'Int128'), day,
            day, toString(project), labels['team'], labels['model'], labels['model_version'],
            labels['stage']
        FROM consumed FINAL
        WHERE {tenants} AND time >= {from} AND time < {until} AND billing_period <= {billing}
            AND splitByChar('|', toString(charge))[10] = {usage}
    )
SELECT
    tenant, charge,
    multiIf(grouping(project) = 0, 0, grouping(team) = 0, 1, grouping(model) = 0, 2,
        grouping(model_version) = 0, 3, grouping(stage) = 0, 4, 5) AS dimension,
    concat(project, team, model, model_version, stage) AS name,
    toString(sumIf(nano, billing < {billing})) AS before, toString(sum(nano)) AS now,
    minIf(first, billing = {billing}) AS first_day, maxIf(last, billing = {billing}) AS last_day,
    countIf(billing = {billing}) > 0 AS here
FROM all
GROUP BY GROUPING SETS ((tenant, charge), (tenant, charge, project), (tenant, charge, team),
    (tenant, charge, model), (tenant, charge, model_version), (tenant, charge, stage))
SETTINGS force_grouping_standard_compatibility = 1`

// uses sums one usage period of some tenants.
func (s *Store) uses(ctx context.Context, tenants string, billing span, usage string,
	wanted map[pipeline.PeriodKey]bool, found map[pipeline.PeriodKey]map[rating.Charge]*rating.Use,
) error {
	used, err := spanOf(usage)
	if err != nil {
		return err
	}
	query := strings.NewReplacer(
		"{tenants}", "tenant IN ("+tenants+")", "{from}", fmt.Sprint(used.from),
		"{until}", fmt.Sprint(used.until), "{billing}", quote(billing.period), "{usage}", quote(usage),
	).Replace(usesQuery)
	here := make(map[rating.Charge]*rating.Use)
	parts := make(map[rating.Charge]*[rating.Dimensions][]rating.Part)
	err = s.each(ctx, query, func(row scanner) error {
		var tenant, key, name, before, now string
		var dimension uint8
		var first, last uint16
		var is uint8
		if err := row.Scan(&tenant, &key, &dimension, &name, &before, &now, &first, &last,
			&is); err != nil {
			return err
		}
		charge, err := rating.ParseCharge(tenant, key)
		if err != nil {
			return fmt.Errorf("tenant %q: %w", tenant, err)
		}
		part := rating.Part{Name: name}
		if part.Before, err = nanoOf(before); err == nil {
			part.Now, err = nanoOf(now)
		}
		if err != nil {
			return fmt.Errorf("tenant %q: charge %s: %w", tenant, key, err)
		}
		if rating.Dimension(dimension) < rating.Dimensions {
			if parts[charge] == nil {
				parts[charge] = new([rating.Dimensions][]rating.Part)
			}
			if part.Before.Sign() != 0 || part.Now.Sign() != 0 {
				parts[charge][dimension] = append(parts[charge][dimension], part)
			}
			return nil
		}
		period := pipeline.PeriodKey{Tenant: tenant, Contract: charge.Contract, Period: billing.period}
		if is == 0 || !wanted[period] {
			return nil
		}
		here[charge] = &rating.Use{
			Charge: charge, Before: part.Before, Now: part.Now,
			FirstDay: int64(first), LastDay: int64(last),
		}
		return nil
	})
	if err != nil {
		return err
	}
	for charge, u := range here {
		if p := parts[charge]; p != nil {
			u.Parts = *p
		}
		period := pipeline.PeriodKey{
			Tenant: charge.Tenant, Contract: charge.Contract, Period: billing.period,
		}
		if found[period] == nil {
			found[period] = make(map[rating.Charge]*rating.Use)
		}
		found[period][charge] = u
	}
	return nil
}

// nanoOf reads a whole number of billionths.
func nanoOf(text string) (metering.Quantity, error) {
	nano, ok := new(big.Int).SetString(text, 10)
	if !ok {
		return metering.Quantity{}, fmt.Errorf("%q is not a number", text)
	}
	return metering.QuantityOf(nano)
}

// rowLinesQuery prints what is billed of each row, as rating.RowLine has it.
const rowLinesQuery = `
SELECT tenant, splitByChar('|', charge)[3] AS contract, charge, text FROM
(
    SELECT tenant, toString(charge) AS charge,
        concat('h\t', toString(toUnixTimestamp(hour)), '\t', toString(kind), '\t', toString(day), '\t',
            toString(from), '\t', toString(to), '\t', toString(seconds), '\t', toString(held), '\t',
            toString(sku), '\t', toString(charge), '\t', session) AS text
    FROM (SELECT * FROM hours FINAL WHERE {tenants}
        AND (hour >= {from} AND hour < {until} OR written_at >= {written}))
    ARRAY JOIN seg_kind AS kind, seg_charge AS charge, seg_billing_period AS billing,
        seg_day AS day, seg_from AS from, seg_to AS to, seg_seconds AS seconds
    WHERE billing = {billing}
    UNION ALL
    SELECT tenant, toString(charge),
        concat('c\t', toString(toUnixTimestamp(time)), '\t', toString(day), '\t',
            toString(reinterpret(quantity, 'Int128')), '\t', toString(sku), '\t', toString(charge), '\t',
            toString(length(source)), '\t', source, id)
    FROM consumed FINAL WHERE {tenants} AND billing_period = {billing}
)
ORDER BY tenant, contract, text`

// RowLines visits the rows that count in billing periods: by tenant, contract and period, and then
// in bytewise order of their texts.
func (s *Store) RowLines(ctx context.Context, keys []pipeline.PeriodKey,
	visit func(of pipeline.PeriodKey, line rating.RowLine) error,
) error {
	wanted := make(map[pipeline.PeriodKey]bool, len(keys))
	for _, k := range keys {
		wanted[k] = true
	}
	tenants := byPeriods(keys)
	for _, period := range slices.Sorted(maps.Keys(tenants)) {
		billing, err := spanOf(period)
		if err != nil {
			return err
		}
		for _, list := range tenants[period] {
			if err := s.rowLines(ctx, list, billing, wanted, visit); err != nil {
				return fmt.Errorf("read rows of %s: %w", period, err)
			}
		}
	}
	return nil
}

func (s *Store) rowLines(ctx context.Context, tenants string, billing span,
	wanted map[pipeline.PeriodKey]bool, visit func(pipeline.PeriodKey, rating.RowLine) error,
) error {
	query := strings.NewReplacer(
		"{tenants}", "tenant IN ("+tenants+")", "{from}", fmt.Sprint(billing.from),
		"{until}", fmt.Sprint(billing.until), "{billing}", quote(billing.period),
		"{written}", quoteTime(time.Unix(billing.from, 0)),
	).Replace(rowLinesQuery)
	var charge rating.Charge
	var of pipeline.PeriodKey
	var last string
	return s.each(ctx, query, func(row scanner) error {
		var tenant, contract, key, text string
		if err := row.Scan(&tenant, &contract, &key, &text); err != nil {
			return err
		}
		if key != last || tenant != charge.Tenant {
			parsed, err := rating.ParseCharge(tenant, key)
			if err != nil {
				return fmt.Errorf("tenant %q: %w", tenant, err)
			}
			charge, last = parsed, key
			of = pipeline.PeriodKey{Tenant: tenant, Contract: contract, Period: billing.period}
		}
		if !wanted[of] {
			return nil
		}
		one := charge
		return visit(of, rating.RowLine{Charge: &one, Billing: billing.period, Text: text})
	})
}
