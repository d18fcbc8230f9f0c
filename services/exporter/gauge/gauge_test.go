//go:build cgo && linux

package gauge_test

import (
	"bytes"
	"flag"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/suanpan/suanpan/pkg/nvml"
	"github.com/suanpan/suanpan/pkg/nvml/fakenvml"
	"github.com/suanpan/suanpan/services/exporter/gauge"
)

var update = flag.Bool("update", false, "write the golden files anew")

// began is the time of all tests' first sample.
var began = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// node is a sampler on a fake driver. Its clock moves by one second a sample.
type node struct {
	*gauge.Sampler
	*fakenvml.Script
	t        testing.TB
	library  *nvml.Library
	path     string
	registry *prometheus.Registry
	log      bytes.Buffer
	now      time.Time
}

// start makes a sampler that has taken no sample yet.
func start(t testing.TB, script *fakenvml.Script, config gauge.Config) *node {
	t.Helper()
	n := &node{Script: script, t: t, path: filepath.Join(t.TempDir(), "script"), now: began}
	library := fakenvml.Build(t)
	n.write()
	t.Setenv(fakenvml.Env, n.path)
	l, err := nvml.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	n.library = l
	t.Cleanup(func() { _ = l.Close() }) // a test may have ended the driver
	config.Log = slog.New(slog.NewTextHandler(&n.log, nil))
	config.Node = "n1"
	config.SKU = func(d nvml.Device) string {
		return strings.TrimSuffix("gpu.h100-80g."+d.Profile, ".")
	}
	if config.Now == nil {
		config.Now = func() time.Time { return n.now }
	}
	n.Sampler = gauge.New(l, config)
	n.registry = prometheus.NewPedanticRegistry()
	n.registry.MustRegister(n.Sampler)
	return n
}

func (n *node) write() {
	n.t.Helper()
	if err := n.Write(n.path); err != nil {
		n.t.Fatal(err)
	}
}

// sample takes samples, a second apart.
func (n *node) sample(times int) {
	n.t.Helper()
	for range times {
		if err := n.Step(n.now); err != nil {
			n.t.Fatal(err)
		}
		n.now = n.now.Add(time.Second)
	}
}

// metrics is what Prometheus would read.
func (n *node) metrics() string {
	n.t.Helper()
	recorder := httptest.NewRecorder()
	promhttp.HandlerFor(n.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}).
		ServeHTTP(recorder, httptest.NewRequest("GET", "/metrics", nil))
	text, err := io.ReadAll(recorder.Body)
	if err != nil || recorder.Code != 200 {
		n.t.Fatalf("read metrics: %d %v\n%s", recorder.Code, err, text)
	}
	return string(text)
}

// value is that of the one series that begins with a text, or "absent".
func (n *node) value(series string) string {
	n.t.Helper()
	var found []string
	for line := range strings.Lines(n.metrics()) {
		if strings.HasPrefix(line, series) {
			found = append(found, line[strings.LastIndexByte(line, ' ')+1:len(line)-1])
		}
	}
	switch len(found) {
	case 0:
		return "absent"
	case 1:
		return found[0]
	default:
		n.t.Fatalf("%s: %d series", series, len(found))
		return ""
	}
}

// shows expects values of series, given as pairs.
func (n *node) shows(pairs ...string) {
	n.t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got := n.value(pairs[i]); got != pairs[i+1] {
			n.t.Errorf("%s is %s, want %s", pairs[i], got, pairs[i+1])
		}
	}
}

// took is the only metric of the time that a sample really took.
var took = regexp.MustCompile(`(?m)^(suanpan_gpu_sample_seconds) .*$`)

