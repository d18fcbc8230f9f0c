//go:build e2e

package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStart_waitsForOthers starts services before Kafka and ClickHouse are there, as an
// orchestrator may: they live, say that they are not ready, and do their work when the others come.
func TestStart_waitsForOthers(t *testing.T) {
	t.Parallel()
	s := newSystem(t, "embedded")
	s.run("apply", "-f", exampleCatalog)
	s.runWith(held("early")+"\n", "send", "-")
	s.kill("kafka")
	s.kill("clickhouse")
	names := []string{"rater", "archiver", "settler"}
	for _, name := range names {
		admin := freeAddress(t)
		s.start(name, admin, name, "--admin", admin)
	}
	s.watch(3*time.Second, names...)
	s.launchKafka()
	s.watch(3*time.Second, names...)
	for _, name := range names {
		s.waitFor(name+" to be healthy", func() error { return s.healthy(name) })
		if s.ready(name) == nil {
			t.Errorf("%s says that it is ready without ClickHouse", name)
		}
	}
	s.launch("clickhouse")
	for _, name := range names {
		s.waitReady(name)
	}
	s.waitRated(1)
	s.waitArchive(1, time.Minute)
	for _, name := range names {
		s.stop(name)
	}
}

// TestStop sends SIGTERM where it comes at the worst time: while others are waited for, and while
// ClickHouse does not answer in the middle of a write.
func TestStop(t *testing.T) {
	t.Parallel()
	s := newSystem(t, "embedded")
	f := newFleet(t, s, 1)
	names := []string{"rater", "archiver", "settler"}
	for _, name := range names {
		s.startService(name, name)
	}
	s.runWith(strings.Join(f.events[:2000], ""), "send", "-")
	s.signal("clickhouse", syscall.SIGSTOP)
	s.runWith(strings.Join(f.events[2000:], ""), "send", "-")
	time.Sleep(2 * time.Second)
	for _, name := range names {
		s.stop(name)
	}
	s.kill("clickhouse")
	for _, name := range names {
		admin := freeAddress(t)
		s.start(name, admin, name, "--admin", admin)
	}
	s.watch(2*time.Second, names...)
	for _, name := range names { // ClickHouse is not there
		s.stop(name)
	}
	s.stop("kafka")
	for _, name := range names { // nor is Kafka
		admin := freeAddress(t)
		s.start(name, admin, name, "--admin", admin)
	}
	s.watch(2*time.Second, names...)
	for _, name := range names {
		s.stop(name)
	}
	s.launchKafkaAgain()
	s.launch("clickhouse")
	for _, name := range names {
		s.startService(name, name)
	}
	s.waitSummary(f.summary, time.Minute)
	s.waitArchive(len(f.events), time.Minute)
	for _, name := range append(names, "clickhouse", "kafka") {
		s.stop(name)
	}
}

// launchKafkaAgain starts the embedded Kafka after it was stopped, on the same address and data.
func (s *system) launchKafkaAgain() {
	s.t.Helper()
	s.start("kafka", "", "embedded", "kafka", "--listen", s.kafka, "--data", s.path("kafka"))
	s.waitFor("the embedded Kafka", func() error { return dial(s.kafka) })
}
