//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/nvml/fakenvml"
)

// gpuBinary builds the command with cgo, which it needs to load NVIDIA's library.
var gpuBinary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(binary), "suanpan-gpu")
	build := exec.Command("go", "build", "-o", path, "../../services/suanpan")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the command with cgo: %w\n%s", err, out)
	}
	return path, nil
})

const gpuCatalog = `kind: PriceBook
name: public
effective_from: "2025-01-01T00:00:00Z"
currency: CNY
timezone: UTC
prices:
- {sku: gpu.h100-80g, price: "1", per: second}
- {sku: gpu.h100-80g.1g.10gb, price: "0.1", per: second}
---
kind: Tenant
name: acme
effective_from: "2025-01-01T00:00:00Z"
price_book: public
`

// gpuNode is a node with fake GPUs and an exporter.
type gpuNode struct {
	*system
	script *fakenvml.Script
	path   string // of the script
	socket string
	leases string // file
}

// newGPUNode has two whole GPUs, and one that is split in two.
func newGPUNode(t *testing.T, s *system) *gpuNode {
	t.Helper()
	library := fakenvml.Build(t)
	command, err := gpuBinary()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "gpu") // paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	n := &gpuNode{
		system: s, script: fakenvml.Node(2), path: s.path("gpus"),
		socket: filepath.Join(dir, "s"), leases: s.path("leases.yaml"),
	}
	n.script.GPUs = append(n.script.GPUs, fakenvml.Split(fakenvml.H100(2), 2))
	n.change()
	write(t, n.leases, "leases: []\n")
	admin := freeAddress(t)
	s.startProcess("exporter", admin, "/usr/bin/env", fakenvml.Env+"="+n.path, command, "exporter",
		"--admin", admin, "--nvml", library, "--node", "n1", "--data", s.path("exporter"),
		"--socket", n.socket, "--lease-file", n.leases, "--window", "2s", "--sample-every", "200ms",
		"--leases-every", "200ms", "--region", "cn-north")
	s.waitReady("exporter")
	return n
}

// change lets the driver see the script.
func (n *gpuNode) change() {
	n.t.Helper()
	if err := n.script.Write(n.path); err != nil {
		n.t.Fatal(err)
	}
}

// lease runs a command about leases.
func (n *gpuNode) lease(args ...string) string {
	n.t.Helper()
	args = append([]string{"lease"}, args...)
	return strings.TrimSpace(n.run(append(args, "--socket", n.socket)...))
}

// metric returns the sum of a metric of the exporter over its labels that contain a text.
func (n *gpuNode) sum(name, label string) float64 {
	n.t.Helper()
	sum := 0.0
	for line := range strings.Lines(get(n.t, "http://"+n.services["exporter"].admin+"/metrics")) {
		if !strings.HasPrefix(line, name) || !strings.Contains(line, label) {
			continue
		}
		var v float64
		if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &v); err != nil {
			n.t.Fatalf("%s: %v", line, err)
		}
		sum += v
	}
	return sum
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// TestExporter goes from leases on fake GPUs to line items, with kill -9, a Kafka that is away and
// a driver that restarts in between: each lease is billed for its seconds, and nothing else is.
func TestExporter(t *testing.T) { onBrokers(t, exportAndBill) }

func exportAndBill(t *testing.T, s *system) {
	t.Helper()
	n := newGPUNode(t, s)
	catalog := s.path("catalog.yaml")
	write(t, catalog, gpuCatalog)
	s.run("apply", "-f", catalog)
	s.startService("rater", "rater", "--flush-bulk", "200ms", "--flush-live", "200ms")
	s.startService("archiver", "archiver")
	s.startService("settler", "settler", "--every", "200ms")

	began := time.Now().Truncate(time.Second)
	n.lease("start", "job-1", "--tenant", "acme", "--project", "llm", "--device", "0", "--start",
		instant(began), "--label", "stage=pretraining")
	n.leaseFile(fmt.Sprintf("leases: [{lease: vm-7, tenant: acme, project: chat, "+
		"devices: [\"2.0\", \"2.1\"], start: %s}]\n", instant(began)))
	n.waitFor("two sessions", func() error { return n.sessions(2) })
	if out := n.gpus(); !strings.Contains(out, "job-1") || !strings.Contains(out, "vm-7") ||
		!strings.Contains(out, "idle") {
		t.Errorf("suanpan gpu shows\n%s", out)
	}
	time.Sleep(3 * time.Second)
	n.disturb()
	end := time.Now().Add(time.Second).Truncate(time.Second)
	time.Sleep(time.Until(end) + 100*time.Millisecond)
	n.lease("end", "job-1", "--at", instant(end))
	n.leaseFile(fmt.Sprintf("leases: [{lease: vm-7, tenant: acme, project: chat, "+
		"devices: [\"2.0\", \"2.1\"], start: %s, end: %s}]\n", instant(began), instant(end)))
	n.waitFor("the end of all", func() error { return n.sessions(0) })
	n.waitFor("the log to have all", func() error {
		if left := n.sum("suanpan_exporter_spool_records", ""); left != 0 {
			return fmt.Errorf("%v events wait", left)
		}
		return nil
	})
	seconds := int64(end.Sub(began) / time.Second)
	n.checkBilled(fmt.Sprintf("\"job-1\",\"gpu.h100-80g\",\"%d\",2\n"+
		"\"vm-7\",\"gpu.h100-80g.1g.10gb\",\"%d\",1\n", seconds, 2*seconds))
	if idle := n.sum("suanpan_gpu_idle_seconds_total", "000000000001\""); idle < 1 {
		t.Errorf("the GPU that nobody has was idle for %v s", idle)
	}
	n.checkTelemetry()
	n.stop("exporter")
}

