package gauge

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/suanpan/suanpan/pkg/nvml"
)

// The metrics of nvidia_gpu_exporter that have labels of their own.
var (
	descSMIInfo = prometheus.NewDesc("nvidia_smi_gpu_info",
		"A metric with a constant '1' value labeled by the identity of a GPU.",
		[]string{"uuid", "name", "driver_version", "pci_bus_id", "serial", "index"}, nil)
	descSMIXid = prometheus.NewDesc("nvidia_smi_xid_errors_total",
		"Number of XID errors observed on the GPU since the exporter started.",
		[]string{"uuid", "xid"}, nil)
	descSMIXidTime = prometheus.NewDesc("nvidia_smi_xid_last_timestamp_seconds",
		"When the most recent XID error was received.", []string{"uuid", "xid"}, nil)
	descSMIPart = prometheus.NewDesc("nvidia_smi_mig_info",
		"A metric with a constant '1' value labeled by the identity of a MIG device.",
		[]string{"uuid", "mig_uuid", "gpu_instance_id", "compute_instance_id", "profile"}, nil)
	descSMIApp = prometheus.NewDesc("nvidia_smi_compute_app_info",
		"A metric with a constant '1' value labeled by the identity of a process.",
		[]string{"uuid", "pid", "process_name"}, nil)
	descSMIAppMemory = prometheus.NewDesc("nvidia_smi_compute_app_used_memory_bytes",
		"GPU memory used by the process.", []string{"uuid", "pid", "process_name"}, nil)
)

// smiGauge makes a metric of nvidia_gpu_exporter's, which has the GPU's UUID as its label.
func smiGauge(name string, value func(*device) (float64, bool)) series {
	return series{
		prometheus.NewDesc("nvidia_smi_"+name, "As nvidia-smi tells it.", []string{"uuid"}, nil),
		prometheus.GaugeValue, value,
	}
}

// smi are the metrics of nvidia_gpu_exporter that a GPU has, in its units.
var smi = append([]series{
	smiGauge("utilization_gpu_ratio",
		number(func(r *nvml.Reading) nvml.Value[float64] { return r.GPUUtil }, 1)),
	smiGauge("utilization_memory_ratio",
		number(func(r *nvml.Reading) nvml.Value[float64] { return r.MemoryUtil }, 1)),
	smiGauge("memory_total_bytes",
		inside(memoryOf, func(m *nvml.Memory) float64 { return float64(m.Total) })),
	smiGauge("memory_used_bytes",
		inside(memoryOf, func(m *nvml.Memory) float64 { return float64(m.Used) })),
	smiGauge("memory_free_bytes",
		inside(memoryOf, func(m *nvml.Memory) float64 { return float64(m.Free) })),
	smiGauge("memory_reserved_bytes",
		inside(memoryOf, func(m *nvml.Memory) float64 { return float64(m.Reserved) })),
	smiGauge("temperature_gpu",
		number(func(r *nvml.Reading) nvml.Value[float64] { return r.TemperatureC }, 1)),
	smiGauge("temperature_memory",
		number(func(r *nvml.Reading) nvml.Value[float64] { return r.MemoryTemperatureC }, 1)),
	smiGauge("power_draw_watts",
		number(func(r *nvml.Reading) nvml.Value[float64] { return r.PowerW }, 1)),
	smiGauge("enforced_power_limit_watts",
		number(func(r *nvml.Reading) nvml.Value[float64] { return r.PowerLimitW }, 1)),
	{
		prometheus.NewDesc("nvidia_smi_energy_joules_total",
			"Total energy consumed since the driver was last loaded.", []string{"uuid"}, nil),
		prometheus.CounterValue,
		inside(func(r *nvml.Reading) nvml.Value[uint64] { return r.EnergyMJ },
			func(v *uint64) float64 { return float64(*v) / 1000 }),
	},
	smiGauge("clocks_current_sm_clock_hz",
		number(func(r *nvml.Reading) nvml.Value[float64] { return r.SMClock }, 1e6)),
	smiGauge("clocks_current_memory_clock_hz",
		number(func(r *nvml.Reading) nvml.Value[float64] { return r.MemClock }, 1e6)),
	smiGauge("clocks_event_reasons_active",
		inside(func(r *nvml.Reading) nvml.Value[nvml.Throttle] { return r.Throttle },
			func(v *nvml.Throttle) float64 { return float64(*v) })),
	smiGauge("ecc_errors_corrected_volatile_total",
		inside(eccOf, func(e *nvml.ECC) float64 { return float64(e.CorrectedVolatile) })),
	smiGauge("ecc_errors_uncorrected_volatile_total",
		inside(eccOf, func(e *nvml.ECC) float64 { return float64(e.UncorrectedVolatile) })),
	smiGauge("ecc_errors_corrected_aggregate_total",
		inside(eccOf, func(e *nvml.ECC) float64 { return float64(e.CorrectedAggregate) })),
	smiGauge("ecc_errors_uncorrected_aggregate_total",
		inside(eccOf, func(e *nvml.ECC) float64 { return float64(e.UncorrectedAggregate) })),
	smiGauge("remapped_rows_correctable",
		inside(remappedOf, func(m *nvml.Remapped) float64 { return float64(m.Corrected) })),
	smiGauge("remapped_rows_uncorrectable",
		inside(remappedOf, func(m *nvml.Remapped) float64 { return float64(m.Uncorrected) })),
	smiGauge("remapped_rows_pending",
		inside(remappedOf, func(m *nvml.Remapped) float64 { return one(m.Pending) })),
	smiGauge("remapped_rows_failure",
		inside(remappedOf, func(m *nvml.Remapped) float64 { return one(m.Failed) })),
	smiGauge("compute_apps",
		inside(func(r *nvml.Reading) nvml.Value[[]nvml.Process] { return r.Processes },
			func(p *[]nvml.Process) float64 { return float64(len(*p)) })),
	smiGauge("mig_mode_current", func(d *device) (float64, bool) {
		return one(d.Partitioned), !d.at.IsZero()
	}),
}, smiReasons()...)

