package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/suanpan/suanpan/pkg/pipeline"
)

const (
	fetchBytes     = 8 << 20 // of one response, about
	partitionBytes = 1 << 20 // of one partition in it, about
)

// cursor is a position in a partition. Only its reader changes it.
type cursor struct {
	partition int
	next      int64 // the offset to read from
}

// fetched is what a response says about one partition.
type fetched struct {
	cursor  *cursor
	end     int64 // first offset that a reader may not see yet
	aborted []abortedTransaction
	raw     []byte // record batches
}

type abortedTransaction struct {
	producer int64
	first    int64 // offset
}

// fetch asks a node for records of a topic that follow the cursors, and waits for the first as
// long as wait says. It does not move the cursors; fetched.appendRecords does. Partitions that
// failed are left out and reported by the error, beside the others.
func (c *Client) fetch(
	ctx context.Context, node int32, topic string, cursors []*cursor, wait time.Duration,
) ([]fetched, error) {
	packet := c.newPacket(make([]byte, 0, 128+32*len(cursors)))
	packet = appendInt32(packet, -1) // not a replica
	packet = appendInt32(packet, int32(wait/time.Millisecond))
	packet = appendInt32(packet, 1) // byte at least
	packet = appendInt32(packet, fetchBytes)
	packet = append(packet, 1)       // only what is committed
	packet = appendInt32(packet, 0)  // no session
	packet = appendInt32(packet, -1) // of which this is not the first request
	packet = appendInt32(packet, 1)
	packet = appendString(packet, topic)
	packet = appendInt32(packet, int32(len(cursors)))
	for _, at := range cursors {
		packet = appendInt32(packet, int32(at.partition))
		packet = appendInt32(packet, -1) // leader epoch
		packet = appendInt64(packet, at.next)
		packet = appendInt64(packet, -1) // start of a replica's log
		packet = appendInt32(packet, partitionBytes)
	}
	packet = appendInt32(packet, 0) // nothing to forget
	packet = appendString(packet, "")
	ctx, cancel := context.WithTimeout(ctx, wait+exchangeTimeout)
	defer cancel()
	x := &exchange{api: apiFetch, version: fetchVersion, node: node, packet: packet}
	response, err := c.roundTrip(ctx, x)
	if err != nil {
		return nil, err
	}
	return decodeFetch(response, topic, cursors)
}

// decodeFetch splits a response by partition.
func decodeFetch(response []byte, topic string, cursors []*cursor) ([]fetched, error) {
	r := &reader{buf: response}
	r.int32() // throttled for
	if code := r.int16(); code != 0 && r.err == nil {
		return nil, fmt.Errorf("fetch from topic %s: %w", topic, kafkago.Error(code))
	}
	r.int32() // session
	byPartition := make(map[int32]*cursor, len(cursors))
	for _, at := range cursors {
		byPartition[int32(at.partition)] = at
	}
	var all []fetched
	var first error
	for range r.length() {
		r.string()
		for range r.length() {
			partition, code, f := readFetched(r)
			if r.err != nil {
				break
			}
			if f.cursor = byPartition[partition]; f.cursor == nil {
				continue
			}
			if code == 0 {
				all = append(all, f)
			} else if err := fetchError(topic, f, kafkago.Error(code)); first == nil ||
				!transient(err) {
				first = err
			}
		}
	}
	if r.err != nil {
		return nil, fmt.Errorf("decode fetch response: %w", r.err)
	}
	return all, first
}

func readFetched(r *reader) (partition int32, code int16, f fetched) {
	partition, code = r.int32(), r.int16()
	high, stable := r.int64(), r.int64()
	r.int64() // start of the log
	f.end = high
	if stable >= 0 {
		f.end = stable
	}
	for range r.length() {
		f.aborted = append(f.aborted, abortedTransaction{producer: r.int64(), first: r.int64()})
	}
	r.int32() // replica to prefer
	f.raw = r.bytes(max(int(r.int32()), 0))
	return partition, code, f
}

// ErrOffset is returned where the log does not have the offset to read from.
var ErrOffset = errors.New("offset outside the log")

func fetchError(topic string, f fetched, code kafkago.Error) error {
	if code == kafkago.OffsetOutOfRange {
		return permanent(fmt.Errorf("fetch from %s partition %d at offset %d, log ends at %d: %w",
			topic, f.cursor.partition, f.cursor.next, f.end, ErrOffset))
	}
	return fmt.Errorf("fetch from %s partition %d: %w", topic, f.cursor.partition, code)
}

// more reports whether appendRecords has something left to do.
func (f *fetched) more() bool { return len(f.raw) > 0 }

// appendRecords decodes the next batch, appends those of its records that are to be read to dst,
// and moves the cursor behind them. Control records and aborted transactions are skipped.
func (f *fetched) appendRecords(dst []pipeline.Record, topic string) ([]pipeline.Record, error) {
	b, rest, err := nextBatch(f.raw)
	if errors.Is(err, errTruncated) {
		f.raw = nil
		return dst, nil
	}
	if err != nil {
		return dst, permanent(fmt.Errorf("read %s partition %d after offset %d: %w",
			topic, f.cursor.partition, f.cursor.next, err))
	}
	f.raw = rest
	if b.last < f.cursor.next {
		return dst, nil
	}
	switch {
	case b.control():
		if b.aborts() {
			f.finish(b.producer)
		}
	case b.transactional() && f.isAborted(&b):
	default:
		dst, err = b.appendRecords(dst, topic, f.cursor.partition, f.cursor.next)
		if err != nil {
			return dst, permanent(fmt.Errorf("read %s partition %d: %w",
				topic, f.cursor.partition, err))
		}
	}
	f.cursor.next = b.last + 1
	return dst, nil
}

// isAborted reports whether a batch belongs to an aborted transaction: its producer has one that
// began before the batch's end and whose marker has not been seen.
func (f *fetched) isAborted(b *batch) bool {
	for _, a := range f.aborted {
		if a.producer == b.producer && a.first <= b.last {
			return true
		}
	}
	return false
}

// finish forgets the producer's oldest aborted transaction.
func (f *fetched) finish(producer int64) {
	oldest := -1
	for i, a := range f.aborted {
		if a.producer == producer && (oldest < 0 || a.first < f.aborted[oldest].first) {
			oldest = i
		}
	}
	if oldest >= 0 {
		f.aborted = append(f.aborted[:oldest:oldest], f.aborted[oldest+1:]...)
	}
}
