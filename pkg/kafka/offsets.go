package kafka

import (
	"context"
	"fmt"

	kafkago "github.com/segmentio/kafka-go"
)

// Where to look for an offset. endCommitted is the end for readers: behind it are transactions
// that may still be aborted.
type position struct {
	timestamp int64
	isolation byte
}

var (
	logStart     = position{timestamp: -2}
	logEnd       = position{timestamp: -1}
	endCommitted = position{timestamp: -1, isolation: 1}
)

// EndOffsets returns, by partition, the offset after the last record of a topic that a reader can
// see now.
func (c *Client) EndOffsets(ctx context.Context, topic string) (map[int]int64, error) {
	offsets, err := c.offsets(ctx, topic, nil, endCommitted)
	if err != nil {
		return nil, fmt.Errorf("read end offsets of %s: %w", topic, err)
	}
	return offsets, nil
}

// offsets returns the offsets of the given partitions, or of all if partitions is nil. Errors that
// may pass are retried until ctx ends.
func (c *Client) offsets(
	ctx context.Context, topic string, partitions []int, at position,
) (offsets map[int]int64, err error) {
	err = c.retry(ctx, func(ctx context.Context) error {
		offsets, err = c.offsetsOnce(ctx, topic, partitions, at)
		return err
	})
	return offsets, err
}

func (c *Client) offsetsOnce(
	ctx context.Context, topic string, partitions []int, at position,
) (map[int]int64, error) {
	nodes, err := c.leaders(ctx, topic)
	if err != nil {
		return nil, err
	}
	if partitions == nil {
		for p := range nodes {
			partitions = append(partitions, p)
		}
	}
	byNode := make(map[int32][]int)
	for _, p := range partitions {
		if p < 0 || p >= len(nodes) {
			return nil, permanent(fmt.Errorf("topic %s has no partition %d", topic, p))
		}
		byNode[nodes[p]] = append(byNode[nodes[p]], p)
	}
	offsets := make(map[int]int64, len(partitions))
	for node, partitions := range byNode {
		if err := c.listOffsets(ctx, node, topic, partitions, at, offsets); err != nil {
			return nil, err
		}
	}
	if len(offsets) != len(partitions) {
		return nil, fmt.Errorf("list offsets of topic %s: got %d of %d partitions",
			topic, len(offsets), len(partitions))
	}
	return offsets, nil
}

// listOffsets asks one node and puts what it says into offsets.
func (c *Client) listOffsets(
	ctx context.Context, node int32, topic string, partitions []int, at position,
	offsets map[int]int64,
) error {
	packet := appendInt32(c.newPacket(nil), -1) // not a replica
	packet = append(packet, at.isolation)
	packet = appendInt32(packet, 1)
	packet = appendString(packet, topic)
	packet = appendInt32(packet, int32(len(partitions)))
	for _, p := range partitions {
		packet = appendInt32(packet, int32(p))
		packet = appendInt32(packet, -1) // leader epoch
		packet = appendInt64(packet, at.timestamp)
	}
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	x := &exchange{api: apiListOffsets, version: listOffsetsVersion, node: node, packet: packet}
	response, err := c.roundTrip(ctx, x)
	if err != nil {
		return err
	}
	r := reader{buf: response}
	r.int32() // throttled for
	for range r.length() {
		r.string()
		for range r.length() {
			partition, code := r.int32(), r.int16()
			r.int64() // timestamp
			offset := r.int64()
			r.int32() // leader epoch
			if code != 0 && r.err == nil {
				return fmt.Errorf("list offsets of %s partition %d: %w",
					topic, partition, kafkago.Error(code))
			}
			offsets[int(partition)] = offset
		}
	}
	if r.err != nil {
		return fmt.Errorf("decode list offsets response: %w", r.err)
	}
	return nil
}
