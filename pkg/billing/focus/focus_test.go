package focus

import (
	"bytes"
	"encoding/csv"
	"errors"
	"flag"
	"iter"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/billingtest"
	"github.com/suanpan/suanpan/pkg/rating"
)

var update = flag.Bool("update", false, "write the golden files anew")

func stream[T any](all ...T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, one := range all {
			if !yield(one, nil) {
				return
			}
		}
	}
}

// item is an hour of a GPU of the sample Plain, of which change makes another.
func item(change func(*Item)) Item {
	i := Item{LineItem: rating.LineItem{
		Tenant: "nordlicht", Project: "atlas", Lease: "lease-7", Session: "session-7", Node: "fra-b-03",
		Region: "eu-central", SKU: "gpu.h100-80g", Purchase: "on_demand", Band: "standard",
		UsageStart: "2026-10-05T10:00:00Z", UsageEnd: "2026-10-05T11:00:00Z", Day: "2026-10-05",
		BillingPeriod: "2026-10", UsagePeriod: "2026-10", Kind: "usage",
		Labels:       map[string]string{"team": "platform", "stage": "pretraining"},
		BaseQuantity: "4812.000000000", BaseUnit: "unit-second", UnitPrice: "2.95", Per: "hour",
		ListAmount: "3.943166666666", Amount: "3.943166666666", EffectiveAmount: "3.943166666666",
		Currency: "EUR",
	}}
	if change != nil {
		change(&i)
	}
	return i
}

// rows reads CSV as rows by column.
func rows(t testing.TB, data []byte) []map[string]string {
	t.Helper()
	records, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]string
	for _, record := range records[1:] {
		r := make(map[string]string)
		for i, cell := range record {
			r[records[0][i]] = cell
		}
		out = append(out, r)
	}
	return out
}

func write(t testing.TB, o Options, documents []*billing.Document, items ...Item) []byte {
	t.Helper()
	var out bytes.Buffer
	if o.Period == "" {
		o.Period = "2026-10"
	}
	if _, err := Write(&out, o, stream(documents...), stream(items...)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// usageRow returns the row of a line item that is on no document.
func usageRow(t testing.TB, change func(*Item)) map[string]string {
	t.Helper()
	data := write(t, Options{Version: V14, Format: CSV, Provider: "Cloud"}, nil, item(change))
	return rows(t, data)[0]
}

func rat(t testing.TB, text string) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%q is no decimal", text)
	}
	return r
}

func TestExportsAreTheGoldenOnes(t *testing.T) {
	documents := []*billing.Document{
		billingtest.Plain(), billingtest.Ladder(), billingtest.Inclusive(),
	}
	items := []Item{
		item(nil),
		item(func(i *Item) { i.Kind, i.BaseQuantity, i.Amount = "void", "-12", "-0.0098" }),
		item(func(i *Item) { i.SKU, i.UsagePeriod = "memory.gib", "2026-09" }),
	}
	for name, o := range map[string]Options{
		"1.2.csv":            {Version: V12, Format: CSV},
		"1.4.csv":            {Version: V14, Format: CSV},
		"invoice-detail.csv": {Version: V14, Format: CSV, Dataset: InvoiceDetail},
		"billing-period.csv": {Version: V14, Format: CSV, Dataset: BillingPeriod},
	} {
		got := write(t, o, documents, items...)
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("%v (go test -update writes it)", err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s differs from its golden (-want +got):\n%s", name, diff)
		}
	}
}

