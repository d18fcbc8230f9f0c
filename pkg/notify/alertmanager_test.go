package notify_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/notify"
)

// posted is postableAlerts of Alertmanager's OpenAPI document, version 2.
type posted []struct {
	Labels, Annotations map[string]string
	StartsAt, EndsAt    time.Time
}

func TestAlertmanager_firingAndResolvedAreOneAlert(t *testing.T) {
	r := receive(t, nil)
	var got [2]posted
	firing, resolved := reached(), reached()
	resolved.Status, resolved.Since, resolved.Time = notify.Resolved, began, began.Add(time.Hour)
	resolved.ID, resolved.Title = "msg_resolved", "Budget research is below 80 %"
	for i, m := range []notify.Message{firing, resolved} {
		for _, suffix := range []string{"", "/", "/api/v2/alerts", "/api/v2/alerts/"} {
			to := catalog.Channel{Kind: catalog.Alertmanager, Target: r.URL + "/am" + suffix}
			if err := open(t, trusting(t, r), to).Send(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			last := r.all()[len(r.all())-1]
			if last.path != "/am/api/v2/alerts" && last.path != "/am/api/v2/alerts/" {
				t.Errorf("path %q", last.path)
			}
			if err := json.Unmarshal(last.body, &got[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff(got[0][0].Labels, got[1][0].Labels); diff != "" {
		t.Errorf("Alertmanager would know two alerts: %s", diff)
	}
	if diff := cmp.Diff(map[string]string{
		"alertname": "budget.threshold_reached", "alert": "budget/research/2026-11/0.8",
		"tenant": "acme", "severity": "warning", "budget": "research", "threshold": "0.8",
	}, got[0][0].Labels); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{
		"title": firing.Title, "summary": firing.Summary, "query": firing.Query,
		"evidence": "Spend: 812.50 USD\nShare: 81.25 %", "message_id": firing.ID,
	}, got[0][0].Annotations); diff != "" {
		t.Error(diff)
	}
	for i, end := range []time.Time{began.Add(notify.DefaultHold), began.Add(time.Hour)} {
		if a := got[i][0]; !a.StartsAt.Equal(began) || !a.EndsAt.Equal(end) {
			t.Errorf("from %s to %s, want to %s", a.StartsAt, a.EndsAt, end)
		}
	}
}

func TestAlertmanager_refusedAlertIsNotRepeated(t *testing.T) {
	status := 0
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	channel := open(t, trusting(t, r), catalog.Channel{Kind: catalog.Alertmanager, Target: r.URL})
	for code, want := range map[int]notify.Outcome{
		200: notify.Delivered, 400: notify.Rejected, 500: notify.Retry, 404: notify.Retry,
	} {
		status = code
		if err := channel.Send(t.Context(), reached()); outcome(err) != want {
			t.Errorf("status %d: %v, want %s", code, err, want)
		}
	}
	inside := catalog.Channel{Kind: catalog.Alertmanager, Target: "https://169.254.169.254"}
	if err := open(t, trusting(t, r), inside).Send(t.Context(), reached()); outcome(err) !=
		notify.Rejected {
		t.Errorf("the metadata of a cloud: %v", err)
	}
}
