// Package focus writes what finance systems import: the datasets of FOCUS, the FinOps Open Cost and
// Usage Specification, versions 1.2 and 1.4, as CSV or Parquet. Documents and the line items of a
// billing period come in, as streams; rows go out. It keeps the sums of the documents' lines in
// memory, not the rows. It is pure: the same input gives the same bytes.
//
// Cost and Usage has for each document:
//   - Usage: each line item, at its exact amount. Usage of an earlier period is a Correction.
//   - Purchase: fees of commitments and packs; Credit: service credits, promotional money and
//     grants of units.
//   - Tax: one row for each category and rate.
//   - Adjustment: minimum spends, and what makes the sum of BilledCost the document's total, to
//     the last digit. x_Reason says why: the rounding of a line; usage of a ladder that came after
//     the document, and changed the average price that line items have (average_price); a tax that
//     prices include (included_tax); late usage that is not charged (not_billed); a line of which
//     no line item came in (no_line_items).
//
// Prices may include a tax. Then costs of usage include it too, so that they are unit price x
// quantity; the Tax row says how much it is, and Adjustment rows of the lines take it off again.
// Without those of category Tax, all rows of an invoice come to its net amount.
//
// The rows of a credit note are negative Corrections under its own number. Balances that paid a
// part of an invoice are payments, not charges: they have no row. Drafts have no InvoiceId;
// x_DocumentId tells them apart.
//
// PricingUnit is that of the price: hours as a rule. A quantity of seconds need not be a decimal
// number of hours; it is rounded to 12 decimals then, and ListCost and ContractedCost are the exact
// products of what is written. ConsumedQuantity is exact, in seconds.
package focus

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/rating"
)

// Version is a version of FOCUS.
type Version string

// The versions of FOCUS.
const (
	V12 Version = "1.2"
	V14 Version = "1.4"
)

// Format is how rows are written.
type Format string

// The formats. Spreadsheets do not take cells of CSV for formulas; those that they would begin with
// an apostrophe.
const (
	CSV     Format = "csv"
	Parquet Format = "parquet"
)

// Dataset is what rows are about.
type Dataset string

// The datasets; those but the first are of version 1.4.
const (
	CostAndUsage  Dataset = "cost-and-usage"
	InvoiceDetail Dataset = "invoice-detail"
	BillingPeriod Dataset = "billing-period"
)

// Options say what to write.
type Options struct {
	Version Version
	Format  Format
	Dataset Dataset // "" is CostAndUsage
	Period  string  // the billing period, YYYY-MM
	// Provider is who provides the service, and issues what no seller is known for. It may be ""
	// where all documents have a seller and all usage is on documents.
	Provider string
	// Zone returns the time zone of the billing periods of usage that no document has. Without it
	// they are in UTC.
	Zone func(tenant, contract string) *time.Location
}

// Item is a line item with what it lacks.
type Item struct {
	rating.LineItem
	Contract string // of its charge, "" without one
	Package  string // units of the price that are sold together, "" where each is sold by itself
}

// Summary is what was written.
type Summary struct {
	Rows      int64
	Documents int64
	Unsettled int64 // line items left out, as they have no price yet
}

// Write writes a dataset of a billing period: its documents, see [billing.Document.BookedIn], and
// its line items. Documents of other periods are passed over, and those that were voided must not
// be among them. It fails where a document does not add up, a line item is of another period, or a
// provider is needed and not named.
func Write(w io.Writer, o Options, documents iter.Seq2[*billing.Document, error],
	items iter.Seq2[Item, error],
) (Summary, error) {
	export, err := newExport(w, o)
	if err == nil {
		err = export.run(documents, items)
	}
	if err != nil {
		return Summary{}, fmt.Errorf("export FOCUS %s: %w", o.Version, err)
	}
	return export.summary, nil
}

// export is a dataset at work.
type export struct {
	Options
	start, end time.Time // days, whose midnights in a zone bound the period
	sheet      sheet
	book       *book
	grouped    int      // groups of the documents so far
	periods    *periods // of Billing Period
	summary    Summary
}

func newExport(w io.Writer, o Options) (*export, error) {
	start, err := time.Parse("2006-01", o.Period)
	if err != nil {
		return nil, fmt.Errorf("period %q is not YYYY-MM", o.Period)
	}
	e := &export{Options: o, start: start, end: start.AddDate(0, 1, 0), book: newBook()}
	if o.Version != V12 && o.Version != V14 {
		return nil, fmt.Errorf("version %q is not 1.2 or 1.4", o.Version)
	}
	var in []column
	switch o.Dataset {
	case CostAndUsage, "":
		in, e.Dataset = columns[:], CostAndUsage
	case InvoiceDetail:
		in = invoiceColumns[:]
	case BillingPeriod:
		in, e.periods = periodColumns[:], newPeriods()
	default:
		return nil, fmt.Errorf("there is no dataset %q", o.Dataset)
	}
	if e.Dataset != CostAndUsage && o.Version != V14 {
		return nil, fmt.Errorf("version %s has no dataset %s", o.Version, o.Dataset)
	}
	switch o.Format {
	case CSV:
		e.sheet, err = newCSV(w, in, o.Version)
	case Parquet:
		e.sheet = newParquet(w, in, o.Version)
	default:
		err = fmt.Errorf("format %q is not csv or parquet", o.Format)
	}
	return e, err
}

func (e *export) run(documents iter.Seq2[*billing.Document, error], items iter.Seq2[Item, error],
) error {
	for d, err := range documents {
		if err != nil {
			return fmt.Errorf("read documents: %w", err)
		}
		if d.BookedIn() != e.Period {
			continue
		}
		if err := e.document(d); err != nil {
			return fmt.Errorf("document %s: %w", d.ID(), err)
		}
		e.summary.Documents++
	}
	for i, err := range items {
		if err != nil {
			return fmt.Errorf("read line items: %w", err)
		}
		if err := e.item(&i); err != nil {
			return fmt.Errorf("line item of tenant %s, %s at %s: %w", i.Tenant, i.SKU, i.UsageStart, err)
		}
	}
	if err := e.finish(); err != nil {
		return err
	}
	return e.sheet.close()
}

// document takes a document of the period in.
func (e *export) document(d *billing.Document) error {
	if err := d.CheckSums(); err != nil {
		return err
	}
	a, err := e.account(d)
	if err != nil {
		return err
	}
	switch e.Dataset {
	case InvoiceDetail:
		return e.details(a, d)
	case BillingPeriod:
		e.book.register(a, d)
		e.periods.document(a, d)
		return nil
	case CostAndUsage:
	}
	return e.charges(a, d)
}

// item takes a line item in.
func (e *export) item(i *Item) error {
	if i.BillingPeriod != e.Period {
		return fmt.Errorf("its billing period is %s, not %s", i.BillingPeriod, e.Period)
	}
	switch {
	case e.Dataset == InvoiceDetail:
		return nil
	case i.Currency == "":
		e.summary.Unsettled++
		return nil
	case e.Dataset == BillingPeriod:
		return e.openPeriod(i)
	}
	return e.usage(i)
}

// finish writes what follows from all that came in.
func (e *export) finish() error {
	switch e.Dataset {
	case BillingPeriod:
		return e.writePeriods()
	case InvoiceDetail:
		return nil
	case CostAndUsage:
	}
	return e.adjust()
}

// put writes a row.
func (e *export) put(cells []string) error {
	e.summary.Rows++
	return e.sheet.write(cells)
}

var errNoProvider = errors.New("no seller is known: name a provider")
