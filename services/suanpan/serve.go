package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/suanpan/suanpan/pkg/daemon"
	embeddedclickhouse "github.com/suanpan/suanpan/services/embedded/clickhouse"
	embeddedkafka "github.com/suanpan/suanpan/services/embedded/kafka"
)

// engineStop is how long the embedded ClickHouse may take to end.
const engineStop = 15 * time.Second

// serveOptions say where the embedded parts listen and keep their data.
type serveOptions struct {
	data       string
	kafka      string
	clickhouse embeddedclickhouse.Config
	memoryMiB  int64
	every      time.Duration
	rater      raterFlags
	biller     billerFlags
	alerts     alertFlags
}

func serveCommand() *cobra.Command {
	s := new(service)
	o := new(serveOptions)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run everything on one machine",
		Long: `Run everything on one machine: an embedded Kafka and ClickHouse, the archiver, a
rater, the settler and the biller. All data is in one folder; an acknowledged record survives a
crash and a loss of power.

Other commands find it at their default addresses.`,
		Example: `  suanpan serve --data /var/lib/suanpan
  suanpan apply -f deployments/example/catalog.yaml
  curl 'http://127.0.0.1:8123/?database=suanpan' \
    -d 'SELECT * FROM spend_daily FORMAT PrettyCompact'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.listen(cmd.Context(), cmd.ErrOrStderr()); err != nil {
				return err
			}
			return s.serve(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	s.logs.Register(flags)
	s.admin.Register(flags, "127.0.0.1:9100")
	flags.StringVar(&o.data, "data", "suanpan-data", "`folder` for all data")
	flags.StringVar(&o.kafka, "kafka-listen", "127.0.0.1:9092", "`host:port` of the embedded Kafka")
	flags.StringVar(&o.clickhouse.Listen, "clickhouse-listen", embeddedclickhouse.DefaultListen,
		"`host:port` of the embedded ClickHouse (HTTP)")
	flags.StringVar(&o.clickhouse.Library, "lib", "",
		"`file` of libchdb (default: "+embeddedclickhouse.EnvLibrary+", else where set-up puts it)")
	flags.Int64Var(&o.memoryMiB, "clickhouse-memory-mib", embeddedclickhouse.DefaultMemoryBytes>>20,
		"`MiB` that the embedded ClickHouse may take")
	flags.DurationVar(&o.every, "settle-every", 5*time.Second, "how often money is brought up to date")
	o.rater.register(flags)
	o.biller.register(flags)
	o.alerts.register(flags)
	return cmd
}

func (s *service) serve(ctx context.Context, o *serveOptions) error {
	// Both outlive ctx: they are stopped last.
	broker, err := embeddedkafka.Start(context.WithoutCancel(ctx), embeddedkafka.Config{
		DataDir: filepath.Join(o.data, "kafka"), Listen: o.kafka,
	}, s.log)
	if err != nil {
		return err
	}
	defer broker.Close()
	o.clickhouse.DataDir = filepath.Join(o.data, "clickhouse")
	o.clickhouse.MemoryBytes = o.memoryMiB << 20
	engine, err := startClickHouse(ctx, o.clickhouse)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), engineStop)
		defer cancel()
		_ = engine.Stop(ctx) // killed when it takes longer; its rows are safe all the same
	}()
	// The address is known only now where the port was left to the system.
	o.clickhouse.Listen = engine.Addr()
	s.kafka.config.Brokers = []string{broker.Addr()}
	s.store.config.URL = "http://" + engine.Addr() + "/suanpan"
	if err := s.connect(ctx); err != nil {
		return errors.Join(err, s.close())
	}
	tasks, err := s.all(o)
	if err != nil {
		return errors.Join(err, s.close())
	}
	s.log.Info("serving", "kafka", broker.Addr(), "clickhouse", s.store.config.URL, "data", o.data)
	return s.run(ctx, append(tasks, s.keepClickHouse(&engine, o.clickhouse))...)
}

// all makes the tasks of all services.
func (s *service) all(o *serveOptions) ([]daemon.Task, error) {
	archive, err := s.archiver()
	if err != nil {
		return nil, err
	}
	rate, err := s.rater(&o.rater)
	if err != nil {
		return nil, err
	}
	bill, err := s.biller(&o.biller)
	if err != nil {
		return nil, err
	}
	alerts, err := s.alerts(&o.alerts)
	if err != nil {
		return nil, err
	}
	return append(alerts, archive, rate, s.settler(o.every), bill), nil
}

func startClickHouse(ctx context.Context, config embeddedclickhouse.Config) (
	*embeddedclickhouse.Process, error,
) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the program of the embedded ClickHouse: %w", err)
	}
	return embeddedclickhouse.Start(ctx, self, []string{"embedded", "clickhouse"}, config, os.Stderr)
}

// keepClickHouse starts the engine again whenever it has ended.
func (s *service) keepClickHouse(engine **embeddedclickhouse.Process,
	config embeddedclickhouse.Config,
) daemon.Task {
	return daemon.Task{Name: "clickhouse", Run: func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-(*engine).Done():
			}
			s.log.Error("embedded ClickHouse ended, starting it again", "error", (*engine).Wait())
			next, err := startClickHouse(ctx, config)
			if err != nil {
				return err
			}
			*engine = next
		}
	}}
}

func embeddedCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "embedded",
		Short: "Run only the embedded Kafka or ClickHouse",
	}
	cmd.AddCommand(embeddedKafkaCommand(), embeddedClickHouseCommand())
	return cmd
}

// embeddedService is what the commands of the embedded parts have in common.
type embeddedService struct {
	logs  daemon.LogOptions
	admin daemon.AdminOptions
}

func (e *embeddedService) register(cmd *cobra.Command) {
	e.logs.Register(cmd.Flags())
	e.admin.Register(cmd.Flags(), "") // off, as several may run on one machine
}

// run runs one task beside the admin server until it is told to stop.
func (e *embeddedService) run(ctx context.Context, stderr io.Writer,
	task func(*slog.Logger) daemon.Task,
) error {
	log, err := e.logs.New(stderr)
	if err != nil {
		return err
	}
	server, err := daemon.OpenAdmin(ctx, log, e.admin)
	if err != nil {
		return err
	}
	return daemon.Run(ctx, log, server.Registry, []daemon.Task{server.Task(), task(log)})
}

// always makes every error one that no restart within the process cures.
func always(error) bool { return true }

func embeddedKafkaCommand() *cobra.Command {
	var config embeddedkafka.Config
	var service embeddedService
	cmd := &cobra.Command{
		Use:   "kafka",
		Short: "Run the embedded Kafka",
		Long: `Run the embedded Kafka: one broker that speaks the Kafka protocol and keeps its
records in a folder. An append is acknowledged after an fsync.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return service.run(cmd.Context(), cmd.ErrOrStderr(), func(log *slog.Logger) daemon.Task {
				return daemon.Task{Name: "kafka", Fatal: always, Run: func(ctx context.Context) error {
					broker, err := embeddedkafka.Start(ctx, config, log)
					if err != nil {
						return err
					}
					log.Info("serving", "kafka", broker.Addr())
					<-ctx.Done()
					broker.Close()
					return nil
				}}
			})
		},
	}
	service.register(cmd)
	cmd.Flags().StringVar(&config.Listen, "listen", "127.0.0.1:9092", "`host:port` to listen on")
	cmd.Flags().StringVar(&config.Advertise, "advertise", "",
		"`host:port` that clients are told to use (default: --listen)")
	cmd.Flags().StringVar(&config.DataDir, "data", "suanpan-data/kafka", "`folder` of the records")
	return cmd
}

func embeddedClickHouseCommand() *cobra.Command {
	var config embeddedclickhouse.Config
	var service embeddedService
	cmd := &cobra.Command{
		Use:   "clickhouse",
		Short: "Run the embedded ClickHouse",
		Long: `Run the embedded ClickHouse: the ClickHouse engine as a library, with ClickHouse's
HTTP interface. Clients of ClickHouse, curl and BI tools use it like a server.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return service.run(cmd.Context(), cmd.ErrOrStderr(), func(log *slog.Logger) daemon.Task {
				return daemon.Task{
					Name: "clickhouse", Fatal: always,
					Run: func(ctx context.Context) error {
						return embeddedclickhouse.Serve(ctx, config, log)
					},
				}
			})
		},
	}
	service.register(cmd)
	registerGoFlags(cmd, &config)
	return cmd
}

// registerGoFlags takes over the flags that the embedded ClickHouse declares by itself.
func registerGoFlags(cmd *cobra.Command, config *embeddedclickhouse.Config) {
	flags := flag.NewFlagSet(cmd.Name(), flag.ContinueOnError)
	config.RegisterFlags(flags)
	cmd.Flags().AddGoFlagSet(flags)
}
