package metering

import (
	"fmt"
	"strings"
	"testing"
)

// verdict parses an event and returns the first thing that is wrong with it, nil if nothing is.
func verdict(text string) (*Rejection, *Event) {
	e := new(Event)
	if r := NewParser().Parse([]byte(text), e); r != nil {
		return r, e
	}
	return e.Problem(), e
}

func rejected(t *testing.T, reason Reason, detail, text string) {
	t.Helper()
	r, _ := verdict(text)
	if r == nil || r.Reason != reason || !strings.Contains(r.Detail, detail) {
		if len(text) > 1000 {
			text = text[:1000] + "..."
		}
		t.Errorf("%s:\ngot  %v\nwant %s: ...%s...", text, r, reason, detail)
	}
}

// replaced changes one part of the data of a good event; the part must be there.
func replaced(t *testing.T, kind, old, by string) string {
	t.Helper()
	data := examples[kind]
	if !strings.Contains(data, old) {
		t.Fatalf("%s has no %s", data, old)
	}
	return event(kind, strings.Replace(data, old, by, 1))
}

func TestParse_invalidJSON(t *testing.T) {
	f := func(detail string, texts ...string) {
		t.Helper()
		for _, text := range texts {
			rejected(t, InvalidJSON, detail, text)
		}
	}
	good := event("usage.held", heldData)
	f("the event is empty", "", " ", "\n")
	f("an event is a JSON object", "[]", "1", `"x"`, "null", "true", "["+good+"]")
	f("something follows", good+"x", good+good, good+" {}", good+"]", good+",", "{}1")
	f("", "{", "}", "[", "nul", "{]", "{\"a\"}", "{'a':1}", "{\"a\":1,}", "{a:1}", "\xef\xbb\xbf"+good)
	f("", "// no comments\n"+good, `{"a":01}`, `{"a":+1}`, `{"a":.5}`, `{"a":1.}`, `{"a":NaN}`)
	f("", "{\"a\":\"\n\"}", `{"a":"\x"}`, `{"a":"\ud800"}`, `{"a":"\u12"}`, "{\"a\":\"\x00\"}")
	for n := 1; n < len(good); n++ { // a torn write, at any byte
		rejected(t, InvalidJSON, "", good[:n])
	}
}

func TestParse_invalidUTF8(t *testing.T) {
	for _, bytes := range []string{"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80"} {
		rejected(t, InvalidJSON, "UTF-8", replaced(t, "usage.held", "acme", bytes))
		rejected(t, InvalidJSON, "UTF-8", replaced(t, "usage.held", `{`, `{"new":{"x":["`+bytes+`"]},`))
		rejected(t, InvalidJSON, "UTF-8", replaced(t, "usage.held", `{`, `{"`+bytes+`":1,`))
	}
}

// A member that is there twice has two meanings: readers disagree which of them counts.
func TestParse_duplicateNames(t *testing.T) {
	f := func(text string) {
		t.Helper()
		rejected(t, InvalidJSON, "duplicate", text)
	}
	f(replaced(t, "usage.held", `{`, `{"tenant":"acme",`))
	f(replaced(t, "usage.held", `{`, `{"t\u0065nant":"acme",`))
	f(replaced(t, "usage.held", `"1"`, `"1","gpu.a800-80g":"1"`))
	f(replaced(t, "usage.held", `{`, `{"labels":{"a":"1","a":"1"},`))
	f(replaced(t, "usage.held", `{`, `{"new":{"a":1,"a":1},`))
	f(replaced(t, "usage.held", `{`, `{"new":[{"b":{"a":1,"a":1}}],`))
	f(replaced(t, "usage.held", `{`, `{"new":1,"new":1,`))
	f(replaced(t, "usage.held", `{`, `{"":1,"":1,`))
	f(strings.Replace(event("usage.held", heldData), "{", `{"id":"e1",`, 1))
	f(strings.Replace(event("usage.held", heldData), "{", `{"data":`+heldData+`,`, 1))
	f(`{"data":{"a":1,"a":2},"type":"suanpan.usage.held.v1"}`)
	var many strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&many, `"n%d":0,`, i)
	}
	f(replaced(t, "usage.held", `{`, `{`+many.String()+`"n1777":0,`))
	if r, _ := verdict(replaced(t, "usage.held", `{`, `{`+many.String())); r != nil {
		t.Errorf("2000 unknown names: %v", r)
	}
}

