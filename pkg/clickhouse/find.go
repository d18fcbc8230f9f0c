package clickhouse

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/rating"
)

// Stored says what there is of each tenant.
func (s *Store) Stored(ctx context.Context) (map[string]rating.Stored, error) {
	// States that are to be dropped have the same keys as those that stay, so FINAL is not needed.
	const query = `SELECT tenant, max(last) FROM (
		SELECT tenant, toInt64(max(hour)) AS last FROM hours GROUP BY tenant
		UNION ALL SELECT tenant, toInt64(max(hour)) FROM voids GROUP BY tenant
		UNION ALL SELECT DISTINCT tenant, toInt64(-1) FROM sessions) GROUP BY tenant`
	stored := make(map[string]rating.Stored)
	err := s.each(ctx, query, func(row scanner) error {
		var tenant string
		var hour int64
		err := row.Scan(&tenant, &hour)
		stored[tenant] = rating.Stored{Sessions: true, Hour: hour}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what is stored: %w", err)
	}
	return stored, nil
}

// Find returns all that there is of a need.
func (s *Store) Find(ctx context.Context, need *rating.Need) (*rating.Known, error) {
	known := new(rating.Known)
	for _, keys := range lists(sessionTuples(need.Sessions)) {
		if err := s.findSessions(ctx, keys, known); err != nil {
			return nil, fmt.Errorf("find sessions: %w", err)
		}
	}
	charges := make(map[rating.Charge]*rating.Charge)
	for _, keys := range lists(hourTuples(need.Hours)) {
		if err := s.findOf(ctx, "(tenant, hour, session) IN ("+keys+")", known, charges); err != nil {
			return nil, err
		}
	}
	for _, span := range need.Spans {
		if err := s.findSpan(ctx, span, known, charges); err != nil {
			return nil, err
		}
	}
	return known, nil
}

// findOf finds voids and hours for which a condition holds.
func (s *Store) findOf(ctx context.Context, where string, known *rating.Known,
	charges map[rating.Charge]*rating.Charge,
) error {
	if err := s.findVoids(ctx, where, known); err != nil {
		return fmt.Errorf("find voids: %w", err)
	}
	if err := s.findHours(ctx, where, known, charges); err != nil {
		return fmt.Errorf("find hours: %w", err)
	}
	return nil
}

// findSpan finds all that a tenant has in some hours: rows, their sessions, and what was consumed.
func (s *Store) findSpan(ctx context.Context, span rating.HourSpan, known *rating.Known,
	charges map[rating.Charge]*rating.Charge,
) error {
	hours := fmt.Sprintf("tenant = %s AND hour >= %d AND hour < %d", quote(span.Tenant), span.From,
		span.Until)
	if err := s.findOf(ctx, hours, known, charges); err != nil {
		return err
	}
	sessions := make(map[rating.SessionKey]bool)
	for i := range known.Hours {
		sessions[known.Hours[i].SessionKey] = true
	}
	for i := range known.Voids {
		sessions[known.Voids[i].SessionKey] = true
	}
	for i := range known.Sessions {
		delete(sessions, known.Sessions[i].SessionKey) // found already
	}
	for _, keys := range lists(sessionTuples(sessions)) {
		if err := s.findSessions(ctx, keys, known); err != nil {
			return fmt.Errorf("find sessions: %w", err)
		}
	}
	if err := s.findConsumed(ctx, span, known, charges); err != nil {
		return fmt.Errorf("find consumed: %w", err)
	}
	return nil
}

func (s *Store) findConsumed(ctx context.Context, span rating.HourSpan, known *rating.Known,
	charges map[rating.Charge]*rating.Charge,
) error {
	query := fmt.Sprintf(`SELECT source, id, sku, toString(reinterpret(quantity, 'Int128')), charge,
		billing_period, day, time, project, purchase, region, mapKeys(labels), mapValues(labels),
		partition, offset FROM consumed FINAL
		WHERE tenant = %s AND time >= %d AND time < %d`, quote(span.Tenant), span.From, span.Until)
	return s.each(ctx, query, func(row scanner) error {
		r := rating.ConsumedRow{Tenant: span.Tenant}
		var nano, key string
		var at time.Time
		var day uint16
		var partition int32
		var names, values []string
		if err := row.Scan(&r.Source, &r.ID, &r.SKU, &nano, &key, &r.Billing, &day, &at, &r.Project,
			&r.Purchase, &r.Region, &names, &values, &partition, &r.Offset); err != nil {
			return err
		}
		charge, err := rating.ParseCharge(span.Tenant, key)
		if err == nil {
			r.Nano, err = nanoOf(nano)
		}
		if err != nil {
			return fmt.Errorf("event %q: %w", r.ID, err)
		}
		if charges[charge] == nil {
			charges[charge] = &charge
		}
		r.Charge, r.Day, r.At, r.Partition = charges[charge], int64(day), at.Unix(), int(partition)
		for i := range names {
			r.Labels = append(r.Labels, metering.Label{Key: names[i], Value: values[i]})
		}
		known.Consumed = append(known.Consumed, r)
		return nil
	})
}

// sessionTuples prints keys in the order of the tables.
func sessionTuples(keys map[rating.SessionKey]bool) []string {
	sorted := make([]rating.SessionKey, 0, len(keys))
	for key := range keys {
		sorted = append(sorted, key)
	}
	slices.SortFunc(sorted, func(a, b rating.SessionKey) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Session, b.Session))
	})
	tuples := make([]string, len(sorted))
	for i, key := range sorted {
		tuples[i] = "(" + quote(key.Tenant) + "," + quote(key.Session) + ")"
	}
	return tuples
}

