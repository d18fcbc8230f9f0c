package paper

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

// table is a piece of a font.
type table struct{ name, data string }

// directory writes a font's table directory, with offsets from the start of the file, and its
// tables at places that begin at base.
func directory(tables []table, base int) (head, body []byte) {
	head = binary.BigEndian.AppendUint32(nil, trueType)
	head = binary.BigEndian.AppendUint16(head, uint16(len(tables)))
	head = append(head, 0, 16, 0, 1, 0, 0)
	for _, t := range tables {
		head = append(head, t.name...)
		head = binary.BigEndian.AppendUint32(head, 0xC0FFEE)
		head = binary.BigEndian.AppendUint32(head, uint32(base+len(body)))
		head = binary.BigEndian.AppendUint32(head, uint32(len(t.data)))
		body = append(body, t.data...)
		for len(body)%4 != 0 {
			body = append(body, 0)
		}
	}
	return head, body
}

// collected writes a collection of two faces, the tables of the second first.
func collected() []byte {
	first := []table{{"cmap", "characters"}, {"glyf", "outlines of the first"}}
	second := []table{{"cmap", "others"}, {"glyf", "outlines of the second"}, {"loca", "places"}}
	const start = 12 + 8
	firstSize, secondSize := 12+16*len(first), 12+16*len(second)
	secondHead, secondBody := directory(second, start+firstSize+secondSize)
	firstHead, firstBody := directory(first, start+firstSize+secondSize+len(secondBody))
	file := []byte("ttcf\x00\x01\x00\x00\x00\x00\x00\x02")
	file = binary.BigEndian.AppendUint32(file, start)
	file = binary.BigEndian.AppendUint32(file, uint32(start+firstSize))
	return bytes.Join([][]byte{file, firstHead, secondHead, secondBody, firstBody}, nil)
}

func TestFaceIsTheFontThatWasCollected(t *testing.T) {
	for index, tables := range [][]table{
		{{"cmap", "characters"}, {"glyf", "outlines of the first"}},
		{{"cmap", "others"}, {"glyf", "outlines of the second"}, {"loca", "places"}},
	} {
		head, body := directory(tables, 12+16*len(tables))
		got, err := Face(collected(), index)
		if want := append(head, body...); err != nil || !bytes.Equal(got, want) {
			t.Errorf("Face(%d) = %q, %v, want %q", index, got, err, want)
		}
		again, err := Face(got, 0)
		if err != nil || !bytes.Equal(again, got) {
			t.Errorf("Face of a font alone = %q, %v, want it as it is", again, err)
		}
	}
}

func TestFaceThatIsNotThere(t *testing.T) {
	for _, index := range []int{-1, 2, 1 << 30} {
		if _, err := Face(collected(), index); err == nil {
			t.Errorf("Face(%d) of two is there", index)
		}
	}
	if _, err := Face([]byte("\x00\x01\x00\x00"), 1); err == nil {
		t.Error("a font alone has a second face")
	}
}

func TestEveryTruncationOfACollectionFails(t *testing.T) {
	whole := collected()
	whole = whole[:len(whole)-3] // the padding behind the last table
	if _, err := Face(whole, 0); err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if _, err := Face(whole[:n], 0); !errors.Is(err, errShort) && n > 3 {
			t.Errorf("the first %d bytes of %d: error %v, want %v", n, len(whole), err, errShort)
		}
	}
}

func FuzzFontsNeverPanic(f *testing.F) {
	f.Add(collected(), 1)
	f.Add([]byte("\x00\x01\x00\x00\x00\x01"), 0)
	f.Fuzz(func(t *testing.T, font []byte, index int) {
		face, err := Face(font, index)
		if err == nil && len(face) > 2*len(font)+4 {
			t.Errorf("a face of %d bytes from %d", len(face), len(font))
		}
		_ = CheckFont(font, "a")
	})
}

// format4 writes a font whose character table maps a to c by a difference, and x by a list in
// which y has no glyph.
func format4() []byte {
	words := []uint16{
		4, 0, 0, 6, 0, 0, 0, // format, length, language, 2 x segments and what helps to search
		'c', 'y', 0xFFFF, 0, // ends
		'a', 'x', 0xFFFF, // starts
		0xFFFF - 'a' + 2, 0, 1, // differences: a is glyph 1
		0, 4, 0, // offsets
		7, 0, // glyphs of x and y
	}
	cmap := []byte("\x00\x00\x00\x01\x00\x03\x00\x01\x00\x00\x00\x0c")
	for _, w := range words {
		cmap = binary.BigEndian.AppendUint16(cmap, w)
	}
	tables := []table{{"cmap", string(cmap)}}
	for _, name := range strings.Fields("glyf head hhea hmtx loca maxp name OS/2 post") {
		tables = append(tables, table{name, "data"})
	}
	head, body := directory(tables, 12+16*len(tables))
	return append(head, body...)
}

func TestCoverageOfAFont(t *testing.T) {
	covered, err := coverage(format4())
	if err != nil {
		t.Fatal(err)
	}
	var got string
	for r, is := range covered {
		if is {
			got += string(rune(r))
		}
	}
	if got != "abcx" {
		t.Errorf("the font covers %q, want abcx", got)
	}
}

func TestFontsThatAreNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		font []byte
		want string
	}{
		"nothing":         {nil, "ends early"},
		"no font":         {[]byte("a text of some length"), "no TrueType font"},
		"CFF":             {[]byte("OTTO\x00\x00"), "PostScript outlines"},
		"without outline": {directoryOf(table{"cmap", "x"}), "no table glyf"},
		"too few":         {format4(), "lacks 'z'"},
	} {
		err := CheckFont(c.font, "az")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// directoryOf writes a font of one table.
func directoryOf(one table) []byte {
	head, body := directory([]table{one}, 28)
	return append(head, body...)
}
