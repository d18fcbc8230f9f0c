package clickhouse

import (
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
)

// evidence returns what an analyst sees: the rows of a query, tabs between their columns, sorted.
func evidence(t *testing.T, s *Store, query string) []string {
	t.Helper()
	var out []string
	err := s.each(t.Context(), "SELECT formatRow('TSV', *) FROM ("+query+")",
		func(row scanner) error {
			var line string
			err := row.Scan(&line)
			out = append(out, strings.TrimSuffix(line, "\n"))
			return err
		})
	if err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	slices.Sort(out)
	return out
}

func TestLetters_countsWhatNobodySentAgain(t *testing.T) {
	s := store(t)
	letter := func(offset int64, key, reason string) pipeline.DeadLetter {
		return pipeline.DeadLetter{
			Record: pipeline.Record{
				Topic: schemas.TopicUsage, Partition: 3, Offset: offset, Key: []byte(key),
				Time: worldStart.Add(time.Duration(offset) * 1500 * time.Millisecond),
			},
			Reason: reason, Detail: "because", SeenAt: worldStart,
		}
	}
	letters := []pipeline.DeadLetter{
		letter(0, "acme", "no_price"), letter(2, "acme", "no_price"), letter(4, "acme", "no_price"),
		letter(6, "acme", "future"), letter(8, "acme", "future"), letter(10, "\xff'", "no_tenant"),
		letter(12, "", "invalid_json"), letter(13, "gone", "no_price"),
	}
	market := letter(4, "acme", "no_price")
	market.Topic = schemas.TopicMarket
	letters = append(letters, market)
	for range 2 { // written again they are not counted again
		if err := s.WriteDeadLetters(t.Context(), letters); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.WriteRetries(t.Context(), []pipeline.DeadLetter{letters[3], letters[7]},
		worldStart); err != nil {
		t.Fatal(err)
	}
	f := func(since time.Time, want ...alert.Letters) {
		t.Helper()
		got, err := s.Letters(t.Context(), since)
		if diff := gocmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("since %s: %v (-want +got):\n%s", since, err, diff)
		}
	}
	start := worldStart.Unix()
	all := []alert.Letters{
		{Tenant: "", Reason: "invalid_json", Count: 1, Newest: start + 18},
		{Tenant: "acme", Reason: "future", Count: 1, Newest: start + 12},
		{Tenant: "acme", Reason: "no_price", Count: 4, Newest: start + 6},
		{Tenant: "\xff'", Reason: "no_tenant", Count: 1, Newest: start + 15},
	}
	f(time.Time{}.AddDate(1999, 0, 0), all...)
	all[2].Count = 3
	f(worldStart.Add(time.Millisecond), all...)
	f(worldStart.Add(15*time.Second), all[0], all[3])
	f(worldStart.Add(time.Hour))

	want := []string{
		"future\t1\t2026-01-31 12:00:12.000\tbecause",
		"no_price\t3\t2026-01-31 12:00:06.000\tbecause",
	}
	if diff := gocmp.Diff(want, evidence(t, s, alert.QueryLetters("acme", start+1))); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
	if got := evidence(t, s, alert.QueryLetters("\xff'", start)); len(got) != 1 {
		t.Errorf("evidence of a hostile key: %q", got)
	}
}

func TestHeldDocuments_waitForAPerson(t *testing.T) {
	s := store(t)
	if none, err := s.HeldDocuments(t.Context()); err != nil || len(none) != 0 {
		t.Errorf("%v, %v", none, err)
	}
	entry := func(tenant, period string, status billing.Status, minutes int) billing.Entry {
		e := billing.Entry{
			Document: billing.Document{
				Schema: billing.Schema, Type: billing.Invoice, Tenant: tenant, Contract: "it's",
				Period: period, Currency: "CNY", Subtotal: "0", TaxTotal: "0", Total: "7.50", Due: "0",
				UnroundedTotal: "0",
			},
			Status: status, Offset: int64(minutes),
			At: worldStart.Add(time.Duration(minutes)*time.Minute + 999*time.Millisecond),
		}
		if status == billing.Held {
			e.Why = []string{"it's odd", "账单"}
		}
		return e
	}
	note := entry("acme", "2026-01", billing.Held, 3)
	note.Type, note.Cites = billing.CreditNote, &billing.Citation{ID: "c,1"}
	entries := []billing.Entry{
		entry("acme", "2026-02", billing.Held, 9), entry("acme", "2026-01", billing.Held, 1),
		entry("acme", "2026-01", billing.Issued, 2), note, entry("b", "2026-01", billing.Held, 5),
		entry("b", "2026-02", billing.Held, 6), entry("b", "2026-02", billing.Voided, 7),
	}
	if err := s.WriteDocuments(t.Context(), entries); err != nil {
		t.Fatal(err)
	}
	why := []string{"it's odd", "账单"}
	since := func(minutes int64) int64 { return worldStart.Unix() + 60*minutes }
	want := []alert.HeldDocument{
		{
			Tenant: "acme", ID: "acme,it's,CNY,2026-01,c,1", Period: "2026-01", Since: since(3), Why: why,
		},
		{Tenant: "b", ID: "b,it's,CNY,2026-01", Period: "2026-01", Since: since(5), Why: why},
		{Tenant: "acme", ID: "acme,it's,CNY,2026-02", Period: "2026-02", Since: since(9), Why: why},
	}
	got, err := s.HeldDocuments(t.Context())
	if diff := gocmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for i := range got {
		name := EntryFilter{Name: got[i].ID, Status: string(billing.Held)}
		found := 0
		if err := s.Entries(t.Context(), name, func(e *billing.Entry) error {
			found++
			return nil
		}); err != nil || found != 1 {
			t.Errorf("%d documents are named %s, %v", found, got[i].ID, err)
		}
	}
	shown := []string{
		"acme\tit\\'s\t2026-01\tcredit_note\tCNY\t-7.5\t['it\\'s odd','账单']",
		"acme\tit\\'s\t2026-02\tinvoice\tCNY\t7.5\t['it\\'s odd','账单']",
	}
	if diff := gocmp.Diff(shown, evidence(t, s, alert.QueryHeld("acme"))); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
}
