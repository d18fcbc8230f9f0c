package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/suanpan/suanpan/pkg/pipeline"
)

const (
	// A member that died is missed after sessionTimeout; a rebalance is noticed by the others
	// within heartbeatInterval.
	sessionTimeout    = 10 * time.Second
	heartbeatInterval = time.Second
	rebalanceTimeout  = 15 * time.Second
	joinBackoff       = 500 * time.Millisecond
	// An answer of the coordinator may take this long, besides a rebalance. A member that gave up a
	// join too early would leave a ghost behind that is given partitions and reads none.
	coordinatorTimeout = time.Minute

	// A leader that was just elected may not know the log's end yet.
	offsetChecks = 4
)

// Group is a member of a consumer group that reads one topic.
type Group struct {
	client *Client
	topic  string
	group  *kafkago.ConsumerGroup
}

var _ pipeline.Group = (*Group)(nil)

// Group joins the consumer group id for a topic, in the background; Next waits for it.
func (c *Client) Group(id, topic string) (*Group, error) {
	group, err := kafkago.NewConsumerGroup(kafkago.ConsumerGroupConfig{
		ID: id, Topics: []string{topic}, Brokers: c.config.Brokers, Dialer: c.dialer,
		StartOffset:       kafkago.FirstOffset,
		SessionTimeout:    sessionTimeout,
		HeartbeatInterval: heartbeatInterval,
		RebalanceTimeout:  rebalanceTimeout,
		JoinGroupBackoff:  joinBackoff,
		Timeout:           coordinatorTimeout,
		// New partitions would be read by nobody until somebody joins or leaves.
		WatchPartitionChanges: true,
	})
	if err != nil {
		return nil, fmt.Errorf("join group %s: %w", id, err)
	}
	return &Group{client: c, topic: topic, group: group}, nil
}

// Next implements [pipeline.Group]. It retries until ctx ends what may pass. All goroutines of the
// generation before have ended when it returns.
func (g *Group) Next(ctx context.Context) (pipeline.Generation, error) {
	for {
		raw, err := g.group.Next(ctx)
		if err == nil {
			gen, err := g.start(ctx, raw)
			if !errors.Is(err, pipeline.ErrGenerationEnded) {
				return gen, err
			}
			continue // another rebalance came while the offsets were looked up
		}
		if ctx.Err() != nil || errors.Is(err, kafkago.ErrGroupClosed) || !transient(err) {
			return nil, fmt.Errorf("join group for topic %s: %w", g.topic, err)
		}
		g.client.notify(fmt.Errorf("join group for topic %s: %w", g.topic, err))
	}
}

// Close leaves the group and ends its generation.
func (g *Group) Close() error {
	if err := g.group.Close(); err != nil {
		return fmt.Errorf("leave group for topic %s: %w", g.topic, err)
	}
	return nil
}

// start finds out where to read from and starts reading.
func (g *Group) start(
	ctx context.Context, raw *kafkago.Generation,
) (pipeline.Generation, error) {
	assigned := raw.Assignments[g.topic]
	gen := &generation{
		client: g.client, topic: g.topic, raw: raw,
		chunks: make(chan []pipeline.Record, prefetchChunks),
		ended:  make(chan struct{}), failed: make(chan struct{}),
	}
	for _, a := range assigned {
		gen.partitions = append(gen.partitions, a.ID)
	}
	slices.Sort(gen.partitions)
	cursors, err := g.cursors(ctx, assigned, gen.partitions)
	if err != nil {
		return nil, err
	}
	raw.Start(func(ctx context.Context) { gen.run(ctx, cursors) })
	return gen, nil
}

// cursors returns where each partition is read from: at its committed offset, which must be in the
// log, else from the log's start.
func (g *Group) cursors(
	ctx context.Context, assigned []kafkago.PartitionAssignment, partitions []int,
) ([]*cursor, error) {
	if len(partitions) == 0 {
		return nil, nil
	}
	for try := 1; ; try++ {
		starts, err := g.client.offsets(ctx, g.topic, partitions, logStart)
		if err != nil {
			return nil, fmt.Errorf("read log starts of topic %s: %w", g.topic, err)
		}
		ends, err := g.client.offsets(ctx, g.topic, partitions, logEnd)
		if err != nil {
			return nil, fmt.Errorf("read log ends of topic %s: %w", g.topic, err)
		}
		cursors := make([]*cursor, 0, len(assigned))
		for _, a := range assigned {
			start, end, next := starts[a.ID], ends[a.ID], a.Offset
			if next < 0 {
				next = start
			}
			if next < start || next > end {
				err = fmt.Errorf("start at the committed offset %d of %s partition %d: "+
					"the log has [%d, %d): %w", next, g.topic, a.ID, start, end, ErrOffset)
			}
			cursors = append(cursors, &cursor{partition: a.ID, next: next})
		}
		if err == nil {
			slices.SortFunc(cursors, func(a, b *cursor) int { return a.partition - b.partition })
			return cursors, nil
		}
		if try == offsetChecks {
			return nil, err
		}
		if sleep(ctx, 4*minBackoff<<try) != nil {
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}
