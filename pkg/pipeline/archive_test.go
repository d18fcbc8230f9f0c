package pipeline

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func archiveStep(t *testing.T, a *Archiver, now time.Time, wantErr error) ArchiveReport {
	t.Helper()
	report, err := a.Step(t.Context(), now)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("step: %v, want %v", err, wantErr)
	}
	return report
}

func TestArchiver_commitsAfterWriting(t *testing.T) {
	f := newFake()
	f.fetch = [][]Record{
		{usage("acme", 4, noon, 0), usage("blue", 8, noon, 0)}, {usage("acme", 5, noon, 0)},
	}
	a := NewArchiver(f, f)
	if r := archiveStep(t, a, noon, nil); r.Records != 0 {
		t.Errorf("archived %d records at once, they may wait for more", r.Records)
	}
	r := archiveStep(t, a, noon.Add(archiveAge), nil)
	if r.Records != 3 {
		t.Errorf("archived %d records, want 3", r.Records)
	}
	if diff := cmp.Diff([]string{"join", "archive 3", "commit"}, f.did); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[int]int64{0: 6, 1: 9}, f.committed); diff != "" {
		t.Errorf("committed (-want +got):\n%s", diff)
	}
}

func TestArchiver_repeatsAfterAnError(t *testing.T) {
	f := func(failing string, want ...string) {
		t.Helper()
		s := newFake()
		s.fetch = [][]Record{{usage("acme", 0, noon, 0)}}
		a := NewArchiver(s, s)
		archiveStep(t, a, noon, nil)
		s.fails[failing] = errFake
		archiveStep(t, a, noon.Add(time.Minute), errFake)
		if len(s.committed) > 0 {
			t.Errorf("%s failed, but %v was committed", failing, s.committed)
		}
		delete(s.fails, failing)
		archiveStep(t, a, noon.Add(2*time.Minute), nil)
		if diff := cmp.Diff(want, s.did); diff != "" {
			t.Errorf("%s failed once: requests (-want +got):\n%s", failing, diff)
		}
		if got := s.committed[0]; got != 1 {
			t.Errorf("%s failed once: committed %d, want 1", failing, got)
		}
	}
	f("archive 1", "join", "archive 1", "commit")
	f("commit", "join", "archive 1", "archive 1", "commit")
	f("fetch", "join", "archive 1", "commit")
}

func TestArchiver_dropsWhatItHoldsWithItsGeneration(t *testing.T) {
	f := newFake()
	f.fetch = [][]Record{{usage("acme", 0, noon, 0)}}
	a := NewArchiver(f, f)
	archiveStep(t, a, noon, nil)
	f.fails["fetch"] = fmt.Errorf("fetch: %w", ErrGenerationEnded)
	archiveStep(t, a, noon.Add(time.Minute), nil)
	delete(f.fails, "fetch")
	archiveStep(t, a, noon.Add(2*time.Minute), nil)
	if len(f.archived) > 0 || f.generation != 2 {
		t.Errorf("archived %d records in generation %d, want none in 2: they are another's",
			len(f.archived), f.generation)
	}
}

func TestArchiver_writesWhenItHoldsMuch(t *testing.T) {
	f := newFake()
	big := usage("acme", 0, noon, 0)
	big.Value = make([]byte, archiveBytes)
	f.fetch = [][]Record{{big}, {usage("acme", 1, noon, 0)}}
	f.fails["archive 1"] = errFake
	a := NewArchiver(f, f)
	for range 3 {
		archiveStep(t, a, noon, errFake)
	}
	if len(f.fetch) != 1 {
		t.Errorf("read on while too much was held already")
	}
	delete(f.fails, "archive 1")
	if r := archiveStep(t, a, noon, nil); r.Bytes < archiveBytes {
		t.Errorf("archived %d bytes, want at least %d", r.Bytes, archiveBytes)
	}
}
