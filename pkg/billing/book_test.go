package billing

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/money"
)

var bookDay = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// plainInvoice is an invoice of cents that are taxed at 25 %, exclusive, in some lines.
func plainInvoice(tenant, period string, cents ...int64) *Document {
	d := &Document{
		Schema: Schema, Type: Invoice, Tenant: tenant, Period: period, Currency: "EUR",
		PeriodStart: period + "-01", PeriodEnd: period + "-28", Seller: &Party{Name: "us"},
		UnroundedTotal: "0",
	}
	s := treatment{LineTax: LineTax{Category: "S", Rate: "25"}}
	var sum money.Amount
	for _, c := range cents {
		a := money.New(big.NewInt(c), 2)
		sum = sum.Add(a)
		d.Lines = append(d.Lines, Line{
			Kind: UsageLine, SKU: "gpu", UsagePeriod: period, Amount: a.Fixed(2), Net: a.Fixed(2),
			Exact: a.Fixed(12), Tax: s.line(),
		})
	}
	d.setTaxes([]taxed{s.levy(sum, 2)}, sum, 2)
	return d
}

func drawInvoice(t *rapid.T, tenant, period string) *Document {
	return plainInvoice(tenant, period,
		rapid.SliceOfN(rapid.Int64Range(1, 500), 1, 12).Draw(t, "cents")...)
}

// Property: whatever sequence of credit notes a person makes, they never come to more than the
// invoice, in no tax and no taxable amount, and giving back the rest leaves nothing.
func TestCredit_neverExceedsAndTheLastHasTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		invoice := drawInvoice(t, "acme", "2026-01")
		h := NewHistory()
		if err := h.Add(invoice); err != nil {
			t.Fatal(err)
		}
		given := 0
		credit := func(r CreditRequest) {
			r.Key, r.Reason, r.ID = invoice.Key(), "because", fmt.Sprint("c", given)
			note, err := Credit(h, r)
			if err != nil {
				return
			}
			given++
			if err := note.CheckSums(); err != nil {
				t.Fatal(err)
			}
			for _, tax := range note.Taxes {
				if parse(tax.Taxable).Sign() < 0 || parse(tax.Tax).Sign() < 0 {
					t.Fatalf("%+v gives a negative amount back", tax)
				}
			}
			if err := h.Add(note); err != nil {
				t.Fatal(err)
			}
			if h.Remaining(invoice.Key()).Sign() < 0 {
				t.Fatalf("after %d notes %s is left", given, h.Remaining(invoice.Key()))
			}
		}
		for range rapid.IntRange(0, 12).Draw(t, "notes") {
			if rapid.Bool().Draw(t, "by line") {
				credit(CreditRequest{Line: rapid.IntRange(1, 13).Draw(t, "line")})
				continue
			}
			amount := money.New(big.NewInt(rapid.Int64Range(1, 900).Draw(t, "amount")), 2)
			credit(CreditRequest{Amount: &amount})
		}
		credit(CreditRequest{})
		if left := h.Remaining(invoice.Key()); left.Sign() != 0 {
			t.Fatalf("%s is left after all of it was given back", left)
		}
		if _, err := Credit(h, CreditRequest{Key: invoice.Key(), Reason: "x", ID: "more"}); err == nil {
			t.Fatal("there was still something to give back")
		}
	})
}

