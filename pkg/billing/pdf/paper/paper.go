// Package paper draws text, lines and pictures on pages of A4 and makes a PDF of them: it hides
// the library that writes PDFs, with its floats, and the font file. Positions and sizes are whole
// hundredths of a point from the top left corner. The same calls give the same bytes. It knows no
// documents and no amounts, which reach it as text.
package paper

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"time"
	"unicode"

	"codeberg.org/go-pdf/fpdf"
)

// Point is how many units a point has. Lengths are in hundredths of a point.
const Point = 100

// The size of a page: A4.
const (
	Width  = 59528
	Height = 84189
)

// maxPicture is how many pixels wide and high a picture may be.
const maxPicture = 4096

// Color is red, green and blue, 0 to 255.
type Color struct{ R, G, B int }

// Style is how text looks. Size is in hundredths of a point.
type Style struct {
	Size  int
	Color Color
	Bold  bool // drawn with an outline: there is one font
}

// Info is what a PDF says about itself.
type Info struct {
	Title, Author, Subject, Language string
	Created                          time.Time
}

// Paper is a PDF in the making. It is not safe for concurrent use.
type Paper struct {
	pdf     *fpdf.Fpdf
	covered *[1 << 16]bool
	missing rune // stands for what the font lacks
}

// New makes a PDF without pages. The font is a TrueType font or a collection of them, of which the
// first is taken.
func New(font []byte, info Info) (*Paper, error) {
	face, err := Face(font, 0)
	if err != nil {
		return nil, fmt.Errorf("read font: %w", err)
	}
	covered, err := coverage(face)
	if err != nil {
		return nil, fmt.Errorf("read font: %w", err)
	}
	pdf := fpdf.New("P", "pt", "A4", "")
	pdf.SetCatalogSort(true)
	pdf.SetCreationDate(info.Created)
	pdf.SetModificationDate(info.Created)
	pdf.SetProducer("Suanpan", true)
	pdf.SetTitle(info.Title, true)
	pdf.SetAuthor(info.Author, true)
	pdf.SetSubject(info.Subject, true)
	pdf.SetLang(info.Language)
	pdf.SetAutoPageBreak(false, 0)
	pdf.SetMargins(0, 0, 0)
	pdf.AddUTF8FontFromBytes("body", "", face)
	pdf.SetFont("body", "", 10)
	p := &Paper{pdf: pdf, covered: covered, missing: '?'}
	if covered['\u25a1'] {
		p.missing = '\u25a1'
	}
	return p, pdf.Error()
}

// CheckFont reports what keeps a font from being one for documents: it is a TrueType font or a
// collection of them, and has all characters of the text.
func CheckFont(font []byte, text string) error {
	face, err := Face(font, 0)
	if err != nil {
		return err
	}
	covered, err := coverage(face)
	if err != nil {
		return err
	}
	for _, r := range text {
		if r >= 1<<16 || !covered[r] {
			return fmt.Errorf("the font lacks %q", r)
		}
	}
	return nil
}

// AddPage begins a page. Drawing goes to the last page, or to that of [Paper.Turn].
func (p *Paper) AddPage() { p.pdf.AddPage() }

// Pages counts the pages.
func (p *Paper) Pages() int { return p.pdf.PageCount() }

// Turn goes back to a page, counted from 1.
func (p *Paper) Turn(page int) { p.pdf.SetPage(page) }

// Clean returns a text as it is drawn: without control characters, and with a box for each
// character that the font lacks.
func (p *Paper) Clean(text string) string {
	clean := make([]rune, 0, len(text))
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			clean = append(clean, ' ')
		case unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Variation_Selector):
		case r >= 1<<16 || !p.covered[r]:
			clean = append(clean, p.missing)
		default:
			clean = append(clean, r)
		}
	}
	return string(clean)
}

