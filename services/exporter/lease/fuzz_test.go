package lease

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// check fails where a source told a lease that an event could not carry.
func check(t *testing.T, leases []Lease) {
	t.Helper()
	for _, l := range leases {
		if l.Key == "" || l.complete() != nil {
			t.Fatalf("lease %+v: %v", l, l.complete())
		}
		for _, d := range l.Devices {
			if d.Name == "" || d.Milli < 1 || d.Milli > whole {
				t.Fatalf("device %+v of lease %q", d, l.Lease)
			}
		}
	}
}

// FuzzSlurm reads any answer of Slurm.
func FuzzSlurm(f *testing.F) {
	for _, name := range []string{"jobs.json", "jobs.txt"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		for line := range bytes.Lines(data) {
			f.Add(line)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &Slurm{"gpu14", "main", time.UTC, func(context.Context) ([]byte, error) {
			return data, nil
		}}
		leases, err := s.Leases(t.Context())
		if err == nil {
			check(t, leases)
		}
	})
}

// FuzzFile reads any file of leases.
func FuzzFile(f *testing.F) {
	f.Add([]byte(leaseFile))
	f.Add([]byte("leases: []"))
	f.Fuzz(func(t *testing.T, data []byte) {
		leases, err := parseFile(data)
		if err == nil {
			check(t, leases)
		}
	})
}
