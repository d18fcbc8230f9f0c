//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	crashSeed  = 7
	crashKills = 21
	// sessionTimeout is how long a member of a consumer group may be silent, see pkg/kafka.
	sessionTimeout = 10 * time.Second
)

// fleet is generated usage, with repeats and out of order, and what it must come to.
type fleet struct {
	events  []string
	summary string
}

// newFleet applies the example catalog and returns a fleet's usage.
func newFleet(t *testing.T, s *system, days int) fleet {
	t.Helper()
	const example = "../../deployments/example/"
	s.run("apply", "--replay", "-f", example+"catalog.yaml")
	s.run("send", "--replay", example+"market.jsonl")
	usage := s.run("replay", "--generate", "--days", strconv.Itoa(days), "--seed",
		strconv.Itoa(crashSeed), "--duplicate", "0.2", "--shuffle", "3000", "--to", "-")
	market, err := os.ReadFile(example + "market.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	write(t, s.path("fleet.jsonl"), string(market)+usage)
	f := fleet{
		events: strings.SplitAfter(strings.TrimSuffix(usage, "\n"), "\n"),
		summary: s.run("rate", "--catalog", example+"catalog.yaml", "--events",
			s.path("fleet.jsonl"), "--summary"),
	}
	if len(f.events) < 1000 || strings.Count(f.summary, "\n") < 20 {
		t.Fatalf("the fleet has only %d events and this summary:\n%s", len(f.events), f.summary)
	}
	return f
}

// sendSlowly sends the events in parts, with a pause after each, and returns when it is done.
func (f *fleet) sendSlowly(s *system, parts int, pause time.Duration) <-chan string {
	done := make(chan string, 1)
	go func() { // ends by itself: parts and pauses are bounded
		for i := range parts {
			from, until := i*len(f.events)/parts, (i+1)*len(f.events)/parts
			_, errs, code := s.try(strings.Join(f.events[from:until], ""), "send", "-")
			if code != 0 {
				done <- fmt.Sprintf("send part %d: %s", i, errs)
				return
			}
			time.Sleep(pause)
		}
		done <- ""
	}()
	return done
}

func sent(t *testing.T, done <-chan string) {
	t.Helper()
	select {
	case problem := <-done:
		if problem != "" {
			t.Fatal(problem)
		}
	case <-time.After(4 * time.Minute):
		t.Fatal("the events were not sent in 4 minutes")
	}
}

// TestCrash kills the rater, the archiver and ClickHouse at moments that a seed chooses, while a
// fleet's usage comes in.
func TestCrash(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *system) {
		f := newFleet(t, s, 2)
		s.startService("rater", "rater", "--flush-bulk", "200ms", "--flush-live", "200ms",
			"--flush-rows", "2000")
		s.startService("archiver", "archiver")
		done := f.sendSlowly(s, 20, 300*time.Millisecond)
		random := rand.New(rand.NewPCG(crashSeed, 0))
		kills := make(map[string]int)
		for range crashKills {
			name := []string{"rater", "rater", "archiver", "clickhouse"}[random.IntN(4)]
			if name == "rater" {
				// A rater that starts needs a while to join; killed at once it would do nothing.
				time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
			}
			time.Sleep(time.Duration(random.IntN(700)) * time.Millisecond)
			s.kill(name)
			s.launch(name)
			kills[name]++
		}
		t.Logf("killed %v", kills)
		for _, name := range []string{"rater", "archiver", "clickhouse"} {
			if kills[name] < 3 {
				t.Errorf("%s was killed %d times only: choose another seed", name, kills[name])
			}
		}
		sent(t, done)
		s.waitSummary(f.summary, 3*time.Minute)
		s.waitArchive(len(f.events), 3*time.Minute)
	})
}

