package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/clickhouse"
	"github.com/suanpan/suanpan/pkg/daemon"
	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/notify"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
	"github.com/suanpan/suanpan/services/biller"
)

// alertFlags say when budgets are looked at, and how alerts are sent.
type alertFlags struct {
	schedule string
	smtp     notify.EmailOptions
	password daemon.Secret
	keys     daemon.Secret
	allowed  []string
	plain    bool
}

func (a *alertFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&a.schedule, "alert-schedule", biller.DefaultSchedule,
		"`cron` expression of the budget job")
	flags.StringVar(&a.smtp.Addr, "smtp", "",
		"`host:port` of the SMTP server; without it no e-mail goes")
	flags.StringVar(&a.smtp.From, "smtp-from", "Suanpan <suanpan@localhost>", "sender of e-mail")
	flags.StringVar(&a.smtp.Username, "smtp-user", "", "SMTP user `name`")
	flags.BoolVar(&a.smtp.Implicit, "smtp-implicit-tls", false,
		"TLS from the first byte (port 465), not STARTTLS")
	daemon.SecretVar(flags, &a.password, "smtp-password", "SMTP password")
	daemon.SecretVar(flags, &a.keys, "webhook-keys", "keys that sign webhooks, one a line: "+
		"NAME=whsec_..., the default one =whsec_...; older keys of a name on further lines")
	flags.StringSliceVar(&a.allowed, "notify-allow", nil,
		"private `networks` (CIDR) that webhooks may go to")
	flags.BoolVar(&a.plain, "notify-plain-http", false, "webhooks may go without TLS")
}

// gateway opens the channels.
func (a *alertFlags) gateway(s *service) (*notify.Gateway, error) {
	o := notify.GatewayOptions{HTTP: notify.HTTPOptions{AllowPlain: a.plain}}
	for _, text := range a.allowed {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("--notify-allow: %w (%w)", err, errUsage)
		}
		o.HTTP.Allowed = append(o.HTTP.Allowed, prefix)
	}
	keys := make(map[string][]notify.Secret)
	for line := range strings.Lines(a.keys.Reveal()) {
		name, key, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok {
			return nil, fmt.Errorf("webhook-keys has a line that is not NAME=KEY (%w)", errUsage)
		}
		keys[name] = append(keys[name], daemon.NewSecret(key))
	}
	if len(keys) > 0 {
		var err error
		if o.Keys, err = notify.NewKeys(keys); err != nil {
			return nil, err
		}
	}
	if a.smtp.Addr != "" {
		email := a.smtp
		email.Password = a.password
		o.Email = &email
	}
	return notify.NewGateway(s.log, o)
}

// alerts makes the tasks that fire budgets and send what they say.
func (s *service) alerts(a *alertFlags) ([]daemon.Task, error) {
	schedule, err := biller.ParseSchedule(a.schedule)
	if err != nil {
		return nil, err
	}
	gateway, err := a.gateway(s)
	if err != nil {
		return nil, err
	}
	prices := newPrices(s.client)
	deliveries := s.rows.Deliveries()
	log := pipeline.NewAlertLog(pipeline.AlertLogConfig{
		Alerts: s.rows, Log: s.client, Billing: s.client.Tail(schemas.TopicBilling),
		Notify: biller.Take(notify.NewQueue(deliveries), func(tenant string) string {
			buyer, ok := prices.Catalog.Buyer(tenant, time.Now().Unix())
			if !ok {
				return ""
			}
			return buyer.Language
		}),
	})
	alerter := pipeline.NewAlerter(pipeline.AlerterConfig{
		Spending: s.rows, Alerts: log, Prices: prices,
	})
	deliverer := notify.NewDeliverer(deliveries, gateway.Open, s.log, notify.DelivererOptions{})
	return []daemon.Task{
		biller.AlertTask(s.log, s.server.Registry, alerter, schedule, fatal),
		biller.DeliverTask(s.log, s.server.Registry, deliverer, fatal),
	}, nil
}

// together makes one task of several: it ends when any of them fails.
func together(name string, tasks ...daemon.Task) daemon.Task {
	return daemon.Task{Name: name, Fatal: always, Run: func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		for _, t := range tasks {
			group.Go(func() error { return t.Run(ctx) })
		}
		return group.Wait()
	}}
}

func budgetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "budget",
		Short: "See how budgets stand",
	}
	cmd.AddCommand(budgetStatusCommand())
	return cmd
}

// standing is how a budget stands, as it is printed.
type standing struct {
	Budget   string `json:"budget"`
	Tenant   string `json:"tenant"`
	Period   string `json:"period"`
	Spend    string `json:"spend"`
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
	Share    string `json:"share"`
	Forecast string `json:"forecast"`
	Reaches  string `json:"reaches"` // when the amount is reached at this pace, "" if it is not
}

