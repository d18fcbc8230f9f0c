package clickhouse

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/pipeline"
)

func TestAlerts_newestState(t *testing.T) {
	s := store(t)
	ctx := t.Context()
	if last, err := s.AlertsWritten(ctx); err != nil || last != -1 {
		t.Fatalf("the newest of none is %d, %v", last, err)
	}
	idle := alert.Alert{
		ID: "idle_gpu,acme,s'\\,1", Key: "idle_gpu,acme,s'\\,1", Status: alert.Firing,
		Kind: alert.Kind(catalog.IdleGPU), Tenant: "acme", Name: "idle_gpu", Subject: "s'\\", Episode: 1,
		Labels:  map[string]string{"lease": "租约", "session": "s'\\"},
		Figures: []alert.Figure{{Name: "utilisation", Value: "1.5", Unit: "%"}},
		Hint:    &alert.Hint{Options: []alert.Option{{SKU: "gpu", Amount: "0.2", MemoryMiB: 16}}},
		Query:   "SELECT 1", At: "2026-01-05T12:00:00Z", To: []alert.Contact{{Kind: catalog.Log}},
	}
	taken, err := idle.Acknowledge("ann", "on it", 1_767_614_460)
	if err != nil {
		t.Fatal(err)
	}
	budget := alert.Alert{
		ID: "budget,b,0,2026-01,0.8", Key: "budget,b,0,2026-01,0.8", Status: alert.Firing,
		Kind: alert.Budget, Tenant: "blue", Name: "b", Period: "2026-01", Threshold: "0.8",
		Spend: "80.123456789012345678901234567890123456789", Amount: "100", Currency: "CNY",
		Forecast: "124", At: "2026-01-05T12:00:01Z", To: []alert.Contact{},
	}
	logged := []pipeline.LoggedAlert{{Alert: idle, Offset: 3}, {Alert: budget, Offset: 5}, {
		Alert: taken, Offset: 9,
	}}
	for range 2 { // the second time changes nothing
		for i := range logged {
			if err := s.WriteAlerts(ctx, logged[i:i+1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if last, err := s.AlertsWritten(ctx); err != nil || last != 9 {
		t.Errorf("the newest is %d, %v", last, err)
	}
	f := func(filter AlertFilter, want ...alert.Alert) {
		t.Helper()
		var got []alert.Alert
		err := s.Alerts(ctx, filter, func(a *alert.Alert) error {
			got = append(got, *a)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v: %s", filter, diff)
		}
	}
	f(AlertFilter{}, taken, budget)
	f(AlertFilter{Limit: 1}, taken)
	f(AlertFilter{Tenant: "blue"}, budget)
	f(AlertFilter{Name: "idle_gpu"}, taken)
	f(AlertFilter{Status: alert.Firing}, budget)
	f(AlertFilter{Status: alert.Acknowledged, Tenant: "acme"}, taken)
	f(AlertFilter{Tenant: "' OR 1 OR '"})
	row := shown(t, s, `SELECT concat(status, ' ', labels['lease'], ' ', toString(since), ' ',
		toString(at), ' ', by, ' ', note, ' ', query) FROM alert_states WHERE kind = 'idle_gpu'`)
	want := "acknowledged 租约 2026-01-05 12:00:00 2026-01-05 12:01:00 ann on it SELECT 1"
	if row != want {
		t.Errorf("the view says %q, want %q", row, want)
	}
	spend := shown(t, s, "SELECT toString(spend) FROM alert_states WHERE kind = 'budget'")
	if !strings.HasPrefix(spend, "80.123456789012345678901234567890123457") {
		t.Errorf("the spend is %s", spend)
	}
}

func shown(t *testing.T, s *Store, query string) string {
	t.Helper()
	var out string
	if err := s.conn.QueryRow(t.Context(), query).Scan(&out); err != nil {
		t.Fatal(err)
	}
	return out
}
