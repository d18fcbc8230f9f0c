//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// outage is how long ClickHouse is away.
func outage(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("SUANPAN_E2E_OUTAGE")
	if text == "" {
		return time.Minute
	}
	long, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return long
}

// TestOutage takes ClickHouse away for a while, in which far more comes in than a rater and an
// archiver hold: they commit nothing, live and stay small, and afterwards nothing is missing.
func TestOutage(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *system) {
		f := newFleet(t, s, 3)
		s.startService("rater", "rater", "--flush-bulk", "200ms", "--flush-live", "200ms",
			"--flush-rows", "500", "--state-mib", "1")
		s.startService("archiver", "archiver")
		done := f.sendSlowly(s, 30, 200*time.Millisecond)
		time.Sleep(2 * time.Second)
		s.kill("clickhouse")
		began := time.Now()
		time.Sleep(3 * time.Second) // whatever was under way has failed by now
		before := [2]map[int]int64{s.committed("suanpan-rater"), s.committed("suanpan-archiver")}
		commits := s.metric("rater", "suanpan_rater_commits_total")
		peak := s.watch(outage(t)-time.Since(began), "rater", "archiver")
		if after := s.metric("rater", "suanpan_rater_commits_total"); after != commits {
			t.Errorf("the rater counts commits without ClickHouse: %s, then %s", commits, after)
		}
		for i, group := range []string{"suanpan-rater", "suanpan-archiver"} {
			if after := s.committed(group); !maps.Equal(after, before[i]) {
				t.Errorf("%s committed without ClickHouse: %v, then %v", group, before[i], after)
			}
		}
		for _, name := range []string{"rater", "archiver"} {
			if err := s.ready(name); err == nil {
				t.Errorf("%s says that it is ready without ClickHouse", name)
			}
			get(t, "http://"+s.services[name].admin+"/healthz")
		}
		if peak > 512<<20 {
			t.Errorf("a service took %d MiB", peak>>20)
		}
		t.Logf("without ClickHouse for %s: at most %d MiB resident", outage(t), peak>>20)
		s.launch("clickhouse")
		sent(t, done)
		s.waitSummary(f.summary, 2*time.Minute)
		s.waitArchive(len(f.events), 2*time.Minute)
	})
}

// watch watches services for a while and returns the most memory that one took. It fails where one
// ends.
func (s *system) watch(long time.Duration, names ...string) (peak int64) {
	s.t.Helper()
	for began := time.Now(); time.Since(began) < long; time.Sleep(time.Second) {
		for _, name := range names {
			select {
			case <-s.services[name].done:
				s.t.Fatalf("%s ended: %v\n%s", name, s.services[name].err, s.tail(name))
			default:
			}
			peak = max(peak, residentBytes(s.t, s.services[name].cmd.Process.Pid))
		}
	}
	return peak
}

// TestLateInsert stops ClickHouse while a rater writes, kills the rater, and lets ClickHouse go on
// when another rater has taken over: what the dead one sent lands late.
func TestLateInsert(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *system) {
		f := newFleet(t, s, 2)
		s.startService("archiver", "archiver")
		start := func(name string) {
			admin := freeAddress(t)
			s.start(name, admin, "rater", "--admin", admin, "--flush-bulk", "100ms", "--flush-live",
				"100ms", "--flush-rows", "300")
		}
		start("rater 0")
		s.waitReady("rater 0")
		done := f.sendSlowly(s, 40, 500*time.Millisecond)
		for i := range 4 {
			time.Sleep(2500 * time.Millisecond)
			s.signal("clickhouse", syscall.SIGSTOP)
			time.Sleep(400 * time.Millisecond) // inserts pile up
			s.kill(fmt.Sprintf("rater %d", i))
			start(fmt.Sprintf("rater %d", i+1))
			time.Sleep(time.Second)
			s.signal("clickhouse", syscall.SIGCONT)
			s.waitReady(fmt.Sprintf("rater %d", i+1))
		}
		sent(t, done)
		s.waitSummary(f.summary, 2*time.Minute)
		s.waitArchive(len(f.events), 2*time.Minute)
	})
}

// TestKafkaOutage takes Kafka away and brings it back while services run and usage comes in.
func TestKafkaOutage(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *system) {
		f := newFleet(t, s, 1)
		s.startService("rater", "rater", "--flush-bulk", "200ms", "--flush-live", "200ms")
		s.startService("archiver", "archiver")
		s.startService("settler", "settler", "--every", "200ms")
		const parts = 3
		for i := range parts {
			part := f.events[i*len(f.events)/parts : (i+1)*len(f.events)/parts]
			s.runWith(strings.Join(part, ""), "send", "-")
			s.killKafka()
			s.watch(2*time.Second, "rater", "archiver", "settler")
			s.launchKafka()
		}
		s.waitSummary(f.summary, 2*time.Minute)
		s.waitArchive(len(f.events), time.Minute)
		checkLineItems(t, s, f.items)
		for _, name := range []string{"settler", "rater", "archiver"} {
			s.waitReady(name)
			s.stop(name)
		}
	})
}

func (s *system) killKafka() {
	s.t.Helper()
	if s.apache != nil {
		s.apache.Kill(s.t)
		return
	}
	s.kill("kafka")
}

func (s *system) launchKafka() {
	s.t.Helper()
	if s.apache != nil {
		s.apache.Restart(s.t)
		return
	}
	s.launch("kafka")
	s.waitFor("the embedded Kafka", func() error { return dial(s.kafka) })
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
