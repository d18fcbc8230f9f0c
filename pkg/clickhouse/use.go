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

// tenantList are tenants that one statement is about.
type tenantList struct {
	names  []string
	quoted string // for IN
}

// listBytes bounds a list: statements have several copies of it.
const listBytes = maxQueryBytes / 16

// tenantLists splits names into lists, in their order.
func tenantLists(names map[string]bool) []tenantList {
	var out []tenantList
	for _, name := range slices.Sorted(maps.Keys(names)) {
		text := quote(name)
		last := len(out) - 1
		if last < 0 || len(out[last].quoted)+len(text) >= listBytes {
			out = append(out, tenantList{[]string{name}, text})
			continue
		}
		out[last].names = append(out[last].names, name)
		out[last].quoted += "," + text
	}
	return out
}

// byPeriods groups the tenants of billing periods.
func byPeriods(keys []pipeline.PeriodKey) map[string][]tenantList {
	tenants := make(map[string]map[string]bool)
	for _, k := range keys {
		if tenants[k.Period] == nil {
			tenants[k.Period] = make(map[string]bool)
		}
		tenants[k.Period][k.Tenant] = true
	}
	out := make(map[string][]tenantList, len(tenants))
	for period, names := range tenants {
		out[period] = tenantLists(names)
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
	out := make(map[pipeline.PeriodKey][]rating.Use, len(keys))
	for period, tenants := range byPeriods(keys) {
		billing, err := spanOf(period)
		if err != nil {
			return nil, err
		}
		for _, list := range tenants {
			late, err := s.latePeriods(ctx, list.quoted, billing)
			if err != nil {
				return nil, fmt.Errorf("find late usage: %w", err)
			}
			for _, usage := range append(late, lateSpan{billing, list.quoted}) {
				found, err := s.uses(ctx, usage, billing)
				if err != nil {
					return nil, fmt.Errorf("sum usage of %s: %w", usage.period, err)
				}
				for key, uses := range found {
					if wanted[key] {
						out[key] = append(out[key], uses...)
					}
				}
			}
		}
	}
	for _, uses := range out {
		slices.SortFunc(uses, func(a, b rating.Use) int { return a.Charge.Compare(&b.Charge) })
	}
	return out, nil
}

// lateSpan is a usage period, and a list of the tenants that have some of it which counts in a
// billing period.
type lateSpan struct {
	span
	tenants string
}

// condition is one on the hours of the span.
func (l *lateSpan) condition() string {
	return fmt.Sprintf("tenant IN (%s) AND hour >= %d AND hour < %d", l.tenants, l.from, l.until)
}

// latePeriods returns the earlier usage periods that have rows which count in a billing period. It
// looks at states that were replaced, too: what they had may be gone, but nothing is missed.
func (s *Store) latePeriods(ctx context.Context, tenants string, billing span) ([]lateSpan, error) {
	query := strings.NewReplacer(
		"{tenants}", "tenant IN ("+tenants+")", "{billing}", quote(billing.period),
		"{until}", fmt.Sprint(billing.from+2*24*metering.Hour),
	).Replace(`
		SELECT DISTINCT tenant, splitByChar('|', toString(charge))[10] AS usage FROM
		(
			SELECT DISTINCT tenant, charge FROM (SELECT tenant, seg_charge, seg_billing_period FROM hours
				WHERE {tenants} AND hour < {until} AND has(seg_billing_period, {billing}))
			ARRAY JOIN seg_charge AS charge, seg_billing_period AS billing
			WHERE billing = {billing}
			UNION DISTINCT
			SELECT DISTINCT tenant, charge FROM consumed WHERE {tenants} AND billing_period = {billing}
		)
		WHERE usage < {billing}`)
	names := make(map[string][]string)
	err := s.each(ctx, query, func(row scanner) error {
		var tenant, usage string
		err := row.Scan(&tenant, &usage)
		names[usage] = append(names[usage], quote(tenant))
		return err
	})
	if err != nil {
		return nil, err
	}
	late := make([]lateSpan, 0, len(names)+1)
	for usage, tenants := range names {
		of, err := spanOf(usage)
		if err != nil {
			return nil, err
		}
		late = append(late, lateSpan{of, strings.Join(tenants, ",")}) // no more than were asked for
	}
	return late, nil
}

// usesQuery sums charges of a usage period up to a billing period: as a whole, by each dimension,
// and by the billing periods. Sessions are joined to what is summed by session already.
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
            FROM
            (
                SELECT
                    tenant, session, sku, held, seg_charge, seg_billing_period, seg_kind, seg_day,
                    seg_seconds
                FROM hours FINAL WHERE {hours}
            )
            ARRAY JOIN
                seg_charge AS charge, seg_billing_period AS billing, seg_kind AS kind,
                seg_day AS day, seg_seconds AS seconds
            WHERE billing <= {billing}
        )
        GROUP BY tenant, session, sku, charge, billing
        HAVING splitByChar('|', toString(charge))[10] = {usage}
    ),
    facts AS
    (
        SELECT
            tenant, session, sku, toString(project) AS project, labels['team'] AS team,
            labels['model'] AS model, labels['model_version'] AS model_version,
            labels['stage'] AS stage
        FROM sessions FINAL
        WHERE {tenants} AND (tenant, session) IN (SELECT tenant, session FROM hours WHERE {hours})
    ),
    all AS
    (
        SELECT
            h.tenant AS tenant, toString(h.charge) AS charge, toString(h.billing) AS billing,
            h.nano AS nano, h.first AS first, h.last AS last, f.project AS project, f.team AS team,
            f.model AS model, f.model_version AS model_version, f.stage AS stage
        FROM held AS h
        LEFT JOIN facts AS f ON h.tenant = f.tenant AND h.session = f.session AND h.sku = f.sku
        UNION ALL
        SELECT
            tenant, toString(charge), toString(billing_period), reinterpret(quantity, 'Int128'),
            day, day, toString(project), labels['team'], labels['model'], labels['model_version'],
            labels['stage']
        FROM consumed FINAL
        WHERE {tenants} AND time >= {from} AND time < {until} AND billing_period <= {billing}
            AND splitByChar('|', toString(charge))[10] = {usage}
    )
