// Package journal writes the postings of documents for a general ledger: what each debits and
// credits on the accounts that the catalog gives its seller. Documents come in; lines of CSV or
// JSON go out, which come to zero for each document. It is pure.
//
// An invoice debits what is due to receivable, what balances paid to prepaid, and promotional money
// to promo. It credits the net amount of its lines to revenue, by SKU, and its taxes to tax. A
// credit note posts the opposite. What the tax that prices include is rounded by goes to rounding.
// Drafts post nothing.
package journal

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"

	"github.com/suanpan/suanpan/pkg/billing"
	billingcsv "github.com/suanpan/suanpan/pkg/billing/csv"
	"github.com/suanpan/suanpan/pkg/catalog"
)

// Format is how postings are written.
type Format string

// The formats: CSV with a header, which spreadsheets do not take for formulas, or one JSON object a
// line.
const (
	CSV  Format = "csv"
	JSON Format = "json"
)

// Options say what to write.
type Options struct {
	Format Format
	Period string // the billing period, YYYY-MM
	// Accounts returns the accounts of a seller, nil where it has none.
	Accounts func(seller string) *catalog.Accounts
}

// Kind says what a posting is for.
type Kind string

// The kinds of postings, in their order.
const (
	Receivable Kind = "receivable"
	Prepaid    Kind = "prepaid"
	Promo      Kind = "promo"
	Revenue    Kind = "revenue"
	Tax        Kind = "tax"
	Rounding   Kind = "rounding"
)

// Posting is one line of the journal. One of Debit and Credit is there, above 0, with the
// currency's digits.
type Posting struct {
	Entry    string       `json:"entry"` // number of the document
	Line     int          `json:"line"`  // of the entry, from 1
	Date     string       `json:"date"`  // of issue
	Type     billing.Type `json:"document_type"`
	Cites    string       `json:"cites,omitempty"` // number of a credit note's invoice
	Seller   string       `json:"seller"`
	Tenant   string       `json:"tenant"`
	Contract string       `json:"contract,omitempty"`
	Period   string       `json:"period"` // that the entry is booked in
	Account  string       `json:"account"`
	Kind     Kind         `json:"kind"`
	Debit    string       `json:"debit,omitempty"`
	Credit   string       `json:"credit,omitempty"`
	Currency string       `json:"currency"`

	Grant       string `json:"grant,omitempty"`        // of prepaid and promo
	TaxCategory string `json:"tax_category,omitempty"` // of tax
	TaxRate     string `json:"tax_rate,omitempty"`     // percent, of tax
}

// columns are the names of the columns of CSV, in their order. New ones come at the end.
var columns = []string{
	"entry", "line", "date", "document_type", "cites", "seller", "tenant", "contract", "period",
	"account", "kind", "debit", "credit", "currency", "grant", "tax_category", "tax_rate",
}

func (p *Posting) cells() []string {
	cells := []string{
		p.Entry, strconv.Itoa(p.Line), p.Date, string(p.Type), p.Cites, p.Seller, p.Tenant, p.Contract,
		p.Period, p.Account, string(p.Kind), p.Debit, p.Credit, p.Currency, p.Grant, p.TaxCategory,
		p.TaxRate,
	}
	for i := range cells {
		cells[i] = billingcsv.Safe(cells[i])
	}
	return cells
}

// Summary is what was written.
type Summary struct {
	Entries int // documents that were posted
	Lines   int
	Drafts  int // documents that were not: they have no number
}

// Write writes the journal of a billing period: the documents that are booked in it, see
// [billing.Document.BookedIn], by seller, type, date and number. It passes over documents of other
// periods; those that were voided must not be among them. It fails where a document does not add
// up, or an account that is needed has no code.
func Write(w io.Writer, o Options, documents iter.Seq2[*billing.Document, error],
) (Summary, error) {
	summary, postings, err := post(&o, documents)
	if err == nil {
		switch o.Format {
		case CSV:
			err = writeCSV(w, postings)
		case JSON:
			err = writeJSON(w, postings)
		default:
			err = fmt.Errorf("format %q is not csv or json", o.Format)
		}
	}
	if err != nil {
		return Summary{}, fmt.Errorf("export journal: %w", err)
	}
	return summary, nil
}

// post returns all postings in their order.
func post(o *Options, documents iter.Seq2[*billing.Document, error]) (Summary, []Posting, error) {
	var s Summary
	var postings []Posting
	for d, err := range documents {
		if err != nil {
			return s, nil, fmt.Errorf("read documents: %w", err)
		}
		if d.BookedIn() != o.Period {
			continue
		}
		if d.Number == "" {
			s.Drafts++
			continue
		}
		entry, err := entryOf(d, o)
		if err != nil {
			return s, nil, fmt.Errorf("document %s: %w", d.ID(), err)
		}
		s.Entries++
		postings = append(postings, entry...)
	}
	s.Lines = len(postings)
	slices.SortStableFunc(postings, func(a, b Posting) int {
		return cmp.Or(cmp.Compare(a.Seller, b.Seller), cmp.Compare(a.Type, b.Type),
			cmp.Compare(a.Date, b.Date), cmp.Compare(len(a.Entry), len(b.Entry)),
			cmp.Compare(a.Entry, b.Entry), cmp.Compare(a.Line, b.Line))
	})
	return s, postings, nil
}

func writeCSV(w io.Writer, postings []Posting) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	if err := out.Write(columns); err != nil {
		return fmt.Errorf("write header: %w", err)
	}
	for i := range postings {
		if err := out.Write(postings[i].cells()); err != nil {
			return fmt.Errorf("write posting: %w", err)
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write postings: %w", err)
	}
	return nil
}

func writeJSON(w io.Writer, postings []Posting) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	for i := range postings {
		if err := out.Encode(&postings[i]); err != nil {
			return fmt.Errorf("write posting: %w", err)
		}
	}
	return nil
}
