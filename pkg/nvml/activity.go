//go:build cgo && linux

package nvml

import (
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// activity measures a device by the chip's own counters (GPM): each measure is what happened since
// the one before.
type activity struct {
	library  *Library
	card     nvml.Device
	instance int // None: the whole card
	samples  [2]nvml.GpmSample
	last     int  // index of the newest sample
	primed   bool // there is one
}

// newActivity prepares the measuring of a card, or of a GPU instance of it. It returns nil where
// the chip or the driver has no such counters.
func (l *Library) newActivity(card nvml.Device, instance int) *activity {
	if !l.has("nvmlGpmQueryDeviceSupport") || !l.has("nvmlGpmMetricsGet") ||
		instance != None && !l.has("nvmlGpmMigSampleGet") {
		return nil
	}
	support, ret := card.GpmQueryDeviceSupport()
	if ret != nvml.SUCCESS || support.IsSupportedDevice == 0 {
		return nil
	}
	a := &activity{library: l, card: card, instance: instance}
	for i := range a.samples {
		sample, ret := l.api.GpmSampleAlloc()
		if ret != nvml.SUCCESS {
			a.free()
			return nil
		}
		a.samples[i] = sample
	}
	return a
}

// free gives the samples back. It does nothing to nil.
func (a *activity) free() {
	if a == nil {
		return
	}
	for i, sample := range a.samples {
		if sample != nil {
			_ = sample.Free() // the library is on its way out, or the device is
		}
		a.samples[i] = nil
	}
}

// metrics are asked for in this order.
var metrics = []nvml.GpmMetricId{
	nvml.GPM_METRIC_GRAPHICS_UTIL, nvml.GPM_METRIC_SM_UTIL, nvml.GPM_METRIC_SM_OCCUPANCY,
	nvml.GPM_METRIC_ANY_TENSOR_UTIL, nvml.GPM_METRIC_DRAM_BW_UTIL,
}

// measure takes a sample, and returns what happened since the one before: nothing at first, and
// nothing where a counter does not tell.
func (a *activity) measure(r *reader) Value[Activity] {
	if a == nil {
		return Value[Activity]{}
	}
	next := 1 - a.last
	var ret nvml.Return
	if a.instance == None {
		ret = a.samples[next].Get(a.card)
	} else {
		ret = a.samples[next].MigGet(a.card, a.instance)
	}
	if !r.ok(ret) {
		a.primed = false // what comes next does not follow what was before
		return Value[Activity]{}
	}
	before := a.samples[a.last]
	a.last = next
	if !a.primed {
		a.primed = true
		return Value[Activity]{}
	}
	get := &a.library.get
	get.NumMetrics, get.Sample1, get.Sample2 = uint32(len(metrics)), before, a.samples[next]
	for i, id := range metrics {
		get.Metrics[i].MetricId = uint32(id)
	}
	if !r.ok(a.library.api.GpmMetricsGet(get)) {
		return Value[Activity]{}
	}
	var shares [5]float64
	for i := range metrics {
		v := get.Metrics[i].Value / percent
		if nvml.Return(get.Metrics[i].NvmlReturn) != nvml.SUCCESS || math.IsNaN(v) || v < 0 {
			return Value[Activity]{}
		}
		shares[i] = min(v, 1)
	}
	return Some(Activity{shares[0], shares[1], shares[2], shares[3], shares[4]})
}
