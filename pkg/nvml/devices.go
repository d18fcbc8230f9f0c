//go:build cgo && linux

package nvml

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// lostRescan is how often the library is started anew while a GPU is lost: that is the only way to
// see it again, and slow while it is away.
const lostRescan = 30 * time.Second

// Devices lists the GPUs, each followed by its MIG devices, by index. GPUs that are lost, or cannot
// be asked who they are, are not among them. The library is started where it is not running: the
// error wraps ErrDriver or ErrReplaced where that fails, and devices listed before cannot be read
// until it succeeds.
func (l *Library) Devices() ([]Device, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	age := time.Since(l.started)
	if !l.started.IsZero() && (age > l.Rescan || l.broken && age > lostRescan) {
		_ = l.stop() // all of it is made anew
	}
	if l.started.IsZero() {
		if err := l.start(); err != nil {
			return nil, err
		}
	}
	count, ret := l.api.DeviceGetCount()
	if err := l.fail("count GPUs", ret); err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(l.handles))
	for i := range count {
		// One card that fails in a way of its own, as lost ones do, does not hide the others.
		if err := l.scan(i, seen); errors.Is(err, ErrDriver) || errors.Is(err, ErrReplaced) {
			return nil, err
		}
	}
	for uuid, h := range l.handles {
		if !seen[uuid] {
			h.gpm.free()
			delete(l.handles, uuid)
		}
	}
	return l.list(), nil
}

// list returns the known devices in order.
func (l *Library) list() []Device {
	devices := make([]Device, 0, len(l.handles))
	for _, h := range l.handles {
		devices = append(devices, h.device)
	}
	slices.SortFunc(devices, func(a, b Device) int {
		return cmp.Or(a.Index-b.Index, a.MIGIndex-b.MIGIndex)
	})
	return devices
}

// scan takes in a GPU and its MIG devices.
func (l *Library) scan(index int, seen map[string]bool) error {
	card, ret := l.api.DeviceGetHandleByIndex(index)
	if err := l.fail(fmt.Sprintf("find GPU %d", index), ret); err != nil {
		return err
	}
	uuid, ret := card.GetUUID()
	if err := l.fail(fmt.Sprintf("identify GPU %d", index), ret); err != nil {
		return err
	}
	if known, ok := l.handles[uuid]; ok && known.device.Index == index {
		known.device.Partitioned = l.partitioned(card)
		l.handles[uuid] = known
	} else if err := l.add(card, uuid, index); err != nil {
		return err
	}
	seen[uuid] = true
	if !l.handles[uuid].device.Partitioned {
		return nil
	}
	most, ret := card.GetMaxMigDeviceCount()
	if ret == nvml.ERROR_NOT_SUPPORTED {
		return nil
	}
	if err := l.fail(fmt.Sprintf("count MIG devices of GPU %d", index), ret); err != nil {
		return err
	}
	for i := range most {
		err := l.scanMIG(l.handles[uuid], i, seen)
		if err != nil && !errors.Is(err, ErrGone) { // it may be destroyed meanwhile
			return err
		}
	}
	return nil
}

// partitioned reports whether the GPU is in MIG mode.
func (l *Library) partitioned(card nvml.Device) bool {
	if !l.has("nvmlDeviceGetMigMode") {
		return false
	}
	mode, _, ret := card.GetMigMode()
	return ret == nvml.SUCCESS && mode == nvml.DEVICE_MIG_ENABLE
}

// add takes in a GPU that was not known, or had another index.
func (l *Library) add(card nvml.Device, uuid string, index int) error {
	name, ret := card.GetName()
	if err := l.fail("name GPU "+uuid, ret); err != nil {
		return err
	}
	d := Device{
		UUID: uuid, Name: name, Index: index, MIGIndex: None, GPUInstance: None,
		ComputeInstance: None, Partitioned: l.partitioned(card),
	}
	if memory := l.memory(card); memory.OK {
		d.MemoryMiB = int64(memory.V.Total >> 20)
	}
	if pci, ret := card.GetPciInfo(); ret == nvml.SUCCESS {
		d.BusID = text(pci.BusId[:])
	}
	if l.has("nvmlDeviceGetSerial") {
		d.Serial, _ = card.GetSerial() // "" where there is none
	}
	if l.xids != nil {
		// A driver that has no such events says so: then there are none to see.
		_ = card.RegisterEvents(nvml.EventTypeXidCriticalError, l.xids)
	}
	l.cards[card] = uuid
	l.handles[uuid].gpm.free()
	l.handles[uuid] = handle{d, card, card, l.newActivity(card, None)}
	return nil
}

// scanMIG takes in the MIG device at an index of a GPU, where there is one.
func (l *Library) scanMIG(parent handle, index int, seen map[string]bool) error {
	part, ret := parent.card.GetMigDeviceHandleByIndex(index)
	if ret == nvml.ERROR_NOT_FOUND || ret == nvml.ERROR_INVALID_ARGUMENT {
		return nil // the slot is empty
	}
	gpu := parent.device
	what := fmt.Sprintf("find MIG device %d of GPU %d", index, gpu.Index)
	if err := l.fail(what, ret); err != nil {
		return err
	}
	uuid, ret := part.GetUUID()
	if err := l.fail(what, ret); err != nil {
		return err
	}
	seen[uuid] = true
	gi, ret := part.GetGpuInstanceId()
	if err := l.fail(what, ret); err != nil {
		return err
	}
	ci, ret := part.GetComputeInstanceId()
	if err := l.fail(what, ret); err != nil {
		return err
	}
	d := Device{
		UUID: uuid, Parent: gpu.UUID, Name: gpu.Name, Index: gpu.Index, MIGIndex: index,
		GPUInstance: gi, ComputeInstance: ci, BusID: gpu.BusID, Serial: gpu.Serial,
	}
	known, ok := l.handles[uuid]
	if old := known.device; ok && old.GPUInstance == gi && old.ComputeInstance == ci &&
		old.Index == d.Index && old.MIGIndex == index {
		// The same UUID may be a new instance of the same shape, with a handle of its own.
		known.self, known.card = part, parent.card
		l.handles[uuid] = known
		return nil
	}
	if memory := l.memory(part); memory.OK {
		d.MemoryMiB = int64(memory.V.Total >> 20)
	}
	d.Profile = profile(part, gpu.MemoryMiB)
	known.gpm.free()
	l.handles[uuid] = handle{d, part, parent.card, l.newActivity(parent.card, gi)}
	return nil
}

// profile names a MIG device's shape as nvidia-smi does: from its name ("NVIDIA H100 80GB HBM3 MIG
// 1g.10gb"), else from its slices and its share of the GPU's memory.
func profile(part nvml.Device, cardMiB int64) string {
	name, ret := part.GetName()
	if _, shape, ok := strings.Cut(name, " MIG "); ok && ret == nvml.SUCCESS {
		return shape
	}
	a, ret := part.GetAttributes()
	if ret != nvml.SUCCESS || cardMiB == 0 {
		return ""
	}
	// Memory is handed out in eighths of the card; what is left of an eighth is reserved.
	eighths := (int64(a.MemorySizeMB)*8 + cardMiB - 1) / cardMiB
	gib := (cardMiB + 1023) / 1024
	shape := fmt.Sprintf("%dg.%dgb", a.GpuInstanceSliceCount, (eighths*gib+4)/8)
	if a.ComputeInstanceSliceCount < a.GpuInstanceSliceCount {
		shape = fmt.Sprintf("%dc.%s", a.ComputeInstanceSliceCount, shape)
	}
	return shape
}
