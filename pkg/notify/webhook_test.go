package notify_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	reference "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/notify"
)

// hook returns the channel of a receiver's path.
func hook(r *receiver, path string) catalog.Channel {
	return catalog.Channel{Kind: catalog.Webhook, Target: r.URL + path}
}

// trusting returns settings that reach a receiver.
func trusting(t *testing.T, r *receiver) notify.GatewayOptions {
	return notify.GatewayOptions{
		HTTP: notify.HTTPOptions{Allowed: loopback, TLS: r.trust(), Timeout: 5 * time.Second},
		Keys: keys(t, secret(1)),
	}
}

func TestWebhook_referenceLibraryVerifiesEverySecretOfARotation(t *testing.T) {
	r := receive(t, nil)
	o := trusting(t, r)
	o.Keys = keys(t, secret(1), secret(2))
	if err := open(t, o, hook(r, "/hook")).Send(t.Context(), reached()); err != nil {
		t.Fatal(err)
	}
	got := r.all()[0]
	for n := range byte(4) {
		verifier, err := reference.NewWebhook(secret(n))
		if err != nil {
			t.Fatal(err)
		}
		err = verifier.Verify(got.body, got.header)
		if known := n == 1 || n == 2; known != (err == nil) {
			t.Errorf("secret %d: verify says %v", n, err)
		}
		if err := verifier.Verify(append(got.body, ' '), got.header); err == nil {
			t.Errorf("secret %d verifies another body", n)
		}
	}
	if got.header.Get("webhook-id") != reached().ID || got.path != "/hook" ||
		got.header.Get("content-type") != "application/json" {
		t.Errorf("path %q, header %v", got.path, got.header)
	}
}

func TestWebhook_bodyIsAsStandardWebhooksSays(t *testing.T) {
	r := receive(t, nil)
	if err := open(t, trusting(t, r), hook(r, "/")).Send(t.Context(), reached()); err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal(r.all()[0].body, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{
		"type": "budget.threshold_reached",
		"timestamp": "2026-11-30T16:00:00Z",
		"data": {
			"alert": "budget/research/2026-11/0.8", "status": "firing", "severity": "warning",
			"since": "2026-11-30T16:00:00Z", "tenant": "acme", "language": "en",
			"title": "Budget research reached 80 %",
			"summary": "812.50 USD of 1,000.00 USD are spent.\nAt this pace 100 % come on 5 December.",
			"labels": {"budget": "research", "threshold": "0.8"},
			"evidence": [{"name": "Spend", "value": "812.50 USD"}, {"name": "Share", "value": "81.25 %"}],
			"query": "SELECT sum(amount) FROM line_items WHERE tenant = 'acme' AND day < '2026-12-01'",
			"details": {"spend": "812.50", "budget": {"name": "research", "amount": "1000.00"}}
		}}`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWebhook_repeatHasTheSameIDAndBodyAndTheTimeOfItsAttempt(t *testing.T) {
	r := receive(t, nil)
	o := trusting(t, r)
	now := began
	o.HTTP.Now = func() time.Time { return now }
	channel := open(t, o, hook(r, "/"))
	for range 2 {
		if err := channel.Send(t.Context(), reached()); err != nil {
			t.Fatal(err)
		}
		now = now.Add(5 * time.Hour)
	}
	first, second := r.all()[0], r.all()[1]
	if string(first.body) != string(second.body) ||
		first.header.Get("webhook-id") != second.header.Get("webhook-id") {
		t.Error("the repeat differs")
	}
	if a, b := first.header.Get("webhook-timestamp"), second.header.Get("webhook-timestamp"); a !=
		fmt.Sprint(began.Unix()) || b != fmt.Sprint(began.Unix()+5*3600) {
		t.Errorf("timestamps %s and %s", a, b)
	}
}

// The largest message that Validate allows has a body under the limit; what had no place is named.
func TestWebhook_bodyStaysUnderItsLimit(t *testing.T) {
	m := reached()
	m.Title = strings.Repeat(`"`, notify.MaxTitleBytes)
	m.Summary = strings.Repeat("\n", notify.MaxSummaryBytes)
	m.Query = strings.Repeat(`\`, notify.MaxQueryBytes)
	m.Data = json.RawMessage(`{"x":"` + strings.Repeat("y", notify.MaxDataBytes-8) + `"}`)
	full := strings.Repeat(`"`, notify.MaxFigureBytes)
	m.Evidence, m.Labels = nil, make(map[string]string)
	for i := range notify.MaxFigures {
		m.Evidence = append(m.Evidence, notify.Figure{Name: full, Value: full})
		m.Labels[fmt.Sprintf("%s%02d", strings.Repeat("l", notify.MaxLabelBytes-2), i)] = full
	}
	m.Tenant, m.Alert, m.Language = full, full, full
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	r := receive(t, nil)
	if err := open(t, trusting(t, r), hook(r, "/")).Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	body := r.all()[0].body
	if len(body) >= notify.MaxBodyBytes {
		t.Errorf("the body has %d bytes", len(body))
	}
	var got struct {
		Data struct {
			Evidence  []notify.Figure
			Truncated []string
		}
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Data.Evidence) != notify.MaxFigures {
		t.Errorf("%d figures are left", len(got.Data.Evidence))
	}
	if diff := cmp.Diff([]string{"details", "query", "labels"}, got.Data.Truncated); diff != "" {
		t.Error(diff)
	}
}

func TestWebhook_statusesMeanWhatTheStandardSays(t *testing.T) {
	status, after := 0, ""
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
	})
	o := trusting(t, r)
	o.HTTP.Now = func() time.Time { return began }
	channel := open(t, o, hook(r, "/"))
	f := func(answer int, header string, outcome notify.Outcome, pause time.Duration) {
		t.Helper()
		status, after = answer, header
		err := channel.Send(t.Context(), reached())
		if outcome == notify.Delivered {
			if err != nil {
				t.Errorf("status %d: %v", answer, err)
			}
			return
		}
		e, ok := errors.AsType[*notify.SendError](err)
		if !ok || e.Outcome != outcome || e.Status != answer || e.After != pause {
			t.Errorf("status %d, Retry-After %q: %+v, want %s after %s", answer, header, err, outcome, pause)
		}
	}
	f(200, "", notify.Delivered, 0)
	f(202, "", notify.Delivered, 0)
	f(204, "", notify.Delivered, 0)
	f(301, "", notify.Retry, 0)
	f(400, "", notify.Retry, 0)
	f(404, "", notify.Retry, 0)
	f(410, "", notify.Disabled, 0)
	f(410, "10", notify.Disabled, 0)
	f(429, "", notify.Retry, time.Minute)
	f(429, "10", notify.Retry, time.Minute)
	f(429, "7200", notify.Retry, 2*time.Hour)
	f(500, "", notify.Retry, 0)
	f(500, "90", notify.Retry, 90*time.Second)
	f(502, "", notify.Retry, time.Minute)
	f(503, "Mon, 30 Nov 2026 16:30:00 GMT", notify.Retry, 30*time.Minute)
	f(503, "Mon, 30 Nov 2026 15:00:00 GMT", notify.Retry, time.Minute)
	f(504, "", notify.Retry, time.Minute)
	f(504, "-5", notify.Retry, time.Minute)
	f(504, "soon", notify.Retry, time.Minute)
}

