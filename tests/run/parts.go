package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// golangciLint is the version that every machine lints with.
	golangciLint = "v2.15.0"
	// testTimeout is how long the tests of one package may take before they are killed.
	testTimeout = "15m"
	// e2eTag is the build tag of the tests that start the built programs.
	e2eTag = "e2e"
)

// extras are parts that run only when they are named.
func extras() []part {
	return []part{
		{"fmt", "format all files", format},
		{"fuzz", "every fuzz target for FUZZTIME", fuzz},
	}
}

// parts lists what there is to do, the quick and telling things first.
func parts() []part {
	return []part{
		{"setup", "fetch libchdb, the ClickHouse engine, and a font, if they are not there", setup},
		{"fmt-check", "are all files formatted?", formatted},
		{"vet", "go vet, with every build tag", vet},
		{"lint", "golangci-lint " + golangciLint, lint},
		{"unit", "unit tests, laws, fuzz seeds, arch, deployment files, scenarios", unit},
		{"sim", "seeded simulations with an independent auditor", folder("tests/sim")},
		{"e2e", "the built programs, a real Kafka and a real ClickHouse", folder("tests/e2e")},
	}
}

// setup fetches what the tests need and registries have. Without it they say what they miss.
func setup(ctx context.Context, out io.Writer) result {
	var all result
	for _, what := range []string{"libchdb", "font"} {
		script := "deployments/setup/" + what + ".sh"
		if r := check(ctx, out, script); r.failed > 0 {
			all.skipped = append(all.skipped, skip{what, script + " failed, see above"})
		} else {
			all.passed += r.passed
		}
	}
	return all
}

// formatted checks the formats: those of the linter where it is there, else gofmt's.
func formatted(ctx context.Context, out io.Writer) result {
	if bin, err := linter(ctx, out); err == nil {
		return check(ctx, out, bin, "fmt", "--diff")
	}
	names, err := output(ctx, "gofmt", "-l", ".")
	if err != nil || names != "" {
		_, _ = fmt.Fprintf(out, "not formatted (make fmt): %s %v\n", names, err)
		return result{failed: 1}
	}
	return result{passed: 1}
}

// format formats all files.
func format(ctx context.Context, out io.Writer) result {
	if bin, err := linter(ctx, out); err == nil {
		return check(ctx, out, bin, "fmt")
	}
	return check(ctx, out, "gofmt", "-w", ".")
}

// vet runs go vet over everything.
func vet(ctx context.Context, out io.Writer) result {
	return check(ctx, out, "go", "vet", "-tags", e2eTag, "./...")
}

// lint runs golangci-lint, or says why it cannot.
func lint(ctx context.Context, out io.Writer) result {
	bin, err := linter(ctx, out)
	if err != nil {
		return result{skipped: []skip{{"golangci-lint", err.Error()}}}
	}
	return check(ctx, out, bin, "run", "--allow-parallel-runners", "--timeout", "15m", "./...")
}

// linter returns the pinned golangci-lint from the user's cache, where it installs it first if it
// is not there.
func linter(ctx context.Context, out io.Writer) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		if cache, err = filepath.Abs(".cache"); err != nil {
			return "", fmt.Errorf("find a cache folder: %w", err)
		}
	}
	dir := filepath.Join(cache, "suanpan", "bin")
	bin := filepath.Join(dir, "golangci-lint-"+golangciLint)
	if _, err := os.Stat(bin); err == nil {
		return bin, nil
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", fmt.Errorf("install golangci-lint: %w", err)
	}
	_, _ = fmt.Fprintf(out, "installing golangci-lint %s (minutes, once) ...\n", golangciLint)
	fresh, err := os.MkdirTemp(dir, "install-")
	if err != nil {
		return "", fmt.Errorf("install golangci-lint: %w", err)
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	install := exec.CommandContext(ctx, "go", "install",
		"github.com/golangci/golangci-lint/v2/cmd/golangci-lint@"+golangciLint)
	install.Env = append(os.Environ(), "GOBIN="+fresh, "GOFLAGS=")
	if text, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("install golangci-lint: %w: %s", err, lastLine(string(text)))
	}
	// Renamed when whole, so that a killed install leaves nothing that looks like one.
	if err := os.Rename(filepath.Join(fresh, "golangci-lint"), bin); err != nil {
		return "", fmt.Errorf("install golangci-lint: %w", err)
	}
	return bin, nil
}

// unit runs the tests of all packages but those that have parts of their own. A package that does
// not build is a failure, and no reason to leave out the others.
func unit(ctx context.Context, out io.Writer) result {
	list, err := output(ctx, "go", "list", "-e", "./...")
	if err != nil {
		_, _ = fmt.Fprintf(out, "list packages: %v\n", err)
		return result{failed: 1}
	}
	var packages []string
	for _, name := range strings.Fields(list) {
		if within := "/" + short(name) + "/"; !strings.HasPrefix(within, "/tests/sim/") &&
			!strings.HasPrefix(within, "/tests/e2e/") {
			packages = append(packages, name)
		}
	}
	return goTest(ctx, out, packages...)
}

// folder returns the run of a part that is the tests of one folder.
func folder(dir string) func(context.Context, io.Writer) result {
	return func(ctx context.Context, out io.Writer) result {
		if _, err := os.Stat(dir); err != nil {
			return result{skipped: []skip{{dir, "there are no such tests yet"}}}
		}
		return goTest(ctx, out, "-tags", e2eTag, "./"+dir+"/...")
	}
}

// goTest runs go test with the arguments and counts what it says.
func goTest(ctx context.Context, out io.Writer, args ...string) result {
	began := time.Now()
	args = append([]string{"test", "-json", "-timeout", testTimeout}, args...)
	cmd := exec.CommandContext(ctx, "go", args...)
	interruptible(cmd)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		_, _ = fmt.Fprintf(out, "start go test: %v\n", err)
		return result{failed: 1}
	}
	r, err := readTests(pipe, out)
	err = errors.Join(err, cmd.Wait())
	_, _ = out.Write(stderr.Bytes())
	if err != nil && r.failed == 0 {
		_, _ = fmt.Fprintf(out, "go test: %v after %s\n", err, time.Since(began))
		r.failed++
	}
	return r
}

// check runs a program that is one check: it passes if the exit code is 0.
func check(ctx context.Context, out io.Writer, name string, args ...string) result {
	cmd := exec.CommandContext(ctx, name, args...)
	interruptible(cmd)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		_, _ = fmt.Fprintf(out, "%s %s: %v\n", filepath.Base(name), strings.Join(args, " "), err)
		return result{failed: 1}
	}
	return result{passed: 1}
}

// interruptible lets a program end its children when the context ends, before it is killed.
func interruptible(cmd *exec.Cmd) {
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 15 * time.Second
}

// output returns what a program prints, without space around it.
func output(ctx context.Context, name string, args ...string) (string, error) {
	text, err := exec.CommandContext(ctx, name, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, lastLine(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(text)), err
}

// lastLine returns the last line of a text, where programs say why they gave up.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