SELECT
    tenant, charge,
    multiIf(grouping(project) = 0, 0, grouping(team) = 0, 1, grouping(model) = 0, 2,
        grouping(model_version) = 0, 3, grouping(stage) = 0, 4, grouping(billing) = 0, 5, 6)
        AS dimension,
    concat(project, team, model, model_version, stage, billing) AS name,
    toString(sumIf(nano, billing < {billing})) AS before, toString(sum(nano)) AS now,
    minIf(first, billing = {billing}) AS first_day, maxIf(last, billing = {billing}) AS last_day,
    countIf(billing = {billing}) > 0 AS here
FROM all
GROUP BY GROUPING SETS ((tenant, charge), (tenant, charge, project), (tenant, charge, team),
    (tenant, charge, model), (tenant, charge, model_version), (tenant, charge, stage),
    (tenant, charge, billing))
ORDER BY tenant, charge, dimension, name
SETTINGS force_grouping_standard_compatibility = 1`

// Rows of the result of usesQuery that are of no dimension.
const (
	ofBilling = rating.Dimensions // of one billing period
	ofAll     = rating.Dimensions + 1
)

// summed is a row of the result of usesQuery: a part of a charge, or all of it.
type summed struct {
	charge    rating.Charge
	dimension rating.Dimension // or ofBilling, or ofAll
	rating.Part
	first, last int64
	here        bool // some of it counts in the billing period itself
}

func scanSummed(row scanner) (*summed, error) {
	var tenant, key, before, now string
	var dimension, here uint8
	var first, last uint16
	u := new(summed)
	err := row.Scan(&tenant, &key, &dimension, &u.Name, &before, &now, &first, &last, &here)
	if err != nil {
		return nil, err
	}
	u.dimension, u.here = rating.Dimension(dimension), here != 0
	u.first, u.last = int64(first), int64(last)
	if u.charge, err = rating.ParseCharge(tenant, key); err != nil {
		return nil, fmt.Errorf("tenant %q: %w", tenant, err)
	}
	if u.Before, err = nanoOf(before); err == nil {
		u.Now, err = nanoOf(now)
	}
	if err != nil {
		return nil, fmt.Errorf("tenant %q: charge %s: %w", tenant, key, err)
	}
	return u, nil
}

// uses returns what charges of a usage period have in a billing period. The parts of a charge come
// before its sum, by dimension and name.
func (s *Store) uses(ctx context.Context, usage lateSpan, billing span) (
	map[pipeline.PeriodKey][]rating.Use, error,
) {
	query := strings.NewReplacer(
		"{tenants}", "tenant IN ("+usage.tenants+")", "{hours}", usage.condition(),
		"{from}", fmt.Sprint(usage.from), "{until}", fmt.Sprint(usage.until),
		"{billing}", quote(billing.period), "{usage}", quote(usage.period),
	).Replace(usesQuery)
	found := make(map[pipeline.PeriodKey][]rating.Use)
	here := make(map[pipeline.PeriodKey]bool)
	var use rating.Use
	err := s.each(ctx, query, func(row scanner) error {
		u, err := scanSummed(row)
		if err != nil {
			return err
		}
		switch {
		case u.dimension == ofBilling:
			if usage.period != billing.period {
				use.Steps = append(use.Steps, rating.Step{Billing: u.Name, Quantity: u.Now})
			}
			return nil
		case u.dimension < rating.Dimensions:
			if u.Before.Sign() != 0 || u.Now.Sign() != 0 {
				use.Parts[u.dimension] = append(use.Parts[u.dimension], u.Part)
			}
			return nil
		}
		key := pipeline.PeriodKey{
			Tenant: u.charge.Tenant, Contract: u.charge.Contract, Period: billing.period,
		}
		use.Charge, use.Before, use.Now, use.Elsewhere = u.charge, u.Before, u.Now, !u.here
		use.FirstDay, use.LastDay = u.first, u.last
		if u.here || usage.period != billing.period {
			found[key], here[key] = append(found[key], use), here[key] || u.here
		}
		use = rating.Use{}
		return nil
	})
	// Where nothing counts in the billing period after all, nobody asks for the others.
	maps.DeleteFunc(found, func(key pipeline.PeriodKey, _ []rating.Use) bool { return !here[key] })
	return found, err
}

// nanoOf reads a whole number of billionths.
func nanoOf(text string) (metering.Quantity, error) {
	nano, ok := new(big.Int).SetString(text, 10)
	if !ok {
		return metering.Quantity{}, fmt.Errorf("%q is not a number", text)
	}
	return metering.QuantityOf(nano)
}
