package sim

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/pipeline"
)

// alertBugs are those that can be planted in billers.
var alertBugs = map[string]string{
	"no overlap":     "rows that land after a look, of a statement that began before it, are missed",
	"old rows":       "what is read of a day is older than what the look before has seen touched",
	"ids of its own": "each biller gives a message an id of its own",
	"write first":    "what is written as told was not taken for delivery yet",
}

const (
	alertStep  = 2 * time.Minute
	alertSteps = 1000 // a day and a half
)

// simulateAlerts runs one seed to its end.
func simulateAlerts(seed uint64, bug string, verbose bool) (r result) {
	w := newAlertWorld(seed, bug, verbose)
	defer func() {
		if p := recover(); p != nil {
			w.fail("panic: %v\n%s", p, debug.Stack())
		}
		r = result{w.trace.Sum64(), w.problems, w.coverage}
	}()
	for range alertSteps {
		w.now = w.now.Add(alertStep)
		w.use()
		w.change()
		for _, b := range w.billers {
			if !w.now.Before(b.due) {
				b.turn()
				b.due = w.now.Add(time.Duration(1+w.rng.IntN(5)) * alertStep)
			}
		}
		if len(w.problems) > 0 {
			return r
		}
	}
	w.settle()
	return r
}

// settle ends the faults, has all that is due be told, and looks at what came of it.
func (w *alertWorld) settle() {
	w.faults = false
	w.now = w.now.Add(10 * time.Minute) // all rows have landed, the newest catalog holds
	for _, b := range w.billers {
		b.skew = 0
		b.turn()
	}
	for _, b := range w.billers {
		b.turn() // and read what the other decided last
	}
	w.checkComplete()
	for range 40 { // attempts that failed are hours apart in the end
		w.now = w.now.Add(time.Hour)
		for _, b := range w.billers {
			if _, err := b.deliverer.Step(context.Background(), w.now); err != nil {
				w.fail("deliver: %v", err)
			}
		}
	}
	w.checkTold()
}

// turn is a look of a biller and a step of its delivery. A process that dies is started again.
func (b *alertBiller) turn() {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if _, ok := p.(crashed); !ok {
			panic(p)
		}
		b.w.event("%s died: %v", b.name, p)
		i := slices.Index(b.w.billers, b)
		b.w.billers[i] = b.w.newBiller(b.name)
	}()
	w := b.w
	if w.chance(10) {
		b.skew = time.Duration(w.rng.IntN(7)-3) * time.Second
	}
	if w.chance(2) { // the clock is wrong, by up to a day and a half
		b.skew = time.Duration(w.rng.IntN(72)-36) * time.Hour
		w.coverage["clock step"]++
	}
	if w.chance(30) && b.skew.Abs() > time.Minute {
		b.skew = 0
	}
	if _, err := b.alerter.Step(context.Background(), w.now.Add(b.skew)); err != nil {
		w.event("%s: %v", b.name, err)
	}
	if _, err := b.deliverer.Step(context.Background(), w.now); err != nil {
		w.event("%s: deliver: %v", b.name, err)
	}
}

// use writes rows: more of this hour, of one long past, or less where seconds were voided.
func (w *alertWorld) use() {
	for range w.rng.IntN(3) {
		r := usedRow{
			tenant:  []string{"acme", "blue"}[w.rng.IntN(2)],
			project: []string{"p", "q"}[w.rng.IntN(2)],
			hour:    w.now.Unix() / 3600, began: w.now.Add(-time.Duration(w.rng.IntN(20)) * time.Second),
			version: len(w.hours),
		}
		if w.rng.IntN(8) == 0 {
			r.hour -= w.rng.Int64N(40)
			w.coverage["late usage"]++
		}
		r.lands = r.began.Add(time.Duration(w.rng.IntN(100)) * time.Second)
		for _, old := range w.hours {
			if old.key() == r.key() {
				r.seconds = old.seconds
			}
		}
		if w.rng.IntN(6) == 0 {
			r.seconds -= w.rng.Int64N(r.seconds + 1)
			w.coverage["void"]++
		} else {
			r.seconds = min(3600, r.seconds+w.rng.Int64N(900))
		}
		w.hours = append(w.hours, r)
	}
}

