package clickhouse

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/billing/alert"
)

// cardSKU is the condition for SKUs that are cards, whose utilisation telemetry tells. Their memory
// may be sold by itself.
const cardSKU = `match(sku, '^[gn]pu\\.') AND NOT match(sku, '^[gn]pu\\.memory\\.')`

// cardQuery adds up windows by session first: of these there are few.
const cardQuery = `
SELECT card, node, argMax(sku, (newest, sku)), sum(covered),
    toInt64(round(sum(busy) / sum(covered)))
FROM
(
    SELECT f.node AS node, f.sku AS sku, w.covered AS covered, w.busy AS busy, w.newest AS newest,
        w.devices AS devices
    FROM
    (
        SELECT tenant, session, node, minIf(toString(sku), ` + cardSKU + `) AS sku
        FROM sessions FINAL GROUP BY tenant, session, node
    ) AS f
    INNER JOIN
    (
        SELECT tenant, node, session, devices, toInt64(sum(seconds)) AS covered,
            toInt64(sum(util * seconds)) AS busy, max(time) AS newest
        FROM {windows} WHERE seconds > 0
        GROUP BY tenant, node, session, devices
    ) AS w ON w.tenant = f.tenant AND w.session = f.session AND w.node = f.node
)
ARRAY JOIN arrayFilter(d -> d != '', arrayDistinct(devices)) AS card
GROUP BY card, node
ORDER BY node, card` + watchSettings

// Cards returns what cards did in windows that end after one instant, up to another, by node and
// card. The SKU is what the card was last held as, "" where the session had none of a card. A card
// of a session of several has their mean; one that sessions share has the seconds of each of them.
func (s *Store) Cards(ctx context.Context, from, until time.Time) ([]alert.CardLoad, error) {
	query := strings.ReplaceAll(cardQuery, "{windows}", windowsBetween(from, until))
	var cards []alert.CardLoad
	err := s.each(ctx, query, func(row scanner) error {
		var c alert.CardLoad
		err := row.Scan(&c.Card, &c.Node, &c.SKU, &c.Held, &c.Mean)
		cards = append(cards, c)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what cards did: %w", err)
	}
	return cards, nil
}

// busyQuery multiplies in 128 bits: seconds x millionths x the largest amount held fit.
const busyQuery = `
SELECT tenant, project, sku, toInt64(least(held, 9223372036854775807)),
    toInt64(least(intDiv(used, 1000000), 9223372036854775807))
FROM
(
    SELECT f.tenant AS tenant, f.project AS project, toString(f.sku) AS sku,
        sum(toInt128(w.covered) * f.held) AS held, sum(toInt128(w.busy) * f.held) AS used
    FROM
    (
        SELECT tenant, session, node, project, sku, held FROM sessions FINAL
        WHERE ` + cardSKU + `
    ) AS f
    INNER JOIN
    (
        SELECT tenant, node, session, toInt64(sum(seconds)) AS covered,
            toInt64(sum(util * seconds)) AS busy
        FROM {windows} WHERE seconds > 0
        GROUP BY tenant, node, session
    ) AS w ON w.tenant = f.tenant AND w.session = f.session AND w.node = f.node
    GROUP BY tenant, project, sku
)
ORDER BY tenant, project, sku` + watchSettings

// BusyBetween returns how busy cards were that were held in windows that end after one instant, up
// to another, by tenant, project and SKU. It counts what is told of, and SKUs of cards only.
func (s *Store) BusyBetween(ctx context.Context, from, until time.Time) ([]alert.Busy, error) {
	query := strings.ReplaceAll(busyQuery, "{windows}", windowsBetween(from, until))
	var all []alert.Busy
	err := s.each(ctx, query, func(row scanner) error {
		var b alert.Busy
		err := row.Scan(&b.Tenant, &b.Project, &b.SKU, &b.Held, &b.Used)
		all = append(all, b)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read how busy cards were: %w", err)
	}
	return all, nil
}