func TestParse_deepNesting(t *testing.T) {
	nested := func(depth int) string {
		return replaced(t, "usage.held", `{`,
			`{"new":`+strings.Repeat("[", depth)+strings.Repeat("]", depth)+`,`)
	}
	if r, _ := verdict(nested(9000)); r != nil {
		t.Errorf("9000 levels: %v", r)
	}
	rejected(t, InvalidJSON, "depth", nested(100_000))
	rejected(t, InvalidJSON, "depth", strings.Repeat(`{"data":`, 30_000))
	rejected(t, InvalidJSON, "depth", replaced(t, "usage.held", `"1"`, strings.Repeat("[", 30_000)))
}

func TestParse_unknownType(t *testing.T) {
	f := func(typ string) {
		t.Helper()
		text := event("usage.held", heldData)
		rejected(t, UnknownType, "is not one that Suanpan knows",
			strings.Replace(text, `"suanpan.usage.held.v1"`, typ, 1))
	}
	f(`"suanpan.usage.held.v2"`)
	f(`"suanpan.usage.held"`)
	f(`"SUANPAN.USAGE.HELD.V1"`)
	f(`"com.example.other"`)
	f(`""`)
	f(`null`)
	f(`7`)
	f(`{"a":1}`)
	f(`"` + strings.Repeat("x", 1000) + `"`)
	rejected(t, UnknownType, `type ""`, `{}`)
	rejected(t, UnknownType, `type ""`, `{"data":`+heldData+`}`)
	rejected(t, UnknownType, "", `{"type":"x","id":1,"data":7}`) // judged before the schema
}

func TestParse_envelope(t *testing.T) {
	f := func(detail, old, by string) {
		t.Helper()
		text := event("usage.held", heldData)
		if !strings.Contains(text, old) {
			t.Fatalf("%s is not in the event", old)
		}
		rejected(t, InvalidEvent, detail, strings.Replace(text, old, by, 1))
	}
	f("specversion must be", `"specversion":"1.0"`, `"x":1`)
	f("specversion must be", `"1.0"`, `"0.3"`)
	f("specversion is not a string", `"1.0"`, `1.0`)
	f("id is missing or empty", `"id":"e1"`, `"x":1`)
	f("id is missing or empty", `"e1"`, `""`)
	f("id is not a string", `"e1"`, `7`)
	f("id is not a string", `"e1"`, `null`)
	f("source is missing or empty", `"source":"/nodes/n1"`, `"x":1`)
	f("source is missing or empty", `"/nodes/n1"`, `""`)
	f("source is not a string", `"/nodes/n1"`, `["/nodes/n1"]`)
	f("time: ", `"time":"2026-01-05T02:01:00Z"`, `"time":"yesterday"`)
	f("time is not a string", `"time":"2026-01-05T02:01:00Z"`, `"time":1767578460`)
	f("data is missing", `"data"`, `"Data"`)
	f("data is not an object", heldData, `null`)
	f("data is not an object", heldData, `"e30="`)
	f("data is not an object", heldData, `[`+heldData+`]`)
	f("data.tenant is missing", heldData, `{}`)
}

