package focus

import (
	"bytes"
	"encoding/csv"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/focus"
	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/rating"
)

func each(items []rating.LineItem) iter.Seq2[*rating.LineItem, error] {
	return func(yield func(*rating.LineItem, error) bool) {
		for i := range items {
			if !yield(&items[i], nil) {
				return
			}
		}
	}
}

func (w *world) export(t *testing.T, version, format, period string) []byte {
	t.Helper()
	entries, items := w.decided(t, period)
	var out bytes.Buffer
	err := focus.Write(&out, focus.Options{
		Version: version, Format: format, Period: period,
		Contract: func(string, int64) string { return "" },
		Bounds: func(tenant, contract, period string) (int64, int64) {
			from, until, ok := w.catalog.PeriodBounds(tenant, contract, period)
			if !ok {
				t.Fatalf("%s has no bounds", period)
			}
			return from, until
		},
	}, entries, each(items))
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func amount(t *testing.T, text string) money.Amount {
	t.Helper()
	a, err := money.ParseSigned(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// rows reads a CSV export.
func rows(t *testing.T, data []byte) []map[string]string {
	t.Helper()
	all, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]string
	for _, record := range all[1:] {
		r := make(map[string]string)
		for i, cell := range record {
			r[all[0][i]] = cell
		}
		out = append(out, r)
	}
	return out
}

// The sum of BilledCost of each invoice is what it says, list costs are price x quantity, and all
// kinds of charges are there.
func TestExport_addsUpToTheDocuments(t *testing.T) {
	w := newWorld(t)
	kinds := make(map[string]bool)
	for _, period := range []string{"2026-01", "2026-02"} {
		entries, _ := w.decided(t, period)
		want := make(map[string]string)
		for _, e := range entries {
			total := amount(t, e.Total)
			if e.Type == billing.CreditNote {
				total = total.Neg()
			}
			want[e.Number] = total.String()
		}
		got := make(map[string]money.Amount)
		for _, r := range rows(t, w.export(t, focus.V14, "csv", period)) {
			got[r["InvoiceId"]] = got[r["InvoiceId"]].Add(amount(t, r["BilledCost"]))
			kinds[r["ChargeCategory"]+r["ChargeClass"]+r["PricingCategory"]] = true
			if r["ListUnitPrice"] == "" {
				continue
			}
			list := amount(t, r["ListUnitPrice"]).Mul(amount(t, r["PricingQuantity"]))
			if list.Cmp(amount(t, r["ListCost"])) != 0 {
				t.Errorf("list cost %s is not %s x %s", r["ListCost"], r["ListUnitPrice"],
					r["PricingQuantity"])
			}
		}
		for number, total := range want {
			if got[number].String() != total {
				t.Errorf("%s: document %q bills %s, its rows %s", period, number, total, got[number])
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: rows are of the documents %v, want %v", period, got, want)
		}
	}
	for _, kind := range []string{
		"UsageStandard", "UsageDynamic", "UsageCorrectionStandard", "Credit", "Tax", "TaxCorrection",
		"Adjustment", "AdjustmentCorrection",
	} {
		if !kinds[kind] {
			t.Errorf("no row is %s: there are %v", kind, kinds)
		}
	}
}

// Parquet says the same as CSV.
func TestExport_parquetIsTheCSV(t *testing.T) {
	w := newWorld(t)
	for _, version := range []string{focus.V12, focus.V14} {
		data := w.export(t, version, "parquet", "2026-02")
		file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		want := rows(t, w.export(t, version, "csv", "2026-02"))
		if file.NumRows() != int64(len(want)) || len(file.Schema().Columns()) != len(want[0]) {
			t.Errorf("Parquet has %d rows of %d columns, CSV %d of %d", file.NumRows(),
				len(file.Schema().Columns()), len(want), len(want[0]))
		}
	}
}

// tools installs the validators into a folder of their own, once per machine. They need Python 3.12.
func tools(t *testing.T) string {
	t.Helper()
	python := ""
	candidates := []string{"python3.12", "python3.13", "python3"}
	if root, err := exec.Command("pyenv", "root").Output(); err == nil { // its shims need a setting
		found, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(root)),
			"versions", "3.1[23]*", "bin", "python3"))
		candidates = append(candidates, found...)
	}
	for _, name := range candidates {
		out, err := exec.Command(name, "-c", "import sys; print(sys.version_info >= (3, 12))").Output()
		if err == nil && strings.TrimSpace(string(out)) == "True" {
			python = name
			break
		}
	}
	if python == "" {
		t.Skip("optional: FOCUS exports are not validated: Python 3.12 is not installed")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "suanpan", "focus-2.2.1-0.14.1")
	if _, err := os.Stat(filepath.Join(dir, "ready")); err == nil {
		return dir
	}
	for _, args := range [][]string{
		{python, "-m", "venv", "--clear", dir},
		{
			filepath.Join(dir, "bin", "pip"), "-q", "install", "focus-validator==2.2.1",
			"pyarrow<22", "focus-data-toolkit==0.14.1",
		},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("install FOCUS validators: %v\n%s", err, out)
		}
	}
	// The validator opens a file relative to where it is started.
	pages, err := filepath.Glob(filepath.Join(dir, "lib", "python3*", "site-packages", "focus_validator"))
	if err != nil || len(pages) != 1 {
		t.Fatalf("find the validator's files: %v, %v", pages, err)
	}
	if err := os.Symlink(pages[0], filepath.Join(dir, "focus_validator")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ready"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestExport_toolkitAccepts14(t *testing.T) {
	dir, w := tools(t), newWorld(t)
	check := func(data []byte) (string, error) {
		path := filepath.Join(t.TempDir(), "focus.csv")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(filepath.Join(dir, "bin", "focus-toolkit"), "validate", "--dataset",
			"cost-and-usage", path).CombinedOutput()
		return string(out), err
	}
	for _, period := range []string{"2026-01", "2026-02"} {
		data := w.export(t, focus.V14, "csv", period)
		if out, err := check(data); err != nil {
			t.Errorf("%s: %v\n%s", period, err, out)
		}
		if out, err := check(bytes.ReplaceAll(data, []byte("Standard"), []byte("Bogus"))); err == nil {
			t.Errorf("a planted fault was not found:\n%s", out)
		}
	}
}

// knownDefects are rules of the validator's model that contradict the specification.
var knownDefects = regexp.MustCompile(`InvoiceId-C-00[04]|CommitmentDiscountStatus-C-00[024]|` +
	`CapacityReservationStatus-C-00[024]|CostAndUsage-D-00[02]`)

func TestExport_validatorAccepts12(t *testing.T) {
	dir, w := tools(t), newWorld(t)
	failing := regexp.MustCompile(`(?m)^.*\bFAIL\b.*$`)
	check := func(data []byte) []string {
		path := filepath.Join(t.TempDir(), "focus.parquet")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(filepath.Join(dir, "bin", "focus-validator"), "--data-file", path,
			"--validate-version", "1.2", "--block-download", "--focus-dataset", "CostAndUsage",
			"--output-type", "console", "--applicability-criteria", "ALL")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if !bytes.Contains(out, []byte("Fail:")) {
			t.Fatalf("the validator counts nothing:\n%s", out[max(0, len(out)-3000):])
		}
		var bad []string
		for _, line := range failing.FindAllString(string(out), -1) {
			if !knownDefects.MatchString(line) {
				bad = append(bad, line)
			}
		}
		return bad
	}
	if bad := check(w.export(t, focus.V12, "parquet", "2026-02")); len(bad) > 0 {
		t.Errorf("the validator says\n%s", strings.Join(bad, "\n"))
	}
}
