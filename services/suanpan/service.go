package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/clickhouse"
	"github.com/suanpan/suanpan/pkg/daemon"
	"github.com/suanpan/suanpan/pkg/kafka"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
	"github.com/suanpan/suanpan/services/archiver"
	"github.com/suanpan/suanpan/services/biller"
	"github.com/suanpan/suanpan/services/rater"
	"github.com/suanpan/suanpan/services/settler"
)

// storePauseMin and storePauseMax bound the pause before ClickHouse is tried again.
const (
	storePauseMin = 200 * time.Millisecond
	storePauseMax = 5 * time.Second
)

var errNotConnected = errors.New("not connected yet")

// service is what all long-running commands have in common.
type service struct {
	logs  daemon.LogOptions
	admin daemon.AdminOptions
	kafka kafkaFlags
	store storeFlags

	log    *slog.Logger
	server *daemon.Admin
	client *kafka.Client
	rows   *clickhouse.Store
	opened []io.Closer // in the order in which they were opened
}

func (s *service) register(flags *pflag.FlagSet, admin string) {
	s.logs.Register(flags)
	s.admin.Register(flags, admin)
	s.kafka.register(flags)
	s.store.register(flags)
}

// listen starts logging and the admin server, which is not ready before connect is done.
func (s *service) listen(ctx context.Context, stderr io.Writer) error {
	log, err := s.logs.New(stderr)
	if err != nil {
		return err
	}
	s.log = log
	if s.server, err = daemon.OpenAdmin(ctx, log, s.admin); err != nil {
		return err
	}
	for _, other := range []string{"kafka", "clickhouse"} {
		s.server.AddCheck(other, func(context.Context) error { return errNotConnected })
	}
	return nil
}

// connect connects to the log and to ClickHouse, and checks both when asked for readiness. It waits
// for either while nobody answers.
func (s *service) connect(ctx context.Context) error {
	client, err := s.kafka.open(ctx, s.log)
	if err != nil {
		return err
	}
	s.client, s.opened = client, append(s.opened, client)
	s.server.AddCheck("kafka", func(ctx context.Context) error {
		_, err := client.EndOffsets(ctx, schemas.TopicCatalog)
		return err
	})
	if s.rows, err = s.openStore(ctx); err != nil {
		return err
	}
	s.opened = append(s.opened, s.rows)
	s.server.AddCheck("clickhouse", s.rows.Ping)
	return nil
}

func (s *service) openStore(ctx context.Context) (*clickhouse.Store, error) {
	pause := daemon.Backoff{Min: storePauseMin, Max: storePauseMax}
	for {
		rows, err := s.store.open(ctx)
		var unreachable net.Error
		if err == nil || !errors.As(err, &unreachable) {
			return rows, err
		}
		s.log.Warn("ClickHouse cannot be reached, will be tried again", "error", err)
		if ended := pause.Wait(ctx); ended != nil {
			return nil, fmt.Errorf("%w: %w", ended, err)
		}
	}
}

// close releases what was opened, last first.
func (s *service) close() error {
	var errs []error
	for i := len(s.opened) - 1; i >= 0; i-- {
		errs = append(errs, s.opened[i].Close())
	}
	return errors.Join(errs...)
}

// run supervises the tasks and the admin server until they are told to stop.
func (s *service) run(ctx context.Context, tasks ...daemon.Task) error {
	s.log.Info("running", "admin", s.server.Addr())
	all := append([]daemon.Task{s.server.Task()}, tasks...)
	err := daemon.Run(ctx, s.log, s.server.Registry, all)
	return errors.Join(err, s.close())
}

// raterFlags bound what a rater keeps and how long it waits.
type raterFlags struct {
	stateMiB  int64
	flushRows int
	flushLive time.Duration
	flushBulk time.Duration
}

func (r *raterFlags) register(flags *pflag.FlagSet) {
	flags.Int64Var(&r.stateMiB, "state-mib", 512, "`MiB` of sessions that a rater keeps in memory")
	flags.IntVar(&r.flushRows, "flush-rows", 50_000, "changed `rows` that are written together")
	flags.DurationVar(&r.flushLive, "flush-live", 10*time.Second,
		"how long changes wait for others before they are written")
	flags.DurationVar(&r.flushBulk, "flush-bulk", time.Second,
		"how long they wait while old records are read")
}

func (s *service) rater(flags *raterFlags) (daemon.Task, error) {
	group, err := s.client.Group(rater.Name, schemas.TopicUsage)
	if err != nil {
		return daemon.Task{}, err
	}
	s.opened = append(s.opened, group)
	return rater.Task(s.log, s.server.Registry, pipeline.NewRater(pipeline.RaterConfig{
		Group: group, Rows: s.rows, Log: s.client, Prices: newPrices(s.client),
		Partition:  kafka.Partitioner(schemas.UsagePartitions),
		StateBytes: flags.stateMiB << 20, FlushRows: flags.flushRows,
		FlushLive: flags.flushLive, FlushBulk: flags.flushBulk,
		Background: func(f func()) { go f() }, // the rater waits for it before it ends
	}), fatal), nil
}

func (s *service) archiver() (daemon.Task, error) {
	group, err := s.client.Group(archiver.Name, schemas.TopicUsage)
	if err != nil {
		return daemon.Task{}, err
	}
	s.opened = append(s.opened, group)
	return archiver.Task(s.log, s.server.Registry, pipeline.NewArchiver(group, s.rows), fatal), nil
}

