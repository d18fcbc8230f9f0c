package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/user"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/clickhouse"
	"github.com/suanpan/suanpan/pkg/kafka"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
)

func invoiceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "invoice",
		Short: "List, show, download, preview, issue and void invoices and credit notes",
		Long: `List, show, download, preview, issue and void invoices and credit notes.

A document is named by its number, such as INV-2026-17, or by what it is for: TENANT,CONTRACT,
CURRENCY,PERIOD (acme,,CNY,2026-01 without a contract), for a credit note with its own id behind.
Drafts that are held for a person have no number yet.`,
	}
	cmd.AddCommand(invoiceListCommand(), invoiceShowCommand(), invoiceDownloadCommand(),
		invoicePreviewCommand(), invoiceIssueCommand(), invoiceVoidCommand())
	return cmd
}

// listedDocument is a document as lists print it.
type listedDocument struct {
	ID        string   `json:"id"`
	Number    string   `json:"number"`
	Type      string   `json:"type"`
	Status    string   `json:"status"`
	Tenant    string   `json:"tenant"`
	Contract  string   `json:"contract"`
	Period    string   `json:"period"`
	IssueDate string   `json:"issue_date"`
	DueDate   string   `json:"due_date"`
	Currency  string   `json:"currency"`
	Total     string   `json:"total"`
	Due       string   `json:"due"`
	Why       []string `json:"why"`
}

func listedOf(e *billing.Entry) listedDocument {
	return listedDocument{
		ID: e.ID, Number: e.Number, Type: string(e.Type), Status: string(e.Status), Tenant: e.Tenant,
		Contract: e.Contract, Period: e.Period, IssueDate: e.IssueDate, DueDate: e.DueDate,
		Currency: e.Currency, Total: e.Total, Due: e.Due, Why: e.Why,
	}
}

