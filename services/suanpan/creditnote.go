package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/money"
)

func creditNoteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "creditnote",
		Short: "Lower an issued invoice",
	}
	cmd.AddCommand(creditNoteCreateCommand())
	return cmd
}

// creditOptions say what is given back.
type creditOptions struct {
	line   int
	amount string
	id     string
	act    actFlags
}

func creditNoteCreateCommand() *cobra.Command {
	var links billingLinks
	var o creditOptions
	cmd := &cobra.Command{
		Use:   "create INVOICE --reason TEXT [--line N | --amount X]",
		Short: "Make a credit note: of all that is left of an invoice, a line or an amount",
		Long: `Make a credit note that cites an invoice: of all that is left of it, of one line with its
tax, or of an amount with tax. All credit notes of an invoice together never give more back than it
billed; the last has the residual cents. Repeating the command makes no second one, unless --id says
that another is meant.`,
		Example: `  suanpan creditnote create INV-2026-17 --reason "outage of 3 May"  --amount 120.00
  suanpan creditnote create INV-2026-17 --reason "wrong project" --line 3`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return links.at(cmd.Context(), cmd.ErrOrStderr(), func(d *desk) error {
				return d.credit(cmd, args[0], &o)
			})
		},
	}
	links.register(cmd.Flags())
	o.act.register(cmd)
	cmd.Flags().IntVar(&o.line, "line", 0, "give back line `N`, counted from 1")
	cmd.Flags().StringVar(&o.amount, "amount", "", "give back this `amount`, with tax")
	cmd.Flags().StringVar(&o.id, "id", "", "tells credit notes of one invoice apart (default: "+
		"follows from what is given back and why)")
	cmd.MarkFlagsMutuallyExclusive("line", "amount")
	return cmd
}

func (d *desk) credit(cmd *cobra.Command, name string, o *creditOptions) error {
	ctx := cmd.Context()
	invoice, err := entryNamed(ctx, d.rows, name)
	if err != nil {
		return err
	}
	if invoice.Status != billing.Issued || invoice.Type != billing.Invoice {
		return fmt.Errorf("document %s is no issued invoice: only such a one has credit notes",
			invoice.ID)
	}
	request := billing.CreditRequest{
		Key: invoice.Key(), ID: o.id, Reason: o.act.reason, Line: o.line,
	}
	if o.amount != "" {
		amount, err := money.Parse(o.amount)
		if err != nil {
			return fmt.Errorf("--amount: %w (%w)", err, errUsage)
		}
		request.Amount = &amount
	}
	if request.ID == "" {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s\x00%s", o.line, o.amount, o.act.reason))
		request.ID = "credit-" + hex.EncodeToString(sum[:6])
	}
	history := billing.NewHistory()
	if err := d.rows.Documents(ctx, []string{invoice.Tenant}, history.Add); err != nil {
		return fmt.Errorf("read documents: %w", err)
	}
	id := invoice.ID + "," + request.ID
	if _, known := d.biller.Status(id); !known {
		note, err := billing.Credit(history, request)
		if err != nil {
			return err
		}
		seller, err := d.prices.Catalog.SellerOf(note.Tenant, note.Contract, invoice.At.Unix())
		if err != nil {
			return err
		}
		if err := d.append(ctx, note.Tenant, &billing.Record{Credit: &billing.Drafted{
			Document: *note, Terms: billing.TermsOf(seller, billing.CreditNote), By: o.act.by,
			Reason: o.act.reason,
		}}); err != nil {
			return err
		}
		if _, known := d.biller.Status(id); !known {
			return fmt.Errorf("credit note %s was not taken in: another one came first, look at "+
				"suanpan invoice list and try again", id)
		}
	}
	return d.print(cmd, id)
}
