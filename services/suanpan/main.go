// Command suanpan is the whole of Suanpan in one binary: it runs any of the services, or all of
// them, and talks to them.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	_ "time/tzdata" // the time zones, for machines that have none of their own

	"github.com/spf13/cobra"

	"github.com/suanpan/suanpan/pkg/daemon"
)

// Exit codes.
const (
	exitFailure = 1 // something went wrong
	exitUsage   = 2 // the command line was not understood
)

// errUsage marks errors of the command line.
var errUsage = errors.New("see --help")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := rootCommand().ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "suanpan:", err)
	os.Exit(exitCode(err))
}

// exitCode tells wrong usage from failures. What cobra finds by itself it tells by its text only.
func exitCode(err error) int {
	text := err.Error()
	if errors.Is(err, errUsage) || strings.HasPrefix(text, "unknown command") ||
		strings.HasPrefix(text, "required flag") {
		return exitUsage
	}
	return exitFailure
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "suanpan",
		Short: "Metering and billing of rented GPUs, exact to the second",
		Long: `Suanpan (算盘, the abacus) meters and bills rented GPUs, exact to the second.

Usage events flow through Kafka into a rating service that prices every second, and into ClickHouse
as line items. An invoice is the same to the last digit however events were ordered, repeated,
delayed or cut by a crash.

Start with "suanpan serve": everything in one process, with an embedded Kafka and ClickHouse.

Every flag can also be set by an environment variable (--flush-rows is SUANPAN_FLUSH_ROWS) or by a
line of the YAML file that --config names. Exit codes: 0 done, 1 failed, 2 wrong usage.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return daemon.Bind(cmd)
		},
	}
	daemon.AddConfigFlag(root.PersistentFlags())
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w\n%w: %s --help", err, errUsage, cmd.CommandPath())
	})
	root.AddGroup(
		&cobra.Group{ID: "run", Title: "Run services:"},
		&cobra.Group{ID: "use", Title: "Use them:"},
		&cobra.Group{ID: "offline", Title: "Work offline:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("run", serveCommand(), archiverCommand(), raterCommand(), settlerCommand(), billerCommand(),
		embeddedCommand(), migrateCommand(), exporterCommand())
	add("use", applyCommand(), getCommand(), sendCommand(), replayCommand(), summaryCommand(),
		deadLetterCommand(), closeCommand(), invoiceCommand(), creditNoteCommand(), verifyCommand(),
		rerateCommand(), exportCommand(), budgetCommand(), alertCommand(), gpuCommand(), leaseCommand())
	add("offline", rateCommand(), billCommand())
	root.AddCommand(versionCommand())
	for _, c := range root.Commands() {
		refuseUnknown(c)
	}
	return root
}

// refuseUnknown has commands that only group others refuse a word that is none of them: cobra would
// show help and succeed, as if something had been done.
func refuseUnknown(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		refuseUnknown(c)
	}
	if cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.Args = cobra.NoArgs
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
}
