package focus

import (
	"bytes"
	"encoding/csv"
	"testing"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/focus"
	"github.com/suanpan/suanpan/pkg/money"
)

func amount(t *testing.T, text string) money.Amount {
	t.Helper()
	a, err := money.ParseSigned(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// rows reads a CSV export.
func rows(t *testing.T, data []byte) []map[string]string {
	t.Helper()
	all, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]string
	for _, record := range all[1:] {
		r := make(map[string]string)
		for i, cell := range record {
			r[all[0][i]] = cell
		}
		out = append(out, r)
	}
	return out
}

var periods = []string{"2026-01", "2026-02"}

// The sum of BilledCost of each document is what it says, costs are price x quantity, and all kinds
// of charges are there.
func TestExport_addsUpToTheDocuments(t *testing.T) {
	w := newWorld(t)
	kinds := make(map[string]bool)
	for _, period := range periods {
		want, got := make(map[string]string), make(map[string]money.Amount)
		for _, e := range w.entries {
			if e.BookedIn() != period {
				continue
			}
			total := amount(t, e.Total)
			if e.Type == billing.CreditNote {
				total = total.Neg()
			}
			want[e.Number] = total.String()
		}
		data := w.export(t, focus.Options{Version: focus.V14, Format: focus.CSV, Period: period})
		for _, r := range rows(t, data) {
			got[r["InvoiceId"]] = got[r["InvoiceId"]].Add(amount(t, r["BilledCost"]))
			kinds[r["ChargeCategory"]+r["ChargeClass"]+r["PricingCategory"]+r["x_Reason"]] = true
			if r["ListUnitPrice"] == "" {
				continue
			}
			list := amount(t, r["ListUnitPrice"]).Mul(amount(t, r["PricingQuantity"]))
			if list.Cmp(amount(t, r["ListCost"])) != 0 {
				t.Errorf("list cost %s is not %s x %s", r["ListCost"], r["ListUnitPrice"],
					r["PricingQuantity"])
			}
		}
		for number, total := range want {
			if got[number].String() != total {
				t.Errorf("%s: document %q bills %s, its rows %s", period, number, total, got[number])
			}
		}
		if len(got) != len(want) || len(want) == 0 {
			t.Errorf("%s: rows are of the documents %v, want %v", period, got, want)
		}
	}
	for _, kind := range []string{
		"UsageStandard", "UsageDynamic", "UsageCorrectionStandard", "Credit", "Tax", "TaxCorrection",
		"Adjustmentrounding", "AdjustmentCorrectionaverage_price", "Adjustmentincluded_tax",
		"AdjustmentCorrectionincluded_tax",
	} {
		if !kinds[kind] {
			t.Errorf("no row is %s: there are %v", kind, kinds)
		}
	}
}

// What the line items say of a line is what the document says, but for rounding, less than a cent,
// and for ladders that late usage went up on.
func TestExport_adjustsNothingElse(t *testing.T) {
	w := newWorld(t)
	reasons := make(map[string]int)
	for _, period := range periods {
		data := w.export(t, focus.Options{Version: focus.V14, Format: focus.CSV, Period: period})
		for _, r := range rows(t, data) {
			cost := amount(t, r["BilledCost"])
			if cost.Sign() < 0 {
				cost = cost.Neg()
			}
			reasons[r["x_Reason"]]++
			switch r["x_Reason"] {
			case "", "included_tax":
			case "rounding":
				if cost.Cmp(money.MustParse("0.02")) < 0 {
					continue
				}
			case "average_price":
				if r["SkuId"] == "gpu.h100-80g" {
					continue
				}
			}
			if r["ChargeCategory"] == "Adjustment" && r["x_Reason"] != "included_tax" {
				t.Errorf("%s: %s %s is adjusted by %s: %s", period, r["x_DocumentId"],
					r["ChargeDescription"], r["BilledCost"], r["x_Reason"])
			}
		}
	}
	if reasons["average_price"] == 0 {
		t.Errorf("no late usage changed an average price: %v", reasons)
	}
}
