package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
	"github.com/suanpan/suanpan/services/suanpan/trace"
)

// runReplay runs the command as a user does and returns what it printed.
func runReplay(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	cmd := rootCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(append([]string{"replay"}, args...))
	err = cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func printed(t *testing.T, args ...string) string {
	t.Helper()
	out, err := runReplay(t, append(args, "--to", "-")...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func sortedLines(text string) []string { return slices.Sorted(strings.Lines(text)) }

func TestReplay_printsTheEventsOfATrace(t *testing.T) {
	want, err := os.ReadFile("trace/testdata/openb.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	got := printed(t, "--trace", "trace/testdata/openb.csv")
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	got = printed(t, "--trace", "trace/testdata/openb.csv", "--limit", "2")
	if first := strings.Join(slices.Collect(strings.Lines(string(want)))[:2], ""); got != first {
		t.Errorf("--limit 2 prints\n%s", got)
	}
	shifted := printed(t, "--trace", "trace/testdata/openb.csv",
		"--start", "2025-08-01T01:00:00+01:00")
	if shifted != string(want) {
		t.Error("the same start in another zone prints other events")
	}
}

func TestReplay_printsGeneratedUsage(t *testing.T) {
	args := []string{"--generate", "--days", "1", "--sessions", "20", "--window", "10m"}
	calm := printed(t, args...)
	if calm != printed(t, args...) {
		t.Error("the same seed prints other events")
	}
	if calm == printed(t, append(args, "--seed", "2")...) {
		t.Error("another seed prints the same events")
	}
	noisy := printed(t, append(args, "--duplicate", "1", "--shuffle", "10", "--late", "0.5")...)
	twice := slices.Sorted(slices.Values(append(sortedLines(calm), sortedLines(calm)...)))
	if diff := cmp.Diff(twice, sortedLines(noisy)); diff != "" {
		t.Errorf("all events twice (-want +got):\n%s", diff)
	}
}

func TestReplay_refusesWhatItDoesNotUnderstand(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		_, err := runReplay(t, append(args, "--to", "-")...)
		if !errors.Is(err, errUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("replay %q: error %v, not one of usage with %q", args, err, want)
		}
	}
	f("either --trace FILE or --generate")
	f("either --trace FILE or --generate", "--generate", "--trace", "x.csv")
	f(`--format "borg"`, "--generate", "--format", "borg")
	f("--limit -1", "--generate", "--limit", "-1")
	f(`--rate "0/s"`, "--generate", "--rate", "0/s")
	f(`--rate "fast"`, "--generate", "--rate", "fast")
	f(`--start "today"`, "--generate", "--start", "today")
	f(`--start "2025-08-01T00:00:00.5Z"`, "--generate", "--start", "2025-08-01T00:00:00.5Z")
	f("share of duplicates 2", "--generate", "--duplicate", "2")
	if _, err := runReplay(t, "--generate", "--to", "file"); !errors.Is(err, errUsage) {
		t.Errorf("--to file: error %v, not one of usage", err)
	}
	for _, args := range [][]string{
		{"--trace", "no-such-file.csv"},
		{"--trace", "replay.go"},
		{"--generate", "--window", "2s500ms"},
		{"--generate", "--days", "0"},
	} {
		if _, err := runReplay(t, append(args, "--to", "-")...); err == nil {
			t.Errorf("replay %q succeeds", args)
		}
	}
}

// someWindows are those of a generated day.
func someWindows(t *testing.T) *trace.Replay {
	t.Helper()
	fleet := trace.Fleet{Seed: 1, Days: 1, Sessions: 60, Tenants: 4}
	sessions, err := fleet.Generate()
	if err != nil {
		t.Fatal(err)
	}
	r, err := trace.New(trace.FleetSource, sessions, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if r.Total() < (replayInFlight+2)*replayBatch {
		t.Fatalf("BUG: %d windows are too few to fill all batches", r.Total())
	}
	return r
}

// memoryLog is a log that takes its time.
type memoryLog struct {
	mu      sync.Mutex
	lines   []string
	busy    atomic.Int32
	busiest atomic.Int32
	fail    error // of every call after the first
	calls   atomic.Int32
	misled  string // a record that is not where it should be
}

func (m *memoryLog) Append(_ context.Context, records ...pipeline.Record) error {
	busy := m.busy.Add(1)
	defer m.busy.Add(-1)
	for most := m.busiest.Load(); busy > most; most = m.busiest.Load() {
		m.busiest.CompareAndSwap(most, busy)
	}
	time.Sleep(time.Second)
	if m.calls.Add(1) > 1 && m.fail != nil {
		return m.fail
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range records {
		line := string(r.Value)
		if r.Topic != schemas.TopicUsage || !strings.Contains(line, `"tenant":"`+string(r.Key)+`"`) {
			m.misled = string(r.Key) + " of " + r.Topic + ": " + line
		}
		m.lines = append(m.lines, line+"\n")
	}
	return nil
}

func TestPump_appendsEveryEventUnderItsTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := someWindows(t)
		var log memoryLog
		var shown atomic.Int64
		sent, err := pump(t.Context(), r.Windows(), 0, appendTo(&log), func(n int64) { shown.Add(n) })
		if err != nil {
			t.Fatal(err)
		}
		if sent != r.Total() || shown.Load() != r.Total() {
			t.Errorf("%d events sent and %d shown, not %d", sent, shown.Load(), r.Total())
		}
		if log.misled != "" {
			t.Errorf("a record with a wrong topic or key: %s", log.misled)
		}
		if log.busiest.Load() != replayInFlight {
			t.Errorf("%d batches in flight, not %d", log.busiest.Load(), replayInFlight)
		}
		var want []byte
		for w := range r.Windows() {
			want = append(w.AppendJSON(want), '\n')
		}
		if !slices.Equal(sortedLines(string(want)), slices.Sorted(slices.Values(log.lines))) {
			t.Error("the log has other events than the replay")
		}
	})
}

func TestPump_endsWhenABatchCannotBeSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := someWindows(t)
		log := memoryLog{fail: errors.New("disk full")}
		sent, err := pump(t.Context(), r.Windows(), 0, appendTo(&log), func(int64) {})
		if !errors.Is(err, log.fail) || sent >= r.Total() {
			t.Errorf("%d of %d events sent, error %v", sent, r.Total(), err)
		}
	})
}

func TestPump_endsWhenItIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("interrupted")
		time.AfterFunc(500*time.Millisecond, func() { cancel(why) })
		r := someWindows(t)
		var log memoryLog
		sent, err := pump(ctx, r.Windows(), 0, appendTo(&log), func(int64) {})
		if !errors.Is(err, why) || sent >= r.Total() || int64(len(log.lines)) != sent {
			t.Errorf("%d of %d events sent, %d in the log, error %v", sent, r.Total(), len(log.lines), err)
		}
	})
}

func TestPump_keepsToItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var out bytes.Buffer
		windows := first(someWindows(t).Windows(), 600)
		sent, err := pump(t.Context(), windows, 20, writeTo(&out), func(int64) {})
		if err != nil || sent != 600 || strings.Count(out.String(), "\n") != 600 {
			t.Fatalf("%d events sent, error %v", sent, err)
		}
		if took := time.Since(began); took < 29*time.Second || took > 31*time.Second {
			t.Errorf("600 events at 20/s took %s", took)
		}
	})
}
