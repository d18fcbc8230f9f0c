package trace_test

import (
	"bytes"
	"iter"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/services/suanpan/trace"
)

// parse fails the test unless every window makes an event that is accepted.
func parse(t *testing.T, windows iter.Seq[trace.Window]) {
	t.Helper()
	parser := metering.NewParser()
	var e metering.Event
	for w := range windows {
		text := w.AppendJSON(nil)
		why := parser.Parse(text, &e)
		if why == nil {
			why = e.Problem()
		}
		if why != nil {
			t.Fatalf("%s: %v", text, why)
		}
	}
}

// span names a window.
type span struct {
	session    string
	start, end int64
}

func spanOf(w trace.Window) span { return span{w.Session.Name, w.Start, w.End} }

// Property: noise loses nothing and invents nothing; what it repeats is marked, and equal seeds
// make equal noise.
func TestNoise_keepsTheSetOfWindows(t *testing.T) {
	fleet := trace.Fleet{Seed: 3, Start: start, Days: 1, Sessions: 30, Tenants: 3}
	r := replayOf(t, generate(t, fleet), 20*time.Minute)
	rapid.Check(t, func(t *rapid.T) {
		n := trace.Noise{
			Seed:      rapid.Uint64().Draw(t, "seed"),
			Duplicate: rapid.Float64Range(0, 1).Draw(t, "duplicate"),
			Shuffle:   rapid.IntRange(0, 300).Draw(t, "shuffle"),
			Late:      rapid.Float64Range(0, 1).Draw(t, "late"),
			LateBy:    time.Duration(rapid.IntRange(1, 100_000).Draw(t, "late by")) * time.Second,
		}
		if err := n.Check(); err != nil {
			t.Fatal(err)
		}
		firsts, repeats := map[span]int{}, map[span]int{}
		var order []span
		for w := range n.Apply(r.Windows()) {
			order = append(order, spanOf(w))
			if w.Repeat {
				repeats[spanOf(w)]++
			} else {
				firsts[spanOf(w)]++
			}
		}
		for w := range r.Windows() {
			if firsts[spanOf(w)] != 1 || repeats[spanOf(w)] > 1 {
				t.Fatalf("window %v came %d times, and %d times as a repeat", spanOf(w),
					firsts[spanOf(w)], repeats[spanOf(w)])
			}
		}
		if len(firsts) != int(r.Total()) {
			t.Fatalf("%d windows of %d", len(firsts), r.Total())
		}
		var again []span
		for w := range n.Apply(r.Windows()) {
			again = append(again, spanOf(w))
		}
		if !slices.Equal(order, again) {
			t.Fatal("the same noise differs the second time")
		}
	})
}

func TestNoise_doesWhatItIsAskedFor(t *testing.T) {
	fleet := trace.Fleet{Seed: 3, Start: start, Days: 10, Tenants: 3}
	r := replayOf(t, generate(t, fleet), time.Minute)
	total := float64(r.Total())
	calm := lines(r.Windows())
	f := func(what string, n trace.Noise, repeated, disordered float64) {
		t.Helper()
		var repeats, behind, now int64
		for w := range n.Apply(r.Windows()) {
			if w.Repeat {
				repeats++
			}
			if w.End < now {
				behind++
			}
			if n.Late > 0 && w.End+int64(n.LateBy/time.Second) < now {
				t.Fatalf("%s: a window comes later than %s", what, n.LateBy)
			}
			now = max(now, w.End)
		}
		if math.Abs(float64(repeats)/total-repeated) > 0.01 {
			t.Errorf("%s: %d of %.0f windows are repeated", what, repeats, total)
		}
		if got := float64(behind) / total; got < disordered-0.02 || disordered == 0 && got > 0 {
			t.Errorf("%s: %d of %.0f windows come after later ones", what, behind, total)
		}
	}
	f("nothing", trace.Noise{}, 0, 0)
	f("duplicates", trace.Noise{Duplicate: 0.05}, 0.05, 0)
	f("shuffled", trace.Noise{Shuffle: 1000}, 0, 0.5)
	f("late", trace.Noise{Late: 0.1, LateBy: 2 * time.Hour}, 0, 0.09)
	if !bytes.Equal(calm, lines((&trace.Noise{Seed: 9}).Apply(r.Windows()))) {
		t.Error("noise of nothing changed something")
	}
	if bytes.Equal(lines((&trace.Noise{Seed: 1, Shuffle: 10}).Apply(r.Windows())),
		lines((&trace.Noise{Seed: 2, Shuffle: 10}).Apply(r.Windows()))) {
		t.Error("other seeds make the same noise")
	}
}

// Whoever stops reading stops all of it.
func TestNoise_endsWhenItsReaderDoes(t *testing.T) {
	r := replayOf(t, generate(t, trace.Fleet{Seed: 3, Start: start, Days: 1, Tenants: 3}), time.Minute)
	for _, n := range []trace.Noise{
		{},
		{Duplicate: 1},
		{Shuffle: 10, Duplicate: 0.5},
		{Late: 0.5, LateBy: time.Hour},
		{Late: 1, LateBy: 1000 * time.Hour, Shuffle: 1 << 20},
	} {
		for limit := range 30 {
			count := 0
			for range n.Apply(r.Windows()) {
				if count++; count > limit {
					break
				}
			}
			if count != limit+1 {
				t.Errorf("noise %+v: %d windows until the stop after %d", n, count, limit+1)
			}
		}
	}
}

func TestNoise_rejectsWhatMakesNoSense(t *testing.T) {
	for _, n := range []trace.Noise{
		{Duplicate: -0.1},
		{Duplicate: 1.1},
		{Duplicate: math.NaN()},
		{Late: 2, LateBy: time.Hour},
		{Late: math.NaN(), LateBy: time.Hour},
		{Late: 0.5},
		{LateBy: -time.Second},
		{Shuffle: -1},
		{Shuffle: trace.MaxHeldBack + 1},
	} {
		if err := n.Check(); err == nil {
			t.Errorf("noise %+v is accepted", n)
		}
	}
}

// BenchmarkWindows makes and encodes all events of 149 days of a fleet like the real trace.
func BenchmarkWindows(b *testing.B) {
	sessions := generate(b, trace.Fleet{Seed: 1, Start: start, Days: 149, Sessions: 6203, Tenants: 20})
	r := replayOf(b, sessions, time.Minute)
	var buffer []byte
	var size int64
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		size = 0
		for w := range r.Windows() {
			buffer = w.AppendJSON(buffer[:0])
			size += int64(len(buffer))
		}
	}
	b.SetBytes(size)
	b.ReportMetric(float64(r.Total())*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
