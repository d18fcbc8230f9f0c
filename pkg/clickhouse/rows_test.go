package clickhouse

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
)

// sorted returns what was found in an order of its own.
func sorted(k *rating.Known) *rating.Known {
	byText := func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
	slices.SortFunc(k.Sessions, func(a, b rating.SessionRow) int {
		return byText([]any{a.SessionKey, a.SKU}, []any{b.SessionKey, b.SKU})
	})
	slices.SortFunc(k.Voids, func(a, b rating.VoidRow) int { return byText(a.HourKey, b.HourKey) })
	slices.SortFunc(k.Hours, func(a, b rating.Row) int {
		return byText([]any{a.HourKey, a.SKU}, []any{b.HourKey, b.SKU})
	})
	return k
}

// sameRows fails where the store has other rows than the ledger.
func sameRows(t *testing.T, s *Store, l *rating.Ledger, need *rating.Need) {
	t.Helper()
	got, err := s.Find(t.Context(), need)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(sorted(l.Find(need)), sorted(got), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("Find differs from the ledger (-ledger +store):\n%s", diff)
	}
	stored, err := s.Stored(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(l.Stored(), stored); diff != "" {
		t.Errorf("Stored differs from the ledger (-ledger +store):\n%s", diff)
	}
	sums, err := s.AllSums(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(texts(l.Sums()), texts(sums)); diff != "" {
		t.Errorf("AllSums differs from the ledger (-ledger +store):\n%s", diff)
	}
}

func texts(sums rating.Sums) map[string]string {
	out := make(map[string]string)
	for charge, q := range sums {
		out[charge.Tenant+"|"+charge.Key()] = q.String()
	}
	return out
}

// write writes changes in random order, some of them twice, to the store and to the ledger.
func (w *world) write(t *testing.T, s *Store, l *rating.Ledger) {
	t.Helper()
	order := append(w.random.Perm(len(w.changes)), w.random.Perm(len(w.changes))[:len(w.changes)/2]...)
	for _, i := range order {
		if err := s.Write(t.Context(), &w.changes[i]); err != nil {
			t.Fatal(err)
		}
		l.Apply(&w.changes[i])
	}
}

// Property: whatever order the states of rows are written in, and however often, the store has what
// the ledger has, and its line items are the ledger's, digit by digit.
func TestStore_isTheLedger(t *testing.T) {
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			s, w, l := store(t), newWorld(t, seed), rating.NewLedger()
			w.run(t, 300)
			w.write(t, s, l)
			need := w.need()
			if found := l.Find(need); len(found.Hours) < 50 || len(found.Voids) == 0 {
				t.Fatalf("the world is too small to show anything: %d hours, %d voids",
					len(found.Hours), len(found.Voids))
			}
			sameRows(t, s, l, need)
			settle(t, s, w)
			sameItems(t, s, l, w)
			if _, err := s.conn.Query(t.Context(), "OPTIMIZE TABLE hours FINAL"); err != nil {
				t.Fatal(err)
			}
			sameRows(t, s, l, need)
		})
	}
}

