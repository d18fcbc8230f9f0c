package catalog

import (
	"strings"
	"testing"
)

// TestParse_pathological feeds what is made to exhaust a reader: it must answer, and with a reason.
func TestParse_pathological(t *testing.T) {
	f := func(name, text, want string) {
		t.Helper()
		_, err := Parse("p.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			got := "no error"
			if err != nil {
				got = err.Error()
			}
			t.Errorf("%s: %.200s, want %s", name, got, want)
		}
	}
	f("too long", strings.Repeat(" ", MaxFileBytes+1), "more than 16777216")
	f("deep lists", "kind: Tenant\nname: "+strings.Repeat("[", 200_000), "exceeded max depth")
	f("deep maps", strings.Repeat("{a: ", 200_000), "exceeded max depth")
	f("deep, but closed", "kind: Tenant\nname: "+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+
		"\nprice_book: p\n", "p.yaml:2: name is not a plain value")
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 x\n")
	for i := range 40 {
		name := strings.Repeat("b", i+1)
		bomb.WriteString(name + ": &" + name + " [*a0, *a0, *a0, *a0, *a0, *a0, *a0, *a0, *a0]\n")
	}
	f("aliases of aliases", bomb.String(), "anchors and aliases are not allowed")
	f("an alias of itself", "kind: Tenant\nname: &a [*a]\n", "anchors and aliases are not allowed")
	f("merge key", "kind: Tenant\n<<: {name: x}\nprice_book: p\n", `Tenant has no field "<<"`)
	f("binary", "\x00\x01\x02", "p.yaml")
	f("not UTF-8", "kind: Tenant\nname: \"\xff\xfe\"\n", "p.yaml")
	f("a tag", "kind: Tenant\nname: !!binary aGk=\nprice_book: p\n", "p.yaml")
	f("a number as a list", "kind: PriceBook\nname: p\ncurrency: USD\ntimezone: UTC\n"+
		"prices: 7\n", "p.yaml:5: prices is not a list")
	f("a path as a zone", "kind: PriceBook\nname: p\ncurrency: USD\ntimezone: ../../etc/passwd\n"+
		"prices: []\n", "p.yaml:4: timezone")
	f("many digits", "kind: PriceBook\nname: p\ncurrency: USD\ntimezone: UTC\n"+
		"prices: [{sku: a, per: hour, price: \""+strings.Repeat("9", 1_000_000)+"\"}]\n",
		"p.yaml:5: price")
	f("hexadecimal", "kind: PriceBook\nname: p\ncurrency: USD\ntimezone: UTC\n"+
		"prices: [{sku: a, per: hour, price: 0x10}]\n", `p.yaml:5: price: "0x10" is not a plain decimal`)
	f("infinity", "kind: PriceBook\nname: p\ncurrency: USD\ntimezone: UTC\n"+
		"prices: [{sku: a, per: hour, price: .inf}]\n", `p.yaml:5: price: ".inf" is not a plain decimal`)
}

// TestParse_textsStayAsTheyAreWritten: a YAML number, date or boolean is read as its text.
func TestParse_textsStayAsTheyAreWritten(t *testing.T) {
	documents, err := Parse("t.yaml", []byte("kind: PriceBook\nname: no\ncurrency: USD\n"+
		"timezone: UTC\neffective_from: 2026-01-01T00:00:00+08:00\n"+
		"prices: [{sku: 010, per: hour, price: 0.10},\n"+
		"  {sku: 1_0, per: hour, price: 123456789012345.10}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	v := documents[0].body.(*Version)
	if documents[0].Name != "no" || v.Exact("010", onDemand, "").Amount.String() != "0.1" ||
		v.Exact("1_0", onDemand, "").Amount.String() != "123456789012345.1" {
		t.Errorf("%s", documents[0].JSON)
	}
	if want := second(t, "2025-12-31T16:00:00Z"); documents[0].From != want {
		t.Errorf("starts at %d, want %d", documents[0].From, want)
	}
}
