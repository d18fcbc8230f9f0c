package main

import (
	"bufio"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/suanpan/suanpan/pkg/rating"
)

func summaryCommand() *cobra.Command {
	var links kafkaFlags
	var store storeFlags
	var tenant, period string
	cmd := &cobra.Command{
		Use:   "summary",
		Short: "Print what all usage comes to, from ClickHouse",
		Long: `Print what all usage comes to, as CSV: the quantities in ClickHouse, settled by the
catalog as it is now. It equals "suanpan rate --summary" on the same events, byte for byte.`,
		Example: `  suanpan summary
  suanpan summary --tenant acme --period 2026-01`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			rows, err := store.open(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = rows.Close() }() // only read from
			client, done, err := connectKafka(ctx, &links, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer func() { _ = done() }() // only read from
			sums, err := rows.AllSums(ctx, tenant, period)
			if err != nil {
				return fmt.Errorf("sum charges: %w", err)
			}
			// The catalog is read after the rows: it has every version that they were rated by.
			prices := newPrices(client)
			if err := prices.Refresh(ctx, time.Now()); err != nil {
				return err
			}
			settled, err := rating.Settle(sums, prices.Catalog)
			if err != nil {
				return err
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			return errors.Join(printSummary(out, rating.Summary(settled)), out.Flush())
		},
	}
	links.register(cmd.Flags())
	store.register(cmd.Flags())
	cmd.Flags().StringVar(&tenant, "tenant", "", "only this `tenant`")
	cmd.Flags().StringVar(&period, "period", "", "only this billing `period`, YYYY-MM")
	return cmd
}
