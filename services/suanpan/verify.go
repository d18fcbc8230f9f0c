package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/suanpan/suanpan/pkg/pipeline"
)

// errDiffers makes the command fail where a verification finds something.
var errDiffers = errors.New("the invoice is not what the events say")

func verifyCommand() *cobra.Command {
	var links billingLinks
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify INVOICE",
		Short: "Check an invoice against the archived events alone",
		Long: `Check an invoice against the archived events alone: rate them again from scratch, up to
the close of the invoice's period, and compare every row, the hash of the rows and every amount with
what is stored. It exits with 1 where anything differs, and names each difference.`,
		Example: "  suanpan verify INV-2026-17",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return links.at(cmd.Context(), cmd.ErrOrStderr(), func(d *desk) error {
				entry, err := entryNamed(cmd.Context(), d.rows, args[0])
				if err != nil {
					return err
				}
				report, err := pipeline.NewVerifier(d.rows, d.prices, links.late).Verify(cmd.Context(), entry)
				if err != nil {
					return err
				}
				return printVerified(cmd, entry.ID, report, asJSON)
			})
		},
	}
	links.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printVerified(cmd *cobra.Command, id string, report *pipeline.VerifyReport, asJSON bool,
) error {
	out := cmd.OutOrStdout()
	if asJSON {
		differences := report.Differences
		if differences == nil {
			differences = []string{}
		}
		if err := json.NewEncoder(out).Encode(map[string]any{
			"id": id, "events": report.Events, "rows": report.Rows, "differences": differences,
		}); err != nil {
			return err
		}
	} else {
		for _, difference := range report.Differences {
			fmt.Fprintln(out, difference)
		}
	}
	if n := len(report.Differences); n > 0 {
		return fmt.Errorf("%w: %d differences in %d rows of %d events", errDiffers, n, report.Rows,
			report.Events)
	}
	if !asJSON {
		fmt.Fprintf(out, "%s: %d rows of %d events, all as billed\n", id, report.Rows, report.Events)
	}
	return nil
}
