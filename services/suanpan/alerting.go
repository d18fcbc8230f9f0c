package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/suanpan/suanpan/pkg/daemon"
	"github.com/suanpan/suanpan/pkg/notify"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
	"github.com/suanpan/suanpan/services/biller"
)

// alertFlags say when alerts are decided, and how they are sent.
type alertFlags struct {
	schedule string
	channels channelFlags
}

func (a *alertFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&a.schedule, "alert-schedule", biller.DefaultSchedule,
		"`cron` expression of the job that looks at budgets and policies")
	a.channels.register(flags)
}

// channelFlags say how messages are sent.
type channelFlags struct {
	smtp     notify.EmailOptions
	password daemon.Secret
	keys     daemon.Secret
	ca       string
	allowed  []string
	plain    bool
}

func (a *channelFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&a.smtp.Addr, "smtp", "",
		"`host:port` of the SMTP server; without it no e-mail goes")
	flags.StringVar(&a.smtp.From, "smtp-from", "Suanpan <suanpan@localhost>", "sender of e-mail")
	flags.StringVar(&a.smtp.Username, "smtp-user", "", "SMTP user `name`")
	flags.BoolVar(&a.smtp.Implicit, "smtp-implicit-tls", false,
		"TLS from the first byte (port 465), not STARTTLS")
	daemon.SecretVar(flags, &a.password, "smtp-password", "SMTP password")
	daemon.SecretVar(flags, &a.keys, "webhook-keys", "keys that sign webhooks, one a line: "+
		"NAME=whsec_..., the default one =whsec_...; older keys of a name on further lines")
	flags.StringVar(&a.ca, "notify-tls-ca", "",
		"PEM `file` of authorities to trust, besides the system's, at webhooks and the SMTP server")
	flags.StringSliceVar(&a.allowed, "notify-allow", nil,
		"private `networks` (CIDR) that webhooks may go to")
	flags.BoolVar(&a.plain, "notify-plain-http", false, "webhooks may go without TLS")
}

// gateway opens the channels. E-mail has the words of templates.
func (a *channelFlags) gateway(log *slog.Logger, templates *biller.Templates) (*notify.Gateway,
	error,
) {
	trust, err := a.trust()
	if err != nil {
		return nil, err
	}
	o := notify.GatewayOptions{HTTP: notify.HTTPOptions{AllowPlain: a.plain, TLS: trust}}
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
		if o.Keys, err = notify.NewKeys(keys); err != nil {
			return nil, err
		}
	}
	if a.smtp.Addr != "" {
		email := a.smtp
		email.Password, email.Templates, email.TLS = a.password, templates.Words, trust
		o.Email = &email
	}
	return notify.NewGateway(log, o)
}

// trust returns whose certificates are believed; nil is the system's authorities.
func (a *channelFlags) trust() (*tls.Config, error) {
	if a.ca == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(a.ca)
	if err != nil {
		return nil, fmt.Errorf("read authorities: %w", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the system's authorities: %w", err)
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read authorities: %s has no certificate", a.ca)
	}
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, nil
}

// alerts makes the tasks that decide alerts and send what they say.
func (s *service) alerts(a *alertFlags) ([]daemon.Task, error) {
	schedule, err := biller.ParseSchedule(a.schedule)
	if err != nil {
		return nil, err
	}
	templates := biller.NewTemplates()
	gateway, err := a.channels.gateway(s.log, templates)
	if err != nil {
		return nil, err
	}
	prices := newPrices(s.client)
	deliveries := s.rows.Deliveries()
	log := pipeline.NewAlertLog(pipeline.AlertLogConfig{
		Alerts: s.rows, Log: s.client, Billing: s.client.Tail(schemas.TopicBilling),
		Notify: biller.Take(notify.NewQueue(deliveries), func(tenant string) string {
			return languageOf(prices, tenant)
		}),
	})
	alerting := &biller.Alerting{
		Budgets: pipeline.NewAlerter(pipeline.AlerterConfig{
			Spending: s.rows, Alerts: log, Prices: prices,
		}),
		Policies: pipeline.NewWatcher(pipeline.WatcherConfig{
			Watched: s.rows, Alerts: log, Prices: prices,
		}),
	}
	deliverer := notify.NewDeliverer(deliveries, gateway.Open, s.log, notify.DelivererOptions{})
	return []daemon.Task{
		biller.AlertTask(s.log, s.server.Registry, alerting, schedule, fatal, func(now time.Time) {
			followTemplates(s.log, templates, prices, now)
		}),
		biller.DeliverTask(s.log, s.server.Registry, deliverer, fatal),
	}, nil
}

// languageOf is the language that a tenant is written to; "" where it has none.
func languageOf(prices *pipeline.Prices, tenant string) string {
	buyer, ok := prices.Catalog.Buyer(tenant, time.Now().Unix())
	if !ok {
		return ""
	}
	return buyer.Language
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
