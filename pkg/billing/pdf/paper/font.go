package paper

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Signatures of font files.
const (
	trueType   = 0x00010000
	appleType  = 0x74727565 // true
	collection = 0x74746366 // ttcf
	openType   = 0x4F54544F // OTTO: outlines that PDFs of ours cannot have
)

// maxTables is more than any font has.
const maxTables = 256

// errShort tells of a font file that ends early.
var errShort = errors.New("the font ends early")

// Face returns a font of its own of one face of a TrueType collection; a font that is no
// collection has one face, 0, and is returned as it is. Tables keep their bytes and checksums. The
// sum of the whole file, which only installers look at, stays that of the collection.
func Face(font []byte, index int) ([]byte, error) {
	kind, err := u32(font, 0)
	if err != nil {
		return nil, err
	}
	if kind != collection {
		if index != 0 {
			return nil, fmt.Errorf("take face %d: the font has only face 0", index)
		}
		return font, nil
	}
	faces, err := u32(font, 8)
	if err != nil {
		return nil, err
	}
	if index < 0 || index >= faces {
		return nil, fmt.Errorf("take face %d: the collection has %d faces", index, faces)
	}
	start, err := u32(font, 12+4*index)
	if err != nil {
		return nil, err
	}
	return copyFace(font, start)
}

// copyFace copies the tables that the table directory at start names behind a directory of their
// own, each at a multiple of four bytes.
func copyFace(font []byte, start int) ([]byte, error) {
	tables, err := u16(font, start+4)
	if err != nil {
		return nil, err
	}
	if tables > maxTables {
		return nil, fmt.Errorf("read font: it says to have %d tables", tables)
	}
	size := 12 + 16*tables
	if start+size > len(font) {
		return nil, errShort
	}
	face := append([]byte(nil), font[start:start+size]...)
	for i := range tables {
		record := 12 + 16*i
		offset, length := at32(face, record+8), at32(face, record+12)
		if offset+length > len(font) {
			return nil, errShort
		}
		binary.BigEndian.PutUint32(face[record+8:], uint32(len(face)))
		face = append(face, font[offset:offset+length]...)
		for len(face)%4 != 0 {
			face = append(face, 0)
		}
		// What collections of many large faces name more than once would be copied each time.
		if len(face) > 2*len(font) {
			return nil, errors.New("read font: its tables overlap")
		}
	}
	return face, nil
}

// tablesOf finds the tables of a font with TrueType outlines.
func tablesOf(font []byte) (map[string][]byte, error) {
	kind, err := u32(font, 0)
	if err != nil {
		return nil, err
	}
	switch kind {
	case trueType, appleType:
	case openType:
		return nil, errors.New("the font has PostScript outlines (CFF), TrueType ones are needed")
	default:
		return nil, errors.New("this is no TrueType font")
	}
	n, err := u16(font, 4)
	if err != nil {
		return nil, err
	}
	tables := make(map[string][]byte, min(n, maxTables))
	for i := range n {
		record := 12 + 16*i
		if record+16 > len(font) {
			return nil, errShort
		}
		offset, length := at32(font, record+8), at32(font, record+12)
		if offset+length > len(font) {
			return nil, errShort
		}
		tables[string(font[record:record+4])] = font[offset : offset+length]
	}
	for _, name := range []string{
		"cmap", "glyf", "head", "hhea", "hmtx", "loca", "maxp", "name", "OS/2", "post",
	} {
		if len(tables[name]) == 0 {
			return nil, fmt.Errorf("the font has no table %s", name)
		}
	}
	return tables, nil
}

// coverage returns the characters of the font's Unicode table, those of 16 bits: format 4, which
// every font for screens has.
func coverage(font []byte) (*[1 << 16]bool, error) {
	tables, err := tablesOf(font)
	if err != nil {
		return nil, err
	}
	cmap := tables["cmap"]
	n, err := u16(cmap, 2)
	if err != nil {
		return nil, err
	}
	for i := range n {
		if 4+8*i+8 > len(cmap) {
			return nil, errShort
		}
		platform, encoding := at16(cmap, 4+8*i), at16(cmap, 4+8*i+2)
		if platform != 0 && (platform != 3 || encoding != 1) {
			continue
		}
		offset := at32(cmap, 4+8*i+4)
		if format, err := u16(cmap, offset); err == nil && format == 4 {
			return segments(cmap[offset:])
		}
	}
	return nil, errors.New("the font has no Unicode table of format 4")
}

// segments reads a character table of format 4.
func segments(table []byte) (*[1 << 16]bool, error) {
	double, err := u16(table, 6)
	if err != nil {
		return nil, err
	}
	n := double / 2
	ends, starts := 14, 16+2*n
	deltas, offsets := starts+2*n, starts+4*n
	if offsets+2*n > len(table) {
		return nil, errShort
	}
	covered := new([1 << 16]bool)
	for i := range n {
		first, last := at16(table, starts+2*i), at16(table, ends+2*i)
		delta, offset := at16(table, deltas+2*i), at16(table, offsets+2*i)
		for c := first; c <= last && c < 0xFFFF; c++ {
			glyph := c
			if offset != 0 {
				// The offset counts from where it stands itself.
				glyph, err = u16(table, offsets+2*i+offset+2*(c-first))
				if err != nil {
					return nil, err
				}
				if glyph == 0 {
					continue
				}
			}
			covered[c] = (glyph+delta)&0xFFFF != 0
		}
	}
	return covered, nil
}

// u16 reads a number of two bytes, if it is there.
func u16(b []byte, at int) (int, error) {
	if at < 0 || at+2 > len(b) {
		return 0, errShort
	}
	return at16(b, at), nil
}

// u32 reads a number of four bytes, if it is there.
func u32(b []byte, at int) (int, error) {
	if at < 0 || at+4 > len(b) {
		return 0, errShort
	}
	return at32(b, at), nil
}

// at16 reads a number of two bytes that is there.
func at16(b []byte, at int) int { return int(binary.BigEndian.Uint16(b[at:])) }

// at32 reads a number of four bytes that is there.
func at32(b []byte, at int) int { return int(binary.BigEndian.Uint32(b[at:])) }
