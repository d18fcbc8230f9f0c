package clickhouse

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
	"github.com/suanpan/suanpan/schemas"
)

// watchNow is about when all that is watched in tests happens.
var watchNow = time.Date(2026, 2, 10, 12, 0, 0, 0, time.UTC)

// heard is an event of a session. Readings and final are JSON, "" is absent.
type heard struct {
	tenant, session, node    string
	devices                  []string
	start, end               time.Time
	util, used, total, final string
	partition                int
	offset                   int64
}

func (h *heard) record(t testing.TB) pipeline.Record {
	t.Helper()
	const layout = "2006-01-02T15:04:05.999Z07:00"
	data := map[string]any{
		"tenant": h.tenant, "session": h.session, "node": h.node, "devices": h.devices,
		"start": h.start.Format(layout), "end": h.end.Format(layout),
	}
	readings := map[string]json.RawMessage{}
	for name, text := range map[string]string{
		"gpu_util": h.util, "mem_used_mib": h.used, "mem_total_mib": h.total,
	} {
		if text != "" {
			readings[name] = json.RawMessage(text)
		}
	}
	if len(readings) > 0 {
		data["telemetry"] = readings
	}
	if h.final != "" {
		data["final"] = json.RawMessage(h.final)
	}
	value, err := json.Marshal(map[string]any{"type": schemas.TypeHeld, "data": data})
	if err != nil {
		t.Fatal(err)
	}
	return pipeline.Record{
		Topic: schemas.TopicUsage, Partition: h.partition, Offset: h.offset, Key: []byte(h.tenant),
		Time: h.end, Value: value,
	}
}

// kept reports whether the event says something of a window that can be.
func (h *heard) kept() bool {
	return (h.util+h.used+h.total != "" || h.final == "true" || h.final == "false") &&
		h.start.Before(h.end) && h.end.Sub(h.start) <= 24*time.Hour
}

// reading is a number of JSON as telemetry has it, in the given unit, at most most of it; false:
// none.
func reading(text string, unit, most float64) (int64, bool) {
	f, err := strconv.ParseFloat(text, 32)
	if err != nil {
		return 0, false
	}
	return int64(math.RoundToEven(min(max(f, 0), most) * unit)), true
}

// counted is a window with the seconds that it counts for.
type counted struct {
	*heard
	utilisation, seconds int64
}

// count counts windows of one session on one node that end in (from, until], by brute force: each
// second once, for the window that ended first.
func count(all []*heard, from, until time.Time) []counted {
	var out []counted
	for _, h := range all {
		if h.kept() && h.end.After(from) && !h.end.After(until) {
			out = append(out, counted{heard: h})
		}
	}
	slices.SortFunc(out, func(a, b counted) int {
		return cmp.Or(a.end.Compare(b.end), a.start.Compare(b.start),
			cmp.Compare(a.partition, b.partition), cmp.Compare(a.offset, b.offset))
	})
	before := int64(math.MinInt64)
	for i := range out {
		var ok bool
		if out[i].utilisation, ok = reading(out[i].util, 1e6, 1); !ok {
			continue
		}
		for second := out[i].start.Unix(); second < out[i].end.Unix(); second++ {
			if second >= before {
				out[i].seconds++
			}
		}
		before = max(before, out[i].end.Unix())
	}
	return out
}

// watched is a world of sessions, with what was heard of them.
type watched struct {
	sessions []rating.SessionRow
	events   []*heard
}

// of returns what was heard of a session where it is.
func (w *watched) of(row *rating.SessionRow) []*heard {
	var all []*heard
	for _, h := range w.events {
		if h.tenant == row.Tenant && h.session == row.Session && h.node == row.Node {
			all = append(all, h)
		}
	}
	return all
}

// each calls f for the first row of every session, and all its rows.
func (w *watched) each(f func(first *rating.SessionRow, all []rating.SessionRow)) {
	for _, group := range chunks(w.sessions) {
		f(&group[0], group)
	}
}

// chunks splits rows by session; those of one follow each other.
func chunks(rows []rating.SessionRow) [][]rating.SessionRow {
	var out [][]rating.SessionRow
	for i := range rows {
		if i == 0 || rows[i].SessionKey != rows[i-1].SessionKey {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], rows[i])
	}
	return out
}

func mean(sum, seconds int64) int64 {
	if seconds == 0 {
		return 0
	}
	return int64(math.RoundToEven(float64(sum) / float64(seconds)))
}

