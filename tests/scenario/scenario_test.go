package scenario

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/suanpan/suanpan/tests/audit"
)

// auditor is the second opinion.
type auditor struct{}

func (auditor) Bill(text string, events []string) (summary, refused []string, err error) {
	lines := make([][]byte, len(events))
	for i := range events {
		lines[i] = []byte(events[i])
	}
	csv, refused, err := audit.Rate([]byte(text), lines)
	summary = strings.Split(strings.TrimSpace(csv), "\n")[1:]
	return summary, refused, err
}

func (auditor) Documents(text string, events []string) (documents, refused []string, err error) {
	lines := make([][]byte, len(events))
	for i := range events {
		lines[i] = []byte(events[i])
	}
	return audit.Bill([]byte(text), lines)
}

var engines = map[string]Engine{"product": Product{}, "auditor": auditor{}}

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.scenario")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		script, err := Parse(file, string(data))
		if err != nil {
			t.Error(err)
			continue
		}
		if len(script.Ticks) > 0 {
			t.Run(filepath.Base(file)+"/ticks", func(t *testing.T) {
				if difference := ticks(script); difference != "" {
					t.Error(difference)
				}
			})
			continue
		}
		for name, engine := range engines {
			t.Run(filepath.Base(file)+"/"+name, func(t *testing.T) {
				if difference := run(engine, script); difference != "" {
					t.Error(difference)
				}
			})
		}
	}
}

// run returns how the engine's bill differs from the script's (-want +got).
func run(engine Engine, s *Script) string {
	difference := ""
	if s.Documents != nil {
		difference = documents(engine, s)
	}
	if s.Bill == nil && s.Documents != nil {
		return difference
	}
	summary, refused, err := engine.Bill(s.Catalog, s.Events)
	if err != nil {
		return err.Error()
	}
	slices.Sort(summary)
	return difference + cmp.Diff(s.Bill, append([]string(nil), summary...)) +
		cmp.Diff(s.Refused, refused)
}

// documents returns how the documents differ, of what the script says of them (-want +got).
func documents(engine Engine, s *Script) string {
	made, refused, err := engine.Documents(s.Catalog, s.Events)
	if err != nil {
		return err.Error()
	}
	want := slices.Clone(s.Documents)
	for i := range want {
		if engine != (Product{}) {
			want[i] = ForAuditor(want[i])
		}
		if i < len(made) {
			made[i] = Without(made[i], unsaid(s.Documents[i])...)
		}
	}
	return cmp.Diff(strings.Join(want, "\n"), strings.Join(made, "\n")) +
		cmp.Diff(s.Refused, refused)
}

// ticks returns how what is said at ticks differs from the script (-want +got). Forecasts are
// compared where a tick has one.
func ticks(s *Script) string {
	said, err := Product{}.Ticks(s)
	if err != nil {
		return err.Error()
	}
	difference := ""
	for i := range s.Ticks {
		want := &s.Ticks[i]
		for _, verb := range []string{"forecast", "reaches"} {
			if !strings.Contains("\n"+want.Says, "\n"+verb+" ") {
				said[i] = Without(said[i], verb)
			}
		}
		if d := cmp.Diff(strings.TrimSpace(want.Says), strings.TrimSpace(said[i])); d != "" {
			difference += want.At.Format(time.RFC3339) + ":\n" + d
		}
	}
	return difference
}

func TestScenarios_wrongExpectationFails(t *testing.T) {
	data, err := os.ReadFile("testdata/per_second.scenario")
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{{"= 30.5 CNY", "= 30.50000001 CNY"}, {"no_tenant", "no_price"}} {
		text := strings.Replace(string(data), change[0], change[1], 1)
		script, err := Parse("changed", text)
		if err != nil || text == string(data) {
			t.Fatalf("cannot change %s: %v", change[0], err)
		}
		for name, engine := range engines {
			if run(engine, script) == "" {
				t.Errorf("%s agrees with %s", name, change[1])
			}
		}
	}
}

func TestScenarios_wrongTickFails(t *testing.T) {
	for _, change := range [][3]string{
		{"thresholds", "79.999999999999 of 100", "80 of 100"},
		{"thresholds", "  fires yen 0.999\n", ""},
		{"days", "reaches berlin: 2026-10-25T21:00:00Z", "reaches berlin: 2026-10-25T22:00:00Z"},
		{"days", "forecast berlin: 90000", "forecast berlin: 90001"},
		{"late", "  resolves day 0.8 recovered\n", "  resolves day 0.8 over\n"},
		{"changes", "tick 2026-01-05T01:00:00Z", "tick 2026-01-05T00:59:59Z"},
	} {
		data, err := os.ReadFile("testdata/budget_" + change[0] + ".scenario")
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(data), change[1], change[2], 1)
		script, err := Parse("changed", text)
		if err != nil || text == string(data) {
			t.Fatalf("cannot change %s: %v", change[1], err)
		}
		if ticks(script) == "" {
			t.Errorf("the product agrees with %q", change[2])
		}
	}
}

func TestParse_failure(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if _, err := Parse("f", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) = %v, want %q", text, err, want)
		}
	}
	f("usag x\n", "f:1: \"usag\" is none of")
	f("\nusage u acme s\n", "f:2: usage needs")
	f("bill\nacme 2026-01\nend\n", "f:2: a line of a bill is")
	f("catalog\nkind: x\n", "catalog has no end")
	f("usage u acme s 2026-01-05T02:00:00Z 2026-01-05T02:00:00Z gpu=1\n", "has usage, and a bill")
	f("tick 2026-01-05\n", "f:1: parsing time")
	f("tick 2026-01-05T02:00:00Z\nfired b 1\nend\n", `f:2: "fired" is none of budget`)
}
