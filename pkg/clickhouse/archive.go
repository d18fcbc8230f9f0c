package clickhouse

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"github.com/suanpan/suanpan/pkg/pipeline"
)

// places are where records are in the log, column by column.
type places struct {
	topics     []string
	partitions []int32
	offsets    []int64
	times      []int64 // milliseconds
	keys       []string
	values     []string
	names      [][]string
	contents   [][]string
	headers    bool // whether any record has some
}

func placesOf(n int, record func(i int) *pipeline.Record) *places {
	p := &places{
		topics: make([]string, n), partitions: make([]int32, n), offsets: make([]int64, n),
		times: make([]int64, n), keys: make([]string, n), values: make([]string, n),
	}
	for i := range n {
		r := record(i)
		p.topics[i], p.partitions[i], p.offsets[i] = r.Topic, int32(r.Partition), r.Offset
		p.times[i] = r.Time.UnixMilli()
		p.keys[i], p.values[i] = text(r.Key), text(r.Value)
		p.headers = p.headers || len(r.Headers) > 0
	}
	if !p.headers {
		return p
	}
	p.names, p.contents = make([][]string, n), make([][]string, n)
	for i := range n {
		for _, h := range record(i).Headers {
			p.names[i] = append(p.names[i], h.Key)
			p.contents[i] = append(p.contents[i], text(h.Value))
		}
	}
	return p
}

// text is b as a string, without a copy. It is right only as long as b does not change; no insert
// keeps it after it returns.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func (p *places) fields(key string) []field {
	fields := []field{
		{"topic", "String", p.topics},
		{"partition", "Int32", p.partitions},
		{"offset", "Int64", p.offsets},
		{"record_time", "DateTime64(3, 'UTC')", p.times},
		{key, "String", p.keys},
		{"value", "String", p.values},
	}
	if p.headers {
		fields = append(fields,
			field{"header_names", "Array(String)", p.names},
			field{"header_values", "Array(String)", p.contents})
	}
	return fields
}

// Archive writes records durably. Writing a record again changes nothing.
func (s *Store) Archive(ctx context.Context, records []pipeline.Record) error {
	order := inLogOrder(records)
	p := placesOf(len(records), func(i int) *pipeline.Record { return order[i] })
	return s.insertBulk(ctx, "usage_events", len(records), p.fields("tenant")...)
}

// maxSorted bounds the partitions by which records are put into order.
const maxSorted = 1 << 12

// inLogOrder puts records of the same partition together. Those of a partition come in order, so
// that is the order of the table: here it moves pointers, in ClickHouse it would move the records.
func inLogOrder(records []pipeline.Record) []*pipeline.Record {
	var starts [maxSorted + 1]int
	sortable := true
	for i := range records {
		if p := records[i].Partition; p >= 0 && p < maxSorted {
			starts[p+1]++
		} else {
			sortable = false
		}
	}
	for p := range maxSorted {
		starts[p+1] += starts[p]
	}
	order := make([]*pipeline.Record, len(records))
	for i := range records {
		at := i
		if sortable {
			p := records[i].Partition
			at = starts[p]
			starts[p]++
		}
		order[at] = &records[i]
	}
	return order
}

// WriteDeadLetters writes dead letters durably; writing one again changes nothing.
func (s *Store) WriteDeadLetters(ctx context.Context, letters []pipeline.DeadLetter) error {
	n := len(letters)
	p := placesOf(n, func(i int) *pipeline.Record { return &letters[i].Record })
	reasons, details := make([]string, n), make([]string, n)
	sources, ids, seen := make([]string, n), make([]string, n), make([]int64, n)
	for i := range letters {
		l := &letters[i]
		reasons[i], details[i], sources[i], ids[i] = l.Reason, l.Detail, l.Source, l.ID
		seen[i] = l.SeenAt.UnixMilli()
	}
	return s.insert(ctx, "dead_letters", n, append(p.fields("key"),
		field{"reason", "String", reasons},
		field{"detail", "String", details},
		field{"source", "String", sources},
		field{"id", "String", ids},
		field{"seen_at", "DateTime64(3, 'UTC')", seen})...)
}

// DeadLetterFilter chooses dead letters; what is empty chooses all.
type DeadLetterFilter struct {
	Tenant string    // the key of the record
	Reason string    // see metering.Reason
	Since  time.Time // of the record
	Limit  int       // how many at most; 0 is all
}

// DeadLetters returns dead letters in the order of topic, partition and offset.
func (s *Store) DeadLetters(ctx context.Context, filter DeadLetterFilter) (
	[]pipeline.DeadLetter, error,
) {
	where := "1"
	if filter.Tenant != "" {
		where += " AND key = " + quote(filter.Tenant)
	}
	if filter.Reason != "" {
		where += " AND reason = " + quote(filter.Reason)
	}
	if !filter.Since.IsZero() {
		where += " AND record_time >= " + quoteTime(filter.Since)
	}
	letters, err := s.deadLetters(ctx, where, filter.Limit)
	if err != nil {
		return nil, fmt.Errorf("read dead letters: %w", err)
	}
	return letters, nil
}

// DeadLetter returns the dead letter that is about a record, and whether there is one.
func (s *Store) DeadLetter(ctx context.Context, topic string, partition int, offset int64) (
	pipeline.DeadLetter, bool, error,
) {
	where := fmt.Sprintf("topic = %s AND partition = %d AND offset = %d", quote(topic), partition,
		offset)
	letters, err := s.deadLetters(ctx, where, 1)
	if err != nil {
		return pipeline.DeadLetter{}, false, fmt.Errorf("read dead letter %s/%d/%d: %w", topic,
			partition, offset, err)
	}
	if len(letters) == 0 {
		return pipeline.DeadLetter{}, false, nil
	}
	return letters[0], true, nil
}

func (s *Store) deadLetters(ctx context.Context, where string, limit int) (
	[]pipeline.DeadLetter, error,
) {
	query := `SELECT topic, partition, offset, record_time, key, value, header_names, header_values,
		reason, detail, source, id, seen_at
		FROM dead_letters FINAL WHERE ` + where + ` ORDER BY topic, partition, offset`
	if limit > 0 {
		query += fmt.Sprintf(" LIMIT %d", limit)
	}
	var letters []pipeline.DeadLetter
	err := s.each(ctx, query, func(row scanner) error {
		var l pipeline.DeadLetter
		var partition int32
		var key, value string
		var names, contents []string
		if err := row.Scan(&l.Topic, &partition, &l.Offset, &l.Time, &key, &value, &names, &contents,
			&l.Reason, &l.Detail, &l.Source, &l.ID, &l.SeenAt); err != nil {
			return err
		}
		if len(names) != len(contents) {
			return fmt.Errorf("dead letter %s/%d/%d has %d header names and %d values", l.Topic,
				partition, l.Offset, len(names), len(contents))
		}
		l.Partition, l.Key, l.Value = int(partition), []byte(key), []byte(value)
		l.Time, l.SeenAt = l.Time.UTC(), l.SeenAt.UTC()
		for i := range names {
			l.Headers = append(l.Headers, pipeline.Header{Key: names[i], Value: []byte(contents[i])})
		}
		letters = append(letters, l)
		return nil
	})
	return letters, err
}
