package contracts

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/schemas"
)

// base is what the schemas' ids begin with. It is a name, not a place: nothing is fetched.
const base = "https://suanpan.example/schemas/"

var eventTypes = []string{
	schemas.TypeHeld, schemas.TypeConsumed, schemas.TypeVoid, schemas.TypeMarketPrice,
	schemas.TypeOutage, schemas.TypeCheckpoint, schemas.TypeInterrupted, schemas.TypeQueue,
	schemas.TypeRerate, schemas.TypePeriodClose,
}

// compiled are the JSON Schemas by their paths, such as events/suanpan.usage.held.v1.json.
func compiled(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	var paths []string
	err := fs.WalkDir(schemas.JSON, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := schemas.JSON.ReadFile(name)
		if err != nil {
			return err
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if id := doc.(map[string]any)["$id"]; id != base+name {
			t.Errorf("%s has the $id %v", name, id)
		}
		paths = append(paths, name)
		return compiler.AddResource(base+name, doc)
	})
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]*jsonschema.Schema)
	for _, name := range paths {
		s, err := compiler.Compile(base + name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = s
	}
	return all
}

// valid reports whether an event fits the schema of the type that it names.
func valid(all map[string]*jsonschema.Schema, event []byte) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(event))
	if err != nil {
		return err
	}
	var envelope struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(event, &envelope) // a type that cannot be read is none that we know
	s := all["events/"+envelope.Type+".json"]
	if s == nil {
		return fs.ErrNotExist
	}
	return s.Validate(doc)
}

// judge returns what the parser finds wrong with an event, "" for nothing.
func judge(event []byte) (metering.Reason, string) {
	var e metering.Event
	r := metering.NewParser().Parse(event, &e)
	if r == nil {
		r = e.Problem()
	}
	if r == nil {
		return "", ""
	}
	return r.Reason, r.Detail
}

