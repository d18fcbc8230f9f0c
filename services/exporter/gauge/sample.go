package gauge

import (
	"errors"
	"slices"
	"time"

	"github.com/suanpan/suanpan/pkg/nvml"
)

// gapMost is the longest time between two samples that counts as one of the device's idle time:
// across a longer one (the process was stopped, the driver was away) nothing is known.
const gapMost = 10 * time.Second

// device is what the sampler knows of a device.
type device struct {
	nvml.Device
	sku     string
	reading nvml.Reading
	at      time.Time // of the reading; zero before the first
	lost    bool
	warned  bool // its last reading failed, and that was logged

	energyMJ uint64  // the counter at the last reading
	metered  bool    // energyMJ is there
	energyJ  float64 // since this process began; unlike the counter it never falls
	idle     float64 // seconds without a holder
	held     float64 // seconds with one
	xids     map[uint64]*xid
	past     ring
}

// xid is how often a fault happened, and when last.
type xid struct {
	count uint64
	at    time.Time
}

// counts are what happened to the sampler itself.
type counts struct {
	samples, failures, restarts uint64
	answered                    time.Time // when the driver last did
	failure                     error     // why it does not; nil while it does
	took                        time.Duration
	lastXID                     map[string]uint64 // by UUID
}

// Step samples all devices once. now is when. It returns an error where the driver does not answer;
// a device that cannot be read is no error.
func (s *Sampler) Step(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Now()
	err := s.sample(now)
	s.counts.took = time.Since(began)
	s.counts.samples++
	if err == nil {
		if s.counts.failure != nil {
			s.config.Log.Info("the driver answers again", "driver", s.library.Driver())
		}
		s.counts.failure, s.counts.answered = nil, now
		return nil
	}
	s.counts.failures++
	if s.counts.failure == nil {
		s.config.Log.Warn("the driver does not answer; trying again", "err", err)
		s.counts.restarts++
	}
	s.counts.failure = err
	s.scanned = time.Time{}
	for _, d := range s.devices {
		d.reading, d.at = nvml.Reading{}, time.Time{}
	}
	return err
}

// sample is Step without what is kept of its success.
func (s *Sampler) sample(now time.Time) error {
	if s.scanned.IsZero() || now.Sub(s.scanned) >= s.config.Scan || now.Before(s.scanned) {
		if err := s.scan(now); err != nil {
			return err
		}
	}
	again := false
	for _, d := range s.devices {
		if d.lost {
			s.account(d, now)
			continue
		}
		reading, err := s.library.Read(d.Device)
		switch {
		case errors.Is(err, nvml.ErrDriver), errors.Is(err, nvml.ErrReplaced):
			return err
		case err != nil:
			s.missed(d, err)
			again = true
		default:
			s.take(d, reading, now)
		}
	}
	if again {
		s.scanned = time.Time{}
	}
	return s.takeEvents(now)
}

// scan lists the devices.
func (s *Sampler) scan(now time.Time) error {
	listed, err := s.library.Devices()
	if err != nil {
		return err
	}
	s.scanned = now
	devices := make([]*device, 0, len(listed))
	for _, l := range listed {
		d := s.byUUID[l.UUID]
		if d == nil {
			d = &device{past: newRing(s.config.Keep, s.config.Every)}
			s.config.Log.Info("found a device", "uuid", l.UUID, "name", l.Name,
				"profile", l.Profile)
		}
		if d.lost {
			s.config.Log.Info("a lost GPU is back", "uuid", l.UUID)
			d.at = time.Time{}
		}
		d.Device, d.sku, d.lost = l, s.config.SKU(l), false
		devices = append(devices, d)
	}
	for _, d := range s.devices {
		if slices.Contains(devices, d) {
			continue
		}
		if d.MIG() {
			s.config.Log.Info("a MIG device is gone", "uuid", d.UUID, "profile", d.Profile)
			continue
		}
		s.lose(d, "the driver does not list it")
		devices = append(devices, d)
	}
	s.devices = devices
	clear(s.byUUID)
	for _, d := range devices {
		s.byUUID[d.UUID] = d
	}
	return nil
}

// lose marks a GPU as lost.
func (s *Sampler) lose(d *device, why any) {
	if !d.lost {
		s.config.Log.Error("a GPU is lost", "uuid", d.UUID, "index", d.Index, "why", why)
	}
	d.lost, d.reading = true, nvml.Reading{}
}

// missed notes that a device could not be read.
func (s *Sampler) missed(d *device, err error) {
	d.reading = nvml.Reading{}
	switch {
	case errors.Is(err, nvml.ErrLost) && !d.MIG():
		s.lose(d, err)
	case errors.Is(err, nvml.ErrGone): // the next scan drops it
	case !d.warned:
		s.config.Log.Warn("a device cannot be read", "uuid", d.UUID, "err", err)
	}
	d.warned = true
}

// take keeps a reading.
func (s *Sampler) take(d *device, r nvml.Reading, now time.Time) {
	s.account(d, now)
	d.reading, d.at, d.warned = r, now, false
	joules := 0.0
	if r.EnergyMJ.OK {
		switch {
		case !d.metered: // what was used before this process began is not ours
		case r.EnergyMJ.V >= d.energyMJ:
			joules = float64(r.EnergyMJ.V-d.energyMJ) / 1000
		default: // the driver was reloaded, and has counted from 0 since
			joules = float64(r.EnergyMJ.V) / 1000
		}
		d.energyMJ, d.metered = r.EnergyMJ.V, true
		d.energyJ += joules
	}
	d.past.add(pointOf(&r, joules, now))
}

// account adds the time since the device's last sample to its idle or held time.
func (s *Sampler) account(d *device, now time.Time) {
	gap := now.Sub(d.at)
	if d.lost {
		d.at = now
	}
	if d.at.IsZero() || gap <= 0 || gap > gapMost || d.Partitioned {
		return
	}
	if len(s.holders[d.UUID]) > 0 {
		d.held += gap.Seconds()
	} else if !d.lost {
		d.idle += gap.Seconds()
	}
}

// takeEvents counts the faults that the driver reported.
func (s *Sampler) takeEvents(now time.Time) error {
	events, err := s.library.Events()
	for _, e := range events {
		s.config.Log.Error("the driver reports a fault", "uuid", e.UUID, "xid", e.XID)
		d := s.byUUID[e.UUID]
		if d == nil {
			continue
		}
		if d.xids == nil {
			d.xids = map[uint64]*xid{}
		}
		if d.xids[e.XID] == nil {
			d.xids[e.XID] = &xid{}
		}
		d.xids[e.XID].count++
		d.xids[e.XID].at = now
		s.counts.lastXID[e.UUID] = e.XID
	}
	return err
}
