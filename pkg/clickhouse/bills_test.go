package clickhouse

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
)

// close rates the close of a month of a tenant's contract, in Shanghai.
func (w *world) close(t *testing.T, tenant, contract string, month time.Month) {
	t.Helper()
	zone := time.FixedZone("", 8*3600)
	w.obey(t, &metering.Event{
		Kind: metering.PeriodClose, Tenant: tenant, Contract: contract, CatalogOffset: 17,
		MarketOffset: w.offset,
		Start:        metering.InstantOf(time.Date(2026, month, 1, 0, 0, 0, 0, zone).Unix()),
		End:          metering.InstantOf(time.Date(2026, month+1, 1, 0, 0, 0, 0, zone).Unix()),
	})
}

// rerate prices half a day of a tenant anew, by the book's version that began in its midst. It
// returns the catalog that has this version.
func (w *world) rerate(t *testing.T, tenant string) *catalog.Catalog {
	t.Helper()
	documents, err := catalog.Parse("world.yaml", []byte(worldCatalog+"---"+strings.ReplaceAll(
		worldCatalog[strings.Index(worldCatalog, "\nkind: PriceBook"):strings.Index(worldCatalog,
			"---\nkind: Contract")], `effective_from: "2025-12-01`, `effective_from: "2026-02-01`)))
	if err != nil {
		t.Fatal(err)
	}
	amended, err := catalog.New(documents)
	if err != nil {
		t.Fatal(err)
	}
	w.rater.Obey(func(int64) *catalog.Catalog { return amended })
	stored := rating.NewLedger()
	for i := range w.changes {
		stored.Apply(&w.changes[i])
	}
	e := &metering.Event{
		Kind: metering.Rerate, Tenant: tenant, CatalogOffset: 23,
		Start: metering.Instant(worldStart.UnixNano()),
		End:   metering.Instant(worldStart.Add(12 * time.Hour).UnixNano()),
	}
	need := new(rating.Need)
	w.rater.Need(e, need)
	if err := w.rater.Load(need, stored.Find(need)); err != nil {
		t.Fatal(err)
	}
	w.obey(t, e)
	return amended
}

func (w *world) obey(t *testing.T, e *metering.Event) {
	t.Helper()
	w.offset++
	at := rating.Position{Partition: 3, Offset: w.offset}
	if why := w.rater.Rate(e, at, metering.InstantOf(1_900_000_000)); why != nil {
		t.Fatal(why)
	}
	w.drain()
}

// Property: what documents are made of is in the store as it is in the ledger.
func TestBills_equalTheLedger(t *testing.T) {
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s, l, w := store(t), rating.NewLedger(), newWorld(t, 1000+seed)
			w.run(t, 150)
			w.close(t, "acme", "", time.January)
			w.run(t, 100)
			w.close(t, "acme", "", time.February)
			w.close(t, "蓝-co", "", time.January)
			w.close(t, "acme", "term", time.February)
			w.run(t, 60)
			w.rerate(t, "acme")
			w.close(t, "acme", "", time.March)
			w.run(t, 60)
			w.write(t, s, l)
			w.mustHaveAll(t, l)
			sameBills(t, s, l)
		})
	}
}

// mustHaveAll fails where the world lacks something that makes sums hard.
func (w *world) mustHaveAll(t *testing.T, l *rating.Ledger) {
	t.Helper()
	var negative, late, contract, elsewhere int
	var names [rating.Dimensions]int
	for _, line := range l.RowLines() {
		if line.Text[0] == 'h' && strings.Split(line.Text, "\t")[2] != "0" {
			negative++
		}
		if line.Billing > line.Charge.Period {
			late++
		}
		if line.Charge.Contract != "" {
			contract++
		}
	}
	for _, a := range l.Accounts() {
		for _, period := range a.Periods() {
			for _, u := range a.Uses(period) {
				if u.Elsewhere {
					elsewhere++
				}
				for d, parts := range u.Parts {
					names[d] = max(names[d], len(parts))
				}
			}
		}
	}
	if negative == 0 || late == 0 || contract == 0 || elsewhere == 0 || len(l.Rerates()) == 0 ||
		slices.Min(names[:]) < 2 {
		t.Fatalf("the world has %d negative segments, %d late ones, %d of a contract, %d beside late "+
			"ones, %d re-ratings, and the dimensions have %d names", negative, late, contract, elsewhere,
			len(l.Rerates()), names)
	}
}

