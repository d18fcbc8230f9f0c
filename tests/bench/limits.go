package main

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/suanpan/suanpan/pkg/clickhouse"
	"github.com/suanpan/suanpan/pkg/kafka"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
	"github.com/suanpan/suanpan/schemas"
)

// archiveBytes is how much the archiver writes at a time.
const archiveBytes = 64 << 20

// limits measures how fast ClickHouse takes the rows and the records that the path writes, at the
// same time, as the path does, but each row once.
func (b *bench) limits(ctx context.Context, rated *offline) error {
	b.say("writing the rows, rating nothing")
	engine, addr, err := b.engine(ctx, "limits")
	if err != nil {
		return err
	}
	defer engine.stop()
	store, err := clickhouse.Open(ctx, clickhouse.Config{URL: "http://" + addr + "/suanpan"})
	if err != nil {
		return err
	}
	defer store.Close()
	if err := store.Migrate(ctx); err != nil {
		return err
	}
	began, spent, own := time.Now(), engine.cpu(), ownCPU()
	group, within := errgroup.WithContext(ctx)
	group.Go(func() error { return writeRows(within, store, rated) })
	group.Go(func() error { return b.archive(within, store) })
	if err := group.Wait(); err != nil {
		return err
	}
	b.report.add(measure{
		Name: nameWrite, Events: rated.windows, Seconds: time.Since(began).Seconds(),
		CPU: []cpu{{"writer", ownCPU() - own}, {"clickhouse", engine.cpu() - spent}},
	})
	return nil
}

// writeRows writes rows as the rater does.
func writeRows(ctx context.Context, store *clickhouse.Store, rated *offline) error {
	changes := rating.Changes{Sessions: rated.sessions}
	for rows := rated.hours; len(rows) > 0; {
		n := min(len(rows), flushRows)
		changes.Hours, rows = rows[:n], rows[n:]
		if err := store.Write(ctx, &changes); err != nil {
			return err
		}
		changes.Sessions = nil
	}
	return nil
}

// archive writes records as the archiver does.
func (b *bench) archive(ctx context.Context, store *clickhouse.Store) error {
	partition := kafka.Partitioner(schemas.UsagePartitions)
	offsets := make([]int64, schemas.UsagePartitions)
	now := time.Now()
	tenants := tenantsOf{}
	var records []pipeline.Record
	var size int
	write := func() error {
		err := store.Archive(ctx, records)
		records, size = records[:0], 0
		return err
	}
	err := eachBatch(ctx, b.events, chunkEvents, func(lines [][]byte) error {
		for _, line := range lines {
			tenant := tenants.of(line)
			if tenant == "" {
				continue // a market price
			}
			p := partition(tenant)
			records = append(records, pipeline.Record{
				Topic: schemas.TopicUsage, Partition: p, Offset: offsets[p], Time: now,
				Key: []byte(tenant), Value: line,
			})
			offsets[p]++
			size += len(line)
		}
		if size < archiveBytes {
			return nil
		}
		return write()
	})
	if err == nil && len(records) > 0 {
		err = write()
	}
	return err
}

// alone measures what ClickHouse needs by itself for the same events as a file: to load them, kept
// as they are beside the fields that matter, and to group them by hour. It drops no repeats, knows
// no prices, and would bill a second twice that two events report.
func (b *bench) alone(ctx context.Context, rated *offline) error {
	b.say("ClickHouse alone")
	engine, addr, err := b.engine(ctx, "alone")
	if err != nil {
		return err
	}
	defer engine.stop()
	for _, sql := range []string{
		`CREATE DATABASE alone`,
		`CREATE TABLE alone.events (value String CODEC(ZSTD(1)), tenant LowCardinality(String),
			session String, start DateTime('UTC'), end DateTime('UTC'),
			held Map(LowCardinality(String), Decimal(18, 3)))
			ENGINE = MergeTree ORDER BY (tenant, session, start)`,
		`CREATE TABLE alone.hours (tenant LowCardinality(String), hour DateTime('UTC'),
			session String, sku LowCardinality(String), quantity Decimal(38, 3))
			ENGINE = MergeTree ORDER BY (tenant, hour, session, sku)`,
	} {
		if _, err := query(ctx, addr, sql); err != nil {
			return err
		}
	}
	began, spent := time.Now(), engine.cpu()
	if _, err := query(ctx, addr, `INSERT INTO alone.events
		SELECT json, data.tenant, data.session, parseDateTimeBestEffort(data.start, 'UTC'),
			parseDateTimeBestEffort(data.end, 'UTC'), data.held
		FROM (SELECT json, JSONExtract(json, 'data', 'Tuple(tenant String, session String, '
				|| 'start String, end String, held Map(String, Decimal(18, 3)))') AS data
			FROM file('`+b.events+`', 'JSONAsString', 'json String'))
		WHERE data.session != ''`); err != nil {
		return err
	}
	loaded := time.Now()
	if _, err := query(ctx, addr, `INSERT INTO alone.hours
		SELECT tenant, toStartOfHour(start), session, sku,
			sum(amount * toInt64(dateDiff('second', start, end)))
		FROM alone.events ARRAY JOIN mapKeys(held) AS sku, mapValues(held) AS amount
		GROUP BY ALL`); err != nil {
		return err
	}
	grouped := time.Now()
	b.report.add(measure{
		Name: nameAlone, Events: rated.windows, Seconds: grouped.Sub(began).Seconds(),
		CPU: []cpu{{"clickhouse", engine.cpu() - spent}},
	})
	b.report.AloneLoadSeconds = loaded.Sub(began).Seconds()
	b.report.AloneGroupSeconds = grouped.Sub(loaded).Seconds()
	b.report.EngineVersion, err = query(ctx, addr, "SELECT version()")
	return err
}