// TestRaters runs two raters in one group: one is killed, one joins, one is stopped past its
// session's timeout and goes on.
func TestRaters(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *system) {
		f := newFleet(t, s, 2)
		flags := []string{"--flush-bulk", "200ms", "--flush-live", "200ms", "--flush-rows", "2000"}
		s.startService("rater 1", "rater", flags...)
		s.startService("rater 2", "rater", flags...)
		done := f.sendSlowly(s, 30, time.Second)
		time.Sleep(3 * time.Second)
		s.kill("rater 1")
		s.startService("rater 3", "rater", flags...) // it joins
		time.Sleep(4 * time.Second)
		s.signal("rater 2", syscall.SIGSTOP)
		time.Sleep(sessionTimeout + 4*time.Second)
		s.signal("rater 2", syscall.SIGCONT)
		sent(t, done)
		s.waitSummary(f.summary, 3*time.Minute)
		if got := s.letters("--limit", "10"); got != "" {
			t.Errorf("there are dead letters:\n%s", got)
		}
		s.stop("rater 2")
		s.stop("rater 3")
	})
}

// TestOutage takes ClickHouse away for a while: nothing is committed, the rater and the archiver
// live and stay small, and afterwards nothing is missing.
func TestOutage(t *testing.T) {
	outage := time.Minute
	if text := os.Getenv("SUANPAN_E2E_OUTAGE"); text != "" {
		var err error
		if outage, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	s := newSystem(t, "embedded")
	f := newFleet(t, s, 3)
	s.startService("rater", "rater", "--flush-bulk", "200ms", "--flush-live", "200ms")
	s.startService("archiver", "archiver")
	done := f.sendSlowly(s, 30, 300*time.Millisecond)
	time.Sleep(2 * time.Second)
	s.kill("clickhouse")
	began := time.Now()
	time.Sleep(2 * time.Second) // whatever was under way has failed by now
	before := s.metric("rater", "suanpan_rater_commits_total")
	var peak int64
	for time.Since(began) < outage {
		for _, name := range []string{"rater", "archiver"} {
			select {
			case <-s.services[name].done:
				t.Fatalf("%s ended without ClickHouse: %v", name, s.services[name].err)
			default:
			}
			peak = max(peak, residentBytes(t, s.services[name].cmd.Process.Pid))
		}
		time.Sleep(time.Second)
	}
	if after := s.metric("rater", "suanpan_rater_commits_total"); after != before {
		t.Errorf("the rater committed without ClickHouse: %s commits, then %s", before, after)
	}
	if peak > 1<<30 {
		t.Errorf("a service took %d MiB", peak>>20)
	}
	t.Logf("without ClickHouse for %s: at most %d MiB resident", outage, peak>>20)
	s.launch("clickhouse")
	sent(t, done)
	s.waitSummary(f.summary, 2*time.Minute)
	s.waitArchive(len(f.events), 2*time.Minute)
}

// TestBrokerCrash kills the embedded Kafka right after it acknowledged: what it acknowledged is
// there afterwards.
func TestBrokerCrash(t *testing.T) {
	s := newSystem(t, "embedded")
	f := newFleet(t, s, 1)
	for i := range 4 {
		part := f.events[i*len(f.events)/4 : (i+1)*len(f.events)/4]
		s.runWith(strings.Join(part, ""), "send", "-")
		s.kill("kafka")
		s.launch("kafka")
		s.waitFor("the embedded Kafka", func() error { return dial(s.kafka) })
	}
	s.startService("rater", "rater", "--flush-bulk", "200ms", "--flush-live", "200ms")
	s.startService("archiver", "archiver")
	s.waitSummary(f.summary, time.Minute)
	s.waitArchive(len(f.events), time.Minute)
}

// metric returns the value of a metric of a service, as text.
func (s *system) metric(service, name string) string {
	s.t.Helper()
	for line := range strings.Lines(get(s.t, "http://"+s.services[service].admin+"/metrics")) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	s.t.Fatalf("%s has no metric %s", service, name)
	return ""
}

func residentBytes(t *testing.T, pid int) int64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Logf("resident memory not known: %v", err)
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmRSS:" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	return 0
}