// Every field of every type: missing, null and empty where it is required, and of a wrong type.
func TestParse_everyField(t *testing.T) {
	for typ, s := range schemas {
		kind := strings.TrimSuffix(strings.TrimPrefix(typ, "suanpan."), ".v1")
		for _, field := range s.fields {
			where := "data." + field.name
			others := map[string]string{"[[]]": "", "{\"a\":{}}": ""}
			if field.required {
				others["null"] = where + " is missing"
			}
			switch field.name {
			case "held", "consumed":
				others["{}"] = where + " is empty"
				others["[]"] = where + " is not an object"
				others[`{"":"1"}`] = "without a name"
				delete(others, `{"a":{}}`) // the amount is judged later
			case "price":
				delete(others, `{"a":{}}`)
				delete(others, "[[]]")
			case "telemetry":
				others["7"] = where + " is not an object"
				delete(others, `{"a":{}}`)
			case "labels":
				others[`{"":"1"}`] = "without a name"
				others[`{"a":1}`] = "data.labels.a is not a string"
				others[`{"a":null}`] = "data.labels.a is not a string"
			case "resumed":
				others[`"true"`] = where + " is neither true nor false"
			case "devices", "sessions", "nodes":
				others[`"x"`] = where + " is not a list of strings"
				others[`["x",null]`] = "an element of " + where + " is not a string"
			case "depth", "wait_seconds", "catalog_offset", "market_offset":
				for _, number := range []string{"-1", "1.5", "1e3", `"1"`, "1000000000000000"} {
					others[number] = where + " is not a whole number of at most 15 digits"
				}
			default:
				others["7"] = where + " is not a string"
				if field.required {
					others[`""`] = where
				}
			}
			for value, detail := range others {
				text := event(kind, withField(t, examples[kind], field.name, value))
				rejected(t, InvalidEvent, detail, text)
			}
		}
	}
}

// withField sets a field of data that is an object of at most two levels.
func withField(t *testing.T, data, name, value string) string {
	t.Helper()
	at := strings.Index(data, `"`+name+`":`)
	if at < 0 {
		return strings.Replace(data, "{", `{"`+name+`":`+value+`,`, 1)
	}
	start := at + len(name) + 3
	depth := 0
	for end := start; ; end++ {
		switch c := data[end]; {
		case c == '{' || c == '[':
			depth++
		case depth > 0 && (c == '}' || c == ']'):
			depth--
		case depth == 0 && (c == ',' || c == '}'):
			return data[:start] + value + data[end:]
		}
	}
}

func TestParse_invalidEvent(t *testing.T) {
	f := func(detail, kind, old, by string) {
		t.Helper()
		rejected(t, InvalidEvent, detail, replaced(t, kind, old, by))
	}
	f("data.purchase is none of", "usage.held", `"spot"`, `"gift"`)
	f("data.purchase is none of", "usage.held", `"spot"`, `"Spot"`)
	f("data.purchase is none of", "usage.consumed", `{`, `{"purchase":"gift",`)
	f("data.start: ", "usage.held", `"start":"2026-01-05T02:00:00Z"`, `"start":"2026-01-05"`)
	f("leap", "usage.held", `"start":"2026`, `"start":"leap`)
	f("data.end: ", "usage.void", `02:01:00Z`, `02:01:00`)
	f("data.time: ", "market.price", `02:00:00Z`, `02:00:60Z`)
}

