package notify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// DefaultHold is how long Alertmanager shows an alert of ours as firing, unless it resolves.
const DefaultHold = 7 * 24 * time.Hour

// alertmanagerPath is where version 2 of the API takes alerts.
const alertmanagerPath = "/api/v2/alerts"

// alertmanager posts to Prometheus Alertmanager.
type alertmanager struct {
	poster *poster
	target string // the URL before alertmanagerPath, or with it
	hold   time.Duration
}

// alertmanagerAlert is a postableAlert of its OpenAPI document.
type alertmanagerAlert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`
}

// Send makes one attempt. Alertmanager knows an alert by its labels: those of the message, with
// alertname (the type), alert, tenant and severity. It is sent once, not every minute as
// Prometheus does, so its end is given.
func (a *alertmanager) Send(ctx context.Context, m Message) error {
	target, err := a.url()
	if err != nil {
		return err
	}
	labels := maps.Clone(m.Labels)
	if labels == nil {
		labels = make(map[string]string)
	}
	labels["alertname"], labels["alert"] = m.Type, m.Alert
	labels["severity"] = string(m.Severity)
	annotations := map[string]string{"title": m.Title, "message_id": m.ID}
	put := func(to map[string]string, name, value string) {
		if value != "" {
			to[name] = value
		}
	}
	put(labels, "tenant", m.Tenant)
	put(annotations, "summary", m.Summary)
	put(annotations, "query", m.Query)
	var evidence strings.Builder
	for _, f := range m.Evidence {
		_, _ = fmt.Fprintf(&evidence, "%s: %s\n", f.Name, f.Value)
	}
	put(annotations, "evidence", strings.TrimSuffix(evidence.String(), "\n"))
	end := m.Time.Add(a.hold)
	if m.Status == Resolved {
		end = m.Time
	}
	body, err := encode([]alertmanagerAlert{{
		Labels: labels, Annotations: annotations, StartsAt: m.since().UTC(), EndsAt: end.UTC(),
	}})
	if err != nil {
		return rejected("encode alert: %w", err)
	}
	err = a.poster.post(ctx, target, http.Header{}, body)
	if e, ok := errors.AsType[*SendError](err); ok && e.Status == http.StatusBadRequest {
		e.Outcome = Rejected // it judged the alert, and would again
	}
	return err
}

func (a *alertmanager) url() (string, error) {
	u, err := url.Parse(a.target)
	if err != nil {
		return "", rejected("malformed URL")
	}
	if path := strings.TrimSuffix(u.Path, "/"); !strings.HasSuffix(path, alertmanagerPath) {
		u.Path = path + alertmanagerPath
		u.RawPath = ""
	}
	return u.String(), nil
}
