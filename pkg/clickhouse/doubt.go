package clickhouse

import (
	"context"
	"fmt"
	"time"

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

func tenantsOf(keys []pipeline.PeriodKey) []tenantList {
	names := make(map[string]bool)
	for _, k := range keys {
		names[k.Tenant] = true
	}
	return tenantLists(names)
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
			GROUP BY key`, quote(schemas.TopicUsage), list.quoted, quoteTime(time.Unix(times[0], 0)),
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
