package sim

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
)

const (
	partitions     = 4
	sessionTimeout = 10 * time.Second
)

func partitionOf(tenant string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(tenant))
	return int(h.Sum32() % partitions)
}

// log holds every record that was ever appended.
type log struct {
	w       *world
	usage   [partitions][]pipeline.Record
	catalog []pipeline.Record
	market  []pipeline.Record
	letters []pipeline.Record
	billing []pipeline.Record
}

// append appends one record, and returns the position it got. Usage goes to a partition.
func (l *log) append(r pipeline.Record, partition int) {
	r.Time, r.Key, r.Value = l.w.now, slices.Clone(r.Key), slices.Clone(r.Value)
	r.Headers = slices.Clone(r.Headers)
	r.Partition = 0
	var to *[]pipeline.Record
	switch r.Topic {
	case schemas.TopicUsage:
		r.Partition = partition
		to = &l.usage[partition]
		l.w.fleet.order(r)
	case schemas.TopicCatalog:
		to = &l.catalog
	case schemas.TopicMarket:
		to = &l.market
	case schemas.TopicDeadLetter:
		to = &l.letters
	case schemas.TopicBilling:
		to = &l.billing
	default:
		panic("BUG: append to topic " + r.Topic)
	}
	r.Offset = int64(len(*to))
	*to = append(*to, r)
	l.w.event("log %s/%d/%d", r.Topic, r.Partition, r.Offset)
}

// appender is the log as a node's writes see it.
type appender struct{ n *node }

func (a appender) Append(_ context.Context, records ...pipeline.Record) error {
	return a.n.call("append", len(records), func(i int) {
		r := records[i]
		if r.Topic == schemas.TopicBilling && a.n.w.chance(100) {
			a.n.w.decideHeld() // of the same tenant, as it may be
		}
		a.n.w.log.append(r, partitionOf(string(r.Key)))
	})
}

// tail reads a topic of one partition.
type tail struct {
	n       *node
	records *[]pipeline.Record
	next    int
}

func (t *tail) ReadToEnd(context.Context) ([]pipeline.Record, error) {
	if t.n != nil {
		if err := t.n.read(30); err != nil {
			return nil, err
		}
	}
	records := slices.Clone((*t.records)[t.next:])
	t.next = len(*t.records)
	return records, nil
}

func (t *tail) Close() error { return nil }

// group is a consumer group of the usage topic.
type group struct {
	w         *world
	name      string
	number    int
	members   []*node
	owners    [partitions]*node
	committed [partitions]int64
	ended     map[int]time.Time // when each generation ended
}

func newGroup(w *world, name string) *group {
	return &group{w: w, name: name, ended: make(map[int]time.Time)}
}

// rebalance ends the generation and deals the partitions anew.
func (g *group) rebalance(why string) {
	g.ended[g.number] = g.w.now
	g.number++
	g.w.met("rebalance")
	g.w.event("%s rebalance to %d: %s", g.name, g.number, why)
	g.w.rng.Shuffle(len(g.members), func(i, j int) {
		g.members[i], g.members[j] = g.members[j], g.members[i]
	})
	for p := range g.owners {
		g.owners[p] = nil
		if len(g.members) > 0 {
			g.owners[p] = g.members[p%len(g.members)]
		}
	}
}

// remove takes a node out that left or was not heard of.
func (g *group) remove(n *node) {
	if i := slices.Index(g.members, n); i >= 0 {
		g.members = slices.Delete(g.members, i, i+1)
		g.rebalance(n.name + " is out")
	}
}

// membership is the group as one node sees it.
type membership struct {
	g *group
	n *node
}

func (m membership) Next(context.Context) (pipeline.Generation, error) {
	w := m.g.w
	if w.fault(50) {
		return nil, errFault
	}
	if !slices.Contains(m.g.members, m.n) {
		m.g.members = append(m.g.members, m.n)
		m.g.rebalance(m.n.name + " joins")
	}
	gen := &generation{
		g: m.g, n: m.n, number: m.g.number, next: make(map[int]int64),
		notice: w.between(0, 8*time.Second),
	}
	for p, owner := range m.g.owners {
		if owner == m.n {
			gen.parts = append(gen.parts, p)
			gen.next[p] = m.g.committed[p]
		}
	}
	w.event("%s of generation %d has %v from %v", m.n.name, gen.number, gen.parts, gen.next)
	return gen, nil
}

func (m membership) Close() error {
	m.g.remove(m.n)
	return nil
}

type generation struct {
	g      *group
	n      *node
	number int
	parts  []int
	next   map[int]int64
	notice time.Duration // how long its node does not know that it has ended
}

func (g *generation) Partitions() []int { return g.parts }

func (g *generation) ended() bool { return g.number != g.g.number }

func (g *generation) noticed() bool {
	return g.ended() && !g.g.w.now.Before(g.g.ended[g.number].Add(g.notice))
}

// Fetch returns records even to a zombie: the log does not know who may read.
func (g *generation) Fetch(context.Context, time.Duration) ([]pipeline.Record, error) {
	w := g.g.w
	if g.noticed() {
		g.n.finish() // the loop waits for its write, which cannot go on while we are here
		return nil, pipeline.ErrGenerationEnded
	}
	if w.fault(20) {
		return nil, errFault
	}
	var out []pipeline.Record
	budget := 1 + w.rng.IntN(60)
	for _, i := range w.rng.Perm(len(g.parts)) {
		p := g.parts[i]
		have := w.log.usage[p][g.next[p]:]
		have = have[:min(len(have), budget)]
		out = append(out, have...)
		g.next[p] += int64(len(have))
		budget -= len(have)
	}
	if len(out) > 0 {
		w.event("%s fetches %d", g.n.name, len(out))
		if g.ended() {
			w.met("zombie fetch")
		}
		g.n.fetched += len(out)
	}
	return out, nil
}

func (g *generation) Commit(_ context.Context, next map[int]int64) error {
	w := g.g.w
	if len(next) == 0 {
		return nil
	}
	next = maps.Clone(next)
	refused := false
	err := g.n.callOnce("commit", func() {
		if refused = g.ended(); refused {
			w.met("zombie commit")
			w.event("%s commit %v refused", g.n.name, next)
			return
		}
		g.commit(next)
	})
	if refused {
		return fmt.Errorf("commit: %w", pipeline.ErrGenerationEnded)
	}
	return err
}

func (g *generation) commit(next map[int]int64) {
	w := g.g.w
	for _, p := range slices.Sorted(maps.Keys(next)) {
		switch {
		case !slices.Contains(g.parts, p):
			w.fail("%s commits partition %d, which it does not have", g.n.name, p)
		case next[p] > int64(len(w.log.usage[p])):
			w.fail("%s commits %d of partition %d, beyond its end", g.n.name, next[p], p)
		case next[p] > g.g.committed[p]:
			for _, r := range w.log.usage[p][g.g.committed[p]:next[p]] {
				g.n.durable(r)
			}
			g.g.committed[p] = next[p]
		}
	}
	w.event("%s commits %v", g.n.name, next)
}
