package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/rating"
	"github.com/suanpan/suanpan/schemas"
)

// office is a world in memory for billers: a usage log that is rated at once, a billing log, and a
// store. Its requests can be made to fail, by name.
type office struct {
	t         *testing.T
	prices    *Prices
	documents *topic
	rater     *rating.Rater
	ledger    *rating.Ledger
	usage     int64 // records of the log
	archive   []Record
	billing   []Record
	entries   map[string]billing.Entry
	doubts    map[PeriodKey]Doubts
	fails     map[string]error
	now       time.Time
}

const sellerText = `{"kind":"Seller","name":"cloud","legal_name":"Cloud Ltd","timezone":"UTC",` +
	`"effective_from":"2026-01-01T00:00:00Z"}`

func openOffice(t *testing.T) *office {
	t.Helper()
	prices, documents, _ := openPrices(t)
	documents.put(noon.Add(-time.Hour), sellerText, Header{HeaderBatch, []byte("first")})
	refresh(t, prices, noon)
	if len(prices.Ignored) > 0 {
		t.Fatal(prices.Ignored[0].Why)
	}
	return &office{
		t: t, prices: prices, documents: documents, rater: rating.NewRater(prices.Catalog, nil),
		ledger:  rating.NewLedger(),
		entries: make(map[string]billing.Entry), doubts: make(map[PeriodKey]Doubts),
		fails: make(map[string]error), now: noon,
	}
}

// biller returns a new biller of the office, which knows nothing yet.
func (o *office) biller() *Biller {
	return NewBiller(BillerConfig{
		Bills: o, Log: o, Billing: &billingTail{office: o}, Prices: o.prices,
	})
}

// rate puts an event into the usage log.
func (o *office) rate(value []byte) {
	o.t.Helper()
	var e metering.Event
	why := metering.NewParser().Parse(value, &e)
	if why == nil {
		why = o.rater.Rate(&e, rating.Position{Offset: o.usage}, metering.Instant(o.now.UnixNano()))
	}
	if why != nil {
		o.t.Fatalf("%s: %s", why, value)
	}
	o.archive = append(o.archive, Record{Offset: o.usage, Time: o.now, Value: value})
	o.usage++
	changes := o.rater.Drain()
	o.ledger.Apply(&changes)
}

func (o *office) Append(_ context.Context, records ...Record) error {
	for _, r := range records {
		if err := o.fails["append to "+r.Topic]; err != nil {
			return err
		}
		if r.Topic == schemas.TopicUsage {
			o.rate(r.Value)
			continue
		}
		r.Offset, r.Time = int64(len(o.billing)), o.now
		o.billing = append(o.billing, r)
	}
	return o.fails["appended to "+records[0].Topic] // they are there all the same
}

// billingTail reads the billing log.
type billingTail struct {
	office *office
	read   int
}

func (b *billingTail) ReadToEnd(context.Context) ([]Record, error) {
	records := b.office.billing[b.read:]
	b.read = len(b.office.billing)
	return records, nil
}

func (b *billingTail) Close() error { return nil }

func (o *office) Closes(context.Context, []int) ([]rating.Close, error) {
	return o.ledger.Closes().Sorted(), o.fails["closes"]
}

func (o *office) FirstPeriods(context.Context) ([]PeriodKey, error) {
	var out []PeriodKey
	for _, a := range o.ledger.Accounts() {
		out = append(out, PeriodKey{Tenant: a.Tenant, Contract: a.Contract, Period: a.Periods()[0]})
	}
	return out, o.fails["first"]
}

func (o *office) FirstRecords(context.Context) (map[string]time.Time, error) {
	return map[string]time.Time{"acme": noon, "blue": noon}, nil
}

func (o *office) Uses(_ context.Context, periods []PeriodKey) (map[PeriodKey][]rating.Use, error) {
	uses := make(map[PeriodKey][]rating.Use)
	for _, a := range o.ledger.Accounts() {
		for _, k := range periods {
			if k.Tenant == a.Tenant && k.Contract == a.Contract {
				uses[k] = a.Uses(k.Period)
			}
		}
	}
	return uses, o.fails["uses"]
}