func TestWebhook_slowAndEndlessReceiversAreCutOff(t *testing.T) {
	r := receive(t, func(w http.ResponseWriter, in *http.Request) {
		if in.URL.Path == "/slow" {
			<-in.Context().Done()
			return
		}
		w.WriteHeader(500)
		for in.Context().Err() == nil { // an answer without end
			if _, err := w.Write(make([]byte, 32<<10)); err != nil {
				return
			}
		}
	})
	o := trusting(t, r)
	o.HTTP.Timeout = 300 * time.Millisecond
	start := time.Now()
	if err := open(t, o, hook(r, "/slow")).Send(t.Context(), reached()); err == nil {
		t.Error("no answer counts as delivered")
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	o.HTTP.Timeout = time.Minute // so that only the bound of bytes ends it
	start = time.Now()
	if err := open(t, o, hook(r, "/endless")).Send(t.Context(), reached()); err == nil {
		t.Error("status 500 counts as delivered")
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestWebhook_isNotSentWithoutHTTPSOrKey(t *testing.T) {
	r := receive(t, nil)
	f := func(o notify.GatewayOptions, to catalog.Channel, want notify.Outcome) {
		t.Helper()
		err := open(t, o, to).Send(t.Context(), reached())
		got := notify.Retry
		if e, ok := errors.AsType[*notify.SendError](err); ok {
			got = e.Outcome
		}
		if err == nil || got != want {
			t.Errorf("%v: %v, want %s", to, err, want)
		}
	}
	plain := hook(r, "/")
	plain.Target = strings.Replace(plain.Target, "https", "http", 1)
	f(trusting(t, r), plain, notify.Rejected)
	noKeys := trusting(t, r)
	noKeys.Keys = nil
	f(noKeys, hook(r, "/"), notify.Retry)
	other := hook(r, "/")
	other.Secret = "unknown"
	f(trusting(t, r), other, notify.Retry)
	untrusting := trusting(t, r)
	untrusting.HTTP.TLS = nil
	f(untrusting, hook(r, "/"), notify.Retry)
	if n := len(r.all()); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

func TestWebhook_errorsHideURLAndKeys(t *testing.T) {
	r := receive(t, nil)
	r.Close()
	to := hook(r, "/services/T0KEN?key=hunter2")
	err := open(t, trusting(t, r), to).Send(t.Context(), reached())
	if err == nil {
		t.Fatal("a closed receiver got it")
	}
	shown := err.Error() + notify.ShowChannel(to)
	if strings.Contains(shown, "T0KEN") || strings.Contains(shown, "hunter2") {
		t.Errorf("it shows the path: %s", shown)
	}
	key, err := notify.ParseKey(text(secret(1)))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(map[string]any{"key": key})
	if err != nil {
		t.Fatal(err)
	}
	shown = fmt.Sprintf("%v %+v %#v %s", key, key, key, encoded)
	if strings.Contains(shown, "1 2 3") || strings.Contains(shown, "0x2") ||
		strings.Contains(shown, secret(1)[6:20]) {
		t.Errorf("it shows the key: %s", shown)
	}
}

func TestParseKey_wantsTheFormOfTheStandard(t *testing.T) {
	for name, s := range map[string]string{
		"no prefix": secret(1)[6:],
		"no base64": "whsec_$$$",
		"short":     "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 23)),
		"long":      "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 65)),
		"empty":     "",
	} {
		_, err := notify.ParseKey(text(s))
		if err == nil {
			t.Errorf("%s: accepted", name)
		} else if len(s) > 6 && strings.Contains(err.Error(), s[6:]) {
			t.Errorf("%s: the error shows the key: %v", name, err)
		}
	}
}

func TestNewKeys_namesWhatItCannotRead(t *testing.T) {
	_, err := notify.NewKeys(map[string][]notify.Secret{
		"billing": {text(secret(1)), text("whsec_old")}, "ops": {text("hunter2")},
	})
	if err == nil || !strings.Contains(err.Error(), `"billing"`) ||
		!strings.Contains(err.Error(), `"ops"`) || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}
