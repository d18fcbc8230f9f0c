package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/suanpan/suanpan/pkg/daemon"
	"github.com/suanpan/suanpan/services/exporter"
	"github.com/suanpan/suanpan/services/exporter/lease"
)

// exporterLink says where the exporter of this node answers.
type exporterLink struct {
	socket, url string
	token       daemon.Secret
	timeout     time.Duration
}

func (l *exporterLink) register(flags *pflag.FlagSet) {
	flags.StringVar(&l.socket, "socket", defaultSocket, "unix `SOCKET` of this node's exporter")
	flags.StringVar(&l.url, "exporter", "", "`URL` of an exporter, instead of the socket")
	daemon.SecretVar(flags, &l.token, "lease-token", "token for --exporter")
	flags.DurationVar(&l.timeout, "timeout", 10*time.Second, "how long to try, while nobody answers")
}

// call sends a request, and again while nobody answers, and reads the answer.
func (l *exporterLink) call(ctx context.Context, method, path string, body, to any) error {
	text, err := json.Marshal(body)
	if err != nil {
		panic("BUG: a request does not marshal: " + err.Error())
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	client, base := &http.Client{}, strings.TrimSuffix(l.url, "/")
	if base == "" {
		base = "http://exporter"
		client.Transport = &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", l.socket)
			},
		}
	}
	pause := daemon.Backoff{Min: 100 * time.Millisecond, Max: time.Second}
	for {
		request, err := http.NewRequestWithContext(ctx, method, base+path, bytes.NewReader(text))
		if err != nil {
			return fmt.Errorf("ask the exporter: %w", err)
		}
		if token := l.token.Reveal(); token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(request)
		if err == nil && response.StatusCode != http.StatusServiceUnavailable {
			defer response.Body.Close()
			return readAnswer(response, to)
		}
		if err == nil {
			err = readAnswer(response, to)
			_ = response.Body.Close() // nothing is expected of it any more
		}
		if pause.Wait(ctx) != nil {
			return fmt.Errorf("ask the exporter for %s: %w", l.timeout, err)
		}
	}
}

// readAnswer reads an answer, or the problem that it tells.
func readAnswer(response *http.Response, to any) error {
	data, err := io.ReadAll(io.LimitReader(response.Body, leaseMost))
	if err != nil {
		return fmt.Errorf("read the exporter's answer: %w", err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		var problem struct {
			Detail string `json:"detail"`
		}
		if json.Unmarshal(data, &problem) != nil || problem.Detail == "" {
			problem.Detail = response.Status
		}
		return fmt.Errorf("the exporter refuses: %s", problem.Detail)
	}
	if err := json.Unmarshal(data, to); err != nil {
		return fmt.Errorf("read the exporter's answer: %w", err)
	}
	return nil
}

func leaseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lease",
		Short: "Begin, end and list the leases of this node",
		Long: `Begin, end and list the leases of this node, by its exporter. A platform that grants GPUs
calls these, or Slurm's prolog and epilog do. An answer means that the lease, or its last usage, is
on disk.`,
	}
	cmd.AddCommand(leaseStartCommand(), leaseEndCommand(), leaseListCommand())
	return cmd
}

func leaseStartCommand() *cobra.Command {
	var link exporterLink
	var d lease.Document
	var start string
	cmd := &cobra.Command{
		Use:   "start LEASE --tenant TENANT --device DEVICE",
		Short: "Begin a lease, or change it",
		Long: `Begin a lease, or change what one that goes on holds, or its labels: then a resumed session
of it begins. Starting twice the same is one lease. Prints the session's id, which the platform's
own events for it must use.`,
		Example: `  suanpan lease start job-7 --tenant acme --project llm --device 0 --device 1
  suanpan lease start job-7 --tenant acme --project llm --device 0,1 --label stage=finetuning`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			d.Lease = args[0]
			if err := parseInstant(start, &d.Start); err != nil {
				return err
			}
			var view exporter.LeaseView
			err := link.call(cmd.Context(), http.MethodPost, "/v1/leases", d, &view)
			if err != nil {
				return err
			}
			if view.Session == "" {
				fmt.Fprintln(cmd.ErrOrStderr(), "the lease begins when its devices are there")
				return nil
			}
			fmt.Fprintln(cmd.OutOrStdout(), view.Session)
			return nil
		},
	}
	link.register(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVar(&d.Tenant, "tenant", "", "who is invoiced")
	flags.StringVar(&d.Project, "project", "", "the tenant's project (default \"default\")")
	flags.StringVar(&d.Purchase, "purchase", "", "on_demand, reserved, spot or per_task")
	flags.StringVar(&d.Region, "region", "", "region (default: the exporter's)")
	flags.StringSliceVar(&d.Devices, "device", nil, "`DEVICE`: UUID or place, 3 or 3.0 (repeatable)")
	flags.StringVar(&d.Share, "share", "", "part of each device, such as 0.5 (default 1)")
	flags.StringToStringVar(&d.Held, "held", nil, "`SKU=AMOUNT` of what else is held (repeatable)")
	flags.StringToStringVar(&d.Labels, "label", nil, "`NAME=VALUE` (repeatable)")
	flags.StringVar(&start, "start", "", "`INSTANT` at which it began to be usable (default: now)")
	flags.BoolVar(&d.Resumed, "resumed", false, "it goes on from another node or an interruption")
	return cmd
}

func leaseEndCommand() *cobra.Command {
	var link exporterLink
	var end struct {
		Lease  string    `json:"lease"`
		Tenant string    `json:"tenant,omitempty"`
		At     time.Time `json:"at,omitzero"`
	}
	var at string
	cmd := &cobra.Command{
		Use: "end LEASE", Short: "End a lease",
		Long: `End a lease. Its last window is on disk when the command returns. Ending it again changes
nothing.`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			end.Lease = args[0]
			if err := parseInstant(at, &end.At); err != nil {
				return err
			}
			var answer struct{}
			return link.call(cmd.Context(), http.MethodPost, "/v1/leases/end", end, &answer)
		},
	}
	link.register(cmd.Flags())
	cmd.Flags().StringVar(&end.Tenant, "tenant", "", "whose lease (default: found by its name)")
	cmd.Flags().StringVar(&at, "at", "", "`INSTANT` at which it ended (default: now)")
	return cmd
}

func leaseListCommand() *cobra.Command {
	var link exporterLink
	cmd := &cobra.Command{
		Use: "list", Short: "List the sessions that go on",
		Long: `List the sessions of this node that go on: their lease, tenant, devices, start, and until
when their usage is on disk.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var answer struct {
				Leases []exporter.LeaseView `json:"leases"`
			}
			err := link.call(cmd.Context(), http.MethodGet, "/v1/leases", nil, &answer)
			if err != nil {
				return err
			}
			out := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(out, "LEASE\tTENANT\tPROJECT\tSINCE\tREPORTED\tSOURCE\tDEVICES\tSESSION")
			for _, l := range answer.Leases {
				fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Lease, l.Tenant, l.Project,
					l.Since.Format(time.RFC3339), l.Reported.Format(time.RFC3339), l.Source,
					strings.Join(l.Devices, ","), l.Session)
			}
			return out.Flush()
		},
	}
	link.register(cmd.Flags())
	return cmd
}

// parseInstant reads an instant of the command line; "" leaves it as it is.
func parseInstant(text string, to *time.Time) error {
	if text == "" {
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return fmt.Errorf("read instant: %w (%w)", err, errUsage)
	}
	*to = at
	return nil
}
