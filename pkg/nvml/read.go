//go:build cgo && linux

package nvml

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

const (
	percent = 100  // utilisation is told in percent
	milli   = 1000 // power is told in milliwatts
)

// Read reads a device that Devices listed. What the device does not tell is absent from the
// reading. The error wraps ErrLost, ErrGone, ErrDriver or ErrReplaced where the device cannot be
// reached: then the reading is empty.
func (l *Library) Read(d Device) (Reading, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.handles[d.UUID]
	switch {
	case l.started.IsZero():
		return Reading{}, fmt.Errorf("read %s: %w", d.UUID, ErrDriver)
	case !ok:
		return Reading{}, fmt.Errorf("read %s: %w", d.UUID, ErrGone)
	}
	r := reader{library: l, self: h.self}
	r.Memory = l.memoryOf(&r, h.self)
	if !h.device.MIG() {
		r.card(h.device)
	}
	r.processes(h.device)
	if r.fatal == nvml.SUCCESS {
		r.Activity = h.gpm.measure(&r)
	}
	if r.fatal != nvml.SUCCESS {
		return Reading{}, l.fail("read "+d.UUID, r.fatal)
	}
	return r.Reading, nil
}

// reader collects a reading. Once the device is out of reach it asks for nothing more.
type reader struct {
	Reading
	library *Library
	self    nvml.Device
	fatal   nvml.Return // SUCCESS while the device can be reached
}

// ok reports whether a call told something. It tells a device that is out of reach from one that
// does not have what was asked for.
func (r *reader) ok(ret nvml.Return) bool {
	switch ret {
	case nvml.SUCCESS:
		return true
	case nvml.ERROR_GPU_IS_LOST, nvml.ERROR_RESET_REQUIRED, nvml.ERROR_UNINITIALIZED,
		nvml.ERROR_DRIVER_NOT_LOADED, nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		r.fatal = ret
	default: // not supported, no permission, no data yet, ...
	}
	return false
}

// asks reports whether a function may be called: the device is in reach and the library has it.
func (r *reader) asks(symbol string) bool {
	return r.fatal == nvml.SUCCESS && r.library.has(symbol)
}

// float reads a number.
func (r *reader) float(symbol string, scale float64, call func() (uint32, nvml.Return),
) Value[float64] {
	if !r.asks(symbol) {
		return Value[float64]{}
	}
	v, ret := call()
	if !r.ok(ret) {
		return Value[float64]{}
	}
	return Some(float64(v) / scale)
}

// count reads a counter.
func (r *reader) count(symbol string, call func() (uint64, nvml.Return)) Value[uint64] {
	if !r.asks(symbol) {
		return Value[uint64]{}
	}
	v, ret := call()
	return Value[uint64]{v, r.ok(ret)}
}

// memory reads the memory of a device, outside of a reading.
func (l *Library) memory(dev nvml.Device) Value[Memory] {
	return l.memoryOf(&reader{library: l}, dev)
}

// memoryOf reads the memory. Every device tells it, so that here is seen what is out of reach.
func (l *Library) memoryOf(r *reader, dev nvml.Device) Value[Memory] {
	if r.asks("nvmlDeviceGetMemoryInfo_v2") {
		m, ret := dev.GetMemoryInfo_v2()
		if r.ok(ret) {
			return Some(Memory{m.Total, m.Reserved, m.Used, m.Free})
		}
		if ret == nvml.ERROR_UNKNOWN || ret == nvml.ERROR_INVALID_ARGUMENT ||
			ret == nvml.ERROR_NOT_FOUND {
			r.fatal = ret
		}
		return Value[Memory]{}
	}
	if r.fatal != nvml.SUCCESS {
		return Value[Memory]{}
	}
	// Drivers before 510: what is reserved counts as used, and cannot be told from it.
	m, ret := dev.GetMemoryInfo()
	return Value[Memory]{Memory{Total: m.Total, Used: m.Used, Free: m.Free}, r.ok(ret)}
}

// card reads what only whole cards have.
func (r *reader) card(d Device) {
	dev := r.self
	// NVML has no utilisation where a GPU is in MIG mode; it is not even asked for.
	if !d.Partitioned && r.asks("nvmlDeviceGetUtilizationRates") {
		if u, ret := dev.GetUtilizationRates(); r.ok(ret) {
			r.GPUUtil = Some(float64(u.Gpu) / percent)
			r.MemoryUtil = Some(float64(u.Memory) / percent)
		}
	}
	r.TemperatureC = r.float("nvmlDeviceGetTemperature", 1, func() (uint32, nvml.Return) {
		return dev.GetTemperature(nvml.TEMPERATURE_GPU)
	})
	r.MemoryTemperatureC = r.memoryTemperature()
	r.PowerW = r.float("nvmlDeviceGetPowerUsage", milli, dev.GetPowerUsage)
	r.PowerLimitW = r.float("nvmlDeviceGetEnforcedPowerLimit", milli, dev.GetEnforcedPowerLimit)
	r.EnergyMJ = r.count("nvmlDeviceGetTotalEnergyConsumption", dev.GetTotalEnergyConsumption)
	r.SMClock = r.float("nvmlDeviceGetClockInfo", 1, func() (uint32, nvml.Return) {
		return dev.GetClockInfo(nvml.CLOCK_SM)
	})
	r.MemClock = r.float("nvmlDeviceGetClockInfo", 1, func() (uint32, nvml.Return) {
		return dev.GetClockInfo(nvml.CLOCK_MEM)
	})
	reasons := r.count("nvmlDeviceGetCurrentClocksEventReasons", dev.GetCurrentClocksEventReasons)
	if !reasons.OK { // drivers before 535 have the older name
		reasons = r.count("nvmlDeviceGetCurrentClocksThrottleReasons",
			dev.GetCurrentClocksThrottleReasons)
	}
	r.Throttle = Value[Throttle]{Throttle(reasons.V), reasons.OK}
	r.Replays = r.count("nvmlDeviceGetPcieReplayCounter", func() (uint64, nvml.Return) {
		n, ret := dev.GetPcieReplayCounter()
		return uint64(max(0, n)), ret
	})
	r.errors()
}

