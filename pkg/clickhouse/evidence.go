package clickhouse

import (
	"context"
	"fmt"
	"time"

	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
)

// Archived visits the archived records of a tenant in one partition of the usage topic, up to an
// offset and in the order of their offsets. It fails where the archive of the partition has a gap
// before that offset.
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
		return fmt.Errorf("the archive of partition %d has %d of the %d records before the close",
			partition, n, until)
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
func (s *Store) WriteRetries(ctx context.Context, letters []pipeline.DeadLetter, at time.Time,
) error {
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
