package law

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/suanpan/suanpan/pkg/rating"
	"github.com/suanpan/suanpan/tests/audit"
	"github.com/suanpan/suanpan/tests/scenario"
)

var (
	firstSeed = flag.Uint64("seed", 1, "the first seed")
	runs      = flag.Int("runs", 0, "how many seeds; 0: as many as fit into some seconds")
)

// TestAgainstAuditor bills random worlds twice.
func TestAgainstAuditor(t *testing.T) {
	deadline := time.Now().Add(8 * time.Second)
	var billed, rejected, seeds int
	for seed := *firstSeed; ; seed++ {
		if *runs > 0 && seeds == *runs || *runs == 0 && seeds >= 50 && time.Now().After(deadline) {
			break
		}
		seeds++
		b, r := compare(t, seed)
		billed, rejected = billed+b, rejected+r
		if t.Failed() {
			t.Fatalf("to repeat it: go test ./tests/law -run TestAgainstAuditor -seed=%d -runs=1", seed)
		}
	}
	t.Logf("%d worlds with %d lines of summary and %d rejections", seeds, billed, rejected)
	if *runs == 0 && (billed < 100 || rejected < 20) {
		t.Errorf("the worlds are too poor: %d lines, %d rejections", billed, rejected)
	}
}

// compare bills one world both ways.
func compare(t *testing.T, seed uint64) (billed, rejected int) {
	w := newWorld(seed)
	text := w.catalog()
	events := w.usage()
	lines := make([][]byte, len(events))
	for i, e := range events {
		lines[i] = []byte(e)
	}
	wantCSV, wantRejected, err := audit.Rate([]byte(text), lines)
	if err != nil {
		t.Errorf("audit: %v\n%s", err, text)
		return 0, 0
	}
	summary, gotRejected, err := scenario.Product{}.Bill(text, events)
	if err != nil {
		t.Errorf("product: %v\n%s", err, text)
		return 0, 0
	}
	gotCSV := strings.Join(append([]string{rating.SummaryHeader}, summary...), "\n") + "\n"
	if got, want := strings.Join(gotRejected, "\n"), strings.Join(wantRejected, "\n"); got != want {
		t.Errorf("seed %d: the product rejects\n%s\nand the auditor\n%s\n%s", seed, got, want,
			w.show(text))
	}
	if gotCSV != wantCSV {
		t.Errorf("seed %d: the product bills\n%s\nand the auditor\n%s\n%s", seed, gotCSV, wantCSV,
			w.show(text))
	}
	compareDocuments(t, seed, w, text, lines)
	return strings.Count(wantCSV, "\n") - 1, len(wantRejected)
}

// compareDocuments closes periods, at some places early, and makes the documents of one world both
// ways.
func compareDocuments(t *testing.T, seed uint64, w *world, text string, lines [][]byte) {
	t.Helper()
	text += w.money()
	events := w.closes(lines)
	lines = make([][]byte, len(events))
	for i, e := range events {
		lines[i] = []byte(e)
	}
	want, wantRejected, err := audit.Bill([]byte(text), lines)
	if err != nil {
		t.Errorf("audit: %v\n%s", err, text)
		return
	}
	got, gotRejected, err := scenario.Product{}.Documents(text, events)
	if err != nil {
		t.Errorf("seed %d: product: %v\n%s\n%s", seed, err, text, strings.Join(events, "\n"))
		return
	}
	for i := range got {
		got[i] = scenario.ForAuditor(got[i])
	}
	difference := cmp.Diff(want, got) + cmp.Diff(wantRejected, gotRejected)
	if difference != "" {
		t.Errorf("seed %d: the auditor's documents and the product's (-want +got):\n%s\n%s\n%s", seed,
			difference, text, strings.Join(events, "\n"))
	}
}

func (w *world) show(text string) string { return text + strings.Join(w.events, "\n") }
