package focus

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/billing/focus"
)

const (
	fetchTimeout = 10 * time.Minute // once per machine and version
	checkTimeout = 3 * time.Minute
)

// tool is a Python package with its version, and what it needs.
type tool struct {
	name     string
	packages []string
	python   string // the oldest version that it runs on, as Python writes it
}

var (
	toolkit   = tool{"focus-toolkit-0.14.1", []string{"focus-data-toolkit==0.14.1"}, "(3, 11)"}
	validator = tool{
		"focus-validator-2.2.1",
		// A newer pyarrow does not work with the numpy that the validator asks for.
		[]string{"focus-validator==2.2.1", "pyarrow<22"},
		"(3, 12)",
	}
)

// command runs a program for so long at most.
func command(t *testing.T, limit time.Duration, dir, name string, args ...string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	return cmd.CombinedOutput()
}

// find returns a Python that is new enough.
func (tool tool) find(t *testing.T) string {
	t.Helper()
	candidates := []string{"python3", "python3.12", "python3.13"}
	// pyenv has programs of that name which do nothing unless they are chosen.
	if root, err := command(t, checkTimeout, "", "pyenv", "root"); err == nil {
		found, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(root)),
			"versions", "3.1[23]*", "bin", "python3"))
		if err != nil {
			t.Fatal(err)
		}
		candidates = append(candidates, found...)
	}
	for _, name := range candidates {
		out, err := command(t, checkTimeout, "", name, "-c",
			"import sys; print("+tool.python+" <= sys.version_info < (3, 14))")
		if err == nil && strings.TrimSpace(string(out)) == "True" {
			return name
		}
	}
	t.Skipf("optional: %s does not check exports: it needs Python %s, up to 3.13", tool.name,
		tool.python)
	return ""
}

// install returns the folder of a virtual environment with the tool, made once per machine.
func (tool tool) install(t *testing.T) string {
	t.Helper()
	python := tool.find(t)
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	parent := filepath.Join(cache, "suanpan", "focus")
	ready := filepath.Join(parent, tool.name)
	if _, err := os.Stat(ready); err == nil {
		return ready
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	work, err := os.MkdirTemp(parent, "fetching-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(work)
	for _, args := range [][]string{
		{python, "-m", "venv", work},
		append([]string{inside(work, "python"), "-m", "pip", "-q", "install"}, tool.packages...),
	} {
		if out, err := command(t, fetchTimeout, "", args[0], args[1:]...); err != nil {
			missing(t, "exports not checked: install %s: %v\n%s", tool.name, err, out)
		}
	}
	if err := os.Rename(work, ready); err != nil {
		if _, err := os.Stat(ready); err != nil { // else another test was faster
			t.Fatal(err)
		}
	}
	return ready
}

// inside is a program of a virtual environment.
func inside(dir, program string) string { return filepath.Join(dir, "bin", program) }

// missing skips a test, or fails it where everything has to be tested.
func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("SUANPAN_TEST_ALL") == "1" {
		t.Fatalf(format, args...)
	}
	t.Skipf("SKIPPED, set SUANPAN_TEST_ALL=1 to make this fail: "+format, args...)
}

// run starts the main function of an installed package.
func run(t *testing.T, dir, work, module string, args ...string) ([]byte, error) {
	t.Helper()
	code := "import sys; from " + module + " import main; sys.argv[0] = 'check'; sys.exit(main())"
	return command(t, checkTimeout, work, inside(dir, "python"),
		append([]string{"-c", code}, args...)...)
}

// lint checks a dataset of FOCUS 1.4 by the toolkit: with all that we say that we support.
func lint(t *testing.T, dir string, dataset focus.Dataset, data []byte) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "focus.csv")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := run(t, dir, "", "focus_data_toolkit.cli", "validate", "--dataset", string(dataset),
		"--supports", "SupportsMultiplePricingCategories", "--supports", "SupportsUnitPricing", path)
	return string(out), err
}

func TestToolkit_acceptsAllDatasets(t *testing.T) {
	dir, w := toolkit.install(t), newWorld(t)
	for _, period := range periods {
		for _, dataset := range []focus.Dataset{
			focus.CostAndUsage, focus.InvoiceDetail, focus.BillingPeriod,
		} {
			data := w.export(t, focus.Options{
				Version: focus.V14, Format: focus.CSV, Dataset: dataset, Period: period,
			})
			if out, err := lint(t, dir, dataset, data); err != nil {
				t.Errorf("%s of %s: %v\n%s", dataset, period, err, out)
			}
		}
	}
}

