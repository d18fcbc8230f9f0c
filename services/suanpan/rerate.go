package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/pipeline"
)

func rerateCommand() *cobra.Command {
	var links billingLinks
	var tenant, from, until string
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "rerate --tenant TENANT --from TIME --until TIME [--yes]",
		Short: "Price past usage anew, by the catalog as it is now with its past",
		Long: `Price past usage anew. Versions of the catalog that start in the past are ignored by all
who rate, as nobody knew them then; a re-rating obeys them. It prices all usage of the tenant in
whole hours from --from until --until by the catalog as it is now, shows what would change, and does
it with --yes. Of periods that are invoiced, more to pay becomes a late line of the next invoice,
less a credit note.`,
		Example: `  suanpan apply --for-rerating -f corrected-prices.yaml
  suanpan rerate --tenant acme --from 2026-01-01T00:00:00+08:00 --until 2026-02-01T00:00:00+08:00`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			start, err := wholeSecond("--from", from)
			if err != nil {
				return err
			}
			end, err := wholeSecond("--until", until)
			if err != nil {
				return err
			}
			if end <= start {
				return fmt.Errorf("--until is not after --from (%w)", errUsage)
			}
			return links.at(cmd.Context(), cmd.ErrOrStderr(), func(d *desk) error {
				return d.rerate(cmd, tenant, start, end, yes, asJSON)
			})
		},
	}
	links.register(cmd.Flags())
	cmd.Flags().StringVar(&tenant, "tenant", "", "whose usage")
	cmd.Flags().StringVar(&from, "from", "", "first `instant`, RFC 3339; its whole hour counts")
	cmd.Flags().StringVar(&until, "until", "", "end, RFC 3339; its whole hour counts")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one line a line")
	for _, name := range []string{"tenant", "from", "until"} {
		_ = cmd.MarkFlagRequired(name)
	}
	return cmd
}

func wholeSecond(flag, text string) (int64, error) {
	at, err := metering.ParseInstant(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w (%w)", flag, err, errUsage)
	}
	return at.Second(), nil
}

func (d *desk) rerate(cmd *cobra.Command, tenant string, from, until int64, yes, asJSON bool,
) error {
	ctx, now := cmd.Context(), time.Now().UTC()
	if !d.prices.Catalog.HasTenant(tenant) {
		return fmt.Errorf("the catalog has no tenant %q", tenant)
	}
	if until > now.Unix() {
		return fmt.Errorf("--until is in the future (%w)", errUsage)
	}
	lines, err := pipeline.PreviewRerate(ctx, d.rows, d.prices, tenant, from, until, now)
	if err != nil {
		return err
	}
	if err := printRerate(cmd.OutOrStdout(), lines, asJSON); err != nil {
		return err
	}
	if !yes {
		fmt.Fprintln(cmd.ErrOrStderr(), "nothing was changed: add --yes to do it")
		return nil
	}
	var records []pipeline.Record
	for _, day := range pipeline.RerateDays(from, until) {
		record, err := pipeline.RerateRecord(tenant, day[0], day[1], d.prices.CatalogEnd, "/suanpan")
		if err != nil {
			return err
		}
		records = append(records, record)
	}
	if err := d.client.Append(ctx, records...); err != nil {
		return fmt.Errorf("append re-rating: %w", err)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%d events sent: the rater prices these days anew\n", len(records))
	return nil
}

func printRerate(out io.Writer, lines []pipeline.RerateLine, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(out)
		for i := range lines {
			l := &lines[i]
			if err := encoder.Encode(map[string]string{
				"contract": l.Contract, "period": l.Period, "sku": l.SKU, "purchase": l.Purchase,
				"band": l.Band, "unit": l.BaseUnit, "quantity_before": l.QuantityBefore.String(),
				"quantity_after": l.QuantityAfter.String(), "before": l.Before.Fixed(money.Scale),
				"after": l.After.Fixed(money.Scale), "currency": l.Currency,
			}); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "PERIOD\tCONTRACT\tSKU\tPURCHASE\tBAND\tBEFORE\tAFTER\tDIFFERENCE\tCURRENCY\t")
	for i := range lines {
		l := &lines[i]
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", l.Period, orDash(l.Contract), l.SKU,
			l.Purchase, l.Band, l.Before, l.After, l.After.Sub(l.Before), l.Currency)
	}
	return table.Flush()
}
