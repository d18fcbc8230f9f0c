// Package pdf renders documents as PDF: pages of A4 in the document's language, with a font that
// is handed in. The same document and font give the same bytes: the file's dates are the
// document's. It is pure.
package pdf

import (
	"encoding/base64"
	"fmt"
	"time"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/pdf/paper"
	"github.com/suanpan/suanpan/pkg/billing/view"
)

// The frame of a page, in the paper's units.
const (
	left   = 48 * paper.Point
	right  = paper.Width - 48*paper.Point
	width  = right - left
	top    = 44 * paper.Point
	bottom = paper.Height - 62*paper.Point // what follows is the footer's
)

// needed are characters that a font for documents has.
const needed = "AZaz09.,%·ßé€¥账单贷记通知草稿"

// CheckFont reports why a font is not fit for documents: it is no TrueType font, nor a collection
// of them, or it lacks Chinese characters.
func CheckFont(font []byte) error {
	if err := paper.CheckFont(font, needed); err != nil {
		return fmt.Errorf("check font: %w", err)
	}
	return nil
}

// sheet is a document on its way to paper.
type sheet struct {
	*paper.Paper
	v     *view.Page
	y     int  // where the next block goes
	table bool // whether lines are being written, with headings on every page
}

// Render returns the document as a PDF. font is a TrueType font, or a collection of which the first
// is taken, that is fit for documents in all languages, see [CheckFont]: one font for all makes
// renderings the same everywhere.
func Render(d *billing.Document, font []byte) ([]byte, error) {
	if err := CheckFont(font); err != nil {
		return nil, fmt.Errorf("render PDF: %w", err)
	}
	v, err := view.New(d)
	if err != nil {
		return nil, fmt.Errorf("render PDF: %w", err)
	}
	created, err := date(d)
	if err != nil {
		return nil, fmt.Errorf("render PDF: %w", err)
	}
	p, err := paper.New(font, paper.Info{
		Title: heading(v), Author: v.Seller.Name, Subject: d.Key().String(),
		Language: v.Language, Created: created,
	})
	if err != nil {
		return nil, fmt.Errorf("render PDF: %w", err)
	}
	s := &sheet{Paper: p, v: v}
	s.AddPage()
	if err := s.head(); err != nil {
		return nil, fmt.Errorf("render PDF: %w", err)
	}
	s.lines()
	s.sums()
	s.notes()
	s.charts()
	s.footers()
	out, err := s.Bytes()
	if err != nil {
		return nil, fmt.Errorf("render PDF: %w", err)
	}
	return out, nil
}

// date returns the day that the file is of: that of issue, of drafts the end of their period.
func date(d *billing.Document) (time.Time, error) {
	day := d.IssueDate
	if day == "" {
		day = d.PeriodEnd
	}
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return time.Time{}, fmt.Errorf("read date: %w", err)
	}
	return t, nil
}

// heading names the document: "Invoice RE-2026-1".
func heading(v *view.Page) string {
	if v.Draft != "" {
		return v.Title + " · " + v.Draft
	}
	return v.Title + " " + v.Number
}

// block begins a block.
func (s *sheet) block() *block { return &block{p: s.Paper} }

// put places a block where the page has room, else on the next one.
func (s *sheet) put(b *block) {
	s.need(b.height)
	b.place(s.y)
	s.y += b.height
}

// need turns to a new page if this one has no room for so much.
func (s *sheet) need(height int) {
	if s.y+height <= bottom {
		return
	}
	s.AddPage()
	s.y = top
	b := s.block()
	b.text(headingStyle, left, 0, heading(s.v)+" · "+s.v.Follows)
	b.right(smallStyle, right, 0, s.first(smallStyle, s.v.Seller.Name, width/2))
	b.height += 6 * paper.Point
	b.place(s.y)
	s.y += b.height
	if s.table {
		h := s.headings()
		h.place(s.y)
		s.y += h.height
	}
}

// first returns as much of a text as fits on one line.
func (s *sheet) first(style paper.Style, text string, room int) string {
	for _, line := range s.Wrap(style, text, room, 1) {
		return line
	}
	return ""
}

