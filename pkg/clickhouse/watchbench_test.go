package clickhouse

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
)

// BenchmarkHourlySpend measures the spend of four weeks, and of one hour, of a month of a million
// hour rows.
func BenchmarkHourlySpend(b *testing.B) {
	const rows, tenants, hour = 1_000_000, 20, 1_771_000_000 / 3600 * 3600
	s := store(b)
	for from := 0; from < rows; from += 100_000 {
		if err := s.Write(b.Context(), monthOfHours(from, from+100_000, tenants)); err != nil {
			b.Fatal(err)
		}
	}
	sums, err := s.AllSums(b.Context(), "", "")
	if err != nil {
		b.Fatal(err)
	}
	settled := make(map[pipeline.PeriodKey][]rating.Settled)
	per := catalog.Per{Name: "hour", Seconds: 3600}
	for charge, q := range sums {
		key := pipeline.PeriodKey{Tenant: charge.Tenant, Period: charge.Period}
		settled[key] = append(settled[key], rating.Settled{
			Charge: charge, Quantity: q, UnitPrice: money.MustParse("1"), Per: per, ListNano: per.Nano(),
			Amount: money.MustParse("1234567.891"), Currency: "CNY", BaseUnit: "unit-second",
		})
	}
	if err := s.WriteSettlements(b.Context(), settled, time.Now()); err != nil {
		b.Fatal(err)
	}
	for _, hours := range []int64{28 * 24, 1} {
		b.Run(fmt.Sprintf("%d hours", hours), func(b *testing.B) {
			for b.Loop() {
				n := 0
				err := s.HourlySpend(b.Context(), hour-3600*hours, hour, func(alert.HourSpend) error {
					n++
					return nil
				})
				if err != nil || n == 0 {
					b.Fatal(n, err)
				}
			}
			b.ReportMetric(enginePeak(), "engine-peak-MiB")
		})
	}
}

// fillWatch makes the windows of sessions that end up to watchEnd, one of each length, of two SKUs
// and four cards each. The engine makes them itself: they would be long on their way.
func fillWatch(b *testing.B, s *Store, sessions, windows int, length time.Duration) {
	b.Helper()
	for _, statement := range []string{
		`INSERT INTO sessions (tenant, session, sku, held, project, lease, node, version)
			SELECT concat('tenant-', toString(number % 50)), concat('session-', toString(number)),
				sku, 4000, concat('project-', toString(number % 200)), concat('lease-', toString(number)),
				concat('node-', toString(intDiv(number, 2))), 1
			FROM numbers({sessions}) ARRAY JOIN ['gpu.a800-80g', 'cpu.core'] AS sku`,
		`INSERT INTO telemetry (tenant, node, session, start, time, gpu_util, mem_used_mib,
				mem_total_mib, final, devices, partition, offset)
			SELECT concat('tenant-', toString(n % 50)), concat('node-', toString(intDiv(n, 2))),
				concat('session-', toString(n)), time - toIntervalSecond({length}),
				toDateTime64({end}, 3, 'UTC') - toIntervalSecond(w * {length}) AS time,
				(cityHash64(n, w) % 1000) / 1000, 40000, 4 * 81920, false,
				arrayMap(d -> concat('GPU-', toString(n), '-', toString(d)), range(4)), n % 64, number
			FROM (SELECT number, number % {sessions} AS n, {windows} - 1 - intDiv(number, {sessions}) AS w
				FROM numbers({sessions} * {windows}))
			SETTINGS max_partitions_per_insert_block = 1000`,
	} {
		query := strings.NewReplacer("{sessions}", fmt.Sprint(sessions),
			"{windows}", fmt.Sprint(windows), "{length}", fmt.Sprint(int(length.Seconds())),
			"{end}", fmt.Sprint(watchEnd.Unix())).Replace(statement)
		if err := s.conn.Exec(b.Context(), query); err != nil {
			b.Fatal(err)
		}
	}
}

// watchEnd is when the newest windows of benchmarks end.
var watchEnd = time.Date(2026, 1, 20, 0, 0, 0, 0, time.UTC)

// BenchmarkWatch measures what policies look at, of 20,000 sessions: a week of windows of an hour,
// and six hours of windows of a minute, as exporters send them.
func BenchmarkWatch(b *testing.B) {
	const sessions = 20_000
	now := watchEnd.Add(time.Minute)
	for _, c := range []struct {
		windows int
		length  time.Duration
	}{{7 * 24, time.Hour}, {6 * 60, time.Minute}} {
		s := store(b)
		fillWatch(b, s, sessions, c.windows, c.length)
		from := watchEnd.Add(-time.Duration(c.windows) * c.length)
		run := func(name string, want int, f func() (int, error)) {
			b.Run(fmt.Sprintf("%d x %s/%s", c.windows, c.length, name), func(b *testing.B) {
				for b.Loop() {
					if n, err := f(); err != nil || n != want {
						b.Fatalf("%d of %d, %v", n, want, err)
					}
				}
				b.ReportMetric(enginePeak(), "engine-peak-MiB")
			})
		}
		for _, span := range []time.Duration{10 * time.Minute, 30 * time.Minute, 24 * time.Hour} {
			run(fmt.Sprintf("Loads of %s", span), sessions, func() (int, error) {
				loads, err := s.Loads(b.Context(), now, span)
				return len(loads), err
			})
		}
		run("Cards", 4*sessions, func() (int, error) {
			cards, err := s.Cards(b.Context(), from, watchEnd)
			return len(cards), err
		})
		run("BusyBetween", 200, func() (int, error) {
			busy, err := s.BusyBetween(b.Context(), from, watchEnd)
			return len(busy), err
		})
		run("BusyBetween of a day", 200, func() (int, error) {
			busy, err := s.BusyBetween(b.Context(), watchEnd.Add(-24*time.Hour), watchEnd)
			return len(busy), err
		})
		run("Silent", sessions, func() (int, error) {
			silent, _, err := s.Silent(b.Context(), now.Add(10*time.Minute), 5*time.Minute, time.Hour)
			return len(silent), err
		})
	}
}
