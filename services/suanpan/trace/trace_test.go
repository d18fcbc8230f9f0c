package trace_test

import (
	"bytes"
	"flag"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/rating"
	"github.com/suanpan/suanpan/services/suanpan/trace"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	root    = "../../.."
	openb   = root + "/../shared/data/alibaba-gpu-v2023/openb_pod_list_default.csv"
	example = root + "/deployments/example"
)

// start is 2025-08-01T00:00:00Z.
const start = 1_754_006_400

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (rewrite with -update; -want +got):\n%s", name, diff)
	}
}

func replayOf(t testing.TB, sessions []trace.Session, window time.Duration) *trace.Replay {
	t.Helper()
	r, err := trace.New(trace.OpenBSource, sessions, window)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func readOpenB(t testing.TB, name string) []trace.Session {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	sessions, err := trace.ReadOpenB(bytes.NewReader(data), start)
	if err != nil {
		t.Fatal(err)
	}
	return sessions
}

func generate(t testing.TB, f trace.Fleet) []trace.Session {
	t.Helper()
	sessions, err := f.Generate()
	if err != nil {
		t.Fatal(err)
	}
	return sessions
}

func lines(windows iter.Seq[trace.Window]) []byte {
	var out []byte
	for w := range windows {
		out = append(w.AppendJSON(out), '\n')
	}
	return out
}

func TestWindows_eventsOfAPodList(t *testing.T) {
	r := replayOf(t, readOpenB(t, "testdata/openb.csv"), time.Minute)
	golden(t, "testdata/openb.jsonl", lines(r.Windows()))
}

func TestNew_rejectsWindowsThatNoEventMayHave(t *testing.T) {
	for _, window := range []time.Duration{0, -time.Minute, 1500 * time.Millisecond, 25 * time.Hour} {
		if _, err := trace.New("/x", nil, window); err == nil {
			t.Errorf("window %s is accepted", window)
		}
	}
}

func TestNew_rejectsSessionsOutsideTheYears(t *testing.T) {
	amounts := []metering.Amount{{SKU: "gpu.openb", Milli: 1}}
	for _, s := range []trace.Session{
		{Name: "early", Start: -1, End: 10, Held: amounts},
		{Name: "late", Start: 10, End: metering.MaxSecond + 1, Held: amounts},
	} {
		if _, err := trace.New("/x", []trace.Session{s}, time.Minute); err == nil {
			t.Errorf("session %s is accepted", s.Name)
		}
	}
}

// Property: the windows of a session tile it, in order and aligned to its start; all windows come
// in the order of their ends; Total counts them.
func TestWindows_tileTheirSessions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.Int64Range(1, 500).Draw(t, "window")
		var sessions []trace.Session
		until := map[string]int64{} // end of the session's last window so far
		for i := range rapid.IntRange(0, 20).Draw(t, "sessions") {
			from := rapid.Int64Range(0, 2000).Draw(t, "from")
			s := trace.Session{
				Name: string(rune('a' + i)), Tenant: "t", Project: "p", Purchase: metering.OnDemand,
				Start: from, End: from + rapid.Int64Range(-5, 2000).Draw(t, "seconds"),
				Held: []metering.Amount{{SKU: "gpu.openb", Milli: 500}},
			}
			sessions = append(sessions, s)
			until[s.Name] = from
		}
		kept := append([]trace.Session(nil), sessions...)
		r, err := trace.New("/x", kept, time.Duration(window)*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		var count, last int64
		for w := range r.Windows() {
			count++
			s := w.Session
			if w.Start != until[s.Name] || w.End <= w.Start || w.End > s.End ||
				w.End != s.End && w.End-w.Start != window {
				t.Fatalf("session [%d, %d), windows of %d: window [%d, %d) after %d", s.Start, s.End,
					window, w.Start, w.End, until[s.Name])
			}
			if w.End < last {
				t.Fatalf("a window that ends at %d comes after one that ends at %d", w.End, last)
			}
			until[s.Name], last = w.End, w.End
		}
		for _, s := range sessions {
			if until[s.Name] != max(s.Start, s.End) {
				t.Fatalf("the windows of [%d, %d) end at %d", s.Start, s.End, until[s.Name])
			}
		}
		if count != r.Total() {
			t.Fatalf("%d windows, but Total is %d", count, r.Total())
		}
	})
}

