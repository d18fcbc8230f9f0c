package clickhouse

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
)

// TouchedDays returns the days of UTC, none before from, on which tenants have usage that was
// written at or after an instant of the store's own clock, and the instant to ask with next time.
// The zero time asks for that instant alone.
func (s *Store) TouchedDays(ctx context.Context, since time.Time, from int64) (
	[]pipeline.TenantDay, time.Time, error,
) {
	next, err := s.landed(ctx)
	if err != nil || since.IsZero() {
		return nil, next, err
	}
	query := fmt.Sprintf(`SELECT DISTINCT tenant, day FROM (
			SELECT DISTINCT tenant, intDiv(toUInt32(hour), 86400) AS day FROM hours
			WHERE written_at >= %s AND hour >= %d
			UNION ALL
			SELECT DISTINCT tenant, intDiv(toUInt32(time), 86400) AS day FROM consumed
			WHERE written_at >= %[1]s AND time >= %[2]d)
		ORDER BY tenant, day`, quoteTime(since), from*86_400)
	var days []pipeline.TenantDay
	err = s.each(ctx, query, func(row scanner) error {
		var tenant string
		var day uint32
		err := row.Scan(&tenant, &day)
		days = append(days, pipeline.TenantDay{Tenant: tenant, Day: int64(day)})
		return err
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("find days touched since %s: %w",
			since.Format(time.RFC3339Nano), err)
	}
	return days, next, nil
}

// dayQuery sums charges by days. What is held is joined to its sessions once it is summed by them.
const dayQuery = `
SELECT tenant, utc, toString(charge) AS key, day, toString(project) AS of, labels,
	toString(sum(nano)) AS nano
FROM
(
	{held}
	UNION ALL
	SELECT tenant, intDiv(toUInt32(time), 86400) AS utc, charge, day,
		reinterpret(quantity, 'Int128') AS nano, {project} AS project, {labels} AS labels
	FROM consumed FINAL
	WHERE tenant IN ({tenants}) AND time >= {from} AND time < {until}
)
GROUP BY tenant, utc, charge, day, project, labels`

// heldBySession is what dayQuery has of hours; so much of the query is left out where budgets are
// about tenants only.
const (
	heldQuery = `SELECT tenant, intDiv(toUInt32(hour), 86400) AS utc, charge, day,
		sum(toInt128(held) * 1000000 * if(kind IN (0, 3), 1, -1) * seconds) AS nano{columns}
	FROM
	(
		SELECT tenant, hour, session, sku, held, seg_charge, seg_kind, seg_day, seg_seconds
		FROM hours FINAL
		WHERE tenant IN ({tenants}) AND hour >= {from} AND hour < {until}
	)
	ARRAY JOIN seg_charge AS charge, seg_kind AS kind, seg_day AS day, seg_seconds AS seconds
	GROUP BY tenant, utc, charge, day`
	heldOfTenants  = `, '' AS project, CAST([], 'Array(String)') AS labels`
	heldOfSessions = `SELECT h.tenant AS tenant, h.utc AS utc, h.charge AS charge, h.day AS day,
		h.nano AS nano, s.project AS project, s.labels AS labels
	FROM ({held}, session, sku) AS h
	LEFT JOIN
	(
		SELECT tenant, session, sku, toString(project) AS project, {labels} AS labels
		FROM sessions FINAL
		WHERE tenant IN ({tenants}) AND (tenant, session) IN
			(SELECT tenant, session FROM hours
			WHERE tenant IN ({tenants}) AND hour >= {from} AND hour < {until})
	) AS s
	ON h.tenant = s.tenant AND h.session = s.session AND h.sku = s.sku`
)

// DayUses visits what was used on days of UTC, in any order.
func (s *Store) DayUses(ctx context.Context, of *pipeline.DayQuery,
	visit func(*alert.DayUse),
) error {
	project, labels := "''", "CAST([], 'Array(String)')"
	held := strings.Replace(heldQuery, "{columns}", heldOfTenants, 1)
	if of.Scoped {
		parts := make([]string, len(of.Labels))
		for i, l := range of.Labels {
			parts[i] = "toString(labels[" + quote(l) + "])"
		}
		project, labels = "toString(project)", "CAST(["+strings.Join(parts, ", ")+"], 'Array(String)')"
		held = strings.Replace(heldOfSessions, "{held}",
			strings.Replace(heldQuery, "{columns}", ", session, sku", 1), 1)
	}
	quoted := make([]string, len(of.Tenants))
	for i, t := range of.Tenants {
		quoted[i] = quote(t)
	}
	reader := useReader{
		names: of.Labels, charges: make(map[string]*rating.Charge),
		labels: make(map[string]map[string]string), visit: visit,
	}
	for _, list := range lists(quoted) {
		query := strings.NewReplacer("{tenants}", list, "{project}", project, "{labels}", labels,
			"{from}", fmt.Sprint(of.From*86_400), "{until}", fmt.Sprint(of.Until*86_400)).
			Replace(strings.Replace(dayQuery, "{held}", held, 1))
		if err := s.each(ctx, query, reader.row); err != nil {
			return fmt.Errorf("sum days: %w", err)
		}
	}
	return nil
}

// useReader makes uses of rows. What many rows have is kept once.
type useReader struct {
	names   []string                     // of labels
	charges map[string]*rating.Charge    // by tenant and key
	labels  map[string]map[string]string // by their values
	visit   func(*alert.DayUse)
}

func (r *useReader) row(row scanner) error {
	var tenant, key, nano string
	var values []string
	var use alert.DayUse
	var utc uint32
	var day uint16
	if err := row.Scan(&tenant, &utc, &key, &day, &use.Project, &values, &nano); err != nil {
		return err
	}
	charge := r.charges[tenant+"\x00"+key]
	if charge == nil {
		parsed, err := rating.ParseCharge(tenant, key)
		if err != nil {
			return fmt.Errorf("tenant %q: %w", tenant, err)
		}
		charge = &parsed
		r.charges[tenant+"\x00"+key] = charge
	}
	quantity, err := nanoOf(nano)
	if err != nil {
		return fmt.Errorf("tenant %q: charge %s: %w", tenant, key, err)
	}
	use.UTCDay, use.Day, use.Charge, use.Quantity = int64(utc), int64(day), charge, quantity
	use.Labels = r.labelsOf(values)
	r.visit(&use)
	return nil
}

func (r *useReader) labelsOf(values []string) map[string]string {
	if len(values) == 0 {
		return nil
	}
	key := fmt.Sprintf("%q", values)
	labels := r.labels[key]
	if labels == nil {
		labels = make(map[string]string, len(values))
		for i, value := range values {
			labels[r.names[i]] = value
		}
		r.labels[key] = labels
	}
	return labels
}