func (o *office) RowLines(_ context.Context, periods []PeriodKey,
	visit func(PeriodKey, rating.RowLine) error,
) error {
	for _, line := range o.ledger.RowLines() {
		key := PeriodKey{
			Tenant: line.Charge.Tenant, Contract: line.Charge.Contract, Period: line.Billing,
		}
		if slices.Contains(periods, key) {
			if err := visit(key, line); err != nil {
				return err
			}
		}
	}
	return o.fails["lines"]
}

func (o *office) Doubts(_ context.Context, _ []PeriodKey, _ map[PeriodKey][2]int64,
) (map[PeriodKey]Doubts, error) {
	return o.doubts, nil
}

func (o *office) Documents(_ context.Context, tenants []string,
	visit func(*billing.Document) error,
) error {
	var all []billing.Entry
	for _, e := range o.entries {
		if slices.Contains(tenants, e.Tenant) && e.Status != billing.Voided {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b billing.Entry) int { return cmp.Compare(a.Place, b.Place) })
	for i := range all {
		if err := visit(&all[i].Document); err != nil {
			return err
		}
	}
	return o.fails["documents"]
}

func (o *office) DocumentsBefore(_ context.Context, tenant string, offset int64,
	visit func(*billing.Document) error,
) error {
	var all []billing.Entry
	for _, e := range o.entries {
		if e.Tenant == tenant && e.Decided < offset && (e.Status != billing.Voided || e.Offset > offset) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b billing.Entry) int { return cmp.Compare(a.Place, b.Place) })
	for i := range all {
		if err := visit(&all[i].Document); err != nil {
			return err
		}
	}
	return nil
}

func (o *office) Archived(_ context.Context, _ string, _ int, until int64,
	visit func(Record) error,
) error {
	for _, r := range o.archive[:until] {
		if err := visit(r); err != nil {
			return err
		}
	}
	return nil
}

func (o *office) Refused(context.Context, int, int64) (map[int64]bool, error) { return nil, nil }

func (o *office) Find(_ context.Context, need *rating.Need) (*rating.Known, error) {
	return o.ledger.Find(need), nil
}

func (o *office) WriteDocuments(_ context.Context, entries []Document) error {
	if err := o.fails["write"]; err != nil {
		return err
	}
	for _, e := range entries {
		if old, ok := o.entries[e.ID]; !ok || old.Offset <= e.Offset {
			o.entries[e.ID] = e
		}
	}
	return nil
}

func (o *office) Issued(context.Context) (int64, error) {
	var n int64
	for _, e := range o.entries {
		if e.Status == billing.Issued {
			n++
		}
	}
	return n, nil
}

func (o *office) Written(context.Context) (int64, error) {
	last := int64(-1)
	for _, e := range o.entries {
		last = max(last, e.Offset)
	}
	return last, nil
}

// settle steps billers, in turns, until there is nothing to do.
func (o *office) settle(billers ...*Biller) {
	o.t.Helper()
	for range 20 {
		idle := true
		for _, b := range billers {
			report, err := b.Step(o.t.Context(), o.now)
			if err != nil {
				o.t.Fatal(err)
			}
			idle = idle && report.Closed+report.Decided == 0
		}
		if idle {
			return
		}
	}
	o.t.Fatal("the billers find no end")
}

