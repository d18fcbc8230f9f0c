package notify_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/notify"
)

func TestMessageID_isTheSameForTheSamePartsOnly(t *testing.T) {
	seen := make(map[string][]string)
	for _, parts := range [][]string{
		{"a", "b"}, {"ab"}, {"a", "b", ""}, {"", "a", "b"}, {"b", "a"}, {"a\x00b"}, {}, {""},
	} {
		id := notify.MessageID(parts...)
		if id != notify.MessageID(parts...) {
			t.Errorf("%q has two ids", parts)
		}
		if other, taken := seen[id]; taken {
			t.Errorf("%q and %q have one id", parts, other)
		}
		seen[id] = parts
		m := reached()
		if m.ID = id; m.Validate() != nil {
			t.Errorf("id %q: %v", id, m.Validate())
		}
	}
	// Written down, so that no release changes the ids of what was sent.
	if got := notify.MessageID("budget", "research"); got != goldenID {
		t.Errorf("id %s, want %s", got, goldenID)
	}
}

const goldenID = "msg_ckWMMC5ZjI41nLhOUS0GYBHUIyXc_pAR"

func TestMessage_validate(t *testing.T) {
	f := func(want string, change func(m *notify.Message)) {
		t.Helper()
		m := reached()
		change(&m)
		err := m.Validate()
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	long := func(n int) string { return strings.Repeat("x", n+1) }
	f("", func(*notify.Message) {})
	f("", func(m *notify.Message) {
		*m = notify.Message{
			ID: "a", Alert: "a", Type: "a", Time: began, Severity: "info", Status: "resolved", Title: "a",
		}
	})
	f("", func(m *notify.Message) { m.Query, m.Summary = "a\n\tb", "a\nb" })
	f("id", func(m *notify.Message) { m.ID = "" })
	f("id", func(m *notify.Message) { m.ID = "a.b" })
	f("id", func(m *notify.Message) { m.ID = "a\r\nb" })
	f("id", func(m *notify.Message) { m.ID = long(128) })
	f("type", func(m *notify.Message) { m.Type = "Budget" })
	f("type", func(m *notify.Message) { m.Type = "a." })
	f("time", func(m *notify.Message) { m.Time = time.Time{} })
	f("severity", func(m *notify.Message) { m.Severity = "bad" })
	f("status", func(m *notify.Message) { m.Status = "acknowledged" })
	f("alert and title", func(m *notify.Message) { m.Title = "" })
	f("alert and title", func(m *notify.Message) { m.Alert = "" })
	f("title has control", func(m *notify.Message) { m.Title = "a\nb" })
	f("title has control", func(m *notify.Message) { m.Title = "a\x7fb" })
	f("title is not UTF-8", func(m *notify.Message) { m.Title = "\xff" })
	f("title has 301 bytes", func(m *notify.Message) { m.Title = long(notify.MaxTitleBytes) })
	f("summary has", func(m *notify.Message) { m.Summary = long(notify.MaxSummaryBytes) })
	f("summary has control", func(m *notify.Message) { m.Summary = "a\rb" })
	f("query has", func(m *notify.Message) { m.Query = long(notify.MaxQueryBytes) })
	f("tenant has", func(m *notify.Message) { m.Tenant = "a\nb" })
	f("figures", func(m *notify.Message) { m.Evidence = make([]notify.Figure, notify.MaxFigures+1) })
	f("figure Spend", func(m *notify.Message) { m.Evidence[0].Value = long(notify.MaxFigureBytes) })
	f("name of a figure", func(m *notify.Message) { m.Evidence[0].Name = "a\nb" })
	f("name of a label", func(m *notify.Message) { m.Labels = map[string]string{"A": ""} })
	f("label a", func(m *notify.Message) { m.Labels = map[string]string{"a": "\n"} })
	f("labels", func(m *notify.Message) {
		for i := range notify.MaxLabels {
			m.Labels[fmt.Sprintf("l%d", i)] = ""
		}
	})
	f("data is not", func(m *notify.Message) { m.Data = json.RawMessage(`[]`) })
	f("data is not", func(m *notify.Message) { m.Data = json.RawMessage(`null`) })
	f("data is not", func(m *notify.Message) { m.Data = json.RawMessage(`{`) })
	f("data has", func(m *notify.Message) {
		m.Data = json.RawMessage(`{"x":"` + long(notify.MaxDataBytes) + `"}`)
	})
}

// A store may keep messages as JSON: nothing is lost.
func TestMessage_survivesJSON(t *testing.T) {
	m := reached()
	m.Since = began.Add(-time.Hour)
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var got notify.Message
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, got); diff != "" {
		t.Error(diff)
	}
}

func TestShowChannel_hidesAllOfAURLButTheHost(t *testing.T) {
	f := func(c catalog.Channel, name, shown string) {
		t.Helper()
		if got := notify.ChannelName(c); got != name {
			t.Errorf("name %q, want %q", got, name)
		}
		if got := notify.ShowChannel(c); got != shown {
			t.Errorf("shown as %q, want %q", got, shown)
		}
	}
	f(catalog.Channel{Kind: catalog.Log}, "log", "log")
	f(catalog.Channel{Kind: catalog.Email, Target: "a@b.example"},
		"email:a@b.example", "email:a@b.example")
	f(catalog.Channel{Kind: catalog.Webhook, Target: "https://a.example/T0KEN?x", Secret: "s"},
		"webhook:s:https://a.example/T0KEN?x", "webhook:a.example")
	f(catalog.Channel{Kind: catalog.Alertmanager, Target: "https://a.example/x"},
		"alertmanager:https://a.example/x", "alertmanager:a.example")
	f(catalog.Channel{Kind: catalog.Webhook, Target: "https://%zz"}, "webhook::https://%zz", "webhook:?")
}

// Property: what fits is valid, and what was valid is unchanged.
func TestMessage_fit(t *testing.T) {
	texts := rapid.OneOf(
		rapid.StringOfN(rapid.RuneFrom([]rune("a算\n\r\t\x00\x7f\u0085\u2028 ")), 0, 4000, -1),
		rapid.String(),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
	)
	rapid.Check(t, func(t *rapid.T) {
		m := reached()
		m.Alert, m.Title = "x"+texts.Draw(t, "alert"), "x"+texts.Draw(t, "title")
		m.Tenant, m.Language = texts.Draw(t, "tenant"), texts.Draw(t, "language")
		m.Summary, m.Query = texts.Draw(t, "summary"), texts.Draw(t, "query")
		for range rapid.IntRange(0, 20).Draw(t, "figures") {
			m.Evidence = append(m.Evidence, notify.Figure{Name: texts.Draw(t, "name"), Value: "1"})
		}
		for i := range rapid.IntRange(0, 30).Draw(t, "labels") {
			m.Labels[fmt.Sprintf("l%d", i)] = texts.Draw(t, "label")
		}
		if rapid.Bool().Draw(t, "data") {
			m.Data = json.RawMessage(`{"x":"` + strings.Repeat("x", notify.MaxDataBytes) + `"}`)
		}
		before := m.Validate()
		fit := m.Fit()
		if err := fit.Validate(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, fit); before == nil && diff != "" {
			t.Fatalf("a valid message was changed: %s", diff)
		}
	})
	m := reached()
	if diff := cmp.Diff(m, m.Fit()); diff != "" || m.Validate() != nil {
		t.Error(diff)
	}
}
