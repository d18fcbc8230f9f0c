package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/notify"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/services/biller"
)

// testTime bounds one attempt of a test message.
const testTime = 30 * time.Second

// tested is the result of a test message at one channel, as it is printed.
type tested struct {
	Channel string `json:"channel"`
	Result  string `json:"result"` // delivered, or why not
	Millis  int64  `json:"millis"`
}

func alertTestCommand() *cobra.Command {
	var links kafkaFlags
	var channels channelFlags
	var budget, policy string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test (--budget NAME | --policy NAME)",
		Short: "Send a test message to the channels of a budget or policy, now",
		Long: `Send a test message to each channel of a budget or policy, now and once, and say what
became of it. It has the words, figures and signature that a real one would have; its title begins
with "Test:" and it has the label test. It is neither decided in the log nor repeated.

The message goes from this machine: give this command the SMTP server and the webhook keys that the
biller has (or its --config file).`,
		Example: `  suanpan alert test --budget monthly --webhook-keys-file keys
  suanpan alert test --policy idle_gpu --smtp mail.example.com:587`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (budget == "") == (policy == "") {
				return fmt.Errorf("give one of --budget and --policy (%w)", errUsage)
			}
			var m notify.Message
			var to []catalog.Channel
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			templates := biller.NewTemplates()
			err := readPrices(cmd, &links, func(prices *pipeline.Prices, now time.Time) error {
				followTemplates(log, templates, prices, now)
				var err error
				m, to, err = testMessage(prices, budget, policy, now)
				return err
			})
			if err != nil {
				return err
			}
			gateway, err := channels.gateway(log, templates)
			if err != nil {
				return err
			}
			results, failed := sendTest(cmd.Context(), gateway, m, to)
			if err := printTested(cmd.OutOrStdout(), results, asJSON); err != nil {
				return err
			}
			if failed > 0 {
				return fmt.Errorf("test channels: %d of %d did not take the message", failed, len(to))
			}
			return nil
		},
	}
	links.register(cmd.Flags())
	channels.register(cmd.Flags())
	cmd.Flags().StringVar(&budget, "budget", "", "`name` of a budget in force")
	cmd.Flags().StringVar(&policy, "policy", "", "`name` of a policy in force")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one a line")
	return cmd
}

// readPrices reads the catalog as it is now.
func readPrices(cmd *cobra.Command, links *kafkaFlags,
	read func(prices *pipeline.Prices, now time.Time) error,
) error {
	client, done, err := connectKafka(cmd.Context(), links, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	prices, now := newPrices(client), time.Now().UTC()
	err = prices.Refresh(cmd.Context(), now)
	if err == nil {
		err = read(prices, now)
	}
	return errors.Join(err, done())
}

// testMessage returns a message as the budget or policy would send it, and its channels.
func testMessage(prices *pipeline.Prices, budget, policy string, now time.Time) (
	notify.Message, []catalog.Channel, error,
) {
	var a alert.Alert
	var to []catalog.Channel
	for _, b := range prices.Catalog.Budgets(now.Unix()) {
		if b.Name == budget {
			a, to = biller.Example(alert.Budget, now.Unix()), b.Notify
			a.Name, a.Tenant, a.Amount, a.Currency = b.Name, b.Tenant, b.Amount.String(), b.Currency
			a.Threshold = b.Thresholds[0].String()
			a.Spend = b.Amount.Mul(b.Thresholds[0]).String()
			a.Forecast, a.Period = a.Amount, prices.Catalog.PeriodOf(b, now.Unix())
		}
	}
	for _, p := range prices.Catalog.Policies(now.Unix()) {
		if p.Name == policy {
			a, to = biller.Example(alert.Kind(p.Type), now.Unix()), p.Notify
			a.Name = p.Name
			if len(p.Tenants) > 0 && a.Tenant != "" {
				a.Tenant = p.Tenants[0]
			}
		}
	}
	switch {
	case a.Key == "":
		return notify.Message{}, nil, fmt.Errorf("test channels: there is no budget or policy %q in "+
			"force (see: suanpan budget list)", budget+policy)
	case len(to) == 0:
		return notify.Message{}, nil, fmt.Errorf("test channels: %s has none: nobody hears of it",
			budget+policy)
	}
	a.Key = "test," + rand.Text()
	a.ID = a.Key
	m, err := biller.MessageOf(&a, languageOf(prices, a.Tenant))
	m.Title = "Test: " + m.Title
	m.Labels["test"] = "true"
	return m.Fit(), to, err
}

// sendTest sends a message once to each channel. Alertmanager is told that it is over, too, as it
// would show it for a week.
func sendTest(ctx context.Context, gateway *notify.Gateway, m notify.Message, to []catalog.Channel,
) (results []tested, failed int) {
	for _, c := range to {
		started := time.Now()
		err := sendOnce(ctx, gateway, c, m)
		if err == nil && c.Kind == catalog.Alertmanager {
			over := m
			over.Status, over.Since = notify.Resolved, m.Time
			err = sendOnce(ctx, gateway, c, over)
		}
		t := tested{notify.ShowChannel(c), "delivered", time.Since(started).Milliseconds()}
		if err != nil {
			failed++
			t.Result = err.Error()
		}
		results = append(results, t)
	}
	return results, failed
}

func sendOnce(ctx context.Context, gateway *notify.Gateway, to catalog.Channel, m notify.Message,
) error {
	channel, err := gateway.Open(to)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, testTime)
	defer cancel()
	return channel.Send(ctx, m)
}

func printTested(out io.Writer, results []tested, asJSON bool) error {
	encoder := json.NewEncoder(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if !asJSON {
		fmt.Fprintln(table, "CHANNEL\tRESULT\tMS")
	}
	for _, t := range results {
		if asJSON {
			if err := encoder.Encode(t); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%d\n", t.Channel, t.Result, t.Millis)
	}
	return table.Flush()
}
