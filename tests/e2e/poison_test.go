//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
)

const exampleCatalog = "../../deployments/example/catalog.yaml"

// held is a usage event of a minute; what is in replace differs from a good one.
func held(id string, replace ...string) string {
	text := `{"specversion":"1.0","type":"suanpan.usage.held.v1","source":"/e2e","id":"ID","data":` +
		`{"tenant":"tenant-00","project":"p","lease":"l","session":"ID","session_start":` +
		`"2026-01-05T02:00:00Z","purchase":"on_demand","start":"2026-01-05T02:00:00Z",` +
		`"end":"2026-01-05T02:01:00Z","held":{"cpu.core":"1"}}}`
	return strings.NewReplacer(append(replace, "ID", id)...).Replace(text)
}

// poison is one bad input of every reason, with the reason.
func poison() map[string]string {
	soon := time.Now().UTC().Add(time.Hour).Format(time.RFC3339)
	recent := time.Now().UTC().Add(-time.Hour).Format(time.RFC3339)
	conflict := held("good", `"cpu.core":"1"`, `"cpu.core":"2"`, `"id":"ID"`, `"id":"p-conflict"`)
	future := held("p-future", `"end":"2026-01-05T02:01:00Z"`, `"end":"`+soon+`"`,
		`"start":"2026-01-05T02:00:00Z"`, `"start":"`+recent+`"`)
	mismatch := `{"specversion":"1.0","type":"suanpan.market.price.v1","source":"/e2e",` +
		`"id":"p-mismatch","data":{"sku":"gpu.openb","region":"openb","price":"1","time":"` + soon +
		`","currency":"USD"}}`
	window := held("p-window", `"end":"2026-01-05T02:01`, `"end":"2026-01-05T01:59`)
	return map[string]string{
		`{"specversion":`: "invalid_json",
		held("p-type", "usage.held.v1", "usage.held.v9"):       "unknown_type",
		held("p-event", `"project":"p",`, ""):                  "invalid_event",
		held("p-tenant", "tenant-00", "nobody"):                "no_tenant",
		window:                                                 "invalid_window",
		held("p-amount", `"cpu.core":"1"`, `"cpu.core":"1e3"`): "invalid_amount",
		conflict: "session_conflict",
		held("p-price", "cpu.core", "gpu.nobody-sells"): "no_price",
		future:   "future",
		mismatch: "price_mismatch",
	}
}

func TestPoison(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *system) {
		s.run("apply", "-f", exampleCatalog)
		s.startService("rater", "rater", "--flush-live", "500ms")
		s.startService("archiver", "archiver")
		s.runWith(held("good")+"\n", "send", "-")
		s.waitRated(1)
		want := poison()
		var lines []string
		for event := range want {
			lines = append(lines, event+"\n")
		}
		s.runWith(strings.Join(lines, ""), "send", "-")
		elsewhere := []byte("tenant-07") // its partition is another one
		raw := []pipeline.Record{
			// Forwarded to its tenant's partition, and rated there.
			{Key: elsewhere, Value: []byte(held("forwarded"))},
			// Forwarded already, and still wrong.
			{Key: elsewhere, Value: []byte(held("p-misrouted")), Headers: []pipeline.Header{
				{Key: pipeline.HeaderForwardedFrom, Value: []byte("x/0/0")},
			}},
			// What no producer of ours sends.
			{Key: []byte("tenant-00"), Value: []byte("\x00\xff{\n\r\"")},
			{Key: []byte("tenant-00"), Value: []byte{}},
			{Key: []byte("tenant-\xff"), Value: []byte(`[{}]`)},
			{Key: []byte("tenant-00"), Value: []byte(`{"a":"` + strings.Repeat("x", 900_000) + `"}`)},
		}
		for i := range raw {
			raw[i].Topic = schemas.TopicUsage
		}
		want[string(raw[1].Value)] = "misrouted"
		for _, r := range raw[2:5] {
			want[string(r.Value)] = "invalid_json"
		}
		want[string(raw[5].Value)] = "invalid_event" // it is too long to be read
		appendRaw(t, s, raw...)
		s.runWith(held("after")+"\n", "send", "-") // the partition goes on
		s.waitRated(3)
		checkReasons(t, s, want)
		// One of the lines is a market price; one record is there twice, as it was forwarded.
		s.waitArchive(1+len(lines)-1+len(raw)+1+1, time.Minute)
	})
}

// waitRated waits until so many minutes of a core are billed.
func (s *system) waitRated(minutes int) {
	s.t.Helper()
	want := fmt.Sprintf(",cpu.core,on_demand,standard,%d.000000000,unit-second,", 60*minutes)
	s.waitFor(fmt.Sprintf("%d rated minutes", minutes), func() error {
		if got := s.run("summary", "--tenant", "tenant-00"); !strings.Contains(got, want) {
			return errText(got)
		}
		return nil
	})
}

