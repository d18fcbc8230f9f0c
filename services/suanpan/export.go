package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/focus"
	"github.com/suanpan/suanpan/pkg/billing/journal"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/clickhouse"
	"github.com/suanpan/suanpan/pkg/daemon"
	"github.com/suanpan/suanpan/pkg/rating"
)

func exportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write what finance systems import",
	}
	cmd.AddCommand(exportFocusCommand(), exportJournalCommand())
	return cmd
}

// exportOptions are what all exports have in common.
type exportOptions struct {
	links  billingLinks
	period string
	format string
	out    string
}

func (o *exportOptions) register(cmd *cobra.Command, formats string) {
	o.links.register(cmd.Flags())
	cmd.Flags().StringVar(&o.period, "period", "", "the billing period, `YYYY-MM`")
	cmd.Flags().StringVar(&o.format, "format", "csv", "`form`: "+formats)
	cmd.Flags().StringVar(&o.out, "out", "", "`FILE` to write to (default: standard output)")
	_ = cmd.MarkFlagRequired("period")
}

// write opens the output and what is exported, and closes both.
func (o *exportOptions) write(cmd *cobra.Command, export func(d *desk, w io.Writer) error) error {
	if _, err := time.Parse("2006-01", o.period); err != nil {
		return fmt.Errorf("--period %q is not a month such as 2026-01 (%w)", o.period, errUsage)
	}
	return o.links.at(cmd.Context(), cmd.ErrOrStderr(), func(d *desk) error {
		if o.out == "" {
			w := bufio.NewWriter(cmd.OutOrStdout())
			return errors.Join(export(d, w), w.Flush())
		}
		file, err := os.Create(o.out)
		if err != nil {
			return fmt.Errorf("make file for export: %w", err)
		}
		w := bufio.NewWriter(file)
		return errors.Join(export(d, w), w.Flush(), file.Close())
	})
}

func exportFocusCommand() *cobra.Command {
	var o exportOptions
	var version, dataset, provider string
	cmd := &cobra.Command{
		Use:   "focus --period YYYY-MM [--version 1.2|1.4] [--format csv|parquet]",
		Short: "Write a billing period as FOCUS, the FinOps cost and usage specification",
		Long: `Write a billing period as FOCUS, the FinOps cost and usage specification: all line items at
their exact amounts, credits, taxes and adjustments. The sum of BilledCost of each invoice is its
total, to the last digit. Usage of periods that are not invoiced yet has no InvoiceId.`,
		Example: "  suanpan export focus --period 2026-01 --format parquet --out costs.parquet",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.write(cmd, func(d *desk, w io.Writer) error {
				bar := daemon.NewProgress(cmd.ErrOrStderr(), "line items", -1)
				defer bar.Close()
				summary, err := focus.Write(w, focus.Options{
					Version: focus.Version(version), Format: focus.Format(o.format),
					Dataset: focus.Dataset(dataset), Period: o.period, Provider: provider,
					Zone: zoneOf(d.prices.Catalog),
				}, d.documents(cmd.Context()), d.items(cmd.Context(), o.period, bar))
				if summary.Unsettled > 0 {
					fmt.Fprintf(cmd.ErrOrStderr(), "%d line items have no price yet and are left out: try "+
						"again when the settler has come to them\n", summary.Unsettled)
				}
				return err
			})
		},
	}
	o.register(cmd, "csv or parquet")
	cmd.Flags().StringVar(&version, "version", string(focus.V14), "of FOCUS: 1.2 or 1.4")
	cmd.Flags().StringVar(&dataset, "dataset", string(focus.CostAndUsage),
		"cost-and-usage; with 1.4 also invoice-detail or billing-period")
	cmd.Flags().StringVar(&provider, "provider", "Suanpan",
		"who provides the service, where no seller is known")
	return cmd
}

// zoneOf finds the time zone of a contract's billing periods: the last one that it has.
func zoneOf(c *catalog.Catalog) func(tenant, contract string) *time.Location {
	return func(tenant, contract string) *time.Location {
		location := time.UTC
		for _, b := range c.Bindings(tenant) {
			if b.Contract == contract && b.Location != nil {
				location = b.Location
			}
		}
		return location
	}
}

// documents are all that count: exports choose those of their period.
func (d *desk) documents(ctx context.Context) iter.Seq2[*billing.Document, error] {
	return func(yield func(*billing.Document, error) bool) {
		err := d.rows.Entries(ctx, clickhouse.EntryFilter{}, func(e *billing.Entry) error {
			if e.Status != billing.Voided && !yield(&e.Document, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, err)
		}
	}
}

// errEnough ends a query whose reader has seen enough.
var errEnough = errors.New("no more is wanted")

func (d *desk) items(ctx context.Context, period string, bar *daemon.Progress,
) iter.Seq2[focus.Item, error] {
	return func(yield func(focus.Item, error) bool) {
		packages := make(map[rating.Charge]string)
		err := d.rows.EachLineItem(ctx, period, func(i *rating.LineItem, c *rating.Charge) error {
			bar.Add(1)
			pack, ok := packages[*c]
			if !ok {
				curve, err := rating.CurveOf(c, d.prices.Catalog)
				if err != nil {
					return err
				}
				pack = curve.Package()
				packages[*c] = pack
			}
			if !yield(focus.Item{LineItem: *i, Contract: c.Contract, Package: pack}, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(focus.Item{}, err)
		}
	}
}

func exportJournalCommand() *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:   "journal --period YYYY-MM [--format csv|json]",
		Short: "Write the postings of a billing period for a general ledger",
		Long: `Write the double-entry postings of the invoices and credit notes of a billing period:
receivable, revenue by SKU, tax, and what was paid in advance or given. They come to zero for each
document. The accounts are those of the catalog's seller.`,
		Example: "  suanpan export journal --period 2026-01 --out journal.csv",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.write(cmd, func(d *desk, w io.Writer) error {
				summary, err := journal.Write(w, journal.Options{
					Format: journal.Format(o.format), Period: o.period,
					Accounts: accountsOf(d.prices.Catalog),
				}, d.documents(cmd.Context()))
				if summary.Drafts > 0 {
					fmt.Fprintf(cmd.ErrOrStderr(), "%d drafts are left out: they are not issued\n",
						summary.Drafts)
				}
				return err
			})
		},
	}
	o.register(cmd, "csv or json")
	return cmd
}

// accountsOf finds the accounts of a seller as it is now.
func accountsOf(c *catalog.Catalog) func(seller string) *catalog.Accounts {
	now := time.Now().Unix()
	return func(name string) *catalog.Accounts {
		seller, ok := c.Seller(name, now)
		if !ok {
			return nil
		}
		return &seller.Accounts
	}
}
