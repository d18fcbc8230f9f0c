package clickhouse

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
	"github.com/suanpan/suanpan/schemas"
)

// put writes the sessions of a world, and archives what was heard of them, from an offset on.
func (w *watched) put(t testing.TB, s *Store, offset int64) {
	t.Helper()
	if err := s.writeSessions(t.Context(), w.sessions); err != nil {
		t.Fatal(err)
	}
	records := make([]pipeline.Record, len(w.events))
	for i, h := range w.events {
		h.offset = offset + int64(i)
		records[i] = h.record(t)
	}
	if err := s.Archive(t.Context(), append(records, records[:len(records)/2]...)); err != nil {
		t.Fatal(err)
	}
}

// glance is a world, and when and how it is looked at.
type glance struct {
	*watched
	now, from, until    time.Time
	span, after, within time.Duration
	tidy                bool // see drawWatched
}

func drawGlance(t *rapid.T, prefix string) *glance {
	g := &glance{tidy: rapid.Bool().Draw(t, "tidy")}
	g.watched = drawWatched(t, prefix, g.tidy)
	g.now = watchNow.Add(time.Duration(rapid.IntRange(-600_000, 600_000).Draw(t, "now")) *
		time.Millisecond)
	if g.tidy {
		g.now = g.now.Truncate(time.Second)
	}
	minutes := func(name string, least int) time.Duration {
		return time.Duration(rapid.IntRange(least, 45).Draw(t, name)) * time.Minute
	}
	g.span, g.after, g.within = minutes("span", 1), minutes("after", 0), minutes("within", 30)
	g.from, g.until = g.now.Add(-minutes("from", 5)), g.now.Add(-minutes("until", 0))
	return g
}

// Property: whatever comes, again, late, overlapping or nonsense, what is watched is what counting
// second by second finds; and the queries of findings show their figures.
func TestWatch_isWhatCountingFinds(t *testing.T) {
	s, seeds, found := store(t), 40, [4]int{}
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		prefix := fmt.Sprintf("w%d-", seed)
		g := rapid.Custom(func(t *rapid.T) *glance { return drawGlance(t, prefix) }).Example(seed)
		g.put(t, s, int64(seed)*1000)
		all, err := s.Loads(t.Context(), g.now, g.span)
		loads := same(t, prefix, g.loads(g.now, g.span), all, err,
			func(l alert.Load) (string, string) { return l.Tenant, l.Session })
		seen, _, err := s.Silent(t.Context(), g.now, g.after, g.within)
		silent := same(t, prefix, g.silent(g.now, g.after, g.within), seen, err,
			func(l alert.LastSeen) (string, string) { return l.Tenant, l.Session })
		held, err := s.Cards(t.Context(), g.from, g.until)
		cards := same(t, prefix, g.cards(g.from, g.until), held, err,
			func(c alert.CardLoad) (string, string) { return c.Node, c.Card })
		used, err := s.BusyBetween(t.Context(), g.from, g.until)
		busy := same(t, prefix, g.busy(g.from, g.until), used, err,
			func(b alert.Busy) (string, string) { return b.Tenant, b.Project + "\xff" + b.SKU })
		for i, n := range []int{len(loads), len(silent), len(cards), len(busy)} {
			found[i] += n
		}
		if g.tidy {
			showsLoads(t, s, loads)
			showsCards(t, s, cards, g.from, g.until)
			showsSilent(t, s, silent)
		}
	}
	if slices.Min(found[:]) < seeds/8 {
		t.Errorf("the worlds are too small to show anything: %v", found)
	}
}

// same compares what is of the tenants, or nodes, of a world, by two names, and returns it.
func same[V any](t *testing.T, prefix string, want, got []V, err error,
	names func(V) (string, string),
) []V {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	got = slices.DeleteFunc(got, func(v V) bool {
		first, _ := names(v)
		return !strings.HasPrefix(first, prefix)
	})
	byName := func(a, b V) int {
		a1, a2 := names(a)
		b1, b2 := names(b)
		return cmp.Or(strings.Compare(a1, b1), strings.Compare(a2, b2))
	}
	if !slices.IsSortedFunc(got, byName) {
		t.Errorf("%s: they are not sorted: %+v", prefix, got)
	}
	slices.SortFunc(want, byName)
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%s (-counted +store):\n%s", prefix, diff)
	}
	return got
}

func showsLoads(t *testing.T, s *Store, loads []alert.Load) {
	t.Helper()
	for i := range loads {
		l := &loads[i]
		show(t, s, alert.QueryLoad(l), []string{
			"toUnixTimestamp(since)", "toUnixTimestamp(until)", "covered",
			"round(ifNull(mean_percent, 0) * 10000)", "round(ifNull(peak_percent, 0) * 10000)",
			"ifNull(`max(mem_used)`, 0)", "ifNull(`max(mem_total)`, 0)",
		}, l.From, l.Until, l.Covered, l.Mean, l.Peak, l.MemoryUsed, l.MemoryTotal)
	}
}

