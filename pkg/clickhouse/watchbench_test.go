package clickhouse

import (
	"fmt"
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