func TestProblem_window(t *testing.T) {
	f := func(detail, kind, start, end string) {
		t.Helper()
		data := withField(t, withField(t, examples[kind], "start", `"`+start+`"`), "end", `"`+end+`"`)
		if detail == "" {
			if r, _ := verdict(event(kind, data)); r != nil {
				t.Errorf("[%s, %s) of %s: %v", start, end, kind, r)
			}
			return
		}
		rejected(t, InvalidWindow, detail, event(kind, data))
	}
	const start = "2026-01-05T02:00:00Z"
	for _, kind := range []string{"usage.held", "usage.void", "outage"} {
		f("is not after start 2026-01-05T02:00:00Z", kind, start, start)
		f("is not after start", kind, start, "2026-01-05T03:00:00+01:00")
		f("is not after start", kind, start, "2026-01-05T01:59:59.999999999Z")
		f("", kind, start, "2026-01-05T02:00:00.000000001Z") // compared unrounded
		f("", kind, start, "2026-01-06T02:00:00Z")
	}
	for _, kind := range []string{"usage.held", "usage.void"} {
		f("longer than a day (86400 s)", kind, start, "2026-01-06T02:00:00.000000001Z")
		f("", kind, "2026-01-05T02:00:00.5Z", "2026-01-06T02:00:00.5Z")
	}
	f("", "outage", start, "2026-03-06T02:00:00Z")
	f("before session_start 2026-01-05T02:00:00Z", "usage.held", "2026-01-05T01:59:59.999999999Z",
		"2026-01-05T02:01:00Z")
	f("", "usage.void", "2026-01-05T01:59:59Z", "2026-01-05T02:01:00Z") // knows no session_start
	for _, kind := range []string{"rerate", "period.close"} {
		rejected(t, InvalidWindow, "is not after", replaced(t, kind, "2026-02", "2026-01"))
	}
}

func TestProblem_amounts(t *testing.T) {
	f := func(detail string, amounts ...string) {
		t.Helper()
		for _, amount := range amounts {
			rejected(t, InvalidAmount, "data.held.gpu.a800-80g: ", replaced(t, "usage.held", `"1"`, amount))
			rejected(t, InvalidAmount, detail, replaced(t, "usage.held", `"1"`, amount))
			rejected(t, InvalidAmount, detail, replaced(t, "usage.consumed", `"0.5"`, amount))
			rejected(t, InvalidAmount, detail, replaced(t, "market.price", `"12.5"`, amount))
		}
	}
	f("is not a plain decimal such as 0.25", `""`, `"."`, `"1."`, `".5"`, `"-1"`, `"+1"`, `"1e3"`,
		`"0x10"`, `"1,5"`, `"1 "`, `" 1"`, `"1.2.3"`, `"NaN"`, `"Infinity"`, `"１"`, `"1_000"`,
		`-1`, `1e3`, `1E3`, `1e-3`, `1.0e0`, `-0`, `true`, `[1]`, `{}`, `["1"]`)
	f("is not above 0", `"0"`, `0`, `"0.000"`, `0.0`, `"000"`)
	f("has more than 15 digits before the point", `"1000000000000000"`, `1000000000000000`,
		`1000000000000000.5`, `"`+strings.Repeat("9", 5000)+`"`)
	places := func(kind, old string, most int) {
		t.Helper()
		for _, quote := range []string{"", `"`} {
			fits := quote + "0." + strings.Repeat("0", most-1) + "1" + quote
			if r, _ := verdict(replaced(t, kind, old, fits)); r != nil {
				t.Errorf("%s of %s: %v", fits, kind, r)
			}
			rejected(t, InvalidAmount, fmt.Sprintf("has more than %d decimals", most),
				replaced(t, kind, old, quote+"0."+strings.Repeat("0", most)+"1"+quote))
		}
	}
	places("usage.held", `"1"`, MaxHeldPlaces)
	places("usage.consumed", `"0.5"`, MaxPlaces)
	places("market.price", `"12.5"`, MaxPricePlaces)
	// The window is judged first, the schema before both.
	rejected(t, InvalidWindow, "", strings.Replace(replaced(t, "usage.held", `"1"`, `0`),
		"02:01:00Z\",\"held", "02:00:00Z\",\"held", 1))
	rejected(t, InvalidEvent, "data.project is missing",
		strings.Replace(replaced(t, "usage.held", `"1"`, `0`), `"project"`, `"x"`, 1))
}

