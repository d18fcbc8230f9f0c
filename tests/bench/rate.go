package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/rating"
)

// As the rater has them.
const (
	chunkEvents = 4096
	flushRows   = 50_000
)

// offline is what rating in this process comes to.
type offline struct {
	windows  int64
	hours    []rating.Row // in their last state
	sessions []rating.SessionRow
	summary  string
}

// rowKey names a row of an hour.
type rowKey struct {
	rating.HourKey
	sku string
}

// rate measures decoding and rating in this process, on one core. The file is read outside of the
// time that counts. It is run always: others need its rows.
func (b *bench) rate(ctx context.Context) (*offline, error) {
	b.say("rating on one core")
	prices, err := b.prices()
	if err != nil {
		return nil, err
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	done, err := b.profile("rate")
	if err != nil {
		return nil, err
	}
	run := pass{
		prices: prices, rater: rating.NewRater(prices, nil), parser: metering.NewParser(),
		events: make([]metering.Event, chunkEvents), hours: make(map[rowKey]rating.Row),
	}
	err = eachBatch(ctx, b.events, chunkEvents, run.chunk)
	done()
	if err != nil {
		return nil, err
	}
	run.drain()
	rated := &offline{
		windows: run.windows, hours: slices.Collect(maps.Values(run.hours)), sessions: run.sessions,
	}
	if rated.summary, err = run.summary(); err != nil {
		return nil, err
	}
	b.report.Windows, b.report.Rows = rated.windows, len(rated.hours)
	b.report.add(measure{
		Name: "rate events that were decoded before, one core", Events: run.windows,
		Seconds: run.rating.Seconds(),
	})
	b.report.add(measure{
		Name: "decode and rate, one core", Events: run.windows,
		Seconds: (run.decoding + run.rating).Seconds(),
	})
	run = pass{}
	debug.FreeOSMemory() // the parts to come have the machine to themselves
	return rated, nil
}

func (b *bench) prices() (*catalog.Catalog, error) {
	data, err := os.ReadFile(b.catalog())
	if err != nil {
		return nil, fmt.Errorf("read catalog: %w", err)
	}
	documents, err := catalog.Parse(b.catalog(), data)
	if err != nil {
		return nil, err
	}
	return catalog.New(documents)
}

// profile starts a profile of this process, if one is wanted, and returns what ends it.
func (b *bench) profile(name string) (func(), error) {
	if b.profiles == "" {
		return func() {}, nil
	}
	file, err := os.Create(filepath.Join(b.profiles, name+".cpu.pprof"))
	if err != nil {
		return nil, fmt.Errorf("make profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, fmt.Errorf("start profile: %w", err)
	}
	return func() {
		pprof.StopCPUProfile()
		_ = file.Close() // a profile that is cut short says so when it is read
	}, nil
}

// pass is one pass over all events.
type pass struct {
	prices *catalog.Catalog
	rater  *rating.Rater
	parser *metering.Parser
	events []metering.Event

	windows          int64
	decoding, rating time.Duration
	hours            map[rowKey]rating.Row
	sessions         []rating.SessionRow
}

// chunk decodes lines, then rates them, as the rater does.
func (p *pass) chunk(lines [][]byte) error {
	began := time.Now()
	for i, line := range lines {
		if why := p.parser.Parse(line, &p.events[i]); why != nil {
			return fmt.Errorf("event %s is rejected: %s: %s", line, why.Reason, why.Detail)
		}
	}
	decoded := time.Now()
	p.decoding += decoded.Sub(began)
	for i := range lines {
		e := &p.events[i]
		why := (*metering.Rejection)(nil)
		if e.Kind == metering.MarketPrice {
			why = p.prices.AddMarket(e)
		} else {
			p.windows++
			why = p.rater.Rate(e, rating.Position{Offset: p.windows}, 0)
		}
		if why != nil {
			return fmt.Errorf("event %s is rejected: %s: %s", lines[i], why.Reason, why.Detail)
		}
	}
	if p.rater.Pending() < flushRows {
		p.rating += time.Since(decoded)
		return nil
	}
	changes := p.rater.Drain()
	p.rater.Acknowledge(&changes)
	p.rating += time.Since(decoded)
	p.keep(&changes)
	return nil
}

func (p *pass) drain() {
	began := time.Now()
	changes := p.rater.Drain()
	p.rating += time.Since(began)
	p.keep(&changes)
}

// keep remembers the last state of every row.
func (p *pass) keep(changes *rating.Changes) {
	p.sessions = append(p.sessions, changes.Sessions...)
	for _, row := range changes.Hours {
		p.hours[rowKey{row.HourKey, row.SKU}] = row
	}
}

// summary settles the rows.
func (p *pass) summary() (string, error) {
	sums := make(rating.Sums)
	for _, row := range p.hours {
		for i := range row.Segments {
			sums.Add(row.Segments[i].Charge, row.Segments[i].Quantity(row.Milli))
		}
	}
	settled, err := rating.Settle(sums, p.prices)
	if err != nil {
		return "", err
	}
	lines := append([]string{rating.SummaryHeader}, rating.Summary(settled)...)
	return strings.Join(lines, "\n") + "\n", nil
}
