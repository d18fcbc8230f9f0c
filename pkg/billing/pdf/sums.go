package pdf

import (
	"github.com/suanpan/suanpan/pkg/billing/pdf/paper"
	"github.com/suanpan/suanpan/pkg/billing/view"
)

// sumStart is where the labels of the totals begin.
const sumStart = right - 250*paper.Point

// sums writes the totals, and beside them how to pay.
func (s *sheet) sums() {
	rows := make([]*block, 0, len(s.v.Totals))
	height := 0
	for _, total := range s.v.Totals {
		rows = append(rows, s.total(total))
		height += rows[len(rows)-1].height
	}
	payment := s.payment()
	if whole := max(height, payment.height); whole <= bottom-top-40*paper.Point {
		s.need(whole)
		payment.place(s.y)
		end := s.y + whole
		for _, row := range rows {
			s.put(row)
		}
		s.y = end
	} else { // more balances than a page has room for
		for _, row := range rows {
			s.put(row)
		}
		s.put(payment)
	}
	s.y += 14 * paper.Point
}

// total writes one row beneath the lines.
func (s *sheet) total(t view.Total) *block {
	b := s.block()
	label, value, y := labelStyle, bodyStyle, 2*paper.Point
	switch {
	case t.Last:
		label, value, y = boldStyle, dueStyle, 8*paper.Point
		b.box(tint, sumStart-8*paper.Point, 3*paper.Point, right-sumStart+8*paper.Point,
			26*paper.Point)
	case t.Strong:
		b.rule(hairline, sumStart, 0, right-sumStart, paper.Point/2)
		label, value, y = boldStyle, boldStyle, 4*paper.Point
	}
	end := right
	if t.Last {
		end -= 8 * paper.Point
	}
	room := end - sumStart - s.TextWidth(value, s.Clean(t.Value)) - gutter
	low := y
	if t.Last {
		low += 2 * paper.Point // to the baseline of the larger value
	}
	under := b.text(label, sumStart, low, s.Wrap(label, t.Label, room, 3)...)
	b.right(value, end, y, t.Value)
	if t.Note != "" {
		b.text(smallStyle, sumStart, under, s.Wrap(smallStyle, t.Note, end-sumStart, 4)...)
	}
	b.height += paper.Point
	return b
}

// payment writes how to pay.
func (s *sheet) payment() *block {
	const (
		label = 82 * paper.Point
		room  = sumStart - left - label - 20*paper.Point
	)
	b := s.block()
	if len(s.v.Payment.Facts) == 0 {
		return b
	}
	y := b.text(headingStyle, left, 2*paper.Point, s.v.Payment.Heading) + 2*paper.Point
	for _, f := range s.v.Payment.Facts {
		y = max(b.text(labelStyle, left, y, s.Wrap(labelStyle, f.Label, label, 2)...),
			b.text(bodyStyle, left+label, y, s.Wrap(bodyStyle, f.Value, room, 3)...))
	}
	return b
}

// notes writes the notes.
func (s *sheet) notes() {
	if len(s.v.Notes.Facts) == 0 {
		return
	}
	b := s.block()
	b.text(headingStyle, left, 0, s.v.Notes.Heading)
	for _, f := range s.v.Notes.Facts {
		for i, line := range s.Wrap(bodyStyle, f.Value, width, maxNoteLines) {
			if b == nil {
				b = s.block()
			}
			y := b.height
			if i == 0 {
				y += paper.Point
			}
			b.text(bodyStyle, left, y, line)
			s.put(b)
			b = nil
		}
	}
	s.y += 14 * paper.Point
}

// maxNoteLines bounds what one note may fill.
const maxNoteLines = 200

// charts writes the charts beside each other, on one page.
func (s *sheet) charts() {
	const gap = 24 * paper.Point
	each := (width - gap) / 2
	b := s.block()
	for i, chart := range s.v.Charts {
		s.chart(b, chart, left+i*(each+gap), each)
	}
	if b.height > 0 {
		s.put(b)
	}
}

// chart writes one chart: names, bars and amounts in three columns.
func (s *sheet) chart(b *block, chart view.Chart, x, room int) {
	const (
		bar   = 7 * paper.Point
		names = 96 * paper.Point
		row   = 13 * paper.Point
	)
	amounts := 0
	for _, entry := range chart.Bars {
		amounts = max(amounts, s.TextWidth(smallInk, entry.Amount))
	}
	longest := room - names - amounts - 2*gutter
	y := b.text(headingStyle, x, 0, chart.Heading) + 3*paper.Point
	for _, entry := range chart.Bars {
		b.text(smallInk, x, y, s.first(smallInk, entry.Name, names))
		b.box(tint, x+names+gutter, y+paper.Point, longest, bar)
		if n := longest * entry.Permille / 1000; n > 0 {
			b.box(accent, x+names+gutter, y+paper.Point, n, bar)
		}
		b.right(smallInk, x+room, y, entry.Amount)
		y += row
	}
}