func TestParse_limits(t *testing.T) {
	f := func(detail string, most int, text func(n int) string) {
		t.Helper()
		if r, _ := verdict(text(most)); r != nil {
			t.Errorf("%d, the limit: %v", most, r)
		}
		rejected(t, InvalidEvent, detail, text(most+1))
	}
	held := func(old, by string) string { return replaced(t, "usage.held", old, by) }
	length := func(n int) string { return strings.Repeat("x", n) }
	f("tenant is longer than 256 bytes", MaxStringBytes, func(n int) string {
		return held("acme", length(n))
	})
	f("data.tenant is longer than 256 bytes", MaxStringBytes/3, func(n int) string { // bytes
		return held("acme", strings.Repeat("算", n)+"x")
	})
	f("data.tenant is longer than 256 bytes", MaxStringBytes, func(n int) string { // as it is read
		return held("acme", strings.Repeat(`\u0078`, n))
	})
	f("id is longer than 256 bytes", MaxStringBytes, func(n int) string {
		return strings.Replace(held("{", "{"), `"e1"`, `"`+length(n)+`"`, 1)
	})
	f("data.labels.team is longer than 256 bytes", MaxStringBytes, func(n int) string {
		return held("{", `{"labels":{"team":"`+length(n)+`"},`)
	})
	f("data.labels has a name that is longer than 256 bytes", MaxStringBytes, func(n int) string {
		return held("{", `{"labels":{"`+length(n)+`":""},`)
	})
	f("data.held has a name that is longer than 256 bytes", MaxStringBytes, func(n int) string {
		return held("gpu.a800-80g", length(n))
	})
	f("data.by is longer than 256 bytes", MaxStringBytes, func(n int) string {
		return replaced(t, "usage.void", "ops", length(n))
	})
	members := func(n int, value string) string {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf(`"k%02d":%s`, i, value)
		}
		return strings.Join(names, ",")
	}
	f("data.labels has more than 64 members", MaxLabels, func(n int) string {
		return held("{", `{"labels":{`+members(n, `"v"`)+`},`)
	})
	f("data.held has more than 64 members", MaxSKUs, func(n int) string {
		return held(`"gpu.a800-80g":"1"`, members(n, `"1"`))
	})
	f("data.consumed has more than 64 members", MaxSKUs, func(n int) string {
		return replaced(t, "usage.consumed", `"network.egress":"0.5"`, members(n, "1"))
	})
	f("the event has 262145 bytes, more than 262144", MaxEventBytes, func(n int) string {
		text := held("{", "{")
		return text + strings.Repeat(" ", n-len(text))
	})
}

// Whoever looks at a dead letter wants its id, whatever is wrong with it.
func TestParse_idOfRejected(t *testing.T) {
	f := func(reason Reason, want, text string) {
		t.Helper()
		r, e := verdict(text)
		if r == nil || r.Reason != reason || e.ID != want {
			t.Errorf("%s: %v, id %q; want %s, id %q", clip(text), r, e.ID, reason, want)
		}
	}
	text := event("usage.held", heldData)
	f(InvalidJSON, "e1", text[:len(text)-1])
	f(InvalidJSON, "e1", text+"x")
	f(InvalidJSON, "", text[:20])
	f(UnknownType, "e1", strings.Replace(text, "held", "hold", 1))
	f(UnknownType, "e2", `{"data":{},"id":"e2"}`)
	f(InvalidEvent, "e1", strings.Replace(text, `"acme"`, `""`, 1))
	f(InvalidEvent, "", strings.Replace(text, `"e1"`, `7`, 1))
	f(InvalidWindow, "e1", strings.Replace(text, `02:01:00Z","held`, `02:00:00Z","held`, 1))
	f(InvalidAmount, "e1", strings.Replace(text, `"1"`, `"0"`, 1))
}

func TestRejection_error(t *testing.T) {
	got := Reject(NoPrice, "%s at %d", "gpu", 7).Error()
	if got != "no_price: gpu at 7" {
		t.Errorf("Error() = %q", got)
	}
}
