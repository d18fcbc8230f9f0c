package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// fuzz runs every fuzz target of the repository, one after another, for FUZZTIME each (default:
// 10s): go test takes one target at a time.
func fuzz(ctx context.Context, out io.Writer) result {
	duration := os.Getenv("FUZZTIME")
	if duration == "" {
		duration = "10s"
	}
	list, err := output(ctx, "go", "list", "-f",
		"{{.ImportPath}} {{.Dir}} {{join .TestGoFiles \" \"}} {{join .XTestGoFiles \" \"}}", "./...")
	if err != nil {
		_, _ = fmt.Fprintf(out, "list packages: %v\n", err)
		return result{failed: 1}
	}
	var r result
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		names, err := fuzzTargets(fields[1], fields[2:])
		if err != nil {
			_, _ = fmt.Fprintf(out, "find fuzz targets: %v\n", err)
			r.failed++
		}
		for _, name := range names {
			one := check(ctx, out, "go", "test", "-run", "^$", "-fuzz", "^"+name+"$",
				"-fuzztime", duration, fields[0])
			r.passed += one.passed
			r.failed += one.failed
		}
	}
	return r
}

// fuzzTarget is how a fuzz target begins.
var fuzzTarget = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// fuzzTargets lists the fuzz targets in the named files of a folder.
func fuzzTargets(dir string, files []string) ([]string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	defer func() { _ = root.Close() }()
	var names []string
	for _, file := range files {
		text, err := root.ReadFile(file)
		if err != nil {
			return names, fmt.Errorf("read test: %w", err)
		}
		for _, found := range fuzzTarget.FindAllSubmatch(text, -1) {
			names = append(names, string(found[1]))
		}
	}
	return names, nil
}
