package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/suanpan/suanpan/pkg/daemon"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
	"github.com/suanpan/suanpan/services/suanpan/trace"
)

const (
	replayBatch    = 20_000 // appended together: each costs an fsync per partition
	replayInFlight = 3      // batches that are being appended at a time
	replayTenants  = 20
	replayDays     = 30
)

// replayOptions are the flags of the command.
type replayOptions struct {
	trace    string
	format   string
	generate bool
	start    string
	window   time.Duration
	to       string
	limit    int64
	rate     string
	fleet    trace.Fleet
	noise    trace.Noise
	links    kafkaFlags
}

func replayCommand() *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay (--trace FILE | --generate)",
		Short: "Replay the usage of a fleet into the log",
		Long: `Replay the usage of a fleet: as usage events in the log, or as JSON lines.

The fleet is that of a trace, or one from a seeded generator whose figures are drawn from facts of
that trace. A trace in the format openb is a pod list of the Alibaba GPU trace of 2023: each pod
that held GPUs is a session of the tenant "tenant-NN", NN being the CRC-32 of its name modulo 20.
Usage is reported in windows, in the order of their ends. Replaying again bills nothing twice.

Apply a catalog and the market prices first: deployments/example has both for this fleet.`,
		Example: `  suanpan replay --generate --days 7
  suanpan replay --trace openb_pod_list_default.csv --duplicate 0.05 --shuffle 10000
  suanpan replay --generate --to - | suanpan rate --catalog catalog.yaml --events - --summary`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return replay(cmd, &o) },
	}
	o.register(cmd.Flags())
	return cmd
}

func (o *replayOptions) register(flags *pflag.FlagSet) {
	flags.StringVar(&o.trace, "trace", "", "trace `FILE`")
	flags.StringVar(&o.format, "format", "openb", "its `format`: openb")
	flags.BoolVar(&o.generate, "generate", false, "generate a fleet instead of reading a trace")
	flags.StringVar(&o.start, "start", "2025-08-01T00:00:00Z", "`instant` at which the fleet starts")
	flags.DurationVar(&o.window, "window", time.Minute, "length of a usage window")
	flags.StringVar(&o.to, "to", "kafka", "`kafka`, or - to print JSON lines")
	flags.Int64Var(&o.limit, "limit", 0, "end after so many windows; 0: after all")
	flags.StringVar(&o.rate, "rate", "", "send at most so many events a second, as `N/s`")
	flags.Uint64Var(&o.fleet.Seed, "seed", 1, "of the generated fleet and of the noise")
	flags.IntVar(&o.fleet.Days, "days", replayDays, "length of the generated fleet's usage")
	flags.IntVar(&o.fleet.Sessions, "sessions", 0,
		fmt.Sprintf("number of generated sessions; 0: %d a day", trace.SessionsPerDay))
	flags.IntVar(&o.fleet.Tenants, "tenants", replayTenants,
		"number of the generated fleet's tenants")
	flags.Float64Var(&o.noise.Duplicate, "duplicate", 0, "`share` of events to send twice, 0 to 1")
	flags.IntVar(&o.noise.Shuffle, "shuffle", 0, "shuffle the order, among so many events")
	flags.Float64Var(&o.noise.Late, "late", 0, "`share` of events to send late, 0 to 1")
	flags.DurationVar(&o.noise.LateBy, "late-by", time.Hour,
		"the longest lateness, in the fleet's time")
	o.links.register(flags)
}

func replay(cmd *cobra.Command, o *replayOptions) error {
	rate, err := o.check()
	if err != nil {
		return fmt.Errorf("%w\n%w: %s --help", err, errUsage, cmd.CommandPath())
	}
	source, err := o.open()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	target, done := writeTo(cmd.OutOrStdout()), func() error { return nil }
	if o.to == "kafka" {
		var log pipeline.Appender
		if log, done, err = openAppender(ctx, cmd, &o.links); err != nil {
			return err
		}
		target = appendTo(log)
	}
	total := source.Total()
	if o.limit > 0 {
		total = min(total, o.limit)
	}
	windows := o.noise.Apply(first(source.Windows(), total))
	progress := daemon.NewProgress(cmd.ErrOrStderr(), "windows", total)
	sent, err := pump(ctx, windows, rate, target, progress.Add)
	progress.Close()
	if err = errors.Join(err, done()); err != nil {
		return fmt.Errorf("replay, after %d events: %w", sent, err)
	}
	if o.to == "kafka" {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d events sent\n", sent)
	}
	return err
}

// openAppender connects to the log. The function that it returns closes the connection.
func openAppender(ctx context.Context, cmd *cobra.Command, links *kafkaFlags) (
	pipeline.Appender, func() error, error,
) {
	return connectKafka(ctx, links, cmd.ErrOrStderr())
}

