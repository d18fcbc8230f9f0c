// Command run is what `make test` calls: it checks formats, vets, lints and runs all tests, part by
// part, and ends with a table of what ran, what could not and why. Parts' names come in as
// arguments (none: all); the exit code says whether all that ran is well. It never passes over
// anything in silence: a skipped test or a missing part is printed, and is a failure when
// SUANPAN_TEST_ALL is set. It changes nothing in the repository.
//
// The last line always has the form "N passed, N failed, N skipped". It counts tests (those without
// subtests) and, as one each, the checks that are no Go tests and the packages that do not build.
//
// A test that skips with a reason that begins with "optional:" is printed and counted, but never a
// failure: it needs what not every machine can have.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// everything is the environment variable that turns whatever could not run into a failure.
const everything = "SUANPAN_TEST_ALL"

// part is one thing that `make test` does.
type part struct {
	name, about string
	run         func(ctx context.Context, out io.Writer) result
}

// result is what came of a part.
type result struct {
	passed, failed int
	skipped        []skip
}

// skip is something that could not run.
type skip struct {
	what, reason string
}

// optional reports whether the skip is none that can be demanded.
func (s skip) optional() bool { return strings.HasPrefix(s.reason, "optional:") }

// outcome is a part's result with its name and duration.
type outcome struct {
	result
	name string
	took time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	chosen, err := choose(parts(), extras(), os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	began := time.Now()
	var outcomes []outcome
	for _, p := range chosen {
		fmt.Printf("==> %s: %s\n", p.name, p.about)
		start := time.Now()
		r := p.run(ctx, os.Stdout)
		if ctx.Err() != nil {
			r.failed++
			fmt.Printf("%s: interrupted\n", p.name)
		}
		outcomes = append(outcomes, outcome{r, p.name, time.Since(start)})
	}
	all := os.Getenv(everything) != ""
	if !summarize(os.Stdout, outcomes, all, time.Since(began)) {
		os.Exit(1)
	}
}

// choose returns the parts and extras of the given names, in their own order; without names, all
// parts.
func choose(parts, extras []part, names []string) ([]part, error) {
	if len(names) == 0 {
		return parts, nil
	}
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	var chosen []part
	var known []string
	for _, p := range append(parts, extras...) {
		known = append(known, p.name)
		if wanted[p.name] {
			chosen = append(chosen, p)
			delete(wanted, p.name)
		}
	}
	for name := range wanted {
		return nil, fmt.Errorf("no part %q: there are %s", name, strings.Join(known, ", "))
	}
	return chosen, nil
}
