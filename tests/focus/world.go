// Package focus holds what finance imports to its documents, and to the tools that others check it
// with: FOCUS exports to their validators, journals to their sums.
package focus

import (
	"bytes"
	_ "embed"
	"strconv"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/billing"
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

// decided are the documents that were decided on with a billing period, and its line items.
func (w *world) decided(t *testing.T, period string) ([]billing.Entry, []rating.LineItem) {
	t.Helper()
	var entries []billing.Entry
	for _, e := range w.entries {
		if at, err := e.DecidedAt(); err == nil && at == period {
			entries = append(entries, e)
		}
	}
	var items []rating.LineItem
	for _, i := range w.items {
		if i.BillingPeriod == period {
			items = append(items, i)
		}
	}
	if len(entries) == 0 || len(items) == 0 {
		t.Fatalf("%s has %d documents and %d line items", period, len(entries), len(items))
	}
	return entries, items
}
