package csv

import (
	"bytes"
	"encoding/csv"
	"flag"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/billingtest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// samples are the shared ones, the longest of which is cut to what a reviewer reads.
func samples() map[string]*billing.Document {
	all := billingtest.Samples()
	all["many"] = billingtest.Many(12)
	return all
}

func TestRenderingsAreTheGoldenOnes(t *testing.T) {
	all := samples()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		got, err := Render(all[name])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		path := filepath.Join("testdata", name+".csv")
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("%v (go test -update writes it)", err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s differs from its golden (-want +got):\n%s", name, diff)
		}
	}
}

// parse reads a CSV as rows by column.
func parse(t *testing.T, data []byte) []map[string]string {
	t.Helper()
	records, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]string
	for _, record := range records[1:] {
		r := map[string]string{}
		for i, cell := range record {
			r[records[0][i]] = cell
		}
		rows = append(rows, r)
	}
	return rows
}

func TestRowsOfALevelAddUp(t *testing.T) {
	for name, d := range billingtest.Samples() {
		data, err := Render(d)
		if err != nil {
			t.Fatal(err)
		}
		sums := map[string]*big.Rat{"line": new(big.Rat), "tax": new(big.Rat)}
		for _, r := range parse(t, data) {
			if r["level"] == "tier" {
				continue
			}
			amount, ok := new(big.Rat).SetString(r["amount"])
			if !ok {
				t.Fatalf("%s: amount %q of %v", name, r["amount"], r)
			}
			key := r["level"]
			switch key {
			case "line", "tax", "prepaid":
			default:
				key += " of line " + strings.TrimSuffix(r["line"], ".1")
			}
			if sums[key] == nil {
				sums[key] = new(big.Rat)
			}
			sums[key].Add(sums[key], amount)
		}
		for key, want := range map[string]string{"line": d.Subtotal, "tax": d.TaxTotal} {
			if w, _ := new(big.Rat).SetString(want); sums[key].Cmp(w) != 0 {
				t.Errorf("%s: rows of level %s come to %s, the document says %s", name, key,
					sums[key].FloatString(3), want)
			}
		}
		for i, l := range d.Lines {
			key := "project of line " + big.NewInt(int64(i+1)).String()
			want, _ := new(big.Rat).SetString(l.Amount)
			if len(l.Breakdown.Projects) > 0 && sums[key].Cmp(want) != 0 {
				t.Errorf("%s: %s: %s, want %s", name, key, sums[key].FloatString(3), l.Amount)
			}
		}
	}
}

func TestNoCellIsAFormula(t *testing.T) {
	for cell, want := range map[string]string{
		`=HYPERLINK("http://evil.example","pay here")`: `'=HYPERLINK("http://evil.example","pay here")`,
		"+1-1":         "'+1-1",
		"-1+cmd|' /C'": "'-1+cmd|' /C'",
		"@SUM(A1)":     "'@SUM(A1)",
		"\t=1":         "'\t=1",
		"\r=1":         "'\r=1",
		"\n=1":         "'\n=1",
		"\uff1d1+1":    "'\uff1d1+1",
		"-12.50":       "-12.50",
		"-0.05":        "-0.05",
		"12":           "12",
		"-":            "'-",
		"--1":          "'--1",
		"-.5":          "'-.5",
		"-1.":          "'-1.",
		"-1e5":         "'-1e5",
		"a=b":          "a=b",
		"off-peak":     "off-peak",
		"2026-10-31":   "2026-10-31",
		"":             "",
		"bad \xff":     "bad \ufffd",
	} {
		if got := Safe(cell); got != want {
			t.Errorf("Safe(%q) = %q, want %q", cell, got, want)
		}
	}
}

func TestHostileNamesStayInTheirCells(t *testing.T) {
	d := billingtest.Plain()
	bad := "=1+1\",\r\n\"evil\"\n,;"
	d.Tenant, d.Lines[0].SKU, d.Lines[0].Breakdown.Projects[0].Name = bad, bad, bad
	data, err := Render(d)
	if err != nil {
		t.Fatal(err)
	}
	rows := parse(t, data)
	// A reader gives CRLF within a cell as LF.
	want := "'" + strings.ReplaceAll(bad, "\r\n", "\n")
	for _, r := range rows {
		if r["tenant"] != want {
			t.Fatalf("tenant %q, want %q", r["tenant"], want)
		}
	}
	if rows[0]["sku"] != want || rows[1]["name"] != want {
		t.Errorf("sku %q, project %q, want %q", rows[0]["sku"], rows[1]["name"], want)
	}
}

func TestRowsEndAsRFC4180Says(t *testing.T) {
	data, err := Render(billingtest.Chinese())
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Count(data, []byte("\n")) != bytes.Count(data, []byte("\r\n")) {
		t.Error("a row ends without CRLF")
	}
	if !bytes.HasSuffix(data, []byte("\r\n")) || !bytes.Contains(data, []byte("星辰大模型")) {
		t.Error("the last row does not end, or Chinese names are not there")
	}
}
