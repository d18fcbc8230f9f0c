package rating

import (
	"fmt"
	"testing"

	"github.com/suanpan/suanpan/pkg/metering"
)

// BenchmarkRate rates one-minute windows of a fleet of 1000 sessions with three SKUs each, in the
// order of time, as exporters send them; rows are drained every 50,000 events.
func BenchmarkRate(b *testing.B) {
	const sessions = 1000
	prices := lawPrices(b)
	fleet := make([]metering.Event, sessions)
	for i := range fleet {
		start := metering.InstantOf(lawBase)
		fleet[i] = metering.Event{
			Kind: metering.Held, Tenant: "acme", Session: fmt.Sprintf("s%d", i),
			Facts: metering.Facts{
				Project: "p", Lease: fmt.Sprintf("l%d", i), Purchase: "on_demand", SessionStart: start,
				Labels: []metering.Label{{Key: "stage", Value: "pretraining"}, {Key: "team", Value: "a"}},
			},
			Amounts: []metering.Amount{
				{SKU: "flat", Milli: 8000}, {SKU: "steps", Milli: 64_000}, {SKU: "volume", Milli: 512_000},
			},
		}
	}
	var r *Rater
	b.ReportAllocs()
	b.ResetTimer()
	for n := range b.N {
		minute := int64(n / sessions)
		if n%(sessions*1440) == 0 { // a new day of it, from nothing
			r = NewRater(prices, nil)
		}
		e := &fleet[n%sessions]
		minute %= 1440
		e.Start = metering.InstantOf(lawBase + 60*minute)
		e.End = metering.InstantOf(lawBase + 60*minute + 60)
		if why := r.Rate(e, Position{Offset: int64(n)}, 0); why != nil {
			b.Fatal(why)
		}
		if n%50_000 == 49_999 {
			changes := r.Drain()
			r.Acknowledge(&changes)
			r.Evict(256 << 20)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
