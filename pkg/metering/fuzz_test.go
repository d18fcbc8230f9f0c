package metering

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// seedEvents adds the events of this package's tests and those of schemas/examples.
func seedEvents(f *testing.F) {
	f.Helper()
	for kind, data := range examples {
		f.Add([]byte(event(kind, data)))
	}
	for _, text := range []string{
		"", "{}", "[]", heldExample, `{"type":"x","data":{"a":1,"a":2}}`, `{"id":"\ud83d\ude00\u0000"}`,
		`{"data":` + heldData + `,"type":"suanpan.usage.held.v1"}`, "{\"a\":[[[{\"b\":-1.5e+3}]]]}",
	} {
		f.Add([]byte(text))
	}
	files, err := filepath.Glob("../../schemas/examples/*/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

func FuzzParseEvent(f *testing.F) {
	seedEvents(f)
	p := NewParser() // one parser for all: what it read before must not matter
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		var e Event
		r := p.Parse(data, &e)
		if !bytes.Equal(before, data) {
			t.Fatal("Parse changed its input")
		}
		if r != nil {
			checkRejection(t, r, data)
			return
		}
		checkEvent(t, &e)
		var again Event
		if r := NewParser().Parse(data, &again); r != nil {
			t.Fatalf("accepted, then rejected: %v", r)
		}
		sameEvent(t, &again, &e)
	})
}

// checkRejection holds the parser to the JSON library: what is not JSON is exactly invalid_json.
func checkRejection(t *testing.T, r *Rejection, data []byte) {
	t.Helper()
	value := jsontext.Value(data)
	object := value.IsValid() && value.Kind() == '{'
	switch r.Reason {
	case InvalidJSON:
		if object {
			t.Fatalf("%v, but it is a JSON object", r)
		}
	case UnknownType, InvalidEvent:
		if !object && len(data) <= MaxEventBytes {
			t.Fatalf("%v, but it is not a JSON object", r)
		}
	default:
		t.Fatalf("Parse gives the reason %s", r.Reason)
	}
	if r.Detail == "" {
		t.Fatal("a rejection without a detail")
	}
}

// checkEvent holds an accepted event to what its readers rely on.
func checkEvent(t *testing.T, e *Event) {
	t.Helper()
	within := func(name, s string, required bool) {
		if len(s) > MaxStringBytes || !utf8.ValidString(s) || required && s == "" {
			t.Fatalf("%s is %q", name, s)
		}
	}
	rated := e.Kind == Held || e.Kind == Consumed
	within("id", e.ID, true)
	within("source", e.Source, true)
	within("tenant", e.Tenant, e.Kind != MarketPrice && e.Kind != Queue)
	within("session", e.Session, e.Kind == Held || e.Kind == Void)
	within("project", e.Project, rated)
	within("lease", e.Lease, e.Kind == Held)
	within("region", e.Region, e.Kind == MarketPrice)
	within("node", e.Node, false)
	if rated && !e.Purchase.Valid() {
		t.Fatalf("purchase is %q", e.Purchase)
	}
	if len(e.Labels) > MaxLabels || len(e.Amounts) > MaxSKUs || rated != (len(e.Amounts) > 0) {
		t.Fatalf("%d labels, %d amounts", len(e.Labels), len(e.Amounts))
	}
	for i, l := range e.Labels {
		within("label", l.Key, true)
		within("label", l.Value, false)
		if i > 0 && e.Labels[i-1].Key >= l.Key {
			t.Fatalf("labels are not in ascending order: %q", e.Labels)
		}
	}
	for _, at := range []Instant{e.Start, e.End, e.At, e.SessionStart} {
		if s := at.Second(); s < MinSecond || s >= MaxSecond {
			t.Fatalf("instant %d", at)
		}
	}
	sound := e.Problem() == nil
	most := billionths(t, "999999999999999999999999")
	for i, a := range e.Amounts {
		within("sku", a.SKU, true)
		if i > 0 && e.Amounts[i-1].SKU >= a.SKU {
			t.Fatalf("SKUs are not in ascending order: %v", e.Amounts)
		}
		if !sound {
			continue
		}
		if e.Kind == Held && (a.Milli <= 0 || a.Milli > 999_999_999_999_999_999 || a.Nano.Sign() != 0) ||
			e.Kind == Consumed && (a.Nano.Sign() <= 0 || most.Add(a.Nano.Neg()).Sign() < 0) {
			t.Fatalf("amount %+v", a)
		}
	}
	if sound && e.Kind == Held && (e.Start < e.SessionStart || e.End <= e.Start ||
		e.End-e.Start > Instant(MaxWindowSeconds)*nanos) {
		t.Fatalf("window [%v, %v), session from %v", e.Start, e.End, e.SessionStart)
	}
}

// FuzzParseAmount reads a text as an amount in a string and compares it with a decimal that is
// multiplied out digit by digit.
func FuzzParseAmount(f *testing.F) {
	for _, seed := range []string{
		"1", "0.25", "007.50", "0", "0.0", "", ".", "1.", ".5", "-1", "1e3", "999999999999999.999999999",
		"1000000000000000", "0.0000000001", "0.100000000000000000000000", "１", "\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quoted, err := jsontext.AppendQuote(nil, text)
		if err != nil {
			return // invalid UTF-8 cannot be in an event
		}
		p, e := NewParser(), new(Event)
		for kind, places := range map[string]int{"held": MaxHeldPlaces, "consumed": MaxPlaces} {
			data := examples["usage."+kind]
			data = strings.NewReplacer(`"1"`, string(quoted), `"0.5"`, string(quoted)).Replace(data)
			if r := p.Parse([]byte(event("usage."+kind, data)), e); r != nil {
				t.Fatalf("%q: %v", text, r)
			}
			want, ok := digits(text, places)
			if ok != (e.Problem() == nil) {
				t.Fatalf("%s %q: %v", kind, text, e.Problem())
			}
			got := e.Amounts[0].Nano.Big()
			if kind == "held" {
				got.SetInt64(e.Amounts[0].Milli)
			}
			if ok && got.String() != want {
				t.Fatalf("%s %q = %s, want %s", kind, text, got, want)
			}
		}
	})
}

// digits is a plain decimal above 0 times 10^places, done on its digits alone.
func digits(text string, places int) (string, bool) {
	whole, fraction, point := strings.Cut(text, ".")
	if whole == "" || point && fraction == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return "", false
	}
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > places || len(strings.TrimLeft(whole, "0")) > MaxAmountDigits {
		return "", false
	}
	all := whole + fraction + strings.Repeat("0", places-len(fraction))
	all = strings.TrimLeft(all, "0")
	return all, all != ""
}
