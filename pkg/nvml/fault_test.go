//go:build cgo && linux

package nvml_test

import (
	"errors"
	"testing"

	"github.com/suanpan/suanpan/pkg/nvml"
	"github.com/suanpan/suanpan/pkg/nvml/fakenvml"
)

func TestRead_aLostGPUIsOutOfReachAndOthersAreNot(t *testing.T) {
	for _, how := range []string{"gpu_is_lost", "reset_required"} {
		t.Run(how, func(t *testing.T) {
			w := start(t, fakenvml.Node(3))
			devices := w.devices()
			w.GPUs[1].Values["fail"] = how
			w.write()
			w.refuses(devices[1], nvml.ErrLost)
			w.read(devices[0])
			w.read(devices[2])
			if got := uuids(w.devices()); got != "GPU-00 GPU-02" {
				t.Errorf("after the loss there are %s", got)
			}
			w.refuses(devices[1], nvml.ErrGone) // it was not listed

			// After a reset it is there again, once the library is started anew.
			delete(w.GPUs[1].Values, "fail")
			w.write()
			w.Rescan = 0
			if got := uuids(w.devices()); got != "GPU-00 GPU-01 GPU-02" {
				t.Errorf("after the reset there are %s", got)
			}
			w.read(devices[1])
		})
	}
}

func TestRead_thePartsOfALostGPUAreLost(t *testing.T) {
	script := fakenvml.Node(1)
	script.GPUs = append(script.GPUs, fakenvml.Split(fakenvml.H100(1), 2))
	w := start(t, script)
	devices := w.devices()
	w.GPUs[1].Values["fail"] = "gpu_is_lost"
	w.write()
	for _, d := range devices[1:] {
		w.refuses(d, nvml.ErrLost)
	}
	if got := uuids(w.devices()); got != "GPU-00" {
		t.Errorf("after the loss there are %s", got)
	}
}

func TestDevices_hotPlug(t *testing.T) {
	w := start(t, fakenvml.Node(2))
	before := w.devices()
	w.GPUs = append(w.GPUs, fakenvml.A100(2))
	w.write()
	if got := uuids(w.devices()); got != "GPU-00 GPU-01" {
		t.Errorf("NVML lists GPUs as they were at its start, and here %s", got)
	}
	w.Rescan = 0
	if got := uuids(w.devices()); got != "GPU-00 GPU-01 GPU-02" {
		t.Errorf("after the plug there are %s", got)
	}
	w.read(before[0]) // by its UUID: its handle is a new one

	// Unplugged: lost, and then not listed; the others have other indexes.
	w.GPUs = w.GPUs[1:]
	w.write()
	w.refuses(before[0], nvml.ErrLost)
	devices := w.devices()
	if got := uuids(devices); got != "GPU-01 GPU-02" || devices[0].Index != 0 {
		t.Errorf("after the unplug there are %s, from index %d", got, devices[0].Index)
	}
	w.read(devices[0])
}

func TestDevices_partsComeAndGo(t *testing.T) {
	script := fakenvml.Node(0)
	script.GPUs = []fakenvml.GPU{fakenvml.H100(0)}
	w := start(t, script)
	if d := w.devices()[0]; d.Partitioned {
		t.Errorf("a whole GPU is partitioned: %+v", d)
	}
	w.GPUs[0] = fakenvml.Split(fakenvml.H100(0), 2)
	w.write()
	devices := w.devices()
	if got := uuids(devices); got != "GPU-00 MIG--0 MIG--1" || !devices[0].Partitioned {
		t.Fatalf("after the split there are %s: %+v", got, devices)
	}
	w.read(devices[2])

	// The second is destroyed, and a larger one made in its place.
	larger := w.GPUs[0].Parts[1]
	larger.UUID, larger.Profile, larger.GI = "MIG-other-2", "2g.20gb", 5
	w.GPUs[0].Parts = append(w.GPUs[0].Parts[:1], larger)
	w.write()
	w.refuses(devices[2], nvml.ErrGone)
	devices = w.devices()
	if got := uuids(devices); got != "GPU-00 MIG--0 MIG--2" || devices[2].Profile != "2g.20gb" {
		t.Errorf("after the change there are %s: %+v", got, devices)
	}
	w.read(devices[2])

	w.GPUs[0] = fakenvml.H100(0)
	w.write()
	devices = w.devices()
	if got := uuids(devices); got != "GPU-00" || devices[0].Partitioned {
		t.Errorf("after the end of MIG there are %s: %+v", got, devices)
	}
	if r := w.read(devices[0]); !r.GPUUtil.OK {
		t.Error("a whole GPU tells no utilisation")
	}
}

