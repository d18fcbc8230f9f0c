package paper

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/tests/fonttest"
)

// style is that of the tests' texts.
var style = Style{Size: 1000, Color: Color{R: 10, G: 20, B: 30}}

// fresh makes a PDF with a page.
func fresh(t *testing.T) *Paper {
	t.Helper()
	p, err := New(fonttest.Font(t), Info{Title: "a title", Created: time.Unix(0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	p.AddPage()
	return p
}

func TestTextIsCleanedOfWhatCannotBeDrawn(t *testing.T) {
	p := fresh(t)
	for text, want := range map[string]string{
		"plain":                      "plain",
		"账单 ¥ € ß":                   "账单 ¥ € ß",
		"a\tb\nc\u00a0d":             "a b c d",
		"\x00\x1b[31mred":            "[31mred",
		"rocket \U0001F680!":         "rocket " + string(p.missing) + "!",
		"left\u202eright\u200b":      "leftright",
		"\uffff":                     string(p.missing),
		"bad \xff byte":              "bad " + p.Clean("\ufffd") + " byte",
		"heart \u2764\ufe0f variant": "heart " + p.Clean("\u2764") + " variant",
	} {
		if got := p.Clean(text); got != want {
			t.Errorf("Clean(%q) = %q, want %q", text, got, want)
		}
		p.Text(style, 100, 2000, text)
	}
	if _, err := p.Bytes(); err != nil {
		t.Error(err)
	}
}

func TestLinesBreakWhereReadersExpectIt(t *testing.T) {
	p := fresh(t)
	w := func(text string) int { return p.TextWidth(style, text) }
	for _, c := range []struct {
		text  string
		width int
		most  int
		want  string
	}{
		{"one two three", w("one two"), 9, "one two|three"},
		{"one two three", w("one two") - 1, 9, "one|two|three"},
		{"a-long-name", w("a-long-"), 9, "a-long-|name"},
		{
			"outage from 03:10 to 2026-10-31", w("outage from 03:10 to 2026-1"), 9,
			"outage from 03:10 to|2026-10-31",
		},
		{"unbreakable", w("unbre"), 9, "unbre|akabl|e"},
		{"感谢您的信任。付款", w("感谢您的信任"), 9, "感谢您的信|任。付款"},
		{"one two three four", w("one two"), 2, "one two|three..."},
		{"x", 1, 9, "x"},
		{"", 100, 9, ""},
		{"  ", 100, 9, ""},
	} {
		got := strings.Join(p.Wrap(style, c.text, c.width, c.most), "|")
		if got != c.want {
			t.Errorf("Wrap(%q, %d, %d) = %q, want %q", c.text, c.width, c.most, got, c.want)
		}
	}
}

// Property: wrapped lines fit, and together say what the text says.
func TestWrapLosesNothing(t *testing.T) {
	p := fresh(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab 1-./_,账单。"))).Draw(t, "text")
		width := rapid.IntRange(2000, 20000).Draw(t, "width")
		lines := p.Wrap(style, text, width, 1000)
		for _, line := range lines {
			if p.TextWidth(style, line) > width {
				t.Errorf("line %q is wider than %d", line, width)
			}
		}
		got := strings.ReplaceAll(strings.Join(lines, ""), " ", "")
		if want := strings.ReplaceAll(p.Clean(text), " ", ""); got != want {
			t.Errorf("lines say %q, the text %q", got, want)
		}
	})
}

// picture returns a PNG of some form.
func picture(t *testing.T, i image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, i); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestPicturesOfAllFormsAreDrawnInTheirProportion(t *testing.T) {
	deep := image.NewNRGBA64(image.Rect(0, 0, 30, 10))
	deep.Set(3, 3, color.NRGBA64{R: 0xFFFF, A: 0x8000})
	for name, c := range map[string]struct {
		data   []byte
		height int
	}{
		"wide, 16 bits":  {picture(t, deep), 2000},
		"high, gray":     {picture(t, image.NewGray(image.Rect(0, 0, 10, 100))), 3000},
		"palette":        {picture(t, image.NewPaletted(image.Rect(0, 0, 9, 9), color.Palette{color.Black})), 3000},
		"a line of dots": {picture(t, image.NewGray(image.Rect(0, 0, 4096, 1))), 1},
	} {
		p := fresh(t)
		height, err := p.Picture(c.data, 0, 0, 6000, 3000)
		if err != nil || height != c.height {
			t.Errorf("%s: height %d, %v, want %d", name, height, err, c.height)
		}
		if _, err := p.Bytes(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPicturesThatAreNone(t *testing.T) {
	good := picture(t, image.NewGray(image.Rect(0, 0, 20, 20)))
	for name, data := range map[string][]byte{
		"nothing": nil, "text": []byte("a text"), "half": good[:len(good)/2],
		"huge": picture(t, image.NewGray(image.Rect(0, 0, maxPicture+1, 1))),
	} {
		if _, err := fresh(t).Picture(data, 0, 0, 6000, 3000); err == nil ||
			!strings.Contains(err.Error(), "read picture") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestPaperWithoutPages(t *testing.T) {
	p, err := New(fonttest.Font(t), Info{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Bytes(); err == nil {
		t.Error("a PDF without a page was written")
	}
}
