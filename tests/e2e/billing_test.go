//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"
)

// example is a catalog and its events, and what they must come to where that is known.
type example struct {
	catalog  string
	market   []string // events
	usage    []string // events
	expected []string // lines of the summary
	rejected []string // lines "rejected ID: reason"
}

// examples reads ours and, where they are there, the shared ones, with names of their own for
// tenants and books, so that all fit into one system.
func examples(t *testing.T) []example {
	t.Helper()
	folders, err := filepath.Glob("testdata/*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no examples in testdata: %v", err)
	}
	shared, err := filepath.Glob("../../../shared/examples/*")
	if err != nil {
		t.Fatal(err)
	}
	if len(shared) == 0 {
		t.Log("optional: the shared examples are not there; only those in testdata are")
	}
	var all []example
	for _, folder := range append(folders, shared...) {
		all = append(all, readExample(t, folder))
	}
	return all
}

func readExample(t *testing.T, folder string) example {
	t.Helper()
	prefix := filepath.Base(folder) + "-"
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(data)
	}
	var renames []string
	for _, name := range []string{"acme", "blue", "nobody"} {
		renames = append(renames, "name: "+name+"\n", "name: "+prefix+name+"\n",
			`"tenant":"`+name+`"`, `"tenant":"`+prefix+name+`"`)
	}
	renames = append(renames, "price_book: public", "price_book: "+prefix+"public",
		`"name": "public"`, `"name": "`+prefix+`public"`)
	rename := strings.NewReplacer(renames...)
	e := example{catalog: rename.Replace(read("catalog.yaml"))}
	for line := range strings.Lines(rename.Replace(read("events.jsonl"))) {
		if strings.Contains(line, "suanpan.market.price.v1") {
			e.market = append(e.market, line)
		} else {
			e.usage = append(e.usage, line)
		}
	}
	for line := range strings.Lines(read("expected.csv")) {
		if !strings.HasPrefix(line, "tenant,") {
			e.expected = append(e.expected, prefix+line)
		}
	}
	for line := range strings.Lines(read("rejected.txt")) {
		e.rejected = append(e.rejected, line)
	}
	return e
}

func TestBilling(t *testing.T) {
	all := examples(t)
	var catalog, market, usage, expected, rejected []string
	for _, e := range all {
		catalog = append(catalog, e.catalog)
		market, usage = append(market, e.market...), append(usage, e.usage...)
		expected = append(expected, e.expected...)
		rejected = append(rejected, e.rejected...)
	}
	slices.Sort(expected)
	slices.Sort(rejected)
	onBrokers(t, func(t *testing.T, s *system) {
		write(t, s.path("catalog.yaml"), strings.Join(catalog, "\n---\n"))
		write(t, s.path("market.jsonl"), strings.Join(market, ""))
		write(t, s.path("events.jsonl"), strings.Join(append(slices.Clone(market), usage...), ""))
		offline := []string{
			"rate", "--catalog", s.path("catalog.yaml"), "--events",
			s.path("events.jsonl"),
		}
		want, refused, code := s.try("", append(offline, "--summary")...)
		if code != 0 {
			t.Fatalf("rate offline: %s", refused)
		}
		header, lines, _ := strings.Cut(want, "\n")
		if d := difference(lines, strings.Join(expected, "")); d != "" {
			t.Errorf("offline summary:\n%s", d)
		}
		if d := difference(refused, strings.Join(rejected, "")); d != "" {
			t.Errorf("offline rejections:\n%s", d)
		}
		items := s.run(offline...)

		s.run("apply", "--replay", "-f", s.path("catalog.yaml"))
		s.run("send", "--replay", s.path("market.jsonl"))
		s.startService("archiver", "archiver")
		s.startService("rater", "rater", "--flush-live", "1s")
		s.startService("settler", "settler", "--every", "500ms")
		s.runWith(strings.Join(usage, ""), "send", "-")
		s.waitSummary(header+"\n"+lines, 90*time.Second)
		s.waitArchive(len(usage), time.Minute)
		checkLineItems(t, s, items)
		checkLetters(t, s, rejected)
		t.Run("tenant and period", func(t *testing.T) {
			got := s.run("summary", "--tenant", "per_second-acme", "--period", "2026-01")
			for line := range strings.Lines(got) {
				if !strings.HasPrefix(line, "tenant,") &&
					!strings.HasPrefix(line, "per_second-acme,2026-01,") {
					t.Errorf("summary of one tenant and period has %q", line)
				}
			}
		})
		t.Run("sent twice", func(t *testing.T) {
			s.runWith(strings.Join(usage, ""), "send", "-")
			s.waitArchive(2*len(usage), time.Minute)
			time.Sleep(3 * time.Second) // more than a flush
			s.waitSummary(header+"\n"+lines, 30*time.Second)
		})
		for _, name := range []string{"settler", "rater", "archiver"} {
			s.stop(name)
		}
	})
}

// checkLineItems waits until the view has exactly the line items that rating offline printed.
func checkLineItems(t *testing.T, s *system, offline string) {
	t.Helper()
	const query = `SELECT * FROM suanpan.line_items FORMAT JSONEachRow SETTINGS
		date_time_output_format = 'iso', output_format_json_quote_decimals = 1,
		output_format_decimal_trailing_zeros = 1`
	want := normalise(t, offline)
	waitFor(t, "the line items", time.Minute, func() error {
		got, err := s.query(query)
		if err != nil {
			return err
		}
		if d := difference(normalise(t, got), want); d != "" {
			return errText(d)
		}
		return nil
	})
}

type errText string

func (e errText) Error() string { return string(e) }

// normalise sorts JSON lines, and drops the zeros at the end of unit prices: the view's column has
// more decimals than a price.
func normalise(t *testing.T, text string) string {
	t.Helper()
	var out []string
	for line := range strings.Lines(text) {
		var item map[string]any
		if err := json.Unmarshal([]byte(line), &item); err != nil {
			t.Fatalf("parse %q: %v", line, err)
		}
		price, ok := item["unit_price"].(string)
		if !ok || len(item) != 24 {
			t.Fatalf("line item has %d columns, or no unit_price: %s", len(item), line)
		}
		if strings.Contains(price, ".") {
			item["unit_price"] = strings.TrimRight(strings.TrimRight(price, "0"), ".")
		}
		again, err := json.Marshal(item)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(again)+"\n")
	}
	sort.Strings(out)
	return strings.Join(out, "")
}

// checkLetters compares the dead letters, in the table and through the command, with what rating
// offline rejected.
func checkLetters(t *testing.T, s *system, rejected []string) {
	t.Helper()
	waitFor(t, "the dead letters", time.Minute, func() error {
		if d := difference(s.letters("--limit", "0"), strings.Join(rejected, "")); d != "" {
			return errText(d)
		}
		return nil
	})
}

// letters lists dead letters as "rejected ID: reason".
func (s *system) letters(args ...string) string {
	s.t.Helper()
	var out strings.Builder
	for line := range strings.Lines(s.run(append([]string{"deadletter", "list", "--json"}, args...)...)) {
		var l struct{ ID, Reason string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			s.t.Fatalf("parse %q: %v", line, err)
		}
		out.WriteString("rejected " + l.ID + ": " + l.Reason + "\n")
	}
	return out.String()
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
