package focus

import (
	"bytes"
	_ "embed"
	"iter"
	"strconv"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/focus"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/rating"
)

//go:embed testdata/catalog.yaml
var catalogText []byte

//go:embed testdata/events.jsonl
var eventsText []byte

// world is usage of two months, with late events, and its issued documents.
type world struct {
	catalog *catalog.Catalog
	items   []rating.LineItem
	entries []billing.Entry
}

func newWorld(t *testing.T) *world {
	t.Helper()
	documents, err := catalog.Parse("catalog.yaml", catalogText)
	if err != nil {
		t.Fatal(err)
	}
	w := new(world)
	if w.catalog, err = catalog.New(documents); err != nil {
		t.Fatal(err)
	}
	offline := rating.NewOffline(w.catalog)
	offline.ObeyCloses()
	for _, step := range []func(*metering.Event) *metering.Rejection{
		func(e *metering.Event) *metering.Rejection {
			if e.Kind != metering.MarketPrice {
				return nil
			}
			return offline.Price(e)
		}, offline.Rate,
	} {
		parser := metering.NewParser()
		for line := range bytes.Lines(eventsText) {
			var e metering.Event
			why := parser.Parse(bytes.TrimSpace(line), &e)
			if why == nil {
				why = step(&e)
			}
			if why != nil {
				t.Fatalf("%s: %v", line, why)
			}
		}
	}
	ledger := offline.Ledger()
	if w.items, err = ledger.LineItems(w.catalog); err != nil {
		t.Fatal(err)
	}
	w.issue(t, ledger)
	return w
}

// issue decides on the drafts of all periods, in their order, as the biller does.
func (w *world) issue(t *testing.T, ledger *rating.Ledger) {
	t.Helper()
	book := billing.NewBook()
	offline := billing.Offline{AsOf: 1_800_000_000}
	at := time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC)
	decisions := make(map[string]*billing.Decision)
	var order []string
	for d, err := range offline.Bill(ledger, w.catalog) {
		if err != nil {
			t.Fatal(err)
		}
		period, err := d.DecidedAt()
		if err != nil {
			t.Fatal(err)
		}
		key := d.Tenant + period
		if decisions[key] == nil {
			decisions[key] = &billing.Decision{Tenant: d.Tenant, Period: period}
			order = append(order, key)
		}
		seller, err := w.catalog.SellerOf(d.Tenant, d.Contract, at.Unix())
		if err != nil {
			t.Fatal(err)
		}
		decisions[key].Documents = append(decisions[key].Documents,
			billing.Drafted{Document: *d, Terms: billing.TermsOf(seller, d.Type)})
	}
	for i, key := range order {
		text, err := (&billing.Record{Decision: decisions[key]}).Encode("/" + strconv.Itoa(i))
		if err != nil {
			t.Fatal(err)
		}
		entries, err := book.Apply(int64(i), at, text)
		if err != nil {
			t.Fatal(err)
		}
		w.entries = append(w.entries, entries...)
	}
}

// documents are those that are booked in a billing period.
func (w *world) documents(yield func(*billing.Document, error) bool) {
	for i := range w.entries {
		if !yield(&w.entries[i].Document, nil) {
			return
		}
	}
}

// itemsOf are the line items of a billing period.
func (w *world) itemsOf(period string) iter.Seq2[focus.Item, error] {
	return func(yield func(focus.Item, error) bool) {
		for _, i := range w.items {
			if i.BillingPeriod == period && !yield(focus.Item{LineItem: i}, nil) {
				return
			}
		}
	}
}

// export writes a dataset of a billing period.
func (w *world) export(t *testing.T, o focus.Options) []byte {
	t.Helper()
	var out bytes.Buffer
	if _, err := focus.Write(&out, o, w.documents, w.itemsOf(o.Period)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
