package pdf

import "github.com/suanpan/suanpan/pkg/billing/pdf/paper"

// Colors and styles of a page.
var (
	ink      = paper.Color{R: 33, G: 37, B: 41}
	gray     = paper.Color{R: 100, G: 108, B: 117}
	accent   = paper.Color{R: 23, G: 78, B: 120}
	hairline = paper.Color{R: 214, G: 219, B: 225}
	tint     = paper.Color{R: 238, G: 243, B: 248}
	warning  = paper.Color{R: 176, G: 84, B: 0}
	white    = paper.Color{R: 255, G: 255, B: 255}

	titleStyle   = paper.Style{Size: 2200, Color: accent, Bold: true}
	nameStyle    = paper.Style{Size: 1000, Color: ink, Bold: true}
	headingStyle = paper.Style{Size: 750, Color: accent, Bold: true}
	bodyStyle    = paper.Style{Size: 850, Color: ink}
	boldStyle    = paper.Style{Size: 850, Color: ink, Bold: true}
	labelStyle   = paper.Style{Size: 850, Color: gray}
	smallStyle   = paper.Style{Size: 700, Color: gray}
	smallInk     = paper.Style{Size: 700, Color: ink}
	dueStyle     = paper.Style{Size: 1250, Color: accent, Bold: true}
	draftStyle   = paper.Style{Size: 1100, Color: white, Bold: true}
	proofStyle   = paper.Style{Size: 550, Color: gray}
)

// leading returns how far apart lines of a style are.
func leading(s paper.Style) int { return s.Size * 135 / 100 }

// block is a part of a page that is measured before it is placed, and is never divided.
type block struct {
	p      *paper.Paper
	height int
	marks  []func(y int) // draw at the place that the block gets
}

// text writes lines from x on, the top of the first at y, and returns where the next would be.
func (b *block) text(s paper.Style, x, y int, lines ...string) int {
	for _, line := range lines {
		baseline := y + s.Size
		b.marks = append(b.marks, func(top int) { b.p.Text(s, x, top+baseline, line) })
		y += leading(s)
	}
	b.height = max(b.height, y)
	return y
}

// right is text whose lines end at x.
func (b *block) right(s paper.Style, x, y int, lines ...string) int {
	for _, line := range lines {
		baseline := y + s.Size
		b.marks = append(b.marks, func(top int) { b.p.TextRight(s, x, top+baseline, line) })
		y += leading(s)
	}
	b.height = max(b.height, y)
	return y
}

// box fills a rectangle behind what is written later.
func (b *block) box(c paper.Color, x, y, width, height int) {
	b.marks = append(b.marks, func(top int) { b.p.Box(c, x, top+y, width, height) })
	b.height = max(b.height, y+height)
}

// rule draws a line across.
func (b *block) rule(c paper.Color, x, y, length, thickness int) {
	b.marks = append(b.marks, func(top int) { b.p.Rule(c, x, top+y, length, thickness) })
	b.height = max(b.height, y+thickness)
}

// place draws the block with its top at y.
func (b *block) place(y int) {
	for _, mark := range b.marks {
		mark(y)
	}
}