// list prints the documents of the store in the order in which they were decided on.
func (o *office) list() string {
	var all []billing.Entry
	for _, e := range o.entries {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b billing.Entry) int { return cmp.Compare(a.Place, b.Place) })
	var out []string
	for _, e := range all {
		out = append(out, fmt.Sprintf("%s %s %s %s", e.ID, e.Status, orNone(e.Number), e.Total))
	}
	return strings.Join(out, "\n")
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// minutes are usage of so many minutes of a tenant from an instant on.
func (o *office) minutes(tenant, from string, n int) {
	o.t.Helper()
	start, err := time.Parse(time.RFC3339, from)
	if err != nil {
		o.t.Fatal(err)
	}
	end := start.Add(time.Duration(n) * time.Minute).Format(time.RFC3339)
	o.rate(fmt.Appendf(nil, `{"specversion":"1.0","type":"suanpan.usage.held.v1","source":"/t",`+
		`"id":"%s%s","data":{"tenant":%q,"project":"p","lease":"l","session":"%s-s",`+
		`"session_start":"2026-01-05T11:00:00Z","purchase":"on_demand","start":%q,"end":%q,`+
		`"held":{"gpu":"1"}}}`, tenant, from, tenant, tenant, from, end))
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	instant, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return instant
}

func TestBiller_closesWhatIsOver(t *testing.T) {
	o := openOffice(t)
	o.minutes("acme", "2026-01-05T11:00:00Z", 60)
	o.minutes("blue", "2026-01-05T11:00:00Z", 30)
	f := func(now, want string) {
		t.Helper()
		o.now = at(t, now)
		o.settle(o.biller())
		if got := o.list(); got != want {
			t.Errorf("at %s the documents are\n%s\nwant\n%s", now, got, want)
		}
	}
	f("2026-02-01T00:00:00Z", "")
	f("2026-02-02T23:59:59Z", "")
	january := "acme,,USD,2026-01 issued INV-2026-1 2.00\nblue,,USD,2026-01 issued INV-2026-2 1.00"
	f("2026-02-03T00:00:00Z", january)
	f("2026-02-28T00:00:00Z", january)
	// Late usage is billed with the next period; a month without any makes no invoice.
	o.minutes("acme", "2026-01-05T13:00:00Z", 30)
	f("2026-03-03T00:00:00Z", january+"\nacme,,USD,2026-02 issued INV-2026-3 1.00")
	f("2026-09-03T00:00:00Z", january+"\nacme,,USD,2026-02 issued INV-2026-3 1.00")
}

func TestBiller_twoBillersMakeOneInvoice(t *testing.T) {
	o := openOffice(t)
	o.now = at(t, "2026-03-03T00:00:00Z")
	for _, tenant := range []string{"acme", "blue"} {
		o.minutes(tenant, "2026-01-05T11:00:00Z", 60)
		o.minutes(tenant, "2026-02-05T11:00:00Z", 60)
	}
	a, b := o.biller(), o.biller()
	o.settle(a, b, o.biller())
	want := `acme,,USD,2026-01 issued INV-2026-1 2.00
blue,,USD,2026-01 issued INV-2026-2 2.00
acme,,USD,2026-02 issued INV-2026-3 2.00
blue,,USD,2026-02 issued INV-2026-4 2.00`
	if got := o.list(); got != want {
		t.Errorf("the documents are\n%s\nwant\n%s", got, want)
	}
	o.settle(a, b)
	if got := o.list(); got != want {
		t.Errorf("one more step makes them\n%s", got)
	}
}

// Whatever fails in whichever step, also after it was done: the documents are the same.
func TestBiller_failuresChangeNothing(t *testing.T) {
	want := ""
	for _, failing := range []string{
		"", "closes", "first", "uses", "lines", "documents", "write", "append to suanpan.usage",
		"appended to suanpan.usage", "append to suanpan.billing", "appended to suanpan.billing",
	} {
		o := openOffice(t)
		o.minutes("acme", "2026-01-05T11:00:00Z", 60)
		o.minutes("blue", "2026-01-05T11:00:00Z", 60)
		o.now = at(t, "2026-02-03T00:00:00Z")
		b := o.biller()
		if failing != "" {
			o.fails[failing] = errFake
			failed := false
			for range 3 {
				_, err := b.Step(t.Context(), o.now)
				failed = failed || errors.Is(err, errFake)
			}
			if !failed {
				t.Errorf("nothing failed for %q", failing)
			}
			delete(o.fails, failing)
		}
		o.now = o.now.Add(resend) // a close whose sending failed is sent again
		o.settle(b, o.biller())
		got := o.list()
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("after %q failed the documents are\n%s\nwant\n%s", failing, got, want)
		}
	}
}

