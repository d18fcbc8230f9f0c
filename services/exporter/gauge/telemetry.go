package gauge

import (
	"time"

	"github.com/suanpan/suanpan/pkg/nvml"
)

// point is one sample of a device. It is small: a node keeps tens of thousands.
type point struct {
	at     int64 // Unix milliseconds
	util   float32
	mem    float32 // MiB
	power  float32 // W
	temp   float32 // degrees Celsius
	energy float32 // J since the sample before
	told   uint8   // which of them the device told, see the bits
}

const (
	toldUtil = 1 << iota
	toldMem
	toldPower
	toldTemp
	toldEnergy
)

// pointOf keeps what usage events need of a reading.
func pointOf(r *nvml.Reading, joules float64, now time.Time) point {
	p := point{at: now.UnixMilli(), energy: float32(joules)}
	switch {
	case r.GPUUtil.OK:
		p.util, p.told = float32(r.GPUUtil.V), p.told|toldUtil
	case r.Activity.OK: // a MIG device, by the chip's counters
		p.util, p.told = float32(r.Activity.V.Graphics), p.told|toldUtil
	}
	if r.Memory.OK {
		p.mem, p.told = float32(r.Memory.V.Used)/(1<<20), p.told|toldMem
	}
	if r.PowerW.OK {
		p.power, p.told = float32(r.PowerW.V), p.told|toldPower
	}
	if r.TemperatureC.OK {
		p.temp, p.told = float32(r.TemperatureC.V), p.told|toldTemp
	}
	if r.EnergyMJ.OK {
		p.told |= toldEnergy
	}
	return p
}

// ring keeps the newest points.
type ring struct {
	points []point // grows up to its capacity
	most   int
	next   int // where the next one goes, once it is full
}

// newRing has room for the points of a time.
func newRing(keep, every time.Duration) ring {
	return ring{most: max(1, int(keep/every)+1)}
}

// add keeps a point in place of the oldest.
func (r *ring) add(p point) {
	if len(r.points) < r.most {
		r.points = append(r.points, p)
		return
	}
	r.points[r.next] = p
	r.next = (r.next + 1) % r.most
}

// sums are what a device told in a window.
type sums struct {
	n                                int
	util, mem, power, energy, temp   float64
	utils, mems, powers, temps, joul int
}

// within sums up the points in [from, until).
func (r *ring) within(from, until int64) sums {
	var s sums
	for i := range r.points {
		p := &r.points[i]
		if p.at < from || p.at >= until {
			continue
		}
		s.n++
		if p.told&toldUtil != 0 {
			s.util, s.utils = s.util+float64(p.util), s.utils+1
		}
		if p.told&toldMem != 0 {
			s.mem, s.mems = s.mem+float64(p.mem), s.mems+1
		}
		if p.told&toldPower != 0 {
			s.power, s.powers = s.power+float64(p.power), s.powers+1
		}
		if p.told&toldTemp != 0 {
			s.temp, s.temps = max(s.temp, float64(p.temp)), s.temps+1
		}
		if p.told&toldEnergy != 0 {
			s.energy, s.joul = s.energy+float64(p.energy), s.joul+1
		}
	}
	return s
}

// Telemetry says what the devices did in [from, until), seen from their samples in it: a value is
// there if each of the devices told it at least once. false: there is nothing to tell, because a
// device is not known, or has no sample in the window (it is longer ago than Keep, or the driver
// was away).
func (s *Sampler) Telemetry(uuids []string, from, until time.Time) (Telemetry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(uuids) == 0 {
		return Telemetry{}, false
	}
	var all sums
	var memory float64
	known := 0 // devices whose memory is known
	for _, uuid := range uuids {
		d := s.byUUID[uuid]
		if d == nil {
			d = s.gone[uuid]
		}
		if d == nil {
			return Telemetry{}, false
		}
		if d.MemoryMiB > 0 {
			memory, known = memory+float64(d.MemoryMiB), known+1
		}
		one := d.past.within(from.UnixMilli(), until.UnixMilli())
		if one.n == 0 {
			return Telemetry{}, false
		}
		add(&all.util, &all.utils, one.util, one.utils)
		add(&all.mem, &all.mems, one.mem, one.mems)
		add(&all.power, &all.powers, one.power, one.powers)
		add(&all.energy, &all.joul, one.energy, min(1, one.joul))
		if one.temps > 0 {
			all.temp, all.temps = max(all.temp, one.temp), all.temps+1
		}
	}
	told := func(sum float64, n int) *float64 {
		if n < len(uuids) {
			return nil
		}
		return &sum
	}
	return Telemetry{
		GPUUtil:    told(all.util/float64(len(uuids)), all.utils),
		MemUsedMiB: told(all.mem, all.mems),
		PowerW:     told(all.power, all.powers),
		TempC:      told(all.temp, all.temps),
		EnergyJ:    told(all.energy, all.joul),

		MemTotalMiB: told(memory, known),
	}, true
}

// add adds a device's mean to those of others.
func add(sum *float64, devices *int, part float64, n int) {
	if n == 0 {
		return
	}
	*sum += part / float64(n)
	*devices++
}