// checkReasons compares the dead letters in the table and in the topic, their bytes and reasons,
// with what they must be.
func checkReasons(t *testing.T, s *system, want map[string]string) {
	t.Helper()
	s.waitFor("the dead letters", func() error {
		if got := strings.Count(s.run("deadletter", "list", "--json"), "\n"); got != len(want) {
			return fmt.Errorf("the table has %d, want %d", got, len(want))
		}
		return nil
	})
	for line := range strings.Lines(s.run("deadletter", "list", "--json")) {
		var l struct{ Reason, Position, Detail string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("parse %q: %v", line, err)
		}
		value := strings.TrimSuffix(s.run("deadletter", "show", l.Position), "\n")
		if want[value] != l.Reason || l.Detail == "" {
			t.Errorf("the table has %s for %.200q, want %s", line, value, want[value])
		}
	}
	records := readTopic(t, s, schemas.TopicDeadLetter)
	if len(records) != len(want) {
		t.Errorf("the topic has %d dead letters, want %d", len(records), len(want))
	}
	for _, r := range records {
		reason, topic := headerOf(r, pipeline.HeaderReason), headerOf(r, pipeline.HeaderTopic)
		if want[string(r.Value)] != reason {
			t.Errorf("the topic has %s for %.200q, want %s", reason, r.Value, want[string(r.Value)])
		}
		// Nothing knows where an event of an unknown type would have its tenant.
		known := reason != "unknown_type" && strings.Contains(string(r.Value), `"tenant":"tenant-00"`)
		if known && len(r.Key) == 0 ||
			!strings.HasPrefix(topic, "suanpan.") || headerOf(r, pipeline.HeaderOffset) == "" {
			t.Errorf("the dead letter of %.200q has key %q and headers %v", r.Value, r.Key, r.Headers)
		}
	}
}

// TestRetry mends the causes of dead letters and puts them back.
func TestRetry(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *system) {
		s.run("apply", "-f", exampleCatalog)
		s.startService("rater", "rater", "--flush-live", "300ms")
		originals := map[string]string{ // by reason
			"no_tenant": held("r1", "tenant-00", "newcomer"),
			"no_price":  held("r2", "cpu.core", "qpu.core"),
		}
		s.runWith(originals["no_tenant"]+"\n"+originals["no_price"]+"\n", "send", "-")
		s.waitFor("the dead letters", func() error {
			got := s.letters()
			if d := difference(got, "rejected r1: no_tenant\nrejected r2: no_price\n"); d != "" {
				return errText(d)
			}
			return nil
		})
		for line := range strings.Lines(s.run("deadletter", "list", "--json")) {
			var l struct{ Position, Reason, Tenant string }
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			shown, why, _ := s.try("", "deadletter", "show", l.Position)
			if shown != originals[l.Reason]+"\n" || !strings.Contains(why, l.Reason) {
				t.Errorf("deadletter show prints %q, %q", shown, why)
			}
			if !strings.Contains(s.run("deadletter", "list", "--tenant", l.Tenant), l.Position) {
				t.Errorf("deadletter list --tenant %s does not have %s", l.Tenant, l.Position)
			}
		}
		write(t, s.path("mended.yaml"), mended)
		s.run("apply", "-f", s.path("mended.yaml"))
		for again := range 2 { // a second retry bills nothing more
			for reason := range originals {
				if again == 1 && reason == "no_price" {
					continue // it is still wrong, so by now there may be two
				}
				if out := s.run("deadletter", "retry", "--reason", reason); !strings.HasPrefix(out, "1 ") {
					t.Errorf("deadletter retry says %q", out)
				}
			}
		}
		s.waitFor("what was retried", func() error {
			got := s.run("summary")
			if strings.Count(got, "\n") != 2 || !strings.Contains(got, "newcomer,2026-01,cpu.core,"+
				"on_demand,standard,60.000000000,unit-second,1.000000000000,EUR\n") {
				return errText(got)
			}
			return nil
		})
	})
}

// mended is a tenant that was missing, with a book of its own.
const mended = `kind: Tenant
name: newcomer
price_book: own
effective_from: 2025-01-01T00:00:00Z
---
kind: PriceBook
name: own
currency: EUR
timezone: Europe/Berlin
effective_from: 2025-01-01T00:00:00Z
prices:
- {sku: cpu.core, per: hour, price: "60"}
`

// TestApply_refusesPoison applies bad catalogs: nothing changes, and the message says where and
// why.
func TestApply_refusesPoison(t *testing.T) {
	s := newSystem(t, "embedded")
	s.run("apply", "-f", exampleCatalog)
	before := s.run("get", "all", "--json")
	f := func(document, line, cause string) {
		t.Helper()
		file := s.path("poison.yaml")
		write(t, file, "kind: Tenant\nname: innocent\nprice_book: public\n---\n"+document)
		_, errs, code := s.try("", "apply", "-f", file)
		if code != 1 || !strings.Contains(errs, file+":"+line+": ") || !strings.Contains(errs, cause) {
			t.Errorf("apply ended with %d and said %q, want line %s and %q", code, errs, line, cause)
		}
		if after := s.run("get", "all", "--json"); after != before {
			t.Errorf("%s changed the catalog", cause)
		}
	}
	const book = "kind: PriceBook\nname: other\ncurrency: CNY\ntimezone: Asia/Shanghai\n"
	f("kind: Tenant\nname: x\nprice_bok: public\n", "7", `no field "price_bok"`)
	f("kind: Tenant\nname: x\nprice_book: nowhere\n", "5", `"nowhere", which is not in the catalog`)
	f(strings.Replace(book, "CNY", "XYZ", 1)+"prices: []\n", "7", `currency "XYZ"`)
	f(strings.Replace(book, "Asia/Shanghai", "Mars/Base", 1)+"prices: []\n", "8", `"Mars/Base"`)
	f(book+"prices:\n- {sku: a, per: hour, ladder: {mode: graduated, tiers: [{price: \"1\", up_to: "+
		"\"5\"}, {price: \"2\", up_to: \"4\"}, {price: \"1\"}]}}\n", "10", "up_to must be above")
	f(strings.Replace(book, "other", "public", 1)+"effective_from: 2020-01-01T00:00:00Z\nprices: []\n",
		"5", "give it a later effective_from")
	f("kind: Tenant\n\tname: x\n", "5", "tab")
	f("kind: Budgie\nname: x\n", "5", `kind "Budgie"`)
}
