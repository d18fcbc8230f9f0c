package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/suanpan/suanpan/pkg/daemon"
	"github.com/suanpan/suanpan/pkg/kafka"
	"github.com/suanpan/suanpan/pkg/nvml"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/services/exporter"
	"github.com/suanpan/suanpan/services/exporter/gauge"
	"github.com/suanpan/suanpan/services/exporter/lease"
)

const (
	defaultSocket  = "/run/suanpan/exporter.sock"
	exporterAdmin  = "127.0.0.1:9401"
	kubeletSocket  = "/var/lib/kubelet/pod-resources/kubelet.sock"
	serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/"
)

// exporterFlags are the settings of an exporter.
type exporterFlags struct {
	logs  daemon.LogOptions
	admin daemon.AdminOptions
	kafka kafkaFlags

	node, region, data, nvml string
	window, backfill, every  time.Duration
	leasesEvery              time.Duration
	spoolMiB                 int64
	skus                     []string
	processes                bool

	socket string
	token  daemon.Secret
	file   string
	kube   kubeFlags
	slurm  slurmFlags
}

// kubeFlags say how Kubernetes is asked for leases.
type kubeFlags struct {
	socket, pods, token, ca, resource string
	refresh                           time.Duration
	replicas                          int
}

// slurmFlags say how Slurm is asked.
type slurmFlags struct {
	command, node, cluster string
	every                  time.Duration
}

func (f *exporterFlags) register(flags *pflag.FlagSet) {
	f.logs.Register(flags)
	f.admin.Register(flags, exporterAdmin)
	f.kafka.register(flags)
	host, _ := os.Hostname() // "" must be given
	flags.StringVar(&f.node, "node", host, "`NAME` of this node in events")
	flags.StringVar(&f.region, "region", "", "`REGION` of leases that name none")
	flags.StringVar(&f.data, "data", "/var/lib/suanpan/exporter",
		"`FOLDER` of state and spool: keep it")
	flags.StringVar(&f.nvml, "nvml", "",
		"`FILE` of the library (default: the system's libnvidia-ml); none: a node without GPUs")
	flags.DurationVar(&f.every, "sample-every", time.Second, "`time` between samples of the devices")
	flags.DurationVar(&f.window, "window", time.Minute, "`time` that an event covers")
	flags.DurationVar(&f.backfill, "backfill", 7*24*time.Hour,
		"how far back usage is reported that the exporter did not see, where the source knows it")
	flags.Int64Var(&f.spoolMiB, "spool-mib", 1024, "`MiB` of events that are kept while Kafka is away")
	flags.StringArrayVar(&f.skus, "sku", nil,
		"`NAME=SKU` of a GPU by its NVML name, \"NVIDIA H200=gpu.h200\" (repeatable)")
	flags.BoolVar(&f.processes, "processes", false, "show each process in /metrics")
	flags.DurationVar(&f.leasesEvery, "leases-every", time.Second, "how often to ask who has what")
	flags.StringVar(&f.socket, "socket", defaultSocket,
		"unix `SOCKET` on which leases are begun and ended (empty: none)")
	daemon.SecretVar(flags, &f.token, "lease-token",
		"token with which leases are begun and ended on --admin too")
	flags.StringVar(&f.file, "lease-file", "", "YAML `FILE` of leases, watched")
	f.kube.register(flags)
	f.slurm.register(flags)
}

func (k *kubeFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&k.socket, "kube-socket", "",
		"`SOCKET` of the kubelet's pod-resources API, "+kubeletSocket+" (empty: no Kubernetes)")
	flags.StringVar(&k.pods, "kube-pods", "",
		"`URL` of this node's pods (default: the cluster's API server; or the kubelet's /pods)")
	flags.StringVar(&k.token, "kube-token-file", serviceAccount+"token", "`FILE` of the token for it")
	flags.StringVar(&k.ca, "kube-ca", serviceAccount+"ca.crt", "PEM `FILE` of authorities for it")
	flags.StringVar(&k.resource, "kube-resource", "nvidia.com/", "`PREFIX` of the devices' resources")
	flags.DurationVar(&k.refresh, "kube-refresh", 15*time.Second,
		"how often to look for changed labels of pods")
	flags.IntVar(&k.replicas, "kube-replicas", 0,
		"replicas of a card in time-slicing, for a kubelet that does not tell")
}

