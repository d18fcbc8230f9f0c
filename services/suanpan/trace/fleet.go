package trace

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/suanpan/suanpan/pkg/metering"
)

// FleetSource is the source of events of generated fleets.
const FleetSource = "/replay/fleet"

// The limits of a fleet.
const (
	MaxTenants = 100 // tenant-00 to tenant-99
	MaxDays    = 3660
)

// SessionsPerDay is how many sessions a fleet starts in a day unless told otherwise: in the trace,
// one in 465 s during its busy month.
const SessionsPerDay = 186

// Fleet says what to generate. The same values make the same sessions on every machine.
type Fleet struct {
	Seed     uint64
	Start    int64 // second at which the first sessions may start
	Days     int   // at most MaxDays; sessions that would run longer end then
	Sessions int   // 0: SessionsPerDay for each day
	Tenants  int   // at most MaxTenants
}

// What sessions are drawn from was measured in the pod list of the Alibaba GPU trace of
// 2023 (6,203 pods with GPUs that were scheduled, in 149 days): weights are counts of pods. There,
// 41.5 % hold less than a GPU, 1.2 % more than one; a quarter run for less than three minutes, half
// for less than eleven, one in a hundred for more than a day and a half.
var classes = []class{
	{3590, "ls", metering.OnDemand, [knots]int64{
		13, 54, 75, 318, 990, 2818, 6835, 13_747, 27_189, 62_163, 472_858, 3_231_252, 10_212_916,
		12_537_496,
	}, []shape{
		{1342, 1, 1000, 11_300, 49_152},
		{825, 1, 1000, 11_400, 48_128},
		{347, 1, 1000, 18_708, 64_512},
		{267, 1, 1000, 9810, 41_560},
		{168, 1, 1000, 8000, 16_384},
		{257, 1, 470, 11_908, 47_104},
		{205, 1, 650, 11_908, 47_104},
		{128, 1, 460, 6000, 6144},
		{14, 2, 1000, 16_200, 66_560},
		{14, 4, 1000, 32_200, 132_096},
		{23, 8, 1000, 64_200, 263_168},
	}},
	{2510, "be", metering.Spot, [knots]int64{
		4, 33, 57, 142, 249, 1119, 7365, 17_388, 26_641, 39_216, 60_796, 79_992, 235_236, 521_659,
	}, []shape{
		{1017, 1, 810, 3152, 5600},
		{467, 1, 1000, 3152, 5600},
		{60, 1, 1000, 11_908, 47_104},
		{198, 1, 470, 8000, 30_517},
		{307, 1, 320, 4000, 22_888},
		{94, 1, 230, 4000, 30_517},
		{71, 1, 550, 4152, 10_600},
		{94, 1, 160, 4000, 15_258},
		{62, 1, 590, 3152, 5600},
		{60, 1, 220, 4000, 15_258},
		{80, 1, 370, 4152, 10_600},
	}},
	{97, "burstable", metering.OnDemand, [knots]int64{
		12, 29, 48, 171, 3660, 53_620, 139_543, 315_378, 977_323, 1_332_357, 1_690_843, 1_690_843,
		1_690_843, 1_690_843,
	}, []shape{
		{51, 1, 1000, 12_000, 24_576},
		{11, 1, 1000, 7000, 30_000},
		{11, 1, 1000, 12_000, 47_104},
		{1, 1, 1000, 14_000, 0},
		{1, 2, 1000, 14_000, 60_000},
		{1, 4, 1000, 32_000, 131_072},
		{18, 8, 1000, 88_000, 327_680},
		{3, 8, 1000, 120_000, 737_280},
	}},
	{6, "guaranteed", metering.Reserved, [knots]int64{
		474, 474, 474, 957, 3836, 2_281_963, 2_342_233, 2_342_233, 2_342_233, 2_342_233, 2_342_233,
		2_342_233, 2_342_233, 2_342_233,
	}, []shape{
		{5, 1, 1000, 12_000, 24_576},
		{1, 1, 1000, 6000, 8192},
	}},
}

// class is a class of service in the trace.
type class struct {
	weight    int
	project   string
	purchase  metering.Purchase
	durations [knots]int64 // seconds, at the shares of quantiles
	shapes    []shape
}

// shape is what a pod holds.
type shape struct {
	weight                       int
	gpus, gpuMilli, cpuMilli, mi int64 // mi: memory in MiB
}

const knots = 14

// quantiles are the shares, in thousandths, of sessions that are shorter than each of durations.
var quantiles = [knots]int64{0, 50, 100, 250, 500, 750, 900, 950, 970, 980, 990, 995, 999, 1000}

// Generate returns the sessions of the fleet. Their names tell fleets with other values apart.
func (f *Fleet) Generate() ([]Session, error) {
	count := f.Sessions
	if count == 0 {
		count = f.Days * SessionsPerDay
	}
	switch {
	case f.Days < 1 || f.Days > MaxDays:
		return nil, fmt.Errorf("generate fleet: %d days are not from 1 to %d", f.Days, MaxDays)
	case count < 1 || count > MaxSessions:
		return nil, fmt.Errorf("generate fleet: %d sessions are not from 1 to %d", count, MaxSessions)
	case f.Tenants < 1 || f.Tenants > MaxTenants:
		return nil, fmt.Errorf("generate fleet: %d tenants are not from 1 to %d", f.Tenants, MaxTenants)
	}
	random := rand.New(rand.NewPCG(f.Seed, 0))
	seconds := int64(f.Days) * 86_400
	starts := make([]int64, count)
	for i := range starts {
		starts[i] = f.Start + random.Int64N(seconds)
	}
	slices.Sort(starts)
	prefix := f.prefix(count)
	sessions := make([]Session, count)
	for i := range sessions {
		c := pick(random, classes, func(c *class) int { return c.weight })
		h := pick(random, c.shapes, func(h *shape) int { return h.weight })
		name := fmt.Sprintf("%s-%06d", prefix, i)
		sessions[i] = Session{
			Name: name, Tenant: tenantOf(name, f.Tenants), Project: c.project, Purchase: c.purchase,
			Start: starts[i], End: min(starts[i]+c.duration(random), f.Start+seconds),
			Held: held(h.cpuMilli, h.gpus*h.gpuMilli, h.mi*1000/1024),
		}
	}
	return sessions, nil
}

// prefix begins the names of the fleet's sessions: a session has the same facts for ever, so fleets
// that differ may not share names.
func (f *Fleet) prefix(count int) string {
	hash := fnv.New32a()
	for _, v := range []int64{int64(f.Seed), f.Start, int64(f.Days), int64(count), int64(f.Tenants)} {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], uint64(v))
		_, _ = hash.Write(b[:]) // never fails
	}
	return fmt.Sprintf("fleet-%08x", hash.Sum32())
}

// duration draws from the quantiles, linear in between.
func (c *class) duration(random *rand.Rand) int64 {
	const fine = 1_000_000
	at := random.Int64N(1000 * fine)
	i := 1
	for quantiles[i]*fine <= at {
		i++
	}
	from, until := c.durations[i-1], c.durations[i]
	share := (at - quantiles[i-1]*fine) / (quantiles[i] - quantiles[i-1]) // of fine
	return from + (until-from)*share/fine
}

// pick draws one of choices by its weight.
func pick[T any](random *rand.Rand, choices []T, weight func(*T) int) *T {
	all := 0
	for i := range choices {
		all += weight(&choices[i])
	}
	n := random.IntN(all)
	for i := range choices {
		if n -= weight(&choices[i]); n < 0 {
			return &choices[i]
		}
	}
	panic("BUG: the weights do not add up")
}
