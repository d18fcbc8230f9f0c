package gauge

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/suanpan/suanpan/pkg/nvml"
)

// series is one metric that a device may have.
type series struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	// value reads it; false: the device does not tell it, so that there is no such series.
	value func(d *device) (float64, bool)
}

// emit sends a device's series.
func (m *series) emit(ch chan<- prometheus.Metric, d *device, labels []string) {
	if v, ok := m.value(d); ok {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, v, labels...)
	}
}

// number makes the function that reads a number of the reading, times a factor.
func number(get func(r *nvml.Reading) nvml.Value[float64], factor float64,
) func(*device) (float64, bool) {
	return func(d *device) (float64, bool) {
		v := get(&d.reading)
		return v.V * factor, v.OK
	}
}

// inside makes the function that reads a number inside of a value of the reading.
func inside[T any](get func(r *nvml.Reading) nvml.Value[T], number func(*T) float64,
) func(*device) (float64, bool) {
	return func(d *device) (float64, bool) {
		v := get(&d.reading)
		return number(&v.V), v.OK
	}
}

// The parts of a reading.
func memoryOf(r *nvml.Reading) nvml.Value[nvml.Memory]     { return r.Memory }
func activityOf(r *nvml.Reading) nvml.Value[nvml.Activity] { return r.Activity }
func eccOf(r *nvml.Reading) nvml.Value[nvml.ECC]           { return r.ECC }
func remappedOf(r *nvml.Reading) nvml.Value[nvml.Remapped] { return r.Remapped }

// one is 1 for true.
func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Metrics of our own. Those of dcgm-exporter and nvidia_gpu_exporter are in files of their own.
var (
	descInfo = prometheus.NewDesc("suanpan_gpu_info", "A device of this node: 1.",
		[]string{"uuid", "parent", "model", "profile", "sku", "index", "driver"}, nil)
	descLost = prometheus.NewDesc("suanpan_gpu_lost",
		"Whether a GPU fell off the bus or wants a reset.", []string{"uuid", "sku"}, nil)
	descHeld = prometheus.NewDesc("suanpan_gpu_held_ratio",
		"The part of a device that a lease holds, 0 to 1.",
		[]string{"uuid", "sku", "tenant", "project", "lease"}, nil)
	descDevices = prometheus.NewDesc("suanpan_gpu_devices",
		"Devices that can be rented, by what they do: held, idle (also in part) or lost.",
		[]string{"sku", "state"}, nil)
	descIdleSeconds = prometheus.NewDesc("suanpan_gpu_idle_seconds_total",
		"Device-seconds that nobody held: capacity that is not billed.",
		[]string{"uuid", "sku"}, nil)
	descHeldSeconds = prometheus.NewDesc("suanpan_gpu_held_seconds_total",
		"Device-seconds that leases held, as seen from here; bills follow from the leases.",
		[]string{"uuid", "sku"}, nil)
	descEnergy = prometheus.NewDesc("suanpan_gpu_energy_joules_total",
		"Energy since the exporter started; unlike the driver's counter it survives the driver.",
		[]string{"uuid", "sku"}, nil)
	descUp      = prometheus.NewDesc("suanpan_gpu_driver_up", "Whether the driver answers.", nil, nil)
	descOutages = prometheus.NewDesc("suanpan_gpu_driver_outages_total",
		"Times that the driver stopped to answer.", nil, nil)
	descSamples = prometheus.NewDesc("suanpan_gpu_samples_total",
		"Samples of all devices, by whether the driver answered.", []string{"outcome"}, nil)
	descTook = prometheus.NewDesc("suanpan_gpu_sample_seconds",
		"Time that the last sample of all devices took.", nil, nil)
)

// Describe sends the metrics' descriptions. It is part of prometheus.Collector.
func (s *Sampler) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		descInfo, descLost, descHeld, descDevices, descIdleSeconds, descHeldSeconds, descEnergy,
		descUp, descOutages, descSamples, descTook,
		descSMIInfo, descSMIXid, descSMIXidTime, descSMIPart, descSMIApp, descSMIAppMemory,
	} {
		ch <- desc
	}
	for _, list := range [][]series{dcgm, smi, smiParts} {
		for i := range list {
			ch <- list[i].desc
		}
	}
}

// Collect sends the metrics as of the last sample. It is part of prometheus.Collector.
func (s *Sampler) Collect(ch chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	states := map[[2]string]float64{}
	instances := map[string]bool{} // GPU instances that are shown
	for _, d := range s.devices {
		s.collectOwn(ch, d)
		if !d.Partitioned {
			states[[2]string{d.sku, s.state(d)}]++
		}
		if !d.MIG() {
			s.collectDCGM(ch, d)
			s.collectSMI(ch, d)
			continue
		}
		collectSMIPart(ch, d)
		// Memory and activity belong to the GPU instance: they are shown once for all compute
		// instances of it.
		if key := d.Parent + strconv.Itoa(d.GPUInstance); !instances[key] && d.reading.Memory.OK {
			instances[key] = true
			s.collectDCGM(ch, d)
			labels := []string{bare(d.Parent), strconv.Itoa(d.GPUInstance)}
			for i := range smiParts {
				smiParts[i].emit(ch, d, labels)
			}
		}
	}
	for key, n := range states {
		ch <- prometheus.MustNewConstMetric(descDevices, prometheus.GaugeValue, n, key[0], key[1])
	}
	c := &s.counts
	gauge := func(desc *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v)
	}
	counter := func(desc *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(v), labels...)
	}
	gauge(descUp, one(c.failure == nil && c.samples > 0))
	gauge(descTook, c.took.Seconds())
	counter(descOutages, c.outages)
	counter(descSamples, c.samples-c.failures, "answered")
	counter(descSamples, c.failures, "failed")
}

// state is what a device does.
func (s *Sampler) state(d *device) string {
	switch {
	case d.lost:
		return "lost"
	case s.share(d) >= 1:
		return "held"
	default:
		return "idle"
	}
}

// collectOwn sends the metrics of our own of a device.
func (s *Sampler) collectOwn(ch chan<- prometheus.Metric, d *device) {
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, kind, v, labels...)
	}
	send(descInfo, prometheus.GaugeValue, 1, d.UUID, d.Parent, d.Name, d.Profile, d.sku,
		strconv.Itoa(d.Index), s.driver)
	if !d.MIG() {
		send(descLost, prometheus.GaugeValue, one(d.lost), d.UUID, d.sku)
	}
	if d.metered {
		send(descEnergy, prometheus.CounterValue, d.energyJ, d.UUID, d.sku)
	}
	if d.Partitioned {
		return
	}
	send(descIdleSeconds, prometheus.CounterValue, d.idle, d.UUID, d.sku)
	send(descHeldSeconds, prometheus.CounterValue, d.held, d.UUID, d.sku)
	// A lease may hold several replicas of a device.
	shares := map[[3]string]float64{}
	for _, h := range s.holders[d.UUID] {
		share := h.Share
		if share <= 0 {
			share = 1
		}
		shares[[3]string{h.Tenant, h.Project, h.Lease}] += share
	}
	for who, share := range shares {
		send(descHeld, prometheus.GaugeValue, share, d.UUID, d.sku, who[0], who[1], who[2])
	}
}

// bare is a UUID as nvidia_gpu_exporter shows it: without what it is of.
func bare(uuid string) string {
	return strings.TrimPrefix(strings.TrimPrefix(uuid, "GPU-"), "MIG-")
}