// head writes what stands above the lines.
func (s *sheet) head() error {
	s.y = top
	height := 0
	if s.v.Logo != "" {
		data, err := base64.StdEncoding.DecodeString(s.v.Logo)
		if err != nil {
			return fmt.Errorf("read logo: %w", err)
		}
		if height, err = s.Picture(data, left, s.y, 150*paper.Point, 46*paper.Point); err != nil {
			return fmt.Errorf("draw logo: %w", err)
		}
	}
	b := s.block()
	b.height = height
	y := b.right(titleStyle, right, 0, s.v.Title)
	if s.v.Draft != "" {
		w := s.TextWidth(draftStyle, s.Clean(s.v.Draft)) + 14*paper.Point
		b.box(warning, right-w, y, w, 18*paper.Point)
		b.right(draftStyle, right-7*paper.Point, y+3*paper.Point, s.v.Draft)
	} else {
		b.right(nameStyle, right, y, s.first(nameStyle, s.v.Number, width/2))
	}
	if s.v.Logo == "" {
		style := paper.Style{Size: 1300, Color: ink, Bold: true}
		b.text(style, left, 2*paper.Point, s.Wrap(style, s.v.Seller.Name, width/2, 2)...)
	}
	b.height += 16 * paper.Point
	s.put(b)
	s.put(s.parties())
	s.put(s.summary())
	return nil
}

// parties writes seller, buyer and what identifies the document beside each other.
func (s *sheet) parties() *block {
	const (
		column = 150 * paper.Point
		gap    = 12 * paper.Point
		facts  = left + 2*(column+gap)
		label  = 64 * paper.Point
	)
	b := s.block()
	x := left
	for _, party := range []view.Party{s.v.Seller, s.v.Buyer} {
		if party.Heading == "" {
			continue
		}
		y := b.text(headingStyle, x, 0, party.Heading) + paper.Point
		y = b.text(nameStyle, x, y, s.Wrap(nameStyle, party.Name, column, 3)...)
		for _, line := range party.Lines {
			y = b.text(bodyStyle, x, y, s.Wrap(bodyStyle, line, column, 3)...)
		}
		x += column + gap
	}
	y := 0
	for _, f := range s.v.Facts {
		l := b.text(labelStyle, facts, y, s.Wrap(labelStyle, f.Label, label, 2)...)
		v := b.text(bodyStyle, facts+label+4*paper.Point, y,
			s.Wrap(bodyStyle, f.Value, right-facts-label-4*paper.Point, 4)...)
		y = max(l, v)
	}
	b.height += 14 * paper.Point
	return b
}

// summary writes what is due into a box that nobody overlooks.
func (s *sheet) summary() *block {
	const height = 30 * paper.Point
	b := s.block()
	b.box(tint, left, 0, width, height)
	b.text(labelStyle, left+10*paper.Point, 10*paper.Point, s.v.Due.Label)
	x := left + 10*paper.Point + s.TextWidth(labelStyle, s.Clean(s.v.Due.Label)) + 8*paper.Point
	b.text(dueStyle, x, 7*paper.Point, s.v.Due.Value)
	if s.v.DueBy.Value != "" {
		b.right(bodyStyle, right-10*paper.Point, 10*paper.Point,
			s.v.DueBy.Label+" "+s.v.DueBy.Value)
	}
	b.height += 16 * paper.Point
	return b
}

// footers writes the proof and the number of the page on all pages.
func (s *sheet) footers() {
	pages := s.Pages()
	for page := 1; page <= pages; page++ {
		s.Turn(page)
		b := s.block()
		b.rule(hairline, left, 0, width, paper.Point/2)
		number := fmt.Sprintf(s.v.PageOf, page, pages)
		room := width - s.TextWidth(smallStyle, s.Clean(number)) - 20*paper.Point
		b.right(smallStyle, right, 5*paper.Point, number)
		b.text(proofStyle, left, 5*paper.Point, s.Wrap(proofStyle, s.v.Proof, room, 3)...)
		b.place(bottom + 14*paper.Point)
	}
}
