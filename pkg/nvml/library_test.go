//go:build cgo && linux

package nvml_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/suanpan/suanpan/pkg/nvml"
	"github.com/suanpan/suanpan/pkg/nvml/fakenvml"
)

// world is a library on a fake driver, and the driver's script.
type world struct {
	*nvml.Library
	*fakenvml.Script
	t    *testing.T
	path string
}

// start opens the library on a script.
func start(t *testing.T, script *fakenvml.Script) *world {
	t.Helper()
	w := &world{Script: script, t: t, path: filepath.Join(t.TempDir(), "script")}
	library := fakenvml.Build(t)
	w.write()
	t.Setenv(fakenvml.Env, w.path)
	var err error
	if w.Library, err = nvml.Open(library); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// write tells the driver what has changed.
func (w *world) write() {
	w.t.Helper()
	if err := w.Write(w.path); err != nil {
		w.t.Fatal(err)
	}
}

// devices lists the devices.
func (w *world) devices() []nvml.Device {
	w.t.Helper()
	devices, err := w.Devices()
	if err != nil {
		w.t.Fatal(err)
	}
	return devices
}

// read reads a device.
func (w *world) read(d nvml.Device) nvml.Reading {
	w.t.Helper()
	r, err := w.Read(d)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// refuses expects an error of a kind from reading a device, and nothing read.
func (w *world) refuses(d nvml.Device, want error) {
	w.t.Helper()
	r, err := w.Read(d)
	if !errors.Is(err, want) {
		w.t.Errorf("read %s: %v, want %v", d.UUID, err, want)
	}
	if diff := cmp.Diff(nvml.Reading{}, r); diff != "" {
		w.t.Errorf("read %s: it fails and tells something (-want +got):\n%s", d.UUID, diff)
	}
}

func uuids(devices []nvml.Device) string {
	var list []string
	for _, d := range devices {
		list = append(list, d.UUID[:4]+d.UUID[len(d.UUID)-2:])
	}
	return strings.Join(list, " ")
}

func TestDevices_gpusAndTheirParts(t *testing.T) {
	script := fakenvml.Node(1)
	script.GPUs = append(script.GPUs, fakenvml.Split(fakenvml.H100(1), 2), fakenvml.A100(2))
	w := start(t, script)
	h100 := nvml.Device{
		UUID: "GPU-00000000-0000-0000-0000-000000000000", Name: "NVIDIA H100 80GB HBM3",
		Index: 0, MIGIndex: nvml.None, GPUInstance: nvml.None, ComputeInstance: nvml.None,
		MemoryMiB: 81559, BusID: "00000000:18:00.0", Serial: "1650000000000",
	}
	split := h100
	split.UUID, split.Index, split.Partitioned = "GPU-00000000-0000-0000-0000-000000000001", 1, true
	split.BusID, split.Serial = "00000000:19:00.0", "1650000000001"
	part := nvml.Device{
		UUID: "MIG-00000000-0000-0000-0000-000000000001-0", Parent: split.UUID, Name: split.Name,
		Profile: "1g.10gb", Index: 1, MIGIndex: 0, GPUInstance: 7, ComputeInstance: 0,
		MemoryMiB: 9984, BusID: split.BusID, Serial: split.Serial,
	}
	other := part
	other.UUID, other.MIGIndex, other.GPUInstance = part.UUID[:len(part.UUID)-1]+"1", 1, 8
	a100 := h100
	a100.UUID, a100.Name = "GPU-aaaaaaaa-0000-0000-0000-000000000002", "NVIDIA A100-SXM4-80GB"
	a100.Index, a100.MemoryMiB, a100.BusID = 2, 81920, "00000000:1A:00.0"
	a100.Serial = "1650000000002"
	want := []nvml.Device{h100, split, part, other, a100}
	for range 2 { // the second time it knows them
		if diff := cmp.Diff(want, w.devices()); diff != "" {
			t.Errorf("devices (-want +got):\n%s", diff)
		}
	}
	if w.Library.Driver() != "590.48.01" {
		t.Errorf("driver %q", w.Library.Driver())
	}
}

func TestRead_allThatACardTells(t *testing.T) {
	script := fakenvml.Node(1)
	values := script.GPUs[0].Values
	values["energy_mj"], values["throttle"] = "123456789", "68" // power cap and hot hardware
	values["ecc_corrected"], values["ecc_uncorrected"] = "3", "1"
	values["remapped_pending"], values["replays"] = "1", "9"
	script.GPUs[0].Processes = []fakenvml.Process{
		{PID: 21198, Name: "./gpu_burn", MiB: 7484}, {PID: 4711, Name: "/usr/bin/python3", MiB: -1},
	}
	w := start(t, script)
	d := w.devices()[0]
	const mib = 1 << 20
	want := nvml.Reading{
		GPUUtil: nvml.Some(0.98), MemoryUtil: nvml.Some(0.47),
		Memory: nvml.Some(nvml.Memory{
			Total: 81559 * mib, Reserved: 479 * mib, Used: 45332 * mib, Free: 35748 * mib,
		}),
		TemperatureC: nvml.Some(53.0), MemoryTemperatureC: nvml.Some(59.0),
		PowerW: nvml.Some(433.78), PowerLimitW: nvml.Some(700.0), EnergyMJ: nvml.Some(uint64(123456789)),
		SMClock: nvml.Some(1980.0), MemClock: nvml.Some(2619.0),
		Throttle: nvml.Some(nvml.ThrottlePowerCap | nvml.ThrottleHotHardware),
		ECC: nvml.Some(nvml.ECC{
			CorrectedVolatile: 3, UncorrectedVolatile: 1, CorrectedAggregate: 2,
		}),
		Remapped: nvml.Some(nvml.Remapped{Corrected: 1, Pending: true}),
		Replays:  nvml.Some(uint64(9)),
		Processes: nvml.Some([]nvml.Process{
			{PID: 21198, Name: "./gpu_burn", UsedBytes: nvml.Some(uint64(7484 * mib))},
			{PID: 4711, Name: "/usr/bin/python3"},
		}),
	}
	if diff := cmp.Diff(want, w.read(d)); diff != "" {
		t.Errorf("first reading (-want +got):\n%s", diff)
	}
	// The chip's counters tell what happened between two readings.
	want.Activity = nvml.Some(nvml.Activity{
		Graphics: 0.975, SM: 0.8825, Occupancy: 0.31, Tensor: 0.42, DRAM: 0.55,
	})
	if diff := cmp.Diff(want, w.read(d)); diff != "" {
		t.Errorf("second reading (-want +got):\n%s", diff)
	}
}

func TestRead_whatACardDoesNotTellIsAbsent(t *testing.T) {
	w := start(t, &fakenvml.Script{GPUs: []fakenvml.GPU{{
		UUID: "GPU-0", Name: "NVIDIA T4", Values: fakenvml.Values{"mem_mib": "15360", "used_mib": "3"},
	}}})
	const mib = 1 << 20
	want := nvml.Reading{
		Memory: nvml.Some(nvml.Memory{
			Total: 15360 * mib, Used: 3 * mib, Free: 15357 * mib,
		}),
		Processes: nvml.Some([]nvml.Process{}),
	}
	d := w.devices()[0]
	for range 2 {
		if diff := cmp.Diff(want, w.read(d)); diff != "" {
			t.Errorf("reading (-want +got):\n%s", diff)
		}
	}
}

// A MIG device has no utilisation in NVML, not even where its card would claim one; on Hopper the
// chip's counters have it.
func TestRead_partsHaveNoUtilisationUnlessTheChipCountsIt(t *testing.T) {
	script := fakenvml.Node(0)
	script.GPUs = []fakenvml.GPU{
		fakenvml.Split(fakenvml.H100(0), 1), fakenvml.Split(fakenvml.A100(1), 1),
	}
	w := start(t, script)
	for _, d := range w.devices() {
		w.read(d)
		r := w.read(d)
		if r.GPUUtil.OK || r.MemoryUtil.OK {
			t.Errorf("%s tells utilisation: %+v %+v", d.UUID, r.GPUUtil, r.MemoryUtil)
		}
		counts := strings.Contains(d.Name, "H100")
		if r.Activity.OK != counts {
			t.Errorf("%s tells activity: %t, want %t", d.UUID, r.Activity.OK, counts)
		}
		if d.MIG() && counts && r.Activity.V.Graphics != 0.5 {
			t.Errorf("%s: activity %v is not its own", d.UUID, r.Activity.V)
		}
		if !r.Memory.OK {
			t.Errorf("%s tells no memory", d.UUID)
		}
		if d.MIG() == (r.PowerW.OK || r.TemperatureC.OK || r.EnergyMJ.OK || r.ECC.OK) {
			t.Errorf("%s: MIG %t, yet power, temperature, energy or ECC: %+v", d.UUID, d.MIG(), r)
		}
	}
}

// What the counters say of a time in which they were away is not what happened since the reading
// before.
func TestRead_activityBeginsAnewAfterAGap(t *testing.T) {
	w := start(t, fakenvml.Node(1))
	d := w.devices()[0]
	told := func() bool { return w.read(d).Activity.OK }
	if told() || !told() {
		t.Error("activity is told at the first reading, or not at the second")
	}
	delete(w.GPUs[0].Values, "gpm")
	w.write()
	if told() {
		t.Error("activity is told without the counters")
	}
	w.GPUs[0].Values["gpm"] = "1"
	w.write()
	if told() || !told() {
		t.Error("after the gap, activity is told at once, or not at the second reading")
	}
}

func TestRead_eachPartHasItsOwnProcesses(t *testing.T) {
	script := fakenvml.Node(0)
	card := fakenvml.Split(fakenvml.H100(0), 2)
	card.Parts[0].Processes = []fakenvml.Process{{PID: 1, Name: "a", MiB: 10}}
	card.Parts[1].Processes = []fakenvml.Process{{PID: 2, Name: "b", MiB: 20}, {PID: 3, Name: "c"}}
	script.GPUs = []fakenvml.GPU{card}
	w := start(t, script)
	for i, want := range []int{3, 1, 2} {
		d := w.devices()[i]
		if got := w.read(d).Processes; len(got.V) != want {
			t.Errorf("%s has the processes %+v, want %d", d.UUID, got, want)
		}
	}
}

func TestRead_valuesChangeWithTimeAndScript(t *testing.T) {
	script := fakenvml.Node(1)
	script.GPUs[0].Values["util"] = "10,20,30"
	script.GPUs[0].Values["energy_mj"] = "5+1000"
	w := start(t, script)
	d := w.devices()[0]
	for second, want := range []float64{0.1, 0.2, 0.3, 0.1} {
		// The driver has run for so many seconds and a half.
		w.Epoch = time.Now().Add(-time.Duration(second)*time.Second - 500*time.Millisecond)
		w.write()
		r := w.read(d)
		if r.GPUUtil.V != want {
			t.Errorf("second %d: utilisation %v, want %v", second, r.GPUUtil.V, want)
		}
		low := uint64(second*1000 + 505)
		if r.EnergyMJ.V < low || r.EnergyMJ.V > low+400 {
			t.Errorf("second %d: %d mJ, want about %d", second, r.EnergyMJ.V, low)
		}
	}
	w.GPUs[0].Values["util"] = "77"
	w.write()
	if got := w.read(d).GPUUtil.V; got != 0.77 {
		t.Errorf("the script says 77 %%, the reading %v", got)
	}
}

func TestEvents_areToldOnceAndByWhoseTheyAre(t *testing.T) {
	script := fakenvml.Node(1)
	script.GPUs = append(script.GPUs, fakenvml.Split(fakenvml.H100(1), 2))
	script.XIDs = []fakenvml.XID{{Seq: 1, Device: script.GPUs[0].UUID, Code: 13}} // long ago
	w := start(t, script)
	w.devices()
	events := func() []nvml.Event {
		t.Helper()
		events, err := w.Events()
		if err != nil {
			t.Fatal(err)
		}
		return events
	}
	if got := events(); len(got) > 0 {
		t.Errorf("events before any: %+v", got)
	}
	w.XIDs = append(w.XIDs,
		fakenvml.XID{Seq: 2, Device: script.GPUs[0].UUID, Code: 79},
		fakenvml.XID{Seq: 3, Device: script.GPUs[1].UUID, Code: 48},
		fakenvml.XID{Seq: 4, Device: script.GPUs[1].UUID, Code: 31, GI: 8})
	w.write()
	want := []nvml.Event{
		{UUID: script.GPUs[0].UUID, XID: 79},
		{UUID: script.GPUs[1].UUID, XID: 48},
		{UUID: script.GPUs[1].Parts[1].UUID, XID: 31},
	}
	if diff := cmp.Diff(want, events()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if got := events(); len(got) > 0 {
		t.Errorf("told again: %+v", got)
	}
}

// A lost GPU reports its fault, and cannot even say who it is.
func TestEvents_ofALostGPU(t *testing.T) {
	w := start(t, fakenvml.Node(2))
	w.devices()
	w.GPUs[1].Values["fail"] = "gpu_is_lost"
	w.XIDs = []fakenvml.XID{{Seq: 1, Device: w.GPUs[1].UUID, Code: 79}}
	w.write()
	w.devices() // it is not among them any more
	events, err := w.Events()
	want := []nvml.Event{{UUID: w.GPUs[1].UUID, XID: 79}}
	if diff := cmp.Diff(want, events); diff != "" || err != nil {
		t.Errorf("events: %v (-want +got):\n%s", err, diff)
	}
}

func TestThrottle_names(t *testing.T) {
	f := func(bits nvml.Throttle, want string) {
		t.Helper()
		if got := bits.String(); got != want {
			t.Errorf("%#x is %q, want %q", uint64(bits), got, want)
		}
	}
	f(0, "-")
	f(0x4, "sw_power_cap")
	f(0x1|0x20|0x80, "gpu_idle,sw_thermal_slowdown,hw_power_brake_slowdown")
	f(1<<40, "-") // a reason of a later driver
}

func TestOpen_withoutALibrary(t *testing.T) {
	_, err := nvml.Open(filepath.Join(t.TempDir(), "libnvidia-ml.so.1"))
	if !errors.Is(err, nvml.ErrUnavailable) {
		t.Errorf("open what is not there: %v", err)
	}
	text := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	if err := os.WriteFile(text, []byte("not a library"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := nvml.Open(text); !errors.Is(err, nvml.ErrUnavailable) {
		t.Errorf("open what is no library: %v", err)
	}
}

// oldLibrary is set in the process in which TestOpen_onAnOldDriver reads.
const oldLibrary = "SUANPAN_TEST_OLD_NVML"

// A call of a function that the library lacks ends the process, so this is one of its own; the
// other tests' library would also lend its functions.
func TestOpen_onAnOldDriver(t *testing.T) {
	if path := os.Getenv(oldLibrary); path != "" {
		readOld(t, path)
		return
	}
	fakenvml.Build(t) // or skip
	path, err := fakenvml.Compile(t.Context(), "-DOLD_DRIVER")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOpen_onAnOldDriver$",
		"-test.v")
	command.Env = append(os.Environ(), oldLibrary+"="+path)
	text, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(text), "read an old driver") {
		t.Errorf("read an old driver: %v\n%s", err, text)
	}
}

func readOld(t *testing.T, library string) {
	script := fakenvml.Node(1)
	script.GPUs = append(script.GPUs, fakenvml.Split(fakenvml.A100(1), 1))
	path := filepath.Join(t.TempDir(), "script")
	if err := script.Write(path); err != nil {
		t.Fatal(err)
	}
	t.Setenv(fakenvml.Env, path)
	l, err := nvml.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	devices, err := l.Devices()
	if err != nil || len(devices) != 3 {
		t.Fatalf("devices: %v %+v", err, devices)
	}
	for _, d := range devices {
		r, err := l.Read(d)
		if err != nil {
			t.Fatal(err)
		}
		// Such drivers count what is reserved as used; there is no GPM, no processes by part.
		if !r.Memory.OK || r.Memory.V.Reserved != 0 || r.Activity.OK || r.Processes.OK {
			t.Errorf("%s: %+v", d.UUID, r)
		}
		if !d.MIG() && (!r.PowerW.OK || !r.Throttle.OK) {
			t.Errorf("%s: no power or throttle reasons: %+v", d.UUID, r)
		}
	}
	if _, err := l.Events(); err != nil {
		t.Error(err)
	}
	t.Log("read an old driver")
}