func hourTuples(keys map[rating.HourKey]bool) []string {
	sorted := make([]rating.HourKey, 0, len(keys))
	for key := range keys {
		sorted = append(sorted, key)
	}
	slices.SortFunc(sorted, func(a, b rating.HourKey) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Hour, b.Hour),
			cmp.Compare(a.Session, b.Session))
	})
	tuples := make([]string, len(sorted))
	for i, key := range sorted {
		tuples[i] = "(" + quote(key.Tenant) + "," + strconv.FormatInt(key.Hour, 10) + "," +
			quote(key.Session) + ")"
	}
	return tuples
}

func (s *Store) findSessions(ctx context.Context, keys string, known *rating.Known) error {
	query := `SELECT tenant, session, sku, held, project, lease, purchase, region, node,
		session_start, resumed, mapKeys(labels), mapValues(labels), partition, offset
		FROM sessions FINAL WHERE (tenant, session) IN (` + keys + `)`
	return s.each(ctx, query, func(row scanner) error {
		var r rating.SessionRow
		var purchase string
		var start int64
		var partition int32
		var names, values []string
		if err := row.Scan(&r.Tenant, &r.Session, &r.SKU, &r.Milli, &r.Project, &r.Lease, &purchase,
			&r.Region, &r.Node, &start, &r.Resumed, &names, &values, &partition,
			&r.Offset); err != nil {
			return err
		}
		r.Purchase, r.SessionStart = metering.Purchase(purchase), metering.Instant(start)
		r.Partition = int(partition)
		for i := range names {
			r.Labels = append(r.Labels, metering.Label{Key: names[i], Value: values[i]})
		}
		known.Sessions = append(known.Sessions, r)
		return nil
	})
}

func (s *Store) findVoids(ctx context.Context, where string, known *rating.Known) error {
	query := `SELECT tenant, hour, session, seconds FROM voids FINAL WHERE ` + where
	return s.each(ctx, query, func(row scanner) error {
		var r rating.VoidRow
		var hour time.Time
		var seconds []uint16
		if err := row.Scan(&r.Tenant, &hour, &r.Session, &seconds); err != nil {
			return err
		}
		r.Hour = hour.Unix()
		set, err := unflatten(seconds)
		if err != nil {
			return fmt.Errorf("void of session %q of tenant %q at %s: %w", r.Session, r.Tenant,
				hour.UTC().Format(time.RFC3339), err)
		}
		r.Seconds = set
		known.Voids = append(known.Voids, r)
		return nil
	})
}