// errors reads what went wrong with the memory.
func (r *reader) errors() {
	total := func(kind nvml.MemoryErrorType, counter nvml.EccCounterType) Value[uint64] {
		return r.count("nvmlDeviceGetTotalEccErrors", func() (uint64, nvml.Return) {
			return r.self.GetTotalEccErrors(kind, counter)
		})
	}
	corrected := total(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC)
	if corrected.OK { // else ECC is off, or the card has none
		r.ECC = Some(ECC{
			CorrectedVolatile:    corrected.V,
			UncorrectedVolatile:  total(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC).V,
			CorrectedAggregate:   total(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.AGGREGATE_ECC).V,
			UncorrectedAggregate: total(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.AGGREGATE_ECC).V,
		})
	}
	if r.asks("nvmlDeviceGetRemappedRows") {
		corrected, uncorrected, pending, failed, ret := r.self.GetRemappedRows()
		if r.ok(ret) {
			r.Remapped = Some(Remapped{
				uint64(max(0, corrected)), uint64(max(0, uncorrected)), pending, failed,
			})
		}
	}
}

// memoryTemperature reads the sensor of the memory, where there is one.
func (r *reader) memoryTemperature() Value[float64] {
	if !r.asks("nvmlDeviceGetFieldValues") {
		return Value[float64]{}
	}
	fields := []nvml.FieldValue{{FieldId: nvml.FI_DEV_MEMORY_TEMP}}
	if !r.ok(r.self.GetFieldValues(fields)) ||
		nvml.Return(fields[0].NvmlReturn) != nvml.SUCCESS ||
		nvml.ValueType(fields[0].ValueType) != nvml.VALUE_TYPE_UNSIGNED_INT {
		return Value[float64]{}
	}
	b := fields[0].Value // a C union, of which this kind is the first four bytes
	return Some(float64(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24))
}

// processes reads which programs use the device. On a partitioned GPU the card lists those of all
// its MIG devices, and each MIG device its own.
func (r *reader) processes(d Device) {
	if !r.asks("nvmlDeviceGetComputeRunningProcesses_v3") {
		return
	}
	infos, ret := r.self.GetComputeRunningProcesses()
	if !r.ok(ret) {
		return
	}
	list := make([]Process, 0, len(infos))
	for _, info := range infos {
		if d.MIG() && info.GpuInstanceId != invalidInstance &&
			(int(info.GpuInstanceId) != d.GPUInstance ||
				int(info.ComputeInstanceId) != d.ComputeInstance) {
			continue // some drivers list the whole card's
		}
		p := Process{PID: info.Pid}
		if info.UsedGpuMemory != notAvailable {
			p.UsedBytes = Some(info.UsedGpuMemory)
		}
		if r.library.has("nvmlSystemGetProcessName") {
			// Who may not see the process does not get its name.
			p.Name, _ = r.library.api.SystemGetProcessName(int(info.Pid))
		}
		list = append(list, p)
	}
	r.Processes = Some(list)
}

const (
	invalidInstance = 0xFFFFFFFF // of a process that belongs to no instance
	notAvailable    = 1<<64 - 1  // memory that may not be known
)

// Events returns the faults that the driver reported since the call before, at most 64 of them. The
// error wraps ErrDriver or ErrReplaced where the driver does not answer.
func (l *Library) Events() ([]Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.started.IsZero() {
		return nil, fmt.Errorf("read events: %w", ErrDriver)
	}
	if l.xids == nil {
		return nil, nil
	}
	var events []Event
	for len(events) < eventsMost {
		data, ret := l.xids.Wait(0)
		if ret == nvml.ERROR_TIMEOUT || ret == nvml.ERROR_NOT_SUPPORTED {
			break
		}
		if err := l.fail("read events", ret); err != nil {
			return events, err
		}
		if data.EventType != nvml.EventTypeXidCriticalError {
			continue
		}
		events = append(events, Event{l.owner(&data), data.EventData})
	}
	return events, nil
}

// owner finds whose event it is.
func (l *Library) owner(data *nvml.EventData) string {
	uuid := l.cards[data.Device] // a lost GPU would not say who it is
	if data.GpuInstanceId == invalidInstance {
		return uuid
	}
	for _, h := range l.handles {
		d := h.device
		if d.Parent == uuid && d.GPUInstance == int(data.GpuInstanceId) &&
			(data.ComputeInstanceId == invalidInstance ||
				d.ComputeInstance == int(data.ComputeInstanceId)) {
			return d.UUID
		}
	}
	return uuid
}
