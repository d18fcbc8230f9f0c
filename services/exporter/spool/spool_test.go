package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// tester is a test, or a run of a law.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// now is the clock of all tests.
var now = time.Date(2026, 1, 5, 2, 0, 0, 0, time.UTC)

func open(t tester, dir string, most int64) *Spool {
	t.Helper()
	s, err := Open(Config{
		Dir: dir, MaxBytes: most, SegmentBytes: 200, Now: func() time.Time { return now },
		noSync: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func record(i int) Record {
	return Record{Key: []byte("k"), Value: fmt.Appendf(nil, "value %04d", i)}
}

// drain sends everything, at most step records at a time, and returns the values.
func drain(t tester, s *Spool, step int) []string {
	t.Helper()
	var values []string
	for {
		records, err := s.Peek(step, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if len(records) == 0 {
			return values
		}
		for _, r := range records {
			values = append(values, string(r.Value))
		}
		if err := s.Ack(len(records)); err != nil {
			t.Fatal(err)
		}
	}
}

// texts are the values of records from..until.
func texts(from, until int) []string {
	var all []string
	for i := from; i < until; i++ {
		all = append(all, string(record(i).Value))
	}
	return all
}

func put(t tester, s *Spool, from, until int) {
	t.Helper()
	for i := from; i < until; i++ {
		if err := s.Append(record(i)); err != nil {
			t.Fatal(err)
		}
	}
}

func same(t tester, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("records (-want +got):\n%s", diff)
	}
}

func TestSpool_keepsOrderAndFields(t *testing.T) {
	s := open(t, t.TempDir(), 0)
	defer s.Close()
	want := []Record{
		{Key: []byte("a"), Value: []byte("1"), NotBefore: now.Add(time.Hour)},
		{Key: []byte{}, Value: []byte{}},
		{Key: []byte("b"), Value: make([]byte, MaxRecordBytes-1)},
	}
	if err := s.Append(want...); err != nil {
		t.Fatal(err)
	}
	got, err := s.Peek(10, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	equal := cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })
	if diff := cmp.Diff(want, got, equal); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if w := got[0].Wait(now); w != time.Hour {
		t.Errorf("the first waits %s", w)
	}
	if w := got[1].Wait(now); w != 0 {
		t.Errorf("the second waits %s", w)
	}
	if stats := s.Stats(); stats.Records != 3 || !stats.Oldest.Equal(now) {
		t.Errorf("stats %+v", stats)
	}
	if err := s.Append(Record{Value: make([]byte, MaxRecordBytes+1)}); err == nil {
		t.Error("a record that is too large was taken")
	}
}

func TestSpool_survivesKill(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 0)
	put(t, s, 0, 20)
	if _, err := s.Peek(7, 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := s.Ack(3); err != nil {
		t.Fatal(err)
	}
	kill(s)
	s = open(t, dir, 0)
	put(t, s, 20, 25)
	same(t, texts(3, 25), drain(t, s, 4))
	kill(s)
	s = open(t, dir, 0)
	same(t, nil, drain(t, s, 4))
	put(t, s, 25, 27)
	same(t, texts(25, 27), drain(t, s, 4))
	if stats := s.Stats(); stats.Lost != 0 || stats.Torn != 0 || stats.Records != 0 {
		t.Errorf("stats %+v", stats)
	}
}

// kill ends a spool as kill -9 does: the kernel closes its files, and nothing else happens.
func kill(s *Spool) {
	s.read.close()
	for _, f := range []*os.File{s.active, s.cursor, s.lock} {
		if f != nil {
			_ = f.Close()
		}
	}
}

func TestSpool_lostCursorRepeats(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 0)
	put(t, s, 0, 3)
	same(t, texts(0, 3), drain(t, s, 1))
	kill(s)
	if err := os.WriteFile(filepath.Join(dir, "sent"), []byte("garbage, garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, 0)
	defer s.Close()
	same(t, texts(0, 3), drain(t, s, 2))
}

// TestSpool_tornAnywhere cuts the last file at every byte, as a crash may while a record is
// written: all records before it are there, and new ones follow them.
func TestSpool_tornAnywhere(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 0)
	put(t, s, 0, 3)
	kill(s)
	name := segments(t, dir)[0]
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	each := len(whole) / 3
	for cut := range whole {
		if err := os.WriteFile(name, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(filepath.Join(dir, "sent"))
		s := open(t, dir, 0)
		put(t, s, 10, 12)
		same(t, append(texts(0, cut/each), texts(10, 12)...), drain(t, s, 2))
		if stats := s.Stats(); stats.Lost != 0 {
			t.Errorf("cut at %d: %+v", cut, stats)
		}
		kill(s)
		for _, other := range segments(t, dir) {
			if err := os.Remove(other); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func segments(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil || len(names) == 0 {
		t.Fatalf("no files: %v", err)
	}
	return names
}

// TestSpool_damageIsCounted flips each byte of a record in the middle: it alone is lost, and that
// is counted.
func TestSpool_damageIsCounted(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 0)
	put(t, s, 0, 3)
	kill(s)
	name := segments(t, dir)[0]
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	each := len(whole) / 3
	for i := each; i < 2*each; i++ {
		bad := append([]byte{}, whole...)
		bad[i] ^= 0x41
		if err := os.WriteFile(name, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(filepath.Join(dir, "sent"))
		s := open(t, dir, 0)
		same(t, []string{string(record(0).Value), string(record(2).Value)}, drain(t, s, 10))
		if stats := s.Stats(); stats.Lost != 1 || stats.Torn != int64(each) {
			t.Errorf("byte %d: %+v", i, stats)
		}
		kill(s)
	}
}

func TestSpool_fullTakesNoMoreAndKeepsAll(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 1000)
	defer s.Close()
	taken := 0
	for ; taken < 1000; taken++ {
		if err := s.Append(record(taken)); err != nil {
			if !errors.Is(err, ErrFull) {
				t.Fatal(err)
			}
			break
		}
	}
	if stats := s.Stats(); taken < 10 || stats.Full != 1 || stats.Bytes > 1000 {
		t.Fatalf("took %d: %+v", taken, stats)
	}
	same(t, texts(0, taken), drain(t, s, 3))
	if err := s.Append(record(taken)); err != nil {
		t.Errorf("emptied, and still %v", err)
	}
	same(t, texts(taken, taken+1), drain(t, s, 3))
}

func TestSpool_isLocked(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 0)
	if _, err := Open(Config{Dir: dir}); !errors.Is(err, ErrLocked) {
		t.Errorf("a second spool in the folder: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir, 0).Close()
}

// TestSpool_writeFails lets writing fail: nothing that was taken before is lost, and it goes on.
func TestSpool_writeFails(t *testing.T) {
	s := open(t, t.TempDir(), 0)
	defer s.Close()
	put(t, s, 0, 2)
	_ = s.active.Close() // all writes fail
	if err := s.Append(record(2)); err == nil || !strings.Contains(err.Error(), "append to spool") {
		t.Errorf("append: %v", err)
	}
	put(t, s, 2, 4)
	same(t, texts(0, 4), drain(t, s, 10))
}

// Property: whatever is appended, sent and killed in between, what comes out is what went in, in
// order, where what was sent but not noted comes again.
func TestSpool_law(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "spool-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		s := open(t, dir, 3000)
		defer func() { kill(s) }()
		var waiting []string
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				n := rapid.IntRange(1, 5).Draw(t, "n")
				var batch []Record
				for i := range n {
					batch = append(batch, record(next+i))
				}
				switch err := s.Append(batch...); {
				case err == nil:
					waiting = append(waiting, texts(next, next+n)...)
					next += n
				case !errors.Is(err, ErrFull):
					t.Fatal(err)
				}
			},
			"send": func(t *rapid.T) {
				records, err := s.Peek(rapid.IntRange(1, 6).Draw(t, "most"),
					rapid.IntRange(1, 50).Draw(t, "bytes"))
				if err != nil {
					t.Fatal(err)
				}
				if len(records) == 0 && len(waiting) > 0 {
					t.Fatalf("nothing of %d", len(waiting))
				}
				var got []string
				for _, r := range records {
					got = append(got, string(r.Value))
				}
				if len(records) > 0 {
					same(t, waiting[:len(records)], got)
				}
				n := rapid.IntRange(0, len(records)).Draw(t, "acknowledged")
				if err := s.Ack(n); err != nil {
					t.Fatal(err)
				}
				waiting = waiting[n:]
			},
			"kill": func(t *rapid.T) {
				kill(s)
				s = open(t, dir, 3000)
			},
			"": func(t *rapid.T) {
				if stats := s.Stats(); stats.Records != int64(len(waiting)) || stats.Lost != 0 ||
					stats.Torn != 0 || stats.Bytes > 3000 {
					t.Fatalf("%+v with %d waiting", stats, len(waiting))
				}
			},
		})
	})
}
