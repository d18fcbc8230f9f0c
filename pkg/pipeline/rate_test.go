package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/suanpan/suanpan/schemas"
)

// newFakeRater returns a rater that writes at once whatever it has rated.
func newFakeRater(t *testing.T, f *fake, change func(*RaterConfig)) (*Rater, *topic, *topic) {
	t.Helper()
	prices, documents, market := openPrices(t)
	config := RaterConfig{
		Group: f, Rows: f, Log: f, Prices: prices, Partition: partitionOf, FlushRows: 1,
	}
	if change != nil {
		change(&config)
	}
	return NewRater(config), documents, market
}

func rateStep(t *testing.T, r *Rater, now time.Time, fails bool) RateReport {
	t.Helper()
	report, err := r.Step(t.Context(), now)
	if (err != nil) != fails {
		t.Fatalf("step: %v, fails must be %t", err, fails)
	}
	return report
}

func wantDone(t *testing.T, f *fake, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, f.take()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func wantCommitted(t *testing.T, f *fake, want map[int]int64) {
	t.Helper()
	if diff := cmp.Diff(want, f.committed); diff != "" {
		t.Errorf("committed (-want +got):\n%s", diff)
	}
}

func TestRater_commitsLast(t *testing.T) {
	f := newFake()
	r, _, _ := newFakeRater(t, f, nil)
	lost := usage("blue", 0, noon, -60)
	lost.Partition = 0
	bad := Record{Topic: schemas.TopicUsage, Offset: 1, Time: noon, Key: []byte("acme"), Value: []byte("{")}
	f.fetch = [][]Record{{lost, bad, usage("acme", 2, noon, -60), usage("blue", 7, noon, -60)}}
	report := rateStep(t, r, noon, false)
	wantDone(t, f, "join", "append to suanpan.usage", "write letters", "append to suanpan.deadletter",
		"write rows", "commit")
	wantCommitted(t, f, map[int]int64{0: 3, 1: 8})
	if report.Accepted != 2 || report.Forwarded != 1 || report.Rejected["invalid_json"] != 1 ||
		report.Records != 4 || report.Commits != 1 {
		t.Errorf("report %+v", report)
	}
}

func TestRater_repeatsAWriteUntilItIsDone(t *testing.T) {
	for _, failing := range []string{"write rows", "write letters", "append to suanpan.deadletter", "commit"} {
		f := newFake()
		r, _, _ := newFakeRater(t, f, nil)
		bad := Record{Topic: schemas.TopicUsage, Offset: 1, Time: noon, Value: []byte("{")}
		f.fetch = [][]Record{{usage("acme", 0, noon, -60), bad}}
		f.fails[failing] = errFake
		rateStep(t, r, noon, true)
		if len(f.committed) > 0 {
			t.Errorf("%s failed, but %v is committed", failing, f.committed)
		}
		f.take()
		rateStep(t, r, noon.Add(retryMin/2), false)
		wantDone(t, f) // it waits a little
		delete(f.fails, failing)
		rateStep(t, r, noon.Add(time.Second), false)
		wantDone(t, f, "write letters", "append to suanpan.deadletter", "write rows", "commit")
		wantCommitted(t, f, map[int]int64{0: 2})
		if got, want := f.quantity("acme"), "120.000000000"; got != want { // with the minimum
			t.Errorf("%s failed once: quantity %s, want %s", failing, got, want)
		}
	}
}

func TestRater_rateGoesOnWhileAWriteIsUnderWay(t *testing.T) {
	f := newFake()
	f.hold = make(chan struct{})
	r, _, _ := newFakeRater(t, f, func(c *RaterConfig) {
		c.Background = func(write func()) { go write() }
		c.FlushRows = 3
		c.FlushLive = 0
	})
	f.fetch = [][]Record{
		{usage("acme", 0, noon, -60), usage("blue", 0, noon, -60)},
		{usage("acme", 1, noon, -120)},
		{usage("acme", 2, noon, -3600)},
		{usage("acme", 3, noon, -10000)},
	}
	for i := range 4 {
		r.config.FlushLive = time.Nanosecond
		report := rateStep(t, r, noon.Add(time.Duration(i)*time.Second), false)
		if report.Commits > 0 {
			t.Errorf("step %d: committed before the rows are written", i)
		}
		if report.Pending <= i {
			t.Errorf("step %d: %d rows pending, at least %d were rated", i, report.Pending, i+1)
		}
	}
	if len(f.committed) > 0 {
		t.Errorf("committed %v while the write is under way", f.committed)
	}
	close(f.hold)
	for i, pending := 0, 1; pending > 0; i++ {
		if i == 1000 {
			t.Fatalf("committed %v, %d rows pending: no progress", f.committed, pending)
		}
		pending = rateStep(t, r, noon.Add(time.Minute), false).Pending
		time.Sleep(time.Millisecond)
	}
	if f.committed[0] != 4 {
		t.Errorf("committed %v with nothing pending, want 4", f.committed)
	}
	r.Stop()
}

func TestRater_stopEndsAWriteThatIsUnderWay(t *testing.T) {
	f := newFake()
	f.hold = make(chan struct{}) // for ever: only the write's context ends it
	r, _, _ := newFakeRater(t, f, func(c *RaterConfig) {
		c.Background = func(write func()) { go write() }
	})
	f.fetch = [][]Record{{usage("acme", 0, noon, -60)}}
	rateStep(t, r, noon, false)
	r.Stop() // goleak sees a write that is left behind
	if len(f.committed) > 0 {
		t.Errorf("committed %v", f.committed)
	}
}

func TestRater_isBlockedWhileAWriteFails(t *testing.T) {
	f := newFake()
	r, _, _ := newFakeRater(t, f, nil)
	f.fails["write rows"] = errFake
	for i := range 20 {
		f.fetch = append(f.fetch, []Record{usage("acme", int64(i), noon, -60-i)})
	}
	rateStep(t, r, noon, true)
	blocked := false
	for range 20 {
		report, _ := r.Step(t.Context(), noon.Add(time.Millisecond))
		blocked = blocked || report.Blocked
	}
	if !blocked || len(f.fetch) < 17 {
		t.Errorf("blocked %t, %d of 20 fetches are left: it reads without bounds", blocked, len(f.fetch))
	}
	delete(f.fails, "write rows")
	for i := range 25 {
		rateStep(t, r, noon.Add(time.Duration(i+1)*time.Second), false)
	}
	wantCommitted(t, f, map[int]int64{0: 20})
}

func TestRater_waitsForPricesOfOnePartition(t *testing.T) {
	f := newFake()
	r, _, _ := newFakeRater(t, f, nil)
	f.fetch = [][]Record{{
		usage("acme", 0, noon, -60), usage("acme", 1, noon, 30), usage("acme", 2, noon, -120),
		usage("blue", 0, noon, -60),
	}, {usage("acme", 3, noon, -180), usage("blue", 1, noon, -90)}}
	rateStep(t, r, noon, false)
	wantCommitted(t, f, map[int]int64{0: 1, 1: 1})
	rateStep(t, r, noon.Add(time.Second), false)
	wantCommitted(t, f, map[int]int64{0: 1, 1: 2})
	rateStep(t, r, noon.Add(34*time.Second), false)
	wantCommitted(t, f, map[int]int64{0: 1, 1: 2})
	for range 2 { // it may read the catalog after it looked for what is settled
		rateStep(t, r, noon.Add(35*time.Second), false)
	}
	wantCommitted(t, f, map[int]int64{0: 4, 1: 2})
}

func TestRater_waitingRecordsArePricedByWhatIsPublishedMeanwhile(t *testing.T) {
	f := newFake()
	r, _, market := newFakeRater(t, f, nil)
	spot := usage("acme", 0, noon, 30)
	spot.Value = []byte(strings.NewReplacer(`"on_demand"`, `"spot","region":"us"`,
		"2026-01-05T11:00:00Z", "2026-01-05T11:59:30Z").Replace(string(spot.Value)))
	f.fetch = [][]Record{{spot}}
	rateStep(t, r, noon, false)
	market.put(noon.Add(time.Second), `{"specversion":"1.0","type":"suanpan.market.price.v1",`+
		`"source":"/m","id":"1","data":{"sku":"gpu","region":"us","price":"1.5",`+
		`"time":"2026-01-05T12:00:10Z"}}`)
	for range 2 {
		rateStep(t, r, noon.Add(40*time.Second), false)
	}
	var got []string
	for charge, quantity := range f.known.Sums() {
		got = append(got, charge.Spot+" "+quantity.String())
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"0.2 40.000000000", "1.5 20.000000000"}, got); diff != "" {
		t.Errorf("seconds by price (-want +got):\n%s", diff)
	}
}

