package metering

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

// whole reports whether the scanner takes data as one JSON value.
func whole(s *scanner, data string) bool {
	s.reset([]byte(data))
	s.skip()
	return !s.broken && s.peek() == 0 && s.at == len(data)
}

func agrees(t interface {
	Helper()
	Errorf(string, ...any)
}, data string,
) {
	t.Helper()
	if got, want := whole(new(scanner), data), jsontext.Value(data).IsValid(); got != want {
		if len(data) > 300 {
			data = data[:300] + "..."
		}
		t.Errorf("%q: the scanner says %v, jsontext %v", data, got, want)
	}
}

// Property: the scanner takes exactly what jsontext takes.
func TestScanner_agreesWithJSONText(t *testing.T) {
	pieces := rapid.SampledFrom([]string{
		"{", "}", "[", "]", ",", ":", `"`, `"a"`, `"b"`, `"\u0061"`, `"a":`, `"b":1`, `"é"`, "\\", "\\u",
		"0", "1", "-", "+", ".", "e", "E", "12", "null", "true", "false", "nul", " ", "\n", "\x00",
		"\x1f", "\xff", "\xc3", `\ud83d`, `\ude00`, `\n`, `\/`, `\x`, "\u2028", "1.5e-3", "\v", "\ufeff",
	})
	rapid.Check(t, func(t *rapid.T) {
		agrees(t, strings.Join(rapid.SliceOfN(pieces, 0, 12).Draw(t, "pieces"), ""))
	})
	rapid.Check(t, func(t *rapid.T) { // more often valid: members and elements in their places
		members := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			value := strings.Join(rapid.SliceOfN(pieces, 1, 2).Draw(t, "value"), "")
			name := rapid.StringMatching(`"([ab]|\\u006[12]|é){0,2}"`).Draw(t, "name")
			return name + ":" + value
		}), 0, 4).Draw(t, "members")
		agrees(t, "{"+strings.Join(members, ",")+"}")
	})
}

func TestScanner_everyByte(t *testing.T) {
	for b := range 256 {
		for _, form := range []string{
			"%", `"%"`, `"é%"`, `"\%"`, `{"%":1}`, "1%", "-%", "[%]", "[1%2]", `"\u00%0"`,
		} {
			agrees(t, strings.Replace(form, "%", string([]byte{byte(b)}), 1))
		}
	}
}

// Names of objects that are closed are forgotten, also where their hashes are the same.
func TestScanner_namesOfOtherObjects(t *testing.T) {
	for _, data := range []string{
		`{"axb":{"ayb":1},"ayb":1}`, `{"axb":{"axb":1}}`, `{"axb":[{"ayb":1},{"ayb":1}],"ayb":1}`,
		`{"axb":1,"ayb":1}`, `{"axb":1,"ayb":1,"axb":1}`, `{"a":[{"axb":1,"ayb":1,"ayb":1}]}`,
	} {
		agrees(t, data)
	}
}

// Strings are read eight bytes at a time: each byte, at each place, before those for which it might
// be taken, and with text behind the string that is not of it.
func TestScanner_everyByteAtEveryPlace(t *testing.T) {
	const plain = "abcdefghijklmnopqrs"
	for b := range 256 {
		for at := range plain {
			for _, next := range []string{"", " ", "!", "#", "]", "[", "\x7f", "\x80", `\\`} {
				text := plain[:at] + string([]byte{byte(b)}) + next + plain[at:]
				agrees(t, `"`+text+`"`)
				agrees(t, `["`+text+`","`+plain+`"]`)
			}
		}
	}
}

func TestScanner_boundaries(t *testing.T) {
	for depth := maxDepth - 2; depth <= maxDepth+2; depth++ {
		agrees(t, strings.Repeat("[", depth)+strings.Repeat("]", depth))
		agrees(t, strings.Repeat(`{"a":`, depth)+"1"+strings.Repeat("}", depth))
		agrees(t, strings.Repeat(`{"a":[`, depth/2)+strings.Repeat("]}", depth/2))
	}
	name := func(i int) string { return `"n` + strings.Repeat("x", i) + `":0` }
	for n := manyMembers - 2; n <= manyMembers+2; n++ {
		names := make([]string, n)
		for i := range names {
			names[i] = name(i)
		}
		agrees(t, "{"+strings.Join(names, ",")+"}")
		for _, twice := range []int{0, n / 2, n - 1} {
			agrees(t, "{"+strings.Join(append(names, name(twice)), ",")+"}")
		}
		// Names of objects that are closed, or around this one, are not names of this one.
		all := "{" + strings.Join(names, ",") + "}"
		agrees(t, `{"n":`+all+`,"nx":`+all+`}`)
		agrees(t, `{"n":`+all+`,"nx":`+all+`,"n":1}`)
	}
}
