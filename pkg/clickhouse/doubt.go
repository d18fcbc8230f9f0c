package clickhouse

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
)

// Doubts returns what speaks against issuing the documents of billing periods, whose first seconds
// and ends are given: dead letters with usage that were not sent again, and devices that two
// sessions of one lease held at once.
func (s *Store) Doubts(ctx context.Context, keys []pipeline.PeriodKey,
	bounds map[pipeline.PeriodKey][2]int64,
) (map[pipeline.PeriodKey]pipeline.Doubts, error) {
	doubts := make(map[pipeline.PeriodKey]pipeline.Doubts)
	together := make(map[[2]int64][]pipeline.PeriodKey)
	for _, k := range keys {
		together[bounds[k]] = append(together[bounds[k]], k)
	}
	for times, group := range together {
		if err := s.countLetters(ctx, group, times, doubts); err != nil {
			return nil, fmt.Errorf("count dead letters: %w", err)
		}
		if err := s.overlaps(ctx, group, times, doubts); err != nil {
			return nil, fmt.Errorf("look for overlaps: %w", err)
		}
	}
	return doubts, nil
}

func tenantsOf(keys []pipeline.PeriodKey) []string {
	names := make(map[string]bool)
	for _, k := range keys {
		names[quote(k.Tenant)] = true
	}
	return lists(slices.Sorted(maps.Keys(names)))
}

