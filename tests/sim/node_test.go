package sim

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
)

// node is a machine that runs one loop. When it crashes, a new one takes its place.
type node struct {
	w           *world
	name        string
	skew        time.Duration // of its clock
	alive       bool
	pausedUntil time.Time
	pausedAt    time.Time

	step    func(ctx context.Context, now time.Time) error
	stop    func()
	durable func(pipeline.Record) // checks that a record that is committed is durable
	group   *group
	prices  *pipeline.Prices

	biller bool
	job    *job
	hurry  bool // its calls must return
	errors int

	fetched int // records
	blocked int // times
}

// job is a write that runs while its loop goes on. It runs only in turns that the world gives it,
// so that there is never more than one thing that runs.
type job struct {
	resume  func() (struct{}, bool)
	abandon func()
	yield   func(struct{}) bool
	running bool
	gone    bool
}

// background is a rater's Background: at once, later, in part or never.
func (n *node) background(write func()) {
	if n.job != nil {
		n.w.fail("%s has two writes under way", n.name)
	}
	j := new(job)
	j.resume, j.abandon = iter.Pull(func(yield func(struct{}) bool) {
		j.yield = yield
		write()
	})
	n.job = j
	if !n.w.faults || n.w.chance(300) {
		n.turn()
	}
}

// turn lets the write go on until it waits for something.
func (n *node) turn() {
	j := n.job
	if j == nil {
		return
	}
	j.running = true
	_, more := j.resume()
	j.running = false
	if !more {
		n.job = nil
	}
}

// finish lets the write come to its end: its context was cancelled, or it is waited for.
func (n *node) finish() {
	n.hurry = true
	for n.job != nil {
		n.turn()
	}
	n.hurry = false
}

// wait returns when an instant has come, or with an error when it will not.
func (n *node) wait(until time.Time) error {
	j := n.job
	if j == nil || !j.running {
		return nil
	}
	for first := true; first && n.w.chance(200) || n.w.now.Before(until); first = false {
		switch {
		case j.gone:
			return errGone
		case n.hurry:
			return errCancelled
		case !j.yield(struct{}{}):
			j.gone = true
			return errGone
		}
	}
	return nil
}

func (n *node) isGone() bool { return n.job != nil && n.job.gone }

// call makes a request of several parts.
func (n *node) call(what string, parts int, effect func(part int)) error {
	w := n.w
	if n.isGone() {
		return errGone
	}
	if err := n.wait(w.now); err != nil {
		return err
	}
	f := w.fate()
	if (n.job == nil || !n.job.running) && f.err == nil {
		f.lands, f.answer = 0, 0 // a loop that waits does nothing else
	}
	w.event("%s %s of %d: %s", n.name, what, parts, f.kind)
	w.met(what + " " + f.kind)
	if f.lands >= 0 {
		chosen := make([]bool, parts)
		for i := range chosen {
			chosen[i] = !f.part || w.chance(500)
		}
		w.at(w.now.Add(f.lands), func() {
			if f.lands > 0 {
				w.event("%s's %s lands", n.name, what)
			}
			for i, yes := range chosen {
				if yes {
					effect(i)
				}
			}
		})
	}
	if err := n.wait(w.now.Add(f.answer)); err != nil {
		return err
	}
	return f.err
}

// callOnce makes a request that is done at once or not at all.
func (n *node) callOnce(what string, effect func()) error {
	w := n.w
	if n.isGone() {
		return errGone
	}
	if err := n.wait(w.now); err != nil {
		return err
	}
	f := w.fate()
	w.event("%s %s: %s", n.name, what, f.kind)
	if f.lands >= 0 && !f.part {
		effect()
	} else if f.err == nil {
		f.err = errFault
	}
	if err := n.wait(w.now.Add(f.answer)); err != nil {
		return err
	}
	return f.err
}

// run gives the node a turn.
func (n *node) run() {
	if !n.alive || n.w.now.Before(n.pausedUntil) {
		return
	}
	n.pausedUntil = time.Time{}
	if n.w.chance(700) {
		n.turn()
	}
	if n.w.faults && n.w.chance(200) {
		return // slow
	}
	if err := n.step(context.Background(), n.w.now.Add(n.skew)); err != nil {
		n.errors++
		n.w.event("%s: %v", n.name, err)
	}
	if !n.w.faults {
		n.turn()
	}
}

