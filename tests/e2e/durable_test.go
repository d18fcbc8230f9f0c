//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestBrokerCrash kills the embedded Kafka right after it acknowledged: what it acknowledged is
// there afterwards.
func TestBrokerCrash(t *testing.T) {
	t.Parallel()
	s := newSystem(t, "embedded")
	f := newFleet(t, s, 1)
	const parts = 8
	for i := range parts {
		part := f.events[i*len(f.events)/parts : (i+1)*len(f.events)/parts]
		s.runWith(strings.Join(part, ""), "send", "-")
		s.killKafka()
		s.launchKafka()
	}
	s.startService("rater", "rater", "--flush-bulk", "200ms", "--flush-live", "200ms")
	s.startService("archiver", "archiver")
	s.waitSummary(f.summary, time.Minute)
	s.waitArchive(len(f.events), time.Minute)
}

// TestBrokerSyncs looks at the system calls of the embedded Kafka: it syncs the log's file after it
// wrote a record, before it acknowledges. That is all that can be seen of a power cut from here.
func TestBrokerSyncs(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("optional: strace is not installed, so nobody looks at system calls")
	}
	if out, err := exec.Command(strace, "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("optional: strace may not look at system calls here: %v: %s", err, out)
	}
	s := newSystem(t, "embedded")
	s.run("apply", "-f", exampleCatalog)
	s.stop("kafka")
	trace := s.path("trace")
	s.startProcess("kafka", "", strace, "-f", "-y", "-e", "trace=write,pwrite64,fsync,fdatasync",
		"-o", trace, binary, "embedded", "kafka", "--listen", s.kafka, "--data", s.path("kafka"))
	s.waitFor("the embedded Kafka", func() error { return dial(s.kafka) })
	before := len(readFile(t, trace))
	s.runWith(held("synced")+"\n", "send", "-")
	wrote, synced := "", false
	for line := range strings.Lines(readFile(t, trace)[before:]) {
		if !strings.Contains(line, "suanpan.usage") || !strings.Contains(line, ".dat>") {
			continue
		}
		if strings.Contains(line, "write") {
			wrote, synced = line, false
		} else if wrote != "" && strings.Contains(line, "= 0") {
			synced = true
		}
	}
	if wrote == "" || !synced {
		t.Errorf("acknowledged without a sync of what was written: %q\n%s", wrote,
			readFile(t, trace)[before:])
	}
	s.kill("kafka") // strace would leave it behind
}

// TestTables_sync looks at all tables that rows are kept in: ClickHouse syncs what it inserted
// before it says so.
func TestTables_sync(t *testing.T) {
	s := newSystem(t, "embedded")
	got, err := s.query("SELECT name FROM system.tables WHERE database = 'suanpan' AND " +
		"engine LIKE '%MergeTree' AND create_table_query NOT LIKE '%fsync_after_insert = 1%'")
	if err != nil || got != "" {
		t.Errorf("tables without fsync_after_insert: %q, %v", got, err)
	}
	all, err := s.query("SELECT count() FROM system.tables WHERE database = 'suanpan' AND " +
		"engine LIKE '%MergeTree'")
	if err != nil || len(strings.TrimSpace(all)) == 1 && all < "7" {
		t.Errorf("found only %q tables, %v", all, err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
