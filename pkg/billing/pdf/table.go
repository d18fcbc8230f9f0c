package pdf

import (
	"strconv"

	"github.com/suanpan/suanpan/pkg/billing/pdf/paper"
	"github.com/suanpan/suanpan/pkg/billing/view"
)

// The columns of the lines: the left edge of texts, the right edge of numbers.
const (
	amountEnd   = right
	taxEnd      = amountEnd - 84*paper.Point
	priceEnd    = taxEnd - 38*paper.Point
	quantityEnd = priceEnd - 96*paper.Point
	textStart   = left + 22*paper.Point
	textEnd     = quantityEnd - 92*paper.Point
	gutter      = 6 * paper.Point
)

// headings writes the heads of the columns.
func (s *sheet) headings() *block {
	b := s.block()
	h := s.v.Headings
	b.text(headingStyle, left, 0, h.Number)
	b.text(headingStyle, textStart, 0, h.Description)
	b.right(headingStyle, quantityEnd, 0, h.Quantity)
	b.right(headingStyle, priceEnd, 0, h.UnitPrice)
	b.right(headingStyle, taxEnd, 0, h.Tax)
	b.right(headingStyle, amountEnd, 0, h.Amount)
	b.rule(accent, left, b.height+2*paper.Point, width, paper.Point)
	b.height += 4 * paper.Point
	return b
}

// lines writes the lines. A line begins where there is room for it and the beginning of what is
// beneath it; the rest may go on on the next page.
func (s *sheet) lines() {
	s.table = true
	s.put(s.headings())
	for i := range s.v.Lines {
		line := &s.v.Lines[i]
		rows := []*block{s.line(line)}
		for _, part := range line.Parts {
			rows = append(rows, s.part(part))
		}
		for _, shares := range line.Shares {
			rows = append(rows, s.shares(shares)...)
		}
		rows[len(rows)-1].height += 2 * paper.Point
		together := 0
		for j, row := range rows {
			if j < 3 {
				together += row.height
			}
		}
		s.need(together)
		for _, row := range rows {
			s.put(row)
		}
		s.Rule(hairline, left, s.y, width, paper.Point/2)
		s.y += 2 * paper.Point
	}
	if len(s.v.Lines) == 0 {
		b := s.block()
		b.text(labelStyle, textStart, 4*paper.Point, s.v.NoLines)
		b.height += 6 * paper.Point
		s.put(b)
		s.Rule(hairline, left, s.y, width, paper.Point/2)
	}
	s.table = false
	s.y += 10 * paper.Point
}

// line writes a line itself.
func (s *sheet) line(l *view.Line) *block {
	const room = textEnd - textStart - gutter
	b := s.block()
	b.text(labelStyle, left, 2*paper.Point, strconv.Itoa(l.Number))
	y := b.text(boldStyle, textStart, 2*paper.Point, s.Wrap(boldStyle, l.Title, room, 3)...)
	for _, text := range l.Subtitle {
		y = b.text(smallStyle, textStart, y, s.Wrap(smallStyle, text, room, 4)...)
	}
	s.price(b, bodyStyle, 2*paper.Point, l.Price)
	b.right(bodyStyle, taxEnd, 2*paper.Point, l.Tax)
	b.height += paper.Point
	return b
}

// price writes quantity, unit price and amount.
func (s *sheet) price(b *block, style paper.Style, y int, p view.Price) {
	const room = quantityEnd - textEnd - gutter
	below := b.right(style, quantityEnd, y, s.Wrap(style, p.Quantity, room, 3)...)
	b.right(smallStyle, quantityEnd, below, s.Wrap(smallStyle, p.Exact, room, 2)...)
	b.right(style, priceEnd, y, s.Wrap(style, p.UnitPrice, priceEnd-quantityEnd-gutter, 3)...)
	b.right(style, amountEnd, y, s.Wrap(style, p.Amount, amountEnd-taxEnd-gutter, 3)...)
}

// part writes a tier or a detail.
func (s *sheet) part(part view.Part) *block {
	const start = textStart + 8*paper.Point
	b := s.block()
	b.text(smallInk, start, 0, s.Wrap(smallInk, part.Title, textEnd-start-gutter, 3)...)
	s.price(b, smallInk, 0, part.Price)
	return b
}

// shares writes a breakdown as entries that flow over rows: "atlas 4,924.80   borealis 2,462.40".
func (s *sheet) shares(shares view.Shares) []*block {
	const (
		start = textStart + 52*paper.Point
		space = 12 * paper.Point
		most  = 190 * paper.Point // of a name
	)
	b := s.block()
	rows := []*block{b}
	b.text(smallStyle, textStart, 0, s.first(smallStyle, shares.Heading, 50*paper.Point))
	x := start
	for _, share := range shares.Names {
		name := s.first(smallStyle, share.Name, most)
		nameWidth := s.TextWidth(smallStyle, name) + 3*paper.Point
		amountWidth := s.TextWidth(smallInk, share.Amount)
		if x > start && x+nameWidth+amountWidth > right {
			b = s.block()
			rows = append(rows, b)
			x = start
		}
		b.text(smallStyle, x, 0, name)
		b.text(smallInk, x+nameWidth, 0, share.Amount)
		x += nameWidth + amountWidth + space
	}
	return rows
}
