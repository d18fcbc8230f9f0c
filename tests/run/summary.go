package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// summarize prints the table and reports whether all is well. With `all`, what was skipped counts
// as failed, unless it is optional.
func summarize(w io.Writer, outcomes []outcome, all bool, took time.Duration) bool {
	var passed, failed, skipped int
	rows := make([]string, 0, len(outcomes))
	for _, o := range outcomes {
		demanded := 0
		for _, s := range o.skipped {
			note := ""
			if all && !s.optional() {
				demanded++
				note = " (a failure: " + everything + " is set)"
			}
			_, _ = fmt.Fprintf(w, "SKIPPED %s %s: %s%s\n", o.name, s.what, s.reason, note)
		}
		passed += o.passed
		failed += o.failed + demanded
		skipped += len(o.skipped) - demanded
		rows = append(rows, fmt.Sprintf("%s\t%d\t%d\t%d\t%s\t", o.name, o.passed,
			o.failed+demanded, len(o.skipped)-demanded, o.took.Round(100*time.Millisecond)))
	}
	_, _ = fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(table, "part\tpassed\tfailed\tskipped\ttime\t")
	for _, row := range rows {
		_, _ = fmt.Fprintln(table, row)
	}
	_, _ = fmt.Fprintf(table, "all\t%d\t%d\t%d\t%s\t\n",
		passed, failed, skipped, took.Round(100*time.Millisecond))
	_ = table.Flush()
	if len(outcomes) == 0 || passed+failed == 0 {
		failed++
		_, _ = fmt.Fprintln(w, "nothing ran: that is a failure")
	}
	_, _ = fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	return failed == 0
}
