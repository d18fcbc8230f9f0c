package clickhouse

import (
	"context"
	"fmt"
	"strings"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/rating"
)

// scopeQuery sums charges by project, day and labels. Sessions are joined to what is summed by
// session already.
const scopeQuery = `
WITH
    held AS
    (
        SELECT tenant, session, sku, charge, day, sum(nano) AS nano
        FROM
        (
            SELECT tenant, session, sku, charge, day,
                toInt128(held) * 1000000 * if(kind IN (0, 3), 1, -1) * seconds AS nano
            FROM (SELECT tenant, session, sku, held, seg_charge, seg_kind, seg_day, seg_seconds
                FROM hours FINAL WHERE {tenants} AND hour >= {from})
            ARRAY JOIN seg_charge AS charge, seg_kind AS kind, seg_day AS day,
                seg_seconds AS seconds
        )
        GROUP BY tenant, session, sku, charge, day
    ),
    all AS
    (
        SELECT h.tenant AS tenant, toString(h.charge) AS charge, h.day AS day, h.nano AS nano,
            toString(s.project) AS project, {held} AS values
        FROM held AS h
        LEFT JOIN (SELECT tenant, session, sku, project, labels FROM sessions FINAL
            WHERE {tenants}) AS s
            ON h.tenant = s.tenant AND h.session = s.session AND h.sku = s.sku
        UNION ALL
        SELECT tenant, toString(charge), day, reinterpret(quantity, 'Int128'), toString(project),
            {consumed}
        FROM consumed FINAL WHERE {tenants} AND time >= {from}
    )
SELECT tenant, charge, project, values, day, toString(sum(nano)) AS nano
FROM all
GROUP BY tenant, charge, project, values, day
ORDER BY tenant, charge, project, values, day`

// ScopeUses returns the charges of tenants that have usage at or after a second, split by project,
// local day and the values of labels. A charge that began before is whole only where its billing
// period began after that second.
func (s *Store) ScopeUses(ctx context.Context, tenants []string, from int64, labels []string,
) ([]alert.ScopeUse, error) {
	quoted := make([]string, len(tenants))
	for i, t := range tenants {
		quoted[i] = quote(t)
	}
	values := func(column string) string {
		parts := make([]string, len(labels))
		for i, l := range labels {
			parts[i] = "toString(" + column + "[" + quote(l) + "])"
		}
		return "CAST([" + strings.Join(parts, ", ") + "], 'Array(String)')"
	}
	var out []alert.ScopeUse
	for _, list := range lists(quoted) {
		query := strings.NewReplacer("{tenants}", "tenant IN ("+list+")", "{from}", fmt.Sprint(from),
			"{held}", values("s.labels"), "{consumed}", values("labels")).Replace(scopeQuery)
		last := ""
		err := s.each(ctx, query, func(row scanner) error {
			var tenant, key, nano string
			var part alert.ScopePart
			var of []string
			var day uint16
			if err := row.Scan(&tenant, &key, &part.Project, &of, &day, &nano); err != nil {
				return err
			}
			if tenant+key != last {
				charge, err := rating.ParseCharge(tenant, key)
				if err != nil {
					return fmt.Errorf("tenant %q: %w", tenant, err)
				}
				out, last = append(out, alert.ScopeUse{Charge: charge}), tenant+key
			}
			q, err := nanoOf(nano)
			if err != nil {
				return fmt.Errorf("tenant %q: charge %s: %w", tenant, key, err)
			}
			part.Day, part.Quantity, part.Labels = int64(day), q, make(map[string]string, len(labels))
			for i, l := range labels {
				part.Labels[l] = of[i]
			}
			u := &out[len(out)-1]
			u.Whole, u.Parts = u.Whole.Add(q), append(u.Parts, part)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("sum scopes: %w", err)
		}
	}
	return out, nil
}