// leaseFile replaces the file of leases.
func (n *gpuNode) leaseFile(text string) {
	n.t.Helper()
	write(n.t, n.leases+".new", text)
	if err := os.Rename(n.leases+".new", n.leases); err != nil {
		n.t.Fatal(err)
	}
}

// disturb kills the exporter and Kafka, restarts the driver, and has a lease change its stage while
// Kafka is away.
func (n *gpuNode) disturb() {
	n.t.Helper()
	ids := n.lease("list")
	n.killKafka()
	n.kill("exporter")
	n.script.Restart()
	n.change()
	time.Sleep(2 * time.Second)
	n.launch("exporter")
	n.waitFor("the exporter", func() error { return n.healthy("exporter") })
	n.waitFor("the sessions again", func() error { return n.sessions(2) })
	for _, line := range strings.Split(ids, "\n")[1:] {
		if id := line[strings.LastIndexByte(line, ' ')+1:]; !strings.Contains(n.lease("list"), id) {
			n.t.Errorf("session %s is gone after kill -9", id)
		}
	}
	time.Sleep(time.Second)
	n.script.Restart() // while it samples
	n.change()
	time.Sleep(2 * time.Second)
	if n.sum("suanpan_exporter_spool_records", "") == 0 {
		n.t.Error("Kafka is away, and nothing waits")
	}
	n.lease("start", "job-1", "--tenant", "acme", "--project", "llm", "--device", "0", "--label",
		"stage=finetuning") // a resumed session
	n.launchKafka()
	time.Sleep(2 * time.Second)
	n.kill("exporter")
	n.launch("exporter")
	n.waitReady("exporter")
}

// sessions fails where not so many sessions go on.
func (n *gpuNode) sessions(want int) error {
	var answer struct {
		Leases []json.RawMessage `json:"leases"`
	}
	text := get(n.t, "http://"+n.services["exporter"].admin+"/v1/leases")
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return err
	}
	if len(answer.Leases) != want {
		return fmt.Errorf("%d sessions: %s", len(answer.Leases), text)
	}
	return nil
}

// gpus is what `suanpan gpu` prints.
func (n *gpuNode) gpus() string {
	n.t.Helper()
	args := n.services["exporter"].args
	c := exec.Command(args[0], args[1], args[2], "gpu", "--once", "--nvml",
		fakenvml.Build(n.t), "--exporter", "http://"+n.services["exporter"].admin)
	out, err := c.CombinedOutput()
	if err != nil {
		n.t.Errorf("suanpan gpu: %v", err)
	}
	return string(out)
}

// checkBilled waits until the line items are as they must be.
func (n *gpuNode) checkBilled(want string) {
	n.t.Helper()
	n.waitFor("the line items", func() error {
		got, err := n.query("SELECT lease, sku, toString(toInt64(sum(base_quantity))), " +
			"uniqExact(session) FROM suanpan.line_items WHERE kind = 'usage' " +
			"GROUP BY lease, sku ORDER BY lease FORMAT CSV")
		if err == nil && got != want {
			err = fmt.Errorf("got\n%swant\n%s", got, want)
		}
		return err
	})
	if dead, err := n.query("SELECT count() FROM suanpan.dead_letters"); err != nil || dead != "0\n" {
		n.t.Errorf("dead letters: %s%v", dead, err)
	}
}

// checkTelemetry looks at what the events say of the devices.
func (n *gpuNode) checkTelemetry() {
	n.t.Helper()
	var got string
	n.waitFor("telemetry", func() (err error) {
		got, err = n.query("SELECT countIf(abs(gpu_util - 0.98) < 0.001) > 0 " +
			"FROM suanpan.telemetry FORMAT CSV")
		if err == nil && got != "1\n" {
			err = fmt.Errorf("no event has the utilisation of its GPU: %s", got)
		}
		return err
	})
}