func invoiceListCommand() *cobra.Command {
	var store storeFlags
	var filter clickhouse.EntryFilter
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List documents, by tenant and period",
		Example: `  suanpan invoice list --period 2026-01 --status held
  suanpan invoice list --tenant acme --json | jq -r '[.number,.due]|@csv'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			entries, err := readEntries(cmd.Context(), &store, filter)
			if err != nil {
				return err
			}
			return printEntries(cmd.OutOrStdout(), entries, asJSON)
		},
	}
	store.register(cmd.Flags())
	registerEntryFilter(cmd.Flags(), &filter)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one a line")
	return cmd
}

func registerEntryFilter(flags *pflag.FlagSet, filter *clickhouse.EntryFilter) {
	flags.StringVar(&filter.Tenant, "tenant", "", "only those of this `tenant`")
	flags.StringVar(&filter.Period, "period", "", "only those of this period, `YYYY-MM`")
	flags.StringVar(&filter.Status, "status", "", "only those that are held, issued or voided")
	flags.StringVar(&filter.Type, "type", "", "only those of this `type`: invoice or credit_note")
}

func readEntries(ctx context.Context, store *storeFlags, filter clickhouse.EntryFilter,
) ([]billing.Entry, error) {
	rows, err := store.open(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := entriesOf(ctx, rows, filter)
	return entries, errors.Join(err, rows.Close())
}

func entriesOf(ctx context.Context, rows *clickhouse.Store, filter clickhouse.EntryFilter,
) ([]billing.Entry, error) {
	var entries []billing.Entry
	err := rows.Entries(ctx, filter, func(e *billing.Entry) error {
		entries = append(entries, *e)
		return nil
	})
	return entries, err
}

// entryNamed returns the one document of a number or ID.
func entryNamed(ctx context.Context, rows *clickhouse.Store, name string) (*billing.Entry, error) {
	entries, err := entriesOf(ctx, rows, clickhouse.EntryFilter{Name: name})
	if err != nil {
		return nil, err
	}
	switch len(entries) {
	case 0:
		return nil, fmt.Errorf("there is no document %q: suanpan invoice list shows all", name)
	case 1:
		return &entries[0], nil
	}
	return nil, fmt.Errorf("%d documents have the number %s, of several sellers: name one by its id, "+
		"such as %s", len(entries), name, entries[0].ID)
}

func printEntries(out io.Writer, entries []billing.Entry, asJSON bool) error {
	if asJSON {
		buffered := bufio.NewWriter(out)
		encoder := json.NewEncoder(buffered)
		encoder.SetEscapeHTML(false)
		for i := range entries {
			if err := encoder.Encode(listedOf(&entries[i])); err != nil {
				return err
			}
		}
		return buffered.Flush()
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NUMBER\tTYPE\tSTATUS\tID\tISSUED\tDUE\tTOTAL\tTO PAY\t")
	for i := range entries {
		l := listedOf(&entries[i])
		why := ""
		if len(l.Why) > 0 && l.Status == string(billing.Held) {
			why = l.Why[0]
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s %s\t%s\t%s\n", orDash(l.Number), l.Type, l.Status,
			l.ID, orDash(l.IssueDate), orDash(l.DueDate), l.Total, l.Currency, l.Due, why)
	}
	return table.Flush()
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// billingLinks are the log and the store of commands that act on documents.
type billingLinks struct {
	kafka kafkaFlags
	store storeFlags
	late  int
}

func (l *billingLinks) register(flags *pflag.FlagSet) {
	l.kafka.register(flags)
	l.store.register(flags)
	flags.IntVar(&l.late, "late-days", billing.DefaultLateDays,
		"`DAYS` after a period for which its late usage is charged")
}

// desk is what a command works at: a biller that is up to date with the log.
type desk struct {
	client *kafka.Client
	rows   *clickhouse.Store
	prices *pipeline.Prices
	biller *pipeline.Biller
	done   func() error
}

// open connects, and reads the billing log to its end.
func (l *billingLinks) open(ctx context.Context, stderr io.Writer, grace time.Duration,
) (*desk, error) {
	client, err := l.kafka.open(ctx, slog.New(slog.NewTextHandler(stderr, nil)))
	if err != nil {
		return nil, err
	}
	rows, err := l.store.open(ctx)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	d := &desk{
		client: client, rows: rows, prices: newPrices(client),
		done: func() error { return errors.Join(rows.Close(), client.Close()) },
	}
	if grace == 0 {
		grace = -1
	}
	d.biller = pipeline.NewBiller(pipeline.BillerConfig{
		Bills: rows, Log: client, Billing: client.Tail(schemas.TopicBilling), Prices: d.prices,
		Grace: grace, LateDays: l.late, TimeZoneData: timeZoneData(),
	})
	if err := d.biller.Sync(ctx); err != nil {
		return nil, errors.Join(err, d.done())
	}
	if err := d.prices.Refresh(ctx, time.Now().UTC()); err != nil {
		return nil, errors.Join(err, d.done())
	}
	return d, nil
}

// at opens a desk, works at it and closes it.
func (l *billingLinks) at(ctx context.Context, stderr io.Writer, work func(*desk) error) error {
	d, err := l.open(ctx, stderr, pipeline.DefaultGrace)
	if err != nil {
		return err
	}
	return errors.Join(work(d), d.done())
}

// append sends a record to the billing log and waits until it is part of the documents.
func (d *desk) append(ctx context.Context, tenant string, r *billing.Record) error {
	value, err := r.Encode("/suanpan")
	if err != nil {
		return err
	}
	record := pipeline.Record{Topic: schemas.TopicBilling, Key: []byte(tenant), Value: value}
	if err := d.client.Append(ctx, record); err != nil {
		return fmt.Errorf("append to the billing log: %w", err)
	}
	return d.biller.Sync(ctx)
}

// actFlags say who acts, and why.
type actFlags struct{ by, reason string }

func (a *actFlags) register(cmd *cobra.Command) {
	who := "unknown"
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	cmd.Flags().StringVar(&a.by, "by", who, "`who` does it, for the log")
	cmd.Flags().StringVar(&a.reason, "reason", "", "`why`, for the log")
	_ = cmd.MarkFlagRequired("reason")
}

func invoiceIssueCommand() *cobra.Command {
	var links billingLinks
	var act actFlags
	var held bool
	cmd := &cobra.Command{
		Use:   "issue DOCUMENT --held --reason TEXT",
		Short: "Issue a draft that is held",
		Long: `Issue a draft that is held: look at why it is (suanpan invoice show), and give the reason
for which it is right all the same. The log keeps who issued it and why.`,
		Example: `  suanpan invoice issue acme,,CNY,2026-01 --held --reason "large training run"`,
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !held {
				return fmt.Errorf("only held drafts are issued by hand: say so with --held (%w)", errUsage)
			}
			return links.at(cmd.Context(), cmd.ErrOrStderr(), func(d *desk) error {
				return d.act(cmd, args[0], act, func(e *billing.Entry) (*billing.Record, error) {
					r := &billing.Act{ID: e.ID, By: act.by, Reason: act.reason}
					if e.Seller == nil {
						var err error
						r.Document, r.Terms, err = d.biller.Redraft(cmd.Context(), &e.Document,
							time.Now().UTC())
						if err != nil {
							return nil, err
						}
					}
					return &billing.Record{Release: r}, nil
				})
			})
		},
	}
	links.register(cmd.Flags())
	act.register(cmd)
	cmd.Flags().BoolVar(&held, "held", false, "the draft is held, and shall be issued")
	return cmd
}

func invoiceVoidCommand() *cobra.Command {
	var links billingLinks
	var act actFlags
	cmd := &cobra.Command{
		Use:   "void DOCUMENT --reason TEXT",
		Short: "Void a draft that is held",
		Long: `Void a draft that is held: it is never issued, and what it bills is not billed. An issued
invoice is never voided: it is lowered by a credit note (suanpan creditnote create).`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return links.at(cmd.Context(), cmd.ErrOrStderr(), func(d *desk) error {
				return d.act(cmd, args[0], act, func(e *billing.Entry) (*billing.Record, error) {
					return &billing.Record{
						Void: &billing.Act{ID: e.ID, By: act.by, Reason: act.reason},
					}, nil
				})
			})
		},
	}
	links.register(cmd.Flags())
	act.register(cmd)
	return cmd
}

// act does something with a held draft and prints what became of it.
func (d *desk) act(cmd *cobra.Command, name string, act actFlags,
	record func(*billing.Entry) (*billing.Record, error),
) error {
	ctx := cmd.Context()
	entry, err := entryNamed(ctx, d.rows, name)
	if err != nil {
		return err
	}
	if entry.Status != billing.Held {
		return fmt.Errorf("document %s is %s: only a held draft is issued or voided by hand", entry.ID,
			entry.Status)
	}
	if act.reason == "" {
		return fmt.Errorf("--reason is empty (%w)", errUsage)
	}
	r, err := record(entry)
	if err != nil {
		return err
	}
	if err := d.append(ctx, entry.Tenant, r); err != nil {
		return err
	}
	if entry, err = entryNamed(ctx, d.rows, entry.ID); err != nil {
		return err
	}
	if entry.Status == billing.Held {
		return fmt.Errorf("document %s is still held: a credit note is issued after its invoice, and an "+
			"invoice is voided after the credit notes that cite it", entry.ID)
	}
	return d.print(cmd, entry.ID)
}

// print prints a document's line.
func (d *desk) print(cmd *cobra.Command, ids ...string) error {
	var entries []billing.Entry
	for _, id := range ids {
		entry, err := entryNamed(cmd.Context(), d.rows, id)
		if err != nil {
			return err
		}
		entries = append(entries, *entry)
	}
	return printEntries(cmd.OutOrStdout(), entries, false)
}
