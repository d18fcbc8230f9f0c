package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/daemon"
	"github.com/suanpan/suanpan/pkg/nvml"
	"github.com/suanpan/suanpan/services/exporter/gauge"
)

// gpuOptions are the flags of gpu.
type gpuOptions struct {
	every    time.Duration
	once     bool
	exporter string
	nvml     string
	catalog  string
}

func gpuCommand() *cobra.Command {
	var o gpuOptions
	var links kafkaFlags
	cmd := &cobra.Command{
		Use:   "gpu",
		Short: "Show this node's GPUs: use, lease, tenant and cost",
		Long: `Show this node's GPUs and MIG devices: model, use, memory, temperature and power, who holds
them, and what that costs. On a terminal the table is refreshed until Ctrl-C.

Leases come from the exporter on this node. Costs need a catalog: a file, or the one in Kafka where
--kafka is given. They are those of the whole lease, on the first of its devices: of an hour from
now, and so far in its session, as if it were alone: ladders, commitments and credits that it shares
with others are the bill's matter. A spot price that is in no file counts as its floor.`,
		Example: `  suanpan gpu
  suanpan gpu --catalog deployments/example/catalog.yaml
  suanpan gpu --once | grep idle`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if o.every < 100*time.Millisecond {
				return fmt.Errorf("--every %s is below 100ms (%w)", o.every, errUsage)
			}
			prices, err := gpuPrices(ctx, &o, &links, cmd.Flags().Changed("kafka"), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			library, err := nvml.Open(o.nvml)
			if err != nil {
				return err
			}
			defer func() { _ = library.Close() }() // only read from
			o.once = o.once || !daemon.Terminal(cmd.OutOrStdout())
			return showGPUs(ctx, &o, library, prices, cmd.OutOrStdout())
		},
	}
	links.register(cmd.Flags())
	flags := cmd.Flags()
	flags.DurationVar(&o.every, "every", time.Second, "`time` between refreshes")
	flags.BoolVar(&o.once, "once", false, "print once and end, as without a terminal")
	flags.StringVar(&o.exporter, "exporter", "http://127.0.0.1:9401",
		"`URL` of this node's exporter, which knows the leases")
	flags.StringVar(&o.nvml, "nvml", "", "`FILE` of the library (default: the system's libnvidia-ml)")
	flags.StringVar(&o.catalog, "catalog", "", "catalog `FILE` or folder, for the costs")
	return cmd
}

// gpuPrices reads the catalog for the costs; nil where none is named.
func gpuPrices(ctx context.Context, o *gpuOptions, links *kafkaFlags, kafka bool, stderr io.Writer,
) (*catalog.Catalog, error) {
	switch {
	case o.catalog != "":
		documents, err := readCatalog(o.catalog)
		if err != nil {
			return nil, err
		}
		return catalog.New(documents)
	case kafka:
		client, done, err := connectKafka(ctx, links, stderr)
		if err != nil {
			return nil, err
		}
		defer func() { _ = done() }() // only read from
		prices := newPrices(client)
		if err := prices.Refresh(ctx, time.Now()); err != nil {
			return nil, err
		}
		return prices.Catalog, nil
	default:
		return nil, nil
	}
}

// clearScreen puts the next table in the place of the one before.
const clearScreen = "\x1b[H\x1b[2J"

