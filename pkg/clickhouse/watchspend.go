package clickhouse

import (
	"context"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/money"
)

// hourlyQuery sums the amounts of the view line_items by hour, with the view's own arithmetic: each
// line has its part of its charge's amount, cut to 12 decimals, and what cutting leaves of a charge
// is a line at its start. It reads only the months of charges that have lines in the hours. Lines
// of one charge and quantity in an hour are priced together: most hours are held whole.
const hourlyQuery = `
WITH
    items AS
    (
        SELECT tenant, charge, hour, toInt256(nano) AS nano, count() AS lines
        FROM
        (
            SELECT tenant, charge, toInt64(toUnixTimestamp(hour)) AS hour,
                toInt128(held) * 1000000 * if(kind IN (0, 3), 1, -1) * seconds AS nano
            FROM (SELECT tenant, hour, held, seg_charge, seg_kind, seg_seconds FROM hours FINAL
                WHERE hour >= {first} AND hour < {last})
            ARRAY JOIN seg_charge AS charge, seg_kind AS kind, seg_seconds AS seconds
            UNION ALL
            SELECT tenant, charge, toInt64(toUnixTimestamp(toStartOfHour(time))),
                reinterpret(quantity, 'Int128')
            FROM consumed FINAL WHERE time >= {first} AND time < {last}
        )
        GROUP BY tenant, charge, hour, nano
    ),
    settled AS
    (
        SELECT tenant, toLowCardinality(each_charge) AS key,
            toInt256(reinterpret(each_quantity, 'Int128')) AS nano,
            toInt256(reinterpret(each_amount, 'Int128')) AS pico, each_currency AS currency
        FROM settlements FINAL
        ARRAY JOIN charge AS each_charge, quantity AS each_quantity, amount AS each_amount,
            currency AS each_currency
        WHERE usage_period >= {begin} AND usage_period <= {end}
    ),
    hourly AS
    (
        SELECT i.tenant AS tenant, i.charge AS charge, i.hour AS hour, any(t.currency) AS currency,
            any(t.nano) AS charge_nano, any(t.pico) AS charge_pico, sum(i.lines * i.nano) AS nano,
            sum(i.lines * if(t.nano = 0, 0,
                intDiv(t.pico * i.nano, if(t.nano = 0, 1, t.nano)))) AS pico
        FROM items AS i
        INNER JOIN settled AS t ON i.tenant = t.tenant AND i.charge = t.key
        GROUP BY tenant, charge, hour
    )
SELECT tenant, currency, hour, toString(sum(pico) + sum(rest)) FROM
(
    SELECT tenant, currency, hour, pico,
        if(hour = min(hour) OVER charges AND charge_nano = sum(nano) OVER charges,
            charge_pico - sum(pico) OVER charges, 0) AS rest
    FROM hourly
    WINDOW charges AS (PARTITION BY tenant, charge)
)
WHERE hour >= {from} AND hour < {until}
GROUP BY tenant, currency, hour
ORDER BY tenant, currency, hour
SETTINGS max_bytes_before_external_group_by = 500000000`

// HourlySpend visits what usage cost in the UTC hours that begin in [from, until), in seconds: what
// the view line_items says of them, by tenant, currency and hour. Usage that is not settled yet is
// left out, as it has no currency.
func (s *Store) HourlySpend(ctx context.Context, from, until int64,
	visit func(alert.HourSpend) error,
) error {
	if from >= until {
		return nil
	}
	// No zone is a day away from UTC, so these are the local months of the hours.
	month := func(second int64, days int) time.Time {
		at := time.Unix(second, 0).UTC().AddDate(0, 0, days)
		return time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
	}
	first, last := month(from, -1), month(until, 1)
	query := strings.NewReplacer(
		"{from}", fmt.Sprint(from), "{until}", fmt.Sprint(until),
		"{begin}", quote(first.Format("2006-01")), "{end}", quote(last.Format("2006-01")),
		"{first}", fmt.Sprint(first.AddDate(0, 0, -1).Unix()),
		"{last}", fmt.Sprint(last.AddDate(0, 1, 1).Unix())).Replace(hourlyQuery)
	err := s.each(ctx, query, func(row scanner) error {
		var h alert.HourSpend
		var text string
		if err := row.Scan(&h.Tenant, &h.Currency, &h.Hour, &text); err != nil {
			return err
		}
		pico, ok := new(big.Int).SetString(text, 10)
		if !ok {
			return fmt.Errorf("tenant %q: %q is not a number", h.Tenant, text)
		}
		h.Amount = money.New(pico, money.Scale)
		return visit(h)
	})
	if err != nil {
		return fmt.Errorf("sum spend by hour: %w", err)
	}
	return nil
}
