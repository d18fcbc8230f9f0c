// Package gpu compares what Suanpan reads of real GPUs with what nvidia-smi says of them. Values
// that move are bounded by what nvidia-smi said before and after the reading, and a tolerance.
// Problems go out as text; the test of this package, `make test-gpu`, reports them, and says
// plainly where there is no GPU. It changes nothing on the machine.
package gpu

import (
	"encoding/csv"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/suanpan/suanpan/pkg/nvml"
)

// Query are the fields that nvidia-smi is asked for, in the order in which ParseCards reads them.
const Query = "index,uuid,name,pci.bus_id,memory.total,memory.used,memory.reserved," +
	"utilization.gpu,utilization.memory,temperature.gpu,power.draw,clocks.sm,mig.mode.current"

// Card is a GPU as nvidia-smi describes it. Numbers are absent where it says "[N/A]".
type Card struct {
	Index             int
	UUID, Name, BusID string
	Partitioned       bool
	Numbers           map[string]float64 // by the name in Query; MiB, percent, degrees, W, MHz
}

// ParseCards reads the CSV that nvidia-smi prints without header and units.
func ParseCards(text string) ([]Card, error) {
	names := strings.Split(Query, ",")
	reader := csv.NewReader(strings.NewReader(text))
	reader.TrimLeadingSpace = true
	reader.FieldsPerRecord = len(names)
	rows, err := reader.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read nvidia-smi's CSV: %w", err)
	}
	var cards []Card
	for _, row := range rows {
		c := Card{UUID: row[1], Name: row[2], BusID: row[3], Numbers: map[string]float64{}}
		if c.Index, err = strconv.Atoi(row[0]); err != nil {
			return nil, fmt.Errorf("read nvidia-smi's index: %w", err)
		}
		c.Partitioned = row[len(row)-1] == "Enabled"
		for i := 4; i < len(row)-1; i++ {
			if v, err := strconv.ParseFloat(row[i], 64); err == nil {
				c.Numbers[names[i]] = v
			}
		}
		cards = append(cards, c)
	}
	return cards, nil
}

// ParseParts reads the UUIDs of MIG devices from what `nvidia-smi -L` prints.
func ParseParts(text string) []string {
	var parts []string
	for line := range strings.Lines(text) {
		if _, rest, ok := strings.Cut(line, "(UUID: MIG-"); ok {
			uuid, _, _ := strings.Cut(rest, ")")
			parts = append(parts, "MIG-"+uuid)
		}
	}
	return parts
}

// number is one value that both tell.
type number struct {
	name     string // in Query
	read     func(r *nvml.Reading) nvml.Value[float64]
	absolute float64 // tolerance, in the unit of nvidia-smi
	relative float64
}

const mib = 1.0 / (1 << 20)

// memoryOf reads a part of the memory, in MiB.
func memoryOf(part func(m nvml.Memory) uint64) func(r *nvml.Reading) nvml.Value[float64] {
	return func(r *nvml.Reading) nvml.Value[float64] {
		return nvml.Value[float64]{V: float64(part(r.Memory.V)) * mib, OK: r.Memory.OK}
	}
}

// percent is a share in percent.
func percent(v nvml.Value[float64]) nvml.Value[float64] {
	v.V *= 100
	return v
}

// numbers are compared. Utilisation is a mean over a short time, so that it may be anything between
// two looks at a card whose load changes.
var numbers = []number{
	{"memory.total", memoryOf(func(m nvml.Memory) uint64 { return m.Total }), 1, 0},
	{"memory.used", memoryOf(func(m nvml.Memory) uint64 { return m.Used }), 64, 0.02},
	{"memory.reserved", memoryOf(func(m nvml.Memory) uint64 { return m.Reserved }), 2, 0},
	{
		"utilization.gpu",
		func(r *nvml.Reading) nvml.Value[float64] { return percent(r.GPUUtil) }, 30, 0,
	},
	{
		"utilization.memory",
		func(r *nvml.Reading) nvml.Value[float64] { return percent(r.MemoryUtil) }, 30, 0,
	},
	{
		"temperature.gpu",
		func(r *nvml.Reading) nvml.Value[float64] { return r.TemperatureC }, 3, 0,
	},
	{"power.draw", func(r *nvml.Reading) nvml.Value[float64] { return r.PowerW }, 20, 0.15},
	{"clocks.sm", func(r *nvml.Reading) nvml.Value[float64] { return r.SMClock }, 60, 0.25},
}

// Problems lists in what the devices and their readings differ from what nvidia-smi said before and
// after. parts are its MIG devices.
func Problems(before, after []Card, parts []string, devices []nvml.Device,
	readings map[string]nvml.Reading,
) []string {
	var problems []string
	report := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	later := map[string]Card{}
	for _, c := range after {
		later[c.UUID] = c
	}
	known := map[string]nvml.Device{}
	for _, d := range devices {
		known[d.UUID] = d
	}
	for _, c := range before {
		d, ok := known[c.UUID]
		delete(known, c.UUID)
		switch {
		case !ok:
			report("%s: not listed", c.UUID)
			continue
		case d.Index != c.Index || d.Name != c.Name || !strings.EqualFold(d.BusID, c.BusID) ||
			d.Partitioned != c.Partitioned:
			report("%s: listed as %+v, nvidia-smi has %+v", c.UUID, d, c)
		}
		r := readings[c.UUID]
		for _, n := range numbers {
			n.compare(&r, c, later[c.UUID], report)
		}
	}
	for _, uuid := range parts {
		d, ok := known[uuid]
		delete(known, uuid)
		switch r := readings[uuid]; {
		case !ok:
			report("%s: not listed", uuid)
		case !d.MIG() || d.Profile == "":
			report("%s: a MIG device without a GPU or a profile: %+v", uuid, d)
		case !r.Memory.OK || r.GPUUtil.OK:
			report("%s: no memory, or a utilisation that no MIG device has: %+v", uuid, r)
		}
	}
	for uuid := range known {
		report("%s: listed, and nvidia-smi does not know it", uuid)
	}
	return problems
}

// compare reports where a value is not between what nvidia-smi said before and after.
func (n *number) compare(r *nvml.Reading, before, after Card, report func(string, ...any)) {
	v := n.read(r)
	low, ok := before.Numbers[n.name]
	high, again := after.Numbers[n.name]
	switch {
	case !ok || !again:
		if ok == again && v.OK {
			report("%s: %s is %v, and nvidia-smi does not tell it", before.UUID, n.name, v.V)
		}
		return
	case !v.OK:
		report("%s: %s is not read, nvidia-smi says %v", before.UUID, n.name, low)
		return
	}
	low, high = min(low, high), max(low, high)
	slack := n.absolute + n.relative*math.Abs(high)
	if v.V < low-slack || v.V > high+slack {
		report("%s: %s is %v, nvidia-smi says %v to %v", before.UUID, n.name, v.V, low, high)
	}
}
