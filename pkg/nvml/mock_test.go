//go:build cgo && linux

package nvml

import (
	"errors"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
	"github.com/google/go-cmp/cmp"
)

// servers are go-nvml's mocks of whole machines.
func servers() map[string]*server.Server {
	return map[string]*server.Server{"dgxa100": dgxa100.New(), "dgxh100": dgxh100.New()}
}

// complete sets what the mocks leave out. Each card draws 100 W more than the one before.
func complete(s *server.Server) {
	s.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) {
		return nil, nvml.ERROR_NOT_SUPPORTED
	}
	s.SystemGetProcessNameFunc = func(int) (string, nvml.Return) {
		return "", nvml.ERROR_NO_PERMISSION
	}
	for i, handle := range s.Devices {
		d := handle.(*server.Device)
		d.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) {
			m, ret := d.GetMemoryInfo()
			return nvml.Memory_v2{Total: m.Total, Reserved: 1 << 20, Free: m.Total - 1<<20}, ret
		}
		d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) {
			return nvml.Utilization{Gpu: uint32(10 * i), Memory: 5}, nvml.SUCCESS
		}
		d.GetPowerUsageFunc = func() (uint32, nvml.Return) {
			return uint32(100_000 * (i + 1)), nvml.SUCCESS
		}
		d.GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) {
			return 1 << 40, nvml.SUCCESS // more than 32 bits
		}
		d.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) {
			return 40, nvml.SUCCESS
		}
		d.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
			return []nvml.ProcessInfo{{Pid: 7, UsedGpuMemory: notAvailable}}, nvml.SUCCESS
		}
		unsupported(d)
	}
}

// unsupported lets a card refuse all the rest.
func unsupported(d *server.Device) {
	const no = nvml.ERROR_NOT_SUPPORTED
	d.GetSerialFunc = func() (string, nvml.Return) { return "", no }
	d.GetFieldValuesFunc = func([]nvml.FieldValue) nvml.Return { return no }
	d.GetEnforcedPowerLimitFunc = func() (uint32, nvml.Return) { return 0, no }
	d.GetClockInfoFunc = func(nvml.ClockType) (uint32, nvml.Return) { return 0, no }
	d.GetCurrentClocksEventReasonsFunc = func() (uint64, nvml.Return) { return 0, no }
	d.GetCurrentClocksThrottleReasonsFunc = func() (uint64, nvml.Return) { return 0, no }
	d.GetPcieReplayCounterFunc = func() (int, nvml.Return) { return 0, no }
	d.GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) {
		return 0, 0, false, false, no
	}
	d.GetTotalEccErrorsFunc = func(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return) {
		return 0, no
	}
	d.GpmQueryDeviceSupportFunc = func() (nvml.GpmSupport, nvml.Return) {
		return nvml.GpmSupport{}, no
	}
}

func TestLibrary_onMockedMachines(t *testing.T) {
	for name, machine := range servers() {
		t.Run(name, func(t *testing.T) {
			complete(machine)
			l := open(machine)
			devices, err := l.Devices()
			if err != nil || len(devices) != 8 {
				t.Fatalf("%d devices: %v", len(devices), err)
			}
			for i, d := range devices {
				card := machine.Devices[i].(*server.Device)
				want := Device{
					UUID: card.UUID, Name: card.Config.Name, Index: i, MIGIndex: None,
					GPUInstance: None, ComputeInstance: None, MemoryMiB: int64(card.Config.MemoryMB),
				}
				if diff := cmp.Diff(want, d); diff != "" {
					t.Errorf("device %d (-want +got):\n%s", i, diff)
				}
				total := card.Config.MemoryMB << 20
				reading := Reading{
					GPUUtil: Some(float64(i) / 10), MemoryUtil: Some(0.05),
					Memory: Some(Memory{
						Total: total, Reserved: 1 << 20, Free: total - 1<<20,
					}),
					PowerW: Some(float64(100 * (i + 1))), EnergyMJ: Some(uint64(1 << 40)),
					TemperatureC: Some(40.0), Processes: Some([]Process{{PID: 7}}),
				}
				got, err := l.Read(d)
				if diff := cmp.Diff(reading, got); diff != "" || err != nil {
					t.Errorf("reading %d: %v (-want +got):\n%s", i, err, diff)
				}
			}
		})
	}
}

