package billing_test

import (
	"strings"
	"testing"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/billingtest"
)

func TestBookedIn(t *testing.T) {
	f := func(want string, change func(*billing.Document)) {
		t.Helper()
		d := billingtest.CreditNote()
		change(d)
		if got := d.BookedIn(); got != want {
			t.Errorf("booked in %s, want %s", got, want)
		}
	}
	f("2026-11", func(*billing.Document) {}) // on an invoice of October
	f("2026-12", func(d *billing.Document) { d.Cites.ID = "late-2026-12" })
	f("2026-10", func(d *billing.Document) { d.IssueDate = "" })
	f("2026-10", func(d *billing.Document) { d.Type, d.IssueDate = billing.Invoice, "2026-11-03" })
}

func TestCheckSums_failure(t *testing.T) {
	f := func(want string, change func(*billing.Document)) {
		t.Helper()
		d := billingtest.Ladder()
		change(d)
		if err := d.CheckSums(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	f("its lines come to", func(d *billing.Document) { d.Lines[0].Amount = "0.01" })
	f("its taxes come to", func(d *billing.Document) { d.TaxTotal = "0.01" })
	f("its subtotal and taxes come to", func(d *billing.Document) { d.Total = "0.01" })
	f("its total and balances come to", func(d *billing.Document) { d.Due = "0.01" })
	f("is not a plain decimal", func(d *billing.Document) { d.Lines[1].Net = "1e3" })
	for name, d := range billingtest.Samples() {
		if err := d.CheckSums(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
