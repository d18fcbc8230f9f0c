//go:build cgo && linux

package gauge_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/suanpan/suanpan/pkg/nvml"
	"github.com/suanpan/suanpan/pkg/nvml/fakenvml"
	"github.com/suanpan/suanpan/services/exporter/gauge"
)

// text is telemetry as an event has it, with floats rounded to what a float32 can hold.
func text(t *testing.T, told gauge.Telemetry) string {
	t.Helper()
	for _, v := range []*float64{
		told.GPUUtil, told.MemUsedMiB, told.PowerW, told.TempC, told.EnergyJ,
	} {
		if v != nil {
			*v = math.Round(*v*1000) / 1000
		}
	}
	b, err := json.Marshal(told)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTelemetry_aggregatesTimeAndDevices(t *testing.T) {
	n := start(t, fakenvml.Node(2), gauge.Config{})
	// A sample a second: 10 %, 20 %, ... of the one, always 50 % of the other.
	for i := range 10 {
		one, other := n.GPUs[0].Values, n.GPUs[1].Values
		one["util"], one["used_mib"] = strconv.Itoa(10*i), strconv.Itoa(1000*i)
		one["power_mw"], one["temp"] = strconv.Itoa(100_000+1000*i), strconv.Itoa(50+i%3)
		one["energy_mj"] = strconv.Itoa(1_000_000 + 100_000*i)
		other["util"], other["used_mib"], other["power_mw"] = "50", "400", "200000"
		other["temp"], other["energy_mj"] = "40", "77"
		n.write()
		n.sample(1)
	}
	one, both := []string{n.GPUs[0].UUID}, []string{n.GPUs[0].UUID, n.GPUs[1].UUID}
	f := func(uuids []string, from, until int, want string) {
		t.Helper()
		second := func(i int) time.Time { return began.Add(time.Duration(i) * time.Second) }
		told, ok := n.Telemetry(uuids, second(from), second(until))
		got := "nothing"
		if ok {
			got = text(t, told)
		}
		if got != want {
			t.Errorf("seconds %d to %d of %d devices: %s, want %s", from, until, len(uuids), got, want)
		}
	}
	f(one, 2, 5, `{"gpu_util":0.3,"mem_used_mib":3000,"power_w":103,"temp_c":52,"energy_j":300,`+
		`"mem_total_mib":81559}`)
	f(one, 0, 1, `{"gpu_util":0,"mem_used_mib":0,"power_w":100,"temp_c":50,"energy_j":0,`+
		`"mem_total_mib":81559}`)
	f(one, 3, 4, `{"gpu_util":0.3,"mem_used_mib":3000,"power_w":103,"temp_c":50,"energy_j":100,`+
		`"mem_total_mib":81559}`)
	f(both, 2, 5, `{"gpu_util":0.4,"mem_used_mib":3400,"power_w":303,"temp_c":52,"energy_j":300,`+
		`"mem_total_mib":163118}`)
	f(one, 10, 20, "nothing") // not sampled yet
	f(one, -60, 0, "nothing") // before it began
	f(nil, 0, 10, "nothing")
	f([]string{n.GPUs[0].UUID, "GPU-unknown"}, 0, 10, "nothing")
}

func TestTelemetry_isForgottenInTime(t *testing.T) {
	n := start(t, fakenvml.Node(1), gauge.Config{Keep: 5 * time.Second})
	n.sample(12)
	if _, ok := n.Telemetry([]string{n.GPUs[0].UUID}, began, began.Add(5*time.Second)); ok {
		t.Error("more is kept than was asked for")
	}
	told, ok := n.Telemetry([]string{n.GPUs[0].UUID}, began.Add(7*time.Second), n.now)
	if !ok || *told.GPUUtil < 0.97 {
		t.Errorf("the last five seconds: %+v %t", told, ok)
	}
}

// What one of the devices does not tell is not told of all: no part of a sum is passed off as it.
func TestTelemetry_inventsNothing(t *testing.T) {
	script := fakenvml.Node(1)
	script.GPUs = append(script.GPUs, fakenvml.Split(fakenvml.H100(1), 1),
		fakenvml.Split(fakenvml.A100(2), 1))
	n := start(t, script, gauge.Config{})
	n.sample(3)
	f := func(want string, uuids ...string) {
		t.Helper()
		told, ok := n.Telemetry(uuids, began, n.now)
		if got := text(t, told); !ok || got != want {
			t.Errorf("%q: %s %t, want %s", uuids, got, ok, want)
		}
	}
	hopper, ampere := script.GPUs[1].Parts[0].UUID, script.GPUs[2].Parts[0].UUID
	f(`{"gpu_util":0.5,"mem_used_mib":1024,"mem_total_mib":9984}`, hopper) // by the chip's counters
	f(`{"mem_used_mib":1024,"mem_total_mib":9984}`, ampere)
	f(`{"gpu_util":0.74,"mem_used_mib":46356,"mem_total_mib":91543}`, script.GPUs[0].UUID, hopper)
	f(`{"mem_used_mib":46356,"mem_total_mib":91543}`, script.GPUs[0].UUID, ampere)
}

// The driver restarts within a window: its counter begins anew, and energy does not run backwards.
func TestTelemetry_energyAcrossARestart(t *testing.T) {
	n := start(t, fakenvml.Node(1), gauge.Config{})
	for i, counter := range []string{"9000000", "9400000", "300000", "700000"} {
		n.GPUs[0].Values["energy_mj"] = counter
		if i == 2 {
			n.Restart()
			n.write()
			if err := n.Step(n.now); !errors.Is(err, nvml.ErrDriver) {
				t.Errorf("the sample of the restart: %v", err)
			}
		}
		n.write()
		n.sample(1)
	}
	told, ok := n.Telemetry([]string{n.GPUs[0].UUID}, began, n.now)
	if !ok || told.EnergyJ == nil || *told.EnergyJ != 400+300+400 {
		t.Errorf("telemetry %s %t, want 1100 J", text(t, told), ok)
	}
}

// hung is a driver whose calls do not return until they are let go.
type hung struct {
	nvml.Device
	reads   chan struct{}
	release chan struct{}
}

func (h *hung) Devices() ([]nvml.Device, error) { return []nvml.Device{h.Device}, nil }
func (h *hung) Events() ([]nvml.Event, error)   { return nil, nil }
func (h *hung) Driver() string                  { return "1" }
func (h *hung) Read(nvml.Device) (nvml.Reading, error) {
	h.reads <- struct{}{}
	<-h.release
	return nvml.Reading{GPUUtil: nvml.Some(0.5)}, nil
}

// Bills must not wait for a driver that hangs, and neither must Prometheus.
func TestSampler_nobodyWaitsForAHungDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hung{
			Device: nvml.Device{UUID: "GPU-1"}, reads: make(chan struct{}),
			release: make(chan struct{}),
		}
		s := gauge.New(h, gauge.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		<-h.reads // and now it hangs
		s.Hold([]gauge.Holder{{Device: "GPU-1", Tenant: "a"}})
		if _, ok := s.Telemetry([]string{"GPU-1"}, time.Time{}, time.Now()); ok {
			t.Error("it tells what it has not read")
		}
		if got := len(s.Devices()); got != 1 {
			t.Errorf("%d devices", got)
		}
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(s)
		if _, err := registry.Gather(); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Second)
		if s.Healthy() == nil {
			t.Error("it hangs, and says that it is well")
		}
		h.release <- struct{}{}
		synctest.Wait()
		if err := s.Healthy(); err != nil {
			t.Errorf("it hangs no more: %v", err)
		}
		told, ok := s.Telemetry([]string{"GPU-1"}, time.Time{}, time.Now().Add(time.Second))
		if !ok || *told.GPUUtil != 0.5 {
			t.Errorf("telemetry: %+v %t", told, ok)
		}
		<-h.reads
		cancel()
		h.release <- struct{}{}
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
}

func TestRun_samplesEachSecondAndEndsWhenTheDriverIsReplaced(t *testing.T) {
	script := fakenvml.Node(1)
	n := start(t, script, gauge.Config{Every: 10 * time.Millisecond, Now: time.Now})
	ended := make(chan error, 1)
	go func() { ended <- n.Run(t.Context()) }()
	deadline := time.Now().Add(30 * time.Second)
	for n.value(`suanpan_gpu_samples_total{outcome="answered"}`) < "3" {
		if time.Now().After(deadline) {
			t.Fatal("no three samples in 30 s")
		}
		time.Sleep(5 * time.Millisecond)
	}
	n.Down = "version_mismatch"
	n.write()
	select {
	case err := <-ended:
		if !errors.Is(err, nvml.ErrReplaced) {
			t.Errorf("run: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it goes on with a driver that it cannot talk to")
	}
}
