package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/kafka"
	"github.com/suanpan/suanpan/pkg/pipeline"
)

func commitAndResume(t *testing.T, b broker) {
	c := open(t, b, kafka.Config{})
	topic := newTopic(t, c, kafka.Topic{Partitions: 2})
	mustAppend(t, c, numbered(topic, 0, 1000)...)
	group, generation := join(t, c, topic, topic)
	next := make(map[int]int64)
	for _, r := range fetchN(t, generation, 1000) {
		next[r.Partition] = r.Offset + 1
	}
	next[0] -= 10 // these are read again
	if err := generation.Commit(testContext(t), next); err != nil {
		t.Fatal(err)
	}
	if err := group.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := generation.Fetch(testContext(t), time.Second); !isEnded(err) {
		t.Errorf("fetch after close: got error %v", err)
	}
	if err := generation.Commit(testContext(t), next); !isEnded(err) {
		t.Errorf("commit after close: got error %v", err)
	}

	_, generation = join(t, c, topic, topic)
	again := fetchN(t, generation, 10)
	if len(again) != 10 || again[0].Partition != 0 || again[0].Offset != next[0] {
		t.Fatalf("got %d records from partition %d offset %d, want 10 from partition 0 offset %d",
			len(again), again[0].Partition, again[0].Offset, next[0])
	}
	began := time.Now()
	records, err := generation.Fetch(testContext(t), 200*time.Millisecond)
	if err != nil || len(records) != 0 {
		t.Errorf("at the end: got %d records, error %v", len(records), err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("waited %v for records instead of 200ms", took)
	}
}

func isEnded(err error) bool { return errors.Is(err, pipeline.ErrGenerationEnded) }

func anOffsetBeyondTheEndStops(t *testing.T, b broker) {
	c := open(t, b, kafka.Config{})
	topic := newTopic(t, c, kafka.Topic{Partitions: 1})
	mustAppend(t, c, numbered(topic, 0, 10)...)
	group, generation := join(t, c, topic, topic)
	if err := generation.Commit(testContext(t), map[int]int64{0: 11}); err != nil {
		t.Fatal(err)
	}
	if err := group.Close(); err != nil {
		t.Fatal(err)
	}
	group, err := c.Group(topic, topic)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	if _, err := group.Next(testContext(t)); !errors.Is(err, kafka.ErrOffset) {
		t.Fatalf("got error %v, want ErrOffset", err)
	}
}

// member reads as a member of a group until stop, commits what it has read, and notes it.
type member struct {
	group      *kafka.Group
	partitions chan []int // of every generation
	read       chan pipeline.Record
	done       chan error
	stop       context.CancelFunc
}

func startMember(t *testing.T, c *kafka.Client, id, topic string) *member {
	t.Helper()
	group, err := c.Group(id, topic)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(testContext(t))
	m := &member{
		group: group, partitions: make(chan []int, 100),
		read: make(chan pipeline.Record, 1_000_000), done: make(chan error, 1), stop: stop,
	}
	go func() { m.done <- m.run(ctx) }()
	t.Cleanup(func() { m.leave() })
	return m
}

// leave ends the member; it may be called again.
func (m *member) leave() {
	m.stop()
	m.group.Close()
}

func (m *member) run(ctx context.Context) error {
	for ctx.Err() == nil {
		generation, err := m.group.Next(ctx)
		if err != nil {
			return err
		}
		m.partitions <- generation.Partitions()
		for ctx.Err() == nil {
			records, err := generation.Fetch(ctx, 100*time.Millisecond)
			if err == nil {
				next := make(map[int]int64)
				for _, r := range records {
					m.read <- r
					next[r.Partition] = r.Offset + 1
				}
				err = generation.Commit(ctx, next)
			}
			if isEnded(err) {
				break
			}
			if err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// await returns the partitions of the first generation of which want says that it is right.
func (m *member) await(t *testing.T, want func([]int) bool) []int {
	t.Helper()
	timeout := time.After(45 * time.Second)
	for {
		select {
		case partitions := <-m.partitions:
			if want(partitions) {
				return partitions
			}
		case err := <-m.done:
			t.Fatalf("member ended: %v", err)
		case <-timeout:
			t.Fatal("no such generation after 45s")
		}
	}
}

func twoMembersShareThePartitions(t *testing.T, b broker) {
	const partitions = 8
	c := open(t, b, kafka.Config{})
	topic := newTopic(t, c, kafka.Topic{Partitions: partitions})
	mustAppend(t, c, numbered(topic, 0, 1000)...)
	one := startMember(t, c, topic, topic)
	one.await(t, func(p []int) bool { return len(p) == partitions })

	two := startMember(t, c, topic, topic)
	mustAppend(t, c, numbered(topic, 1000, 2000)...)
	half := func(p []int) bool { return len(p) == partitions/2 }
	owned := slices.Concat(one.await(t, half), two.await(t, half))
	slices.Sort(owned)
	if want := []int{0, 1, 2, 3, 4, 5, 6, 7}; !slices.Equal(owned, want) {
		t.Fatalf("two members own %v together, want %v", owned, want)
	}
	mustAppend(t, c, numbered(topic, 2000, 3000)...)

	two.leave()
	one.await(t, func(p []int) bool { return len(p) == partitions })
	mustAppend(t, c, numbered(topic, 3000, 4000)...)
	seen := make(map[string]bool)
	last := make(map[string]int64)
	for _, m := range []*member{two, one} {
		for m == one && len(seen) < 4000 || len(m.read) > 0 {
			select {
			case r := <-m.read:
				seen[string(r.Value)] = true
				place := fmt.Sprint(m == one, r.Partition)
				if before, ok := last[place]; ok && r.Offset < before && m == two {
					t.Errorf("member two read offset %d after %d", r.Offset, before)
				}
				last[place] = r.Offset
			case <-time.After(30 * time.Second):
				t.Fatalf("only %d of 4000 records were read", len(seen))
			}
		}
	}
}

func fetchIsBounded(t *testing.T, b broker) {
	const size, count, bound = 20_000, 2_000, 12 << 20
	c := open(t, b, kafka.Config{})
	topic := newTopic(t, c, kafka.Topic{Partitions: 2})
	records := numbered(topic, 0, count)
	for i := range records {
		records[i].Value = append(records[i].Value, make([]byte, size)...) // compresses to nothing
	}
	mustAppend(t, c, records...)
	_, generation := join(t, c, topic, topic)
	chunks := 0
	for got := 0; got < count; {
		records, err := generation.Fetch(testContext(t), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(records) * size; n > bound {
			t.Fatalf("fetch returned %d bytes, want %d at most", n, bound)
		}
		got += len(records)
		chunks++
	}
	if chunks < count*size/bound {
		t.Fatalf("all records came in %d chunks", chunks)
	}
}