// change applies a version of a budget, now and then: a new amount, another period or scope, or its
// end.
func (w *alertWorld) change() {
	if w.rng.IntN(60) != 0 && len(w.catalog) > 6 {
		return
	}
	n := w.rng.IntN(4)
	head := fmt.Sprintf(`{"kind":"Budget","name":"b%d","tenant":%q,"effective_from":%q`, n,
		[]string{"acme", "blue"}[n%2], w.now.Add(time.Minute).Format(time.RFC3339))
	if w.rng.IntN(6) == 0 && len(w.catalog) > 6 {
		w.coverage["budget deleted"]++
		w.document(head+`,"deleted":true}`, false)
		return
	}
	scope := ""
	if w.rng.IntN(3) == 0 {
		scope = `"scope":{"project":"p"},`
	}
	w.document(fmt.Sprintf(`%s,%s"period":%q,"amount":"%d","notify":[{"webhook":"https://h.example"}]}`,
		head, scope, []string{"day", "month"}[w.rng.IntN(2)],
		[]int{2000, 9000, 30_000, 60_000}[w.rng.IntN(4)]), false)
	w.coverage["budget"]++
}

// spent is what a budget has of a period, of the rows that can be seen: its own account.
func (w *alertWorld) spent(b *catalog.Budget, period string) int64 {
	layout := "2006-01"
	if b.Daily {
		layout = time.DateOnly
	}
	sum := int64(0)
	for _, r := range w.seen() {
		if r.tenant == b.Tenant && (b.Project == "" || b.Project == r.project) &&
			time.Unix(r.hour*3600, 0).In(w.zone).Format(layout) == period {
			sum += r.seconds
		}
	}
	return sum
}

// reached reports whether a spend is at a threshold of a budget.
func reached(b *catalog.Budget, threshold string, spent int64) bool {
	limit := b.Amount.Mul(money.MustParse(threshold))
	return spent > 0 && money.MustParse(fmt.Sprint(spent)).Cmp(limit) >= 0
}

// check holds a decision against the budget and the spend of the moment at which it is made.
func (b *alertBiller) check(r *pipeline.Record) {
	w := b.w
	parsed, err := billing.ParseRecord(r.Value)
	if err != nil || parsed.Alert == nil {
		w.fail("%s appends %s: %v", b.name, r.Value, err)
		return
	}
	a := parsed.Alert
	clock := w.now.Add(b.skew)
	if err := w.truth.Refresh(context.Background(), w.now); err != nil {
		w.fail("read catalog: %v", err)
	}
	var budget *catalog.Budget
	for _, v := range w.truth.Catalog.Budgets(clock.Unix()) {
		if v.Name == a.Name && v.From == a.Version {
			budget = v
		}
	}
	switch {
	case a.Status == alert.Firing && budget == nil:
		w.fail("%s fires %s, which is not in force", b.name, a.Key)
	case a.Status == alert.Firing:
		if now := w.truth.Catalog.PeriodOf(budget, clock.Unix()); now != a.Period {
			w.fail("%s fires %s in %s", b.name, a.Key, now)
		}
		if spent := w.spent(budget, a.Period); !reached(budget, a.Threshold, spent) {
			w.fail("%s fires %s at %d of %s", b.name, a.Key, spent, budget.Amount)
		}
		w.coverage["firing"]++
	case a.Why == alert.Recovered:
		if spent := w.spent(budget, a.Period); reached(budget, a.Threshold, spent) {
			w.fail("%s resolves %s at %d of %s", b.name, a.Key, spent, budget.Amount)
		}
		w.coverage["recovered"]++
	default:
		w.coverage[string(a.Why)]++
	}
}

