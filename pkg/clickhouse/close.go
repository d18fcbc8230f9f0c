package clickhouse

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
)

func (s *Store) writeCloses(ctx context.Context, rows []rating.Close) error {
	return s.insert(ctx, "period_closes", len(rows),
		field{"tenant", "String", columnOf(rows, func(r *rating.Close) string { return r.Tenant })},
		field{"contract", "String", columnOf(rows, func(r *rating.Close) string { return r.Contract })},
		field{"period", "String", columnOf(rows, func(r *rating.Close) string { return r.Period })},
		field{"from", "DateTime('UTC')", columnOf(rows, func(r *rating.Close) int64 { return r.From })},
		field{
			"until", "DateTime('UTC')",
			columnOf(rows, func(r *rating.Close) int64 { return r.Until }),
		},
		field{
			"catalog_offset", "Int64",
			columnOf(rows, func(r *rating.Close) int64 { return r.CatalogOffset }),
		},
		field{
			"market_offset", "Int64",
			columnOf(rows, func(r *rating.Close) int64 { return r.MarketOffset }),
		},
		field{
			"closed_at", "DateTime('UTC')",
			columnOf(rows, func(r *rating.Close) int64 { return r.At }),
		},
		field{
			"partition", "Int32",
			columnOf(rows, func(r *rating.Close) int32 { return int32(r.Partition) }),
		},
		field{"offset", "Int64", columnOf(rows, func(r *rating.Close) int64 { return r.Offset })},
		field{"version", "UInt64", columnOf(rows, func(r *rating.Close) uint64 { return r.FirstWins() })})
}

func (s *Store) writeRerates(ctx context.Context, rows []rating.Rerate) error {
	return s.insert(ctx, "rerates", len(rows),
		field{"tenant", "String", columnOf(rows, func(r *rating.Rerate) string { return r.Tenant })},
		field{
			"from", "DateTime('UTC')", columnOf(rows, func(r *rating.Rerate) int64 { return r.From }),
		},
		field{
			"until", "DateTime('UTC')",
			columnOf(rows, func(r *rating.Rerate) int64 { return r.Until }),
		},
		field{
			"catalog_offset", "Int64",
			columnOf(rows, func(r *rating.Rerate) int64 { return r.CatalogOffset }),
		},
		field{
			"partition", "Int32",
			columnOf(rows, func(r *rating.Rerate) int32 { return int32(r.Partition) }),
		},
		field{"offset", "Int64", columnOf(rows, func(r *rating.Rerate) int64 { return r.Offset })})
}

// inPartitions is a condition on the column partition; nil partitions are all.
func inPartitions(partitions []int) string {
	if partitions == nil {
		return "1"
	}
	if len(partitions) == 0 {
		return "0"
	}
	numbers := make([]string, len(partitions))
	for i, p := range partitions {
		numbers[i] = strconv.Itoa(p)
	}
	return "partition IN (" + strings.Join(numbers, ",") + ")"
}

// Closes returns the closes that were recorded of the tenants of some partitions; nil partitions
// are all.
func (s *Store) Closes(ctx context.Context, partitions []int) ([]rating.Close, error) {
	query := `SELECT tenant, contract, period, from, until, catalog_offset, market_offset, closed_at,
		partition, offset FROM period_closes FINAL WHERE ` + inPartitions(partitions) + `
		ORDER BY tenant, contract, period`
	var closes []rating.Close
	err := s.each(ctx, query, func(row scanner) error {
		var c rating.Close
		var from, until, at time.Time
		var partition int32
		err := row.Scan(&c.Tenant, &c.Contract, &c.Period, &from, &until, &c.CatalogOffset,
			&c.MarketOffset, &at, &partition, &c.Offset)
		c.From, c.Until, c.At, c.Partition = from.Unix(), until.Unix(), at.Unix(), int(partition)
		closes = append(closes, c)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read closes: %w", err)
	}
	return closes, nil
}

// Rerates returns the re-ratings that were recorded of the tenants of some partitions; nil
// partitions are all. They come in the order of their offsets.
func (s *Store) Rerates(ctx context.Context, partitions []int) ([]rating.Rerate, error) {
	query := `SELECT tenant, from, until, catalog_offset, partition, offset FROM rerates FINAL
		WHERE ` + inPartitions(partitions) + ` ORDER BY partition, offset`
	var rerates []rating.Rerate
	err := s.each(ctx, query, func(row scanner) error {
		var r rating.Rerate
		var from, until time.Time
		var partition int32
		err := row.Scan(&r.Tenant, &from, &until, &r.CatalogOffset, &partition, &r.Offset)
		r.From, r.Until, r.Partition = from.Unix(), until.Unix(), int(partition)
		rerates = append(rerates, r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read re-ratings: %w", err)
	}
	return rerates, nil
}

// FirstPeriods returns the first usage period of every contract that has rows, and of every tenant
// that has rows without a contract.
func (s *Store) FirstPeriods(ctx context.Context) ([]pipeline.PeriodKey, error) {
	const query = `SELECT tenant, parts[3] AS contract, min(parts[10]) AS period FROM (
			SELECT tenant, splitByChar('|', toString(charge)) AS parts FROM (
				SELECT DISTINCT tenant, arrayJoin(seg_charge) AS charge FROM hours
				UNION DISTINCT SELECT DISTINCT tenant, charge FROM consumed))
		GROUP BY tenant, contract ORDER BY tenant, contract`
	var periods []pipeline.PeriodKey
	err := s.each(ctx, query, func(row scanner) error {
		var p pipeline.PeriodKey
		err := row.Scan(&p.Tenant, &p.Contract, &p.Period)
		periods = append(periods, p)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find first periods: %w", err)
	}
	return periods, nil
}

// FirstRecords returns when the log had the first record of every tenant.
func (s *Store) FirstRecords(ctx context.Context) (map[string]time.Time, error) {
	const query = "SELECT tenant, min(record_time) FROM usage_events GROUP BY tenant"
	first := make(map[string]time.Time)
	err := s.each(ctx, query, func(row scanner) error {
		var tenant string
		var at time.Time
		err := row.Scan(&tenant, &at)
		first[tenant] = at.UTC()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find first records: %w", err)
	}
	return first, nil
}
