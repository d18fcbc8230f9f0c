package gauge

import (
	"errors"
	"slices"
	"time"

	"github.com/suanpan/suanpan/pkg/nvml"
)

// gapMost is the longest time between two samples in which a device counts as idle or held: across
// a longer one (the process was stopped, the driver was away) nothing is known.
const gapMost = 10 * time.Second

// device is what the sampler knows of a device.
type device struct {
	nvml.Device
	sku     string
	reading nvml.Reading
	at      time.Time // of the reading; zero: there is none
	lost    bool
	warned  bool // its last reading failed, and that was logged

	energyMJ uint64    // the counter at the last reading
	metered  bool      // energyMJ is there
	energyJ  float64   // since this process began; unlike the counter it never falls
	counted  time.Time // until when idle and held are counted; zero: not at all
	idle     float64   // device-seconds without a holder
	held     float64   // device-seconds with one
	lastXID  uint64
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
	samples, failures, outages uint64
	answered                   time.Time // when the driver last did
	failure                    error     // why it does not; nil while it does
	took                       time.Duration
}

// Step samples all devices once. now is when. It returns an error where the driver does not answer;
// a device that cannot be read is no error.
func (s *Sampler) Step(now time.Time) error {
	began := time.Now()
	err := s.sample(now)
	driver := s.library.Driver()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.driver = driver
	s.counts.took = time.Since(began)
	s.counts.samples++
	if err == nil {
		if s.counts.failure != nil {
			s.config.Log.Info("the driver answers again", "driver", driver)
		}
		s.counts.failure, s.counts.answered = nil, s.config.Now() // now, if it did not hang
		return nil
	}
	s.counts.failures++
	if s.counts.failure == nil {
		s.config.Log.Warn("the driver does not answer; trying again", "err", err)
		s.counts.outages++
	}
	s.counts.failure = err
	s.scanned = time.Time{}
	for _, d := range s.devices {
		d.reading, d.at, d.counted = nvml.Reading{}, time.Time{}, time.Time{}
	}
	return err
}

// sample is Step without what is kept of its success. It holds mu only while it changes something.
func (s *Sampler) sample(now time.Time) error {
	if s.scanned.IsZero() || now.Sub(s.scanned) >= s.config.Scan || now.Before(s.scanned) {
		listed, err := s.library.Devices()
		if err != nil {
			return err
		}
		s.scan(listed, now)
	}
	again := false
	for _, d := range s.devices {
		if d.lost {
			s.locked(func() { s.count(d, now) })
			continue
		}
		reading, err := s.library.Read(d.Device)
		switch {
		case errors.Is(err, nvml.ErrDriver), errors.Is(err, nvml.ErrReplaced):
			return err
		case err != nil:
			s.locked(func() { s.missed(d, err, now) })
			again = true
		default:
			s.locked(func() { s.take(d, &reading, now) })
		}
	}
	if again {
		s.scanned = time.Time{}
	}
	events, err := s.library.Events()
	s.locked(func() { s.takeEvents(events, now) })
	return err
}

// locked calls f with mu held.
func (s *Sampler) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// scan takes in a listing of the devices.
func (s *Sampler) scan(listed []nvml.Device, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scanned = now
	devices := make([]*device, 0, len(listed))
	for _, l := range listed {
		d := s.byUUID[l.UUID]
		if d == nil {
			if d = s.gone[l.UUID]; d == nil {
				d = &device{past: newRing(s.config.Keep, s.config.Every)}
			}
			delete(s.gone, l.UUID)
			s.config.Log.Info("found a device", "uuid", l.UUID, "name", l.Name,
				"profile", l.Profile)
		}
		if d.lost {
			s.config.Log.Info("a lost GPU is back", "uuid", l.UUID)
			d.at, d.counted = time.Time{}, time.Time{}
		}
		d.Device, d.sku, d.lost = l, s.config.SKU(l), false
		devices = append(devices, d)
	}
	for _, d := range s.devices {
		switch {
		case slices.Contains(devices, d):
		case d.MIG():
			s.config.Log.Info("a MIG device is gone", "uuid", d.UUID, "profile", d.Profile)
			d.reading, d.counted = nvml.Reading{}, time.Time{}
			s.gone[d.UUID] = d
		default:
			s.lose(d, "the driver does not list it")
			devices = append(devices, d)
		}
	}
	s.devices = devices
	clear(s.byUUID)
	for _, d := range devices {
		s.byUUID[d.UUID] = d
	}
	for uuid, d := range s.gone {
		if now.Sub(d.at) > s.config.Keep {
			delete(s.gone, uuid)
		}
	}
}

// lose marks a GPU as lost.
func (s *Sampler) lose(d *device, why any) {
	if !d.lost {
		s.config.Log.Error("a GPU is lost", "uuid", d.UUID, "index", d.Index, "why", why)
	}
	d.lost, d.reading = true, nvml.Reading{}
}

// missed notes that a device could not be read.
func (s *Sampler) missed(d *device, err error, now time.Time) {
	d.reading = nvml.Reading{}
	switch {
	case errors.Is(err, nvml.ErrLost) && !d.MIG():
		s.lose(d, err)
	case errors.Is(err, nvml.ErrGone), errors.Is(err, nvml.ErrLost): // the next listing tells
	case !d.warned:
		s.config.Log.Warn("a device cannot be read", "uuid", d.UUID, "err", err)
		d.warned = true
	}
	s.count(d, now)
}

// take keeps a reading.
func (s *Sampler) take(d *device, r *nvml.Reading, now time.Time) {
	s.count(d, now)
	d.reading, d.at, d.warned = *r, now, false
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
	d.past.add(pointOf(r, joules, now))
}

// share is the part of a device that is held, 0 to 1.
func (s *Sampler) share(d *device) float64 {
	sum := 0.0
	for _, h := range s.holders[d.UUID] {
		if h.Share <= 0 {
			return 1
		}
		sum += h.Share
	}
	return min(1, sum)
}

// count adds the time since the last count to the device's idle and held time. A partitioned GPU
// has neither: its MIG devices have. A lost GPU is not idle: nobody could have it.
func (s *Sampler) count(d *device, now time.Time) {
	gap := now.Sub(d.counted)
	known := !d.counted.IsZero() && gap > 0 && gap <= gapMost
	d.counted = now
	if !known || d.Partitioned {
		return
	}
	share := s.share(d)
	d.held += share * gap.Seconds()
	if !d.lost {
		d.idle += (1 - share) * gap.Seconds()
	}
}

// takeEvents counts the faults that the driver reported.
func (s *Sampler) takeEvents(events []nvml.Event, now time.Time) {
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
		if card := s.byUUID[d.Parent]; d.MIG() && card != nil {
			d = card
		}
		d.lastXID = e.XID
	}
}