func showsCards(t *testing.T, s *Store, cards []alert.CardLoad, from, until time.Time) {
	t.Helper()
	for i := range cards {
		show(t, s, alert.QueryCard(&cards[i], from.Unix(), until.Unix()), []string{
			"any(all_covered)", "round(any(all_mean_percent) * 10000)", "sum(covered)",
			"abs(sum(mean_percent * covered) / sum(covered) - any(all_mean_percent)) < 0.001",
		}, cards[i].Held, cards[i].Mean, cards[i].Held, 1)
	}
}

func showsSilent(t *testing.T, s *Store, silent []alert.LastSeen) {
	t.Helper()
	for i := range silent {
		show(t, s, alert.QuerySilent(&silent[i]), []string{
			"toUnixTimestamp(max(until))", "max((until, multiIf(isNull(final), 0, final, 2, 1))).2",
		}, silent[i].Until, 1)
	}
}

// show fails where columns of the result of a query are not the figures of a finding.
func show(t *testing.T, s *Store, query string, columns []string, figures ...any) {
	t.Helper()
	want := strings.TrimSuffix(fmt.Sprintln(figures...), "\n")
	var parts []string
	for _, c := range columns {
		parts = append(parts, "toString("+c+")")
	}
	var got string
	err := s.conn.QueryRow(t.Context(), "SELECT concatWithSeparator(' ', "+
		strings.Join(parts, ", ")+") FROM ("+query+")").Scan(&got)
	if err != nil || got != want {
		t.Fatalf("it shows %q, want %q, %v:\n%s", got, want, err, query)
	}
}

func TestBusy_queryShowsItsFigures(t *testing.T) {
	s := store(t)
	held := func(tenant, project, session, sku string, milli int64) rating.SessionRow {
		return rating.SessionRow{
			SessionKey: rating.SessionKey{Tenant: tenant, Session: session}, SKU: sku, Milli: milli,
			Facts: metering.Facts{Project: project, Node: "n", Purchase: metering.OnDemand},
		}
	}
	w := &watched{sessions: []rating.SessionRow{
		held("it's", "p", "a", "gpu.a", 2000), held("it's", "p", "a", "cpu.core", 16_000),
		held("it's", "q", "b", "gpu.a", 500), held("other", "p", "c", "npu.b", 1000),
	}}
	for _, e := range []struct{ tenant, session, util string }{
		{"it's", "a", "0.25"}, {"it's", "b", "1"}, {"other", "c", "0.5"}, {"other", "unknown", "0"},
	} {
		w.events = append(w.events, &heard{
			tenant: e.tenant, session: e.session, node: "n", util: e.util, start: watchNow,
			end: watchNow.Add(time.Hour),
		})
	}
	w.put(t, s, 1)
	from, until := watchNow, watchNow.Add(time.Hour)
	busy, err := s.BusyBetween(t.Context(), from, until)
	want := []alert.Busy{
		{Tenant: "it's", Project: "p", SKU: "gpu.a", Held: 7_200_000, Used: 1_800_000},
		{Tenant: "it's", Project: "q", SKU: "gpu.a", Held: 1_800_000, Used: 1_800_000},
		{Tenant: "other", Project: "p", SKU: "npu.b", Held: 3_600_000, Used: 1_800_000},
	}
	if diff := gocmp.Diff(want, busy); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	f := func(tenants, projects, skus []string, rows int, heldSum, usedSum, first, all any) {
		t.Helper()
		show(t, s, alert.QueryBusy(from.Unix(), until.Unix(), tenants, projects, skus), []string{
			"count()", "sum(held)", "sum(used)", "any(percent)", "max(all_percent)",
		}, rows, heldSum, usedSum, first, all)
	}
	f(nil, nil, nil, 3, 12_600, 5400, 25, 42.8571)
	f([]string{"it's"}, nil, nil, 2, 9000, 3600, 25, 40)
	f(nil, []string{"q", "p"}, []string{"npu.b", `\'`}, 1, 3600, 1800, 50, 50)
}

// A session whose newest window said that it is not the last is silent, others are not.
func TestSilent_tellsWhetherTheArchiveIsBehind(t *testing.T) {
	s := store(t)
	silent, newest, err := s.Silent(t.Context(), watchNow, 5*time.Minute, time.Hour)
	if err != nil || len(silent) != 0 || !newest.IsZero() {
		t.Errorf("of nothing: %+v, %s, %v", silent, newest, err)
	}
	records := []pipeline.Record{{Topic: schemas.TopicUsage, Time: watchNow, Key: []byte("acme")}}
	for _, ago := range []time.Duration{40 * 24 * time.Hour, time.Millisecond, time.Hour} {
		records[0].Offset++
		records[0].Time = watchNow.Add(-ago)
		if err := s.Archive(t.Context(), records); err != nil {
			t.Fatal(err)
		}
	}
	_, newest, err = s.Silent(t.Context(), watchNow, 5*time.Minute, time.Hour)
	if err != nil || !newest.Equal(watchNow.Add(-time.Millisecond)) {
		t.Errorf("newest %s, %v", newest, err)
	}
}
