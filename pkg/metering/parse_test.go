package metering

import (
	"bytes"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// event puts an envelope around data.
func event(kind, data string) string {
	return `{"specversion":"1.0","type":"suanpan.` + kind + `.v1","source":"/nodes/n1","id":"e1",` +
		`"time":"2026-01-05T02:01:00Z","data":` + data + `}`
}

const (
	heldData = `{"tenant":"acme","project":"p1","lease":"l0","session":"l0.0",` +
		`"session_start":"2026-01-05T02:00:00Z","purchase":"spot",` +
		`"start":"2026-01-05T02:00:00Z","end":"2026-01-05T02:01:00Z","held":{"gpu.a800-80g":"1"}}`
	consumedData = `{"tenant":"acme","project":"p1","time":"2026-01-05T02:00:00Z",` +
		`"consumed":{"network.egress":"0.5"}}`
	voidData = `{"tenant":"acme","session":"l0.0","start":"2026-01-05T02:00:00Z",` +
		`"end":"2026-01-05T02:01:00Z","reason":"faulty HBM","by":"ops"}`
	priceData = `{"sku":"gpu.a800-80g","region":"cn-north","price":"12.5",` +
		`"time":"2026-01-05T02:00:00Z"}`
	outageData = `{"tenant":"acme","start":"2026-01-05T02:00:00Z","end":"2026-01-07T02:00:00Z",` +
		`"cause":"power","nodes":["n1","n2"]}`
	checkpointData  = `{"tenant":"acme","session":"l0.0","time":"2026-01-05T02:00:00Z"}`
	interruptedData = `{"tenant":"acme","lease":"l0","session":"l0.0",` +
		`"time":"2026-01-05T02:00:00Z","by":"provider"}`
	queueData  = `{"pool":"a800","time":"2026-01-05T02:00:00Z","depth":7,"wait_seconds":90}`
	rerateData = `{"tenant":"acme","from":"2026-01-01T00:00:00Z","until":"2026-02-01T00:00:00Z",` +
		`"catalog_offset":17}`
	closeData = `{"tenant":"acme","contract":"acme-2026","from":"2026-01-01T00:00:00Z",` +
		`"until":"2026-02-01T00:00:00Z","catalog_offset":17,"market_offset":2048}`
)

// examples are the data of one good event of each type.
var examples = map[string]string{
	"usage.held": heldData, "usage.consumed": consumedData, "usage.void": voidData,
	"market.price": priceData, "outage": outageData, "checkpoint": checkpointData,
	"lease.interrupted": interruptedData, "queue": queueData, "rerate": rerateData,
	"period.close": closeData,
}

func instant(t *testing.T, text string) Instant {
	t.Helper()
	i, err := ParseInstant(text)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func billionths(t *testing.T, text string) Quantity {
	t.Helper()
	n, ok := new(big.Int).SetString(text, 10)
	if !ok {
		t.Fatalf("%q is no integer", text)
	}
	return mustQuantity(t, n)
}

// accepted parses an event that has nothing wrong.
func accepted(t *testing.T, text string) *Event {
	t.Helper()
	e := new(Event)
	if r := NewParser().Parse([]byte(text), e); r != nil {
		t.Fatalf("Parse(%s): %v", clip(text), r)
	}
	if r := e.Problem(); r != nil {
		t.Fatalf("Problem() of %s: %v", text, r)
	}
	return e
}

func sameEvent(t *testing.T, got, want *Event) {
	t.Helper()
	d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.AllowUnexported(Event{}, Quantity{}))
	if d != "" {
		t.Errorf("event (-want +got):\n%s", d)
	}
}

func TestParse_held(t *testing.T) {
	got := accepted(t, event("usage.held", `{"tenant":"acme","project":"p1","lease":"l0",
		"session":"l0.1","session_start":"2026-01-05T10:00:00+08:00","resumed":true,
		"purchase":"reserved","region":"cn-north","node":"n1","devices":["GPU-1","GPU-2"],
		"start":"2026-01-05T02:00:00.25Z","end":"2026-01-05T02:01:00.75Z",
		"held":{"memory.gib":"117.18700","cpu.core":0.1,"gpu.a800-80g":2},
		"labels":{"team":"llm","stage":"pretraining","model":""},
		"telemetry":{"gpu_util":0.97,"power_w":391.2}}`))
	sameEvent(t, got, &Event{
		Kind: Held, Source: "/nodes/n1", ID: "e1", Tenant: "acme", Session: "l0.1",
		Facts: Facts{
			Project: "p1", Lease: "l0", Purchase: Reserved, Region: "cn-north", Node: "n1",
			SessionStart: instant(t, "2026-01-05T02:00:00Z"), Resumed: true,
			Labels: []Label{{"model", ""}, {"stage", "pretraining"}, {"team", "llm"}},
		},
		Start: instant(t, "2026-01-05T02:00:00.25Z"), End: instant(t, "2026-01-05T02:01:00.75Z"),
		Amounts: []Amount{
			{SKU: "cpu.core", Milli: 100},
			{SKU: "gpu.a800-80g", Milli: 2000},
			{SKU: "memory.gib", Milli: 117_187},
		},
	})
	from, until := got.Window()
	if from != 1_767_578_400 || until != 1_767_578_460 || got.Anchor() != 1_767_578_400 {
		t.Errorf("window [%d, %d), anchor %d", from, until, got.Anchor())
	}
}

func TestParse_otherTypes(t *testing.T) {
	f := func(kind string, want *Event) {
		t.Helper()
		want.Source, want.ID = "/nodes/n1", "e1"
		sameEvent(t, accepted(t, event(kind, examples[kind])), want)
	}
	at, later := instant(t, "2026-01-05T02:00:00Z"), instant(t, "2026-01-05T02:01:00Z")
	f("usage.consumed", &Event{
		Kind: Consumed, Tenant: "acme", Facts: Facts{Project: "p1", Purchase: OnDemand}, At: at,
		Amounts: []Amount{{SKU: "network.egress", Nano: billionths(t, "500000000")}},
	})
	f("usage.void", &Event{Kind: Void, Tenant: "acme", Session: "l0.0", Start: at, End: later})
	f("market.price", &Event{
		Kind: MarketPrice, SKU: "gpu.a800-80g", Price: "12.5", At: at,
		Facts: Facts{Region: "cn-north"},
	})
	f("outage", &Event{
		Kind: Outage, Tenant: "acme", Start: at, End: instant(t, "2026-01-07T02:00:00Z"),
	})
	f("checkpoint", &Event{Kind: Checkpoint, Tenant: "acme", Session: "l0.0", At: at})
	f("lease.interrupted", &Event{
		Kind: Interrupted, Tenant: "acme", Session: "l0.0", Facts: Facts{Lease: "l0"}, At: at,
	})
	f("queue", &Event{Kind: Queue, At: at})
	january, february := instant(t, "2026-01-01T00:00:00Z"), instant(t, "2026-02-01T00:00:00Z")
	f("rerate", &Event{
		Kind: Rerate, Tenant: "acme", Start: january, End: february, CatalogOffset: 17,
	})
	f("period.close", &Event{
		Kind: PeriodClose, Tenant: "acme", Contract: "acme-2026", Start: january, End: february,
		CatalogOffset: 17, MarketOffset: 2048,
	})
	if len(examples) != len(schemas) {
		t.Errorf("%d types have an example, %d are known", len(examples), len(schemas))
	}
}

// The order of members means nothing in JSON: type may come after data, time may be missing.
func TestParse_memberOrder(t *testing.T) {
	want := accepted(t, event("usage.held", heldData))
	typ := `"type":"suanpan.usage.held.v1"`
	rest := `"id":"e1","source":"/nodes/n1","specversion":"1.0"`
	data := `"data":` + heldData
	for _, members := range [][]string{
		{data, typ, rest},
		{rest, data, typ},
		{data, rest, typ},
		{typ, rest, data},
		{"\"x\":{\"data\":1}", typ, data, rest},
		{`"time":null`, data, typ, rest, `"x":[{}]`},
	} {
		sameEvent(t, accepted(t, " {"+strings.Join(members, " ,\n")+"}\t\n"), want)
	}
}

func TestParse_escapes(t *testing.T) {
	got := accepted(t, strings.NewReplacer(
		`"acme"`, `"a\u0063me\n\"\\"`, `"p1"`, `"\ud83d\ude00"`, `"l0"`, `"算盘"`,
		`"2026-01-05T02:00:00Z"`, `"2026\u002d01-05T02:00:00Z"`, `"gpu.a800-80g":"1"`,
		`"gpu\u002ea800-80g":"\u0031.5","\u4e2d":"2"`, `"tenant"`, `"\u0074enant"`,
	).Replace(event("usage.held", heldData)))
	if got.Tenant != "acme\n\"\\" || got.Project != "😀" || got.Lease != "算盘" {
		t.Errorf("tenant %q, project %q, lease %q", got.Tenant, got.Project, got.Lease)
	}
	want := []Amount{{SKU: "gpu.a800-80g", Milli: 1500}, {SKU: "中", Milli: 2000}}
	if d := cmp.Diff(want, got.Amounts, cmp.AllowUnexported(Quantity{})); d != "" {
		t.Errorf("amounts (-want +got):\n%s", d)
	}
	if got.Start != instant(t, "2026-01-05T02:00:00Z") {
		t.Errorf("start %v", got.Start)
	}
}

// What alerts look at changes no event, whatever it says, so it changes no bill: the parsed event
// is all that is rated.
func TestParse_whatIsNeverBilled(t *testing.T) {
	want := accepted(t, event("usage.held", heldData))
	for _, value := range []string{"true", "false", "null", `"true"`, "7", "{}"} {
		sameEvent(t, accepted(t, event("usage.held", withField(t, heldData, "final", value))), want)
	}
	for _, value := range []string{
		"null", "{}", `{"mem_total_mib":81920}`, `{"gpu_util":0,"mem_total_mib":"x","held":{"a":"1"}}`,
	} {
		sameEvent(t, accepted(t, event("usage.held", withField(t, heldData, "telemetry", value))), want)
	}
}

// Unknown members are ignored at both levels, and null is the same as absent.
func TestParse_ignoresUnknownAndNull(t *testing.T) {
	want := accepted(t, event("usage.held", heldData))
	more := strings.Replace(heldData, "{", `{"new":{"a":[1,2,{"b":null}]},"region":null,"node":null,`+
		`"resumed":null,"labels":null,"devices":null,"telemetry":null,"Tenant":7,"":1,`, 1)
	text := strings.Replace(event("usage.held", more), "{", `{"traceparent":"00-1","subject":null,`+
		`"datacontenttype":"application/json","data_base64":3,"x":[true,false,-1.5e-7],`, 1)
	sameEvent(t, accepted(t, text), want)
}

func TestParse_amounts(t *testing.T) {
	held := func(amount string, want int64) {
		t.Helper()
		text := event("usage.held", strings.Replace(heldData, `"1"`, amount, 1))
		if got := accepted(t, text).Amounts[0].Milli; got != want {
			t.Errorf("held %s = %d thousandths, want %d", amount, got, want)
		}
	}
	consumed := func(amount, want string) {
		t.Helper()
		text := event("usage.consumed", strings.Replace(consumedData, `"0.5"`, amount, 1))
		if got := accepted(t, text).Amounts[0].Nano; got != billionths(t, want) {
			t.Errorf("consumed %s = %s, want %s billionths", amount, got, want)
		}
	}
	for _, quote := range []string{"", `"`} { // a number is read as its text
		held(quote+"0.1"+quote, 100)
		held(quote+"0.001"+quote, 1)
		held(quote+"0.7000000000000000000"+quote, 700)
		held(quote+"8"+quote, 8000)
		held(quote+"12345678901234.123"+quote, 12_345_678_901_234_123)
		held(quote+"999999999999999.999"+quote, 999_999_999_999_999_999)
		consumed(quote+"0.1"+quote, "100000000")
		consumed(quote+"0.000000001"+quote, "1")
		consumed(quote+"123456789012345.123456789"+quote, "123456789012345123456789")
		consumed(quote+"999999999999999.999999999"+quote, "999999999999999999999999")
	}
	held(`"007.50"`, 7500) // leading zeros do not count; JSON numbers have none
	held(`"0000000000000000000000001"`, 1000)
}

// Property: an event stays what it was while the parser reads others.
func TestParse_stringsStayRight(t *testing.T) {
	p := NewParser()
	var kept []*Event
	var texts [][]byte
	for kind, data := range examples {
		for _, text := range []string{
			event(kind, data),
			`{"data":` + data + `,"type":"suanpan.` + kind + `.v1","id":"e\u0031","source":"/nodes/n1",` +
				`"specversion":"1.0"}`,
		} {
			e := new(Event)
			texts = append(texts, []byte(text))
			if r := p.Parse(texts[len(texts)-1], e); r != nil {
				t.Fatal(r)
			}
			kept = append(kept, e)
			for _, other := range []string{"{", `{"id":"zzzzzzzz`, "[1]", strings.Repeat("x", 600)} {
				if r := p.Parse([]byte(other), new(Event)); r == nil {
					t.Fatalf("%s was accepted", other)
				}
			}
		}
	}
	for i, e := range kept {
		sameEvent(t, e, accepted(t, string(texts[i])))
	}
}

// The slices of an event are used again, what was in them is gone.
func TestParse_reusesTheEvent(t *testing.T) {
	p, e := NewParser(), new(Event)
	long := strings.Replace(strings.Replace(heldData, "}}", `},"labels":{"a":"1","b":"2"}}`, 1),
		`"1"`, `"1","cpu":"x"`, 1)
	for range 3 {
		if r := p.Parse([]byte(event("usage.held", long)), e); r != nil || e.Problem() == nil {
			t.Fatalf("%v, %v", r, e.Problem())
		}
		for kind, data := range examples {
			if r := p.Parse([]byte(event(kind, data)), e); r != nil {
				t.Fatal(r)
			}
			sameEvent(t, e, accepted(t, event(kind, data)))
		}
	}
}

// Parse does not write to its input, whether that is accepted or not.
func TestParse_leavesItsInputAlone(t *testing.T) {
	p := NewParser()
	text := event("usage.held", heldData)
	for n := range len(text) + 1 {
		data := []byte(text + "  ")[:n]
		_ = p.Parse(data, new(Event))
		if !bytes.Equal(data[:cap(data)][:len(text)], []byte(text)) {
			t.Fatalf("Parse of %d bytes changed them", n)
		}
	}
}

func TestParse_allocatesNothing(t *testing.T) {
	p, e, data := NewParser(), new(Event), []byte(heldExample)
	if n := testing.AllocsPerRun(100, func() {
		if r := p.Parse(data, e); r != nil || e.Problem() != nil {
			t.Fatal(r, e.Problem())
		}
	}); n != 0 {
		t.Errorf("Parse allocates %v times", n)
	}
}

func TestFacts(t *testing.T) {
	data := []byte(event("usage.held", strings.Replace(heldData, "}}",
		`},"region":"r","node":"n","labels":{"a":"1"}}`, 1)))
	e := new(Event)
	if r := NewParser().Parse(data, e); r != nil {
		t.Fatal(r)
	}
	kept := e.Facts.Clone()
	if d := kept.Difference(&e.Facts); d != "" {
		t.Errorf("a clone differs in %s", d)
	}
	f := func(want string, change func(*Facts)) {
		t.Helper()
		other := kept.Clone()
		change(&other)
		if got := kept.Difference(&other); got != want {
			t.Errorf("difference %q, want %q", got, want)
		}
	}
	f("project", func(o *Facts) { o.Project, o.Lease = "x", "x" })
	f("lease", func(o *Facts) { o.Lease = "x" })
	f("purchase", func(o *Facts) { o.Purchase = OnDemand })
	f("region", func(o *Facts) { o.Region = "" })
	f("node", func(o *Facts) { o.Node = "" })
	f("session_start", func(o *Facts) { o.SessionStart++ })
	f("resumed", func(o *Facts) { o.Resumed = true })
	f("labels", func(o *Facts) { o.Labels = nil })
	f("labels", func(o *Facts) { o.Labels[0].Value = "2" })
	want := kept.Clone()
	clear(data)
	if d := kept.Difference(&want); d != "" || kept.Project != "p1" || kept.Labels[0].Key != "a" {
		t.Errorf("a clone shares memory with its event: %+v", kept)
	}
}
