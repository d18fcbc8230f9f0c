package clickhouse

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/billing/alert"
)

// Windows are looked at up to so much after now, as events may be ahead of the clock, and sessions
// of which something was heard so recently do something now.
const (
	watchAhead  = time.Minute
	watchRecent = 5 * time.Minute
)

// watchSettings let large sorts and groups go to disk.
const watchSettings = `
SETTINGS max_bytes_before_external_sort = 1000000000,
    max_bytes_before_external_group_by = 1000000000`

// windowsBetween is the view of windows that end after one instant, up to another.
func windowsBetween(from, until time.Time) string {
	const layout = "2006-01-02 15:04:05.000"
	return fmt.Sprintf("telemetry_windows(from = '%s', until = '%s')",
		from.UTC().Format(layout), until.UTC().Format(layout))
}

// loadQuery tells what sessions did. A session is looked at where it is: what was refused because
// it names another node is not.
const loadQuery = `
SELECT w.tenant, f.project, f.lease, w.session, w.node, f.region, f.skus, f.amounts,
    w.since, w.until, w.covered, w.mean, w.peak, w.used, w.total, w.ended
FROM
(
    SELECT tenant, node, session,
        toInt64(toUnixTimestamp(min(start))) AS since,
        toInt64(toUnixTimestamp(max(time))) AS until,
        toInt64(sum(seconds)) AS covered,
        toInt64(ifNull(round(sum(util * seconds) / nullIf(covered, 0)), 0)) AS mean,
        ifNull(maxIf(util, seconds > 0), 0) AS peak,
        ifNull(max(mem_used), 0) AS used,
        ifNull(max(mem_total), 0) AS total,
        max(time = newest AND ifNull(final, false)) AS ended
    FROM
    (
        SELECT tenant, node, session, start, time, util, seconds, mem_used, mem_total, final,
            max(time) OVER (PARTITION BY tenant, node, session) AS newest
        FROM {windows}
    )
    WHERE newest > {recent} AND time > newest - toIntervalMillisecond({span})
    GROUP BY tenant, node, session
) AS w
INNER JOIN
(
    SELECT tenant, session, node, any(project) AS project, any(lease) AS lease,
        any(region) AS region, groupArray(toString(sku)) AS skus, groupArray(held) AS amounts
    FROM sessions FINAL
    WHERE (tenant, session) IN (
        SELECT tenant, session FROM telemetry WHERE time > {recent} AND time <= {latest})
    GROUP BY tenant, session, node
) AS f ON w.tenant = f.tenant AND w.session = f.session AND w.node = f.node
ORDER BY w.tenant, w.session` + watchSettings

// Loads returns what sessions did that were heard of within 5 minutes before now: over their
// windows that end in (newest - span, newest], where newest is the end of their newest one. Windows
// that end more than a minute after now do not count.
func (s *Store) Loads(ctx context.Context, now time.Time, span time.Duration) (
	[]alert.Load, error,
) {
	recent, latest := now.Add(-watchRecent), now.Add(watchAhead)
	query := strings.NewReplacer("{windows}", windowsBetween(recent.Add(-span), latest),
		"{recent}", quoteTime(recent), "{latest}", quoteTime(latest),
		"{span}", fmt.Sprint(span.Milliseconds())).Replace(loadQuery)
	var loads []alert.Load
	err := s.each(ctx, query, func(row scanner) error {
		var l alert.Load
		var skus []string
		var amounts []int64
		err := row.Scan(&l.Tenant, &l.Project, &l.Lease, &l.Session, &l.Node, &l.Region, &skus,
			&amounts, &l.From, &l.Until, &l.Covered, &l.Mean, &l.Peak, &l.MemoryUsed, &l.MemoryTotal,
			&l.Final)
		l.Held = make(map[string]int64, len(skus))
		for i, sku := range skus {
			l.Held[sku] = amounts[i]
		}
		loads = append(loads, l)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what sessions did: %w", err)
	}
	return loads, nil
}

// silentQuery finds sessions whose newest window says that they go on; another event of that very
// window may say that they ended.
const silentQuery = `
SELECT w.tenant, f.project, f.lease, w.session, w.node, toInt64(toUnixTimestamp(w.newest.1))
FROM
(
    SELECT tenant, node, session,
        max((time, multiIf(isNull(final), 0, final, 2, 1))) AS newest
    FROM telemetry
    WHERE time > {within} AND time <= {latest} AND start < time
        AND start >= time - toIntervalDay(1)
    GROUP BY tenant, node, session
    HAVING newest.1 <= {after} AND newest.2 = 1
) AS w
INNER JOIN
(
    SELECT DISTINCT tenant, session, node, project, lease FROM sessions FINAL
    WHERE (tenant, session) IN (
        SELECT tenant, session FROM telemetry WHERE time > {within} AND time <= {latest})
) AS f ON w.tenant = f.tenant AND w.session = f.session AND w.node = f.node
ORDER BY w.tenant, w.session` + watchSettings

// Silent returns the running sessions of which nothing was heard for after, but something within:
// those whose newest window said that it is not the last one. newest is the record time of the
// newest usage event of all, zero where there is none: where it is as long ago, it is the archive
// that fell silent.
func (s *Store) Silent(ctx context.Context, now time.Time, after, within time.Duration) (
	all []alert.LastSeen, newest time.Time, err error,
) {
	query := strings.NewReplacer("{within}", quoteTime(now.Add(-within)),
		"{after}", quoteTime(now.Add(-after)), "{latest}", quoteTime(now.Add(watchAhead)),
	).Replace(silentQuery)
	err = s.each(ctx, query, func(row scanner) error {
		var l alert.LastSeen
		err := row.Scan(&l.Tenant, &l.Project, &l.Lease, &l.Session, &l.Node, &l.Until)
		all = append(all, l)
		return err
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("find silent sessions: %w", err)
	}
	var records uint64
	// Parts know their first and last times, so that no row is read.
	err = s.conn.QueryRow(ctx, "SELECT count(), max(record_time) FROM usage_events").Scan(&records,
		&newest)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("find the newest usage event: %w", err)
	}
	if records == 0 {
		return all, time.Time{}, nil
	}
	return all, newest.UTC(), nil
}