func TestPricingUnitIsThatOfThePrice(t *testing.T) {
	f := func(change func(*Item), quantity, unit, consumed, consumedUnit, list string) {
		t.Helper()
		r := usageRow(t, change)
		got := []string{
			r["PricingQuantity"], r["PricingUnit"], r["ConsumedQuantity"], r["ConsumedUnit"],
			r["ListCost"],
		}
		if diff := cmp.Diff([]string{quantity, unit, consumed, consumedUnit, list}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	// 4812 s are 1.33666... hours: the product of what is written is exact all the same.
	f(nil, "1.336666666667", "GPU-Hours", "4812", "GPU-Seconds", "3.94316666666765")
	f(func(i *Item) { i.Per, i.UnitPrice = "second", "0.001" },
		"4812", "GPU-Seconds", "4812", "GPU-Seconds", "4.812")
	f(func(i *Item) {
		i.Per, i.SKU, i.BaseQuantity, i.UnitPrice = "month", "storage.gib", "657000", "0.04"
	}, "0.25", "GiB-Months", "657000", "GiB-Seconds", "0.01")
	f(func(i *Item) { i.Per, i.SKU, i.BaseQuantity = "day", "cpu.core", "-43200" },
		"-0.5", "Core-Days", "-43200", "Core-Seconds", "-1.475")
	tokens := func(i *Item) {
		i.Per, i.SKU, i.BaseQuantity, i.BaseUnit = "unit", "tokens.trained", "2500", "unit"
		i.UnitPrice, i.UsageEnd = "0.000003500001234567", i.UsageStart
	}
	f(tokens, "2500", "Tokens", "2500", "Tokens", "0.0087500025") // prices have 12 decimals
	f(func(i *Item) { tokens(i); i.Package, i.UnitPrice = "1000", "0.05" },
		"2.5", "1000 Tokens", "2500", "Tokens", "0.125")
	if r := usageRow(t, tokens); r["ChargePeriodEnd"] != "2026-10-05T10:00:01Z" {
		t.Errorf("what is consumed at once ends at %s", r["ChargePeriodEnd"])
	}
}

func TestCategoriesOfUsage(t *testing.T) {
	f := func(change func(*Item), column, want string) {
		t.Helper()
		if got := usageRow(t, change)[column]; got != want {
			t.Errorf("%s is %q, want %q", column, got, want)
		}
	}
	f(nil, "PricingCategory", "Standard")
	f(func(i *Item) { i.Purchase = "spot" }, "PricingCategory", "Dynamic")
	f(func(i *Item) { i.Purchase = "reserved" }, "PricingCategory", "Committed")
	f(nil, "ChargeClass", "")
	f(func(i *Item) { i.UsagePeriod = "2026-08" }, "ChargeClass", "Correction")
	f(nil, "Tags", `{"stage":"pretraining","team":"platform"}`)
	f(func(i *Item) { i.Labels = nil }, "Tags", "")
	f(func(i *Item) { i.Project = "" }, "SubAccountType", "")
	f(func(i *Item) { i.Session = "" }, "ResourceType", "")
	f(func(i *Item) { i.Kind = "rounding" }, "ChargeCategory", "Adjustment")
	f(func(i *Item) { i.Tenant = "=1+1" }, "BillingAccountId", "'=1+1")
	f(func(i *Item) { i.EffectiveAmount = "1.25" }, "EffectiveCost", "1.25")
	f(nil, "BillingPeriodStart", "2026-10-01T00:00:00Z")
}

func TestBillingPeriodsAreLocal(t *testing.T) {
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Version: V14, Format: CSV, Provider: "Cloud",
		Zone: func(string, string) *time.Location { return shanghai },
	}
	open := rows(t, write(t, o, nil, item(nil)))[0]
	if open["BillingPeriodStart"] != "2026-09-30T16:00:00Z" {
		t.Errorf("the open period starts at %s", open["BillingPeriodStart"])
	}
	billed := rows(t, write(t, o, []*billing.Document{billingtest.Plain()}, item(nil)))[0]
	if got := billed["BillingPeriodEnd"]; got != "2026-10-31T23:00:00Z" { // CET again
		t.Errorf("the billed period ends at %s", got)
	}
}

func TestDraftsHaveNoInvoiceID(t *testing.T) {
	o := Options{Version: V14, Format: CSV, Provider: "Cloud"}
	sum := new(big.Rat)
	for _, r := range rows(t, write(t, o, []*billing.Document{billingtest.Draft()}, item(nil))) {
		if r["InvoiceId"] != "" || r["InvoiceDetailId"] != "" {
			t.Errorf("invoice %q, detail %q", r["InvoiceId"], r["InvoiceDetailId"])
		}
		if r["x_DocumentId"] != "nordlicht,,EUR,2026-10" {
			t.Errorf("document %q", r["x_DocumentId"])
		}
		sum.Add(sum, rat(t, r["BilledCost"]))
	}
	if want := billingtest.Draft().Total; sum.Cmp(rat(t, want)) != 0 {
		t.Errorf("the rows come to %s, the draft says %s", sum.FloatString(12), want)
	}
}

func TestContractsHaveTheirOwnInvoices(t *testing.T) {
	a, b := billingtest.Plain(), billingtest.Plain()
	b.Contract, b.Number = "framework", "RE-2026-9"
	o := Options{Version: V14, Format: CSV}
	for _, r := range rows(t, write(t, o, []*billing.Document{a, b},
		item(func(i *Item) { i.Contract = "framework" }))) {
		if r["ChargeCategory"] == "Usage" && r["InvoiceId"] != b.Number {
			t.Errorf("usage of the contract is on %s", r["InvoiceId"])
		}
	}
}

func TestUnsettledItemsAreCounted(t *testing.T) {
	o := Options{Version: V14, Format: CSV, Period: "2026-10", Provider: "Cloud"}
	s, err := Write(new(bytes.Buffer), o, stream[*billing.Document](),
		stream(item(nil), item(func(i *Item) { i.Currency = "" })))
	if err != nil || s != (Summary{Rows: 1, Unsettled: 1}) {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestWrite_failure(t *testing.T) {
	good := Options{Version: V14, Format: CSV, Period: "2026-10", Provider: "Cloud"}
	f := func(want string, o func(*Options), d *billing.Document, i Item) {
		t.Helper()
		options := good
		if o != nil {
			o(&options)
		}
		documents := stream[*billing.Document]()
		if d != nil {
			documents = stream(d)
		}
		_, err := Write(new(bytes.Buffer), options, documents, stream(i))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	f(`version "1.3" is not`, func(o *Options) { o.Version = "1.3" }, nil, item(nil))
	f(`format "xml" is not`, func(o *Options) { o.Format = "xml" }, nil, item(nil))
	f(`period "October" is not`, func(o *Options) { o.Period = "October" }, nil, item(nil))
	f(`no dataset "contract"`, func(o *Options) { o.Dataset = "contract" }, nil, item(nil))
	f("1.2 has no dataset", func(o *Options) { o.Version, o.Dataset = V12, InvoiceDetail }, nil,
		item(nil))
	f("name a provider", func(o *Options) { o.Provider = "" }, nil, item(nil))
	f("name a provider", func(o *Options) { o.Provider = "" }, billingtest.Draft(), item(nil))
	f("its billing period is 2026-09", nil, nil, item(func(i *Item) { i.BillingPeriod = "2026-09" }))
	f(`its kind "tax" is not known`, nil, nil, item(func(i *Item) { i.Kind = "tax" }))
	f(`its price is per "week"`, nil, nil, item(func(i *Item) { i.Per = "week" }))
	f("parse amount", nil, nil, item(func(i *Item) { i.Amount = "1e3" }))
	f("parse quantity", nil, nil, item(func(i *Item) { i.BaseQuantity = "" }))
	f("parse unit price", nil, nil, item(func(i *Item) { i.UnitPrice = "-1" }))
	f("its package is", nil, nil, item(func(i *Item) { i.Package = "0" }))
	wrong := billingtest.Plain()
	wrong.Subtotal = "0.00"
	f("its lines come to", nil, wrong, item(nil))
	huge := item(func(i *Item) {
		i.BaseQuantity, i.UnitPrice, i.Per = "999999999", "999999", "second"
	})
	f("has more than 38 digits", func(o *Options) { o.Format = Parquet }, nil, huge)

	gone := errors.New("gone")
	broken := func(yield func(Item, error) bool) { yield(Item{}, gone) }
	_, err := Write(new(bytes.Buffer), good, stream[*billing.Document](), broken)
	if !errors.Is(err, gone) {
		t.Errorf("error %v", err)
	}
	lost := func(yield func(*billing.Document, error) bool) { yield(nil, gone) }
	if _, err := Write(new(bytes.Buffer), good, lost, stream[Item]()); !errors.Is(err, gone) {
		t.Errorf("error %v", err)
	}
}

// A late credit that is more than one invoice has left is two notes: the line items are on the
// first, and the second says what is over.
func TestLateCreditOnTwoInvoices(t *testing.T) {
	first := billingtest.CreditNote()
	first.Cites.ID = "late-2026-11"
	l := &first.Lines[0]
	l.Kind, l.UsagePeriod = billing.LateLine, "2026-10"
	second := billingtest.CreditNote()
	second.Number, second.Cites.ID = "GS-2026-2", "late-2026-11-of-2026-10"
	second.Period = "2026-09"
	second.Lines[0].Kind, second.Lines[0].UsagePeriod = billing.LateLine, "2026-10"
	second.Lines[0].SKU, second.Lines[0].Purchase, second.Lines[0].Band = "", "", ""
	late := item(func(i *Item) {
		i.BillingPeriod, i.Kind, i.BaseQuantity = "2026-11", "void", "-"+l.Quantity
		i.Amount = "-" + l.Exact
	})
	o := Options{Version: V14, Format: CSV, Period: "2026-11"}
	var got []string
	for _, r := range rows(t, write(t, o, []*billing.Document{first, second}, late)) {
		if r["ChargeCategory"] != "Tax" {
			got = append(got, r["InvoiceId"]+" "+r["ChargeCategory"]+" "+r["BilledCost"])
		}
	}
	want := []string{
		"GS-2026-2 Credit -1094.400000000000", "GS-2026-1 Usage -1094.400000000000",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
