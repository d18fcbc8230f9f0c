package clickhouse

import (
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
	"github.com/suanpan/suanpan/schemas"
)

// site rates and archives usage as the log brings it.
type site struct {
	*world
	store *Store
	sent  int64
}

func newSite(t *testing.T) *site { return &site{newWorld(t, 1), store(t), 100} }

// february is the billing period in Shanghai: [16:00 UTC on 31 January, 16:00 UTC on 28 February).
var february = [2]int64{1_769_875_200, 1_772_294_400}

// held sends usage of a session from a second of February on, for so many seconds.
func (s *site) held(t *testing.T, session, lease, node, devices string, from, seconds int64) {
	t.Helper()
	at := func(second int64) string {
		return time.Unix(february[0]+second, 0).UTC().Format(time.RFC3339)
	}
	s.send(t, fmt.Sprintf(`{"specversion":"1.0","type":"suanpan.usage.held.v1","source":"/n",`+
		`"id":"%d","data":{"tenant":"acme","project":"p","lease":%q,"session":%q,"node":%q,`+
		`"session_start":%q,"purchase":"on_demand","start":%q,"end":%q,"devices":%s,`+
		`"held":{"gpu.flat":"1","gpu.ladder":"2"}}}`, s.sent, lease, session, node,
		at(-7200), at(from), at(from+seconds), devices))
}

func (s *site) void(t *testing.T, session string, from, seconds int64) {
	t.Helper()
	at := func(second int64) string {
		return time.Unix(february[0]+second, 0).UTC().Format(time.RFC3339)
	}
	s.send(t, fmt.Sprintf(`{"specversion":"1.0","type":"suanpan.usage.void.v1","source":"/n",`+
		`"id":"%d","data":{"tenant":"acme","session":%q,"start":%q,"end":%q,"reason":"r","by":"b"}}`,
		s.sent, session, at(from), at(from+seconds)))
}

// send puts a record into the archive, and its rows, or a dead letter, into the store.
func (s *site) send(t *testing.T, value string) {
	t.Helper()
	record := pipeline.Record{
		Topic: schemas.TopicUsage, Partition: 3, Offset: s.sent, Key: []byte("acme"),
		Time: time.Unix(february[0]+s.sent*60, 0).UTC(), Value: []byte(value),
	}
	s.sent++
	if err := s.store.Archive(t.Context(), []pipeline.Record{record}); err != nil {
		t.Fatal(err)
	}
	var e metering.Event
	why := metering.NewParser().Parse(record.Value, &e)
	if why == nil {
		at := rating.Position{Partition: record.Partition, Offset: record.Offset}
		why = s.rater.Rate(&e, at, 1<<62)
	}
	if why != nil {
		s.refuse(t, record, string(why.Reason))
		return
	}
	changes := s.rater.Drain()
	if err := s.store.Write(t.Context(), &changes); err != nil {
		t.Fatal(err)
	}
}

func (s *site) refuse(t *testing.T, r pipeline.Record, reason string) {
	t.Helper()
	err := s.store.WriteDeadLetters(t.Context(), []pipeline.DeadLetter{{Record: r, Reason: reason}})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *site) doubts(t *testing.T) pipeline.Doubts {
	t.Helper()
	key := pipeline.PeriodKey{Tenant: "acme", Period: "2026-02"}
	sound := pipeline.PeriodKey{Tenant: "blue", Period: "2026-02"}
	doubts, err := s.store.Doubts(t.Context(), []pipeline.PeriodKey{key, sound},
		map[pipeline.PeriodKey][2]int64{key: february, sound: february})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := doubts[sound]; ok {
		t.Errorf("there are doubts about a tenant without usage: %+v", doubts[sound])
	}
	if _, ok := doubts[key]; ok && doubts[key].DeadLetters == 0 && len(doubts[key].Overlaps) == 0 {
		t.Error("a sound period has doubts")
	}
	return doubts[key]
}

