// Command suanpan is the whole of Suanpan in one binary: it runs any of the services, or all of them,
// and talks to them.
package main

import (
	"fmt"
	"os"
	_ "time/tzdata" // the same time zones wherever it runs

	"github.com/spf13/cobra"
)

func main() {
	if err := rootCommand().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "suanpan:", err)
		os.Exit(1)
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "suanpan",
		Short:         "Metering and billing of rented GPUs, exact to the second",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(rateCommand())
	return root
}