func budgetStatusCommand() *cobra.Command {
	var links billingLinks
	var tenant string
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "status",
		Aliases: []string{"list"},
		Short:   "Show spend, share, forecast, and when a budget will be used up",
		Long: `Show how budgets stand in their running periods: what is spent before tax, its share of the
amount, what it will be at the end of the period at the present pace, and when the amount is
reached.`,
		Example: "  suanpan budget status --tenant acme",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return links.at(cmd.Context(), cmd.ErrOrStderr(), func(d *desk) error {
				now := time.Now().UTC()
				var budgets []*catalog.Budget
				for _, b := range d.prices.Catalog.Budgets(now.Unix()) {
					if tenant == "" || b.Tenant == tenant {
						budgets = append(budgets, b)
					}
				}
				all, err := pipeline.Standings(cmd.Context(), d.rows, d.prices.Catalog, budgets, now)
				if err != nil {
					return err
				}
				alert.SortStandings(all)
				return printStandings(cmd.OutOrStdout(), all, asJSON)
			})
		},
	}
	links.register(cmd.Flags())
	cmd.Flags().StringVar(&tenant, "tenant", "", "only those of this `tenant`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one a line")
	return cmd
}

func printStandings(out io.Writer, all []alert.BudgetStatus, asJSON bool) error {
	encoder := json.NewEncoder(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if !asJSON {
		fmt.Fprintln(table, "BUDGET\tTENANT\tPERIOD\tSPEND\tAMOUNT\tSHARE\tFORECAST\tUSED UP")
	}
	for i := range all {
		b := &all[i]
		s := standing{
			Budget: b.Name, Tenant: b.Tenant, Period: b.Period, Currency: b.Currency,
			Spend:    b.Spend.Round(money.Scale, money.HalfUp).String(),
			Amount:   b.Amount.String(),
			Share:    b.Share().String(),
			Forecast: b.Forecast.Round(2, money.HalfUp).Fixed(2),
		}
		if b.Reaches != 0 {
			s.Reaches = time.Unix(b.Reaches, 0).UTC().Format(time.RFC3339)
		}
		if asJSON {
			if err := encoder.Encode(s); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s %s\t%s\t%s\t%s\n", s.Budget, s.Tenant, s.Period,
			b.Spend.Round(2, money.HalfUp).Fixed(2), s.Amount, s.Currency, s.Share, s.Forecast,
			orDash(s.Reaches))
	}
	return table.Flush()
}

func alertCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "alert",
		Short: "List alerts and their deliveries",
	}
	cmd.AddCommand(alertListCommand())
	return cmd
}

func alertListCommand() *cobra.Command {
	var store storeFlags
	var tenant string
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List alerts, the newest first, with what became of their messages",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := store.open(cmd.Context())
			if err != nil {
				return err
			}
			var alerts []*alert.Alert
			filter := clickhouse.AlertFilter{Tenant: tenant, Limit: limit}
			err = rows.Alerts(cmd.Context(), filter, func(a *alert.Alert) error {
				alerts = append(alerts, a)
				return nil
			})
			if err != nil {
				return errors.Join(err, rows.Close())
			}
			sent := make(map[string][]notify.Delivery)
			for _, a := range alerts {
				found, err := rows.Deliveries().List(cmd.Context(), notify.MessageID(a.ID), catalog.MaxChannels)
				if err != nil {
					return errors.Join(err, rows.Close())
				}
				sent[a.ID] = found
			}
			return errors.Join(printAlerts(cmd.OutOrStdout(), alerts, sent, asJSON), rows.Close())
		},
	}
	store.register(cmd.Flags())
	cmd.Flags().StringVar(&tenant, "tenant", "", "only those of this `tenant`")
	cmd.Flags().IntVar(&limit, "limit", 100, "at most so many; 0 is all")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one a line")
	return cmd
}

func printAlerts(out io.Writer, alerts []*alert.Alert, sent map[string][]notify.Delivery,
	asJSON bool,
) error {
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
	fmt.Fprintln(table, "AT\tKIND\tTENANT\tNAME\tPERIOD\tTHRESHOLD\tSPEND\tDELIVERIES")
	for _, a := range alerts {
		var states []string
		for _, d := range sent[a.ID] {
			states = append(states, notify.ShowChannel(d.To)+" "+string(d.State))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s %s\t%s\n", a.At, a.Kind, a.Tenant, a.Name,
			a.Period, a.Threshold, a.Spend, a.Currency, orDash(strings.Join(states, ", ")))
	}
	return table.Flush()
}