// smiReasons are the metrics of single reasons for lower clocks.
func smiReasons() []series {
	var list []series
	nvml.Throttle(0).Each(func(name string, _ bool) {
		list = append(list, smiGauge("clocks_event_reasons_"+name,
			inside(func(r *nvml.Reading) nvml.Value[nvml.Throttle] { return r.Throttle },
				func(v *nvml.Throttle) float64 {
					found := 0.0
					v.Each(func(other string, active bool) {
						if other == name {
							found = one(active)
						}
					})
					return found
				})))
	})
	return list
}

// collectSMI sends what nvidia_gpu_exporter would of a GPU.
func (s *Sampler) collectSMI(ch chan<- prometheus.Metric, d *device) {
	uuid := bare(d.UUID)
	labels := []string{uuid}
	for i := range smi {
		smi[i].emit(ch, d, labels)
	}
	ch <- prometheus.MustNewConstMetric(descSMIInfo, prometheus.GaugeValue, 1, uuid, d.Name,
		s.driver, d.BusID, d.Serial, strconv.Itoa(d.Index))
	s.collectXids(ch, d, uuid)
	if s.config.Processes {
		collectApps(ch, d, uuid)
	}
}

// collectXids sends the faults. Those of a MIG device are its GPU's in these metrics.
func (s *Sampler) collectXids(ch chan<- prometheus.Metric, card *device, uuid string) {
	all := map[uint64]xid{}
	for _, d := range s.devices {
		if d != card && d.Parent != card.UUID {
			continue
		}
		for code, x := range d.xids {
			sum := all[code]
			sum.count += x.count
			if x.at.After(sum.at) {
				sum.at = x.at
			}
			all[code] = sum
		}
	}
	for code, x := range all {
		name := strconv.FormatUint(code, 10)
		ch <- prometheus.MustNewConstMetric(descSMIXid, prometheus.CounterValue, float64(x.count),
			uuid, name)
		ch <- prometheus.MustNewConstMetric(descSMIXidTime, prometheus.GaugeValue,
			float64(x.at.UnixMilli())/1000, uuid, name)
	}
}

// collectApps sends the processes of a GPU.
func collectApps(ch chan<- prometheus.Metric, d *device, uuid string) {
	seen := map[uint32]bool{} // a process may use several parts of a GPU
	for _, p := range d.reading.Processes.V {
		if seen[p.PID] {
			continue
		}
		seen[p.PID] = true
		pid := strconv.FormatUint(uint64(p.PID), 10)
		ch <- prometheus.MustNewConstMetric(descSMIApp, prometheus.GaugeValue, 1, uuid, pid, p.Name)
		if p.UsedBytes.OK {
			ch <- prometheus.MustNewConstMetric(descSMIAppMemory, prometheus.GaugeValue,
				float64(p.UsedBytes.V), uuid, pid, p.Name)
		}
	}
}

// smiPart makes a metric of a GPU instance.
func smiPart(name string, value func(*device) (float64, bool)) series {
	return series{
		prometheus.NewDesc("nvidia_smi_mig_"+name, "Of the GPU instance.",
			[]string{"uuid", "gpu_instance_id"}, nil),
		prometheus.GaugeValue, value,
	}
}

// smiParts are the metrics that a GPU instance has.
var smiParts = []series{
	smiPart("memory_total_bytes",
		inside(memoryOf, func(m *nvml.Memory) float64 { return float64(m.Total) })),
	smiPart("memory_used_bytes",
		inside(memoryOf, func(m *nvml.Memory) float64 { return float64(m.Used) })),
	smiPart("memory_free_bytes",
		inside(memoryOf, func(m *nvml.Memory) float64 { return float64(m.Free) })),
	smiPart("memory_reserved_bytes",
		inside(memoryOf, func(m *nvml.Memory) float64 { return float64(m.Reserved) })),
	smiPart("graphics_activity_ratio",
		inside(activityOf, func(a *nvml.Activity) float64 { return a.Graphics })),
	smiPart("sm_activity_ratio",
		inside(activityOf, func(a *nvml.Activity) float64 { return a.SM })),
	smiPart("sm_occupancy_ratio",
		inside(activityOf, func(a *nvml.Activity) float64 { return a.Occupancy })),
	smiPart("tensor_activity_ratio",
		inside(activityOf, func(a *nvml.Activity) float64 { return a.Tensor })),
}

// collectSMIPart sends the identity of a MIG device.
func collectSMIPart(ch chan<- prometheus.Metric, d *device) {
	ch <- prometheus.MustNewConstMetric(descSMIPart, prometheus.GaugeValue, 1, bare(d.Parent),
		bare(d.UUID), strconv.Itoa(d.GPUInstance), strconv.Itoa(d.ComputeInstance), d.Profile)
}