func TestRater_doesNotWaitForWhatIsRejected(t *testing.T) {
	f := newFake()
	r, _, _ := newFakeRater(t, f, nil)
	f.fetch = [][]Record{{usage("acme", 0, noon, 61), usage("acme", 1, noon, -60)}}
	report := rateStep(t, r, noon, false)
	if report.Rejected["future"] != 1 || report.Accepted != 1 {
		t.Errorf("report %+v", report)
	}
	wantCommitted(t, f, map[int]int64{0: 2})
}

func TestRater_forwardsOnce(t *testing.T) {
	f := func(change func(*Record), forwarded int, letters ...string) {
		t.Helper()
		s := newFake()
		r, _, _ := newFakeRater(t, s, nil)
		record := usage("acme", 3, noon, -60)
		record.Headers = []Header{{"trace", []byte("x")}}
		change(&record)
		s.fetch = [][]Record{{record}}
		report := rateStep(t, r, noon, false)
		if report.Forwarded != forwarded {
			t.Errorf("forwarded %d, want %d", report.Forwarded, forwarded)
		}
		var got []string
		for _, l := range s.letters {
			got = append(got, l.Reason)
		}
		if diff := cmp.Diff(letters, got); diff != "" {
			t.Errorf("dead letters (-want +got):\n%s", diff)
		}
		if forwarded == 0 {
			return
		}
		want := []Record{{
			Topic: schemas.TopicUsage, Key: []byte("acme"), Value: record.Value, Headers: []Header{
				{"trace", []byte("x")},
				{HeaderForwardedFrom, fmt.Appendf(nil, "suanpan.usage/%d/3", record.Partition)},
				{HeaderForwardedTime, []byte("2026-01-05T12:00:00Z")},
			},
		}}
		if diff := cmp.Diff(want, s.appended); diff != "" {
			t.Errorf("appended (-want +got):\n%s", diff)
		}
	}
	again := Header{HeaderForwardedFrom, []byte("suanpan.usage/1/9")}
	f(func(*Record) {}, 0)
	f(func(r *Record) { r.Partition = 1 }, 1)
	f(func(r *Record) { r.Key = []byte("blue") }, 1)
	f(func(r *Record) { r.Key = nil }, 1)
	f(func(r *Record) { r.Headers = append(r.Headers, again) }, 0)
	f(func(r *Record) { r.Partition, r.Headers = 1, append(r.Headers, again) }, 0, "misrouted")
	f(func(r *Record) { r.Key, r.Headers = nil, append(r.Headers, again) }, 0, "misrouted")
}

