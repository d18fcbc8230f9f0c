// Package csv renders documents as CSV for spreadsheets and finance systems: a row for each line,
// and one for each part of a line, told apart by the column level. Text is UTF-8 without a mark,
// rows end with CRLF as in RFC 4180, numbers are plain decimals. It is pure.
package csv

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"

	"github.com/suanpan/suanpan/pkg/billing"
)

// columns are the names of the columns, in their order. New ones come at the end.
var columns = []string{
	"document_type", "number", "issue_date", "due_date", "cites", "tenant", "contract", "period",
	"currency", "level", "line", "kind", "sku", "purchase", "band", "usage_period", "start", "end",
	"name", "others", "description", "quantity", "unit", "unit_price", "per", "package", "amount",
	"net", "exact_amount", "tax_category", "tax_rate", "tax_inclusive", "reason",
}

// The levels of rows. The amounts of all rows of one level add up: lines to the subtotal, shares
// and details to their line, taxes to the tax total.
const (
	lineLevel    = "line"
	detailLevel  = "detail"
	tierLevel    = "tier" // exact amounts only
	taxLevel     = "tax"
	prepaidLevel = "prepaid"
)

// row is the cells of a row by column.
type row map[string]string

// sheet is the rows of a document.
type sheet struct {
	document row // what all rows have
	rows     []row
}

// Render returns the document as CSV. The error is for documents that cannot be written, which
// there are none of yet.
func Render(d *billing.Document) ([]byte, error) {
	s := &sheet{document: row{
		"document_type": string(d.Type), "number": d.Number, "issue_date": d.IssueDate,
		"due_date": d.DueDate, "tenant": d.Tenant, "contract": d.Contract, "period": d.Period,
		"currency": d.Currency,
	}}
	if d.Cites != nil {
		s.document["cites"] = d.Cites.Number
	}
	for i := range d.Lines {
		s.line(lineLevel, strconv.Itoa(i+1), &d.Lines[i])
	}
	for i := range d.Taxes {
		s.tax(&d.Taxes[i])
	}
	for _, p := range d.Prepaid {
		s.add(row{"level": prepaidLevel, "name": p.Grant, "amount": p.Amount})
	}
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	w.UseCRLF = true
	err := w.Write(columns)
	for _, r := range s.rows {
		if err == nil {
			err = w.Write(s.cells(r))
		}
	}
	w.Flush()
	if err == nil {
		err = w.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("render CSV: %w", err)
	}
	return out.Bytes(), nil
}

// add adds a row.
func (s *sheet) add(r row) { s.rows = append(s.rows, r) }

// cells returns a row's cells in the order of the columns.
func (s *sheet) cells(r row) []string {
	cells := make([]string, len(columns))
	for i, column := range columns {
		text, own := r[column]
		if !own {
			text = s.document[column]
		}
		cells[i] = Safe(text)
	}
	return cells
}

// line adds a line or a detail of one, and what is beneath it.
func (s *sheet) line(level, number string, l *billing.Line) {
	base := row{
		"line": number, "kind": string(l.Kind), "sku": l.SKU, "purchase": l.Purchase,
		"band": l.Band, "usage_period": l.UsagePeriod, "start": l.Start, "end": l.End,
		"unit": l.Unit, "per": l.Per,
	}
	if l.Tax != nil {
		base["tax_category"], base["tax_rate"] = l.Tax.Category, l.Tax.Rate
		base["tax_inclusive"] = strconv.FormatBool(l.Tax.Inclusive)
	}
	s.add(base.with(row{
		"level": level, "name": l.Grant, "description": l.Description, "quantity": l.Quantity,
		"unit_price": l.UnitPrice, "package": l.Package, "amount": l.Amount, "net": l.Net,
		"exact_amount": l.Exact,
	}))
	for _, t := range l.Tiers {
		s.add(base.with(row{
			"level": tierLevel, "name": t.UpTo, "quantity": t.Quantity, "unit_price": t.UnitPrice,
			"exact_amount": t.Exact,
		}))
	}
	b := &l.Breakdown
	for _, list := range []struct {
		level  string
		shares []billing.Share
	}{
		{"project", b.Projects},
		{"team", b.Teams},
		{"model", b.Models},
		{"model_version", b.ModelVersions},
		{"stage", b.Stages},
	} {
		for _, share := range list.shares {
			r := row{
				"level": list.level, "name": share.Name, "quantity": share.Quantity,
				"amount": share.Amount,
			}
			if share.Others > 0 {
				r["others"] = strconv.Itoa(share.Others)
			}
			s.add(base.with(r))
		}
	}
	for i := range l.Details {
		s.line(detailLevel, number+"."+strconv.Itoa(i+1), &l.Details[i])
	}
}

// tax adds a tax of the document.
func (s *sheet) tax(t *billing.Tax) {
	s.add(row{
		"level": taxLevel, "amount": t.Tax, "net": t.Taxable, "tax_category": t.Category,
		"tax_rate": t.Rate, "tax_inclusive": strconv.FormatBool(t.Inclusive),
		"reason": t.Reason, "name": t.ReasonCode,
	})
}

// with returns a row with more cells.
func (r row) with(more row) row {
	whole := make(row, len(r)+len(more))
	for column, cell := range r {
		whole[column] = cell
	}
	for column, cell := range more {
		whole[column] = cell
	}
	return whole
}

// Safe keeps a spreadsheet from running a cell as a formula: names come from those who report
// usage. An apostrophe makes text of it. Numbers, which may be negative, stay numbers.
func Safe(cell string) string {
	cell = strings.ToValidUTF8(cell, "\ufffd")
	if begins(cell) && !number(cell) {
		return "'" + cell
	}
	return cell
}

// begins reports whether a cell begins as formulas do.
func begins(cell string) bool {
	if cell == "" {
		return false
	}
	switch cell[0] {
	case '=', '+', '-', '@', '\t', '\r', '\n':
		return true
	case "\uff1d"[0]:
		// Some spreadsheets take the wide forms of the signs for the signs.
		for _, sign := range []string{"\uff1d", "\uff0b", "\uff0d", "\uff20"} {
			if strings.HasPrefix(cell, sign) {
				return true
			}
		}
	}
	return false
}

// number reports whether a cell is a plain decimal.
func number(cell string) bool {
	whole, fraction, point := strings.Cut(strings.TrimPrefix(cell, "-"), ".")
	return digits(whole) && (!point || digits(fraction))
}

// digits reports whether a text is digits, at least one.
func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
