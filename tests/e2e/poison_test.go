//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/kafka"
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
		want := map[string]int{"misrouted": 1}
		var lines []string
		for event, reason := range poison() {
			want[reason]++
			lines = append(lines, event+"\n")
		}
		s.runWith(strings.Join(lines, ""), "send", "-")
		appendRaw(t, s,
			pipeline.Record{ // found in another partition than its tenant's: forwarded, and rated
				Topic: schemas.TopicUsage, Key: []byte("tenant-07"), Value: []byte(held("forwarded")),
			},
			pipeline.Record{ // forwarded already, and still wrong
				Topic: schemas.TopicUsage, Key: []byte("tenant-07"), Value: []byte(held("p-misrouted")),
				Headers: []pipeline.Header{{Key: pipeline.HeaderForwardedFrom, Value: []byte("x/0/0")}},
			})
		s.runWith(held("after")+"\n", "send", "-") // the partition goes on
		s.waitRated(3)
		checkReasons(t, s, want)
		s.waitArchive(1+len(lines)-1+2+1+1, time.Minute) // one is a market price, one forwarded
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

// checkReasons compares the dead letters in the table and in the topic with what they must be.
func checkReasons(t *testing.T, s *system, want map[string]int) {
	t.Helper()
	s.waitFor("the dead letters", func() error {
		got := make(map[string]int)
		for line := range strings.Lines(s.run("deadletter", "list", "--json")) {
			var l struct{ Reason string }
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				return err
			}
			got[l.Reason]++
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("the table has %v, want %v", got, want)
		}
		return nil
	})
	client := openLog(t, s)
	tail := client.Tail(schemas.TopicDeadLetter)
	records, err := tail.ReadToEnd(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]int)
	for _, r := range records {
		for _, h := range r.Headers {
			if h.Key == pipeline.HeaderReason {
				got[string(h.Value)]++
			}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the topic has %v, want %v", got, want)
	}
}

func openLog(t *testing.T, s *system) *kafka.Client {
	t.Helper()
	client, err := kafka.Open(t.Context(), kafka.Config{Brokers: []string{s.kafka}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

func appendRaw(t *testing.T, s *system, records ...pipeline.Record) {
	t.Helper()
	if err := openLog(t, s).Append(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
}

// TestRetry mends the cause of a dead letter and puts it back.
func TestRetry(t *testing.T) {
	s := newSystem(t, "embedded")
	s.run("apply", "-f", exampleCatalog)
	s.startService("rater", "rater", "--flush-live", "300ms")
	original := held("r1", "tenant-00", "newcomer")
	s.runWith(original+"\n", "send", "-")
	s.waitFor("the dead letter", func() error {
		if got := s.letters(); got != "rejected r1: no_tenant\n" {
			return errText(got)
		}
		return nil
	})
	var l struct{ Position string }
	if err := json.Unmarshal([]byte(s.run("deadletter", "list", "--json")), &l); err != nil {
		t.Fatal(err)
	}
	shown, why, _ := s.try("", "deadletter", "show", l.Position)
	if shown != original+"\n" || !strings.Contains(why, "no_tenant") {
		t.Errorf("deadletter show prints %q, %q", shown, why)
	}
	write(t, s.path("newcomer.yaml"), "kind: Tenant\nname: newcomer\nprice_book: public\n"+
		"effective_from: 2025-01-01T00:00:00Z\n")
	s.run("apply", "-f", s.path("newcomer.yaml"))
	for range 2 { // a second retry bills nothing more
		if out := s.run("deadletter", "retry", "--reason", "no_tenant"); !strings.HasPrefix(out, "1 ") {
			t.Errorf("deadletter retry says %q", out)
		}
	}
	s.waitFor("what was retried", func() error {
		got := s.run("summary", "--tenant", "newcomer")
		if strings.Count(got, "\n") != 2 || !strings.Contains(got, ",60.000000000,unit-second,") {
			return errText(got)
		}
		return nil
	})
}

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