// Property: an event is a function of its content: it is the same however the replay came to it,
// and different windows have different ids.
func TestAppendJSON_dependsOnContentAlone(t *testing.T) {
	sessions := readOpenB(t, "testdata/openb.csv")
	all := replayOf(t, append([]trace.Session(nil), sessions...), time.Minute)
	var whole []string
	for w := range all.Windows() {
		whole = append(whole, string(w.AppendJSON([]byte("kept "))))
	}
	var single []string
	for _, s := range sessions {
		for w := range replayOf(t, []trace.Session{s}, time.Minute).Windows() {
			single = append(single, string(w.AppendJSON([]byte("kept "))))
		}
	}
	byText := cmp.Transformer("sort", func(s []string) map[string]int {
		m := map[string]int{}
		for _, x := range s {
			m[x]++
		}
		return m
	})
	if diff := cmp.Diff(whole, single, byText); diff != "" {
		t.Errorf("together and alone (-together +alone):\n%s", diff)
	}
	ids := map[string]bool{}
	for _, text := range whole {
		id := strings.Split(text, `"`)[15]
		if len(id) != 32 || ids[id] {
			t.Errorf("id %q is no hash, or there twice", id)
		}
		ids[id] = true
	}
	for w := range replayOf(t, append([]trace.Session(nil), sessions...), 30*time.Second).Windows() {
		text := string(w.AppendJSON(nil))
		if w.End-w.Start == 30 && w.Start != w.Session.Start && ids[strings.Split(text, `"`)[15]] {
			t.Errorf("half a window has the id of the whole: %s", text)
		}
	}
}

// Every event of the generated fleet parses as the session and the window that it was made from.
func TestAppendJSON_parses(t *testing.T) {
	r := replayOf(t, generate(t, trace.Fleet{Seed: 7, Start: start, Days: 2, Tenants: 3}), time.Hour)
	parser := metering.NewParser()
	var e metering.Event
	for w := range r.Windows() {
		text := w.AppendJSON(nil)
		if why := parser.Parse(text, &e); why != nil {
			t.Fatalf("%s: %v", text, why)
		}
		if why := e.Problem(); why != nil {
			t.Fatalf("%s: %v", text, why)
		}
		s := w.Session
		from, until := e.Window()
		got := trace.Session{
			Name: e.Session, Tenant: e.Tenant, Project: e.Project, Purchase: e.Purchase,
			Start: e.Anchor(), End: s.End, Held: e.Amounts,
		}
		if from != w.Start || until != w.End || e.Lease != s.Name || e.Region != trace.Region {
			t.Fatalf("window [%d, %d) of %s became %s", w.Start, w.End, s.Name, text)
		}
		if diff := cmp.Diff(*s, got, cmp.AllowUnexported(metering.Quantity{})); diff != "" {
			t.Fatalf("session (-made +parsed):\n%s", diff)
		}
	}
}

func TestMarket_pricesOfTheExample(t *testing.T) {
	golden(t, filepath.Join(example, "market.jsonl"), trace.AppendMarket(nil, 1, start, 153))
}

// The example catalog has a price for every second of the fleet that it is for.
func TestExample_ratesTheFleetWithoutRejections(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(example, "catalog.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	documents, err := catalog.Parse("catalog.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range documents {
		if !d.Set && d.Kind != "Budget" { // a budget may begin after the usage it counts
			t.Errorf("%s has no effective_from: it could not be applied before past usage", d.ID())
		}
	}
	prices, err := catalog.New(documents)
	if err != nil {
		t.Fatal(err)
	}
	offline := rating.NewOffline(prices)
	parser := metering.NewParser()
	var e metering.Event
	market, err := os.ReadFile(filepath.Join(example, "market.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(market) {
		if why := parser.Parse(bytes.TrimSpace(line), &e); why != nil {
			t.Fatalf("%s: %v", line, why)
		}
		if why := offline.Price(&e); why != nil {
			t.Fatalf("%s: %v", line, why)
		}
	}
	fleet := trace.Fleet{Seed: 1, Start: start, Days: 150, Sessions: 1500, Tenants: 20}
	for w := range replayOf(t, generate(t, fleet), 24*time.Hour).Windows() {
		text := w.AppendJSON(nil)
		why := parser.Parse(text, &e)
		if why == nil {
			why = offline.Rate(&e)
		}
		if why != nil {
			t.Fatalf("%s: %v", text, why)
		}
	}
	settled, err := rating.Settle(offline.Ledger().Sums(), prices)
	if err != nil {
		t.Fatal(err)
	}
	summary := strings.Join(rating.Summary(settled), "\n")
	for _, part := range []string{
		",gpu.openb,on_demand,off_peak,", ",gpu.openb,on_demand,standard,", ",gpu.openb,spot,",
		",gpu.openb,reserved,", ",cpu.core,", ",memory.gib,", "tenant-00,2025-08,", "tenant-19,2025-12,",
	} {
		if !strings.Contains(summary, part) {
			t.Errorf("nothing was billed for %q", part)
		}
	}
}