func (s *service) settler(every time.Duration) daemon.Task {
	return settler.Task(s.log, s.server.Registry,
		pipeline.NewSettler(s.rows, newPrices(s.client)), every, fatal)
}

// billerFlags say when periods are closed.
type billerFlags struct {
	schedule string
	grace    time.Duration
	lateDays int
}

func (b *billerFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&b.schedule, "schedule", biller.DefaultSchedule,
		"`cron` expression of the billing job")
	flags.DurationVar(&b.grace, "grace", pipeline.DefaultGrace,
		"how long after its end a period is closed")
	flags.IntVar(&b.lateDays, "late-days", billing.DefaultLateDays,
		"`DAYS` after a period for which its late usage is charged")
}

func (s *service) newBiller(flags *billerFlags) *pipeline.Biller {
	grace := flags.grace
	if grace == 0 {
		grace = -1 // none, not the default
	}
	return pipeline.NewBiller(pipeline.BillerConfig{
		Bills: s.rows, Log: s.client, Billing: s.client.Tail(schemas.TopicBilling),
		Prices: newPrices(s.client), Grace: grace, LateDays: flags.lateDays,
		TimeZoneData: timeZoneData(),
	})
}

func (s *service) biller(flags *billerFlags) (daemon.Task, error) {
	schedule, err := biller.ParseSchedule(flags.schedule)
	if err != nil {
		return daemon.Task{}, err
	}
	return biller.Task(s.log, s.server.Registry, s.newBiller(flags), schedule, fatalToBiller), nil
}

// fatalToBiller says which errors of billing no repetition cures.
func fatalToBiller(err error) bool { return fatal(err) || errors.Is(err, pipeline.ErrLogTooShort) }

// serviceCommand makes the command of one service from the function that makes its task.
func serviceCommand(name, short, long, admin string, own func(*pflag.FlagSet),
	task func(*service) (daemon.Task, error),
) *cobra.Command {
	s := new(service)
	cmd := &cobra.Command{
		Use: name, Short: short, Long: long, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if err := s.listen(ctx, cmd.ErrOrStderr()); err != nil {
				return err
			}
			// What the loop itself outlives it repeats by itself; all else ends the service.
			return s.run(ctx, daemon.Task{
				Name: name, Fatal: always, Run: func(ctx context.Context) error {
					if err := s.connect(ctx); err != nil {
						return err
					}
					t, err := task(s)
					if err != nil {
						return fmt.Errorf("start: %w", err)
					}
					return t.Run(ctx)
				},
			})
		},
	}
	s.register(cmd.Flags(), admin)
	own(cmd.Flags())
	return cmd
}

func raterCommand() *cobra.Command {
	flags := new(raterFlags)
	return serviceCommand("rater", "Turn usage events into line items",
		`Turn usage events into line items: read them from Kafka, price every second, write hour
rows to ClickHouse, then commit. Start as many as you like: they share the partitions. One that is
killed loses nothing and counts nothing twice.`,
		"127.0.0.1:9101", flags.register,
		func(s *service) (daemon.Task, error) { return s.rater(flags) })
}

func archiverCommand() *cobra.Command {
	return serviceCommand("archiver", "Keep every usage record as it came",
		`Keep every usage record as it came: read them from Kafka and write them to ClickHouse, decoding
nothing. Invoices are verified against this archive.`,
		"127.0.0.1:9102", func(*pflag.FlagSet) {},
		func(s *service) (daemon.Task, error) { return s.archiver() })
}

func settlerCommand() *cobra.Command {
	var every time.Duration
	return serviceCommand("settler", "Keep the money of all line items up to date",
		`Keep the money of all line items up to date: sum each charge of the periods that changed,
put its price curve over the sum, and write what it comes to.`,
		"127.0.0.1:9103", func(flags *pflag.FlagSet) {
			flags.DurationVar(&every, "every", 5*time.Second, "how often to look for changes")
		},
		func(s *service) (daemon.Task, error) { return s.settler(every), nil })
}

func billerCommand() *cobra.Command {
	flags, alerts := new(billerFlags), new(alertFlags)
	return serviceCommand("biller", "Close billing periods and issue their invoices",
		`Close billing periods and issue their invoices: once a period is over and its grace has passed,
a close goes into the log behind the tenant's usage; when the rater has recorded it, the invoice is
drafted from the closed rows, and issued unless something is unusual. Budgets are looked at every
minute, and fire each threshold once. It may run twice: what is decided on first counts.`,
		"127.0.0.1:9104", func(set *pflag.FlagSet) {
			flags.register(set)
			alerts.register(set)
		},
		func(s *service) (daemon.Task, error) {
			bill, err := s.biller(flags)
			if err != nil {
				return daemon.Task{}, err
			}
			tasks, err := s.alerts(alerts)
			return together("biller", append(tasks, bill)...), err
		})
}

func migrateCommand() *cobra.Command {
	var store storeFlags
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Apply the data definitions to ClickHouse",
		Long: `Apply the data definitions to ClickHouse. Services do so by themselves when they start;
this command is for those who let nobody else change tables. It is safe to run twice.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := store.open(cmd.Context())
			if err != nil {
				return err
			}
			return rows.Close()
		},
	}
	store.register(cmd.Flags())
	return cmd
}
