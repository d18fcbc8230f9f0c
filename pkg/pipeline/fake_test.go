package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/suanpan/suanpan/pkg/rating"
	"github.com/suanpan/suanpan/schemas"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errFake = errors.New("it is down")

// noon is when tests begin.
var noon = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

// fake is a log and a store that do what they are told, and note what they were asked to do.
type fake struct {
	did        []string         // successful requests, in order
	fails      map[string]error // by request
	fetch      [][]Record       // what each Fetch returns
	committed  map[int]int64
	known      rating.Ledger
	letters    []DeadLetter
	appended   []Record
	archived   []Record
	hold       chan struct{} // a write of rows waits for it, if it is set
	generation int
}

func newFake() *fake {
	return &fake{
		fails: make(map[string]error), committed: make(map[int]int64), known: *rating.NewLedger(),
	}
}

func (f *fake) do(what string) error {
	if err := f.fails[what]; err != nil {
		return err
	}
	f.did = append(f.did, what)
	return nil
}

// take returns what was done since the last call.
func (f *fake) take() []string {
	did := f.did
	f.did = nil
	return did
}

func (f *fake) Next(context.Context) (Generation, error) {
	if err := f.do("join"); err != nil {
		return nil, err
	}
	f.generation++
	return f, nil
}

func (f *fake) Close() error      { return nil }
func (f *fake) Partitions() []int { return []int{0, 1} }

func (f *fake) Fetch(context.Context, time.Duration) ([]Record, error) {
	if err := f.fails["fetch"]; err != nil {
		return nil, err
	}
	if len(f.fetch) == 0 {
		return nil, nil
	}
	records := f.fetch[0]
	f.fetch = f.fetch[1:]
	return records, nil
}

func (f *fake) Commit(_ context.Context, next map[int]int64) error {
	if err := f.do("commit"); err != nil {
		return err
	}
	maps.Copy(f.committed, next)
	return nil
}

func (f *fake) Append(_ context.Context, records ...Record) error {
	f.appended = append(f.appended, records...)
	return f.do("append to " + records[0].Topic)
}

func (f *fake) Archive(_ context.Context, records []Record) error {
	f.archived = append(f.archived, records...)
	return f.do(fmt.Sprintf("archive %d", len(records)))
}

func (f *fake) Stored(context.Context) (map[string]rating.Stored, error) {
	return f.known.Stored(), f.fails["stored"]
}

func (f *fake) Closes(context.Context, []int) ([]rating.Close, error) {
	return f.known.Closes().Sorted(), f.fails["closes"]
}

func (f *fake) Rerates(context.Context, []int) ([]rating.Rerate, error) {
	return f.known.Rerates(), f.fails["rerates"]
}

func (f *fake) Find(_ context.Context, need *rating.Need) (*rating.Known, error) {
	return f.known.Find(need), f.fails["find"]
}

func (f *fake) Write(ctx context.Context, changes *rating.Changes) error {
	if f.hold != nil {
		select {
		case <-f.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := f.do("write rows"); err != nil {
		return err
	}
	f.known.Apply(changes)
	return nil
}

func (f *fake) WriteDeadLetters(_ context.Context, letters []DeadLetter) error {
	f.letters = append(f.letters, letters...)
	return f.do("write letters")
}

// topic is a tail that returns what was put into it.
type topic struct {
	records []Record
	offset  int64
	err     error
}

func (t *topic) ReadToEnd(context.Context) ([]Record, error) {
	if t.err != nil {
		return nil, t.err
	}
	records := t.records
	t.records = nil
	return records, nil
}

func (t *topic) Close() error { return nil }

func (t *topic) put(at time.Time, value string, headers ...Header) {
	t.records = append(t.records, Record{
		Topic: "topic", Offset: t.offset, Time: at, Value: []byte(value), Headers: headers,
	})
	t.offset++
}

func bookText(from, price string) string {
	return fmt.Sprintf(`{"kind":"PriceBook","name":"public","currency":"USD","timezone":"UTC",`+
		`"effective_from":%q,"prices":[{"sku":"gpu","per":"hour","price":%q,"minimum":"60s"},`+
		`{"sku":"gpu","purchase":"spot","per":"hour","market":{"floor":"0.1","cap":"1"}}]}`, from, price)
}

const (
	acme = `{"kind":"Tenant","name":"acme","price_book":"public","effective_from":"2026-01-01T00:00:00Z"}`
	blue = `{"kind":"Tenant","name":"blue","price_book":"public","effective_from":"2026-01-01T00:00:00Z"}`
)

// openPrices returns prices of two topics of which the first has a book and two tenants.
func openPrices(t *testing.T) (p *Prices, documents, market *topic) {
	t.Helper()
	documents, market = new(topic), new(topic)
	first := Header{HeaderBatch, []byte("first")}
	documents.put(noon.Add(-time.Hour), bookText("2026-01-01T00:00:00Z", "2"), first)
	documents.put(noon.Add(-time.Hour), acme, first)
	documents.put(noon.Add(-time.Hour), blue, first)
	return NewPrices(documents, market), documents, market
}

// partitionOf puts acme into partition 0 and all else into 1.
func partitionOf(tenant string) int {
	if tenant == "acme" {
		return 0
	}
	return 1
}

// usage is a record of a minute of a tenant's session, in its partition. end is in seconds after
// noon.
func usage(tenant string, offset int64, appended time.Time, end int) Record {
	until := noon.Add(time.Duration(end) * time.Second)
	return Record{
		Topic: schemas.TopicUsage, Partition: partitionOf(tenant), Offset: offset, Time: appended,
		Key: []byte(tenant),
		Value: fmt.Appendf(nil, `{"specversion":"1.0","type":"suanpan.usage.held.v1","source":"/t",`+
			`"id":"%s%d","data":{"tenant":%q,"project":"p","lease":"l","session":"%s-s",`+
			`"session_start":"2026-01-05T11:00:00Z","purchase":"on_demand","start":%q,"end":%q,`+
			`"held":{"gpu":"1"}}}`, tenant, offset, tenant, tenant,
			until.Add(-time.Minute).Format(time.RFC3339), until.Format(time.RFC3339)),
	}
}

// quantity is all that the store has of a tenant.
func (f *fake) quantity(tenant string) string {
	var total string
	for charge, q := range f.known.Sums() {
		if charge.Tenant == tenant {
			total += q.String()
		}
	}
	return total
}