// settle does what the settler does.
func settle(t *testing.T, s *Store, w *world) {
	t.Helper()
	periods, _, err := s.Touched(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	sums, err := s.Sums(t.Context(), periods)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := rating.Settle(sums, w.catalog)
	if err != nil {
		t.Fatal(err)
	}
	settled := make(map[pipeline.PeriodKey][]rating.Settled)
	for _, line := range lines {
		key := pipeline.PeriodKey{Tenant: line.Tenant, Contract: line.Contract, Period: line.Period}
		settled[key] = append(settled[key], line)
	}
	if len(settled) != len(periods) {
		t.Errorf("%d periods were touched and %d have charges", len(periods), len(settled))
	}
	if err := s.WriteSettlements(t.Context(), settled, time.Now()); err != nil {
		t.Fatal(err)
	}
}

func sameItems(t *testing.T, s *Store, l *rating.Ledger, w *world) {
	t.Helper()
	want, err := l.LineItems(w.catalog)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.LineItems(t.Context(), LineItemFilter{})
	if err != nil {
		t.Fatal(err)
	}
	kinds := make(map[string]int)
	lines := func(items []rating.LineItem) []string {
		out := make([]string, len(items))
		for i, item := range items {
			kinds[item.Kind]++
			line, err := json.Marshal(item)
			if err != nil {
				t.Fatal(err)
			}
			out[i] = string(line)
		}
		slices.Sort(out)
		return out
	}
	if diff := gocmp.Diff(lines(want), lines(got)); diff != "" {
		t.Errorf("line items differ (-ledger +view):\n%s", diff)
	}
	var each []rating.LineItem
	for _, period := range []string{"2026-01", "2026-02"} {
		err := s.EachLineItem(t.Context(), period, func(i *rating.LineItem, c *rating.Charge) error {
			if c.SKU != i.SKU || c.Band != i.Band || c.Period != i.UsagePeriod {
				t.Errorf("%s has a line item of %s %s", c.Key(), i.SKU, i.Band)
			}
			each = append(each, *i)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := gocmp.Diff(lines(want), lines(each)); diff != "" {
		t.Errorf("line items by charge differ (-ledger +view):\n%s", diff)
	}
	if kinds["usage"] == 0 || kinds["void"] == 0 || kinds["rounding"] == 0 {
		t.Errorf("the world has no items of some kind: %v", kinds)
	}
}

func TestWrite_olderStateAfterNewerChangesNothing(t *testing.T) {
	s, w, l := store(t), newWorld(t, 9), rating.NewLedger()
	w.run(t, 200)
	for i := len(w.changes) - 1; i >= 0; i-- {
		if err := s.Write(t.Context(), &w.changes[i]); err != nil {
			t.Fatal(err)
		}
		l.Apply(&w.changes[i])
	}
	sameRows(t, s, l, w.need())
}

func TestWrite_repairsATornWrite(t *testing.T) {
	s, w, l := store(t), newWorld(t, 10), rating.NewLedger()
	w.run(t, 200)
	all := 0
	for i := range w.changes {
		c := &w.changes[i]
		l.Apply(c)
		months := byMonth(c.Hours)
		all = max(all, len(months))
		// Only the sessions and one month land; then everything is repeated.
		if err := s.writeSessions(t.Context(), c.Sessions); err != nil {
			t.Fatal(err)
		}
		if len(months) > 1 {
			if err := s.writeHours(t.Context(), months[len(months)-1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if all < 2 {
		t.Fatal("no write touches two months")
	}
	for i := range w.changes {
		if err := s.Write(t.Context(), &w.changes[i]); err != nil {
			t.Fatal(err)
		}
	}
	sameRows(t, s, l, w.need())
}

func TestFind_takesMoreKeysThanAStatementHolds(t *testing.T) {
	s, w, l := store(t), newWorld(t, 11), rating.NewLedger()
	w.run(t, 100)
	w.write(t, s, l)
	need := w.need()
	for i := range 12_000 {
		key := rating.SessionKey{Tenant: "acme", Session: strings.Repeat("'\\", 100) + fmt.Sprint(i)}
		need.Sessions[key] = true
		need.Hours[rating.HourKey{SessionKey: key, Hour: worldStart.Unix()}] = true
	}
	if n := len(lists(hourTuples(need.Hours))); n < 2 {
		t.Fatalf("all keys fit into %d statement", n)
	}
	sameRows(t, s, l, need)
}

func TestWrite_takesAnyNames(t *testing.T) {
	s := store(t)
	charge := rating.Charge{
		Book: "b", SKU: "s", Purchase: "on_demand", Band: "standard",
		Period: "2026-02",
	}
	l, need := rating.NewLedger(), &rating.Need{
		Sessions: map[rating.SessionKey]bool{}, Hours: map[rating.HourKey]bool{},
	}
	for i, tenant := range hostile {
		for j, session := range hostile {
			c := charge
			c.Tenant = tenant
			key := rating.SessionKey{Tenant: tenant, Session: session}
			hour := rating.HourKey{SessionKey: key, Hour: worldStart.Unix()}
			need.Sessions[key], need.Hours[hour] = true, true
			changes := rating.Changes{
				Sessions: []rating.SessionRow{{SessionKey: key, SKU: "s", Milli: 1<<63 - 1}},
				Voids:    []rating.VoidRow{{HourKey: hour, Seconds: metering.Set{{From: 0, To: 3600}}}},
				Consumed: []rating.ConsumedRow{{
					Tenant: tenant, Source: session, ID: tenant, SKU: "s",
					Charge: &c, Nano: quantity(int64(i + j)),
					Labels: []metering.Label{{Key: tenant, Value: session}},
				}},
				Hours: []rating.Row{{
					HourKey: hour, SKU: "s", Milli: 5, Used: metering.Set{{From: 1, To: 3}},
					Segments: []rating.Segment{{Charge: &c, Billing: "2026-02", From: 1, To: 3, Seconds: 2}},
				}},
			}
			l.Apply(&changes)
			if j == 0 || i == 0 { // each name as a tenant and as a session, at a bearable cost
				if err := s.Write(t.Context(), &changes); err != nil {
					t.Fatalf("tenant %q, session %q: %v", tenant, session, err)
				}
				found, err := s.Find(t.Context(), &rating.Need{
					Sessions: map[rating.SessionKey]bool{key: true},
					Hours:    map[rating.HourKey]bool{hour: true},
				})
				if err != nil {
					t.Fatalf("tenant %q, session %q: %v", tenant, session, err)
				}
				want := &rating.Known{Sessions: changes.Sessions, Voids: changes.Voids, Hours: changes.Hours}
				if diff := gocmp.Diff(want, found, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("tenant %q, session %q (-want +got):\n%s", tenant, session, diff)
				}
				if _, err := s.AllSums(t.Context(), tenant, session); err != nil {
					t.Errorf("AllSums(%q, %q): %v", tenant, session, err)
				}
			}
		}
	}
}

func TestFind_refusesRowsThatCannotBe(t *testing.T) {
	s, count := store(t), 0
	f := func(columns, values, want string) {
		t.Helper()
		count++
		session := fmt.Sprintf("s%d", count)
		err := s.conn.Exec(t.Context(), "INSERT INTO hours (tenant, hour, session, sku, "+columns+
			") VALUES ('acme', 1769860800, '"+session+"', 'gpu', "+values+")")
		if err != nil {
			t.Fatal(err)
		}
		key := rating.HourKey{
			SessionKey: rating.SessionKey{Tenant: "acme", Session: session},
			Hour:       1_769_860_800,
		}
		_, err = s.Find(t.Context(), &rating.Need{Hours: map[rating.HourKey]bool{key: true}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", values, err, want)
		} else if !strings.Contains(err.Error(), "2026-01-31T12:00:00Z of session \""+session) {
			t.Errorf("%s: error %v does not name the row", values, err)
		}
	}
	const segment = "seg_kind, seg_charge, seg_billing_period, seg_day, seg_from, seg_to, seg_seconds"
	const charge = "'b|0||0|gpu||on_demand|standard||2026-01|0'"
	f("used", "[1,2,3]", "odd number of ends")
	f("used", "[5,4]", "not in order")
	f("voided", "[0,3601]", "not in order")
	f(segment, "[0],[],['2026-01'],[1],[0],[1],[1]", "arrays of 1 and 0 values")
	f(segment, "[0],['x'],['2026-01'],[1],[0],[1],[1]", "has 1 parts, not 11")
	f(segment, "[4],["+charge+"],['2026-01'],[1],[0],[1],[1]", "segment 0 is not one")
	f(segment, "[0],["+charge+"],['2026-01'],[1],[0],[1],[2]", "segment 0 is not one")
}