// part mocks a MIG device. Its utilisation must not be asked for: that would panic.
func part(uuid, name string, gi int, a nvml.DeviceAttributes) nvml.Device {
	d := &mock.Device{
		GetUUIDFunc:              func() (string, nvml.Return) { return uuid, nvml.SUCCESS },
		GetNameFunc:              func() (string, nvml.Return) { return name, nvml.SUCCESS },
		GetGpuInstanceIdFunc:     func() (int, nvml.Return) { return gi, nvml.SUCCESS },
		GetComputeInstanceIdFunc: func() (int, nvml.Return) { return 0, nvml.SUCCESS },
		GetAttributesFunc:        func() (nvml.DeviceAttributes, nvml.Return) { return a, nvml.SUCCESS },
		GetMemoryInfo_v2Func: func() (nvml.Memory_v2, nvml.Return) {
			return nvml.Memory_v2{Total: a.MemorySizeMB << 20, Free: a.MemorySizeMB << 20}, nvml.SUCCESS
		},
		// As some drivers do, it lists the whole card's.
		GetComputeRunningProcessesFunc: func() ([]nvml.ProcessInfo, nvml.Return) {
			return []nvml.ProcessInfo{
				{Pid: 1, GpuInstanceId: uint32(gi)},
				{Pid: 2, GpuInstanceId: uint32(gi + 1)},
				{Pid: 3, GpuInstanceId: uint32(gi), ComputeInstanceId: 1},
			}, nvml.SUCCESS
		},
	}
	return d
}

// Older drivers name a MIG device as its card: its profile follows from its slices.
func TestDevices_profilesOfMockedParts(t *testing.T) {
	f := func(machine *server.Server, name string, a nvml.DeviceAttributes, want string) {
		t.Helper()
		complete(machine)
		card := machine.Devices[3].(*server.Device)
		card.MigMode = nvml.DEVICE_MIG_ENABLE
		card.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 7, nvml.SUCCESS }
		card.GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
			if i != 2 {
				return nil, nvml.ERROR_NOT_FOUND
			}
			return part("MIG-1", name, 9, a), nvml.SUCCESS
		}
		l := open(machine)
		devices, err := l.Devices()
		if err != nil || len(devices) != 9 {
			t.Fatalf("%d devices: %v", len(devices), err)
		}
		got := devices[4]
		if got.Parent != card.UUID || got.Profile != want || got.GPUInstance != 9 || got.MIGIndex != 2 {
			t.Errorf("MIG device %+v, want %s", got, want)
		}
		r, err := l.Read(got)
		if err != nil || len(r.Processes.V) != 1 || r.Processes.V[0].PID != 1 {
			t.Errorf("reading of the MIG device: %v, processes %+v", err, r.Processes)
		}
		if r, err := l.Read(devices[3]); err != nil || r.GPUUtil.OK {
			t.Errorf("partitioned GPU: %v, utilisation %+v", err, r.GPUUtil)
		}
	}
	attributes := func(gpu, compute uint32, mib uint64) nvml.DeviceAttributes {
		return nvml.DeviceAttributes{
			GpuInstanceSliceCount: gpu, ComputeInstanceSliceCount: compute, MemorySizeMB: mib,
		}
	}
	f(dgxa100.New(), "NVIDIA A100-SXM4-40GB", attributes(1, 1, 4864), "1g.5gb")
	f(dgxa100.New(), "NVIDIA A100-SXM4-40GB", attributes(3, 3, 20096), "3g.20gb")
	f(dgxh100.New(), "NVIDIA H100 80GB HBM3", attributes(1, 1, 9984), "1g.10gb")
	f(dgxh100.New(), "NVIDIA H100 80GB HBM3", attributes(3, 1, 40192), "1c.3g.40gb")
	f(dgxh100.New(), "NVIDIA H100 80GB HBM3 MIG 1g.10gb+me", attributes(1, 1, 9984), "1g.10gb+me")
}

