package alert

import (
	"fmt"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
)

// QueryPrices shows at which prices usage of a SKU was rated between two seconds, the oldest first:
// of one purchase, in a region or, for "", in all.
func QueryPrices(sku, purchase, region string, from, until int64) string {
	where := ""
	if region != "" {
		where = " AND region = " + quote(region)
	}
	return fmt.Sprintf(`SELECT region, band, unit_price, per, currency, min(usage_start) AS since,
  max(usage_end) AS until, sum(base_quantity) AS quantity
FROM line_items
WHERE sku = %s AND purchase = %s%s AND currency != '' AND usage_start >= %s AND usage_start < %s
GROUP BY region, band, unit_price, per, currency ORDER BY since`, quote(sku), quote(purchase),
		where, instant(from), instant(until))
}

// queryNewest shows when usage events came last, by tenant.
const queryNewest = `SELECT tenant, max(record_time) AS newest FROM usage_events
GROUP BY tenant ORDER BY newest DESC LIMIT 10`

// queryMarket shows at which prices spot usage was rated. The market's own prices are in its topic.
func queryMarket(t catalog.Traded, from, until int64) string {
	return QueryPrices(t.SKU, string(metering.Spot), t.Region, from, until)
}
