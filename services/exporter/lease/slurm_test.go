package lease

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// recorded is a Slurm source that answers with a recorded text.
func recorded(t *testing.T, text string) *Slurm {
	t.Helper()
	s := NewSlurm("gpu14", "main", nil)
	s.zone = time.UTC
	s.run = func(context.Context) ([]byte, error) { return []byte(text), nil }
	return s
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func leases(t *testing.T, s Source) []Lease {
	t.Helper()
	got, err := s.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func same(t *testing.T, want, got []Lease) {
	t.Helper()
	equal := cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })
	if diff := cmp.Diff(want, got, equal); diff != "" {
		t.Fatalf("leases (-want +got):\n%s", diff)
	}
}

func TestSlurm_json(t *testing.T) {
	same(t, []Lease{
		{
			Key: "290094.1", Tenant: "acme-corp", Project: "llm", Lease: "slurm/main/290094",
			Purchase: "reserved", Resumed: true, Start: time.Unix(1767578400, 0),
			Labels: map[string]string{
				"job_name": "pretrain", "user": "ada", "stage": "pretraining",
			},
			Devices: []Device{{"0", 1000}, {"4", 1000}},
		},
		{
			Key: "290095.0", Tenant: "beta", Project: "default", Lease: "slurm/main/290095",
			Purchase: "on_demand", Over: true,
			Start: time.Unix(1767578000, 0), End: time.Unix(1767580000, 0),
			Labels: map[string]string{"job_name": "eval", "user": "bob"},
		},
		{
			Key: "1618872.0", Tenant: "beta", Project: "default", Lease: "slurm/main/1618872",
			Purchase: "on_demand", Start: time.Unix(1701982989, 0),
			Labels:  map[string]string{"job_name": "old"},
			Devices: []Device{{"7", 1000}},
		},
	}, leases(t, recorded(t, read(t, "jobs.json"))))
}

func TestSlurm_lines(t *testing.T) {
	at := func(text string) time.Time {
		v, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	same(t, []Lease{
		{
			Key: "812.0", Tenant: "acme", Project: "llm", Lease: "slurm/main/812",
			Purchase: "on_demand", Start: at("2026-01-05T02:00:00Z"),
			Labels:  map[string]string{"job_name": "pretrain big", "user": "ada"},
			Devices: []Device{{"2", 1000}, {"3", 1000}},
		},
		{
			Key: "813.0", Tenant: "beta", Project: "default", Lease: "slurm/main/813", Over: true,
			Purchase: "on_demand", Start: at("2026-01-05T01:00:00Z"), End: at("2026-01-05T01:30:00Z"),
			Labels: map[string]string{"job_name": "done", "user": "bob"},
		},
	}, leases(t, recorded(t, read(t, "jobs.txt"))))
}

func TestSlurm_faultsTellNothing(t *testing.T) {
	for _, text := range []string{
		`{"jobs": [`, `{"jobs": [{"job_id": 1, "nodes": "gpu[1-", "job_state": "RUNNING"}, 1]}`,
		"JobId=1 StartTime=yesterday NodeList=gpu14",
		strings.ReplaceAll(read(t, "jobs.json"), "IDX:0,4", "IDX:9-99999999999"),
		strings.ReplaceAll(read(t, "jobs.json"), `"account": "acme", "admin_comment": "suanpan tenant=acme-corp`,
			`"account": "acme", "admin_comment": "suanpan tenant=`),
	} {
		if got, err := recorded(t, text).Leases(t.Context()); err == nil {
			t.Errorf("%.60s: %v", text, got)
		}
	}
}

// TestSlurm_refusesMIG has jobs with MIG devices, whose numbers in Slurm are not those of GPUs: a
// device of an eighth must not be billed as the GPU of that number.
func TestSlurm_refusesMIG(t *testing.T) {
	for _, text := range []string{
		strings.ReplaceAll(read(t, "jobs.json"), "gpu:h100:2(IDX:0,4)", "gpu:h100_1g.10gb:2(IDX:0,4)"),
		strings.ReplaceAll(read(t, "jobs.txt"), "gpu:h100:2(IDX:2-3)",
			"gpu:h100:1(IDX:2),gpu:3g.40gb:1(IDX:9)"),
	} {
		got, err := recorded(t, text).Leases(t.Context())
		if err == nil || !strings.Contains(err.Error(), "suanpan lease") {
			t.Errorf("leases %v, %v", got, err)
		}
	}
}

func TestSlurm_runsTheCommand(t *testing.T) {
	path, err := filepath.Abs(filepath.Join("testdata", "jobs.json"))
	if err != nil {
		t.Fatal(err)
	}
	if got := leases(t, NewSlurm("gpu14", "main", []string{"cat", path})); len(got) != 3 {
		t.Errorf("%d leases", len(got))
	}
	_, err = NewSlurm("gpu14", "main", []string{"ls", "/nowhere"}).Leases(t.Context())
	if err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a command that fails: %v", err)
	}
}

func TestExpandHosts(t *testing.T) {
	got, err := expandHosts("gpu[01-03,7],m5,r2c[9-10]-ib")
	if diff := cmp.Diff([]string{
		"gpu01", "gpu02", "gpu03", "gpu7", "m5", "r2c9", "r2c10", "-ib",
	}, got); diff != "" || err != nil {
		t.Errorf("(-want +got):\n%s%v", diff, err)
	}
}
