package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/rating"
)

func rateCommand() *cobra.Command {
	var catalogPath, eventsPath string
	var summary bool
	cmd := &cobra.Command{
		Use:   "rate --catalog FILE|DIR --events FILE|-",
		Short: "Rate a file of events offline",
		Long: `Rate a file of events offline, by the same rules as the rating service.

The catalog is a YAML or JSON file, or a folder of such files; the events are CloudEvents, one a
line. Market prices in the file are read first, whatever their place. Line items are printed as JSON
lines, with the columns of the line_items view; with --summary, their settled sums as CSV. Events
that are not accepted are named on standard error, one a line, as "rejected ID: reason".`,
		Example: `  suanpan rate --catalog catalog.yaml --events events.jsonl --summary
  zcat events.jsonl.gz | suanpan rate --catalog prices/ --events - | jq -c .amount`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return rateFiles(catalogPath, eventsPath, summary, cmd.InOrStdin(), cmd.OutOrStdout(),
				cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&catalogPath, "catalog", "", "catalog `FILE` or folder")
	flags.StringVar(&eventsPath, "events", "", "events `FILE`, - for standard input")
	flags.BoolVar(&summary, "summary", false, "print settled sums as CSV instead of line items")
	_ = cmd.MarkFlagRequired("catalog")
	_ = cmd.MarkFlagRequired("events")
	return cmd
}

func rateFiles(catalogPath, eventsPath string, summary bool, stdin io.Reader, stdout,
	stderr io.Writer,
) error {
	ledger, prices, err := rateOffline(catalogPath, eventsPath, false, stdin, stderr)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(stdout)
	if summary {
		err = writeSummary(out, ledger, prices)
	} else {
		err = writeLineItems(out, ledger, prices)
	}
	if err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// rateEvents rates a file: its market prices first, then everything else.
func rateEvents(events *os.File, offline *rating.Offline, stderr io.Writer) error {
	rejected := make(map[int]string)
	for _, step := range []func(*metering.Event) *metering.Rejection{
		func(e *metering.Event) *metering.Rejection {
			if e.Kind != metering.MarketPrice {
				return nil
			}
			return offline.Price(e)
		},
		offline.Rate,
	} {
		if err := eachEvent(events, func(line int, e *metering.Event, why *metering.Rejection) {
			if why == nil {
				why = step(e)
			}
			if why != nil {
				rejected[line] = "rejected " + eventName(e, line, why) + ": " + string(why.Reason)
			}
		}); err != nil {
			return err
		}
	}
	for _, line := range slices.Sorted(maps.Keys(rejected)) {
		fmt.Fprintln(stderr, rejected[line])
	}
	return nil
}

// openEvents opens a file of events that can be read twice; standard input is kept in a temporary
// file for that.
func openEvents(path string, stdin io.Reader) (*os.File, func(), error) {
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, nil, fmt.Errorf("open events: %w", err)
		}
		return file, func() { _ = file.Close() }, nil
	}
	file, err := os.CreateTemp("", "suanpan-events-*.jsonl")
	if err != nil {
		return nil, nil, fmt.Errorf("make temporary file for events: %w", err)
	}
	done := func() { _ = file.Close(); _ = os.Remove(file.Name()) }
	if _, err := io.Copy(file, stdin); err != nil {
		done()
		return nil, nil, fmt.Errorf("read events: %w", err)
	}
	return file, done, nil
}

// eachEvent reads events, one a line, from the beginning of a file. Lines are counted from 1.
func eachEvent(file *os.File,
	visit func(line int, e *metering.Event, why *metering.Rejection),
) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	reader := bufio.NewReaderSize(file, 1<<20)
	parser := metering.NewParser()
	var e metering.Event
	for line := 1; ; line++ {
		data, err := reader.ReadBytes('\n')
		if text := bytes.TrimSpace(data); len(text) > 0 {
			visit(line, &e, parser.Parse(text, &e))
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read events, line %d: %w", line, err)
		}
	}
}

// eventName is how messages name an event: by its id, or by its line where it has none, as what is
// no JSON object has, whatever part of it could be read.
func eventName(e *metering.Event, line int, why *metering.Rejection) string {
	if e.ID != "" && why.Reason != metering.InvalidJSON {
		return e.ID
	}
	return fmt.Sprintf("line %d", line)
}

func writeSummary(out io.Writer, ledger *rating.Ledger, prices *catalog.Catalog) error {
	settled, err := rating.Settle(ledger.Sums(), prices)
	if err != nil {
		return err
	}
	return printSummary(out, rating.Summary(settled))
}

func printSummary(out io.Writer, lines []string) error {
	for _, line := range append([]string{rating.SummaryHeader}, lines...) {
		if _, err := io.WriteString(out, line+"\n"); err != nil {
			return fmt.Errorf("write summary: %w", err)
		}
	}
	return nil
}

func writeLineItems(out io.Writer, ledger *rating.Ledger, prices *catalog.Catalog) error {
	items, err := ledger.LineItems(prices)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for i := range items {
		if err := encoder.Encode(&items[i]); err != nil {
			return fmt.Errorf("write line item: %w", err)
		}
	}
	return nil
}

// readCatalog parses a catalog file, or all .yaml, .yml and .json files of a folder.
func readCatalog(path string) ([]catalog.Document, error) {
	paths := []string{path}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	if info.IsDir() {
		paths = nil
		for _, pattern := range []string{"*.yaml", "*.yml", "*.json"} {
			found, err := filepath.Glob(filepath.Join(path, pattern))
			if err != nil {
				return nil, fmt.Errorf("list catalog: %w", err)
			}
			paths = append(paths, found...)
		}
		slices.Sort(paths)
		if len(paths) == 0 {
			return nil, fmt.Errorf("open catalog: folder %s has no .yaml, .yml or .json file", path)
		}
	}
	var documents []catalog.Document
	var errs []error
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			return nil, fmt.Errorf("read catalog: %w", err)
		}
		parsed, err := catalog.Parse(p, data)
		documents, errs = append(documents, parsed...), append(errs, err)
	}
	return documents, errors.Join(errs...)
}