func (s *slurmFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&s.command, "slurm-command", "",
		"`COMMAND` that lists jobs, \"scontrol show job --json\" (empty: no Slurm)")
	flags.StringVar(&s.node, "slurm-node", "", "`NAME` of this node in Slurm (default: --node)")
	flags.StringVar(&s.cluster, "slurm-cluster", "slurm", "`NAME` of the cluster, a part of leases")
	flags.DurationVar(&s.every, "slurm-every", 10*time.Second, "how often to ask")
}

func exporterCommand() *cobra.Command {
	f := new(exporterFlags)
	cmd := &cobra.Command{
		Use:   "exporter",
		Short: "Report the usage of this node's GPUs",
		Long: `Report the usage of this node's GPUs: ask who holds them, sample what they do, and send
usage events to Kafka. Run one on every GPU node; it needs a build with cgo and NVIDIA's driver.

Who holds what comes from one or more sources: the kubelet (--kube-socket), Slurm (--slurm-command,
or a prolog and an epilog that call "suanpan lease"), a YAML file (--lease-file), and requests on
--socket. A lease must come from one of them only.

Events are on disk before anything else happens. While Kafka is away they wait there; when the spool
is full, windows grow instead. kill -9 at any moment repeats, and never loses. What is billed is
measured by a clock that nobody can set.`,
		Example: `  suanpan exporter --kafka kafka:9092 --lease-file /etc/suanpan/leases.yaml
  suanpan exporter --kafka kafka:9092 --kube-socket ` + kubeletSocket,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runExporter(cmd.Context(), f, cmd.ErrOrStderr())
		},
	}
	f.register(cmd.Flags())
	return cmd
}

// runExporter puts the exporter together and runs it.
func runExporter(ctx context.Context, f *exporterFlags, stderr io.Writer) error {
	log, err := f.logs.New(stderr)
	if err != nil {
		return err
	}
	if f.node == "" {
		return fmt.Errorf("--node is needed: this machine has no name (%w)", errUsage)
	}
	skus, err := exporter.ParseSKUs(f.skus)
	if err != nil {
		return err
	}
	library, closeLibrary, err := openLibrary(f.nvml)
	if err != nil {
		return err
	}
	defer closeLibrary()
	server, err := daemon.OpenAdmin(ctx, log, f.admin)
	if err != nil {
		return err
	}
	boot, err := exporter.NodeBoot()
	if err != nil {
		return err
	}
	now, zero := exporter.SamplerClock(exporter.NodeClock)
	sampler := gauge.New(library, gauge.Config{
		Every: f.every, Node: f.node, SKU: skus.Of, Processes: f.processes, Now: now, Log: log,
	})
	e, err := exporter.Open(exporter.Config{
		Node: f.node, Region: f.region, Dir: f.data, Window: f.window, Backfill: f.backfill,
		SpoolMax: f.spoolMiB << 20, Clock: exporter.NodeClock, Boot: boot, Sampler: sampler,
		Zero: zero, Log: log,
	})
	if err != nil {
		return err
	}
	defer func() { _ = e.Close() }() // all is on disk
	server.Registry.MustRegister(sampler, e)
	server.AddCheck("driver", func(context.Context) error { return sampler.Healthy() })
	server.AddCheck("kafka", e.Check)
	server.AddCheck("leases", e.CheckSources)
	tasks := []daemon.Task{server.Task(), e.SendTask(f.connect(log)), e.ReportTask()}
	sources, err := f.sources(e, server, &tasks, log)
	if err != nil {
		return err
	}
	var names []string
	for _, source := range sources {
		names = append(names, source.Name())
		tasks = append(tasks, e.PollTask(source, sampler.Healthy))
	}
	e.Only(names...)
	log.Info("running", "admin", server.Addr(), "node", f.node, "sources", names)
	return daemon.Run(ctx, log, server.Registry, append(tasks, exporter.SampleTask(sampler)))
}