func TestDoubts_overlaps(t *testing.T) {
	const a, b, ab = `["GPU-a"]`, `["GPU-b"]`, `["GPU-a","GPU-b"]`
	s := newSite(t)
	s.held(t, "1-after", "one after the other", "n", a, 0, 1800)
	s.held(t, "1-before", "one after the other", "n", a, 1800, 1800)
	s.held(t, "2-a", "other devices", "n", a, 0, 1800)
	s.held(t, "2-b", "other devices", "n", b, 0, 1800)
	s.held(t, "3-n", "other nodes", "n", a, 0, 1800)
	s.held(t, "3-m", "other nodes", "m", a, 0, 1800)
	s.held(t, "4-one", "4", "n", a, 0, 1800)
	s.held(t, "4-another", "another", "n", a, 0, 1800)
	s.held(t, "5-x", "no node", "", a, 0, 1800)
	s.held(t, "5-y", "no node", "", a, 0, 1800)
	s.held(t, "6-x", "the month before", "n", a, -1800, 1800)
	s.held(t, "6-y", "the month before", "n", a, -900, 2700)
	s.held(t, "7-x", "the month after", "n", a, february[1]-february[0]-60, 120)
	s.held(t, "7-y", "the month after", "n", a, february[1]-february[0], 60)
	s.held(t, "8-x", "a device that was passed on", "n", ab, 0, 600)
	s.held(t, "8-x", "a device that was passed on", "n", a, 600, 600)
	s.held(t, "8-y", "a device that was passed on", "n", b, 600, 600)
	s.held(t, "9-x", "voided", "n", a, 0, 1800)
	s.held(t, "9-y", "voided", "n", a, 0, 1800)
	s.void(t, "9-y", 0, 1800)
	if d := s.doubts(t); d.DeadLetters != 0 || d.Overlaps != nil {
		t.Fatalf("doubts about sound leases: %+v", d)
	}
	s.held(t, "a-x", "refused", "n", a, 0, 1800)
	s.held(t, "a-y", "refused", "n", b, 0, 1800)
	s.held(t, "a-y", "another lease", "n", a, 0, 1800) // a conflict
	if d := s.doubts(t); d.DeadLetters != 1 || d.Overlaps != nil {
		t.Fatalf("doubts about sound leases and a dead letter: %+v", d)
	}
	s.held(t, "b-x", "by a second", "n", a, 5000, 3600)
	s.held(t, "b-y", "by a second", "n", ab, 8599, 3600)
	s.held(t, "c-x", "账单's", "n", ab, 0, 100)
	s.held(t, "c-z", "账单's", "n", `["GPU-c"]`, 40_000, 100)
	s.held(t, "c-y", "账单's", "n", b, 20, 10)
	want := []string{"by a second", "账单's"}
	if d := s.doubts(t); !slices.Equal(d.Overlaps, want) {
		t.Errorf("leases with overlaps are %q, want %q", d.Overlaps, want)
	}
	s.void(t, "b-x", 8599, 1)
	s.void(t, "c-x", 0, 25)
	if d := s.doubts(t); !slices.Equal(d.Overlaps, want[1:]) {
		t.Errorf("after voids leases with overlaps are %q, want %q", d.Overlaps, want[1:])
	}
}