// counted are the decisions that count, by alert and status: the first of each, of those that are
// about something that fires.
func (w *alertWorld) counted() map[string]*alert.Alert {
	out := make(map[string]*alert.Alert)
	for _, a := range w.decisions() {
		key := a.Key + " " + string(a.Status)
		if out[key] != nil {
			w.coverage["decided twice"]++
			continue
		}
		if a.Status == alert.Resolved && out[a.Key+" "+string(alert.Firing)] == nil {
			w.fail("%s is resolved and never fired", a.Key)
		}
		out[key] = a
	}
	return out
}

// checkComplete sees that every threshold that is reached has fired.
func (w *alertWorld) checkComplete() {
	counted := w.counted()
	if err := w.truth.Refresh(context.Background(), w.now); err != nil {
		w.fail("read catalog: %v", err)
	}
	for _, b := range w.truth.Catalog.Budgets(w.now.Unix()) {
		period := w.truth.Catalog.PeriodOf(b, w.now.Unix())
		for _, threshold := range []string{"0.8", "1"} {
			fired := false
			for _, a := range counted {
				fired = fired || a.Status == alert.Firing && a.Name == b.Name && a.Version == b.From &&
					a.Period == period && a.Threshold == threshold
			}
			if spent := w.spent(b, period); !fired && reached(b, threshold, spent) {
				w.fail("budget %s since %s has %d of %s in %s, and %s never fired", b.Name,
					metering.InstantOf(b.From), spent, b.Amount, period, threshold)
			}
		}
	}
}

// checkTold sees that each decision was received, always as the same message, and nothing else.
func (w *alertWorld) checkTold() {
	counted := w.counted()
	for key, a := range counted {
		ids := w.received[key]
		switch {
		case len(a.To) == 0 && len(ids) > 0:
			w.fail("%s was told, and is for nobody", key)
		case len(a.To) > 0 && len(ids) != 1:
			w.fail("%s was received as %d messages: %v", key, len(ids), ids)
		}
	}
	for key := range w.received {
		if counted[key] == nil {
			w.fail("%s was received, and never decided", key)
		}
	}
}

// TestAlertSeeds runs seeds, each twice: what billers told must be right, and the same both times.
func TestAlertSeeds(t *testing.T) {
	runs := *runsFlag
	if runs == 0 {
		runs = defaultRuns
	}
	coverage := make(map[string]int)
	for i := range runs {
		seed := *seedFlag + uint64(i)
		first := simulateAlerts(seed, "", *traceFlag)
		if again := simulateAlerts(seed, "", false); first.trace != again.trace {
			first.problems = append(first.problems, "two runs of one seed differ")
		}
		if len(first.problems) > 0 {
			t.Fatalf("seed %d: %s\n\nrun it again: go test ./tests/sim -run AlertSeeds -seed=%d -runs=1",
				seed, strings.Join(first.problems, "\n"), seed)
		}
		for what, n := range first.coverage {
			coverage[what] += n
		}
	}
	for _, what := range []string{
		"firing", "recovered", "over", "ended", "decided twice", "rival in between", "late usage",
		"void", "clock step", "received, and the answer lost", "crash before appending",
		"crash after appending", "crash before taking", "crash after taking", "crash after writing",
		"append done in part, or all, but failed", "budget deleted",
	} {
		if coverage[what] == 0 && runs >= defaultRuns {
			t.Errorf("no run met %q: the simulator does not see it", what)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(coverage)) {
		t.Logf("%6d %s", coverage[what], what)
	}
}

// TestAlertBugs holds the simulator against bugs that it must find.
func TestAlertBugs(t *testing.T) {
	const seeds = 40
	for bug, means := range alertBugs {
		t.Run(bug, func(t *testing.T) {
			for seed := range uint64(seeds) {
				if r := simulateAlerts(seed+1, bug, false); len(r.problems) > 0 {
					first, _, _ := strings.Cut(r.problems[0], "\n")
					t.Logf("found by seed %d: %s", seed+1, first)
					return
				}
			}
			t.Errorf("%d seeds do not find it: %s", seeds, means)
		})
	}
}
