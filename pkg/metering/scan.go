package metering

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxDepth    = 10_000 // of nested objects and lists, as in jsontext
	manyMembers = 32     // of one object; beyond them jsontext looks for names that are there twice
)

// scanner reads JSON as strictly as jsontext does, in one pass and without a copy, which takes half
// the time: strict about UTF-8, escapes, numbers and names that are there twice. What it seldom
// meets it leaves to jsontext, and so it does the wording of what is wrong. After a fault it is
// broken: it reads nothing more, and every object and list ends.
type scanner struct {
	data     []byte
	at       int
	broken   bool
	first    bool     // an object or a list was just opened: no comma comes before what follows
	verified bool     // jsontext has found the whole event valid
	open     []nested // the objects and lists that are open
	names    []string // the names of all open objects
}

// nested is an object or a list that is open.
type nested struct {
	names int    // where its names begin
	seen  uint64 // bits of the hashes of its names
}

// reset begins with an event. The data must not change as long as strings from it are used.
func (s *scanner) reset(data []byte) {
	*s = scanner{data: data, open: s.open[:0], names: s.names[:0]}
}

// peek returns the first byte of what comes next, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// begin opens the object or the list that comes next.
func (s *scanner) begin() {
	if len(s.open) == maxDepth {
		s.broken = true
	}
	if s.broken {
		return
	}
	s.at++
	s.first = true
	s.open = append(s.open, nested{names: len(s.names)})
}

// more reports whether the object or list that ends in a byte has another member or element.
func (s *scanner) more(end byte) bool {
	if s.broken {
		return false
	}
	c := s.peek()
	if c == end {
		return false
	}
	if s.first {
		s.first = false
		return true
	}
	if c != ',' {
		s.broken = true
		return false
	}
	s.at++
	return true
}

// end closes an object or a list of which there is no more.
func (s *scanner) end() {
	if s.broken {
		return
	}
	s.at++
	s.first = false
	last := len(s.open) - 1
	s.names = s.names[:s.open[last].names]
	s.open = s.open[:last]
}

// name reads the name of a member and the colon after it.
func (s *scanner) name() string {
	if s.peek() != '"' {
		s.broken = true
		return ""
	}
	name := s.str()
	if s.broken || s.peek() != ':' {
		s.broken = true
		return ""
	}
	s.at++
	if !s.verified {
		s.remember(name)
	}
	return name
}

// remember breaks the scanner if the object has the name already.
func (s *scanner) remember(name string) {
	object := &s.open[len(s.open)-1]
	names := s.names[object.names:]
	if len(names) == manyMembers {
		s.verified = jsontext.Value(s.data).IsValid()
		s.broken = !s.verified
		return
	}
	hash := len(name)
	if hash > 0 {
		hash += 7*int(name[0]) + 29*int(name[hash-1])
	}
	bit := uint64(1) << (hash & 63)
	if object.seen&bit != 0 {
		for _, other := range names {
			if other == name {
				s.broken = true
				return
			}
		}
	}
	object.seen |= bit
	s.names = append(s.names, name)
}

// str reads the string that comes next, which is a part of the data if it has no escapes.
func (s *scanner) str() string {
	start := s.at + 1
	i := start
	for ; i+8 <= len(s.data); i += 8 {
		if odd := notPlain(binary.LittleEndian.Uint64(s.data[i:])); odd != 0 {
			i += bits.TrailingZeros64(odd) / 8
			break
		}
	}
	for ; i < len(s.data); i++ {
		switch c := s.data[i]; {
		case c == '"':
			s.at = i + 1
			return unsafeString(s.data[start:i])
		case c < ' ':
			s.broken = true
			return ""
		case c == '\\' || c >= utf8.RuneSelf:
			return s.oddStr(start)
		}
	}
	s.broken = true
	return ""
}

// notPlain finds the first of eight bytes of a string that is not plain text: a quote, a backslash,
// a control character, or not ASCII. The lowest bit that is set is the highest one of that byte;
// bits above it mean nothing, as a subtraction may have borrowed. 0 says that all are plain.
func notPlain(eight uint64) uint64 {
	const each, high = 0x0101010101010101, 0x8080808080808080
	control := eight - each*' '
	quote := (eight ^ each*'"') - each
	backslash := (eight ^ each*'\\') - each
	return (eight | control | quote | backslash) & high
}

// oddStr is str for a string that has escapes or more than ASCII.
func (s *scanner) oddStr(start int) string {
	end := start
	for end < len(s.data) && s.data[end] != '"' {
		if s.data[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(s.data) {
		s.broken = true
		return ""
	}
	s.at = end + 1
	inside := s.data[start:end]
	if bytes.IndexByte(inside, '\\') < 0 && utf8.Valid(inside) && !hasControl(inside) {
		return unsafeString(inside)
	}
	text, err := jsontext.AppendUnquote(nil, s.data[start-1:end+1])
	s.broken = err != nil
	return string(text)
}

func hasControl(text []byte) bool {
	return bytes.ContainsFunc(text, func(r rune) bool { return r < ' ' })
}

// skip reads over the value that comes next.
func (s *scanner) skip() {
	if s.broken {
		return
	}
	switch c := s.peek(); c {
	case '{':
		s.begin()
		for s.more('}') {
			s.name()
			s.skip()
		}
		s.end()
	case '[':
		s.begin()
		for s.more(']') {
			s.skip()
		}
		s.end()
	case '"':
		s.str()
	case 'n':
		s.literal("null")
	case 't':
		s.literal("true")
	case 'f':
		s.literal("false")
	default:
		s.number()
	}
}

// value reads the text of the value that comes next, as it is written.
func (s *scanner) value() string {
	s.peek()
	start := s.at
	s.skip()
	if s.broken {
		return ""
	}
	return unsafeString(s.data[start:s.at])
}

func (s *scanner) literal(word string) {
	if !bytes.HasPrefix(s.data[s.at:], []byte(word)) {
		s.broken = true
		return
	}
	s.at += len(word)
}

// number reads over -12.5e+3: no leading zeros, digits on both sides of a point and after an e.
func (s *scanner) number() {
	s.accept("-")
	if !s.accept("0") {
		s.digits()
	}
	if s.accept(".") {
		s.digits()
	}
	if s.accept("eE") {
		s.accept("+-")
		s.digits()
	}
}

// accept reads over one of some bytes if it comes next.
func (s *scanner) accept(any string) bool {
	if s.at < len(s.data) && strings.IndexByte(any, s.data[s.at]) >= 0 {
		s.at++
		return true
	}
	return false
}

func (s *scanner) digits() {
	start := s.at
	for s.at < len(s.data) && s.data[s.at] >= '0' && s.data[s.at] <= '9' {
		s.at++
	}
	if s.at == start {
		s.broken = true
	}
}

// unsafeString is v as a string without a copy: valid as long as the event's bytes do not change.
func unsafeString(v []byte) string { return unsafe.String(unsafe.SliceData(v), len(v)) }
