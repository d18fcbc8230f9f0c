package sim

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
)

var (
	seedFlag = flag.Uint64("seed", 1, "first seed")
	runsFlag = flag.Int("runs", 0, "seeds that are run; 0 is as many as fit a test")
	bugFlag  = flag.String("plantbug", "", "plant a bug that the simulator must find: "+
		strings.Join(slices.Sorted(maps.Keys(bugs)), ", "))
	traceFlag = flag.Bool("trace", false, "print what happens")
)

const (
	defaultRuns = 25
	maxDrain    = 900 // turns of a second in which all must be drained once the faults end
)

// bugs are those that can be planted, with what they stand for.
var bugs = map[string]string{
	"add":                "a row is added, not replaced",
	"last state wins":    "the store keeps the last state of an hour, not the larger one",
	"last consumed wins": "of repeated consumption the last counts, not the first",
	"commit before write": "offsets are committed before the rows are durable, so that a crash " +
		"loses them",
	"evict unacknowledged": "what is not durable yet is forgotten and read back as it was",
	"load nothing":         "a new generation does not load what the store has",
	"impatient":            "prices are taken for settled before the log can have them",
	"lose letters":         "dead letters are not written",
}

// buggyRows plants bugs of a rater between it and its store.
type buggyRows struct {
	pipeline.Rows
	bug string
	n   *node
}

func plantRows(bug string, rows pipeline.Rows, n *node) pipeline.Rows {
	return &buggyRows{Rows: rows, bug: bug, n: n}
}

func (b *buggyRows) Stored(ctx context.Context) (map[string]rating.Stored, error) {
	if b.bug == "load nothing" {
		return nil, nil
	}
	return b.Rows.Stored(ctx)
}

func (b *buggyRows) Find(ctx context.Context, need *rating.Need) (*rating.Known, error) {
	known, err := b.Rows.Find(ctx, need)
	if b.bug == "evict unacknowledged" && err == nil && b.n.w.chance(100) {
		known.Hours = nil
	}
	return known, err
}

func (b *buggyRows) Write(ctx context.Context, c *rating.Changes) error {
	if b.bug == "commit before write" && b.n.w.chance(300) {
		changes := *c
		b.n.w.at(b.n.w.now.Add(5*time.Second), func() {
			if b.n.alive {
				_ = b.Rows.Write(ctx, &changes)
			}
		})
		return nil
	}
	if done, err := b.plantClose(ctx, c); done {
		return err
	}
	return b.Rows.Write(ctx, c)
}

func (b *buggyRows) WriteDeadLetters(ctx context.Context, letters []pipeline.DeadLetter) error {
	if b.bug == "lose letters" && b.n.w.chance(100) {
		return nil
	}
	return b.Rows.WriteDeadLetters(ctx, letters)
}

// result is what came of a run.
type result struct {
	trace    uint64
	problems []string
	coverage map[string]int
}

// simulate runs one seed to its end.
func simulate(seed uint64, bug string, verbose bool) (r result) {
	w := newWorld(seed, bug, verbose)
	defer func() {
		if p := recover(); p != nil { // of the product's: it says that it found itself wrong
			w.fail("panic: %v\n%s", p, debug.Stack())
			r = result{w.trace.Sum64(), w.problems, w.coverage}
		}
		for _, n := range w.nodes {
			if n.job != nil {
				n.crash()
			}
		}
	}()
	base, err := time.Parse(time.RFC3339, bases[w.rng.IntN(len(bases))])
	if err != nil {
		panic("BUG: " + err.Error())
	}
	if seed%2 == 0 {
		base = newMonths(w)
	}
	w.start = base
	w.now = base.Add(-15 * time.Minute)
	duration := w.between(40*time.Minute, 90*time.Minute)
	w.fleet = newFleet(w, duration, 6+w.rng.IntN(5))
	w.advance(15 * time.Minute)
	w.faults = true
	c := raterConfig{
		stateBytes: []int64{3000, 20_000, 0}[w.rng.IntN(3)],
		flushRows:  []int{3, 30, 0}[w.rng.IntN(3)],
	}
	for range 1 + w.rng.IntN(3) {
		w.newRater(c)
	}
	for range 1 + w.rng.IntN(2) {
		w.newArchiver()
	}
	w.newSettler()
	if w.months != nil {
		for range 1 + w.rng.IntN(2) {
			w.newBiller()
		}
	}
	for w.now.Before(base.Add(duration)) || w.fleet.pending > 0 {
		w.advance(w.pace())
		w.chaos(c)
		w.turns()
		if len(w.problems) > 5 {
			break
		}
	}
	if w.months != nil {
		w.settleDown()
		w.goOn(c)
	}
	w.drain()
	w.check()
	for _, n := range w.nodes {
		if n.alive {
			n.leave()
		}
	}
	return result{w.trace.Sum64(), w.problems, w.coverage}
}

// pace is how long nothing happens but what is due.
func (w *world) pace() time.Duration {
	switch w.rng.IntN(4) {
	case 0:
		return w.between(10*time.Millisecond, 300*time.Millisecond)
	case 1, 2:
		return w.between(300*time.Millisecond, 3*time.Second)
	default:
		return w.between(3*time.Second, 12*time.Second)
	}
}

func (w *world) turns() {
	w.nodes = slices.DeleteFunc(w.nodes, func(n *node) bool { return !n.alive })
	for _, i := range w.rng.Perm(len(w.nodes)) {
		w.nodes[i].run()
	}
}

