package exporter

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/suanpan/suanpan/pkg/daemon"
	"github.com/suanpan/suanpan/pkg/nvml"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/services/exporter/lease"
	"github.com/suanpan/suanpan/services/exporter/session"
)

func TestSKUs(t *testing.T) {
	skus, err := ParseSKUs([]string{"NVIDIA H200=gpu.h200", "NVIDIA B200 = gpu.b200"})
	if err != nil {
		t.Fatal(err)
	}
	f := func(name string, mib int64, want string) {
		t.Helper()
		if got := skus.Of(nvml.Device{Name: name, MemoryMiB: mib}); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	f("NVIDIA A800-SXM4-80GB", 81251, "gpu.a800-80g")
	f("NVIDIA A100-SXM4-40GB", 40960, "gpu.a100-40g")
	f("NVIDIA A100 80GB PCIe", 81920, "gpu.a100-80g")
	f("NVIDIA H100 80GB HBM3", 81559, "gpu.h100-80g")
	f("NVIDIA H20", 97871, "gpu.h20-96g")
	f("NVIDIA H200", 143771, "gpu.h200")
	f("NVIDIA B200", 183359, "gpu.b200")
	f("NVIDIA L40S", 46068, "gpu.l40s-48g")
	f("NVIDIA GeForce RTX 4090", 24564, "gpu.rtx4090-24g")
	f("NVIDIA GeForce RTX 3080 Ti", 12288, "gpu.rtx3080ti-12g")
	f("Tesla V100-SXM2-32GB", 32768, "gpu.v100-32g")
	f("Tesla T4", 15360, "gpu.t4-16g")
	f("", 0, "gpu.unknown")
	part := nvml.Device{
		Name: "NVIDIA H100 80GB HBM3", Parent: "GPU-1", Profile: "1g.10gb", MemoryMiB: 9984,
	}
	if got := skus.Of(part); got != "gpu.h100-80g.1g.10gb" {
		t.Errorf("a part: %s", got)
	}
	for _, bad := range []string{"", "x", "x=", "=y", "x=a b"} {
		if _, err := ParseSKUs([]string{bad}); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
}

// newDay is a node with n cards, and its exporter.
func newDay(t *testing.T, n int) *day {
	t.Helper()
	d := &day{
		t: t, dir: t.TempDir(), boot: "boot 1", scheduler: &scheduler{},
		now:    session.Instant{Mono: time.Hour, Wall: time.Date(2026, 1, 5, 2, 0, 0, 0, time.UTC)},
		driver: &driver{lost: map[string]bool{}},
		broker: &broker{t: t, away: true},
	}
	d.scheduler.now = d.clock
	for i := range n {
		d.driver.cards = append(d.driver.cards, card(i))
	}
	d.start()
	t.Cleanup(func() { _ = d.exporter.Close() })
	return d
}

// stored returns the data of the events in the spool.
func (d *day) stored() []map[string]any {
	d.t.Helper()
	records, err := d.exporter.spool.Peek(1000, 1<<30)
	if err != nil {
		d.t.Fatal(err)
	}
	var all []map[string]any
	for _, r := range records {
		var e struct {
			Data map[string]any `json:"data"`
		}
		if err := json.Unmarshal(r.Value, &e); err != nil {
			d.t.Fatal(err)
		}
		all = append(all, e.Data)
	}
	return all
}

// TestExporter_telemetryOfItsWindow sets the clock within a window: the telemetry is that of the
// same seconds.
func TestExporter_telemetryOfItsWindow(t *testing.T) {
	d := newDay(t, 2)
	if _, err := d.requests.Start(lease.Document{
		Lease: "a", Tenant: "acme", Devices: []string{"0", "GPU-1"},
	}); err != nil {
		t.Fatal(err)
	}
	d.seconds(30)
	d.now.Wall = d.now.Wall.Add(-24 * time.Hour)
	d.seconds(35)
	events := d.stored()
	if len(events) != 1 {
		t.Fatalf("events %v", events)
	}
	telemetry, _ := events[0]["telemetry"].(map[string]any)
	if telemetry["gpu_util"] != 0.5 || telemetry["power_w"] != 800.0 ||
		telemetry["energy_j"] != 2*400.0*59 || telemetry["mem_total_mib"] != 2*81559.0 {
		t.Errorf("telemetry %v", telemetry)
	}
	if final, told := events[0]["final"].(bool); final || !told {
		t.Errorf("final is %v in the first window of a session", events[0]["final"])
	}
	held, _ := events[0]["held"].(map[string]any)
	if held["gpu.h100-80g"] != "2" || events[0]["region"] != "cn-north" {
		t.Errorf("event %v", events[0])
	}
}

// TestExporter_saysTheLastWindowWithoutTelemetry holds no GPU: there is nothing to read.
func TestExporter_saysTheLastWindowWithoutTelemetry(t *testing.T) {
	d := newDay(t, 1)
	if _, err := d.requests.Start(lease.Document{
		Lease: "a", Tenant: "acme", Held: map[string]string{"cpu.core": "4"},
	}); err != nil {
		t.Fatal(err)
	}
	d.seconds(70)
	if err := d.requests.End("acme", "a", time.Time{}); err != nil {
		t.Fatal(err)
	}
	d.seconds(1)
	events := d.stored()
	if len(events) != 2 || events[0]["final"] != false || events[1]["final"] != true ||
		events[1]["telemetry"] != nil {
		t.Errorf("events %v", events)
	}
}

// TestExporter_beginsWhenDevicesAreThere asks for a GPU that is lost: the session begins when it is
// back.
func TestExporter_beginsWhenDevicesAreThere(t *testing.T) {
	d := newDay(t, 1)
	d.driver.lost["GPU-0"] = true
	d.seconds(20)
	asked := d.now.Wall
	d.scheduler.leases = []lease.Lease{{
		Key: "a", Tenant: "acme", Project: "llm", Lease: "a", Purchase: "on_demand",
		Devices: []lease.Device{{Name: "0", Milli: 1000}}, Start: asked,
	}}
	d.seconds(60)
	if sessions := d.exporter.Sessions(); len(sessions) != 0 {
		t.Fatalf("sessions %+v", sessions)
	}
	if got := d.metric("suanpan_exporter_waiting_leases"); got != 1 {
		t.Errorf("%v leases wait", got)
	}
	delete(d.driver.lost, "GPU-0")
	d.seconds(20)
	sessions := d.exporter.Sessions()
	if len(sessions) != 1 || sessions[0].Since().Before(asked.Add(60*time.Second)) {
		t.Fatalf("sessions %+v", sessions)
	}
	if got := d.metric("suanpan_exporter_waiting_leases"); got != 0 {
		t.Errorf("%v leases wait", got)
	}
	d.driver.lost["GPU-0"] = true // the lease goes on, and so does its session
	d.seconds(60)
	if again := d.exporter.Sessions(); len(again) != 1 || again[0].ID != sessions[0].ID ||
		again[0].Seen <= sessions[0].Seen {
		t.Errorf("sessions %+v", again)
	}
}

// metric is a gauge without labels of the exporter.
func (d *day) metric(name string) float64 {
	d.t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(d.exporter)
	families, err := registry.Gather()
	if err != nil {
		d.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	d.t.Fatalf("no metric %s", name)
	return 0
}

// TestExporter_idleIsNotBilled has cards that nobody holds: no event tells of them.
func TestExporter_idleIsNotBilled(t *testing.T) {
	d := newDay(t, 2)
	d.scheduler.leases = []lease.Lease{{
		Key: "a", Tenant: "acme", Project: "llm", Lease: "a", Purchase: "on_demand",
		Devices: []lease.Device{{Name: "GPU-0", Milli: 334}}, Start: d.now.Wall, Region: "eu",
	}}
	d.seconds(61)
	events := d.stored()
	if len(events) != 1 {
		t.Fatalf("events %v", events)
	}
	held, _ := events[0]["held"].(map[string]any)
	if len(held) != 1 || held["gpu.h100-80g"] != "0.334" || events[0]["region"] != "eu" {
		t.Errorf("event %v", events[0])
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(d.sampler, d.exporter)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	idle := map[string]float64{}
	for _, f := range families {
		if f.GetName() == "suanpan_gpu_idle_seconds_total" {
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					if l.GetName() == "uuid" {
						idle[l.GetValue()] = m.GetCounter().GetValue()
					}
				}
			}
		}
	}
	if idle["GPU-1"] < 59 || idle["GPU-0"] < 38 || idle["GPU-0"] > 43 {
		t.Errorf("idle seconds %v", idle)
	}
}

func TestExporter_damagedStateIsPutAside(t *testing.T) {
	d := newDay(t, 1)
	d.scheduler.leases = []lease.Lease{{
		Key: "a", Tenant: "acme", Project: "llm", Lease: "a", Purchase: "on_demand",
		Devices: []lease.Device{{Name: "GPU-0", Milli: 1000}}, Start: d.now.Wall,
	}}
	d.seconds(61)
	id := d.exporter.Sessions()[0].ID
	d.kill(false)
	path := filepath.Join(d.dir, stateName)
	if err := os.WriteFile(path, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.start()
	d.seconds(2)
	if again := d.exporter.Sessions(); len(again) != 1 || again[0].ID != id {
		t.Errorf("sessions %+v, want %s again", again, id)
	}
	if _, err := os.Stat(path + ".damaged"); err != nil {
		t.Error(err)
	}
}

// ask sends a request to a handler and returns its status and answer.
func ask(h http.Handler, method, path, token, body string) (int, string) {
	r := httptest.NewRequestWithContext(context.Background(), method, path, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestAPI(t *testing.T) {
	d := newDay(t, 2)
	api := d.exporter.API(d.requests)
	f := func(method, path, body string, status int, says string) {
		t.Helper()
		got, text := ask(api, method, path, "", body)
		if got != status || !strings.Contains(text, says) {
			t.Errorf("%s %s %s: %d %s, want %d and %q", method, path, body, got, text, status, says)
		}
	}
	f("GET", "/v1/leases", "", 200, `{"leases":[]}`)
	f("POST", "/v1/leases", `{"lease": "a", "tenant": "acme", "devices": ["0"]}`, 200, `"session":"`)
	f("POST", "/v1/leases", `{"lease": "a", "tenant": "acme", "devices": ["0"]}`, 200, `"devices":["GPU-0"]`)
	f("POST", "/v1/leases", `{"lease": "b", "tenant": "acme", "devices": ["9"]}`, 202, `"session":""`)
	f("GET", "/v1/leases", "", 200, `"held":{"gpu.h100-80g":"1"}`)
	if d.exporter.crowded != 0 {
		t.Error("a device with one lease is crowded")
	}
	f("POST", "/v1/leases", `{"lease": "d", "tenant": "beta", "devices": ["0"], "share": "0.001"}`,
		200, `"gpu.h100-80g":"0.001"`)
	if d.exporter.crowded != 1 {
		t.Error("nobody minds that a device is held twice")
	}
	f("POST", "/v1/leases/end", `{"lease": "d"}`, 200, "beta")
	f("POST", "/v1/leases", `{"lease": "a"`, 400, "invalid lease: read body")
	f("POST", "/v1/leases", `{"lease": "a", "tenant": "acme", "devices": ["0"]} {}`, 400, "more than one")
	f("POST", "/v1/leases", `{"lease": "a", "tennant": "acme"}`, 400, "tennant")
	f("POST", "/v1/leases", `{"lease": "c", "tenant": "acme"}`, 400, "neither devices nor")
	f("POST", "/v1/leases/end", `{"lease": "z"}`, 404, "no such lease")
	d.seconds(5)
	f("POST", "/v1/leases/end", `{"lease": "a"}`, 200, `"tenant":"acme"`)
	events := d.stored() // before the answer
	if len(events) != 1 || events[0]["end"] != "2026-01-05T02:00:05Z" || events[0]["final"] != true {
		t.Errorf("events %v", events)
	}
	f("GET", "/v1/leases", "", 200, `{"leases":[]}`)
	f("DELETE", "/v1/leases", "", 405, "")
}

func TestGuard(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "in")
	})
	for _, c := range []struct {
		token, given string
		want         int
	}{{"secret", "secret", 200}, {"secret", "wrong", 403}, {"secret", "", 403}, {"", "", 403}} {
		if got, _ := ask(Guard(c.token, ok), "POST", "/", c.given, ""); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// taker is a log that takes everything, once it is there.
type taker struct {
	there chan struct{}
	got   []pipeline.Record
}

func (l *taker) Append(_ context.Context, records ...pipeline.Record) error {
	select {
	case <-l.there:
	default:
		return errors.New("no broker answers")
	}
	l.got = append(l.got, records...)
	return nil
}

// TestTasks runs everything by the real clocks, and ends it: the last seconds are sent.
func TestTasks(t *testing.T) {
	dir := t.TempDir()
	now, zero := SamplerClock(NodeClock)
	boot, err := NodeBoot()
	if err != nil {
		t.Fatal(err)
	}
	drv := &driver{cards: []nvml.Device{card(0)}, lost: map[string]bool{}, now: now}
	d := &day{t: t, driver: drv}
	d.sampler = newSampler(drv, now)
	e, err := Open(Config{
		Node: "n1", Dir: dir, Clock: NodeClock, Boot: boot, Sampler: d.sampler, Zero: zero,
		Window: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	requests, err := lease.OpenRequests(filepath.Join(dir, "requests.json"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(shortDir(t), "s")
	log := &taker{there: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- daemon.Run(ctx, e.config.Log, nil, []daemon.Task{
			e.SendTask(func(context.Context) (pipeline.Appender, error) { return log, nil }),
			e.ReportTask(), ServeTask(socket, e.API(requests)),
			e.PollTask(Source{requests, 50 * time.Millisecond}, d.sampler.Healthy),
			SampleTask(d.sampler),
		})
	}()
	client := http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	post := func() error {
		r, err := client.Post("http://x/v1/leases", "application/json",
			strings.NewReader(`{"lease": "a", "tenant": "acme", "devices": ["0"]}`))
		if err != nil {
			return err
		}
		defer r.Body.Close()
		if r.StatusCode != http.StatusOK {
			return errors.New(r.Status)
		}
		return nil
	}
	poll(t, post)
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("socket %v, %v", info.Mode(), err)
	}
	poll(t, func() error {
		if e.Check(ctx) == nil {
			return errors.New("nothing is sent, and nobody says so")
		}
		return nil
	})
	close(log.there)
	poll(t, func() error { return errors.Join(e.Check(ctx), e.CheckSources(ctx)) })
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	s := e.Sessions()
	if len(log.got) < 2 || len(s) != 1 || s[0].Covered < time.Now().Add(-3*time.Second).UnixNano() ||
		e.spool.Stats().Records != 0 {
		t.Errorf("%d events sent, %d left, session %+v", len(log.got), e.spool.Stats().Records, s)
	}
}

func poll(t *testing.T, f func() error) {
	t.Helper()
	err := errors.New("not tried")
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if err = f(); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal(err)
}

// shortDir is a folder for sockets, whose paths must be short.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "x")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