func TestBiller_deadLettersHoldBackForDays(t *testing.T) {
	o := openOffice(t)
	o.minutes("acme", "2026-01-05T11:00:00Z", 60)
	o.doubts[PeriodKey{Tenant: "acme", Period: "2026-01"}] = Doubts{DeadLetters: 3}
	b := o.biller()
	o.now = at(t, "2026-02-03T00:00:00Z")
	o.settle(b)
	if report, err := b.Step(t.Context(), o.now); err != nil || report.Waiting != 1 {
		t.Errorf("the report is %+v, %v: want one period that waits", report, err)
	}
	if got := o.list(); got != "" {
		t.Errorf("dead letters held nothing back: %s", got)
	}
	o.now = at(t, "2026-02-08T00:00:00Z")
	o.settle(b)
	entry := o.entries["acme,,USD,2026-01"]
	if entry.Status != billing.Issued || len(entry.Notes) != 1 ||
		!strings.Contains(entry.Notes[0], "3 usage events") {
		t.Errorf("after five days the document is %s with the notes %q", entry.Status, entry.Notes)
	}
}

// A draft that is voided gives back what it took of a balance. Documents that were made before that
// are checked by what was known then.
func TestVerify_draftVoidedSince(t *testing.T) {
	o := openOffice(t)
	o.documents.put(noon.Add(-time.Hour), `{"kind":"Grant","name":"topup","tenant":"acme",`+
		`"amount":"1.5","currency":"USD","source":"paid","effective_from":"2026-01-05T12:00:00Z"}`,
		Header{HeaderBatch, []byte("grant")})
	o.now = at(t, "2026-03-03T00:00:00Z")
	o.minutes("acme", "2026-01-05T11:00:00Z", 60)
	o.minutes("acme", "2026-02-05T11:00:00Z", 60)
	o.doubts[PeriodKey{Tenant: "acme", Period: "2026-01"}] = Doubts{Overlaps: []string{"l"}}
	b := o.biller()
	o.settle(b)
	f := func(what, documents string) {
		t.Helper()
		if got := o.list(); got != documents {
			t.Fatalf("%s: the documents are\n%s\nwant\n%s", what, got, documents)
		}
		entry := o.entries["acme,,USD,2026-02"]
		if len(entry.Prepaid) != 0 {
			t.Errorf("%s: February took %v of what January has", what, entry.Prepaid)
		}
		report, err := NewVerifier(o, o.prices, 60).Verify(t.Context(), &entry)
		if err != nil || len(report.Differences) > 0 || report.Rows == 0 {
			t.Errorf("%s: %+v, %v", what, report, err)
		}
	}
	f("held", "acme,,USD,2026-01 held - 2.00\nacme,,USD,2026-02 issued INV-2026-1 2.00")
	record := &billing.Record{Void: &billing.Act{ID: "acme,,USD,2026-01", By: "ann", Reason: "x"}}
	value, err := record.Encode("/test")
	must(t, err)
	must(t, o.Append(t.Context(), Record{Topic: schemas.TopicBilling, Value: value}))
	o.settle(b)
	f("voided", "acme,,USD,2026-01 voided - 2.00\nacme,,USD,2026-02 issued INV-2026-1 2.00")
}

func TestBiller_stopsAtAShortLog(t *testing.T) {
	o := openOffice(t)
	o.minutes("acme", "2026-01-05T11:00:00Z", 60)
	o.now = at(t, "2026-02-03T00:00:00Z")
	o.settle(o.biller())
	o.billing = nil // it was lost
	if _, err := o.biller().Step(t.Context(), o.now); !errors.Is(err, ErrLogTooShort) {
		t.Errorf("the error is %v", err)
	}
}
