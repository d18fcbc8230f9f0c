// Package nvml reads GPUs through NVIDIA's management library. A Library lists the GPUs and MIG
// devices of this node and reads each of them; what a device does not tell is absent from its
// reading and never made up. It hides the versions of the library's functions, lost GPUs, MIG
// devices that come and go, and restarts of the driver, and is the only part that needs cgo: a
// program built without it gets ErrUnavailable. It knows nothing of leases and keeps no history.
package nvml

import (
	"errors"
	"strings"
)

// Errors that callers can tell apart, with errors.Is.
var (
	// ErrUnavailable means that there is no library to load, or that this program was built
	// without cgo.
	ErrUnavailable = errors.New("nvml is not available")
	// ErrDriver means that the driver does not answer: it is not loaded, or restarts. All devices
	// are out of reach until Devices succeeds again.
	ErrDriver = errors.New("the driver does not answer")
	// ErrReplaced means that the driver is of another version than the library in this process.
	// Only a restart of the process loads the new one.
	ErrReplaced = errors.New("the driver was replaced: restart this process")
	// ErrLost means that a GPU fell off the bus or wants a reset.
	ErrLost = errors.New("gpu is lost")
	// ErrGone means that the device is not there any more: a MIG device that was destroyed, or a
	// device that no call of Devices has listed since the driver's last start.
	ErrGone = errors.New("device is gone")
)

// None stands for an index or instance that a device does not have.
const None = -1

// Device is a GPU, or a MIG device, which is a part of one. Its UUID identifies it across restarts.
type Device struct {
	UUID    string // "GPU-..." or "MIG-..."
	Parent  string // a MIG device's GPU, by its UUID; "" for a GPU
	Name    string // the GPU's product, "NVIDIA H100 80GB HBM3", also of its MIG devices
	Profile string // of a MIG device, "1g.10gb"; "" for a GPU

	Index           int // of the GPU, from 0; it may change when the driver restarts
	MIGIndex        int // of the MIG device on its GPU, from 0; None for a GPU
	GPUInstance     int // of a MIG device; None for a GPU
	ComputeInstance int // of a MIG device; None for a GPU

	Partitioned bool   // a GPU in MIG mode: only its MIG devices can be used, and not it as a whole
	MemoryMiB   int64  // in all, what the driver reserves included
	BusID       string // of the GPU, "00000000:18:00.0"
	Serial      string // of the board, "" where it has none
}

// MIG reports whether the device is a part of a GPU.
func (d Device) MIG() bool { return d.Parent != "" }

// Value is something that a device may not tell. The zero value is absent.
type Value[T any] struct {
	V  T    // meaningless unless OK
	OK bool // the device told it
}

// Some returns a value that is there.
func Some[T any](v T) Value[T] { return Value[T]{v, true} }

// Reading is what one device told at one time.
type Reading struct {
	// GPUUtil is the share of the last sample period (1/6 to 1 s) in which a kernel ran, MemoryUtil
	// that in which memory was read or written: 0 to 1. No MIG device and no partitioned GPU has
	// them.
	GPUUtil, MemoryUtil Value[float64]
	// Activity is measured since the reading before: by Hopper and later, also of MIG devices.
	Activity Value[Activity]
	// Memory is that of the device: of a MIG device, what its GPU instance has.
	Memory Value[Memory]

	// The rest belongs to the whole card, so that no MIG device has any of it but processes.

	TemperatureC       Value[float64] // of the chip
	MemoryTemperatureC Value[float64] // of its memory
	PowerW             Value[float64] // averaged over a second on Ampere and later
	PowerLimitW        Value[float64] // that is enforced
	// EnergyMJ is a counter in millijoules. It starts again from 0 when the driver does.
	EnergyMJ  Value[uint64]
	SMClock   Value[float64] // MHz
	MemClock  Value[float64] // MHz
	Throttle  Value[Throttle]
	ECC       Value[ECC]
	Remapped  Value[Remapped]
	Replays   Value[uint64] // retries on PCIe, a counter
	Processes Value[[]Process]
}

// Memory is in bytes. Used does not include what the driver reserves for itself.
type Memory struct {
	Total, Reserved, Used, Free uint64
}

// Activity is what the counters of the chip say (GPM): shares of the time since the reading before,
// 0 to 1.
type Activity struct {
	Graphics  float64 // anything ran
	SM        float64 // an average multiprocessor had work
	Occupancy float64 // of the multiprocessors' places for warps
	Tensor    float64 // tensor cores were busy
	DRAM      float64 // of the memory's bandwidth
}

// ECC counts memory errors: volatile ones since the driver's start, aggregate ones since ever.
type ECC struct {
	CorrectedVolatile, UncorrectedVolatile   uint64
	CorrectedAggregate, UncorrectedAggregate uint64
}

// Remapped counts rows of memory that were replaced because of errors.
type Remapped struct {
	Corrected, Uncorrected uint64
	Pending, Failed        bool
}

// Process is a program that uses the device. A MIG device has its own only.
type Process struct {
	PID       uint32        // as the node counts them
	Name      string        // the program's path; "" where it may not be known
	UsedBytes Value[uint64] // of the device's memory
}

// Event is a fault that the driver reported.
type Event struct {
	UUID string // of the GPU, or of the MIG device where the driver names one that is known
	XID  uint64 // the driver's number of the fault; 79: the GPU has fallen off the bus
}

// Throttle is a set of reasons for which clocks are lower than they could be.
type Throttle uint64

// The reasons, by NVML's bits.
const (
	ThrottleIdle        Throttle = 0x1
	ThrottleSetting     Throttle = 0x2 // applications' clocks
	ThrottlePowerCap    Throttle = 0x4
	ThrottleHardware    Throttle = 0x8 // any hardware slowdown
	ThrottleSyncBoost   Throttle = 0x10
	ThrottleThermal     Throttle = 0x20 // by software
	ThrottleHotHardware Throttle = 0x40 // thermal, by hardware
	ThrottlePowerBrake  Throttle = 0x80 // from outside
	ThrottleDisplay     Throttle = 0x100
)

// throttleNames are the reasons' names in metrics, by bit.
var throttleNames = []struct {
	Bit  Throttle
	Name string
}{
	{ThrottleIdle, "gpu_idle"},
	{ThrottleSetting, "applications_clocks_setting"},
	{ThrottlePowerCap, "sw_power_cap"},
	{ThrottleHardware, "hw_slowdown"},
	{ThrottleSyncBoost, "sync_boost"},
	{ThrottleThermal, "sw_thermal_slowdown"},
	{ThrottleHotHardware, "hw_thermal_slowdown"},
	{ThrottlePowerBrake, "hw_power_brake_slowdown"},
	{ThrottleDisplay, "display_clock_setting"},
}

// Each calls f for all known reasons, in the order of their bits, with nvidia-smi's name of each
// and whether it is in the set.
func (t Throttle) Each(f func(name string, active bool)) {
	for _, n := range throttleNames {
		f(n.Name, t&n.Bit != 0)
	}
}

// String returns the reasons in the set, "sw_power_cap,sw_thermal_slowdown", or "-".
func (t Throttle) String() string {
	var names []string
	t.Each(func(name string, active bool) {
		if active {
			names = append(names, name)
		}
	})
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, ",")
}
