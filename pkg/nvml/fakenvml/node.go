package fakenvml

import (
	"fmt"
	"maps"
	"time"
)

// H100 is a GPU as an H100 80GB under load tells itself: its power is constant, so that its energy
// counter grows by 433 J each second.
func H100(index int) GPU {
	return GPU{
		UUID: fmt.Sprintf("GPU-00000000-0000-0000-0000-%012d", index),
		Name: "NVIDIA H100 80GB HBM3",
		Values: Values{
			"mem_mib": "81559", "used_mib": "45332", "reserved_mib": "479",
			"util": "98", "mem_util": "47", "temp": "53", "mem_temp": "59",
			"power_mw": "433780", "limit_mw": "700000", "energy_mj": "1000+433780",
			"sm_mhz": "1980", "mem_mhz": "2619", "throttle": "0", "replays": "0",
			"ecc_corrected": "0", "ecc_uncorrected": "0", "ecc_corrected_ever": "2",
			"ecc_uncorrected_ever": "0", "remapped_corrected": "1",
			"serial": fmt.Sprint(1650000000000 + index),
			"bus":    fmt.Sprintf("00000000:%02X:00.0", 0x18+index),
			"gpm":    "1", "gpm_graphics": "97.5", "gpm_sm": "88.25", "gpm_occupancy": "31",
			"gpm_tensor": "42", "gpm_dram": "55",
		},
	}
}

// A100 is a GPU as an A100-SXM4-80GB tells itself: without activity counters.
func A100(index int) GPU {
	g := H100(index)
	g.UUID = fmt.Sprintf("GPU-aaaaaaaa-0000-0000-0000-%012d", index)
	g.Name = "NVIDIA A100-SXM4-80GB"
	maps.Copy(g.Values, Values{
		"mem_mib": "81920", "used_mib": "30100", "reserved_mib": "634", "util": "76",
		"power_mw": "321500", "limit_mw": "400000", "energy_mj": "1000+321500", "temp": "61",
		"sm_mhz": "1410", "mem_mhz": "1593",
	})
	for _, key := range []string{
		"gpm", "gpm_graphics", "gpm_sm", "gpm_occupancy", "gpm_tensor", "gpm_dram",
	} {
		delete(g.Values, key)
	}
	return g
}

// Split puts a GPU into MIG mode, with n instances of 1g.10gb (at most 7).
func Split(g GPU, n int) GPU {
	g.Values = maps.Clone(g.Values)
	g.Parts = make([]Part, n)
	for i := range n {
		p := Part{
			UUID: fmt.Sprintf("MIG-%s-%d", g.UUID[4:], i), Profile: "1g.10gb",
			Index: i, GI: 7 + i, CI: 0,
			Values: Values{
				"mem_mib": "9984", "used_mib": fmt.Sprint(1024 + 100*i), "reserved_mib": "0",
				"gpu_slices": "1", "compute_slices": "1",
			},
		}
		if g.Values["gpm"] == "1" {
			maps.Copy(p.Values, Values{
				"gpm_graphics": fmt.Sprint(50 + i), "gpm_sm": "40", "gpm_occupancy": "20",
				"gpm_tensor": "10", "gpm_dram": "30",
			})
		}
		g.Parts[i] = p
	}
	return g
}

// Node is a script of n H100, as they are; the driver started an hour ago.
func Node(n int) *Script {
	s := &Script{Driver: "590.48.01", Boot: 1, Epoch: time.Now().Add(-time.Hour)}
	for i := range n {
		s.GPUs = append(s.GPUs, H100(i))
	}
	return s
}

// Restart is a restart of the driver now: its counters begin anew, and all handles are dead.
func (s *Script) Restart() {
	s.Boot++
	s.Epoch = time.Now()
}