func TestMetrics_ofAWholeNode(t *testing.T) {
	script := fakenvml.Node(2)
	script.GPUs = append(script.GPUs, fakenvml.Split(fakenvml.H100(2), 2))
	shared := &script.GPUs[2].Parts[1] // two compute instances of one GPU instance
	twin := *shared
	twin.UUID, twin.Index, twin.CI = "MIG-twin", 2, 1
	script.GPUs[2].Parts = append(script.GPUs[2].Parts, twin)
	for i := range script.GPUs {
		script.GPUs[i].Values["energy_mj"] = strconv.Itoa(5_000_000 * (i + 1))
	}
	script.GPUs[0].Values["throttle"] = "4"
	script.GPUs[0].Processes = []fakenvml.Process{
		{PID: 21198, Name: "./gpu_burn", MiB: 7484}, {PID: 4711, Name: "/usr/bin/python3", MiB: -1},
	}
	n := start(t, script, gauge.Config{Processes: true})
	n.Hold([]gauge.Holder{
		{
			Device: script.GPUs[0].UUID, Tenant: "acme", Project: "chat", Lease: "l-1",
			Pod: "trainer-0", Namespace: "acme", Container: "main",
		},
		{Device: script.GPUs[1].UUID, Tenant: "acme", Project: "chat", Lease: "l-2", Share: 0.25},
		{Device: script.GPUs[1].UUID, Tenant: "beta", Project: "vision", Lease: "l-3", Share: 0.5},
		{Device: script.GPUs[2].Parts[0].UUID, Tenant: "beta", Project: "vision", Lease: "l-4"},
	})
	n.sample(3)
	n.XIDs = []fakenvml.XID{
		{Seq: 1, Device: script.GPUs[0].UUID, Code: 31},
		{Seq: 2, Device: script.GPUs[2].UUID, Code: 13, GI: 8},
	}
	n.GPUs[0].Values["energy_mj"] = "5433780"
	n.write()
	n.sample(1)
	got := took.ReplaceAllString(n.metrics(), "$1 0.01")
	golden := filepath.Join("testdata", "metrics.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

func TestHold_idleAndHeldTime(t *testing.T) {
	script := fakenvml.Node(2)
	script.GPUs = append(script.GPUs, fakenvml.Split(fakenvml.H100(2), 1))
	n := start(t, script, gauge.Config{})
	first, second, part := script.GPUs[0].UUID, script.GPUs[1].UUID, script.GPUs[2].Parts[0].UUID
	idle := func(uuid string) string {
		return `suanpan_gpu_idle_seconds_total{sku="gpu.h100-80g",uuid="` + uuid
	}
	held := func(uuid string) string {
		return `suanpan_gpu_held_seconds_total{sku="gpu.h100-80g",uuid="` + uuid
	}
	n.sample(11)
	n.shows(idle(first), "10", held(first), "0",
		`suanpan_gpu_devices{sku="gpu.h100-80g",state="idle"}`, "2",
		`suanpan_gpu_devices{sku="gpu.h100-80g.1g.10gb",state="idle"}`, "1",
		// The partitioned card itself is no capacity.
		idle(script.GPUs[2].UUID), "absent",
		`suanpan_gpu_idle_seconds_total{sku="gpu.h100-80g.1g.10gb",uuid="`+part, "10")
	n.Hold([]gauge.Holder{
		{Device: first, Tenant: "a", Lease: "l"},
		{Device: second, Tenant: "a", Lease: "m", Share: 0.25},
		{Device: second, Tenant: "a", Lease: "m", Share: 0.25},
	})
	n.sample(4)
	n.shows(idle(first), "10", held(first), "4", idle(second), "12", held(second), "2",
		`suanpan_gpu_devices{sku="gpu.h100-80g",state="held"}`, "1",
		`suanpan_gpu_devices{sku="gpu.h100-80g",state="idle"}`, "1",
		`suanpan_gpu_held_ratio{lease="m",project="",sku="gpu.h100-80g",tenant="a",uuid="`+second, "0.5")
	n.now = n.now.Add(time.Hour) // the process was stopped: nothing is known
	n.Hold(nil)
	n.sample(2)
	n.shows(idle(first), "11", held(first), "4")
}

func TestStep_aLostGPUIsShownAndComesBack(t *testing.T) {
	n := start(t, fakenvml.Node(2), gauge.Config{Scan: time.Minute})
	lost := n.GPUs[1].UUID
	n.sample(2)
	n.GPUs[1].Values["fail"] = "gpu_is_lost"
	n.XIDs = []fakenvml.XID{{Seq: 1, Device: lost, Code: 79}}
	n.write()
	n.sample(3)
	n.shows(`suanpan_gpu_lost{sku="gpu.h100-80g",uuid="`+lost, "1",
		`suanpan_gpu_lost{sku="gpu.h100-80g",uuid="`+n.GPUs[0].UUID, "0",
		`suanpan_gpu_devices{sku="gpu.h100-80g",state="lost"}`, "1",
		`nvidia_smi_utilization_gpu_ratio{uuid="`+lost[4:], "absent",
		`nvidia_smi_xid_errors_total{uuid="`+lost[4:]+`",xid="79"}`, "1",
		`DCGM_FI_DEV_XID_ERRORS{DCGM_FI_DRIVER_VERSION="590.48.01",GPU_I_ID="",`+
			`GPU_I_PROFILE="",Hostname="n1",UUID="`+lost, "79",
		`suanpan_gpu_idle_seconds_total{sku="gpu.h100-80g",uuid="`+lost, "1",
		`suanpan_gpu_driver_up`, "1")
	status := n.Status()
	if s := status[1]; !s.Lost || s.UUID != lost || s.GPUUtil.OK || s.SKU != "gpu.h100-80g" {
		t.Errorf("status of the lost GPU: %+v", s)
	}
	if s := status[0]; s.Lost || s.GPUUtil.V != 0.98 || s.At != n.now.Add(-time.Second) {
		t.Errorf("status of the other GPU: %+v", s)
	}
	if devices := n.Devices(); len(devices) != 2 || devices[1].UUID != lost {
		t.Errorf("a lost GPU is forgotten: %+v", devices)
	}
	if err := n.Healthy(); err != nil {
		t.Errorf("one lost GPU is not the driver: %v", err)
	}
	if _, ok := n.Telemetry([]string{lost}, n.now.Add(-2*time.Second), n.now); ok {
		t.Error("a lost GPU tells something")
	}
	if got := strings.Count(n.log.String(), "a GPU is lost"); got != 1 {
		t.Errorf("it was logged %d times:\n%s", got, n.log.String())
	}
	delete(n.GPUs[1].Values, "fail")
	n.write()
	n.library.Rescan = 0
	n.now = n.now.Add(2 * time.Minute)
	n.sample(2)
	n.shows(`suanpan_gpu_lost{sku="gpu.h100-80g",uuid="`+lost, "0",
		`nvidia_smi_utilization_gpu_ratio{uuid="`+lost[4:], "0.98",
		`suanpan_gpu_idle_seconds_total{sku="gpu.h100-80g",uuid="`+lost, "2")
}

func TestStep_theDriverIsAwayAndComesBack(t *testing.T) {
	n := start(t, fakenvml.Node(1), gauge.Config{})
	n.GPUs[0].Values["energy_mj"] = "7000000"
	n.write()
	n.sample(2)
	if err := n.Healthy(); err != nil {
		t.Error(err)
	}
	n.Down = "driver_not_loaded"
	n.write()
	for range 3 {
		if err := n.Step(n.now); err == nil {
			t.Error("a sample without a driver")
		}
		n.now = n.now.Add(time.Second)
	}
	energy := `suanpan_gpu_energy_joules_total{sku="gpu.h100-80g"`
	n.shows("suanpan_gpu_driver_up", "0", "suanpan_gpu_driver_outages_total", "1",
		`suanpan_gpu_samples_total{outcome="failed"}`, "3", "nvidia_smi_power_draw_watts", "absent",
		energy, "0")
	if err := n.Healthy(); err == nil || !strings.Contains(err.Error(), "driver") {
		t.Errorf("healthy without a driver: %v", err)
	}
	if got := strings.Count(n.log.String(), `msg="the driver does not answer`); got != 1 {
		t.Errorf("it was logged %d times:\n%s", got, n.log.String())
	}
	n.Down, n.Script.Driver = "", "595.80"
	n.GPUs[0].Values["energy_mj"] = "2500" // it counts from 0 again
	n.Restart()
	n.write()
	n.sample(1)
	n.shows("suanpan_gpu_driver_up", "1", "nvidia_smi_power_draw_watts", "433.78", energy, "2.5",
		"nvidia_smi_energy_joules_total", "2.5")
	n.GPUs[0].Values["energy_mj"] = "4000"
	n.write()
	n.sample(1)
	n.shows(energy, "4", "nvidia_smi_energy_joules_total", "4")
	if !strings.Contains(n.metrics(), `driver_version="595.80"`) {
		t.Error("the new driver's version is not shown")
	}
}

func TestStep_partsComeAndGo(t *testing.T) {
	script := fakenvml.Node(0)
	script.GPUs = []fakenvml.GPU{fakenvml.Split(fakenvml.H100(0), 2)}
	n := start(t, script, gauge.Config{Scan: 5 * time.Second, Keep: time.Minute})
	gone := script.GPUs[0].Parts[1].UUID
	n.sample(5)
	n.GPUs[0].Parts = n.GPUs[0].Parts[:1]
	n.write()
	n.sample(2)
	if devices := n.Devices(); len(devices) != 2 {
		t.Errorf("a destroyed MIG device is still there: %+v", devices)
	}
	if text := n.metrics(); strings.Contains(text, gone) || strings.Contains(text, gone[4:]) {
		t.Error("a destroyed MIG device is shown")
	}
	// Its last window can still be told, for as long as telemetry is kept.
	told, ok := n.Telemetry([]string{gone}, began, n.now)
	if !ok || told.MemUsedMiB == nil || *told.MemUsedMiB != 1124 {
		t.Errorf("the last window of a destroyed MIG device: %+v %t", told, ok)
	}
	n.now = n.now.Add(2 * time.Minute)
	n.sample(1)
	if _, ok := n.Telemetry([]string{gone}, began, n.now); ok {
		t.Error("it is kept for ever")
	}
	n.GPUs[0] = fakenvml.Split(fakenvml.H100(0), 2)
	n.write()
	n.sample(6)
	if devices := n.Devices(); len(devices) != 3 || devices[2].UUID != gone {
		t.Errorf("a MIG device that was made again is not seen: %+v", devices)
	}
}
