package kafka

import (
	"context"
	"fmt"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/suanpan/suanpan/pkg/pipeline"
)

const (
	appendParallel  = 4       // requests of one Append in flight to a broker
	requestBytes    = 4 << 20 // of one request, about
	compressedBatch = 2       // a batch holds this many times BatchBytes before compression
	ackTimeout      = 15 * time.Second
)

// part is what remains to be appended to one partition.
type part struct {
	topic     string
	partition int32
	which     []int32 // into the records of the call
	bytes     int     // bound of the next batch, before compression

	// The batch in flight.
	count int
	batch []byte
	alone bool // the next batch has one record only, as it is too large otherwise
}

// Append appends records and returns when all in-sync replicas have them. Records with a key go to
// the partition that a Java client would choose; records without one, only to topics of one
// partition. Within a partition, their order is kept. Errors that may pass are retried until ctx
// ends, so that records may be appended twice. It takes no hold of the records after it returned.
func (c *Client) Append(ctx context.Context, records ...pipeline.Record) error {
	if len(records) == 0 {
		return nil
	}
	byNode, err := c.route(ctx, records)
	if err != nil {
		return fmt.Errorf("append %d records: %w", len(records), err)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, parts := range byNode {
		shards := make([][]*part, min(appendParallel, len(parts)))
		for i, p := range parts {
			shards[i%len(shards)] = append(shards[i%len(shards)], p)
		}
		for _, shard := range shards {
			group.Go(func() error { return c.appendParts(ctx, records, shard) })
		}
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("append %d records: %w", len(records), err)
	}
	return nil
}

// route says which records go to which partition, by the node that leads it now.
func (c *Client) route(
	ctx context.Context, records []pipeline.Record,
) (map[int32][]*part, error) {
	type key struct {
		topic     string
		partition int
	}
	parts := make(map[key]*part)
	nodes := make(map[string][]int32)
	byNode := make(map[int32][]*part)
	var all []int
	for i := range records {
		topic := records[i].Topic
		leaders, ok := nodes[topic]
		if !ok {
			err := c.retry(ctx, func(ctx context.Context) (err error) {
				leaders, err = c.leaders(ctx, topic)
				return err
			})
			if err != nil {
				return nil, err
			}
			nodes[topic] = leaders
		}
		for len(all) < len(leaders) {
			all = append(all, len(all))
		}
		k := key{topic: topic}
		if len(leaders) > 1 {
			if records[i].Key == nil {
				return nil, fmt.Errorf("record without key for topic %s of %d partitions",
					topic, len(leaders))
			}
			message := kafkago.Message{Key: records[i].Key}
			k.partition = murmur2.Balance(message, all[:len(leaders)]...)
		}
		p := parts[k]
		if p == nil {
			p = &part{topic: topic, partition: int32(k.partition), bytes: c.batchBytes()}
			parts[k] = p
			byNode[leaders[k.partition]] = append(byNode[leaders[k.partition]], p)
		}
		p.which = append(p.which, int32(i))
	}
	return byNode, nil
}

// murmur2 chooses partitions as Java's default partitioner does.
var murmur2 = kafkago.Murmur2Balancer{Consistent: true}

func (c *Client) batchBytes() int {
	if c.codec == 0 {
		return c.config.BatchBytes
	}
	return compressedBatch * c.config.BatchBytes
}

// appendParts appends everything that is left of parts, several partitions with a request.
func (c *Client) appendParts(ctx context.Context, records []pipeline.Record, parts []*part) error {
	for len(parts) > 0 {
		err := c.retry(ctx, func(ctx context.Context) error {
			return c.appendOnce(ctx, records, parts)
		})
		if err != nil {
			return err
		}
		left := parts[:0]
		for _, p := range parts {
			if len(p.which) > 0 {
				left = append(left, p)
			}
		}
		parts = left
	}
	return nil
}

// appendOnce sends the next batches of parts, to wherever their leaders are now.
func (c *Client) appendOnce(ctx context.Context, records []pipeline.Record, parts []*part) error {
	byNode := make(map[int32][]*part, 1)
	for _, p := range parts {
		if len(p.which) == 0 {
			continue
		}
		leaders, err := c.leaders(ctx, p.topic)
		if err != nil {
			return err
		}
		if int(p.partition) >= len(leaders) {
			return permanent(fmt.Errorf("topic %s has lost partition %d", p.topic, p.partition))
		}
		node := leaders[p.partition]
		byNode[node] = append(byNode[node], p)
	}
	var first error
	for node, parts := range byNode {
		if err := c.produce(ctx, node, records, parts); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// produce sends one request with a batch of each part, as far as they fit, and takes what was
// acknowledged off the parts.
func (c *Client) produce(
	ctx context.Context, node int32, records []pipeline.Record, parts []*part,
) error {
	e := c.scratch.Get().(*encoder)
	sent, size := 0, 0
	for _, p := range parts {
		if size >= requestBytes {
			break
		}
		if err := c.encodeNext(e, records, p); err != nil {
			return err
		}
		size += len(p.batch)
		sent++
	}
	x := &exchange{api: apiProduce, version: produceVersion, node: node}
	e.packet = appendProduce(c.newPacket(e.packet), parts[:sent])
	x.packet = e.packet
	ctx, cancel := context.WithTimeout(ctx, ackTimeout+exchangeTimeout)
	defer cancel()
	response, err := c.roundTrip(ctx, x)
	if err != nil {
		return err // the packet may still be read, so e is not reused
	}
	c.scratch.Put(e)
	return c.acknowledge(response, records, parts[:sent])
}

// encodeNext encodes the next batch of a part, if it is not encoded already.
func (c *Client) encodeNext(e *encoder, records []pipeline.Record, p *part) error {
	for p.count == 0 {
		n, size := 0, 0
		for _, i := range p.which {
			size += sizeOf(&records[i])
			if n > 0 && (size > p.bytes || p.alone) {
				break
			}
			n++
		}
		now := time.Now().UnixMilli()
		batch, err := e.appendBatch(p.batch[:0], records, p.which[:n], now, c.codec)
		if err != nil {
			return permanent(err)
		}
		p.batch = batch
		if len(batch) > c.config.BatchBytes && n > 1 {
			p.shrink(n)
			continue
		}
		p.count = n
	}
	return nil
}

// shrink makes the next batch half as large as the last one, which had n records.
func (p *part) shrink(n int) {
	p.count = 0
	p.bytes /= 2
	p.alone = n == 2
}

// appendProduce appends the body of a request with the batches of parts.
func appendProduce(dst []byte, parts []*part) []byte {
	dst = appendInt16(dst, -1) // no transaction
	dst = appendInt16(dst, -1) // acknowledged by all in-sync replicas
	dst = appendInt32(dst, int32(ackTimeout/time.Millisecond))
	dst = appendInt32(dst, int32(len(parts)))
	for _, p := range parts {
		dst = appendString(dst, p.topic)
		dst = appendInt32(dst, 1)
		dst = appendInt32(dst, p.partition)
		dst = appendInt32(dst, int32(len(p.batch)))
		dst = append(dst, p.batch...)
	}
	return dst
}