func (w *watched) loads(now time.Time, span time.Duration) []alert.Load {
	var out []alert.Load
	w.each(func(first *rating.SessionRow, all []rating.SessionRow) {
		recent := now.Add(-5 * time.Minute)
		windows := count(w.of(first), recent.Add(-span), now.Add(time.Minute))
		if len(windows) == 0 || !windows[len(windows)-1].end.After(recent) {
			return
		}
		newest := windows[len(windows)-1].end
		l := alert.Load{
			Tenant: first.Tenant, Project: first.Project, Lease: first.Lease, Session: first.Session,
			Node: first.Node, Region: first.Region, Held: map[string]int64{},
			From: math.MaxInt64, Until: newest.Unix(),
		}
		for _, row := range all {
			l.Held[row.SKU] = row.Milli
		}
		busy := int64(0)
		for _, c := range windows {
			if !c.end.After(newest.Add(-span)) {
				continue
			}
			l.From = min(l.From, c.start.Unix())
			l.Covered, busy = l.Covered+c.seconds, busy+c.seconds*c.utilisation
			if c.seconds > 0 {
				l.Peak = max(l.Peak, c.utilisation)
			}
			used, _ := reading(c.used, 1, 1e9)
			total, _ := reading(c.total, 1, 1e9)
			l.MemoryUsed, l.MemoryTotal = max(l.MemoryUsed, used), max(l.MemoryTotal, total)
			l.Final = l.Final || c.final == "true" && c.end.Equal(newest)
		}
		l.Mean = mean(busy, l.Covered)
		out = append(out, l)
	})
	return out
}

func (w *watched) silent(now time.Time, after, within time.Duration) []alert.LastSeen {
	var out []alert.LastSeen
	w.each(func(first *rating.SessionRow, _ []rating.SessionRow) {
		windows := count(w.of(first), now.Add(-within), now.Add(time.Minute))
		if len(windows) == 0 {
			return
		}
		newest := windows[len(windows)-1].end
		running, ended := false, false
		for _, c := range windows {
			if c.end.Equal(newest) {
				running, ended = running || c.final == "false", ended || c.final == "true"
			}
		}
		if running && !ended && !newest.After(now.Add(-after)) {
			out = append(out, alert.LastSeen{
				Tenant: first.Tenant, Project: first.Project, Lease: first.Lease,
				Session: first.Session, Node: first.Node, Until: newest.Unix(),
			})
		}
	})
	return out
}

func isCard(sku string) bool {
	family, rest, _ := strings.Cut(sku, ".")
	return (family == "gpu" || family == "npu") && !strings.HasPrefix(rest, "memory.")
}

func (w *watched) cards(from, until time.Time) []alert.CardLoad {
	type card struct{ name, node string }
	type sum struct {
		seconds, busy int64
		newest        time.Time
		sku           string
	}
	sums := map[card]*sum{}
	w.each(func(first *rating.SessionRow, all []rating.SessionRow) {
		sku := ""
		for _, row := range all {
			if isCard(row.SKU) && (sku == "" || row.SKU < sku) {
				sku = row.SKU
			}
		}
		for _, c := range count(w.of(first), from, until) {
			for _, device := range slices.Compact(slices.Sorted(slices.Values(c.devices))) {
				if c.seconds == 0 || device == "" {
					continue
				}
				at := card{device, c.node}
				if sums[at] == nil {
					sums[at] = &sum{}
				}
				s := sums[at]
				s.seconds, s.busy = s.seconds+c.seconds, s.busy+c.seconds*c.utilisation
				if d := c.end.Compare(s.newest); d > 0 || d == 0 && sku > s.sku {
					s.newest, s.sku = c.end, sku
				}
			}
		}
	})
	var out []alert.CardLoad
	for at, s := range sums {
		out = append(out, alert.CardLoad{
			Card: at.name, Node: at.node, SKU: s.sku, Held: s.seconds, Mean: mean(s.busy, s.seconds),
		})
	}
	slices.SortFunc(out, func(a, b alert.CardLoad) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Card, b.Card))
	})
	return out
}

