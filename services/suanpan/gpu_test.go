//go:build cgo && linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/nvml"
	"github.com/suanpan/suanpan/pkg/nvml/fakenvml"
)

// gpuCatalog has an hour of a whole H100 for 20, and a MIG device of one slice at 3, in EUR; nights
// are not cheaper, so that the tests may run at any time.
const gpuCatalog = `
kind: PriceBook
name: public
effective_from: "2020-01-01T00:00:00Z"
currency: EUR
timezone: UTC
prices:
  - {sku: gpu.h100-80g, per: hour, price: "20"}
  - {sku: gpu.h100-80g.1g.10gb, per: hour, price: "3", minimum: 1h}
---
kind: Tenant
name: acme
effective_from: "2020-01-01T00:00:00Z"
price_book: public
---
kind: Tenant
name: beta
effective_from: "2020-01-01T00:00:00Z"
price_book: public
`

// exporterOf answers as an exporter with these leases.
func exporterOf(t *testing.T, leases []nodeLease) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/v1/leases" {
			http.NotFound(w, r)
			return
		}
		if err := json.NewEncoder(w).Encode(map[string]any{"leases": leases}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// gpuTable prints the table of a fake node once.
func gpuTable(t *testing.T, script *fakenvml.Script, exporter string, prices string) string {
	t.Helper()
	library := fakenvml.Build(t)
	path := filepath.Join(t.TempDir(), "script")
	if err := script.Write(path); err != nil {
		t.Fatal(err)
	}
	t.Setenv(fakenvml.Env, path)
	l, err := nvml.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	var c *catalog.Catalog
	if prices != "" {
		documents, err := catalog.Parse("catalog.yaml", []byte(prices))
		if err != nil {
			t.Fatal(err)
		}
		if c, err = catalog.New(documents); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	o := gpuOptions{every: 20 * time.Millisecond, once: true, exporter: exporter}
	if err := showGPUs(t.Context(), &o, l, c, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// lines are a table's lines without the ends that it pads.
func lines(text string) []string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := range all {
		all[i] = strings.TrimRight(all[i], " ")
	}
	return all
}

func TestGPU_tableOfANode(t *testing.T) {
	script := fakenvml.Node(3)
	script.GPUs = append(script.GPUs, fakenvml.Split(fakenvml.H100(3), 2),
		fakenvml.Split(fakenvml.A100(4), 1))
	script.GPUs[1].Values["util"] = "7"
	now := time.Now()
	leases := []nodeLease{
		{
			Lease: "l-1", Tenant: "acme", Project: "p", Session: "s-1", SKU: "gpu.h100-80g",
			Devices: []string{script.GPUs[0].UUID, script.GPUs[1].UUID}, Since: now.Add(-90 * time.Minute),
		},
		{
			Lease: "l-2", Tenant: "beta", Project: "p", Session: "s-2", SKU: "gpu.h100-80g.1g.10gb",
			Devices: []string{script.GPUs[3].Parts[1].UUID}, Since: now.Add(-10 * time.Minute),
		},
		{
			Lease: "l-3", Tenant: "gone", Project: "p", Session: "s-3", SKU: "gpu.a100-80g.1g.10gb",
			Devices: []string{script.GPUs[4].Parts[0].UUID}, Since: now.Add(-10 * time.Minute),
		},
	}
	got := lines(gpuTable(t, script, exporterOf(t, leases), gpuCatalog))
	// The cost of 90 minutes of two GPUs, and a second or two of the test.
	for _, ending := range []string{"60.00", "60.01", "60.02", "60.03"} {
		got[1] = strings.Replace(got[1], ending+" EUR", "60.00 EUR", 1)
	}
	want := []string{
		`GPU  MODEL           USE   MEMORY           TEMP  POWER  LEASE  TENANT  PER HOUR   SO FAR`,
		`0    H100 80GB HBM3  98 %  44.3 / 79.6 GiB  53 C  434 W  l-1    acme    40.00 EUR  60.00 EUR`,
		`1    H100 80GB HBM3  7 %   44.3 / 79.6 GiB  53 C  434 W  l-1    acme    "          "`,
		`2    H100 80GB HBM3  98 %  44.3 / 79.6 GiB  53 C  434 W  idle   -       -          -`,
		`3    H100 80GB HBM3  98 %  44.3 / 79.6 GiB  53 C  434 W  (MIG)  -       -          -`,
		`3.0    MIG 1g.10gb   50 %  1.0 / 9.8 GiB    -     -      idle   -       -          -`,
		`3.1    MIG 1g.10gb   51 %  1.1 / 9.8 GiB    -     -      l-2    beta    3.00 EUR   3.00 EUR`,
		`4    A100-SXM4-80GB  -     29.4 / 80.0 GiB  61 C  322 W  (MIG)  -       -          -`,
		`4.0    MIG 1g.10gb   -     1.0 / 9.8 GiB    -     -      l-3    gone    -          -`,
		`price lease l-3: no_tenant: the catalog has no tenant "gone"`,
	}
	// The partitioned H100 has no utilisation in NVML, but activity; the A100 has neither.
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestGPU_withoutPricesAndWithoutAnExporter(t *testing.T) {
	script := fakenvml.Node(1)
	got := lines(gpuTable(t, script, "http://127.0.0.1:1", ""))
	if len(got) != 3 || !strings.HasSuffix(got[1], "?      ?       -         -") ||
		!strings.HasPrefix(got[2], "ask the exporter for leases: ") {
		t.Errorf("table:\n%s", strings.Join(got, "\n"))
	}
	// With one that has no leases all is idle, which is another thing.
	got = lines(gpuTable(t, script, exporterOf(t, nil), ""))
	if len(got) != 2 || !strings.Contains(got[1], "idle") {
		t.Errorf("table:\n%s", strings.Join(got, "\n"))
	}
}

// A lease of a month is priced by its days: as many as events may be long.
func TestLeaseCosts_ofALongLease(t *testing.T) {
	documents, err := catalog.Parse("catalog.yaml", []byte(gpuCatalog))
	if err != nil {
		t.Fatal(err)
	}
	prices, err := catalog.New(documents)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)
	f := func(since time.Time, held map[string]string, hour, total string) {
		t.Helper()
		costs := leaseCosts{prices: prices}
		l := nodeLease{
			Lease: "l", Tenant: "acme", Project: "p", Session: fmt.Sprint(since, held),
			Since: since, Held: held, SKU: "gpu.h100-80g", Devices: []string{"a"},
		}
		if h, s := costs.of(&l, now); h != hour || s != total {
			t.Errorf("since %s: %s and %s (%v), want %s and %s",
				since, h, s, costs.problem, hour, total)
		}
	}
	f(now.AddDate(0, 0, -31), nil, "20.00 EUR", "14880.00 EUR")
	f(now.Add(-time.Minute), nil, "20.00 EUR", "0.33 EUR")
	f(now.Add(-time.Hour), map[string]string{"gpu.h100-80g": "0.25"}, "5.00 EUR", "5.00 EUR")
	f(now.Add(-time.Hour), map[string]string{"gpu.nowhere": "1"}, "-", "-")
	f(now.AddDate(-3, 0, 0), nil, "20.00 EUR", "-")
	f(now.Add(time.Minute), nil, "20.00 EUR", "-") // the exporter's clock is ahead
}

// On a terminal the table is printed again and again, in place, whatever the driver does.
func TestGPU_refreshesUntilItIsStopped(t *testing.T) {
	script := fakenvml.Node(1)
	library := fakenvml.Build(t)
	path := filepath.Join(t.TempDir(), "script")
	if err := script.Write(path); err != nil {
		t.Fatal(err)
	}
	t.Setenv(fakenvml.Env, path)
	l, err := nvml.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	pages := make(chan string)
	ended := make(chan error, 1)
	o := gpuOptions{every: 10 * time.Millisecond, exporter: exporterOf(t, nil)}
	go func() { ended <- showGPUs(ctx, &o, l, nil, pageWriter(pages)) }()
	await := func(part string) {
		t.Helper()
		for {
			select {
			case page := <-pages:
				if !strings.HasPrefix(page, clearScreen) {
					t.Errorf("a page that is not in place: %q", page)
				}
				if strings.Contains(page, part) {
					return
				}
			case <-ctx.Done():
				t.Fatalf("no page has %q", part)
			}
		}
	}
	await("98 %")
	script.Down = "driver_not_loaded"
	if err := script.Write(path); err != nil {
		t.Fatal(err)
	}
	await("the driver does not answer")
	script.Down = ""
	script.GPUs[0].Values["util"] = "12"
	if err := script.Write(path); err != nil {
		t.Fatal(err)
	}
	await("12 %")
	cancel()
	for {
		select {
		case <-pages:
			continue
		case err := <-ended:
			if err != nil {
				t.Errorf("it ends with %v", err)
			}
		}
		return
	}
}

// pageWriter hands each page to a test.
type pageWriter chan string

func (w pageWriter) Write(page []byte) (int, error) {
	w <- string(page)
	return len(page), nil
}
