package catalog

import (
	"testing"
	"time"
)

// TestPeriodStart_againstBruteForce looks for the start of months second by second, also where
// clocks skip midnight or show it twice.
func TestPeriodStart_againstBruteForce(t *testing.T) {
	for _, zone := range []string{
		"UTC", "Asia/Shanghai", "America/New_York", "America/Sao_Paulo", "Asia/Beirut", "Africa/Cairo",
		"America/Havana", "Asia/Kathmandu", "Australia/Lord_Howe", "Asia/Amman", "Pacific/Apia",
	} {
		location, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		for year := 2009; year <= 2027; year += 3 {
			for month := time.January; month <= time.December; month++ {
				at := time.Date(year, month, 15, 12, 0, 0, 0, location).Unix()
				start := periodStart(at, location)
				in := func(second int64) bool {
					return time.Unix(second, 0).In(location).Month() == month
				}
				if !in(start) || in(start-1) {
					t.Errorf("%s: %d-%02d starts at %s", zone, year, month, time.Unix(start, 0).In(location))
				}
			}
		}
	}
}

// TestBandAt_againstBruteForce holds the end of a band that bandAt tells against every second.
func TestBandAt_againstBruteForce(t *testing.T) {
	documents, err := Parse("b.yaml", []byte(`
kind: PriceBook
name: public
currency: EUR
timezone: America/New_York
bands:
- {name: feast, timezone: Asia/Kathmandu, when: [{calendar: feasts}]}
- {name: night, when: [{from: "22:00", to: "06:30", days: [fri, sat], except: feasts},
    {from: "01:30", to: "02:30"}, {from: "23:59", to: "24:00"}]}
prices: []
`))
	if err != nil {
		t.Fatal(err)
	}
	version := documents[0].body.(*Version)
	feast, err := time.Parse(time.DateOnly, "2026-11-02")
	if err != nil {
		t.Fatal(err)
	}
	holiday := func(_ string, day int64) bool { return day == feast.Unix()/daySeconds }
	from := time.Date(2026, 10, 30, 0, 0, 0, 0, time.UTC).Unix() // clocks go back on 1 November
	until, bands := int64(0), make(map[string]int)
	var last string
	for at := from; at < from+4*daySeconds; at++ {
		name, _ := version.bandAt(at, holiday)
		bands[name]++
		if at < until && name != last {
			t.Fatalf("%s: %s became %s before its end", time.Unix(at, 0).UTC(), last, name)
		}
		if at >= until {
			last, until = version.bandAt(at, holiday)
		}
	}
	if bands["feast"] != 86_400 || bands["night"] == 0 || bands[Standard] == 0 {
		t.Errorf("seconds of bands: %v", bands)
	}
}
