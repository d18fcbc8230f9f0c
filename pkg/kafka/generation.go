package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/suanpan/suanpan/pkg/pipeline"
)

const (
	// At most prefetchChunks+2 chunks of about chunkBytes are in memory before they are fetched,
	// and a response per broker.
	prefetchChunks = 2
	chunkBytes     = 8 << 20
	chunkRecords   = 50_000

	fetchWait  = 500 * time.Millisecond // how long a broker waits for the first record
	commitWait = 200 * time.Millisecond // before a commit is tried again
)

// generation implements pipeline.Generation.
type generation struct {
	client     *Client
	topic      string
	raw        *kafkago.Generation
	partitions []int
	chunks     chan []pipeline.Record // sent by run only
	ended      chan struct{}          // closed when the partitions are somebody else's
	failed     chan struct{}          // closed after err was set
	err        error
}

var _ pipeline.Generation = (*generation)(nil)

// Partitions implements [pipeline.Generation].
func (g *generation) Partitions() []int { return g.partitions }

// Fetch implements [pipeline.Generation]. It returns at most about 8 MiB, and the records of one
// broker. The bytes of the records share buffers of a few MiB: copy those that are kept for long.
func (g *generation) Fetch(ctx context.Context, wait time.Duration) ([]pipeline.Record, error) {
	select {
	case <-g.ended:
		return nil, pipeline.ErrGenerationEnded
	default:
	}
	select {
	case records := <-g.chunks:
		return records, nil
	default:
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-g.ended:
		return nil, pipeline.ErrGenerationEnded
	case <-g.failed:
		return nil, g.err
	case <-ctx.Done():
		return nil, fmt.Errorf("fetch from topic %s: %w", g.topic, context.Cause(ctx))
	case records := <-g.chunks:
		return records, nil
	case <-timer.C:
		return nil, nil
	}
}

// Commit implements [pipeline.Generation]. A try takes up to 5 seconds even if ctx ends before.
func (g *generation) Commit(ctx context.Context, next map[int]int64) error {
	if len(next) == 0 {
		return nil
	}
	for {
		select {
		case <-g.ended:
			return pipeline.ErrGenerationEnded
		default:
		}
		err := g.raw.CommitOffsets(map[string]map[int]int64{g.topic: next})
		if err == nil {
			return nil
		}
		err = fmt.Errorf("commit offsets of topic %s: %w", g.topic, err)
		switch {
		case endsGeneration(err):
			return fmt.Errorf("%w: %w", pipeline.ErrGenerationEnded, err)
		case !transient(err):
			return err
		}
		// Perhaps it was committed; committing it again does no harm. A connection that broke
		// ends the generation at its next heartbeat.
		g.client.notify(err)
		if sleep(ctx, commitWait) != nil {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// endsGeneration reports whether the coordinator says that this member or generation is no more.
func endsGeneration(err error) bool {
	return errors.Is(err, kafkago.IllegalGeneration) ||
		errors.Is(err, kafkago.UnknownMemberId) ||
		errors.Is(err, kafkago.RebalanceInProgress) ||
		errors.Is(err, kafkago.FencedInstanceID)
}

// answer is what became of one fetch request.
type answer struct {
	node    int32
	all     []fetched
	err     error
	cursors []*cursor
}

// run reads until the generation ends. One request per broker is in flight at a time. When reading
// fails for good it keeps the membership, so that nobody else runs into the same, until the group
// is closed.
func (g *generation) run(ctx context.Context, cursors []*cursor) {
	ctx, cancel := context.WithCancel(ctx)
	var requests sync.WaitGroup
	defer requests.Wait()
	defer cancel()
	defer close(g.ended)
	if len(cursors) == 0 {
		<-ctx.Done()
		return
	}
	if err := g.read(ctx, cursors, &requests); err != nil && ctx.Err() == nil {
		g.err = err
		close(g.failed)
	}
	<-ctx.Done()
}

// read sends requests and queues their records until ctx ends or an error is permanent.
func (g *generation) read(ctx context.Context, cursors []*cursor, requests *sync.WaitGroup) error {
	answers := make(chan answer, len(cursors)+1)
	idle := cursors // those without a request in flight
	pause := minBackoff
	inFlight := 0
	for {
		for node, cursors := range g.byLeader(ctx, &idle) {
			inFlight++
			requests.Go(func() {
				all, err := g.client.fetch(ctx, node, g.topic, cursors, fetchWait)
				answers <- answer{node: node, all: all, err: err, cursors: cursors}
			})
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if inFlight == 0 {
			if sleep(ctx, pause) != nil {
				return ctx.Err()
			}
			pause = min(2*pause, maxBackoff)
			continue
		}
		var got answer
		select {
		case got = <-answers:
		case <-ctx.Done():
			return ctx.Err()
		}
		inFlight--
		if err := g.queue(ctx, got.all); err != nil {
			return err
		}
		if got.err == nil {
			pause = minBackoff
		} else if !transient(got.err) {
			return got.err
		} else {
			g.client.notify(got.err)
			if sleep(ctx, pause) != nil {
				return ctx.Err()
			}
			pause = min(2*pause, maxBackoff)
		}
		// Whoever came first in this request comes last in the next.
		idle = append(append(idle, got.cursors[1:]...), got.cursors[0])
	}
}

// byLeader takes the idle cursors and groups them by the node that leads their partitions. Where
// that is not known they stay idle.
func (g *generation) byLeader(ctx context.Context, idle *[]*cursor) map[int32][]*cursor {
	if len(*idle) == 0 {
		return nil
	}
	nodes, err := g.client.leaders(ctx, g.topic)
	if err != nil {
		g.client.notify(err)
		return nil
	}
	byNode := make(map[int32][]*cursor, 1)
	left := make([]*cursor, 0, len(*idle))
	for _, at := range *idle {
		if at.partition < len(nodes) && nodes[at.partition] != noNode {
			byNode[nodes[at.partition]] = append(byNode[nodes[at.partition]], at)
		} else {
			left = append(left, at)
		}
	}
	*idle = left
	return byNode
}

// queue decodes a response and passes its records on in chunks, as fast as they are fetched.
func (g *generation) queue(ctx context.Context, all []fetched) error {
	var chunk []pipeline.Record
	size := 0
	send := func() error {
		select {
		case g.chunks <- chunk:
			chunk, size = make([]pipeline.Record, 0, len(chunk)), 0
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for i := range all {
		for all[i].more() {
			n := len(chunk)
			var err error
			if chunk, err = all[i].appendRecords(chunk, g.topic); err != nil {
				return err
			}
			for _, r := range chunk[n:] {
				size += len(r.Key) + len(r.Value)
			}
			if size >= chunkBytes || len(chunk) >= chunkRecords {
				if err := send(); err != nil {
					return err
				}
			}
		}
	}
	if len(chunk) == 0 {
		return nil
	}
	return send()
}
