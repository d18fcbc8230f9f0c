//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/suanpan/suanpan/schemas"
)

// liveCatalog is a book whose on-demand second costs price, and its tenants.
func liveCatalog(price, zone, from string) string {
	book := `kind: PriceBook
name: live
currency: CNY
timezone: ` + zone + `
effective_from: ` + from + `
prices:
- {sku: gpu.live, per: second, price: "` + price + `"}
- {sku: gpu.live, per: second, purchase: spot, market: {floor: "0.1", cap: "1"}}
`
	for i := range liveTenants {
		book += fmt.Sprintf("---\nkind: Tenant\nname: live-%d\nprice_book: live\n"+
			"effective_from: 2026-01-01T00:00:00Z\n", i)
	}
	return book
}

const (
	liveTenants = 6
	liveSeconds = 24
)

// TestLivePrices sends usage before the prices of its seconds are known. While it waits, market
// prices and a new version of the book come, and the partitions move from one rater to another.
func TestLivePrices(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *system) {
		zone := noonZone(time.Now()) // all of it is in one month
		write(t, s.path("first.yaml"), liveCatalog("10", zone, "2026-01-01T00:00:00Z"))
		s.run("apply", "-f", s.path("first.yaml"))
		flags := []string{"--flush-live", "300ms", "--flush-bulk", "100ms"}
		s.startService("rater 1", "rater", flags...)
		s.startService("rater 2", "rater", flags...)
		usage := liveUsage(time.Now().Add(time.Second).Truncate(time.Second))
		s.runWith(usage, "send", "-")
		for i := range liveSeconds / 2 {
			tick := time.Now()
			s.runWith(livePrice(i, tick.Add(1500*time.Millisecond)), "send", "-")
			switch i {
			case 2:
				from := time.Now().Add(10 * time.Second).UTC().Format(time.RFC3339)
				write(t, s.path("second.yaml"), liveCatalog("12.5", zone, from))
				s.run("apply", "-f", s.path("second.yaml"))
			case 4:
				s.kill("rater 1")
				s.startService("rater 3", "rater", flags...)
			case 7: // too late, so nobody takes it
				s.runWith(livePrice(100, tick.Add(-15*time.Second)), "send", "-")
			}
			time.Sleep(time.Until(tick.Add(2 * time.Second)))
		}
		write(t, s.path("both.yaml"), readFile(t, s.path("first.yaml"))+"---\n"+
			readFile(t, s.path("second.yaml")))
		write(t, s.path("events.jsonl"), acceptedPrices(t, s)+usage)
		want := s.run("rate", "--catalog", s.path("both.yaml"), "--events", s.path("events.jsonl"),
			"--summary")
		if strings.Count(want, "\n") != 1+2*liveTenants {
			t.Errorf("rate offline prints\n%s", want)
		}
		s.waitSummary(want, time.Minute)
		got, err := s.query("SELECT uniqExact(splitByChar('|', seg_charge)[2]), " +
			"uniqExact(splitByChar('|', seg_charge)[9]) > 4 FROM suanpan.hours FINAL " +
			"ARRAY JOIN seg_charge")
		if err != nil || got != "2\t1\n" {
			t.Errorf("the charges have %q versions of the book and spot prices, %v", got, err)
		}
	})
}

// liveUsage is a spot and an on-demand session of each tenant, reported in windows of two seconds.
func liveUsage(start time.Time) string {
	clock := func(second int) string {
		return start.Add(time.Duration(second) * time.Second).UTC().Format(time.RFC3339)
	}
	var out strings.Builder
	for from := 0; from < liveSeconds; from += 2 {
		for tenant := range liveTenants {
			for _, purchase := range []string{"spot", "on_demand"} {
				fmt.Fprintf(&out, `{"specversion":"1.0","type":"suanpan.usage.held.v1",`+
					`"source":"/live","id":"%s-%d-%d","data":{"tenant":"live-%d","project":"p",`+
					`"lease":"%s","session":"%s","session_start":"%s","purchase":"%s","region":"r",`+
					`"start":"%s","end":"%s","held":{"gpu.live":"1.5"}}}`+"\n", purchase, tenant, from,
					tenant, purchase, purchase, clock(0), purchase, clock(from), clock(from+2))
			}
		}
	}
	return out.String()
}

func livePrice(i int, at time.Time) string {
	return fmt.Sprintf(`{"specversion":"1.0","type":"suanpan.market.price.v1","source":"/live",`+
		`"id":"m%d","data":{"sku":"gpu.live","region":"r","price":"%d.%d","time":"%s"}}`+"\n", i,
		1+i%5, i%10, at.UTC().Format(time.RFC3339Nano))
}

// acceptedPrices returns the market prices that were published before they took effect.
func acceptedPrices(t *testing.T, s *system) string {
	t.Helper()
	var out strings.Builder
	late := 0
	for _, r := range readTopic(t, s, schemas.TopicMarket) {
		var e struct{ Data struct{ Time time.Time } }
		if err := json.Unmarshal(r.Value, &e); err != nil {
			t.Fatal(err)
		}
		if e.Data.Time.Before(r.Time) {
			late++
			continue
		}
		out.Write(append(r.Value, '\n'))
	}
	t.Logf("%d prices came too late", late)
	if late == 0 || late > liveSeconds/4 {
		t.Errorf("%d prices came too late: at least one must, and most must not", late)
	}
	return out.String()
}
