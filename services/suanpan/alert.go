package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/clickhouse"
	"github.com/suanpan/suanpan/pkg/kafka"
	"github.com/suanpan/suanpan/pkg/notify"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
)

func alertCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "alert",
		Short: "List and acknowledge alerts, and test their channels",
		Long: `List and acknowledge alerts, and test their channels.

Budgets and policies (catalog documents of the kinds Budget and Policy) raise alerts; there is a
default policy of each type, which tells the log. An alert fires once, with the figures that it
rests on and the query that shows them; somebody may acknowledge it; when it is no longer so, it
resolves. Each change is decided in the log, and told to the channels of its budget or policy.`,
	}
	cmd.AddCommand(alertListCommand(), alertAckCommand(), alertTestCommand())
	return cmd
}

func alertListCommand() *cobra.Command {
	var store storeFlags
	var filter clickhouse.AlertFilter
	var firing, asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List alerts in their newest state, with what became of their messages",
		Long: `List alerts in their newest state, the newest first, with what became of their messages.
The same is in the view alert_states of ClickHouse, and each change in the table alerts.`,
		Example: `  suanpan alert list --firing
  suanpan alert list --tenant acme --json | jq -r '.query'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if firing {
				filter.Status = alert.Firing
			}
			rows, err := store.open(cmd.Context())
			if err != nil {
				return err
			}
			err = listAlerts(cmd.Context(), cmd.OutOrStdout(), rows, filter, asJSON)
			return errors.Join(err, rows.Close())
		},
	}
	store.register(cmd.Flags())
	cmd.Flags().StringVar(&filter.Tenant, "tenant", "", "only those of this `tenant`")
	cmd.Flags().StringVar(&filter.Name, "name", "", "only those of this budget or policy: its `name`")
	cmd.Flags().BoolVar(&firing, "firing", false, "only those that fire and nobody acknowledged")
	cmd.Flags().IntVar(&filter.Limit, "limit", 100, "at most so many; 0 is all")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one a line")
	return cmd
}

func listAlerts(ctx context.Context, out io.Writer, rows *clickhouse.Store,
	filter clickhouse.AlertFilter, asJSON bool,
) error {
	var alerts []*alert.Alert
	err := rows.Alerts(ctx, filter, func(a *alert.Alert) error {
		alerts = append(alerts, a)
		return nil
	})
	if err != nil {
		return err
	}
	if asJSON {
		buffered := bufio.NewWriter(out)
		encoder := json.NewEncoder(buffered)
		for _, a := range alerts {
			if err := encoder.Encode(a); err != nil {
				return err
			}
		}
		return buffered.Flush()
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "AT\tSTATUS\tKIND\tTENANT\tFIGURE\tDELIVERIES\tKEY")
	for _, a := range alerts {
		sent, err := deliveriesOf(ctx, rows, a)
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", a.At, a.Status, a.Kind, orDash(a.Tenant),
			orDash(figureOf(a)), orDash(sent), a.Key)
	}
	return table.Flush()
}

// figureOf is the number that says most of an alert.
func figureOf(a *alert.Alert) string {
	if a.Kind == alert.Budget {
		return a.Spend + " " + a.Currency
	}
	if len(a.Figures) == 0 {
		return ""
	}
	f := a.Figures[0]
	return strings.TrimSpace(f.Name + " " + f.Value + " " + f.Unit)
}

// deliveriesOf says what became of the messages of an alert: that it fires, and that it is over.
func deliveriesOf(ctx context.Context, rows *clickhouse.Store, a *alert.Alert) (string, error) {
	ids := []string{a.Key}
	if a.Status == alert.Resolved {
		ids = append(ids, a.ID)
	}
	var states []string
	for _, id := range ids {
		sent, err := rows.Deliveries().List(ctx, notify.MessageID(id), catalog.MaxChannels)
		if err != nil {
			return "", err
		}
		for _, d := range sent {
			states = append(states, notify.ShowChannel(d.To)+" "+string(d.State))
		}
	}
	return strings.Join(states, ", "), nil
}

func alertAckCommand() *cobra.Command {
	var links kafkaFlags
	var by, note string
	cmd := &cobra.Command{
		Use:   "ack KEY",
		Short: "Acknowledge an alert: somebody sees to it",
		Long: `Acknowledge an alert: somebody sees to it. KEY is what "suanpan alert list" shows. Who it
was, when, and the note are kept in the log. An acknowledged alert still resolves by itself, and
then its channels are told.`,
		Example: `  suanpan alert ack idle_gpu,acme,session-7,1 --by ann --note "asked the team"`,
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, done, err := connectKafka(cmd.Context(), &links, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			err = acknowledge(cmd.Context(), client, args[0], by, note, time.Now())
			if err := errors.Join(err, done()); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is acknowledged\n", args[0])
			return nil
		},
	}
	links.register(cmd.Flags())
	cmd.Flags().StringVar(&by, "by", "", "`who` sees to it")
	cmd.Flags().StringVar(&note, "note", "", "a `word` for others")
	_ = cmd.MarkFlagRequired("by")
	return cmd
}

func acknowledge(ctx context.Context, client *kafka.Client, key, by, note string, now time.Time,
) error {
	log := client.Tail(schemas.TopicBilling)
	history, err := pipeline.AlertHistory(ctx, log)
	if err != nil {
		return errors.Join(err, log.Close())
	}
	if err := log.Close(); err != nil {
		return err
	}
	a, ok := history.Find(key)
	if !ok {
		return fmt.Errorf("acknowledge alert %s: no alert of this key fires (see: suanpan alert list "+
			"--firing)", key)
	}
	taken, err := a.Acknowledge(by, note, now.Unix())
	if err != nil {
		return err
	}
	return pipeline.AppendAlerts(ctx, client, "/suanpan", []alert.Alert{taken})
}