// chaos does to the machines what happens to machines.
func (w *world) chaos(c raterConfig) {
	var raters []*node
	for _, n := range w.nodes {
		if n.alive && n.group == w.raters {
			raters = append(raters, n)
		}
	}
	victim := raters[w.rng.IntN(len(raters))]
	switch n := w.rng.IntN(1000); {
	case n < 6:
		victim.crash()
		w.newRater(c)
	case n < 12:
		victim.pause(w.between(time.Second, 40*time.Second))
	case n < 15 && len(raters) < 3:
		w.newRater(c)
	case n < 18 && len(raters) > 1:
		victim.leave()
	case n < 26:
		w.raters.rebalance("by chance")
	case n < 29:
		w.archives.rebalance("by chance")
	case n < 32:
		for _, n := range w.nodes {
			if n.group == w.archives {
				n.crash()
				break
			}
		}
		w.newArchiver()
	case n < 35:
		w.settler.crash()
		w.newSettler()
	case n < 45 && w.months != nil:
		for _, n := range w.nodes {
			if n.alive && n.biller {
				n.crash()
				w.newBiller()
				break
			}
		}
	}
}

// drain ends the faults and goes on until nothing is left to do.
func (w *world) drain() {
	w.faults = false
	for _, n := range w.nodes {
		n.pausedUntil = time.Time{}
	}
	for range maxDrain {
		w.advance(time.Second)
		w.turns()
		if len(w.timers) == 0 && w.drained() {
			for range 20 { // the settler sees the last rows, every reader the last prices
				w.advance(time.Second)
				w.turns()
			}
			return
		}
	}
	w.fail("no progress: after %d turns without faults %v of %v is rated, %v archived; %d things are "+
		"under way; billers idle: %v", maxDrain, w.raters.committed, w.ends(), w.archives.committed,
		len(w.timers), w.billed())
}

func (w *world) ends() (ends [partitions]int64) {
	for p := range ends {
		ends[p] = int64(len(w.log.usage[p]))
	}
	return ends
}

func (w *world) drained() bool {
	for _, n := range w.nodes {
		if n.job != nil {
			return false
		}
	}
	return w.raters.committed == w.ends() && w.archives.committed == w.ends() && w.billed()
}

// TestSeeds runs seeds, each twice: the world must be right at the end and the same both times.
func TestSeeds(t *testing.T) {
	runs := *runsFlag
	if runs == 0 {
		runs = defaultRuns
	}
	if _, ok := bugs[*bugFlag]; !ok && *bugFlag != "" {
		t.Fatalf("there is no bug %q to plant", *bugFlag)
	}
	coverage := make(map[string]int)
	for i := range runs {
		seed := *seedFlag + uint64(i)
		first := simulate(seed, *bugFlag, *traceFlag)
		again := simulate(seed, *bugFlag, false)
		if first.trace != again.trace {
			first.problems = append(first.problems, "two runs of one seed differ")
		}
		if len(first.problems) > 0 {
			t.Fatalf("seed %d: %s\n\nrun it again: go test ./tests/sim -seed=%d -runs=1%s", seed,
				strings.Join(first.problems, "\n"), seed, plantArgument())
		}
		for what, n := range first.coverage {
			coverage[what] += n
		}
	}
	if runs < defaultRuns || *bugFlag != "" {
		return
	}
	for _, what := range mustMeet {
		if coverage[what] == 0 {
			t.Errorf("no run met %q: the simulator does not see it", what)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(coverage)) {
		t.Logf("%6d %s", coverage[what], what)
	}
}

func plantArgument() string {
	if *bugFlag == "" {
		return ""
	}
	return fmt.Sprintf(" -plantbug=%q", *bugFlag)
}

// mustMeet are things that some run must come across.
var mustMeet = []string{
	"rebalance", "zombie fetch", "zombie commit", "crash in a write", "producer's repeat",
	"pause past the session timeout", "older state after newer", "insert hours late",
	"insert hours in part", "insert hours late in part", "insert sessions in part",
	"append done but failed", "insert dead letters late", "archive late in part", "settle late",
	"letter invalid_json", "letter unknown_type", "letter invalid_event", "letter no_tenant",
	"letter invalid_window", "letter invalid_amount", "letter session_conflict", "letter no_price",
	"letter future", "letter misrouted", "letter price_mismatch",
	"document invoice", "document credit_note", "period decided", "decision ignored",
	"insert documents late", "insert closes fails", "re-rating",
	"credit by a person", "judged by a person", "credit of late events", "verified credit_note",
	"changed cell",
}

// TestPlantedBugs holds the simulator against bugs that it must find.
func TestPlantedBugs(t *testing.T) {
	const seeds = 40
	if *bugFlag != "" || *runsFlag != 0 {
		t.Skip("only the seeds that were asked for are run")
	}
	for _, bug := range slices.Sorted(maps.Keys(bugs)) {
		t.Run(bug, func(t *testing.T) {
			for seed := range uint64(seeds) {
				if _, ok := monthBugs[bug]; ok {
					seed = 2*seed + 1
				}
				if r := simulate(seed+1, bug, false); len(r.problems) > 0 {
					first, _, _ := strings.Cut(r.problems[0], "\n")
					t.Logf("found by seed %d: %s", seed+1, first)
					return
				}
			}
			t.Errorf("%d seeds do not find it: %s", seeds, bugs[bug])
		})
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
