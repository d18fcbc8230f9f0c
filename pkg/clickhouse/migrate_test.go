package clickhouse

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/notify"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
)

// A database of the version that has alerts, and nothing that policies look at, keeps its alerts
// and deliveries; the views show them, and what comes after.
func TestMigrate_keepsAlerts(t *testing.T) {
	s := open(t)
	all, err := migrations(schemas.ClickHouse)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if err := s.admin.Exec(ctx, "CREATE DATABASE "+quoteName(s.database)); err != nil {
		t.Fatal(err)
	}
	if err := s.migrate(ctx, all[:4]); err != nil {
		t.Fatal(err)
	}
	budget := func(name, threshold string) alert.Alert {
		key := "budget," + name + ",0,2026-01," + threshold
		return alert.Alert{
			ID: key, Key: key, Status: alert.Firing, Kind: alert.Budget, Tenant: "acme", Name: name,
			Period: "2026-01", Threshold: threshold, Spend: "80.25", Amount: "100", Currency: "CNY",
			At: "2026-01-05T12:00:00Z", To: []alert.Contact{{Kind: catalog.Log}},
		}
	}
	taken, err := new(budget("a", "0.8")).Acknowledge("ann", "mine", 1_767_614_460)
	if err != nil {
		t.Fatal(err)
	}
	before := []pipeline.LoggedAlert{
		{Alert: budget("a", "0.8"), Offset: 1},
		{Alert: budget("b", "0.8"), Offset: 2},
		{Alert: taken, Offset: 3},
	}
	if err := s.WriteAlerts(ctx, before); err != nil {
		t.Fatal(err)
	}
	sent := delivery(1, "https://a.example/x")
	attempt := notify.Attempt{
		Message: sent.Message.ID, Channel: sent.Channel, Number: 1, Outcome: notify.Retry, Status: 500,
	}
	if err := s.Deliveries().Record(ctx, sent, attempt); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.migrate(ctx, all); err != nil {
			t.Fatal(err)
		}
	}
	if last, err := s.AlertsWritten(ctx); err != nil || last != 3 {
		t.Errorf("the newest alert is %d, %v", last, err)
	}
	over := budget("b", "0.8")
	over.ID, over.Status, over.Why = over.Key+",resolved", alert.Resolved, alert.Recovered
	over.Since, over.At = over.At, "2026-01-05T13:00:00Z"
	after := []pipeline.LoggedAlert{{Alert: over, Offset: 4}, {Alert: budget("a", "1"), Offset: 5}}
	if err := s.WriteAlerts(ctx, append(before, after...)); err != nil { // a replay
		t.Fatal(err)
	}
	var got []alert.Alert
	if err := s.Alerts(ctx, AlertFilter{}, func(a *alert.Alert) error {
		got = append(got, *a)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]alert.Alert{budget("a", "1"), over, taken}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f := func(query, want string) {
		t.Helper()
		if got := shown(t, s, query); got != want {
			t.Errorf("%s\nshows %s\nwant  %s", query, got, want)
		}
	}
	f("SELECT toString(count()) FROM alerts FINAL", "5")
	f(`SELECT arrayStringConcat(arraySort(groupArray(concat(name, threshold, ' ', status, ' ',
		toString(since), ' ', toString(spend), ' ', by))), '; ') FROM alert_states`,
		"a0.8 acknowledged 2026-01-05 12:00:00 80.25 ann; a1 firing 2026-01-05 12:00:00 80.25 ; "+
			"b0.8 resolved 2026-01-05 12:00:00 80.25 ")
	f("SELECT concat(message, ' ', receiver, ' ', state) FROM delivery_states",
		"msg_1 webhook:a.example pending")
	f("SELECT concat(receiver, ' ', toString(status)) FROM delivery_attempts",
		"webhook:a.example 500")
	pending, err := s.Deliveries().Due(ctx, sent.Next, 10, 10)
	if diff := cmp.Diff([]notify.Delivery{sent}, pending); err != nil || diff != "" {
		t.Errorf("due are %v (-want +got):\n%s", err, diff)
	}
}