func (w *watched) busy(from, until time.Time) []alert.Busy {
	type key struct{ tenant, project, sku string }
	held, used := map[key]*big.Int{}, map[key]*big.Int{}
	w.each(func(first *rating.SessionRow, all []rating.SessionRow) {
		seconds, busy := int64(0), int64(0)
		for _, c := range count(w.of(first), from, until) {
			seconds, busy = seconds+c.seconds, busy+c.seconds*c.utilisation
		}
		for _, row := range all {
			if seconds == 0 || !isCard(row.SKU) {
				continue
			}
			at := key{row.Tenant, row.Project, row.SKU}
			if held[at] == nil {
				held[at], used[at] = new(big.Int), new(big.Int)
			}
			add := func(sum *big.Int, n int64) {
				sum.Add(sum, new(big.Int).Mul(big.NewInt(n), big.NewInt(row.Milli)))
			}
			add(held[at], seconds)
			add(used[at], busy)
		}
	})
	fit := func(n *big.Int) int64 {
		if n.IsInt64() {
			return n.Int64()
		}
		return math.MaxInt64
	}
	var out []alert.Busy
	for at, n := range held {
		million := big.NewInt(1_000_000)
		out = append(out, alert.Busy{
			Tenant: at.tenant, Project: at.project, SKU: at.sku, Held: fit(n),
			Used: fit(new(big.Int).Quo(used[at], million)),
		})
	}
	slices.SortFunc(out, func(a, b alert.Busy) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Project, b.Project),
			cmp.Compare(a.SKU, b.SKU))
	})
	return out
}

// drawWatched draws sessions of tenants whose names begin with a prefix. Where it is tidy, windows
// meet at whole seconds, but repeats come too.
func drawWatched(t *rapid.T, prefix string, tidy bool) *watched {
	w := new(watched)
	name := rapid.SampledFrom(hostile[:len(hostile)-1])
	for i := range rapid.IntRange(1, 4).Draw(t, "sessions") {
		row := rating.SessionRow{Facts: metering.Facts{
			Project: name.Draw(t, "project"), Lease: name.Draw(t, "lease"),
			Node: prefix + name.Draw(t, "node"), Region: name.Draw(t, "region"),
			Purchase: metering.OnDemand,
		}}
		row.Tenant = prefix + rapid.SampledFrom(hostile[:3]).Draw(t, "tenant")
		row.Session = fmt.Sprint(i) + name.Draw(t, "session")
		for _, sku := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
			"gpu.a", "gpu.b", "npu.c", "gpu.memory.gib", "cpu.core", "gpus.d",
		}), 1, 3, rapid.ID).Draw(t, "skus") {
			row.SKU = sku
			row.Milli = rapid.OneOf(rapid.Int64Range(1, 16_000),
				rapid.Just(int64(999_999_999_999_999_999))).Draw(t, "held")
			w.sessions = append(w.sessions, row)
		}
		devices := rapid.SliceOfN(rapid.SampledFrom([]string{"GPU-1", "it's", "GPU-2", ""}), 0, 3)
		of := devices.Draw(t, "devices")
		at := watchNow.Add(-time.Duration(rapid.IntRange(0, 40).Draw(t, "ago")) * time.Minute)
		for range rapid.IntRange(0, 12).Draw(t, "windows") {
			h := &heard{tenant: row.Tenant, session: row.Session, node: row.Node, devices: of}
			h.start = at
			h.end = at.Add(time.Duration(rapid.IntRange(1, 150).Draw(t, "seconds")) * time.Second)
			at = h.end
			if !tidy {
				untidy(t, h, row.Node)
				h.devices = devices.Draw(t, "devices now")
			}
			drawReadings(t, h)
			for range rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "times") {
				again := *h
				if !tidy && rapid.Bool().Draw(t, "says something else") {
					drawReadings(t, &again)
				}
				w.events = append(w.events, &again)
			}
		}
	}
	w.events = rapid.Permutation(w.events).Draw(t, "order")
	return w
}

func untidy(t *rapid.T, h *heard, node string) {
	shift := rapid.SampledFrom([]int{0, 0, 0, 1, 999, -500, 61_000, -90_000, -3_600_000})
	h.start = h.start.Add(time.Duration(shift.Draw(t, "start")) * time.Millisecond)
	h.end = h.end.Add(time.Duration(shift.Draw(t, "end")) * time.Millisecond)
	switch rapid.IntRange(0, 15).Draw(t, "wrong") {
	case 0:
		h.session += " unknown"
	case 1:
		h.node = node + " other"
	case 2:
		h.start = h.start.Add(-24 * time.Hour)
	}
}

func drawReadings(t *rapid.T, h *heard) {
	h.util = rapid.SampledFrom([]string{
		"", "null", "0", "1", "0.5", "0.0123", "0.9876", "0.333333", "-0.5", "7", `"x"`, "1e-7",
	}).Draw(t, "util")
	h.used = rapid.SampledFrom([]string{"", "null", "0", "40960.5", "1234.5", "81920"}).Draw(t, "used")
	h.total = rapid.SampledFrom([]string{"", "81920", "163840"}).Draw(t, "total")
	h.final = rapid.SampledFrom([]string{"", "true", "false", "false", "null"}).Draw(t, "final")
}