// showGPUs prints the table, once or until ctx ends. The activity of MIG devices is measured
// between two samples, so that a table that is printed once takes two.
func showGPUs(ctx context.Context, o *gpuOptions, library gauge.Library, prices *catalog.Catalog,
	out io.Writer,
) error {
	sampler := gauge.New(library, gauge.Config{Every: o.every})
	leases := leaseReader{url: o.exporter}
	costs := leaseCosts{prices: prices}
	ticker := time.NewTicker(o.every)
	defer ticker.Stop()
	for first := true; ; first = false {
		err := sampler.Step(time.Now())
		if err != nil && (o.once || errors.Is(err, nvml.ErrReplaced)) {
			return err
		}
		if !o.once || !first {
			held, leaseErr := leases.read(ctx)
			if ctx.Err() != nil {
				return nil
			}
			var page bytes.Buffer
			if !o.once {
				page.WriteString(clearScreen)
			}
			writeGPUs(&page, sampler.Status(), held, &costs, time.Now())
			for _, problem := range []error{err, leaseErr, costs.problem} {
				if problem != nil {
					fmt.Fprintln(&page, problem)
				}
			}
			if _, err := page.WriteTo(out); err != nil {
				return fmt.Errorf("print GPUs: %w", err)
			}
			if o.once {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// writeGPUs prints the table. held is nil where leases are not known.
func writeGPUs(out io.Writer, devices []gauge.Status, held []nodeLease, costs *leaseCosts,
	now time.Time,
) {
	byDevice := map[string][]*nodeLease{}
	for i := range held {
		for _, uuid := range held[i].Devices {
			byDevice[uuid] = append(byDevice[uuid], &held[i])
		}
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "GPU\tMODEL\tUSE\tMEMORY\tTEMP\tPOWER\tLEASE\tTENANT\tPER HOUR\tSO FAR\t")
	priced := map[string]bool{} // sessions whose costs are in the table
	for i := range devices {
		d := &devices[i]
		lease, tenant, hour, total := holders(d, held, byDevice[d.UUID])
		for _, l := range byDevice[d.UUID] {
			if priced[l.Session] {
				hour, total = append(hour, `"`), append(total, `"`)
				continue
			}
			priced[l.Session] = true
			h, t := costs.of(l, now)
			hour, total = append(hour, h), append(total, t)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", place(d), model(d), use(d),
			memory(d), told(d.TemperatureC, "%.0f C"), told(d.PowerW, "%.0f W"), lease, tenant,
			strings.Join(hour, " "), strings.Join(total, " "))
	}
	_ = table.Flush() // into memory
}

// holders says who has a device, with the costs of what nobody has.
func holders(d *gauge.Status, held []nodeLease, leases []*nodeLease,
) (lease, tenant string, hour, total []string) {
	switch {
	case d.Lost && len(leases) == 0:
		return "LOST", "-", []string{"-"}, []string{"-"}
	case d.Partitioned:
		return "(MIG)", "-", []string{"-"}, []string{"-"}
	case held == nil:
		return "?", "?", []string{"-"}, []string{"-"}
	case len(leases) == 0:
		return "idle", "-", []string{"-"}, []string{"-"}
	}
	var names, tenants []string
	for _, l := range leases {
		names = append(names, l.Lease)
		if len(tenants) == 0 || tenants[len(tenants)-1] != l.Tenant {
			tenants = append(tenants, l.Tenant)
		}
	}
	lease = strings.Join(names, ",")
	if d.Lost {
		lease += " (LOST)"
	}
	return lease, strings.Join(tenants, ","), nil, nil
}

// place is where a device is: "3", or "3.0" for the first MIG device of GPU 3.
func place(d *gauge.Status) string {
	if d.MIG() {
		return fmt.Sprintf("%d.%d", d.Index, d.MIGIndex)
	}
	return fmt.Sprint(d.Index)
}

// model is the product without the maker's name, and the profile of a part of it.
func model(d *gauge.Status) string {
	if d.MIG() {
		return "  MIG " + d.Profile
	}
	return strings.TrimPrefix(d.Name, "NVIDIA ")
}

// use is the device's utilisation: NVML's, or that of the chip's own counters.
func use(d *gauge.Status) string {
	switch {
	case d.GPUUtil.OK:
		return fmt.Sprintf("%.0f %%", 100*d.GPUUtil.V)
	case d.Activity.OK:
		return fmt.Sprintf("%.0f %%", 100*d.Activity.V.Graphics)
	default:
		return "-"
	}
}

// memory is used and total memory, in GiB.
func memory(d *gauge.Status) string {
	if !d.Memory.OK {
		return "-"
	}
	const gib = 1 << 30
	return fmt.Sprintf("%.1f / %.1f GiB", float64(d.Memory.V.Used)/gib,
		float64(d.Memory.V.Total)/gib)
}

// told is a number, or "-" where the device does not tell it.
func told(v nvml.Value[float64], format string) string {
	if !v.OK {
		return "-"
	}
	return fmt.Sprintf(format, v.V)
}