func TestToolkit_findsPlantedFaults(t *testing.T) {
	dir, w := toolkit.install(t), newWorld(t)
	good := w.export(t, focus.Options{Version: focus.V14, Format: focus.CSV, Period: "2026-01"})
	for old, planted := range map[string]string{
		",Standard,": ",Bogus,", ",Usage-Based,": ",Often,", ",CNY,": ",XYZ,", "T16:00:00Z": "T16:00",
	} {
		bad := bytes.ReplaceAll(good, []byte(old), []byte(planted))
		if out, err := lint(t, dir, focus.CostAndUsage, bad); err == nil {
			t.Errorf("%q instead of %q was not found:\n%s", planted, old, out)
		}
	}
}

// The three datasets of a period belong together: each row names a line of an invoice, and sums are
// alike.
func TestToolkit_acceptsTheBundle(t *testing.T) {
	dir, w := toolkit.install(t), newWorld(t)
	for _, period := range periods {
		args := []string{"validate-bundle"}
		for _, dataset := range []focus.Dataset{
			focus.CostAndUsage, focus.InvoiceDetail, focus.BillingPeriod,
		} {
			data := w.export(t, focus.Options{
				Version: focus.V14, Format: focus.CSV, Dataset: dataset, Period: period,
			})
			path := filepath.Join(t.TempDir(), "focus.csv")
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			args = append(args, "--"+string(dataset), path)
		}
		out, err := run(t, dir, "", "focus_data_toolkit.cli", args...)
		if err != nil || !bytes.Contains(out, []byte("Cost and Usage, Invoice Detail")) {
			t.Errorf("%s: %v\n%s", period, err, out)
		}
	}
}

// knownDefects are rules of the validator's model that the specification does not have: InvoiceId
// must be null always, and two conditions are the wrong way round; each with the rules above it.
var knownDefects = []string{
	"CapacityReservationStatus-C-000-C", "CapacityReservationStatus-C-002-C",
	"CapacityReservationStatus-C-004-C", "CommitmentDiscountStatus-C-000-C",
	"CommitmentDiscountStatus-C-002-C", "CommitmentDiscountStatus-C-004-C",
	"CostAndUsage-D-000-M", "CostAndUsage-D-002-M", "InvoiceId-C-000-C", "InvoiceId-C-004-C",
}

var (
	failCount = regexp.MustCompile(`Fail: (\d+)`)
	failed    = regexp.MustCompile(`([A-Za-z]+-[CD]-\d+-[A-Z])[^\n]*FAIL`)
)

// violations are the rules of FOCUS 1.2 that a Parquet file breaks, but for the known defects.
func violations(t *testing.T, dir string, data []byte) []string {
	t.Helper()
	// It opens its own files relative to where it is started.
	work := t.TempDir()
	pages, err := filepath.Glob(filepath.Join(dir, "lib", "python3*", "site-packages",
		"focus_validator"))
	if err != nil || len(pages) != 1 {
		t.Fatalf("find the validator's files: %v, %v", pages, err)
	}
	if err := os.Symlink(pages[0], filepath.Join(work, "focus_validator")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(work, "focus.parquet")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := run(t, dir, work, "focus_validator.main", "--data-file", path,
		"--validate-version", "1.2", "--block-download", "--focus-dataset", "CostAndUsage",
		"--output-type", "console", "--applicability-criteria", "ALL")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	count := failCount.FindSubmatch(out) // it ends with 0 all the same
	if count == nil {
		t.Fatalf("the validator counts nothing:\n%s", out[max(0, len(out)-3000):])
	}
	var all, bad []string
	for _, found := range failed.FindAllSubmatch(out, -1) {
		all = append(all, string(found[1]))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for _, rule := range all {
		if !slices.Contains(knownDefects, rule) {
			bad = append(bad, rule)
		}
	}
	if string(count[1]) != "0" && len(all) == 0 {
		t.Fatalf("%s rules fail, but none is named:\n%s", count[1], out)
	}
	return bad
}

func TestValidator_accepts12(t *testing.T) {
	dir, w := validator.install(t), newWorld(t)
	data := w.export(t, focus.Options{Version: focus.V12, Format: focus.Parquet, Period: "2026-02"})
	if bad := violations(t, dir, data); len(bad) > 0 {
		t.Errorf("these rules are broken: %v", bad)
	}
}

func TestValidator_findsAPlantedFault(t *testing.T) {
	dir, w := validator.install(t), newWorld(t)
	w.items[0].Currency = "cn" // and so it is on no invoice
	data := w.export(t, focus.Options{
		Version: focus.V12, Format: focus.Parquet, Period: "2026-01", Provider: "Cloud Ltd.",
	})
	if bad := violations(t, dir, data); !slices.Contains(bad, "BillingCurrency-C-003-M") {
		t.Errorf("a planted fault was not found: %v", bad)
	}
}
