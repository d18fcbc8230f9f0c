package sim

import (
	"testing"
	"time"
)

// TestBackPressure takes the store down while events flow. Commits stop, the rater goes on within
// its bounds and comes back by itself, and nothing is lost.
func TestBackPressure(t *testing.T) {
	const flushRows = 10
	w := newWorld(7, "", false)
	start, err := time.Parse(time.RFC3339, bases[0])
	if err != nil {
		t.Fatal(err)
	}
	w.start, w.now = start, start.Add(-15*time.Minute)
	w.fleet = newFleet(w, 80*time.Minute, 40)
	w.advance(15 * time.Minute)
	w.newRater(raterConfig{flushRows: flushRows})
	rater := w.nodes[0]
	w.newArchiver()
	w.newSettler()
	step := func(d time.Duration) {
		w.advance(d)
		w.turns()
	}
	for w.now.Before(start.Add(20 * time.Minute)) {
		step(time.Second)
	}
	if w.raters.committed == [partitions]int64{} {
		t.Fatal("nothing was committed while the store was up")
	}

	w.store.down = true
	for rater.errors == 0 { // what changes no row may still be committed before
		step(time.Second)
	}
	before, fetched := w.raters.committed, rater.fetched
	for down := w.now.Add(20 * time.Minute); w.now.Before(down); {
		step(time.Second)
	}
	if w.raters.committed != before {
		t.Errorf("committed %v while the store was down, %v before", w.raters.committed, before)
	}
	if rater.errors < 10 || rater.blocked == 0 {
		t.Errorf("%d errors, %d times blocked: it must try again, and read no more", rater.errors,
			rater.blocked)
	}
	// One write is under way, and one more is gathered; the last fetch may go beyond it.
	held, waiting := rater.fetched-fetched, 0
	for p, end := range w.ends() {
		waiting += int(end - before[p])
	}
	if most := 2*flushRows + 60; held > most || held == 0 || waiting <= most {
		t.Errorf("%d of %d new records are held, want at most %d, and more in the log", held,
			waiting, most)
	}
	rows := len(w.store.hours)

	w.store.down = false
	for w.fleet.pending > 0 {
		step(time.Second)
	}
	w.drain()
	w.check()
	if len(w.store.hours) <= rows {
		t.Errorf("the store has %d rows, as before", rows)
	}
	for _, problem := range w.problems {
		t.Error(problem)
	}
	for _, n := range w.nodes {
		n.leave()
	}
}