// Property: whatever billers and persons append, in whatever order and how often, each series has
// consecutive numbers, each key one invoice, and no invoice is given back beyond its total.
func TestBook_numbersWithoutGapOrRepeat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var records []*Record
		totals := make(map[string]money.Amount)
		for _, tenant := range []string{"acme", "blue"} {
			for _, period := range []string{"2026-01", "2026-02"} {
				// Two billers decide, and differ, as one of them saw more.
				for range 2 {
					d := drawInvoice(t, tenant, period)
					held := []string(nil)
					if rapid.Bool().Draw(t, "held") {
						held = []string{"looks odd"}
					}
					records = append(records, &Record{Decision: &Decision{
						Tenant: tenant, Period: period,
						Documents: []Drafted{{Document: *d, Terms: Terms{Series: "INV"}, Held: held}},
					}})
					for i := range rapid.IntRange(0, 4).Draw(t, "credits") {
						h := NewHistory()
						if err := h.Add(d); err != nil {
							t.Fatal(err)
						}
						amount := money.New(big.NewInt(rapid.Int64Range(1, 400).Draw(t, "amount")), 2)
						note, err := Credit(h, CreditRequest{
							Key: d.Key(), Reason: "because", ID: fmt.Sprint("c", i), Amount: &amount,
						})
						if err == nil {
							records = append(records, &Record{Credit: &Drafted{
								Document: *note, Terms: Terms{Series: "CN"},
							}})
						}
					}
				}
				id := plainInvoice(tenant, period, 1).ID()
				records = append(records, &Record{Release: &Act{ID: id, By: "ann", Reason: "fine"}},
					&Record{Void: &Act{ID: id, By: "bob", Reason: "wrong"}},
					&Record{Void: &Act{ID: id + ",c0", By: "bob", Reason: "wrong"}},
					&Record{Release: &Act{ID: id + ",c0", By: "ann", Reason: "fine"}})
			}
		}
		records = append(records, records...)
		book := NewBook()
		numbers := make(map[string][]string)
		state := make(map[string]Entry)
		for i, r := range rapid.Permutation(records).Draw(t, "order") {
			text, err := r.Encode("/biller")
			if err != nil {
				t.Fatal(err)
			}
			entries, _ := book.Apply(int64(i), bookDay, text) // refusals are no failure
			for _, e := range entries {
				if old, ok := state[e.ID]; ok && old.Status != Held {
					t.Fatalf("%s was %s and became %s", e.ID, old.Status, e.Status)
				}
				state[e.ID] = e
				if e.Status == Issued {
					series, _, _ := strings.Cut(e.Number, "-")
					numbers[series] = append(numbers[series], e.Number)
				}
			}
		}
		issued := int64(0)
		for series, all := range numbers {
			for i, number := range all {
				issued++
				if want := fmt.Sprintf("%s-2026-%d", series, i+1); number != want {
					t.Fatalf("number %s, want %s", number, want)
				}
			}
		}
		if book.Issued() != issued {
			t.Fatalf("the book counts %d documents, there are %d", book.Issued(), issued)
		}
		for _, e := range state {
			sum := parse(e.Total)
			if e.Status == Voided {
				continue
			}
			if e.Type == CreditNote {
				sum = sum.Neg()
			}
			totals[e.Key().String()] = totals[e.Key().String()].Add(sum)
		}
		for key, left := range totals {
			if left.Sign() < 0 && state[key].Status != Voided {
				t.Fatalf("%s was given back by %s more than it is", key, left)
			}
		}
	})
}

