package journal

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"iter"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/billingtest"
	"github.com/suanpan/suanpan/pkg/catalog"
)

var update = flag.Bool("update", false, "write the golden files anew")

// accounts are those of every seller.
func accounts(string) *catalog.Accounts {
	return &catalog.Accounts{
		Receivable: "1122", Tax: "2221", Prepaid: "2203", Promo: "6601", Rounding: "6603",
		Revenue: []catalog.RevenueAccount{
			{SKU: "gpu.*", Account: "6001.01"},
			{SKU: "storage.*", Account: "6001.02"},
			{SKU: "*", Account: "6001.99"},
		},
	}
}

func stream(documents ...*billing.Document) iter.Seq2[*billing.Document, error] {
	return func(yield func(*billing.Document, error) bool) {
		for _, d := range documents {
			if !yield(d, nil) {
				return
			}
		}
	}
}

func write(t testing.TB, format Format, period string, documents ...*billing.Document) []byte {
	t.Helper()
	var out bytes.Buffer
	o := Options{Format: format, Period: period, Accounts: accounts}
	if _, err := Write(&out, o, stream(documents...)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func rat(t rapid.TB, text string) *big.Rat {
	t.Helper()
	if text == "" {
		return new(big.Rat)
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%q is no decimal", text)
	}
	return r
}

// Property: every entry comes to zero, receivable and balances come to the total, taxes to the tax
// total.
func TestEntriesBalance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var documents []*billing.Document
		for i := range rapid.IntRange(1, 4).Draw(t, "documents") {
			documents = append(documents, billingtest.Random(t, i+1))
		}
		o := Options{Period: "2026-10", Accounts: accounts}
		_, postings, err := post(&o, stream(documents...))
		if err != nil {
			t.Fatal(err)
		}
		sums := make(map[string]*big.Rat)
		for _, p := range postings {
			amount := new(big.Rat).Sub(rat(t, p.Debit), rat(t, p.Credit))
			for _, key := range []string{p.Entry, p.Entry + string(p.Kind)} {
				if sums[key] == nil {
					sums[key] = new(big.Rat)
				}
				sums[key].Add(sums[key], amount)
			}
			if (p.Debit == "") == (p.Credit == "") || amount.Sign() == 0 ||
				strings.HasPrefix(p.Debit+p.Credit, "-") {
				t.Fatalf("posting %+v", p)
			}
		}
		for _, d := range documents {
			if sum := sums[d.Number]; sum != nil && sum.Sign() != 0 {
				t.Fatalf("%s comes to %s", d.Number, sum.FloatString(3))
			}
			sign := big.NewRat(1, 1)
			if d.Type == billing.CreditNote {
				sign.Neg(sign)
			}
			got := map[string]*big.Rat{"total": new(big.Rat), "tax": new(big.Rat)}
			for _, kind := range []Kind{Receivable, Prepaid} {
				if sum := sums[d.Number+string(kind)]; sum != nil {
					got["total"].Add(got["total"], sum)
				}
			}
			if sum := sums[d.Number+string(Tax)]; sum != nil {
				got["tax"].Neg(sum)
			}
			for what, want := range map[string]string{"total": d.Total, "tax": d.TaxTotal} {
				if new(big.Rat).Mul(sign, rat(t, want)).Cmp(got[what]) != 0 {
					t.Fatalf("%s posts the %s as %s, it says %s", d.Number, what,
						got[what].FloatString(3), want)
				}
			}
		}
	})
}