func sameBills(t *testing.T, s *Store, l *rating.Ledger) {
	t.Helper()
	closes, err := s.Closes(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(l.Closes().Sorted(), closes, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("Closes differs (-ledger +store):\n%s", diff)
	}
	want := make(map[pipeline.PeriodKey][]rating.Use)
	var keys []pipeline.PeriodKey
	for _, a := range l.Accounts() {
		for _, period := range a.Periods() {
			key := pipeline.PeriodKey{Tenant: a.Tenant, Contract: a.Contract, Period: period}
			keys, want[key] = append(keys, key), a.Uses(period)
		}
	}
	if len(keys) < 4 {
		t.Fatalf("the world has only the periods %v", keys)
	}
	got, err := s.Uses(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want, got, gocmp.Comparer(func(a, b metering.Quantity) bool {
		return a == b
	})); diff != "" {
		t.Errorf("Uses differs (-ledger +store):\n%s", diff)
	}
	var lines []string
	err = s.RowLines(t.Context(), keys, func(of pipeline.PeriodKey, line rating.RowLine) error {
		if line.Billing != of.Period || line.Charge.Contract != of.Contract {
			t.Errorf("a line of %s is visited for %v", line.Charge.Key(), of)
		}
		lines = append(lines, of.Period+line.Charge.Tenant+line.Text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	all := l.RowLines()
	slices.SortStableFunc(all, func(a, b rating.RowLine) int {
		return cmp.Or(cmp.Compare(a.Billing, b.Billing), cmp.Compare(a.Charge.Tenant, b.Charge.Tenant),
			cmp.Compare(a.Charge.Contract, b.Charge.Contract))
	})
	wantLines := make([]string, len(all))
	for i, line := range all {
		wantLines[i] = line.Billing + line.Charge.Tenant + line.Text
	}
	if diff := gocmp.Diff(wantLines, lines); diff != "" {
		t.Errorf("RowLines differs (-ledger +store):\n%s", diff)
	}
}

func TestBills_takeAnyNames(t *testing.T) {
	s, l := store(t), rating.NewLedger()
	for i, tenant := range hostile {
		name := func(n int) string { return hostile[(i+n)%len(hostile)] }
		charge := rating.Charge{
			Tenant: tenant, Book: "b", SKU: "s", Purchase: "on_demand", Band: "standard", Period: "2026-01",
		}
		key := rating.SessionKey{Tenant: tenant, Session: name(1)}
		session := rating.SessionRow{SessionKey: key, SKU: "s", Milli: 5}
		session.Project = name(2)
		session.Labels = []metering.Label{{Key: name(3), Value: name(4)}, {Key: "team", Value: name(5)}}
		changes := rating.Changes{
			Sessions: []rating.SessionRow{session},
			Consumed: []rating.ConsumedRow{{
				Tenant: tenant, Source: name(6), ID: name(7), SKU: "s", Charge: &charge,
				Nano: quantity(int64(i)), Billing: "2026-02", At: worldStart.Unix(), Project: name(8),
				Labels: []metering.Label{{Key: "model", Value: name(9)}},
			}},
			Hours: []rating.Row{{
				HourKey: rating.HourKey{SessionKey: key, Hour: worldStart.Unix()}, SKU: "s", Milli: 5,
				Used:     metering.Set{{From: 1, To: 3}},
				Segments: []rating.Segment{{Charge: &charge, Billing: "2026-02", From: 1, To: 3, Seconds: 2}},
			}},
			Closes: []rating.Close{{
				PeriodKey: rating.PeriodKey{Tenant: tenant, Period: "2026-01"}, From: 1, Until: 2,
			}},
		}
		l.Apply(&changes)
		if err := s.Write(t.Context(), &changes); err != nil {
			t.Fatal(err)
		}
	}
	sameBills(t, s, l)
}

func TestBills_refuseRowsThatCannotBe(t *testing.T) {
	const insert = `INSERT INTO hours (tenant, hour, session, sku, held, seg_kind, seg_charge,
		seg_billing_period, seg_day, seg_from, seg_to, seg_seconds) VALUES
		('%s', 1769860800, 's', 'gpu', 1000, [0], ['%s'], ['2026-01'], [1], [0], [1], [1])`
	s := store(t)
	for tenant, f := range map[string]struct{ charge, uses, lines string }{
		"a": {"b|x||0|gpu||on_demand|standard||2026-01|0", `parsing "x"`, `parsing "x"`},
		// This one is of no usage period, so it is in no sum; the rows show it.
		"b": {"x", "", "has 1 parts, not 11"},
	} {
		if err := s.conn.Exec(t.Context(), fmt.Sprintf(insert, tenant, f.charge)); err != nil {
			t.Fatal(err)
		}
		keys := []pipeline.PeriodKey{{Tenant: tenant, Period: "2026-01"}}
		_, err := s.Uses(t.Context(), keys)
		if f.uses == "" && err != nil || f.uses != "" &&
			(err == nil || !strings.Contains(err.Error(), f.uses)) {
			t.Errorf("Uses of charge %s: %v, want %q", f.charge, err, f.uses)
		}
		err = s.RowLines(t.Context(), keys, func(pipeline.PeriodKey, rating.RowLine) error { return nil })
		if err == nil || !strings.Contains(err.Error(), f.lines) {
			t.Errorf("RowLines of charge %s: %v, want %q", f.charge, err, f.lines)
		}
	}
}

func TestDocuments(t *testing.T) {
	s := store(t)
	invoice := billing.Entry{
		Document: billing.Document{
			Schema: billing.Schema, Type: billing.Invoice, Tenant: "acme", Period: "2026-01",
			Currency: "CNY", Lines: []billing.Line{{SKU: "<gpu> & 'x'"}}, Subtotal: "10.00",
			TaxTotal: "0.60", Total: "10.60", Due: "10.60", UnroundedTotal: "10.001000000000",
			Notes: []string{}, Taxes: []billing.Tax{}, Prepaid: []billing.Paid{},
		},
		Status: billing.Held, Why: []string{"it is large", "and odd"}, Place: 1, Offset: 7, Decided: 7,
		At: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC),
	}
	invoice.ID = invoice.Document.ID()
	note := invoice
	note.Type, note.Number, note.Status = billing.CreditNote, "CN-1", billing.Issued
	note.Place, note.Why, note.Offset, note.Decided = 2, nil, 8, 8
	note.Cites = &billing.Citation{Key: invoice.ID, ID: "c1"}
	note.ID = note.Document.ID()
	issued := invoice
	issued.Number, issued.Status, issued.Offset, issued.By = "INV-2026-1", billing.Issued, 9, "ann"
	issued.Reason, issued.Why = "it is right", nil
	write := func(entries ...billing.Entry) {
		t.Helper()
		if err := s.WriteDocuments(t.Context(), entries); err != nil {
			t.Fatal(err)
		}
	}
	f := func(filter EntryFilter, want ...billing.Entry) {
		t.Helper()
		var got []billing.Entry
		err := s.Entries(t.Context(), filter, func(e *billing.Entry) error {
			got = append(got, *e)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("documents for %+v (-want +got):\n%s", filter, diff)
		}
	}
	write(issued, note)
	write(invoice) // an older state, written again
	f(EntryFilter{}, issued, note)
	f(EntryFilter{Name: "INV-2026-1"}, issued)
	f(EntryFilter{Name: "acme,,CNY,2026-01"}, issued)
	f(EntryFilter{Name: "acme,,CNY,2026-01,c1"}, note)
	f(EntryFilter{Type: "credit_note", Tenant: "acme", Period: "2026-01", Status: "issued"}, note)
	f(EntryFilter{Tenant: "blue"})
	if last, err := s.Written(t.Context()); err != nil || last != 9 {
		t.Errorf("the newest state is at %d, %v, want 9", last, err)
	}
	if n, err := s.Issued(t.Context()); err != nil || n != 2 {
		t.Errorf("%d documents are issued, %v, want 2", n, err)
	}
	held := invoice
	held.Period, held.Total, held.Why = "2026-02", "77.00", []string{"it's odd"}
	held.ID = held.Document.ID()
	voided := held
	voided.Period, voided.Status, voided.Why, voided.Reason = "2026-03", billing.Voided, nil, "wrong"
	voided.ID, voided.Decided, voided.Offset = voided.Document.ID(), 10, 12
	write(held, voided)
	before := func(offset int64, want string) {
		t.Helper()
		var ids []string
		err := s.DocumentsBefore(t.Context(), "acme", offset, func(d *billing.Document) error {
			ids = append(ids, d.ID())
			return nil
		})
		slices.Sort(ids) // those of one place come in no order
		if got := strings.Join(ids, " "); err != nil || got != want {
			t.Errorf("before %d there were %s, %v, want %s", offset, got, err, want)
		}
	}
	before(7, "")
	before(8, "acme,,CNY,2026-01 acme,,CNY,2026-02")
	before(9, "acme,,CNY,2026-01 acme,,CNY,2026-01,c1 acme,,CNY,2026-02")
	before(11, "acme,,CNY,2026-01 acme,,CNY,2026-01,c1 acme,,CNY,2026-02 acme,,CNY,2026-03")
	before(12, "acme,,CNY,2026-01 acme,,CNY,2026-01,c1 acme,,CNY,2026-02")
	var kept []string
	if err := s.Documents(t.Context(), []string{"acme", "blue"}, func(d *billing.Document) error {
		text, err := documentText(d)
		kept = append(kept, text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, e := range []billing.Entry{issued, held, note} {
		text, err := documentText(&e.Document)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, text)
	}
	slices.Sort(want) // those of one place come in no order
	slices.Sort(kept)
	if diff := gocmp.Diff(want, kept); diff != "" {
		t.Errorf("documents that count (-want +got):\n%s", diff)
	}
	var total, states string
	if err := s.conn.QueryRow(t.Context(),
		"SELECT toString(sum(total)) FROM invoices").Scan(&total); err != nil || total != "0" {
		t.Errorf("invoice and credit note sum to %s, %v, want 0", total, err)
	}
	if err := s.conn.QueryRow(t.Context(), `SELECT arrayStringConcat(arraySort(groupArray(
		concat(status, ' ', toString(total)))), ', ') FROM invoice_states`).Scan(&states); err != nil ||
		states != "held 77, issued -10.6, issued 10.6, voided 77" {
		t.Errorf("the states are %s, %v", states, err)
	}
	var lines uint64
	err := s.conn.QueryRow(t.Context(), "SELECT count() FROM invoice_lines").Scan(&lines)
	if err != nil {
		t.Error(err)
	}
	if lines != 2 {
		t.Errorf("there are %d lines, want 2", lines)
	}
}
