package pipeline

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/rating"
)

// settleStore has sums and keeps settlements.
type settleStore struct {
	clock   time.Time
	touched []PeriodKey
	since   []time.Time
	sums    rating.Sums
	batches []int
	written map[PeriodKey][]rating.Settled
	fails   map[string]error
	before  func() // is called when sums were read
}

func (s *settleStore) Touched(_ context.Context, since time.Time) ([]PeriodKey, time.Time, error) {
	s.since = append(s.since, since)
	return s.touched, s.clock, s.fails["touched"]
}

func (s *settleStore) Sums(_ context.Context, periods []PeriodKey) (rating.Sums, error) {
	sums := make(rating.Sums)
	for _, p := range periods {
		for charge, q := range s.sums {
			if charge.Tenant == p.Tenant && charge.Contract == p.Contract && charge.Period == p.Period {
				sums.Add(&charge, q)
			}
		}
	}
	if s.before != nil {
		s.before()
	}
	return sums, s.fails["sums"]
}

func (s *settleStore) WriteSettlements(_ context.Context, settled map[PeriodKey][]rating.Settled,
	_ time.Time,
) error {
	if err := s.fails["write"]; err != nil {
		return err
	}
	s.batches = append(s.batches, len(settled))
	for key, lines := range settled {
		s.written[key] = lines
	}
	return nil
}

// charged returns a store with an hour of each of so many tenants, all of the book's version.
func charged(t *testing.T, count int) (*settleStore, *Prices, *topic) {
	t.Helper()
	prices, documents, _ := openPrices(t)
	s := &settleStore{
		clock: noon, sums: make(rating.Sums), written: make(map[PeriodKey][]rating.Settled),
		fails: make(map[string]error),
	}
	for i := range count {
		tenant := fmt.Sprintf("t%d", i)
		s.touched = append(s.touched, PeriodKey{Tenant: tenant, Period: "2026-01"})
		s.sums.Add(&rating.Charge{
			Tenant: tenant, Book: "public", BookVersion: 1_767_225_600, SKU: "gpu", Purchase: "on_demand",
			Band: "standard", Period: "2026-01",
		}, metering.HeldFor(1000, 3600))
	}
	return s, prices, documents
}

func TestSettler_settlesInBatches(t *testing.T) {
	s, prices, _ := charged(t, settleBatch+1)
	report, err := NewSettler(s, prices).Step(t.Context(), noon)
	if err != nil {
		t.Fatal(err)
	}
	if report.Periods != settleBatch+1 || report.Charges != settleBatch+1 {
		t.Errorf("report %+v", report)
	}
	if diff := cmp.Diff([]int{settleBatch, 1}, s.batches); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
	lines := s.written[PeriodKey{Tenant: "t0", Period: "2026-01"}]
	if len(lines) != 1 || lines[0].Amount.String() != "2" {
		t.Errorf("settled %+v, want one line of 2", lines)
	}
}

func TestSettler_asksAgainAfterAnError(t *testing.T) {
	for _, failing := range []string{"touched", "sums", "write"} {
		s, prices, _ := charged(t, 1)
		settler := NewSettler(s, prices)
		s.fails[failing] = errFake
		if _, err := settler.Step(t.Context(), noon); err == nil {
			t.Errorf("%s failed, but the step did not", failing)
		}
		delete(s.fails, failing)
		for range 2 {
			if _, err := settler.Step(t.Context(), noon); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff([]time.Time{{}, {}, noon}, s.since); diff != "" {
			t.Errorf("%s failed once: asked for what changed since (-want +got):\n%s", failing, diff)
		}
	}
}

func TestSettler_emptiesAPeriodThatHasNothingLeft(t *testing.T) {
	s, prices, _ := charged(t, 1)
	clear(s.sums)
	if _, err := NewSettler(s, prices).Step(t.Context(), noon); err != nil {
		t.Fatal(err)
	}
	lines, ok := s.written[s.touched[0]]
	if !ok || len(lines) != 0 {
		t.Errorf("wrote %v, %t; want an empty settlement", lines, ok)
	}
}

// TestSettler_readsTheCatalogAfterTheRows has a version published, and usage rated by it, while the
// settler is at work.
func TestSettler_readsTheCatalogAfterTheRows(t *testing.T) {
	s, prices, documents := charged(t, 1)
	refresh(t, prices, noon)
	s.sums.Add(&rating.Charge{
		Tenant: "t0", Book: "public", BookVersion: noon.Add(time.Hour).Unix(), SKU: "gpu",
		Purchase: "on_demand", Band: "standard", Period: "2026-01",
	}, metering.HeldFor(1000, 3600))
	s.before = func() {
		documents.put(noon, bookText("2026-01-05T13:00:00Z", "7"), Header{HeaderBatch, []byte("second")})
	}
	report, err := NewSettler(s, prices).Step(t.Context(), noon)
	if err != nil || report.Charges != 2 {
		t.Errorf("settled %d charges, %v; want 2", report.Charges, err)
	}
}