func TestDoubts_deadLetters(t *testing.T) {
	s := newSite(t)
	letter := func(offset int64, tenant, kind string, at int64) pipeline.DeadLetter {
		return pipeline.DeadLetter{Record: pipeline.Record{
			Topic: schemas.TopicUsage, Partition: 3, Offset: offset, Key: []byte(tenant),
			Time: time.Unix(at, 0), Value: []byte(`{"type":"suanpan.` + kind + `"}`),
		}, Reason: "no_price"}
	}
	const day = 86_400
	letters := []pipeline.DeadLetter{
		letter(1, "acme", "usage.held.v1", february[0]),
		letter(2, "acme", "usage.consumed.v1", february[1]+day-1),
		letter(3, "acme", "usage.held.v1", february[0]-1),
		letter(4, "acme", "usage.held.v1", february[1]+day),
		letter(5, "acme", "outage.v1", february[0]+5),
		letter(6, "other", "usage.held.v1", february[0]+5),
	}
	for range 2 { // written again they are not counted again
		if err := s.store.WriteDeadLetters(t.Context(), letters); err != nil {
			t.Fatal(err)
		}
	}
	if d := s.doubts(t); d.DeadLetters != 2 {
		t.Errorf("%d dead letters speak against the invoice, want 2", d.DeadLetters)
	}
	if err := s.store.WriteRetries(t.Context(), letters[:1], time.Now()); err != nil {
		t.Fatal(err)
	}
	if d := s.doubts(t); d.DeadLetters != 1 {
		t.Errorf("after a retry %d dead letters speak against the invoice, want 1", d.DeadLetters)
	}
	refused, err := s.store.Refused(t.Context(), 3, 5)
	if diff := gocmp.Diff(map[int64]bool{1: true, 2: true, 3: true, 4: true}, refused); diff != "" {
		t.Errorf("refused offsets, %v (-want +got):\n%s", err, diff)
	}
}

func TestFirst_periodsAndRecords(t *testing.T) {
	s, l, w := store(t), rating.NewLedger(), newWorld(t, 77)
	w.run(t, 200)
	w.write(t, s, l)
	want := make(map[pipeline.PeriodKey]string)
	for _, line := range l.RowLines() {
		key := pipeline.PeriodKey{Tenant: line.Charge.Tenant, Contract: line.Charge.Contract}
		if first := want[key]; first == "" || line.Charge.Period < first {
			want[key] = line.Charge.Period
		}
	}
	periods, err := s.FirstPeriods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[pipeline.PeriodKey]string)
	for _, p := range periods {
		got[pipeline.PeriodKey{Tenant: p.Tenant, Contract: p.Contract}] = p.Period
	}
	if diff := gocmp.Diff(want, got); diff != "" || len(got) != len(periods) || len(got) != 3 {
		t.Errorf("%d first periods (-want +got):\n%s", len(periods), diff)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC)
	for i := range 3 {
		record := pipeline.Record{
			Topic: schemas.TopicUsage, Offset: int64(i), Key: []byte("acme"),
			Time: at.AddDate(0, 0, (i+1)%3),
		}
		if err := s.Archive(t.Context(), []pipeline.Record{record}); err != nil {
			t.Fatal(err)
		}
	}
	records, err := s.FirstRecords(t.Context())
	if diff := gocmp.Diff(map[string]time.Time{"acme": at}, records); err != nil || diff != "" {
		t.Errorf("first records, %v (-want +got):\n%s", err, diff)
	}
}

func TestArchived_failsOnAGap(t *testing.T) {
	s := store(t)
	put := func(offset int64, tenant string) {
		t.Helper()
		record := pipeline.Record{
			Topic: schemas.TopicUsage, Partition: 3, Offset: offset, Key: []byte(tenant),
			Time:  time.Date(2026, 1, 1, 0, 0, int(offset), 0, time.UTC),
			Value: fmt.Append(nil, offset), Headers: []pipeline.Header{{Key: "k", Value: []byte("v")}},
		}
		for range 2 {
			if err := s.Archive(t.Context(), []pipeline.Record{record}); err != nil {
				t.Fatal(err)
			}
		}
	}
	read := func(until int64) (values string, err error) {
		t.Helper()
		err = s.Archived(t.Context(), "acme", 3, until, func(r pipeline.Record) error {
			values += string(r.Value) + string(r.Key) + r.Headers[0].Key + string(r.Headers[0].Value) + ","
			return nil
		})
		return values, err
	}
	put(0, "acme")
	put(3, "acme")
	put(1, "blue")
	if got, err := read(3); err == nil || got != "" {
		t.Errorf("read %q, %v over a gap", got, err)
	}
	put(2, "acme")
	if got, err := read(3); err != nil || got != "0acmekv,2acmekv," {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := read(5); err == nil {
		t.Error("read beyond the end of the archive")
	}
}