// A device whose first call already fails in a way of its own is that device's matter.
func TestRead_oneRefusalDoesNotStopOthers(t *testing.T) {
	machine := dgxh100.New()
	complete(machine)
	l := open(machine)
	devices, err := l.Devices()
	if err != nil {
		t.Fatal(err)
	}
	card := machine.Devices[0].(*server.Device)
	card.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 0, nvml.ERROR_NO_PERMISSION }
	r, err := l.Read(devices[0])
	if err != nil || r.PowerW.OK || !r.GPUUtil.OK || !r.EnergyMJ.OK {
		t.Errorf("one value is refused: %v %+v", err, r)
	}
	// Lost in the middle of a reading: nothing of it counts.
	card.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) {
		return 0, nvml.ERROR_GPU_IS_LOST
	}
	if r, err = l.Read(devices[0]); !errors.Is(err, ErrLost) || r.GPUUtil.OK {
		t.Errorf("lost in the middle: %v %+v", err, r)
	}
	if _, err := l.Read(devices[1]); err != nil {
		t.Error(err)
	}
}

// Only a new start of the library can see a lost GPU again; it is slow, so that it waits a little.
func TestDevices_aLostGPUIsLookedForSoon(t *testing.T) {
	machine := dgxh100.New()
	complete(machine)
	starts := 0
	machine.InitFunc = func() nvml.Return {
		starts++
		return nvml.SUCCESS
	}
	l := open(machine)
	// list lists the devices when the library has run for a time.
	list := func(age time.Duration, want int) {
		t.Helper()
		if !l.started.IsZero() {
			l.started = time.Now().Add(-age)
		}
		if _, err := l.Devices(); err != nil || starts != want {
			t.Errorf("after %s: %d starts, want %d (%v)", age, starts, want, err)
		}
	}
	list(0, 1)
	list(2*time.Minute, 1)
	list(time.Hour, 2) // something may have been plugged in
	card := machine.Devices[0].(*server.Device)
	memory := card.GetMemoryInfo_v2Func
	card.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) {
		return nvml.Memory_v2{}, nvml.ERROR_GPU_IS_LOST
	}
	if _, err := l.Read(l.list()[0]); !errors.Is(err, ErrLost) {
		t.Errorf("read a lost GPU: %v", err)
	}
	list(time.Second, 2)
	list(2*time.Minute, 3)
	card.GetMemoryInfo_v2Func = memory
	list(2*time.Minute, 3)
}

// A card that refuses to say who it is, and a MIG device that is destroyed while it is listed, hide
// no other.
func TestDevices_oneRefusalHidesNoOther(t *testing.T) {
	machine := dgxh100.New()
	complete(machine)
	machine.Devices[2].(*server.Device).GetUUIDFunc = func() (string, nvml.Return) {
		return "", nvml.ERROR_NO_PERMISSION
	}
	card := machine.Devices[3].(*server.Device)
	card.MigMode = nvml.DEVICE_MIG_ENABLE
	card.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 2, nvml.SUCCESS }
	card.GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		d := part("MIG-1", "A MIG 1g.10gb", 9, nvml.DeviceAttributes{})
		if i == 0 {
			d.(*mock.Device).GetUUIDFunc = func() (string, nvml.Return) {
				return "", nvml.ERROR_INVALID_ARGUMENT
			}
		}
		return d, nvml.SUCCESS
	}
	devices, err := open(machine).Devices()
	if err != nil || len(devices) != 8 || devices[3].UUID != "MIG-1" {
		t.Errorf("%d devices, %v: %+v", len(devices), err, devices)
	}
}
