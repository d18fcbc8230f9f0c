package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/suanpan/suanpan/pkg/billing"
)

func invoiceShowCommand() *cobra.Command {
	var store storeFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show DOCUMENT",
		Short: "Show a document with its lines",
		Args:  usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			entry, err := oneEntry(cmd.Context(), &store, args[0])
			if err != nil {
				return err
			}
			return showDocument(cmd.OutOrStdout(), &entry.Document, entry, asJSON)
		},
	}
	store.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the JSON document itself")
	return cmd
}

func invoicePreviewCommand() *cobra.Command {
	var links billingLinks
	var tenant, contract, period string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "preview --tenant TENANT [--period YYYY-MM]",
		Short: "Show what an invoice would be by now",
		Long: `Show what the invoice of a period that is not closed would be if no more usage came.
Nothing is decided or sent.`,
		Example: "  suanpan invoice preview --tenant acme",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return links.at(cmd.Context(), cmd.ErrOrStderr(), func(d *desk) error {
				drafts, err := d.biller.Preview(cmd.Context(), tenant, contract, period,
					time.Now().UTC())
				if err != nil {
					return err
				}
				if len(drafts) == 0 {
					return fmt.Errorf("tenant %s has nothing to bill", tenant)
				}
				for _, draft := range drafts {
					if err := showDocument(cmd.OutOrStdout(), draft, nil, asJSON); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	links.register(cmd.Flags())
	cmd.Flags().StringVar(&tenant, "tenant", "", "whose invoice")
	cmd.Flags().StringVar(&contract, "contract", "", "of this `contract`; none is usage without one")
	cmd.Flags().StringVar(&period, "period", "",
		"the billing period, `YYYY-MM` (default: the current)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the JSON document")
	_ = cmd.MarkFlagRequired("tenant")
	return cmd
}

// showDocument prints a document: what it is and its lines. entry is nil for what is not stored.
func showDocument(out io.Writer, d *billing.Document, entry *billing.Entry, asJSON bool) error {
	if asJSON {
		text, err := encodeDocument(d)
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	status := "preview"
	if entry != nil {
		status = string(entry.Status)
	}
	fmt.Fprintf(table, "%s\t%s\n", d.Type, orDash(d.Number))
	fmt.Fprintf(table, "id\t%s\nstatus\t%s\n", d.ID(), status)
	if entry != nil {
		for _, why := range entry.Why {
			fmt.Fprintf(table, "held\t%s\n", why)
		}
		if entry.By != "" {
			fmt.Fprintf(table, "by\t%s: %s\n", entry.By, entry.Reason)
		}
	}
	fmt.Fprintf(table, "period\t%s, %s to %s in %s\n", d.Period, d.PeriodStart, d.PeriodEnd,
		d.Timezone)
	if d.Number != "" {
		fmt.Fprintf(table, "issued\t%s, due %s\n", d.IssueDate, orDash(d.DueDate))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	table = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "#\tKIND\tSKU\tPURCHASE\tBAND\tUSED IN\tQUANTITY\tUNIT\tPRICE\tPER\tAMOUNT")
	for i := range d.Lines {
		l := &d.Lines[i]
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", i+1, l.Kind, orDash(l.SKU),
			orDash(l.Purchase), orDash(l.Band), l.UsagePeriod, l.Quantity, l.Unit, l.UnitPrice, l.Per,
			l.Amount)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	table = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "subtotal\t%s %s\n", d.Subtotal, d.Currency)
	for _, t := range d.Taxes {
		fmt.Fprintf(table, "tax %s %s %%\t%s %s\n", t.Category, t.Rate, t.Tax, d.Currency)
	}
	fmt.Fprintf(table, "total\t%s %s\n", d.Total, d.Currency)
	for _, p := range d.Prepaid {
		fmt.Fprintf(table, "prepaid by %s\t-%s %s\n", p.Grant, p.Amount, d.Currency)
	}
	fmt.Fprintf(table, "due\t%s %s\n", d.Due, d.Currency)
	return table.Flush()
}
