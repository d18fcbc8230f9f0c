package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sampleTests are the files of a module with every kind of verdict.
var sampleTests = map[string]string{
	"go.mod": "module example.com/a/sample\n\ngo 1.26\n",
	"good/a_test.go": `package good
import "testing"
func TestGood(t *testing.T) {}
func TestGroup(t *testing.T) {
	t.Run("one", func(t *testing.T) {})
	t.Run("two", func(t *testing.T) { t.Skip("needs Java 17: install it") })
}
func TestBare(t *testing.T) { t.SkipNow() }
func TestGPU(t *testing.T) { t.Skip("optional: no GPU here") }
func FuzzIt(f *testing.F) { f.Add(1); f.Fuzz(func(*testing.T, int) {}) }
`,
	"bad/a_test.go": `package bad
import "testing"
func TestBad(t *testing.T) { t.Error("two and two is five") }
func TestGroup(t *testing.T) {
	t.Run("fine", func(t *testing.T) {})
	t.Error("after its subtests")
}
func TestNested(t *testing.T) { t.Run("x", func(t *testing.T) { t.Error("deep") }) }
`,
	"slow/a_test.go": `package slow
import "testing"
func TestHangs(t *testing.T) { t.Log("about to hang"); select {} }
`,
	"broken/a_test.go": "package broken\n\nvar x undefinedType\n",
	"exits/a_test.go": `package exits
import ("os"; "testing")
func TestMain(*testing.M) { println("giving up"); os.Exit(3) }
`,
}

// runSample runs the real go test on packages of the sample and returns what is read of it.
func runSample(t *testing.T, packages ...string) (result, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range sampleTests {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := append([]string{"test", "-json", "-timeout", "2s"}, packages...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	text, err := cmd.Output()
	if len(text) == 0 {
		t.Fatalf("go test said nothing: %v", err)
	}
	var out strings.Builder
	r, err := readTests(strings.NewReader(string(text)), &out)
	if err != nil {
		t.Fatal(err)
	}
	return r, out.String()
}

func TestReadTests_countsAndReasons(t *testing.T) {
	r, out := runSample(t, "./good")
	want := []skip{
		{"good TestBare", "no reason given"},
		{"good TestGPU", "optional: no GPU here"},
		{"good TestGroup/two", "needs Java 17: install it"},
	}
	if r.passed != 3 || r.failed != 0 { // TestGood, TestGroup/one, FuzzIt/seed#0
		t.Errorf("%d passed and %d failed, want 3 and 0\n%s", r.passed, r.failed, out)
	}
	if diff := cmp.Diff(want, r.skipped, cmp.AllowUnexported(skip{})); diff != "" {
		t.Errorf("skips (-want +got):\n%s", diff)
	}
	if !strings.Contains(out, "ok   good ") {
		t.Errorf("the package is not shown:\n%s", out)
	}
}

func TestReadTests_failures(t *testing.T) {
	f := func(pkg string, passed, failed int, said ...string) {
		t.Helper()
		r, out := runSample(t, "./"+pkg)
		if r.passed != passed || r.failed != failed {
			t.Errorf("%s: %d passed and %d failed, want %d and %d\n%s",
				pkg, r.passed, r.failed, passed, failed, out)
		}
		for _, want := range append(said, "FAIL "+pkg+" ") {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is not shown:\n%s", pkg, want, out)
			}
		}
	}
	f("bad", 1, 3, "FAIL bad TestBad\n", "two and two is five", "after its subtests", "deep")
	f("slow", 0, 1, "test timed out", "about to hang")
	f("broken", 0, 1, "undefined: undefinedType")
	f("exits", 0, 1, "giving up")
}

func TestReadTests_printsWhatIsNoJSON(t *testing.T) {
	var out strings.Builder
	r, err := readTests(strings.NewReader("go: downloading x\n{}\n"), &out)
	if err != nil || r.passed+r.failed+len(r.skipped) != 0 {
		t.Errorf("got %+v and %v", r, err)
	}
	if out.String() != "go: downloading x\n{}\n" {
		t.Errorf("printed %q", out.String())
	}
}

func TestSummarize(t *testing.T) {
	skips := []skip{{"a TestX", "needs Maven"}, {"a TestY", "optional: no GPU"}}
	f := func(outcomes []outcome, all, well bool, want ...string) {
		t.Helper()
		var out strings.Builder
		if got := summarize(&out, outcomes, all, time.Second); got != well {
			t.Errorf("all is well: %t, want %t\n%s", got, well, out.String())
		}
		lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
		if last := lines[len(lines)-1]; last != want[0] {
			t.Errorf("the last line is %q, want %q", last, want[0])
		}
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%q is not in:\n%s", w, out.String())
			}
		}
	}
	good := outcome{result{passed: 7}, "vet", time.Second}
	some := outcome{result{passed: 2, skipped: skips}, "unit", time.Second}
	bad := outcome{result{passed: 1, failed: 2}, "sim", time.Second}
	f([]outcome{good}, true, true, "7 passed, 0 failed, 0 skipped")
	f([]outcome{good, some}, false, true, "9 passed, 0 failed, 2 skipped",
		"SKIPPED unit a TestX: needs Maven\n", "SKIPPED unit a TestY: optional: no GPU\n")
	f([]outcome{good, some}, true, false, "9 passed, 1 failed, 1 skipped",
		"needs Maven (a failure: SUANPAN_TEST_ALL is set)\n", "optional: no GPU\n")
	f([]outcome{good, bad}, false, false, "8 passed, 2 failed, 0 skipped")
	f(nil, false, false, "0 passed, 1 failed, 0 skipped", "nothing ran")
	f([]outcome{{result{skipped: skips}, "e2e", 0}}, false, false, "0 passed, 1 failed, 2 skipped")
}

