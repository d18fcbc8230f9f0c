//go:build cgo && linux

package gauge_test

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/suanpan/suanpan/pkg/nvml/fakenvml"
	"github.com/suanpan/suanpan/services/exporter/gauge"
)

// shared is a folder of other people's data beside the repository, which need not be there.
const shared = "../../../../shared/data/"

// captured are metrics of a real GPU, by name: what nvidia_gpu_exporter shows of it.
func captured(t *testing.T, file string) map[string]float64 {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, rest, ok := strings.Cut(line, "{uuid=")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' '):]), 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		values[name] = v
	}
	return values
}

// replay is a GPU that tells what was captured, in NVML's units.
func replay(captured map[string]float64) fakenvml.GPU {
	g := fakenvml.GPU{
		UUID: "GPU-00000000-0000-0000-0000-000000000000", Name: "NVIDIA", Values: fakenvml.Values{},
	}
	for key, from := range map[string]struct {
		name  string
		scale float64
	}{
		"util": {"utilization_gpu_ratio", 100}, "mem_util": {"utilization_memory_ratio", 100},
		"mem_mib": {"memory_total_bytes", 1. / (1 << 20)}, "used_mib": {"memory_used_bytes", 1. / (1 << 20)},
		"reserved_mib": {"memory_reserved_bytes", 1. / (1 << 20)}, "temp": {"temperature_gpu", 1},
		"mem_temp": {"temperature_memory", 1}, "power_mw": {"power_draw_watts", 1000},
		"limit_mw": {"enforced_power_limit_watts", 1000},
		"sm_mhz":   {"clocks_current_sm_clock_hz", 1e-6}, "mem_mhz": {"clocks_current_memory_clock_hz", 1e-6},
		"throttle":             {"clocks_event_reasons_active", 1},
		"ecc_corrected":        {"ecc_errors_corrected_volatile_total", 1},
		"ecc_uncorrected":      {"ecc_errors_uncorrected_volatile_total", 1},
		"ecc_corrected_ever":   {"ecc_errors_corrected_aggregate_total", 1},
		"ecc_uncorrected_ever": {"ecc_errors_uncorrected_aggregate_total", 1},
		"remapped_corrected":   {"remapped_rows_correctable", 1},
		"remapped_uncorrected": {"remapped_rows_uncorrectable", 1},
		"remapped_pending":     {"remapped_rows_pending", 1},
		"remapped_failed":      {"remapped_rows_failure", 1},
	} {
		if v, ok := captured["nvidia_smi_"+from.name]; ok {
			g.Values[key] = fmt.Sprint(math.Round(v * from.scale))
		}
	}
	if captured["nvidia_smi_mig_mode_current"] == 1 {
		g.Parts = []fakenvml.Part{}
	}
	for i := range int(captured["nvidia_smi_compute_apps"]) {
		g.Processes = append(g.Processes, fakenvml.Process{PID: i + 1, Name: "a", MiB: 1})
	}
	return g
}

// A GPU that tells what real ones told is shown as nvidia_gpu_exporter shows it: by the same names,
// in the same units, and without what is not there.
func TestMetrics_asNvidiaGPUExporterHasThem(t *testing.T) {
	var files []string
	for _, model := range []string{"h100", "h200", "l40s"} {
		found, err := filepath.Glob(shared + "nvidia-smi/metrics/*nvidia-" + model + "*.metrics")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		t.Skip("optional: there is no ../shared/data/nvidia-smi beside the repository")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want := captured(t, file)
			n := start(t, &fakenvml.Script{
				Driver: "590.48.01", GPUs: []fakenvml.GPU{replay(want)},
			}, gauge.Config{})
			n.sample(1)
			shown := 0
			for line := range strings.Lines(n.metrics()) {
				name, rest, ok := strings.Cut(line, "{uuid=")
				if !ok || !strings.HasPrefix(name, "nvidia_smi_") {
					continue
				}
				v, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' '):]), 64)
				if err != nil {
					t.Fatal(err)
				}
				was, ok := want[name]
				switch {
				case name == "nvidia_smi_clocks_event_reasons_display_clock_setting",
					name == "nvidia_smi_memory_free_bytes", // rounded in nvidia-smi's text
					name == "nvidia_smi_mig_mode_current" && v == 0 && !ok:
				case !ok:
					t.Errorf("the real exporter does not show %s", name)
				case math.Abs(v-was) > 1e-9*math.Abs(was):
					t.Errorf("%s is %v, and was %v", name, v, was)
				default:
					shown++
				}
			}
			// A partitioned GPU has no utilisation; an L40S has no sensor in its memory.
			if shown < 20 {
				t.Errorf("only %d metrics are the same", shown)
			}
			_, tells := want["nvidia_smi_utilization_gpu_ratio"]
			if got := n.value("nvidia_smi_utilization_gpu_ratio"); (got != "absent") != tells {
				t.Errorf("utilisation is %s, and was told: %t", got, tells)
			}
		})
	}
}

// Names and types are those of dcgm-exporter's own lists.
func TestMetrics_asDCGMExporterHasThem(t *testing.T) {
	files, err := filepath.Glob(shared + "dcgm/etc_*.csv")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("optional: there is no ../shared/data/dcgm beside the repository")
	}
	types := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimLeft(line, "# ")
			if !strings.HasPrefix(line, "DCGM_FI_") {
				continue
			}
			fields, err := csv.NewReader(strings.NewReader(line)).Read()
			if err == nil && len(fields) > 2 {
				types[strings.TrimSpace(fields[0])] = strings.TrimSpace(fields[1])
			}
		}
	}
	n := start(t, fakenvml.Node(1), gauge.Config{})
	n.sample(2)
	shown := 0
	for line := range strings.Lines(n.metrics()) {
		name, kind, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "# TYPE "), " ")
		if !ok || !strings.HasPrefix(line, "# TYPE DCGM_") {
			continue
		}
		shown++
		if types[name] != kind {
			t.Errorf("%s is a %s, with dcgm-exporter %q", name, kind, types[name])
		}
	}
	if shown < 20 {
		t.Errorf("found only %d of its metrics", shown)
	}
}
