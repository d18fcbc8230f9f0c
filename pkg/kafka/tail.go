package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/suanpan/suanpan/pkg/pipeline"
)

// readWait bounds how long a broker may wait for records that are known to exist.
const readWait = time.Second

// Tail reads a topic of one partition from its beginning. Its methods may not be called
// concurrently.
type Tail struct {
	client *Client
	topic  string
	next   int64 // -1: nothing was read yet
}

var _ pipeline.Tail = (*Tail)(nil)

// Tail returns a reader of a topic that has one partition. Nothing is read before ReadToEnd.
func (c *Client) Tail(topic string) *Tail {
	return &Tail{client: c, topic: topic, next: -1}
}

// ReadToEnd returns the records that were appended since the last call, up to the end that the log
// had at some instant after the call began. After an error it starts where it did before. It
// retries until ctx ends what may pass.
func (t *Tail) ReadToEnd(ctx context.Context) ([]pipeline.Record, error) {
	ends, err := t.client.EndOffsets(ctx, t.topic)
	if err != nil {
		return nil, fmt.Errorf("read topic %s to its end: %w", t.topic, err)
	}
	if len(ends) != 1 {
		return nil, fmt.Errorf("read topic %s to its end: it has %d partitions instead of 1",
			t.topic, len(ends))
	}
	next := t.next
	if next < 0 {
		starts, err := t.client.offsets(ctx, t.topic, []int{0}, logStart)
		if err != nil {
			return nil, fmt.Errorf("read start of topic %s: %w", t.topic, err)
		}
		if starts[0] != 0 {
			return nil, fmt.Errorf("read topic %s to its end: it begins at offset %d, "+
				"older records were deleted: %w", t.topic, starts[0], ErrOffset)
		}
		next = 0
	}
	if ends[0] < next {
		return nil, fmt.Errorf("read topic %s from offset %d: it ends at %d: %w",
			t.topic, next, ends[0], ErrOffset)
	}
	records, err := t.client.Read(ctx, t.topic, 0, next, ends[0])
	if err != nil {
		return nil, err
	}
	t.next = ends[0]
	return records, nil
}

// Close implements [pipeline.Tail]. There is nothing to release.
func (t *Tail) Close() error { return nil }

// Read returns the records of a partition with offsets in [from, until), which must all be in the
// log; those of control records and aborted transactions are missing. It retries until ctx ends
// what may pass.
func (c *Client) Read(
	ctx context.Context, topic string, partition int, from, until int64,
) ([]pipeline.Record, error) {
	var records []pipeline.Record
	at := &cursor{partition: partition, next: from}
	for at.next < until {
		before := at.next
		err := c.retry(ctx, func(ctx context.Context) (err error) {
			records, err = c.readSome(ctx, topic, at, records)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read %s partition %d from offset %d: %w",
				topic, partition, from, err)
		}
		if at.next == before && sleep(ctx, minBackoff) != nil {
			return nil, fmt.Errorf("read %s partition %d up to offset %d, is at %d: %w",
				topic, partition, until, at.next, context.Cause(ctx))
		}
	}
	for len(records) > 0 && records[len(records)-1].Offset >= until {
		records = records[:len(records)-1]
	}
	return records, nil
}

// readSome appends the records of one response to dst.
func (c *Client) readSome(
	ctx context.Context, topic string, at *cursor, dst []pipeline.Record,
) ([]pipeline.Record, error) {
	nodes, err := c.leaders(ctx, topic)
	if err != nil {
		return dst, err
	}
	if at.partition < 0 || at.partition >= len(nodes) {
		return dst, permanent(fmt.Errorf("topic %s has no partition %d", topic, at.partition))
	}
	all, err := c.fetch(ctx, nodes[at.partition], topic, []*cursor{at}, readWait)
	if err != nil {
		return dst, err
	}
	for i := range all {
		for all[i].more() {
			if dst, err = all[i].appendRecords(dst, topic); err != nil {
				return dst, err
			}
		}
	}
	return dst, nil
}