func files(t *testing.T, pattern string) map[string][]byte {
	t.Helper()
	names, err := fs.Glob(schemas.Examples, pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no examples in %s: %v", pattern, err)
	}
	all := make(map[string][]byte)
	for _, name := range names {
		if all[name], err = schemas.Examples.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestGoodExamples(t *testing.T) {
	all, shown := compiled(t), make(map[string]bool)
	for name, event := range files(t, "examples/good/*.json") {
		if err := valid(all, event); err != nil {
			t.Errorf("%s is not valid: %v", name, err)
		}
		if reason, detail := judge(event); reason != "" {
			t.Errorf("%s: %s: %s", name, reason, detail)
		}
		for _, typ := range eventTypes {
			shown[typ] = shown[typ] || bytes.Contains(event, []byte(`"`+typ+`"`))
		}
	}
	for _, typ := range eventTypes {
		if !shown[typ] {
			t.Errorf("no good example of %s", typ)
		}
	}
}

// beyondSchema are bad examples whose fault JSON Schema cannot see, and why.
var beyondSchema = map[string]string{
	"invalid_json__duplicate_name":                 "readers of JSON keep one of the two",
	"invalid_json__duplicate_sku":                  "readers of JSON keep one of the two",
	"invalid_json__not_utf8":                       "readers of JSON replace the byte",
	"invalid_event__before_1970":                   "the local year, not the instant, is seen",
	"invalid_event__after_2099":                    "the local year, not the instant, is seen",
	"invalid_amount__held_exponent_as_number":      "numbers are compared by value",
	"invalid_amount__held_four_decimals_as_number": "numbers are compared by value",
	"invalid_window__empty":                        "two fields",
	"invalid_window__end_before_start":             "two fields",
	"invalid_window__end_before_start_by_offset":   "two fields",
	"invalid_window__before_session_start":         "two fields",
	"invalid_window__longer_than_a_day":            "two fields",
	"invalid_window__void_empty":                   "two fields",
	"invalid_window__void_longer_than_a_day":       "two fields",
	"invalid_window__outage_ends_before_it_starts": "two fields",
	"invalid_window__close_of_nothing":             "two fields",
}

func TestBadExamples(t *testing.T) {
	all, seen := compiled(t), make(map[metering.Reason]int)
	for name, event := range files(t, "examples/bad/*.json") {
		short := strings.TrimSuffix(path.Base(name), ".json")
		want, _, ok := strings.Cut(short, "__")
		if !ok {
			t.Errorf("%s is not named reason__what", name)
		}
		reason, detail := judge(event)
		if string(reason) != want || detail == "" {
			t.Errorf("%s: %s: %q", name, reason, detail)
		}
		seen[reason]++
		why := beyondSchema[short]
		if err := valid(all, event); err == nil && why == "" {
			t.Errorf("%s is valid by its JSON Schema", name)
		} else if err != nil && why != "" {
			t.Errorf("%s is not valid by its JSON Schema, though %s: %v", name, why, err)
		}
	}
	for _, reason := range []metering.Reason{
		metering.InvalidJSON, metering.UnknownType, metering.InvalidEvent, metering.InvalidWindow,
		metering.InvalidAmount,
	} {
		if seen[reason] < 3 {
			t.Errorf("%d bad examples of %s", seen[reason], reason)
		}
	}
	for short := range beyondSchema {
		if _, err := fs.Stat(schemas.Examples, "examples/bad/"+short+".json"); err != nil {
			t.Errorf("beyondSchema names what is not there: %v", err)
		}
	}
}

// The constants, the schema files and the parser know the same types.
func TestEventTypes(t *testing.T) {
	names, err := fs.Glob(schemas.JSON, "events/*.json")
	if err != nil {
		t.Fatal(err)
	}
	var inFiles []string
	for _, name := range names {
		inFiles = append(inFiles, strings.TrimSuffix(path.Base(name), ".json"))
	}
	want := slices.Sorted(slices.Values(eventTypes))
	if d := cmp.Diff(want, slices.Sorted(slices.Values(inFiles))); d != "" {
		t.Errorf("types in schemas.go and in events/ (-want +got):\n%s", d)
	}
	if d := cmp.Diff(want, metering.Types()); d != "" {
		t.Errorf("types in schemas.go and in the parser (-want +got):\n%s", d)
	}
	const others = 5 + 5 // topics, and records of the billing topic
	source, err := os.ReadFile("../../schemas/schemas.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(source, []byte(`= "suanpan.`)); n != len(eventTypes)+others {
		t.Errorf("schemas.go has %d names, this test knows %d", n, len(eventTypes)+others)
	}
}

// Every field of every good example is left out, or made null, empty, of another type or too long:
// the schema and the parser agree on each.
func TestSchemasAgreeWithParser(t *testing.T) {
	all := compiled(t)
	values := []any{
		nil, "", "x", true, 0, 7, -1, 1.5,
		[]any{},
		[]any{"x"},
		[]any{7},
		map[string]any{},
		map[string]any{"k": "1"},
		map[string]any{"": "1"},
		map[string]any{"k": nil},
		strings.Repeat("x", 256), strings.Repeat("x", 257), "2026-01-05T02:00:30Z",
		"2026-01-05T24:00:00Z", "2023-02-29T00:00:00Z", "1.250", "0.0000000000001", "on_demand",
	}
	checked := 0
	check := func(name string, event any) {
		t.Helper()
		data, err := json.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		checked++
		reason, detail := judge(data)
		bad := reason != "" && reason != metering.InvalidWindow
		if err := valid(all, data); bad != (err != nil) {
			t.Errorf("%s: parser %q %s, schema %v\n%s", name, reason, detail, err, data)
		}
	}
	for name, text := range files(t, "examples/good/*.json") {
		var event map[string]any
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&event); err != nil {
			t.Fatal(err)
		}
		data := event["data"].(map[string]any)
		objects := map[string]map[string]any{"": event, "data": data}
		for _, inner := range []string{"held", "consumed", "labels"} {
			if object, ok := data[inner].(map[string]any); ok {
				objects["data."+inner] = object
			}
		}
		for where, object := range objects {
			for _, field := range slices.Sorted(maps.Keys(object)) {
				was := object[field]
				delete(object, field)
				check(name+" without "+where+"."+field, event)
				for _, value := range values {
					object[field] = value
					check(name+" with another "+where+"."+field, event)
				}
				object[field] = was
			}
		}
	}
	if checked < 1000 {
		t.Errorf("only %d events were checked", checked)
	}
}

// The examples of the shared data parse as they are expected to.
func TestSharedExamples(t *testing.T) {
	dirs, err := filepath.Glob("../../../shared/examples/*/events.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if len(dirs) == 0 {
		t.Skip("optional: there is no ../shared/examples beside the repository")
	}
	all := compiled(t)
	for _, file := range dirs {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rejected, err := os.ReadFile(filepath.Join(filepath.Dir(file), "rejected.txt"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		want := make(map[string]metering.Reason)
		for line := range strings.Lines(string(rejected)) {
			id, reason, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "rejected "), ": ")
			want[id] = metering.Reason(reason)
		}
		checkEvents(t, all, file, data, want)
	}
}

// checkEvents compares what a parser alone can know with the reasons that rating gives.
func checkEvents(t *testing.T, all map[string]*jsonschema.Schema, file string, data []byte,
	want map[string]metering.Reason,
) {
	t.Helper()
	byParser := []metering.Reason{
		"", metering.InvalidJSON, metering.UnknownType, metering.InvalidEvent,
		metering.InvalidWindow, metering.InvalidAmount,
	}
	var e metering.Event
	p := metering.NewParser()
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		r := p.Parse(line, &e)
		if r == nil {
			r = e.Problem()
		}
		reason := metering.Reason("")
		if r != nil {
			reason = r.Reason
		}
		expected := want[e.ID]
		if !slices.Contains(byParser, expected) {
			expected = "" // the catalog or the session decides
		}
		if reason != expected {
			t.Errorf("%s: %s: %v, want %q", file, e.ID, r, expected)
		}
		if err := valid(all, line); reason == "" && err != nil {
			t.Errorf("%s: %s is not valid by its schema: %v", file, e.ID, err)
		}
	}
}