func TestChoose(t *testing.T) {
	all := parts()
	f := func(names, want string) {
		t.Helper()
		chosen, err := choose(all, extras(), strings.Fields(names))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range chosen {
			got = append(got, p.name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q chose %q, want %q", names, got, want)
		}
	}
	f("", "setup fmt-check vet lint unit sim e2e")
	f("unit vet", "vet unit")
	f("fuzz", "fuzz")
	if _, err := choose(all, extras(), []string{"unti"}); err == nil ||
		!strings.Contains(err.Error(), `no part "unti": there are setup, fmt-check, vet`) {
		t.Errorf("a part that is not there: %v", err)
	}
}

func TestFolder_missingTestsAreSkipped(t *testing.T) {
	r := folder("tests/nowhere")(t.Context(), io.Discard)
	want := []skip{{"tests/nowhere", "there are no such tests yet"}}
	if diff := cmp.Diff(want, r.skipped, cmp.AllowUnexported(skip{})); diff != "" || r.passed > 0 {
		t.Errorf("got %+v (-want +got):\n%s", r, diff)
	}
}

func TestCheck_exitCodeDecides(t *testing.T) {
	if r := check(t.Context(), io.Discard, "go", "version"); r.passed != 1 || r.failed != 0 {
		t.Errorf("a program that succeeds: %+v", r)
	}
	if r := check(t.Context(), io.Discard, "go", "nonsense"); r.passed != 0 || r.failed != 1 {
		t.Errorf("a program that fails: %+v", r)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if r := check(ended, io.Discard, "go", "version"); r.failed != 1 {
		t.Errorf("after an interrupt: %+v", r)
	}
}

func TestFuzzTargets(t *testing.T) {
	dir := t.TempDir()
	text := "package p\n\nfunc FuzzA(f *testing.F) {\n}\n\nfunc FuzzB(fuzz *testing.F) {}\n" +
		"// func FuzzC(f *testing.F)\nfunc FuzzyD(t *testing.T) {}\n" +
		"var text = `\nfunc FuzzE(f *testing.F) {}\n`\n"
	if err := os.WriteFile(filepath.Join(dir, "a_test.go"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := fuzzTargets(dir, []string{"a_test.go"})
	if diff := cmp.Diff([]string{"FuzzA", "FuzzB"}, got); diff != "" || err != nil {
		t.Errorf("error %v, targets (-want +got):\n%s", err, diff)
	}
	if _, err := fuzzTargets(dir, []string{"b_test.go"}); err == nil {
		t.Error("a missing file was passed over")
	}
}
