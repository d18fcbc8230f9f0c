//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/billing"
)

const (
	closeTenants = 12
	closeSeed    = 7
	closeKills   = 14
)

// closing is usage of two months with late usage, late voids and the closes between them, for many
// tenants, and what suanpan bill makes of it.
type closing struct {
	catalog string
	market  string   // lines
	parts   []string // lines that may be sent in any order and twice, but each part after the last
	want    map[string]*billing.Document
}

// readClosing multiplies the tenants of the files.
func readClosing(t *testing.T) *closing {
	t.Helper()
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join("closing", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	c := &closing{catalog: filepath.Join(t.TempDir(), "catalog.yaml")}
	documents := strings.Split(read("catalog.yaml"), "---\n")
	var texts []string
	for _, d := range documents {
		many := strings.Contains(d, "name: acme") || strings.Contains(d, "tenant: acme") ||
			strings.Contains(d, "name: blue")
		for i := range closeTenants / 2 {
			if many {
				texts = append(texts, numbered(d, i))
			} else if i == 0 {
				texts = append(texts, strings.ReplaceAll(d, "[blue]", "["+blues()+"]"))
			}
		}
	}
	if err := os.WriteFile(c.catalog, []byte(strings.Join(texts, "---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	c.parts = []string{""}
	closed := false
	for line := range strings.Lines(read("events.jsonl")) {
		if strings.Contains(line, "market.price") {
			c.market += line
			continue
		}
		isClose := strings.Contains(line, "period.close")
		if isClose != closed && (isClose || closed) { // a run of closes is a part of its own
			c.parts = append(c.parts, "")
		}
		closed = isClose
		for i := range closeTenants / 2 {
			c.parts[len(c.parts)-1] += numbered(line, i)
		}
	}
	// The second month is closed, too.
	last := ""
	for i := range closeTenants / 2 {
		for _, tenant := range []string{"acme", "blue"} {
			last += fmt.Sprintf(`{"specversion":"1.0","type":"suanpan.period.close.v1","source":"/t",`+
				`"id":"close-%[1]s-%[2]d","data":{"tenant":"%[1]s-%[2]d",`+
				`"from":"2026-02-01T00:00:00+08:00","until":"2026-03-01T00:00:00+08:00"}}`+"\n", tenant, i)
		}
	}
	c.parts = append(c.parts, last)
	all.WriteString(c.market + strings.Join(c.parts, ""))
	c.want = make(map[string]*billing.Document)
	out, errs, code := try(t, os.Environ(), all.String(), "bill", "--catalog", c.catalog,
		"--events", "-")
	if code != 0 || errs != "" {
		t.Fatalf("suanpan bill ended with %d: %s", code, errs)
	}
	for line := range strings.Lines(out) {
		d := parseDocument(t, line)
		c.want[d.ID()] = d
	}
	return c
}

func blues() string {
	var names []string
	for i := range closeTenants / 2 {
		names = append(names, fmt.Sprintf("blue-%d", i))
	}
	return strings.Join(names, ", ")
}

// numbered makes a text one of the i-th acme or blue.
func numbered(text string, i int) string {
	number := fmt.Sprintf("-%d", i)
	return strings.NewReplacer(`"tenant":"acme"`, `"tenant":"acme`+number+`"`,
		`"tenant":"blue"`, `"tenant":"blue`+number+`"`, "name: acme\n", "name: acme"+number+"\n",
		"name: blue\n", "name: blue"+number+"\n", "tenant: acme\n", "tenant: acme"+number+"\n",
		"name: welcome\n", "name: welcome"+number+"\n", "name: top-up\n", "name: top-up"+number+"\n",
	).Replace(text)
}

func parseDocument(t *testing.T, text string) *billing.Document {
	t.Helper()
	d := new(billing.Document)
	if err := json.Unmarshal([]byte(text), d); err != nil {
		t.Fatalf("parse document %s: %v", text, err)
	}
	return d
}

// shuffled returns lines in another order, a third of them twice.
func shuffled(random *rand.Rand, text string) string {
	lines := slices.Collect(strings.Lines(text))
	lines = append(lines, lines[:len(lines)/3]...)
	random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	return strings.Join(lines, "")
}

// TestClose kills the rater, two billers and ClickHouse around the closes of two months, while
// usage comes in any order and twice. The documents are those that suanpan bill makes of the same
// events; numbers have no gap and no repeat; every invoice stands verification.
func TestClose(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *system) {
		c := readClosing(t)
		s.run("apply", "--replay", "-f", c.catalog)
		s.runWith(c.market, "send", "--replay", "-")
		s.startService("rater", "rater", "--flush-bulk", "200ms", "--flush-live", "200ms")
		s.startService("archiver", "archiver")
		s.startService("settler", "settler", "--every", "500ms")
		for _, name := range []string{"biller-a", "biller-b"} {
			s.startService(name, "biller", "--schedule", "@every 300ms")
		}
		random := rand.New(rand.NewPCG(closeSeed, 0))
		victims := []string{"rater", "rater", "biller-a", "biller-b", "clickhouse"}
		kills := 0
		for i, part := range c.parts {
			text := part
			if !strings.Contains(part, "period.close") {
				text = shuffled(random, part)
			}
			s.runWith(text, "send", "-")
			for range closeKills / len(c.parts) {
				name := victims[random.IntN(len(victims))]
				time.Sleep(time.Duration(random.IntN(1200)) * time.Millisecond)
				s.kill(name)
				s.launch(name)
				kills++
			}
			t.Logf("part %d of %d sent, %d kills", i+1, len(c.parts), kills)
		}
		waitFor(t, "all documents", 3*time.Minute, func() error {
			out, errs, code := s.try("", "invoice", "list", "--json")
			if got := strings.Count(out, "\n"); code != 0 || got != len(c.want) {
				return fmt.Errorf("there are %d documents, want %d: %s", got, len(c.want), errs)
			}
			return nil
		})
		checkDocuments(t, s, c)
		checkTampering(t, s)
	})
}

func checkDocuments(t *testing.T, s *system, c *closing) {
	t.Helper()
	numbers := make(map[string]map[string]bool)
	for line := range strings.Lines(s.run("invoice", "list", "--json")) {
		var l struct{ ID, Number, Status, Type string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		got := parseDocument(t, s.run("invoice", "show", "--json", l.ID))
		want := c.want[l.ID]
		if want == nil {
			t.Errorf("there is a document %s that suanpan bill does not make", l.ID)
			continue
		}
		for _, difference := range billing.Differences(want, got) {
			t.Errorf("%s: %s", l.ID, difference)
		}
		if l.Status != "issued" || l.Number == "" || got.Number != l.Number ||
			len(got.IssueDate) < 4 {
			t.Fatalf("%s is %s with the number %q, of %q", l.ID, l.Status, l.Number, got.IssueDate)
		}
		if numbers[l.Type] == nil {
			numbers[l.Type] = make(map[string]bool)
		}
		// Its year is that of its own issue, which may be another one on the last night of a year.
		numbers[l.Type][strings.Replace(l.Number, "-"+got.IssueDate[:4]+"-", " ", 1)] = true
		if out := s.run("verify", l.Number); !strings.Contains(out, "all as billed") {
			t.Errorf("verify %s says %s", l.Number, out)
		}
	}
	for kind, series := range map[string]string{"invoice": "INV", "credit_note": "CN"} {
		if len(numbers[kind]) == 0 {
			t.Errorf("there is no %s", kind)
		}
		for i := range len(numbers[kind]) {
			if number := fmt.Sprintf("%s %d", series, i+1); !numbers[kind][number] {
				t.Errorf("no %s has the number %s: %v", kind, number, numbers[kind])
			}
		}
	}
}

// checkTampering changes one cell and expects verify to find it.
func checkTampering(t *testing.T, s *system) {
	t.Helper()
	for _, change := range []string{
		`INSERT INTO suanpan.hours SELECT * REPLACE (held + 1 AS held) FROM suanpan.hours FINAL
			WHERE tenant = 'acme-3' AND session = 'acme1' LIMIT 1`,
		`INSERT INTO suanpan.sessions SELECT * REPLACE ('elsewhere' AS project)
			FROM suanpan.sessions FINAL WHERE tenant = 'acme-2' AND session = 'acme1' LIMIT 1`,
		`INSERT INTO suanpan.documents SELECT * REPLACE (replace(document, '"due":"', '"due":"1') AS document)
			FROM suanpan.documents FINAL WHERE tenant = 'acme-1' AND period = '2026-01'`,
	} {
		if _, err := s.query(change); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{
		"acme-3,,CNY,2026-01", "acme-2,,CNY,2026-01", "acme-1,,CNY,2026-01",
	} {
		out, errs, code := s.try("", "verify", id)
		if code != 1 || out == "" || !strings.Contains(errs, "not what the events say") {
			t.Errorf("verify %s ended with %d after a cell was changed:\n%s%s", id, code, out, errs)
		}
	}
	out, errs, code := s.try("", "verify", "acme-0,,CNY,2026-01")
	if code != 0 {
		t.Errorf("verify of an invoice that nobody touched ended with %d:\n%s%s", code, out, errs)
	}
}