func TestRater_judgesAForwardedRecordByWhenTheLogHadItFirst(t *testing.T) {
	f := newFake()
	r, _, _ := newFakeRater(t, f, nil)
	late := usage("acme", 0, noon.Add(10*time.Minute), 120)
	late.Headers = []Header{
		{HeaderForwardedFrom, []byte("suanpan.usage/1/9")},
		{HeaderForwardedTime, []byte("2026-01-05T12:00:00Z")},
	}
	f.fetch = [][]Record{{late}}
	if report := rateStep(t, r, noon.Add(10*time.Minute), false); report.Rejected["future"] != 1 {
		t.Errorf("report %+v, want it rejected: it was sent two minutes early", report)
	}
}

func TestRater_dropsItsStateWithItsGeneration(t *testing.T) {
	for _, ending := range []string{"fetch", "commit"} {
		f := newFake()
		r, _, _ := newFakeRater(t, f, nil)
		f.fetch = [][]Record{{usage("acme", 0, noon, -60)}}
		f.fails[ending] = fmt.Errorf("x: %w", ErrGenerationEnded)
		rateStep(t, r, noon, false)
		if r.state != nil || r.generation != nil {
			t.Errorf("%s said that the generation ended, but state is kept", ending)
		}
		delete(f.fails, ending)
		f.fetch = [][]Record{{usage("acme", 0, noon, -60), usage("acme", 1, noon, -120)}}
		rateStep(t, r, noon, false)
		if f.generation != 2 {
			t.Errorf("generation %d, want 2", f.generation)
		}
		wantCommitted(t, f, map[int]int64{0: 2})
		if got, want := f.quantity("acme"), "180.000000000"; got != want {
			t.Errorf("quantity %s, want %s: a minute is counted twice or not at all", got, want)
		}
	}
}