// openLibrary opens NVML, or stands in for it on a node without GPUs.
func openLibrary(path string) (gauge.Library, func(), error) {
	if path == "none" {
		return noGPUs{}, func() {}, nil
	}
	library, err := nvml.Open(path)
	if err != nil {
		return nil, nil, err
	}
	return library, func() { _ = library.Close() }, nil
}

// noGPUs is a node without GPUs, whose leases hold other things.
type noGPUs struct{}

func (noGPUs) Devices() ([]nvml.Device, error)        { return nil, nil }
func (noGPUs) Read(nvml.Device) (nvml.Reading, error) { return nvml.Reading{}, nvml.ErrGone }
func (noGPUs) Events() ([]nvml.Event, error)          { return nil, nil }
func (noGPUs) Driver() string                         { return "" }

// connect opens the log. Unlike services, an exporter neither makes topics nor looks at them: it
// needs the right to write usage, and no other.
func (f *exporterFlags) connect(log *slog.Logger) func(context.Context) (pipeline.Appender, error) {
	return func(ctx context.Context) (pipeline.Appender, error) {
		config := f.kafka.config
		config.ClientID = "suanpan-exporter"
		config.SASL.Password = f.kafka.password.Reveal()
		config.Notify = func(err error) { log.Debug("kafka call failed, will be repeated", "error", err) }
		return kafka.Open(ctx, config)
	}
}

// sources opens the sources of leases that are asked for, and adds what serves requests.
func (f *exporterFlags) sources(e *exporter.Exporter, server *daemon.Admin, tasks *[]daemon.Task,
	log *slog.Logger,
) ([]exporter.Source, error) {
	requests, err := lease.OpenRequests(filepath.Join(f.data, "requests.json"), time.Now)
	if err != nil {
		return nil, err
	}
	sources := []exporter.Source{{Source: requests, Every: f.leasesEvery}}
	server.Handle("GET /v1/leases", e.Leases())
	server.Handle("/v1/leases/", exporter.Guard(f.token.Reveal(), e.API(requests)))
	server.Handle("POST /v1/leases", exporter.Guard(f.token.Reveal(), e.API(requests)))
	if f.socket != "" {
		*tasks = append(*tasks, exporter.ServeTask(f.socket, e.API(requests)))
	}
	if f.file != "" {
		sources = append(sources, exporter.Source{Source: lease.NewFile(f.file), Every: f.leasesEvery})
	}
	if f.kube.socket != "" {
		kubelet, err := f.openKubelet(log)
		if err != nil {
			return nil, err
		}
		sources = append(sources, exporter.Source{Source: kubelet, Every: f.leasesEvery})
	}
	if words := strings.Fields(f.slurm.command); len(words) > 0 {
		node := f.slurm.node
		if node == "" {
			node = f.node
		}
		sources = append(sources, exporter.Source{
			Source: lease.NewSlurm(node, f.slurm.cluster, words), Every: f.slurm.every,
		})
	}
	return sources, nil
}

// openKubelet returns the source of leases in Kubernetes.
func (f *exporterFlags) openKubelet(log *slog.Logger) (*lease.Kubelet, error) {
	address := f.kube.pods
	if address == "" {
		host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
		if host == "" {
			return nil, errors.New("--kube-pods is needed: this is no pod of a cluster")
		}
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		address = "https://" + host + ":" + port + "/api/v1/pods?" + url.Values{
			"fieldSelector": {"spec.nodeName=" + f.node}, "resourceVersion": {"0"},
		}.Encode()
	}
	pods, err := lease.NewPods(address, f.kube.token, f.kube.ca)
	if err != nil {
		return nil, err
	}
	return lease.OpenKubelet(lease.KubeletConfig{
		Socket: f.kube.socket, Resource: f.kube.resource, Pods: pods, Refresh: f.kube.refresh,
		Replicas: f.kube.replicas, Log: log,
	})
}