// TextWidth returns how wide a text is, which must be clean.
func (p *Paper) TextWidth(s Style, text string) int {
	return (p.pdf.GetStringSymbolWidth(text)*s.Size + 999) / 1000
}

// Text draws a text from x on, its baseline at y.
func (p *Paper) Text(s Style, x, y int, text string) {
	text = p.Clean(text)
	if text == "" {
		return
	}
	// The size is given each time: the page may be one that was turned back to.
	p.pdf.SetFontSize(points(s.Size))
	p.pdf.SetTextColor(s.Color.R, s.Color.G, s.Color.B)
	if s.Bold {
		p.pdf.SetDrawColor(s.Color.R, s.Color.G, s.Color.B)
		p.pdf.SetLineWidth(points(s.Size) / 28)
		p.pdf.SetTextRenderingMode(2)
	}
	p.pdf.Text(points(x), points(y), text)
	if s.Bold {
		p.pdf.SetTextRenderingMode(0)
	}
}

// TextRight draws a text that ends at x.
func (p *Paper) TextRight(s Style, x, y int, text string) {
	text = p.Clean(text)
	p.Text(s, x-p.TextWidth(s, text), y, text)
}

// Rule draws a horizontal line of some thickness.
func (p *Paper) Rule(c Color, x, y, length, thickness int) {
	p.pdf.SetDrawColor(c.R, c.G, c.B)
	p.pdf.SetLineWidth(points(thickness))
	p.pdf.Line(points(x), points(y), points(x+length), points(y))
}

// Box fills a rectangle.
func (p *Paper) Box(c Color, x, y, width, height int) {
	p.pdf.SetFillColor(c.R, c.G, c.B)
	p.pdf.Rect(points(x), points(y), points(width), points(height), "F")
}

// Picture draws a PNG within a rectangle, as large as fits, at its top left corner, and returns its
// height.
func (p *Paper) Picture(data []byte, x, y, width, height int) (int, error) {
	head, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return 0, fmt.Errorf("read picture: %w", err)
	}
	if head.Width < 1 || head.Height < 1 || head.Width > maxPicture || head.Height > maxPicture {
		return 0, fmt.Errorf("read picture: it has %d x %d pixels, at most %d x %d are allowed",
			head.Width, head.Height, maxPicture, maxPicture)
	}
	plain, err := simple(data)
	if err != nil {
		return 0, err
	}
	if width*head.Height <= height*head.Width {
		height = max(width*head.Height/head.Width, 1)
	} else {
		width = max(height*head.Width/head.Height, 1)
	}
	options := fpdf.ImageOptions{ImageType: "PNG"}
	p.pdf.RegisterImageOptionsReader("picture", options, bytes.NewReader(plain))
	p.pdf.ImageOptions("picture", points(x), points(y), points(width), points(height), false,
		options, 0, "")
	return height, p.pdf.Error()
}

// simple writes a PNG anew with 8 bits a color and not interlaced: the library knows no others.
func simple(data []byte) ([]byte, error) {
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("read picture: %w", err)
	}
	bounds := picture.Bounds()
	flat := image.NewNRGBA(image.Rect(0, 0, bounds.Dx(), bounds.Dy()))
	draw.Draw(flat, flat.Bounds(), picture, bounds.Min, draw.Src)
	var out bytes.Buffer
	if err := png.Encode(&out, flat); err != nil {
		return nil, fmt.Errorf("write picture: %w", err)
	}
	return out.Bytes(), nil
}

// Bytes ends the PDF and returns it.
func (p *Paper) Bytes() ([]byte, error) {
	if p.Pages() == 0 {
		return nil, errors.New("write PDF: it has no page")
	}
	var out bytes.Buffer
	if err := p.pdf.Output(&out); err != nil {
		return nil, fmt.Errorf("write PDF: %w", err)
	}
	return out.Bytes(), nil
}

// points converts hundredths of a point.
func points(n int) float64 { return float64(n) / Point }