// TestBook_refusesWhatIsNotSound applies records that no biller of ours writes.
func TestBook_refusesWhatIsNotSound(t *testing.T) {
	base := func() (*Drafted, *Record) {
		d := &Decision{Tenant: "acme", Period: "2026-01", Documents: []Drafted{
			{Document: *plainInvoice("acme", "2026-01", 100, 200), Terms: Terms{Series: "INV"}},
		}}
		return &d.Documents[0], &Record{Decision: d}
	}
	f := func(want string, change func(*Drafted, *Record)) {
		t.Helper()
		d, r := base()
		change(d, r)
		text, err := r.Encode("/x")
		if err != nil {
			t.Fatal(err)
		}
		book := NewBook()
		entries, err := book.Apply(0, bookDay, text)
		if err == nil || !strings.Contains(err.Error(), want) || len(entries) > 0 ||
			book.Issued() != 0 {
			t.Errorf("applied with %v, want %q", err, want)
		}
	}
	f("plain decimal", func(d *Drafted, _ *Record) { d.Total = "lots" })
	f("plain decimal", func(d *Drafted, _ *Record) { d.Lines[0].Exact = "1e9" })
	f("more than 2 decimals", func(d *Drafted, _ *Record) { d.Taxes[0].Tax = "0.751" })
	f("plain decimal", func(d *Drafted, _ *Record) { d.Taxes[0].Rate = "NaN" })
	f("percent", func(d *Drafted, _ *Record) { d.Taxes[0].Rate = "101" })
	f("come to", func(d *Drafted, _ *Record) { d.Total = "3.74" })
	f("no currency", func(d *Drafted, _ *Record) { d.Currency = "XXY" })
	f("not a month", func(d *Drafted, r *Record) { d.Period, r.Decision.Period = "soon", "soon" })
	f("neither invoice", func(d *Drafted, _ *Record) { d.Type = "" })
	f("has no id", func(d *Drafted, _ *Record) { d.Type = CreditNote })
	f("is not of period", func(d *Drafted, _ *Record) { d.Tenant = "blue" })
	f("names no document", func(d *Drafted, r *Record) { d.Tenant, r.Decision.Tenant = "a,b", "a,b" })
	f("there twice", func(_ *Drafted, r *Record) {
		r.Decision.Documents = append(r.Decision.Documents, r.Decision.Documents[0])
	})
	f("payment_days", func(d *Drafted, _ *Record) { d.Terms.PaymentDays = 1 << 40 })
	f("only 1.25 is left", func(d *Drafted, r *Record) { // two notes that are too much together
		for i := range 2 {
			h := NewHistory()
			if err := h.Add(&d.Document); err != nil {
				t.Fatal(err)
			}
			amount := money.MustParse("2.5")
			note, err := Credit(h, CreditRequest{
				Key: d.Key(), Reason: "r", ID: fmt.Sprint(i), Amount: &amount,
			})
			if err != nil {
				t.Fatal(err)
			}
			r.Decision.Documents = append(r.Decision.Documents, Drafted{Document: *note})
		}
	})
}

// apply applies a record to a book, and returns the statuses of what it changed.
func apply(t *testing.T, b *Book, offset int64, r *Record) (string, error) {
	t.Helper()
	text, err := r.Encode("/x")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := b.Apply(offset, bookDay, text)
	var out []string
	for _, e := range entries {
		out = append(out, e.ID+" "+string(e.Status))
	}
	return strings.Join(out, ", "), err
}

func heldInvoice(period string, known int64) *Record {
	return &Record{Decision: &Decision{
		Tenant: "acme", Period: period, Known: known, Documents: []Drafted{{
			Document: *plainInvoice("acme", period, 100, 200), Terms: Terms{Series: "INV"},
			Held: []string{"it is odd"},
		}},
	}}
}

// A history that has a credit note must have its invoice.
func TestBook_voidsNoInvoiceThatIsCited(t *testing.T) {
	book, history := NewBook(), NewHistory()
	invoice := heldInvoice("2026-01", 0)
	f := func(offset int64, r *Record, want, wantErr string) {
		t.Helper()
		got, err := apply(t, book, offset, r)
		if got != want || (err == nil) != (wantErr == "") || err != nil &&
			!strings.Contains(err.Error(), wantErr) {
			t.Errorf("record %d: %q, %v, want %q, %q", offset, got, err, want, wantErr)
		}
	}
	f(0, invoice, "acme,,EUR,2026-01 held", "")
	doc := &invoice.Decision.Documents[0].Document
	if err := history.Add(doc); err != nil {
		t.Fatal(err)
	}
	amount := money.MustParse("1")
	note, err := Credit(history, CreditRequest{Key: doc.Key(), Reason: "r", ID: "c", Amount: &amount})
	if err != nil {
		t.Fatal(err)
	}
	f(1, &Record{Credit: &Drafted{Document: *note}}, "acme,,EUR,2026-01,c held", "")
	f(2, &Record{Void: &Act{ID: doc.ID()}}, "", "cited by 1 credit notes")
	f(3, &Record{Void: &Act{ID: note.ID()}}, "acme,,EUR,2026-01,c voided", "")
	f(4, &Record{Void: &Act{ID: doc.ID()}}, "acme,,EUR,2026-01 voided", "")
}

