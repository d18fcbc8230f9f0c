package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"

	embeddedclickhouse "github.com/suanpan/suanpan/services/embedded/clickhouse"
)

// cpu is the processor time that a process spent, in seconds.
type cpu struct {
	Process string  `json:"process"`
	Seconds float64 `json:"seconds"`
}

// measure is how long something took.
type measure struct {
	Name    string  `json:"name"`
	Events  int64   `json:"events"`
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"events_per_second"`
	CPU     []cpu   `json:"cpu,omitempty"`
}

// report is what a run found. What was not measured is 0.
type report struct {
	Cores         int       `json:"cores"`
	Go            string    `json:"go"`
	Platform      string    `json:"platform"`
	LibChDB       string    `json:"libchdb"`
	EngineVersion string    `json:"clickhouse,omitempty"`
	Fleet         string    `json:"fleet"`
	Windows       int64     `json:"windows"`
	Rows          int       `json:"hour_rows"`
	Written       int       `json:"rows_written"` // sessions included, and states that others replaced
	Charges       int       `json:"summary_lines"`
	Measures      []measure `json:"measures"`

	RatedSeconds      float64 `json:"rated_seconds,omitempty"`
	ArchivedSeconds   float64 `json:"archived_seconds,omitempty"`
	AloneLoadSeconds  float64 `json:"alone_load_seconds,omitempty"`
	AloneGroupSeconds float64 `json:"alone_group_seconds,omitempty"`
	RaterMiB          float64 `json:"rater_peak_mib,omitempty"`
	ArchiverMiB       float64 `json:"archiver_peak_mib,omitempty"`
	KafkaMiB          float64 `json:"kafka_peak_mib,omitempty"`
	ClickHouseMiB     float64 `json:"clickhouse_peak_mib,omitempty"`
	BillerMiB         float64 `json:"biller_peak_mib,omitempty"`
	BillerEngineMiB   float64 `json:"biller_clickhouse_peak_mib,omitempty"`

	NodeCore  float64 `json:"node_core_share,omitempty"`
	NodeMiB   float64 `json:"node_peak_mib,omitempty"`
	NodeBytes int     `json:"node_metrics_bytes,omitempty"`

	Latencies []latency `json:"alert_latencies,omitempty"`

	Ratios []ratio `json:"ratios,omitempty"`
}

// ratio compares two measures: how many times as fast the first is.
type ratio struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// add takes a measure in.
func (r *report) add(m measure) {
	m.Rate = float64(m.Events) / m.Seconds
	r.Measures = append(r.Measures, m)
	fmt.Fprintf(os.Stderr, "bench:   %s: %.1f s\n", m.Name, m.Seconds)
}

// rate is that of a measure, 0 where it was not made.
func (r *report) rate(name string) float64 {
	for _, m := range r.Measures {
		if m.Name == name {
			return m.Rate
		}
	}
	return 0
}

// finish adds what follows from the measures.
func (r *report) finish() {
	r.Cores, r.Go = runtime.NumCPU(), runtime.Version()
	r.Platform = runtime.GOOS + "/" + runtime.GOARCH
	r.LibChDB = embeddedclickhouse.LibraryVersion
	path, read, write := r.rate(namePath), r.rate(nameRead), r.rate(nameWrite)
	if path > 0 && read > 0 && write > 0 {
		r.Ratios = append(r.Ratios, ratio{"path / slower limit", path / min(read, write)})
	}
	if alone := r.rate(nameAlone); path > 0 && alone > 0 {
		r.Ratios = append(r.Ratios, ratio{"path / ClickHouse alone", path / alone})
	}
}

// print shows the report as JSON or as a table.
func (r *report) print(out io.Writer, asJSON bool) error {
	r.finish()
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	var text bytes.Buffer
	if len(r.Measures) > 0 {
		if err := r.printMeasures(&text); err != nil {
			return err
		}
	}
	if r.RatedSeconds > 0 {
		fmt.Fprintf(&text, "path: rated after %.1f s, archived after %.1f s; %d rows written; "+
			"the bill is that of 'suanpan rate' in all %d lines\n", r.RatedSeconds,
			r.ArchivedSeconds, r.Written, r.Charges)
		fmt.Fprintf(&text, "peak memory, a process each: rater %.0f MiB, archiver %.0f MiB, "+
			"kafka %.0f MiB, clickhouse %.0f MiB\n", r.RaterMiB, r.ArchiverMiB, r.KafkaMiB,
			r.ClickHouseMiB)
	}
	if r.BillerMiB > 0 {
		fmt.Fprintf(&text, "peak memory of closing: biller %.0f MiB, clickhouse %.0f MiB, what wrote "+
			"the rows before included\n", r.BillerMiB, r.BillerEngineMiB)
	}
	if r.AloneLoadSeconds > 0 {
		fmt.Fprintf(&text, "ClickHouse alone: load %.1f s, group %.1f s, no deduplication, no price\n",
			r.AloneLoadSeconds, r.AloneGroupSeconds)
	}
	if r.NodeCore > 0 {
		fmt.Fprintf(&text, "exporter of %d GPUs in %d MIG devices, a sample a second: %.2f %% of a core "+
			"(at most %.0f %%), %.0f MiB (at most %d), %d KiB of metrics\n", nodeGPUs,
			nodeGPUs*nodeParts, 100*r.NodeCore, 100*nodeCoreMost, r.NodeMiB, nodeMiBMost,
			r.NodeBytes>>10)
	}
	for _, l := range r.Latencies {
		fmt.Fprintf(&text, "from the event that crosses a budget to its webhook, by a tick of %.0f s: "+
			"%.1f to %.1f s, median %.1f s, of %d (at most %.0f s)\n", l.Tick, l.Took[0],
			l.Took[len(l.Took)-1], l.Median, len(l.Took), l.Most)
	}
	for _, q := range r.Ratios {
		fmt.Fprintf(&text, "%s: %.2f\n", q.Name, q.Value)
	}
	_, err := out.Write(text.Bytes())
	return err
}

// printMeasures shows what took how long, as a table.
func (r *report) printMeasures(text *bytes.Buffer) error {
	fmt.Fprintf(text, "%d cores, %s %s, libchdb %s (ClickHouse %s)\n", r.Cores, r.Go, r.Platform,
		r.LibChDB, r.EngineVersion)
	fmt.Fprintf(text, "%s: %d windows, %d hour rows\n\n", r.Fleet, r.Windows, r.Rows)
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tseconds\tevents/s\t  CPU seconds")
	width := 0
	for _, m := range r.Measures {
		width = max(width, len(m.Name))
	}
	for _, m := range r.Measures {
		fmt.Fprintf(table, "%-*s\t%.1f\t%.0f\t  %s\n", width, m.Name, m.Seconds, m.Rate, m.spent())
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	fmt.Fprintln(text)
	return nil
}

// spent shows the processor time by process.
func (m *measure) spent() string {
	var parts []string
	for _, c := range m.CPU {
		parts = append(parts, fmt.Sprintf("%s %.1f", c.Process, c.Seconds))
	}
	return strings.Join(parts, ", ")
}