// crash ends the node as it is.
func (n *node) crash() {
	n.w.event("%s crashes", n.name)
	n.alive = false
	if n.job != nil {
		n.w.met("crash in a write")
		n.job.gone = true
		n.job.abandon()
		n.job = nil
	}
	n.expireSoon()
}

// leave ends the node in an orderly way.
func (n *node) leave() {
	n.w.event("%s leaves", n.name)
	n.finish()
	if n.stop != nil {
		n.stop()
	}
	n.alive = false
	if n.group != nil {
		n.group.remove(n)
	}
}

// pause stops the node for a while. Its group goes on without it after the session timeout.
func (n *node) pause(d time.Duration) {
	n.w.event("%s pauses for %s", n.name, d)
	n.pausedAt, n.pausedUntil = n.w.now, n.w.now.Add(d)
	if d > sessionTimeout {
		n.w.met("pause past the session timeout")
		n.expireSoon()
	}
}

func (n *node) expireSoon() {
	if n.group != nil {
		n.w.at(n.w.now.Add(sessionTimeout), func() {
			if !n.alive || n.w.now.Before(n.pausedUntil) {
				n.group.remove(n)
			}
		})
	}
}

func (w *world) newNode(kind string) *node {
	w.counter++
	n := &node{w: w, name: fmt.Sprintf("%s-%d", kind, w.counter), alive: true}
	n.skew = w.between(-2*time.Second, 2*time.Second)
	n.prices = pipeline.NewPrices(&tail{n: n, records: &w.log.catalog},
		&tail{n: n, records: &w.log.market})
	w.nodes = append(w.nodes, n)
	w.event("%s starts", n.name)
	return n
}

// raterConfig are the bounds that a world's raters have.
type raterConfig struct {
	stateBytes int64
	flushRows  int
}

func (w *world) newRater(c raterConfig) {
	n := w.newNode("rater")
	n.group = w.raters
	n.durable = w.ratedDurably
	var rows pipeline.Rows = rows{n, w.store}
	rater := pipeline.NewRater(pipeline.RaterConfig{
		Group: membership{w.raters, n}, Rows: plantRows(w.bug, rows, n), Log: appender{n},
		Prices: n.prices, Partition: partitionOf, StateBytes: c.stateBytes, FlushRows: c.flushRows,
		Background: n.background,
	})
	n.stop = rater.Stop
	n.step = func(ctx context.Context, now time.Time) error {
		if w.bug == "impatient" {
			now = now.Add(time.Minute)
		}
		report, err := rater.Step(ctx, now)
		if report.Records+report.Rows+report.Commits > 0 || len(report.Rejected) > 0 {
			w.event("%s: %d records, %d accepted, %d forwarded, rejected %v, %d rows, %d bytes",
				n.name, report.Records, report.Accepted, report.Forwarded, report.Rejected,
				report.Rows, report.State)
		}
		if report.Blocked {
			n.blocked++
		}
		return err
	}
}

func (w *world) newArchiver() {
	n := w.newNode("archiver")
	n.group = w.archives
	n.durable = func(r pipeline.Record) {
		if _, ok := w.store.archive[place{schemas.TopicUsage, r.Partition, r.Offset}]; !ok {
			w.fail("%s commits record %d/%d, which is not archived", n.name, r.Partition, r.Offset)
		}
	}
	archiver := pipeline.NewArchiver(membership{w.archives, n}, archive{n, w.store})
	n.step = func(ctx context.Context, now time.Time) error {
		_, err := archiver.Step(ctx, now)
		return err
	}
}

func (w *world) newSettler() {
	n := w.newNode("settler")
	w.settler = n
	settler := pipeline.NewSettler(settlements{n, w.store}, n.prices)
	n.step = func(ctx context.Context, now time.Time) error {
		_, err := settler.Step(ctx, now)
		if err != nil && strings.Contains(err.Error(), "its quantity is -") {
			w.met("settled half of a re-rating") // any of its charges is named
			return errFault
		}
		return err
	}
}
