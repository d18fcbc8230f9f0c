// Package gauge samples the GPUs of a node: it reads every device once a second, keeps what
// Prometheus is to show and ten minutes of telemetry, and says what a set of devices did in a
// window. Devices that are lost, MIG devices that come and go, and a driver that restarts are
// counted and shown, and never stop it. It decides nothing about usage: what is billed follows from
// leases, and an idle device is shown as idle.
package gauge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/suanpan/suanpan/pkg/nvml"
)

// Library is what the sampler needs of NVML. An *nvml.Library is one.
type Library interface {
	// Devices lists what is there, GPUs before their MIG devices.
	Devices() ([]nvml.Device, error)
	// Read reads a device. Errors are those of package nvml.
	Read(nvml.Device) (nvml.Reading, error)
	// Events returns the faults since the call before.
	Events() ([]nvml.Event, error)
	// Driver is the driver's version, "" while it does not answer.
	Driver() string
}

// Config says how to sample. The zero value is fine but for Log.
type Config struct {
	Every     time.Duration            // between samples; default 1 s
	Keep      time.Duration            // how long telemetry is kept; default 10 minutes
	Scan      time.Duration            // between listings of the devices; default 10 s
	Node      string                   // label Hostname; default "": no such label's value
	SKU       func(nvml.Device) string // what a device is rented as; default: its name
	Processes bool                     // show each process in the metrics: many series
	Now       func() time.Time         // a clock that is not set back; default time.Now
	Log       *slog.Logger
}

// Holder is who holds a device, for the metrics.
type Holder struct {
	Device  string // UUID
	Tenant  string
	Project string
	Lease   string
	// Pod is set where Kubernetes gave the device away; dcgm-exporter has the same labels.
	Pod, Namespace, Container string
	// Share is the part of the device that is held, up to 1. 0 stands for all of it.
	Share float64
}

// Telemetry is what devices did in a window, as usage events carry it. What not every device told
// is absent. None of it is ever billed.
type Telemetry struct {
	GPUUtil    *float64 `json:"gpu_util,omitempty"`     // mean over time and devices, 0 to 1
	MemUsedMiB *float64 `json:"mem_used_mib,omitempty"` // mean over time, of all devices together
	PowerW     *float64 `json:"power_w,omitempty"`      // mean over time, of all devices together
	TempC      *float64 `json:"temp_c,omitempty"`       // the highest
	EnergyJ    *float64 `json:"energy_j,omitempty"`     // of all devices together
	// MemTotalMiB is what all devices together have, also where only a part of one is held.
	MemTotalMiB *float64 `json:"mem_total_mib,omitempty"`
}

// Sampler samples devices. Step, and so Run, is called by one goroutine; all other methods may be
// called at any time and never wait for the driver, which may hang. It is a prometheus.Collector.
type Sampler struct {
	config  Config
	library Library

	// What follows is changed by Step alone, with mu held; others read it with mu held.
	mu      sync.Mutex
	devices []*device // in the order of the listing, lost ones last
	byUUID  map[string]*device
	gone    map[string]*device // MIG devices that were destroyed: their last window may be asked for
	holders map[string][]Holder
	scanned time.Time // zero: list the devices at the next step
	driver  string
	counts  counts
}

// New returns a sampler, which samples when Run is called.
func New(library Library, config Config) *Sampler {
	if config.Every <= 0 {
		config.Every = time.Second
	}
	if config.Keep <= 0 {
		config.Keep = 10 * time.Minute
	}
	if config.Scan <= 0 {
		config.Scan = 10 * time.Second
	}
	if config.SKU == nil {
		config.SKU = func(d nvml.Device) string { return d.Name }
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	return &Sampler{
		config: config, library: library,
		byUUID: map[string]*device{}, gone: map[string]*device{},
	}
}

// Run samples until ctx ends, first at once. It returns nil then, and an error that wraps
// nvml.ErrReplaced when only a restart of the process can help. A driver that is away, or a GPU
// that is lost, is logged once, counted, and tried again.
func (s *Sampler) Run(ctx context.Context) error {
	ticker := time.NewTicker(s.config.Every)
	defer ticker.Stop()
	for {
		if err := s.Step(s.config.Now()); errors.Is(err, nvml.ErrReplaced) {
			return fmt.Errorf("sample devices: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Devices returns the devices that are known, GPUs before their MIG devices, by index. A GPU that
// was lost is still among them, at the end: it may be held, and may come back. A MIG device that
// was destroyed is not.
func (s *Sampler) Devices() []nvml.Device {
	s.mu.Lock()
	defer s.mu.Unlock()
	devices := make([]nvml.Device, len(s.devices))
	for i, d := range s.devices {
		devices[i] = d.Device
	}
	return devices
}

// Hold says who holds which device from now on, in place of what was said before. A device without
// a holder is idle capacity.
func (s *Sampler) Hold(holders []Holder) {
	byDevice := make(map[string][]Holder, len(holders))
	for _, h := range holders {
		byDevice[h.Device] = append(byDevice[h.Device], h)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holders = byDevice
}

// Status is the state of a device at its last sample.
type Status struct {
	nvml.Device
	nvml.Reading           // the last one; empty while the device is lost
	At           time.Time // of the reading; zero before the first
	Lost         bool
	SKU          string
	Holders      []Holder
}

// Status returns the state of all known devices, in the order of Devices.
func (s *Sampler) Status() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Status, len(s.devices))
	for i, d := range s.devices {
		list[i] = Status{
			d.Device, d.reading, d.at, d.lost, d.sku, slices.Clone(s.holders[d.UUID]),
		}
	}
	return list
}

// Healthy returns nil when the driver answered within three samples, and else why it did not.
func (s *Sampler) Healthy() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	age := s.config.Now().Sub(s.counts.answered)
	if s.counts.failure == nil && age < 3*s.config.Every+time.Second {
		return nil
	}
	if s.counts.failure != nil {
		return s.counts.failure
	}
	return fmt.Errorf("sample devices: none for %s", age.Round(time.Second))
}
