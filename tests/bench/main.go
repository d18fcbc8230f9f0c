// Command bench measures how fast Suanpan is, and against what: every stage alone, the whole path
// from Kafka to hour rows and archive in ClickHouse, the two limits that the path cannot pass
// (reading the log, writing the rows), and ClickHouse alone on the same events; how long it is from
// an event that crosses a budget to its webhook; and what the exporter takes of a node that is full
// of MIG devices, on a fake driver, which needs a C compiler. All of it is one run on one machine,
// so that the ratios mean something; figures of different machines do not. It also checks that the
// path billed what rating offline bills: a fast wrong answer is worth nothing.
//
// It uses the built command's processes with their embedded Kafka and ClickHouse, and removes all
// that it made. It is not a test: nothing fails for being slow.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // the time zones of catalogs
)

// options are the flags.
type options struct {
	trace    string
	days     int
	limit    int64
	json     bool
	profiles string
	only     string
	dir      string
}

// bench is one run: where its files are, and what it measured so far.
type bench struct {
	options
	root   string // of the repository
	dir    string // for everything that the run makes
	binary string // the command
	events string // file of JSON lines: market prices, then windows
	report report
	ended  struct{ cpu, peak float64 } // seconds and MiB of the command that ended last
}

func main() {
	var o options
	flag.StringVar(&o.trace, "trace", os.Getenv("TRACE"),
		"pod list of the Alibaba GPU trace of 2023 (default: $TRACE, else a generated fleet)")
	flag.IntVar(&o.days, "days", 30, "days of the generated fleet")
	flag.Int64Var(&o.limit, "windows", 0, "end after so many windows; 0: after all")
	flag.BoolVar(&o.json, "json", false, "print JSON")
	flag.StringVar(&o.profiles, "profiles", "", "folder for pprof profiles (slows it down a little)")
	flag.StringVar(&o.only, "only", "path,limits,alone,close,budgets,node,alert-latency",
		"parts to run besides rating in this process; node and alert-latency run without that")
	flag.StringVar(&o.dir, "dir", "", "folder for the files, several GB (default: the system's)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	b := &bench{options: o}
	if b.root, err = repository(ctx); err != nil {
		return err
	}
	if b.profiles != "" {
		if err := os.MkdirAll(b.profiles, 0o750); err != nil {
			return fmt.Errorf("make folder of profiles: %w", err)
		}
	}
	if b.dir, err = os.MkdirTemp(o.dir, "suanpan-bench-*"); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	if b.wants("node") {
		if err := b.node(ctx); err != nil {
			return fmt.Errorf("node: %w", err)
		}
	}
	if b.wants("alert-latency") {
		if err := b.alertLatency(ctx); err != nil {
			return fmt.Errorf("alert-latency: %w", err)
		}
	}
	if b.only == "node" || b.only == "alert-latency" {
		return b.report.print(os.Stdout, b.json)
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	b.report.Fleet = "generated fleet"
	if b.trace != "" {
		b.report.Fleet = filepath.Base(b.trace)
	}
	rated, err := b.rate(ctx)
	if err != nil {
		return err
	}
	for _, part := range []struct {
		name string
		run  func(context.Context, *offline) error
	}{
		{"path", b.path},
		{"limits", b.limits},
		{"alone", b.alone},
		{"close", b.close},
		{"budgets", b.budgets},
	} {
		if !b.wants(part.name) {
			continue
		}
		if err := part.run(ctx, rated); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return b.report.print(os.Stdout, b.json)
}

// wants reports whether a part was asked for.
func (b *bench) wants(part string) bool {
	for _, name := range strings.Split(b.only, ",") {
		if name == part {
			return true
		}
	}
	return false
}

// say tells a person what goes on.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: %s %s\n", time.Now().Format(time.TimeOnly),
		fmt.Sprintf(format, args...))
}

// repository finds the folder of the repository.
func repository(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// setup fetches what is missing and builds the command, once.
func (b *bench) setup(ctx context.Context) error {
	if b.binary != "" {
		return nil
	}
	b.say("building")
	setup := exec.CommandContext(ctx, filepath.Join(b.root, "deployments/setup/libchdb.sh"))
	setup.Stderr = os.Stderr
	if err := setup.Run(); err != nil {
		return fmt.Errorf("fetch libchdb: %w", err)
	}
	var err error
	b.binary, err = b.build(ctx, "suanpan", "CGO_ENABLED=0")
	return err
}

// prepare does what setup does, and writes the events into a file.
func (b *bench) prepare(ctx context.Context) error {
	if err := b.setup(ctx); err != nil {
		return err
	}
	b.say("writing the events")
	b.events = filepath.Join(b.dir, "events.jsonl")
	file, err := os.Create(b.events)
	if err != nil {
		return fmt.Errorf("make file of events: %w", err)
	}
	defer file.Close()
	market, err := os.ReadFile(b.market())
	if err != nil {
		return fmt.Errorf("read market prices: %w", err)
	}
	if _, err := file.Write(market); err != nil {
		return fmt.Errorf("write market prices: %w", err)
	}
	if err := b.command(ctx, nil, file, append(b.replay(), "--to", "-")...); err != nil {
		return err
	}
	return file.Close()
}

// build builds the command with a setting of the environment, and returns its path.
func (b *bench) build(ctx context.Context, name, setting string) (string, error) {
	path := filepath.Join(b.dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, "./services/suanpan")
	cmd.Dir, cmd.Stderr = b.root, os.Stderr
	cmd.Env = append(os.Environ(), setting)
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build the command: %w", err)
	}
	return path, nil
}

// replay is the command line that replays the fleet.
func (b *bench) replay() []string {
	args := []string{"replay", "--limit", strconv.FormatInt(b.limit, 10)}
	if b.trace != "" {
		return append(args, "--trace", b.trace)
	}
	return append(args, "--generate", "--days", strconv.Itoa(b.days))
}

func (b *bench) catalog() string { return b.example("catalog.yaml") }
func (b *bench) market() string  { return b.example("market.jsonl") }

func (b *bench) example(name string) string {
	return filepath.Join(b.root, "deployments", "example", name)
}
