package gauge

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/suanpan/suanpan/pkg/nvml"
)

// dcgmLabels are those of dcgm-exporter. A MIG device has its GPU's UUID, and its own instance.
var dcgmLabels = []string{
	"gpu", "UUID", "pci_bus_id", "device", "modelName", "GPU_I_PROFILE", "GPU_I_ID", "Hostname",
	"DCGM_FI_DRIVER_VERSION", "container", "namespace", "pod",
}

// collectDCGM sends what dcgm-exporter would.
func (s *Sampler) collectDCGM(ch chan<- prometheus.Metric, d *device) {
	index := strconv.Itoa(d.Index)
	labels := []string{
		index, d.UUID, d.BusID, "nvidia" + index, d.Name, "", "", s.config.Node, s.driver, "", "", "",
	}
	if d.MIG() {
		labels[1], labels[5], labels[6] = d.Parent, d.Profile, strconv.Itoa(d.GPUInstance)
	}
	// A device that several pods share is shown once, as nobody's.
	if holders := s.holders[d.UUID]; len(holders) == 1 {
		labels[9], labels[10], labels[11] = holders[0].Container, holders[0].Namespace, holders[0].Pod
	}
	for i := range dcgm {
		dcgm[i].emit(ch, d, labels)
	}
}

// mib is a number of bytes in MiB, as DCGM counts memory.
const mib = 1.0 / (1 << 20)

// dcgmGauge and dcgmCounter make a metric of DCGM's.
func dcgmGauge(name, help string, value func(*device) (float64, bool)) series {
	return series{
		prometheus.NewDesc(name, help, dcgmLabels, nil), prometheus.GaugeValue, value,
	}
}

func dcgmCounter(name, help string, value func(*device) (float64, bool)) series {
	return series{
		prometheus.NewDesc(name, help, dcgmLabels, nil), prometheus.CounterValue, value,
	}
}

// dcgm are the metrics of dcgm-exporter that NVML can tell, in its units.
var dcgm = []series{
	dcgmGauge("DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz).",
		number(func(r *nvml.Reading) nvml.Value[float64] { return r.SMClock }, 1)),
	dcgmGauge("DCGM_FI_DEV_MEM_CLOCK", "Memory clock frequency (in MHz).",
		number(func(r *nvml.Reading) nvml.Value[float64] { return r.MemClock }, 1)),
	dcgmGauge("DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).",
		number(func(r *nvml.Reading) nvml.Value[float64] { return r.TemperatureC }, 1)),
	dcgmGauge("DCGM_FI_DEV_MEMORY_TEMP", "Memory temperature (in C).",
		number(func(r *nvml.Reading) nvml.Value[float64] { return r.MemoryTemperatureC }, 1)),
	dcgmGauge("DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).",
		number(func(r *nvml.Reading) nvml.Value[float64] { return r.PowerW }, 1)),
	dcgmCounter("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
		"Total energy consumption since the driver's start (in mJ).",
		inside(func(r *nvml.Reading) nvml.Value[uint64] { return r.EnergyMJ },
			func(v *uint64) float64 { return float64(*v) })),
	dcgmCounter("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "Total number of PCIe retries.",
		inside(func(r *nvml.Reading) nvml.Value[uint64] { return r.Replays },
			func(v *uint64) float64 { return float64(*v) })),
	dcgmGauge("DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).",
		number(func(r *nvml.Reading) nvml.Value[float64] { return r.GPUUtil }, 100)),
	dcgmGauge("DCGM_FI_DEV_MEM_COPY_UTIL", "Memory utilization (in %).",
		number(func(r *nvml.Reading) nvml.Value[float64] { return r.MemoryUtil }, 100)),
	dcgmGauge("DCGM_FI_DEV_XID_ERRORS", "Value of the last XID error encountered.",
		func(d *device) (float64, bool) {
			return float64(d.lastXID), !d.MIG() && (d.lastXID > 0 || !d.at.IsZero())
		}),
	dcgmGauge("DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).",
		inside(memoryOf, func(m *nvml.Memory) float64 { return float64(m.Free) * mib })),
	dcgmGauge("DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).",
		inside(memoryOf, func(m *nvml.Memory) float64 { return float64(m.Used) * mib })),
	dcgmGauge("DCGM_FI_DEV_FB_RESERVED", "Framebuffer memory reserved (in MiB).",
		inside(memoryOf, func(m *nvml.Memory) float64 { return float64(m.Reserved) * mib })),
	dcgmCounter("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
		"Total number of single-bit volatile ECC errors.",
		inside(eccOf, func(e *nvml.ECC) float64 { return float64(e.CorrectedVolatile) })),
	dcgmCounter("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
		"Total number of double-bit volatile ECC errors.",
		inside(eccOf, func(e *nvml.ECC) float64 { return float64(e.UncorrectedVolatile) })),
	dcgmCounter("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL",
		"Total number of single-bit persistent ECC errors.",
		inside(eccOf, func(e *nvml.ECC) float64 { return float64(e.CorrectedAggregate) })),
	dcgmCounter("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL",
		"Total number of double-bit persistent ECC errors.",
		inside(eccOf, func(e *nvml.ECC) float64 { return float64(e.UncorrectedAggregate) })),
	dcgmCounter("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
		"Number of remapped rows for correctable errors.",
		inside(remappedOf, func(m *nvml.Remapped) float64 { return float64(m.Corrected) })),
	dcgmCounter("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
		"Number of remapped rows for uncorrectable errors.",
		inside(remappedOf, func(m *nvml.Remapped) float64 { return float64(m.Uncorrected) })),
	dcgmGauge("DCGM_FI_DEV_ROW_REMAP_FAILURE", "Whether remapping of rows has failed.",
		inside(remappedOf, func(m *nvml.Remapped) float64 { return one(m.Failed) })),
	dcgmGauge("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "Ratio of time the graphics engine is active.",
		inside(activityOf, func(a *nvml.Activity) float64 { return a.Graphics })),
	dcgmGauge("DCGM_FI_PROF_SM_ACTIVE",
		"The ratio of cycles an SM has at least 1 warp assigned.",
		inside(activityOf, func(a *nvml.Activity) float64 { return a.SM })),
	dcgmGauge("DCGM_FI_PROF_SM_OCCUPANCY", "The ratio of number of warps resident on an SM.",
		inside(activityOf, func(a *nvml.Activity) float64 { return a.Occupancy })),
	dcgmGauge("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "Ratio of cycles the tensor pipe is active.",
		inside(activityOf, func(a *nvml.Activity) float64 { return a.Tensor })),
	dcgmGauge("DCGM_FI_PROF_DRAM_ACTIVE",
		"Ratio of cycles the device memory interface is active sending or receiving data.",
		inside(activityOf, func(a *nvml.Activity) float64 { return a.DRAM })),
}
