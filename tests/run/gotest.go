package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"sort"
	"strings"
)

// event is a line of `go test -json`, see `go doc test2json` and `go help buildjson`.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64 // s
	FailedBuild                               string
}

// testKey names a test within a package.
type testKey struct{ pkg, test string }

// tests collects what `go test -json` says.
type tests struct {
	out      io.Writer
	verdicts map[testKey]string // pass, fail or skip
	output   map[testKey]*bytes.Buffer
	build    map[string]*bytes.Buffer // by import path
	broken   []string                 // packages that failed without a failing test
}

// readTests reads the output of `go test -json`, prints failures as they come and a line a package,
// and returns the counts. Lines that are no JSON are printed as they are.
func readTests(in io.Reader, out io.Writer) (result, error) {
	t := &tests{
		out:      out,
		verdicts: map[testKey]string{},
		output:   map[testKey]*bytes.Buffer{},
		build:    map[string]*bytes.Buffer{},
	}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				_, _ = out.Write(line)
			} else {
				t.add(e)
			}
		}
		if err == io.EOF {
			return t.result(), nil
		}
		if err != nil {
			return result{}, fmt.Errorf("read test output: %w", err)
		}
	}
}

// add takes one event.
func (t *tests) add(e event) {
	key := testKey{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		write(t.build, e.ImportPath, e.Output)
	case "output":
		write(t.output, key, e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			t.endPackage(e)
			return
		}
		t.verdicts[key] = e.Action
		if e.Action == "fail" {
			_, _ = fmt.Fprintf(t.out, "FAIL %s %s\n%s", short(e.Package), e.Test, t.output[key])
		}
		if e.Action != "skip" { // a skip's reason is in its output
			delete(t.output, key)
		}
	}
}

// endPackage prints the verdict on a package.
func (t *tests) endPackage(e event) {
	switch e.Action {
	case "pass":
		_, _ = fmt.Fprintf(t.out, "ok   %s %.1fs\n", short(e.Package), e.Elapsed)
	case "fail":
		_, _ = fmt.Fprintf(t.out, "FAIL %s %.1fs\n", short(e.Package), e.Elapsed)
		if e.FailedBuild != "" && t.build[e.FailedBuild] != nil {
			_, _ = t.out.Write(t.build[e.FailedBuild].Bytes())
			delete(t.build, e.FailedBuild)
		}
		if !t.failedIn(e.Package) {
			t.printUnfinished(e.Package)
			t.broken = append(t.broken, e.Package)
		}
	}
	delete(t.output, testKey{e.Package, ""})
}

// printUnfinished prints what a package said itself, and its tests that came to no verdict: those
// that ran when it crashed or was killed for its time.
func (t *tests) printUnfinished(pkg string) {
	for key, text := range t.output {
		if key.pkg == pkg && t.verdicts[key] == "" {
			_, _ = t.out.Write(text.Bytes())
		}
	}
}

// failedIn reports whether a test of the package has failed.
func (t *tests) failedIn(pkg string) bool {
	for key, verdict := range t.verdicts {
		if key.pkg == pkg && verdict == "fail" {
			return true
		}
	}
	return false
}

// result counts the tests that have no subtests. One that failed though its subtests did not
// counts too.
func (t *tests) result() result {
	children := map[testKey][]string{} // parent -> verdicts of the subtests
	for key, verdict := range t.verdicts {
		for i, r := range key.test {
			if r == '/' {
				parent := testKey{key.pkg, key.test[:i]}
				children[parent] = append(children[parent], verdict)
			}
		}
	}
	r := result{failed: len(t.broken)}
	for key, verdict := range t.verdicts {
		below := strings.Join(children[key], " ")
		switch {
		case verdict == "fail" && !strings.Contains(below, "fail"):
			r.failed++
		case below != "":
		case verdict == "pass":
			r.passed++
		case verdict == "skip":
			r.skipped = append(r.skipped,
				skip{short(key.pkg) + " " + key.test, reason(t.output[key])})
		}
	}
	sort.Slice(r.skipped, func(i, j int) bool { return r.skipped[i].what < r.skipped[j].what })
	return r
}

// reason returns what a test said when it skipped: its output without the frame of `go test`.
func reason(output *bytes.Buffer) string {
	var said []string
	if output != nil {
		for line := range strings.Lines(output.String()) {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
				continue
			}
			if _, after, ok := strings.Cut(line, ".go:"); ok { // "file_test.go:12: reason"
				if _, text, ok := strings.Cut(after, ": "); ok {
					line = text
				}
			}
			said = append(said, line)
		}
	}
	if len(said) == 0 {
		return "no reason given"
	}
	return strings.Join(said, "; ")
}

// write appends text to the buffer of a key.
func write[K comparable](buffers map[K]*bytes.Buffer, key K, text string) {
	if buffers[key] == nil {
		buffers[key] = &bytes.Buffer{}
	}
	buffers[key].WriteString(text)
}

// short returns a package's path within the module.
func short(pkg string) string {
	if elements := strings.SplitN(pkg, "/", 4); len(elements) == 4 {
		return path.Join(elements[3])
	}
	return pkg
}