// A decision rests on what was billed before: it does not count if a person changed that meanwhile.
func TestBook_ignoresDecisionsThatDoNotKnowWhatPersonsDid(t *testing.T) {
	book := NewBook()
	f := func(offset int64, r *Record, want string) {
		t.Helper()
		if got, err := apply(t, book, offset, r); got != want || (err != nil) != (want == "") {
			t.Errorf("record %d: %q, %v, want %q", offset, got, err, want)
		}
	}
	f(0, heldInvoice("2026-01", 0), "acme,,EUR,2026-01 held")
	f(1, heldInvoice("2026-02", 1), "acme,,EUR,2026-02 held")
	f(2, &Record{Void: &Act{ID: "acme,,EUR,2026-01"}}, "acme,,EUR,2026-01 voided")
	f(3, heldInvoice("2026-03", 2), "")
	f(4, heldInvoice("2026-03", 3), "acme,,EUR,2026-03 held")
	f(5, &Record{Void: &Act{ID: "nobody's"}}, "")
	f(6, heldInvoice("2026-04", 5), "acme,,EUR,2026-04 held")
	if book.End() != 7 {
		t.Errorf("the book ends at %d", book.End())
	}
}

// FuzzBook applies what is no record, and what almost is one.
func FuzzBook(f *testing.F) {
	d := plainInvoice("acme", "2026-01", 100, 250)
	h := NewHistory()
	if err := h.Add(d); err != nil {
		f.Fatal(err)
	}
	note, err := Credit(h, CreditRequest{Key: d.Key(), Reason: "r", ID: "c", Line: 1})
	if err != nil {
		f.Fatal(err)
	}
	decision := &Record{Decision: &Decision{Tenant: "acme", Period: "2026-01", Documents: []Drafted{
		{Document: *d, Terms: Terms{Series: "INV"}},
	}}}
	for _, r := range []*Record{
		decision,
		{Credit: &Drafted{Document: *note, Terms: Terms{Series: "CN"}}},
		{Release: &Act{ID: d.ID()}},
		{Void: &Act{ID: note.ID()}},
	} {
		text, err := r.Encode("/x")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	first, err := decision.Encode("/x")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(_ *testing.T, text []byte) {
		for _, start := range [][]byte{nil, first} {
			book := NewBook()
			if start != nil {
				_, _ = book.Apply(0, bookDay, start)
			}
			_, _ = book.Apply(1, bookDay, text)
			_, _ = book.Apply(2, bookDay, text)
		}
	})
}

// TestCredit_taxIsNeverMoreThanIsLeft gives back lines whose tax was rounded up, each by itself,
// until no tax is left, and then an amount.
func TestCredit_taxIsNeverMoreThanIsLeft(t *testing.T) {
	invoice := plainInvoice("acme", "2026-01", 2, 2, 2, 2, 2, 2, 2, 2, 2, 2) // 0.20 and 0.05 tax
	h := NewHistory()
	if err := h.Add(invoice); err != nil {
		t.Fatal(err)
	}
	five := money.MustParse("0.05")
	for i, r := range []CreditRequest{
		{Line: 1},
		{Line: 2},
		{Line: 3},
		{Line: 4},
		{Line: 5},
		{Amount: &five},
		{},
	} {
		r.Key, r.ID, r.Reason = invoice.Key(), fmt.Sprint(i), "because"
		note, err := Credit(h, r)
		if err != nil {
			t.Fatal(err)
		}
		want := "0.01"
		if i > 4 {
			want = "0.00"
		}
		if note.TaxTotal != want {
			t.Errorf("note %d gives a tax of %s back, want %s", i, note.TaxTotal, want)
		}
		if err := h.Add(note); err != nil {
			t.Fatal(err)
		}
	}
}
