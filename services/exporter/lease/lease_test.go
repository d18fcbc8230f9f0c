package lease

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var now = time.Date(2026, 1, 5, 2, 0, 0, 0, time.UTC)

// Property: the replicas of a card sum to 1.000, and differ by no more than 0.001.
func TestShare_sumsToOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 1000).Draw(t, "n")
		sum, least, most := int64(0), int64(1000), int64(0)
		for i := range n {
			part := Share(i, n)
			sum, least, most = sum+part, min(least, part), max(most, part)
		}
		if sum != 1000 || most-least > 1 || least < 1 {
			t.Fatalf("%d replicas: sum %d, %d to %d", n, sum, least, most)
		}
	})
	if Share(0, 3) != 334 || Share(1, 3) != 333 {
		t.Error("the first of three has not the remainder")
	}
}

func TestParseMilli(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1000, "0.5": 500, "0.001": 1, "16.250000": 16250, "1000000000000": 1e15,
	} {
		if got, err := ParseMilli(text); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "0.0001", "-1", "+1", "1e3", ".5", "1.2.3", "1 ", "9999999999999"} {
		if got, err := ParseMilli(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}

const leaseFile = `# who has what
leases:
  - lease: l-1
    tenant: acme
    project: llm
    devices: [GPU-1, "3.0"]
    share: "0.5"
    held: {cpu.core: "16"}
    labels: {team: research, stage: finetuning}
    start: 2026-01-05T10:00:00+08:00
    end: 2026-02-01T00:00:00Z
    purchase: reserved
  - {lease: l-2, tenant: beta, held: {npu.910b: 8}}
`

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.yaml")
	source := NewFile(path)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := source.Leases(t.Context()); err == nil {
		t.Error("no file, and no error")
	}
	write(leaseFile)
	same(t, []Lease{
		{
			Key: "acme\x00l-1", Tenant: "acme", Project: "llm", Lease: "l-1", Purchase: "reserved",
			Labels:  map[string]string{"team": "research", "stage": "finetuning"},
			Devices: []Device{{"GPU-1", 500}, {"3.0", 500}}, Held: map[string]int64{"cpu.core": 16000},
			Start: now, End: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC),
		},
		{
			Key: "beta\x00l-2", Tenant: "beta", Project: "default", Lease: "l-2",
			Purchase: "on_demand", Held: map[string]int64{"npu.910b": 8000},
		},
	}, leases(t, source))
	write("leases: []\n")
	same(t, []Lease{}, leases(t, source))
	for _, bad := range []string{
		"", "leases: [", "lease: []", leaseFile + "  - {lease: l-1, tenant: acme, devices: [a]}\n",
		"leases: [{lease: a, tenant: b}]", "leases: [{lease: a, devices: [x]}]",
		"leases: [{lease: a, tenant: b, devices: [x], share: '1.1'}]",
		"leases: [{lease: a, tenant: b, devices: [x, x]}]",
		"leases: [{lease: a, tenant: b, devices: [x], purchase: free}]",
		"leases: [{lease: a, tenant: b, devices: [x], color: red}]",
		"leases: [{lease: a, tenant: b, held: {cpu.core: 0.0001}}]",
		"leases: [{lease: a, tenant: b, devices: [x], start: 2026-01-02T00:00:00Z, " +
			"end: 2026-01-01T00:00:00Z}]",
		"leases: [{lease: " + strings.Repeat("x", 257) + ", tenant: b, devices: [x]}]",
	} {
		write(bad)
		if got, err := source.Leases(t.Context()); err == nil {
			t.Errorf("%.80s: %v", bad, got)
		}
	}
}

func TestRequests(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.json")
	clock := now
	r := openRequests(t, path, &clock)
	doc := Document{Lease: "l-1", Tenant: "acme", Devices: []string{"0"}}
	if _, err := r.Start(doc); err != nil {
		t.Fatal(err)
	}
	clock = clock.Add(time.Minute)
	r = openRequests(t, path, &clock) // as after kill -9
	if l, err := r.Start(doc); err != nil || !l.Start.Equal(now) {
		t.Errorf("asked twice: %+v, %v", l, err)
	}
	first := Lease{
		Key: "acme\x00l-1\x002026-01-05T02:00:00Z", Tenant: "acme", Project: "default", Lease: "l-1",
		Purchase: "on_demand", Devices: []Device{{"0", 1000}}, Start: now,
	}
	same(t, []Lease{first}, leases(t, r))
	doc.Labels = map[string]string{"stage": "finetuning"}
	if _, err := r.Start(doc); err != nil {
		t.Fatal(err)
	}
	first.Labels, first.Start = doc.Labels, clock
	same(t, []Lease{first}, leases(t, r))
	clock = clock.Add(time.Minute)
	if tenant, err := r.Tenant("l-1"); err != nil || tenant != "acme" {
		t.Errorf("tenant %q, %v", tenant, err)
	}
	for range 2 {
		if err := r.End("acme", "l-1", time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	first.End = clock
	if _, err := r.Start(doc); err != nil {
		t.Fatal(err)
	}
	second := first
	second.Key, second.Start, second.End = "acme\x00l-1\x002026-01-05T02:02:00Z", clock, time.Time{}
	r = openRequests(t, path, &clock)
	same(t, []Lease{first, second}, leases(t, r))
	clock = clock.Add(2 * time.Hour)
	if err := r.End("acme", "l-1", clock.Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	second.End = clock.Add(-time.Minute)
	same(t, []Lease{second}, leases(t, r))
}

func openRequests(t *testing.T, path string, clock *time.Time) *Requests {
	t.Helper()
	r, err := OpenRequests(path, func() time.Time { return *clock })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRequests_refuses(t *testing.T) {
	clock := now
	r := openRequests(t, filepath.Join(t.TempDir(), "leases.json"), &clock)
	for _, doc := range []Document{
		{Lease: "a", Tenant: "b"},
		{Lease: "a", Devices: []string{"0"}},
		{Lease: "a", Tenant: "b", Devices: []string{"0"}, Start: now.Add(time.Hour)},
		{Lease: "a", Tenant: "b", Devices: []string{"0"}, End: now.Add(time.Hour)},
	} {
		if _, err := r.Start(doc); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", doc, err)
		}
	}
	if err := r.End("b", "a", time.Time{}); !errors.Is(err, ErrUnknown) {
		t.Errorf("end of nothing: %v", err)
	}
	if _, err := r.Tenant("a"); !errors.Is(err, ErrUnknown) {
		t.Errorf("tenant of nothing: %v", err)
	}
	broken := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(broken, []byte("[{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRequests(broken, time.Now); err == nil {
		t.Error("a broken file was read")
	}
}
