package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/daemon"
	"github.com/suanpan/suanpan/pkg/kafka"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
)

// applyMargin is how long after the earliest possible instant a change starts that does not say
// when: its record must be in the log by then.
const applyMargin = 60

type applyOptions struct {
	file   string
	replay bool
	rerate bool
	dryRun bool
	json   bool
}

// applied is what became of one document.
type applied struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	From   string `json:"effective_from"`
	Status string `json:"status"` // created, changed, unchanged or statusRerate

	document catalog.Document
}

func applyCommand() *cobra.Command {
	var o applyOptions
	var links kafkaFlags
	cmd := &cobra.Command{
		Use:   "apply -f FILE|DIR",
		Short: "Apply catalog documents: price books, tenants, contracts, tax rules, budgets and more",
		Long: `Apply catalog documents: calendars, price books, sellers, tenants, contracts, tax rules,
grants, budgets, policies and templates.

All documents are checked together with those that are there; if one is wrong, nothing is changed
and every error names file and line. A document is a version: what was applied is never edited, a
change gets a later effective_from. Without one, first versions hold from now, and changes from the
earliest instant at which nobody can have rated by the old one.

Only the first versions of calendars, price books, sellers, tenants and tax rules may start in the
past. With --replay all may, and documents without effective_from hold always; that is refused
once there is usage. With --for-rerating a version may start in the past, too, but all who rate
ignore it until "suanpan rerate" prices past usage anew by it.`,
		Example: `  suanpan apply -f deployments/example/catalog.yaml
  suanpan apply -f prices/ --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, done, err := connectKafka(cmd.Context(), &links, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			results, err := apply(cmd.Context(), client, &o, time.Now())
			if err := errors.Join(err, done()); err != nil {
				return err
			}
			return printApplied(cmd.OutOrStdout(), results, o.json)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "file", "f", "", "catalog `FILE` or folder")
	flags.BoolVar(&o.replay, "replay", false,
		"load a catalog before any usage: it may start in the past")
	flags.BoolVar(&o.rerate, "for-rerating", false,
		"versions may start in the past: only re-ratings obey these")
	flags.BoolVar(&o.dryRun, "dry-run", false,
		"check, and show what would change, without changing it")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	_ = cmd.MarkFlagRequired("file")
	links.register(flags)
	return cmd
}

// connectKafka is for commands that do one thing and end.
func connectKafka(ctx context.Context, links *kafkaFlags, stderr io.Writer) (
	*kafka.Client, func() error, error,
) {
	log, err := daemon.LogOptions{Format: "text", Level: "warn"}.New(stderr)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	client, err := links.open(ctx, log)
	if err != nil {
		return nil, nil, fmt.Errorf("%w (is it running? --kafka says where)", err)
	}
	return client, client.Close, nil
}

func apply(ctx context.Context, client *kafka.Client, o *applyOptions, now time.Time) ([]applied,
	error,
) {
	documents, err := readCatalog(o.file)
	if err != nil {
		return nil, err
	}
	// What others name comes first: a reader may see only the beginning of an apply.
	slices.SortStableFunc(documents, func(a, b catalog.Document) int {
		return slices.Index(catalog.Kinds, a.Kind) - slices.Index(catalog.Kinds, b.Kind)
	})
	prices := newPrices(client)
	if err := prices.Refresh(ctx, now); err != nil {
		return nil, err
	}
	if o.replay {
		if err := refuseReplay(ctx, client); err != nil {
			return nil, err
		}
	}
	results, err := plan(prices.Catalog, documents, o, now.Unix())
	if err != nil || o.dryRun {
		return results, err
	}
	records := documentRecords(results, o.replay)
	if len(records) == 0 {
		return results, nil
	}
	if err := client.Append(ctx, records...); err != nil {
		return nil, fmt.Errorf("append to the catalog: %w", err)
	}
	return results, confirm(ctx, prices, results)
}

// refuseReplay fails once there is usage: it may have been rated without what is applied now.
func refuseReplay(ctx context.Context, client *kafka.Client) error {
	ends, err := client.EndOffsets(ctx, schemas.TopicUsage)
	if err != nil {
		return err
	}
	for _, end := range ends {
		if end > 0 {
			return errors.New("--replay is for an empty system, and there is usage already: give the " +
				"documents an effective_from, or re-rate what they change")
		}
	}
	return nil
}

// plan decides what each document is, sets starts that are not given, and checks all together.
func plan(have *catalog.Catalog, documents []catalog.Document, o *applyOptions, now int64,
) ([]applied, error) {
	var results []applied
	var errs []error
	all := append([]catalog.Document(nil), have.Documents()...)
	seen := make(map[string]bool) // first versions of this apply
	for _, d := range documents {
		if old, ok := have.Same(d); ok {
			results = append(results, result(old, "unchanged"))
			continue
		}
		first := !have.HasFirst(d)
		status := "created"
		if !first || seen[d.ID()] {
			status = "changed"
		}
		seen[d.ID()] = true
		if !d.Set && !o.replay {
			start := now
			if !first || !catalog.FirstMayBePast(d.Kind) {
				start = have.Earliest(now, d) + applyMargin
			}
			var err error
			if d, err = d.WithFrom(start); err != nil {
				return nil, err
			}
		}
		mayBePast := o.replay || first && catalog.FirstMayBePast(d.Kind)
		if earliest := have.Earliest(now, d); !mayBePast && d.From < earliest && o.rerate {
			status = statusRerate
		} else if !mayBePast && d.From < earliest {
			errs = append(errs, fmt.Errorf("%s: %s starts at %s, but seconds until %s may be rated "+
				"already: give it a later effective_from, or apply it --for-rerating", d.At, d.ID(),
				metering.InstantOf(d.From), metering.InstantOf(earliest)))
		}
		results = append(results, result(d, status))
		all = append(all, d)
	}
	if _, err := catalog.New(all); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, checkTemplates(results)...)
	return results, errors.Join(errs...)
}

// statusRerate is of versions that start in the past, which only re-ratings obey.
const statusRerate = "for re-rating"

func result(d catalog.Document, status string) applied {
	return applied{d.Kind, d.Name, fromText(d), status, d}
}

func fromText(d catalog.Document) string {
	if d.From == catalog.Always {
		return "always"
	}
	return metering.InstantOf(d.From).String()
}

func documentRecords(results []applied, replay bool) []pipeline.Record {
	batch := rand.Text()
	var records []pipeline.Record
	for _, r := range results {
		if r.Status == "unchanged" {
			continue
		}
		record := pipeline.Record{
			Topic: schemas.TopicCatalog, Key: []byte(r.document.ID()), Value: r.document.JSON,
			Headers: []pipeline.Header{{Key: pipeline.HeaderBatch, Value: []byte(batch)}},
		}
		if replay {
			record.Headers = append(record.Headers,
				pipeline.Header{Key: pipeline.HeaderReplay, Value: []byte("1")})
		}
		records = append(records, record)
	}
	return records
}

// confirm reads back what the log made of the documents: it decides, not this command.
func confirm(ctx context.Context, prices *pipeline.Prices, results []applied) error {
	before := len(prices.Ignored)
	if err := prices.Refresh(ctx, time.Now()); err != nil {
		return err
	}
	var errs []error
	for _, r := range results {
		if r.Status == statusRerate {
			continue // all who rate ignore it, as they should
		}
		if _, ok := prices.Catalog.Version(r.Kind, r.Name, r.document.From); !ok {
			why := "somebody else applied a conflicting version first"
			for _, i := range prices.Ignored[before:] {
				if string(i.Key) == r.document.ID() {
					why = i.Why
				}
			}
			errs = append(errs, fmt.Errorf("%s: %s was not taken: %s", r.document.At, r.document.ID(), why))
		}
	}
	return errors.Join(errs...)
}

func printApplied(out io.Writer, results []applied, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(results)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KIND\tNAME\tEFFECTIVE FROM\tSTATUS")
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", r.Kind, r.Name, r.From, r.Status)
	}
	return table.Flush()
}