// countLetters counts those that the log received within the period or a day after it.
func (s *Store) countLetters(ctx context.Context, keys []pipeline.PeriodKey, times [2]int64,
	doubts map[pipeline.PeriodKey]pipeline.Doubts,
) error {
	counts := make(map[string]uint64)
	for _, list := range tenantsOf(keys) {
		query := fmt.Sprintf(`SELECT key, count() FROM dead_letters FINAL
			WHERE topic = %s AND key IN (%s) AND record_time >= %s AND record_time < %s
				AND position(value, 'suanpan.usage.') > 0
				AND (topic, partition, offset) NOT IN (
					SELECT topic, partition, offset FROM dead_letter_retries)
			GROUP BY key`, quote(schemas.TopicUsage), list, quoteTime(time.Unix(times[0], 0)),
			quoteTime(time.Unix(times[1], 0).AddDate(0, 0, 1)))
		err := s.each(ctx, query, func(row scanner) error {
			var tenant string
			var n uint64
			err := row.Scan(&tenant, &n)
			counts[tenant] = n
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, k := range keys {
		if n := counts[k.Tenant]; n > 0 {
			doubts[k] = pipeline.Doubts{DeadLetters: int64(n)}
		}
	}
	return nil
}

// place is where two sessions may have held the same device.
type place struct{ tenant, lease, node string }

// overlaps finds devices that two sessions of one lease held in the same second. Sessions that share
// an hour on a node are common, and seconds of it rare; only then the devices are looked up.
func (s *Store) overlaps(ctx context.Context, keys []pipeline.PeriodKey, times [2]int64,
	doubts map[pipeline.PeriodKey]pipeline.Doubts,
) error {
	sessions := make(map[place]map[string]bool)
	for _, list := range tenantsOf(keys) {
		if err := s.sharedSeconds(ctx, list, times, sessions); err != nil {
			return err
		}
	}
	found := make(map[string][]string) // leases, by tenant
	for at, names := range sessions {
		shared, err := s.shareDevice(ctx, at, names, times)
		if err != nil {
			return fmt.Errorf("look up the devices of lease %q of tenant %q: %w", at.lease, at.tenant, err)
		}
		if shared && !slices.Contains(found[at.tenant], at.lease) {
			found[at.tenant] = append(found[at.tenant], at.lease)
		}
	}
	for _, k := range keys {
		if leases := found[k.Tenant]; len(leases) > 0 {
			slices.Sort(leases)
			d := doubts[k]
			d.Overlaps = leases
			doubts[k] = d
		}
	}
	return nil
}

// sharedSeconds finds sessions of one lease, node and SKU that used the same second.
func (s *Store) sharedSeconds(ctx context.Context, tenants string, times [2]int64,
	found map[place]map[string]bool,
) error {
	query := fmt.Sprintf(`
		SELECT h.tenant AS tenant, s.lease AS lease, s.node AS node, h.sku AS sku, h.hour AS hour,
			groupArray(h.session) AS sessions, groupArray(h.used) AS used
		FROM (SELECT tenant, hour, session, sku, used FROM hours FINAL
			WHERE tenant IN (%[1]s) AND hour >= %[2]d AND hour < %[3]d) AS h
		INNER JOIN (SELECT tenant, session, sku, lease, node FROM sessions FINAL
			WHERE tenant IN (%[1]s) AND node != '' AND (tenant, lease, node) IN (
				SELECT tenant, lease, node FROM sessions WHERE tenant IN (%[1]s)
				GROUP BY tenant, lease, node HAVING uniqExact(session) > 1)) AS s
			ON h.tenant = s.tenant AND h.session = s.session AND h.sku = s.sku
		GROUP BY tenant, lease, node, sku, hour HAVING length(sessions) > 1`,
		tenants, times[0]-metering.Hour, times[1])
	return s.each(ctx, query, func(row scanner) error {
		var at place
		var sku string
		var hour time.Time
		var sessions []string
		var used [][]uint16
		if err := row.Scan(&at.tenant, &at.lease, &at.node, &sku, &hour, &sessions,
			&used); err != nil {
			return err
		}
		var all metering.Set
		var seconds int64
		for _, ends := range used {
			set, err := unflatten(ends)
			if err != nil {
				return err
			}
			seconds += set.Len()
			for _, span := range set {
				all.Add(span, nil)
			}
		}
		if all.Len() == seconds {
			return nil // one after the other
		}
		if found[at] == nil {
			found[at] = make(map[string]bool)
		}
		for _, name := range sessions {
			found[at][name] = true
		}
		return nil
	})
}

// shareDevice reports whether two of the sessions held one device in the same second, by their
// archived events.
func (s *Store) shareDevice(ctx context.Context, at place, sessions map[string]bool, times [2]int64,
) (bool, error) {
	query := fmt.Sprintf(`SELECT value FROM usage_events FINAL WHERE tenant = %s AND topic = %s
		AND record_time >= %s AND position(value, '"devices"') > 0
		AND JSONExtractString(value, 'data', 'lease') = %s`, quote(at.tenant),
		quote(schemas.TopicUsage), quoteTime(time.Unix(times[0], 0)), quote(at.lease))
	type hour struct {
		device string
		hour   int64
	}
	held := make(map[hour]map[string]*metering.Set) // by session
	parser := metering.NewParser()
	err := s.each(ctx, query, func(row scanner) error {
		var value string
		if err := row.Scan(&value); err != nil {
			return err
		}
		var e metering.Event
		if parser.Parse([]byte(value), &e) != nil || e.Kind != metering.Held || e.Node != at.node ||
			!sessions[e.Session] || e.Problem() != nil {
			return nil
		}
		var more struct {
			Data struct {
				Devices []string `json:"devices"`
			} `json:"data"`
		}
		if json.Unmarshal([]byte(value), &more) != nil {
			return nil
		}
		from, until := e.Window()
		for h := metering.HourOf(from); h < until; h += metering.Hour {
			for _, device := range more.Data.Devices {
				key := hour{device, h}
				if held[key] == nil {
					held[key] = make(map[string]*metering.Set)
				}
				name := strings.Clone(e.Session)
				if held[key][name] == nil {
					held[key][name] = new(metering.Set)
				}
				held[key][name].Add(metering.Span{
					From: uint16(max(from-h, 0)), To: uint16(min(until-h, metering.Hour)),
				}, nil)
			}
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	for _, bySession := range held {
		var all metering.Set
		var seconds int64
		for _, set := range bySession {
			seconds += set.Len()
			for _, span := range *set {
				all.Add(span, nil)
			}
		}
		if all.Len() < seconds {
			return true, nil
		}
	}
	return false, nil
}

// Archived visits the archived records of a tenant in one partition of the usage topic, in the order
// of their offsets, up to an offset. It fails where the archive of the partition has a gap before
// that offset.
func (s *Store) Archived(ctx context.Context, tenant string, partition int, until int64,
	visit func(pipeline.Record) error,
) error {
	where := fmt.Sprintf("topic = %s AND partition = %d AND offset < %d", quote(schemas.TopicUsage),
		partition, until)
	var n uint64
	err := s.conn.QueryRow(ctx, "SELECT uniqExact(offset) FROM usage_events WHERE "+where).Scan(&n)
	if err != nil {
		return fmt.Errorf("count archived records: %w", err)
	}
	if int64(n) != until {
		return fmt.Errorf("the archive of partition %d has %d of the %d records before the close", partition,
			n, until)
	}
	query := `SELECT offset, record_time, value, header_names, header_values FROM usage_events FINAL
		WHERE ` + where + " AND tenant = " + quote(tenant) + " ORDER BY offset"
	return s.each(ctx, query, func(row scanner) error {
		r := pipeline.Record{Topic: schemas.TopicUsage, Partition: partition, Key: []byte(tenant)}
		var value string
		var names, values []string
		if err := row.Scan(&r.Offset, &r.Time, &value, &names, &values); err != nil {
			return err
		}
		r.Value, r.Time = []byte(value), r.Time.UTC()
		for i := range names {
			r.Headers = append(r.Headers, pipeline.Header{Key: names[i], Value: []byte(values[i])})
		}
		return visit(r)
	})
}

// Refused returns the offsets of a usage partition below one that are dead letters.
func (s *Store) Refused(ctx context.Context, partition int, until int64) (map[int64]bool, error) {
	query := fmt.Sprintf(`SELECT DISTINCT offset FROM dead_letters
		WHERE topic = %s AND partition = %d AND offset < %d`, quote(schemas.TopicUsage), partition,
		until)
	refused := make(map[int64]bool)
	err := s.each(ctx, query, func(row scanner) error {
		var offset int64
		err := row.Scan(&offset)
		refused[offset] = true
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read dead letters: %w", err)
	}
	return refused, nil
}

// WriteRetries notes that dead letters were sent again.
func (s *Store) WriteRetries(ctx context.Context, letters []pipeline.DeadLetter, at time.Time) error {
	type letter = pipeline.DeadLetter
	return s.insert(ctx, "dead_letter_retries", len(letters),
		field{"topic", "String", columnOf(letters, func(l *letter) string { return l.Topic })},
		field{
			"partition", "Int32",
			columnOf(letters, func(l *letter) int32 { return int32(l.Partition) }),
		},
		field{"offset", "Int64", columnOf(letters, func(l *letter) int64 { return l.Offset })},
		field{
			"retried_at", "DateTime64(3, 'UTC')",
			columnOf(letters, func(*letter) time.Time { return at.UTC() }),
		})
}
