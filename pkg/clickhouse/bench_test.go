package clickhouse

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
)

// BenchmarkArchive measures the archive's inserts of 450-byte events: what one process sends and
// the other takes, and what CPU each needs.
func BenchmarkArchive(b *testing.B) {
	for _, rows := range []int{25_000, 75_000, 200_000} {
		for _, compress := range []string{"none", "lz4"} {
			for _, telemetry := range []bool{false, true} {
				name := fmt.Sprintf("%d/%s/telemetry=%v", rows, compress, telemetry)
				b.Run(name, func(b *testing.B) { benchmarkArchive(b, rows, compress, telemetry) })
			}
		}
	}
}

func benchmarkArchive(b *testing.B, rows int, compress string, telemetry bool) {
	s := storeWith(b, "?compress="+compress)
	records := make([]pipeline.Record, rows)
	bytes := 0
	for i := range records {
		records[i] = event(i, telemetry)
		bytes += len(records[i].Value)
	}
	b.SetBytes(int64(bytes))
	measure := startMeasure()
	for b.Loop() {
		for i := range records {
			records[i].Offset += int64(rows)
		}
		if err := s.Archive(b.Context(), records); err != nil {
			b.Fatal(err)
		}
	}
	measure.report(b, rows)
}

// storeWith returns a store whose URL has parameters.
func storeWith(b *testing.B, parameters string) *Store {
	b.Helper()
	s := store(b)
	with, err := Open(b.Context(), Config{URL: "http://" + address(b) + "/" + s.database + parameters})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := with.Close(); err != nil {
			b.Error(err)
		}
	})
	return with
}

// event makes a record of about 450 bytes as the replay of a trace does.
func event(i int, telemetry bool) pipeline.Record {
	at := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Second / 40)
	start, end := at.Format(time.RFC3339), at.Add(time.Minute).Format(time.RFC3339)
	readings := ""
	if telemetry {
		readings = fmt.Sprintf(`,"telemetry":{"gpu_util":0.%d,"mem_used_mib":%d,"power_w":%d.5}`, i%100,
			i%80_000, i%700)
	}
	value := fmt.Appendf(nil, `{"specversion":"1.0","type":"suanpan.usage.held.v1",`+
		`"source":"replay/openb","id":"openb-pod-%06d/%d","time":"%s","data":{`+
		`"tenant":"tenant-%02d","project":"ls","lease":"openb-pod-%06d",`+
		`"session":"openb-pod-%06d","session_start":"%s","purchase":"on_demand",`+
		`"region":"openb","start":"%s","end":"%s","held":{"gpu.openb":"%d.%03d",`+
		`"cpu.core":"%d","memory.gib":"%d.%03d"},"labels":{"team":"t%d"}%s}}`,
		i%8152, i, end, i%20, i%8152, i%8152, start, start, end, i%8, i%1000,
		i%96, i%512, i%997, i%50, readings)
	return pipeline.Record{
		Topic: "suanpan.usage", Partition: i % 64, Offset: int64(i), Time: at,
		Key: fmt.Appendf(nil, "tenant-%02d", i%20), Value: value,
	}
}

// BenchmarkWriteHours measures the rater's inserts.
func BenchmarkWriteHours(b *testing.B) {
	const rows = 50_000
	s, changes := store(b), manyHours(rows)
	changes.Sessions = nil
	measure := startMeasure()
	for b.Loop() {
		for i := range changes.Hours {
			changes.Hours[i].Used[0].To++
		}
		if err := s.Write(b.Context(), changes); err != nil {
			b.Fatal(err)
		}
	}
	measure.report(b, rows)
}

