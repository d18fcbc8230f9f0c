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
	crashKills = 24
	// sessionTimeout is how long a member of a consumer group may be silent, see pkg/kafka.
	sessionTimeout = 10 * time.Second
)

// fleet is generated usage, with repeats and out of order, and what it must come to.
type fleet struct {
	events  []string
	summary string
	items   string // JSON lines
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
	offline := []string{
		"rate", "--catalog", example + "catalog.yaml", "--events", s.path("fleet.jsonl"),
	}
	f := fleet{
		events:  strings.SplitAfter(strings.TrimSuffix(usage, "\n"), "\n"),
		summary: s.run(append(offline, "--summary")...),
		items:   s.run(offline...),
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

// TestCrash kills the rater, the archiver, the settler and ClickHouse at moments that a seed
// chooses, while a fleet's usage comes in.
func TestCrash(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *system) {
		f := newFleet(t, s, 2)
		s.startService("rater", "rater", "--flush-bulk", "200ms", "--flush-live", "200ms",
			"--flush-rows", "2000")
		s.startService("archiver", "archiver")
		s.startService("settler", "settler", "--every", "200ms")
		done := f.sendSlowly(s, 20, 300*time.Millisecond)
		random := rand.New(rand.NewPCG(crashSeed, 0))
		victims := []string{
			"rater", "rater", "rater", "archiver", "archiver", "clickhouse", "clickhouse", "settler",
		}
		kills := make(map[string]int)
		for range crashKills {
			name := victims[random.IntN(len(victims))]
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
		for name, least := range map[string]int{
			"rater": 5, "archiver": 3, "clickhouse": 4, "settler": 2,
		} {
			if kills[name] < least {
				t.Errorf("%s was killed %d times only: choose another seed", name, kills[name])
			}
		}
		sent(t, done)
		// The embedded broker waits for members that were killed as they joined, one after the other.
		s.waitSummary(f.summary, 6*time.Minute)
		s.waitArchive(len(f.events), 6*time.Minute)
		checkLineItems(t, s, f.items)
		if got := s.letters("--limit", "10"); got != "" {
			t.Errorf("there are dead letters:\n%s", got)
		}
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