func (s *Store) findHours(ctx context.Context, where string, known *rating.Known,
	charges map[rating.Charge]*rating.Charge,
) error {
	query := `SELECT tenant, hour, session, sku, held, used, voided, seg_kind, seg_charge,
		seg_billing_period, seg_day, seg_from, seg_to, seg_seconds, version
		FROM hours FINAL WHERE ` + where
	return s.each(ctx, query, func(row scanner) error {
		var r rating.Row
		var c storedSegments
		var hour time.Time
		var version uint64
		if err := row.Scan(&r.Tenant, &hour, &r.Session, &r.SKU, &r.Milli, &c.used, &c.voided,
			&c.kinds, &c.charges, &c.billing, &c.days, &c.from, &c.to, &c.seconds,
			&version); err != nil {
			return err
		}
		r.Hour, r.Rerated = hour.Unix(), rating.ReratedOf(version)
		if err := c.into(&r, charges); err != nil {
			return fmt.Errorf("hour %s of session %q, SKU %q of tenant %q: %w",
				hour.UTC().Format(time.RFC3339), r.Session, r.SKU, r.Tenant, err)
		}
		known.Hours = append(known.Hours, r)
		return nil
	})
}

// storedSegments are the arrays of a stored hour.
type storedSegments struct {
	used, voided            []uint16
	kinds                   []uint8
	charges, billing        []string
	days, from, to, seconds []uint16
}

// into checks the arrays and sets the row's sets and segments from them.
func (c *storedSegments) into(r *rating.Row, charges map[rating.Charge]*rating.Charge) error {
	var err error
	if r.Used, err = unflatten(c.used); err != nil {
		return fmt.Errorf("used seconds: %w", err)
	}
	if r.Voided, err = unflatten(c.voided); err != nil {
		return fmt.Errorf("voided seconds: %w", err)
	}
	n := len(c.kinds)
	for _, other := range []int{
		len(c.charges), len(c.billing), len(c.days), len(c.from), len(c.to), len(c.seconds),
	} {
		if other != n {
			return fmt.Errorf("segments: arrays of %d and %d values", n, other)
		}
	}
	r.Segments = make([]rating.Segment, n)
	for i := range n {
		charge, err := rating.ParseCharge(r.Tenant, c.charges[i])
		if err != nil {
			return fmt.Errorf("segment %d: %w", i, err)
		}
		shared, ok := charges[charge]
		if !ok {
			shared = &charge
			charges[charge] = shared
		}
		g := rating.Segment{
			Kind: rating.SegmentKind(c.kinds[i]), Charge: shared, Billing: c.billing[i],
			Day: int64(c.days[i]), From: c.from[i], To: c.to[i], Seconds: c.seconds[i],
		}
		if g.Kind > rating.VoidReversed || g.From >= g.To || int64(g.To) > metering.Hour ||
			g.Seconds == 0 || g.Seconds > g.To-g.From {
			return fmt.Errorf("segment %d is not one: kind %d, [%d, %d) with %d seconds", i, g.Kind,
				g.From, g.To, g.Seconds)
		}
		r.Segments[i] = g
	}
	return nil
}

// unflatten reads what flatten made.
func unflatten(ends []uint16) (metering.Set, error) {
	if len(ends)%2 != 0 {
		return nil, fmt.Errorf("set has an odd number of ends: %v", ends)
	}
	if len(ends) == 0 {
		return nil, nil
	}
	set := make(metering.Set, 0, len(ends)/2)
	for i := 0; i < len(ends); i += 2 {
		set = append(set, metering.Span{From: ends[i], To: ends[i+1]})
	}
	if !set.Valid() {
		return nil, fmt.Errorf("set is not in order within the hour: %v", ends)
	}
	return set, nil
}