func TestDevices_driverRestarts(t *testing.T) {
	w := start(t, fakenvml.Node(2))
	devices := w.devices()
	before := w.read(devices[0]).EnergyMJ.V

	// It goes away: nothing can be read, and nothing is started.
	w.Down = "driver_not_loaded"
	w.write()
	w.refuses(devices[0], nvml.ErrDriver)
	w.refuses(devices[1], nvml.ErrDriver)
	if _, err := w.Events(); !errors.Is(err, nvml.ErrDriver) {
		t.Errorf("events without a driver: %v", err)
	}
	for range 3 {
		if list, err := w.Devices(); !errors.Is(err, nvml.ErrDriver) || len(list) > 0 {
			t.Errorf("devices without a driver: %v %+v", err, list)
		}
	}
	if w.Library.Driver() != "" {
		t.Errorf("there is no driver, yet its version is %s", w.Library.Driver())
	}

	// And comes back, of another version.
	w.Down, w.Script.Driver = "", "595.80"
	w.Restart()
	w.write()
	w.refuses(devices[0], nvml.ErrDriver) // not before the devices are listed
	w.devices()
	if after := w.read(devices[0]).EnergyMJ.V; after >= before {
		t.Errorf("the energy counter was not reset: %d mJ after %d mJ", after, before)
	}
	if w.Library.Driver() != "595.80" {
		t.Errorf("driver %s", w.Library.Driver())
	}
}

// A restart that nobody noticed: handles are dead without the driver having been away.
func TestRead_afterAnUnnoticedRestart(t *testing.T) {
	w := start(t, fakenvml.Node(1))
	devices := w.devices()
	w.Restart()
	w.write()
	w.refuses(devices[0], nvml.ErrDriver)
	w.devices()
	w.read(devices[0])
}

func TestDevices_aReplacedDriverNeedsANewProcess(t *testing.T) {
	w := start(t, fakenvml.Node(1))
	d := w.devices()[0]
	w.Down = "version_mismatch"
	w.write()
	w.refuses(d, nvml.ErrReplaced)
	if _, err := w.Devices(); !errors.Is(err, nvml.ErrReplaced) {
		t.Errorf("devices of a replaced driver: %v", err)
	}
}

// What a container sees whose devices were taken from it.
func TestRead_anUnknownErrorIsTheDriver(t *testing.T) {
	w := start(t, fakenvml.Node(1))
	d := w.devices()[0]
	w.Down = "unknown"
	w.write()
	w.refuses(d, nvml.ErrDriver)
	if _, err := w.Devices(); !errors.Is(err, nvml.ErrDriver) {
		t.Errorf("devices: %v", err)
	}
}

// The driver may come up after the program: the library is there, and says so.
func TestOpen_beforeTheDriver(t *testing.T) {
	script := fakenvml.Node(1)
	script.Down = "driver_not_loaded"
	w := start(t, script)
	if _, err := w.Devices(); !errors.Is(err, nvml.ErrDriver) {
		t.Errorf("devices before the driver: %v", err)
	}
	w.Down = ""
	w.write()
	if got := len(w.devices()); got != 1 {
		t.Errorf("%d devices", got)
	}
}
