//go:build cgo && linux

package gpu

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/nvml"
	"github.com/suanpan/suanpan/pkg/nvml/fakenvml"
	"github.com/suanpan/suanpan/services/exporter/gauge"
)

// smi runs nvidia-smi.
func smi(t *testing.T, args ...string) string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "nvidia-smi", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("nvidia-smi %q: %v\n%s", args, err, text)
	}
	return string(text)
}

// cards asks nvidia-smi for the GPUs.
func cards(t *testing.T) []Card {
	t.Helper()
	list, err := ParseCards(smi(t, "--query-gpu="+Query, "--format=csv,noheader,nounits"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// check compares the exporter's sampling with nvidia-smi.
func check(t *testing.T, library *nvml.Library) []string {
	t.Helper()
	sampler := gauge.New(library, gauge.Config{})
	began := time.Now()
	if err := sampler.Step(began); err != nil {
		t.Fatal(err)
	}
	first := sampler.Status()
	time.Sleep(3 * time.Second) // in which energy is used
	before := cards(t)
	if err := sampler.Step(time.Now()); err != nil {
		t.Fatal(err)
	}
	after := cards(t)
	var devices []nvml.Device
	readings := map[string]nvml.Reading{}
	var problems []string
	for i, s := range sampler.Status() {
		devices = append(devices, s.Device)
		readings[s.UUID] = s.Reading
		t.Logf("%s %s %s: %+v", s.UUID, s.Name, s.Profile, s.Reading)
		if !s.EnergyMJ.OK || !s.PowerW.OK || i >= len(first) || !first[i].EnergyMJ.OK {
			continue
		}
		// The counter and the power must be of the same card: within half, as load changes.
		watts := float64(s.EnergyMJ.V-first[i].EnergyMJ.V) / 1000 / s.At.Sub(first[i].At).Seconds()
		mean := (s.PowerW.V + first[i].PowerW.V) / 2
		if watts < mean/2-10 || watts > mean*3/2+10 {
			problems = append(problems, fmt.Sprintf("%s: its energy grows by %.0f W, its power is %.0f W",
				s.UUID, watts, mean))
		}
	}
	return append(problems, Problems(before, after, ParseParts(smi(t, "-L")), devices, readings)...)
}

// TestRealGPU is `make test-gpu`.
func TestRealGPU(t *testing.T) {
	if _, err := exec.LookPath("nvidia-smi"); err != nil {
		t.Skip("optional: NOT RUN, nothing was compared: there is no nvidia-smi here, so no GPU")
	}
	library, err := nvml.Open("")
	if err != nil {
		t.Fatalf("there is an nvidia-smi, and no library: %v", err)
	}
	defer func() { _ = library.Close() }()
	problems := check(t, library)
	for _, problem := range problems {
		t.Error(problem)
	}
	if len(problems) == 0 {
		t.Log("the exporter reads what nvidia-smi says")
	}
}

// fakeNode is a fake driver with a fake nvidia-smi in the path that says the same.
func fakeNode(t *testing.T, change func(csv string) string) *nvml.Library {
	t.Helper()
	script := fakenvml.Node(1)
	script.GPUs = append(script.GPUs, fakenvml.Split(fakenvml.H100(1), 2))
	library := fakenvml.Build(t)
	dir := t.TempDir()
	if err := script.Write(filepath.Join(dir, "script")); err != nil {
		t.Fatal(err)
	}
	var csv, list strings.Builder
	for i, g := range script.GPUs {
		use, mode := "98, 47", "Disabled"
		if g.Parts != nil {
			use, mode = "[N/A], [N/A]", "Enabled"
		}
		fmt.Fprintf(&csv, "%d, %s, %s, %s, 81559, 45332, 479, %s, 53, 433.78, 1980, %s\n",
			i, g.UUID, g.Name, g.Values["bus"], use, mode)
		fmt.Fprintf(&list, "GPU %d: %s (UUID: %s)\n", i, g.Name, g.UUID)
		for j, p := range g.Parts {
			fmt.Fprintf(&list, "  MIG %s     Device  %d: (UUID: %s)\n", p.Profile, j, p.UUID)
		}
	}
	program := "#!/bin/sh\nif [ \"$1\" = -L ]; then cat <<'E'\n" + list.String() +
		"E\nelse cat <<'E'\n" + change(csv.String()) + "E\nfi\n"
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv(fakenvml.Env, filepath.Join(dir, "script"))
	l, err := nvml.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestCheck_ofAFakeNode(t *testing.T) {
	for _, problem := range check(t, fakeNode(t, func(csv string) string { return csv })) {
		t.Error(problem)
	}
	// A nvidia-smi that says something else is seen: the check can fail.
	problems := check(t, fakeNode(t, func(csv string) string {
		return strings.ReplaceAll(strings.Replace(csv, "433.78", "120.00", 1), "45332", "12")
	}))
	text := strings.Join(problems, "\n")
	if len(problems) != 3 || !strings.Contains(text, "power.draw is 433.78, nvidia-smi says 120") ||
		strings.Count(text, "memory.used is 45332") != 2 {
		t.Errorf("problems: %s", text)
	}
}

func TestProblems_ofBadSamples(t *testing.T) {
	card := Card{UUID: "GPU-1", Name: "A", BusID: "0:1"}
	card.Numbers = map[string]float64{"temperature.gpu": 50}
	device := nvml.Device{UUID: "GPU-1", Name: "A", BusID: "0:1"}
	reading := nvml.Reading{TemperatureC: nvml.Some(51.0)}
	part := nvml.Device{UUID: "MIG-1", Parent: "GPU-1", Profile: "1g.10gb"}
	memory := nvml.Reading{Memory: nvml.Some(nvml.Memory{Total: 1})}
	f := func(want string, change func(c *Card, devices *[]nvml.Device, r map[string]nvml.Reading)) {
		t.Helper()
		before, after := card, card
		devices := []nvml.Device{device, part}
		readings := map[string]nvml.Reading{"GPU-1": reading, "MIG-1": memory}
		change(&before, &devices, readings)
		got := strings.Join(
			Problems([]Card{before}, []Card{after}, []string{"MIG-1"}, devices, readings), "|")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("problems %q, want %q", got, want)
		}
	}
	type devices = *[]nvml.Device
	type readings = map[string]nvml.Reading
	f("", func(*Card, devices, readings) {})
	f("GPU-1: not listed", func(_ *Card, d devices, _ readings) { *d = (*d)[1:] })
	f("MIG-1: not listed", func(_ *Card, d devices, _ readings) { *d = (*d)[:1] })
	f("GPU-2: listed", func(_ *Card, d devices, _ readings) {
		*d = append(*d, nvml.Device{UUID: "GPU-2"})
	})
	f("GPU-1: listed as", func(_ *Card, d devices, _ readings) { (*d)[0].Index = 3 })
	f("without a GPU or a profile", func(_ *Card, d devices, _ readings) { (*d)[1].Profile = "" })
	f("temperature.gpu is 90", func(_ *Card, _ devices, r readings) {
		r["GPU-1"] = nvml.Reading{TemperatureC: nvml.Some(90.0)}
	})
	f("temperature.gpu is not read", func(_ *Card, _ devices, r readings) {
		r["GPU-1"] = nvml.Reading{}
	})
	f("power.draw is 7, and nvidia-smi does not tell it", func(_ *Card, _ devices, r readings) {
		r["GPU-1"] = nvml.Reading{TemperatureC: nvml.Some(50.0), PowerW: nvml.Some(7.0)}
	})
	f("a utilisation that no MIG device has", func(_ *Card, _ devices, r readings) {
		r["MIG-1"] = nvml.Reading{Memory: memory.Memory, GPUUtil: nvml.Some(0.5)}
	})
}

func TestParseCards_refusesWhatItCannotRead(t *testing.T) {
	for _, text := range []string{
		"a, b\n", strings.Repeat("x, ", 12) + "x\n", "\"", "NVIDIA-SMI has failed\n",
	} {
		if cards, err := ParseCards(text); err == nil {
			t.Errorf("%q is read as %+v", text, cards)
		}
	}
	got := ParseParts("GPU 0: A (UUID: GPU-1)\n  MIG 1g.10gb Device 0: (UUID: MIG-a-b)\n")
	if !slices.Equal(got, []string{"MIG-a-b"}) {
		t.Errorf("MIG devices %q", got)
	}
}
