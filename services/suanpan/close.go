package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/suanpan/suanpan/pkg/clickhouse"
	"github.com/suanpan/suanpan/pkg/daemon"
	"github.com/suanpan/suanpan/pkg/pipeline"
)

// closePoll is how often a command looks whether closes were recorded.
const closePoll = 500 * time.Millisecond

func closeCommand() *cobra.Command {
	var links billingLinks
	var period, tenant string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "close --period YYYY-MM [--tenant TENANT]",
		Short: "Close a billing period now, and make its invoices",
		Long: `Close a billing period now, without waiting for its grace, and make its invoices. The
period must be over; earlier ones that are open are closed with it. Usage of it that comes later is
billed with the next period. The rater has to run; closing twice changes nothing.`,
		Example: "  suanpan close --period 2026-01 --tenant acme",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := time.Parse("2006-01", period); err != nil {
				return fmt.Errorf("--period %q is not a month such as 2026-01 (%w)", period, errUsage)
			}
			d, err := links.open(cmd.Context(), cmd.ErrOrStderr(), 0)
			if err != nil {
				return err
			}
			return errors.Join(d.close(cmd, period, tenant, wait), d.done())
		},
	}
	links.register(cmd.Flags())
	cmd.Flags().StringVar(&period, "period", "", "the billing period, `YYYY-MM`")
	cmd.Flags().StringVar(&tenant, "tenant", "", "only that of this `tenant`")
	cmd.Flags().DurationVar(&wait, "wait", 5*time.Minute, "how long the rater may take")
	_ = cmd.MarkFlagRequired("period")
	return cmd
}

func (d *desk) close(cmd *cobra.Command, period, tenant string, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), wait)
	defer cancel()
	keys, err := d.biller.CloseNow(ctx, period, tenant, time.Now().UTC())
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return fmt.Errorf("no contract has usage of %s that is not billed: nothing to close", period)
	}
	if err := d.settle(ctx, cmd.ErrOrStderr(), keys); err != nil {
		return err
	}
	filter := clickhouse.EntryFilter{Tenant: tenant, Period: period}
	entries, err := entriesOf(ctx, d.rows, filter)
	if err != nil {
		return err
	}
	return printEntries(cmd.OutOrStdout(), entries, false)
}

// settle waits until the documents of periods were decided on.
func (d *desk) settle(ctx context.Context, stderr io.Writer, keys []pipeline.PeriodKey) error {
	bar := daemon.NewProgress(stderr, "periods", int64(len(keys)))
	defer bar.Close()
	done := 0
	for {
		left, err := d.biller.DecideOn(ctx, keys, time.Now().UTC())
		if err != nil {
			return err
		}
		bar.Add(int64(len(keys) - left - done))
		done = len(keys) - left
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d periods are not billed yet: does the rater run, and do dead "+
				"letters hold them back? %w", left, len(keys), ctx.Err())
		case <-time.After(closePoll):
		}
	}
}
