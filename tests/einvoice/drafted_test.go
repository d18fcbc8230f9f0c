package einvoice

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/ubl/ubltest"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/rating"
)

// drafted are the documents of the world that exports for FOCUS are tested with, of usage that was
// rated: two months with late events. They are issued between parties that can have e-invoices.
func drafted(t *testing.T) map[string]*billing.Document {
	t.Helper()
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join("..", "focus", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	documents, err := catalog.Parse("catalog.yaml", read("catalog.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	prices, err := catalog.New(documents)
	if err != nil {
		t.Fatal(err)
	}
	offline := rating.NewOffline(prices)
	offline.ObeyCloses()
	for _, market := range []bool{true, false} { // the prices of the market first
		parser := metering.NewParser()
		for line := range bytes.Lines(read("events.jsonl")) {
			var e metering.Event
			why := parser.Parse(bytes.TrimSpace(line), &e)
			switch {
			case why == nil && market && e.Kind == metering.MarketPrice:
				why = offline.Price(&e)
			case why == nil && !market:
				why = offline.Rate(&e)
			}
			if why != nil {
				t.Fatalf("%s: %v", line, why)
			}
		}
	}
	issued := make(map[string]*billing.Document)
	parties := ubltest.Parties()
	bill := billing.Offline{AsOf: 1_800_000_000}
	for d, err := range bill.Bill(offline.Ledger(), prices) {
		if err != nil {
			t.Fatal(err)
		}
		d.Number, d.IssueDate = fmt.Sprint("X-2026-", len(issued)+1), "2026-03-03"
		d.Seller, d.Buyer = parties["DE"], parties["FR"]
		if d.Type == billing.CreditNote {
			d.Cites.Number, d.Cites.IssueDate = "X-2026-1", "2026-02-03"
		} else {
			d.DueDate = "2026-04-02"
		}
		issued["drafted_"+d.ID()] = d
	}
	return issued
}