func TestRater_keepsRecordsThatItCouldNotRate(t *testing.T) {
	f := newFake()
	r, _, _ := newFakeRater(t, f, nil)
	f.fetch = [][]Record{{usage("acme", 0, noon, -60)}}
	rateStep(t, r, noon, false)
	r.Stop() // the next generation has to ask the store
	f.fails["find"] = errFake
	f.fetch = [][]Record{{usage("acme", 1, noon, -120)}, {usage("acme", 2, noon, -180)}}
	rateStep(t, r, noon, true)
	rateStep(t, r, noon, true)
	delete(f.fails, "find")
	for range 3 {
		rateStep(t, r, noon, false)
	}
	wantCommitted(t, f, map[int]int64{0: 3})
	if got, want := f.quantity("acme"), "240.000000000"; got != want {
		t.Errorf("quantity %s, want %s", got, want)
	}
}

func TestRater_joinsAgainAfterAnError(t *testing.T) {
	for _, failing := range []string{"join", "stored"} {
		f := newFake()
		r, _, _ := newFakeRater(t, f, nil)
		f.fails[failing] = errFake
		f.fetch = [][]Record{{usage("acme", 0, noon, -60)}}
		rateStep(t, r, noon, true)
		delete(f.fails, failing)
		rateStep(t, r, noon, false)
		wantCommitted(t, f, map[int]int64{0: 1})
		if f.generation != 1 {
			t.Errorf("%s failed once: generation %d, want 1", failing, f.generation)
		}
	}
}

func TestRater_tellsOfMarketPricesThatNobodyTakes(t *testing.T) {
	f := newFake()
	r, _, market := newFakeRater(t, f, nil)
	market.put(noon, "{")
	market.put(noon, `{"specversion":"1.0","type":"suanpan.market.price.v1","source":"/m","id":"1",`+
		`"data":{"sku":"gpu","region":"us","price":"1","time":"2026-01-05T11:00:00Z"}}`)
	market.put(noon, `{"specversion":"1.0","type":"suanpan.market.price.v1","source":"/m","id":"2",`+
		`"data":{"sku":"gpu","region":"us","price":"-1","time":"2026-01-05T13:00:00Z"}}`)
	rateStep(t, r, noon, false)
	report := rateStep(t, r, noon.Add(refreshEvery), false)
	if report.Ignored != 3 || report.Rejected["invalid_json"] != 1 || len(f.letters) != 2 {
		t.Fatalf("report %+v and %d letters, want 3 ignored and 2 letters", report, len(f.letters))
	}
	if l := f.letters[1]; l.Source != "/m" || l.ID != "2" || l.Reason != "invalid_amount" {
		t.Errorf("the dead letter is %+v, want that of /m 2", l)
	}
	r.Stop()
	rateStep(t, r, noon.Add(2*refreshEvery), false)
	if report := rateStep(t, r, noon.Add(3*refreshEvery), false); report.Ignored > 0 {
		t.Errorf("they are told again in the next generation: %+v", report)
	}
}

func TestRater_flushesByAgeToo(t *testing.T) {
	f := func(appended time.Time, wait time.Duration) {
		t.Helper()
		s := newFake()
		r, _, _ := newFakeRater(t, s, func(c *RaterConfig) { c.FlushRows = 0 })
		s.fetch = [][]Record{{usage("acme", 0, appended, -3000)}}
		rateStep(t, r, noon, false)
		rateStep(t, r, noon.Add(wait-time.Nanosecond), false)
		wantDone(t, s, "join")
		rateStep(t, r, noon.Add(wait), false)
		wantDone(t, s, "write rows", "commit")
	}
	f(noon.Add(-liveLag), time.Second)
	f(noon.Add(1-liveLag), 10*time.Second)
}

// TestRater_knowsWhatWasPublishedBeforeARecord has a tenant published just after the catalog was
// read, and its first record just after that.
func TestRater_knowsWhatWasPublishedBeforeARecord(t *testing.T) {
	f := newFake()
	r, documents, _ := newFakeRater(t, f, nil)
	rateStep(t, r, noon, false)
	documents.put(noon.Add(100*time.Millisecond), strings.ReplaceAll(acme, "acme", "coral"),
		Header{HeaderBatch, []byte("second")})
	f.fetch = [][]Record{{usage("coral", 0, noon.Add(200*time.Millisecond), -600)}}
	if report := rateStep(t, r, noon.Add(300*time.Millisecond), false); report.Accepted != 1 {
		t.Errorf("report %+v, want the record accepted", report)
	}
}