// check finds what is wrong with the flags, and returns the rate in events a second, 0 for none.
func (o *replayOptions) check() (rate int64, err error) {
	var errs []error
	if (o.trace != "") == o.generate {
		errs = append(errs, errors.New("give either --trace FILE or --generate"))
	}
	if o.format != "openb" {
		errs = append(errs, fmt.Errorf("--format %q is not openb", o.format))
	}
	if o.to != "kafka" && o.to != "-" {
		errs = append(errs, fmt.Errorf("--to %q is neither kafka nor -", o.to))
	}
	if o.limit < 0 {
		errs = append(errs, fmt.Errorf("--limit %d is below 0", o.limit))
	}
	if o.rate != "" {
		rate, err = strconv.ParseInt(strings.TrimSuffix(o.rate, "/s"), 10, 64)
		if err != nil || rate < 1 {
			errs = append(errs, fmt.Errorf("--rate %q is not a whole number above 0, as 5000/s", o.rate))
		}
	}
	start, err := time.Parse(time.RFC3339, o.start)
	if err != nil || start.Unix() < 0 || start.Nanosecond() != 0 {
		errs = append(errs, fmt.Errorf(
			"--start %q is not a whole second since 1970, as 2025-08-01T00:00:00Z", o.start))
	}
	o.fleet.Start = start.Unix()
	o.noise.Seed = o.fleet.Seed
	return rate, errors.Join(append(errs, o.noise.Check())...)
}

// open reads the trace, or generates the fleet.
func (o *replayOptions) open() (*trace.Replay, error) {
	if o.generate {
		sessions, err := o.fleet.Generate()
		if err != nil {
			return nil, err
		}
		return trace.New(trace.FleetSource, sessions, o.window)
	}
	file, err := os.Open(o.trace)
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	defer func() { _ = file.Close() }()
	sessions, err := trace.ReadOpenB(file, o.fleet.Start)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.trace, err)
	}
	return trace.New(trace.OpenBSource, sessions, o.window)
}

// first yields the first n windows.
func first(windows iter.Seq[trace.Window], n int64) iter.Seq[trace.Window] {
	return func(yield func(trace.Window) bool) {
		left := n
		for w := range windows {
			if left == 0 || !yield(w) {
				return
			}
			left--
		}
	}
}

// batch is some events: JSON lines, where each ends, and whose it is.
type batch struct {
	lines   []byte
	ends    []int
	tenants []string
	windows int64 // without repeats
}

func (b *batch) add(w *trace.Window) {
	b.lines = append(w.AppendJSON(b.lines), '\n')
	b.ends = append(b.ends, len(b.lines))
	b.tenants = append(b.tenants, w.Session.Tenant)
	if !w.Repeat {
		b.windows++
	}
}

func (b *batch) reset() {
	b.lines, b.ends, b.tenants, b.windows = b.lines[:0], b.ends[:0], b.tenants[:0], 0
}

// target takes batches, several at a time if concurrent. It keeps no hold of one.
type target struct {
	send       func(context.Context, *batch) error
	concurrent bool
}

// writeTo prints events as JSON lines.
func writeTo(out io.Writer) target {
	return target{send: func(_ context.Context, b *batch) error {
		if _, err := out.Write(b.lines); err != nil {
			return fmt.Errorf("write events: %w", err)
		}
		return nil
	}}
}

// appendTo appends events to the usage topic, under their tenants' keys.
func appendTo(log pipeline.Appender) target {
	return target{concurrent: true, send: func(ctx context.Context, b *batch) error {
		records := make([]pipeline.Record, len(b.ends))
		start := 0
		for i, end := range b.ends {
			records[i] = pipeline.Record{
				Topic: schemas.TopicUsage, Key: []byte(b.tenants[i]), Value: b.lines[start : end-1],
			}
			start = end
		}
		return log.Append(ctx, records...)
	}}
}

// pump sends windows in batches, with a few in flight, at no more than rate events a second (0: as
// fast as they are taken). It returns the number of events that were handed over, and calls
// progress, concurrently, with the number of windows of each batch that was sent. The order within
// a tenant may differ a little, as batches overtake one another: usage is a set, so nothing depends
// on it.
func pump(ctx context.Context, windows iter.Seq[trace.Window], rate int64, to target,
	progress func(int64),
) (sent int64, err error) {
	size, inFlight := replayBatch, 1
	if to.concurrent {
		inFlight = replayInFlight
	}
	if rate > 0 {
		size = int(min(replayBatch, max(1, rate/10)))
	}
	group, sending := errgroup.WithContext(ctx)
	free := make(chan *batch, inFlight)
	for range inFlight {
		free <- new(batch)
	}
	pace := pacer{began: time.Now(), rate: rate}
	var b *batch
	send := func() {
		full := b
		b = nil
		sent += int64(len(full.ends))
		group.Go(func() error {
			if err := to.send(sending, full); err != nil {
				return err
			}
			progress(full.windows)
			full.reset()
			free <- full
			return nil
		})
	}
	for w := range windows {
		if b == nil && pace.wait(sending, sent) {
			select {
			case b = <-free:
			case <-sending.Done():
			}
		}
		if b == nil {
			break // interrupted, or a batch could not be sent
		}
		if b.add(&w); len(b.ends) == size {
			send()
		}
	}
	if b != nil {
		send()
	}
	if err := group.Wait(); err != nil {
		return sent, err
	}
	return sent, context.Cause(ctx)
}

// pacer keeps to a rate of events a second. A rate of 0 is none.
type pacer struct {
	began time.Time
	rate  int64
}

// wait waits until so many events may have been sent. It reports false if ctx ended before.
func (p *pacer) wait(ctx context.Context, sent int64) bool {
	if p.rate == 0 {
		return true
	}
	due := p.began.Add(time.Duration(float64(sent) / float64(p.rate) * float64(time.Second)))
	return sleep(ctx, time.Until(due))
}

// sleep reports whether it slept to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