// BenchmarkLineItems measures what an analyst waits for: the view over 178,000 hours.
func BenchmarkLineItems(b *testing.B) {
	const rows = 178_000
	s, changes := store(b), manyHours(rows)
	if err := s.Write(b.Context(), changes); err != nil {
		b.Fatal(err)
	}
	for _, query := range []string{
		"SELECT sum(amount), count() FROM line_items",
		"SELECT sum(amount), count() FROM line_items WHERE tenant = 'tenant-07'",
		"SELECT count() FROM spend_daily",
	} {
		b.Run(query, func(b *testing.B) {
			for b.Loop() {
				if err := s.conn.Exec(b.Context(), query); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("AllSums", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.AllSums(b.Context(), "", ""); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Find 1000 hours", func(b *testing.B) {
		need := &rating.Need{Hours: make(map[rating.HourKey]bool)}
		for i := range 1000 {
			need.Hours[changes.Hours[i*178].HourKey] = true
		}
		for b.Loop() {
			known, err := s.Find(b.Context(), need)
			if err != nil || len(known.Hours) != 1000 {
				b.Fatal(len(known.Hours), err)
			}
		}
	})
}

// manyHours makes rows of 20 tenants, each of a session of its own.
func manyHours(rows int) *rating.Changes {
	charges := make([]*rating.Charge, 40)
	for i := range charges {
		charges[i] = &rating.Charge{
			Tenant: fmt.Sprintf("tenant-%02d", i/2), Book: "public",
			BookVersion: 1_764_518_400, SKU: "gpu.a800-80g", Purchase: "on_demand",
			Band: fmt.Sprint(i % 2), Period: "2026-01",
		}
	}
	changes := &rating.Changes{Hours: make([]rating.Row, rows)}
	for i := range changes.Hours {
		r := &changes.Hours[i]
		r.Hour = worldStart.Unix() + int64(i%200)*3600
		r.SessionKey = rating.SessionKey{
			Tenant: fmt.Sprintf("tenant-%02d", i%20), Session: fmt.Sprintf("openb-pod-%06d", i),
		}
		r.SKU, r.Milli = "gpu.a800-80g", 1000
		r.Used = metering.Set{{From: 0, To: 1800}}
		for j := range 1 + i%2 {
			from := uint16(900 * j)
			r.Segments = append(r.Segments, rating.Segment{
				Charge:  charges[2*(i%20)+j],
				Billing: "2026-01", Day: 20_484, From: from, To: from + 900, Seconds: 900,
			})
		}
		changes.Sessions = append(changes.Sessions, rating.SessionRow{
			SessionKey: r.SessionKey, SKU: r.SKU, Milli: r.Milli,
		})
	}
	return changes
}

// measure is the CPU time of this process and of the engine's, at its start.
type measure struct{ own, engine time.Duration }

func startMeasure() measure { return measure{ownCPU(), engineCPU()} }

func (m measure) report(b *testing.B, rows int) {
	total := float64(b.N * rows)
	b.ReportMetric(total/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64((ownCPU()-m.own).Nanoseconds())/total, "own-ns/row")
	b.ReportMetric(float64((engineCPU()-m.engine).Nanoseconds())/total, "engine-ns/row")
}

func ownCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// engineCPU reads the child's time from /proc, in ticks of 10 ms; elsewhere it is 0.
func engineCPU() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", engine.process.PID()))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	ticks := 0
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// BenchmarkBills measures what the invoices of a million hour rows are made of, of few tenants and
// of many, and how much memory the engine has had at most since it started. Periods are read in
// batches, as the biller does.
func BenchmarkBills(b *testing.B) {
	for _, tenants := range []int{20, 10_000} {
		b.Run(fmt.Sprintf("%d tenants", tenants), func(b *testing.B) { benchmarkBills(b, tenants) })
	}
}

func benchmarkBills(b *testing.B, tenants int) {
	const rows, batch = 1_000_000, 300
	s := store(b)
	for from := 0; from < rows; from += 100_000 {
		if err := s.Write(b.Context(), monthOfHours(from, from+100_000, tenants)); err != nil {
			b.Fatal(err)
		}
	}
	var keys []pipeline.PeriodKey
	bounds := make(map[pipeline.PeriodKey][2]int64)
	for i := range tenants {
		key := pipeline.PeriodKey{Tenant: benchTenant(i), Period: "2026-02"}
		keys, bounds[key] = append(keys, key), february
	}
	run := func(name string, want int, f func(b *testing.B, keys []pipeline.PeriodKey) int) {
		b.Run(name, func(b *testing.B) {
			measure := startMeasure()
			for b.Loop() {
				found := 0
				for some := range slices.Chunk(keys, batch) {
					found += f(b, some)
				}
				if found != want {
					b.Fatalf("found %d, want %d", found, want)
				}
			}
			measure.report(b, rows)
			b.ReportMetric(enginePeak(), "engine-peak-MiB")
		})
	}
	run("Uses", tenants, func(b *testing.B, keys []pipeline.PeriodKey) int {
		uses, err := s.Uses(b.Context(), keys)
		if err != nil {
			b.Fatal(err)
		}
		return len(uses)
	})
	run("RowLines", rows, func(b *testing.B, keys []pipeline.PeriodKey) int {
		var hash rating.RowHash
		err := s.RowLines(b.Context(), keys, func(_ pipeline.PeriodKey, line rating.RowLine) error {
			hash.Add(line.Text)
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		return int(hash.Rows)
	})
	run("Doubts", 0, func(b *testing.B, keys []pipeline.PeriodKey) int {
		doubts, err := s.Doubts(b.Context(), keys, bounds)
		if err != nil {
			b.Fatal(err)
		}
		return len(doubts)
	})
	b.Run("FirstPeriods", func(b *testing.B) {
		for b.Loop() {
			first, err := s.FirstPeriods(b.Context())
			if err != nil || len(first) != tenants {
				b.Fatal(len(first), err)
			}
		}
	})
}

func benchTenant(i int) string { return fmt.Sprintf("tenant-%05d", i) }

// monthOfHours makes rows of February, of sessions of ten hours, two to a lease and node.
func monthOfHours(from, until, tenants int) *rating.Changes {
	changes := new(rating.Changes)
	charges := make(map[int]*rating.Charge)
	for i := from; i < until; i++ {
		n, tenant := i/10, i/10%tenants
		if charges[tenant] == nil {
			charges[tenant] = &rating.Charge{
				Tenant: benchTenant(tenant), Book: "public",
				BookVersion: 1_764_518_400, SKU: "gpu.a800-80g", Purchase: "on_demand",
				Band: "standard", Period: "2026-02",
			}
		}
		hour := int64(1_769_904_000 + (n*7+i%10)%640*3600) // two days into the month at most
		row := rating.Row{
			HourKey: rating.HourKey{
				SessionKey: rating.SessionKey{
					Tenant: charges[tenant].Tenant, Session: fmt.Sprintf("openb-pod-%06d", n),
				},
				Hour: hour,
			},
			SKU: "gpu.a800-80g", Milli: 1000, Used: metering.Set{{From: 0, To: 3600}},
			Segments: []rating.Segment{{
				Charge: charges[tenant], Billing: "2026-02", Day: hour / 86_400, To: 3600, Seconds: 3600,
			}},
		}
		changes.Hours = append(changes.Hours, row)
		if i%10 == 0 {
			s := rating.SessionRow{SessionKey: row.SessionKey, SKU: row.SKU, Milli: row.Milli}
			s.Project, s.Lease = fmt.Sprint("project ", n%50), fmt.Sprint("lease ", n/(2*tenants))
			s.Node = fmt.Sprint("node ", tenant)
			s.Labels = []metering.Label{
				{Key: "model", Value: fmt.Sprint("model ", n%30)},
				{Key: "stage", Value: "finetuning"},
				{Key: "team", Value: fmt.Sprint("team ", n%10)},
			}
			changes.Sessions = append(changes.Sessions, s)
		}
	}
	return changes
}

// enginePeak is the most memory that the engine's process had at once, in MiB; elsewhere it is 0.
func enginePeak() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", engine.process.PID()))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		return 0
	}
	return kib / 1024
}