func TestJournalsAreTheGoldenOnes(t *testing.T) {
	samples := billingtest.Samples()
	for _, name := range slices.Sorted(maps.Keys(samples)) {
		d := samples[name]
		for _, format := range []Format{CSV, JSON} {
			got := write(t, format, d.BookedIn(), d)
			path := filepath.Join("testdata", name+"."+string(format))
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
}

// A journal depends on the documents, not on the order in which they come.
func TestOrderDoesNotMatter(t *testing.T) {
	samples := billingtest.Samples()
	delete(samples, "draft")
	var documents []*billing.Document
	for _, name := range slices.Sorted(maps.Keys(samples)) {
		documents = append(documents, samples[name])
	}
	want := write(t, CSV, "2026-10", documents...)
	slices.Reverse(documents)
	if got := write(t, CSV, "2026-10", documents...); !bytes.Equal(got, want) {
		t.Error("the journal of the reverse order differs")
	}
	for _, format := range []Format{CSV, JSON} {
		for line := range bytes.Lines(write(t, format, "2026-10", documents...)) {
			if bytes.Contains(line, []byte("GS-2026-1")) {
				t.Error("a credit note of November is in October")
			}
		}
	}
}

func TestDraftsAndOtherPeriodsPostNothing(t *testing.T) {
	var out bytes.Buffer
	o := Options{Format: JSON, Period: "2026-10", Accounts: accounts}
	s, err := Write(&out, o, stream(billingtest.Draft(), billingtest.CreditNote()))
	if err != nil || s != (Summary{Drafts: 1}) || out.Len() != 0 {
		t.Errorf("%+v, %v: %s", s, err, &out)
	}
}

func TestNoCellIsAFormula(t *testing.T) {
	d := billingtest.Plain()
	d.Tenant = "=1+1"
	records, err := csv.NewReader(bytes.NewReader(write(t, CSV, "2026-10", d))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if got := records[1][slices.Index(columns, "tenant")]; got != "'=1+1" {
		t.Errorf("tenant %q", got)
	}
	var p Posting
	first, _, _ := bytes.Cut(write(t, JSON, "2026-10", d), []byte("\n"))
	if err := json.Unmarshal(first, &p); err != nil || p.Tenant != "=1+1" {
		t.Errorf("tenant %q in JSON, %v", p.Tenant, err)
	}
}

func TestWrite_failure(t *testing.T) {
	f := func(want string, d *billing.Document, change func(*catalog.Accounts)) {
		t.Helper()
		o := Options{Format: CSV, Period: "2026-10", Accounts: func(string) *catalog.Accounts {
			a := accounts("")
			if change == nil {
				return nil
			}
			change(a)
			return a
		}}
		var out bytes.Buffer
		_, err := Write(&out, o, stream(d))
		if err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("error %v and %d bytes, want %q", err, out.Len(), want)
		}
	}
	keep := func(*catalog.Accounts) {}
	f("seller rheinland has no account for receivable", billingtest.Plain(), nil)
	f("has no account for tax", billingtest.Plain(), func(a *catalog.Accounts) { a.Tax = "" })
	f("has no account for promo", billingtest.Ladder(), func(a *catalog.Accounts) { a.Promo = "" })
	f("has no account for prepaid", billingtest.Ladder(), func(a *catalog.Accounts) { a.Prepaid = "" })
	f("no revenue account for SKU memory.gib", billingtest.Plain(), func(a *catalog.Accounts) {
		a.Revenue = a.Revenue[:2]
	})
	f("no revenue account for lines without a SKU", billingtest.Ladder(), func(a *catalog.Accounts) {
		a.Revenue = a.Revenue[:2]
	})
	wrong := billingtest.Plain()
	wrong.Total = "1.00"
	f("subtotal and taxes come to", wrong, keep)
	wrong = billingtest.Plain()
	wrong.Lines[0].Net = "1.00"
	f("its net amounts, taxes and total differ by", wrong, keep)
	unsold := billingtest.Plain()
	unsold.Seller = nil
	f("it has no seller", unsold, keep)

	o := Options{Format: "xml", Period: "2026-10", Accounts: accounts}
	if _, err := Write(new(bytes.Buffer), o, stream()); err == nil {
		t.Error("XML was written")
	}
	broken := func(yield func(*billing.Document, error) bool) { yield(nil, errors.New("gone")) }
	o.Format = CSV
	if _, err := Write(new(bytes.Buffer), o, broken); err == nil ||
		!strings.Contains(err.Error(), "read documents: gone") {
		t.Errorf("error %v", err)
	}
}
