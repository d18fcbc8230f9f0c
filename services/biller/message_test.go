package biller

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/notify"
)

const noon = 1_767_614_400

func TestMessageOf_everyKindHasWordsInBothLanguages(t *testing.T) {
	for _, p := range catalog.DefaultPolicies() {
		if p.Type == catalog.ContractEnd || p.Type == catalog.AllowanceUsed {
			continue // they join with contracts
		}
		if _, ok := phrases[alert.Kind(p.Type)]; !ok {
			t.Errorf("%s has no words", p.Type)
		}
	}
	seen := make(map[string]bool)
	for _, m := range Examples() {
		if err := m.Validate(); err != nil {
			t.Errorf("%s: %v", m.Title, err)
		}
		if strings.Contains(m.Title+m.Summary, " - ") || strings.Contains(m.Title+m.Summary, "{") {
			t.Errorf("%s: a place was not filled: %s", m.Title, m.Summary)
		}
		seen[m.Type] = true
		han := strings.ContainsFunc(m.Title, isHan)
		if han != (m.Language == "zh") {
			t.Errorf("the title in %q is %s", m.Language, m.Title)
		}
	}
	if len(seen) != len(phrases)+1 {
		t.Errorf("there are examples of %d types", len(seen))
	}
}

func isHan(r rune) bool { return unicode.Is(unicode.Han, r) }

func TestMessageOf(t *testing.T) {
	f := func(a alert.Alert, language, title, summary string) {
		t.Helper()
		m, err := MessageOf(&a, language)
		if err != nil {
			t.Fatal(err)
		}
		if m.Title != title || m.Summary != summary {
			t.Errorf("title   %s\nwant    %s\nsummary %s\nwant    %s", m.Title, title, m.Summary, summary)
		}
	}
	idle := Example(alert.Kind(catalog.IdleGPU), noon)
	f(idle, "en", "The GPU of session session-1 is hardly used",
		"Its utilisation was below 50 % for 10 minutes: 1.25 % on average, 1.9 % at most.\n"+
			"0.2 of gpu.a800-80g with 16384 MiB would do, for 6.00 CNY per hour.")
	f(idle, "zh-CN", "会话 session-1 的 GPU 利用率低",
		"其利用率已连续 10 分钟低于 50 %：平均 1.25 %，最高 1.9 %。\n"+
			"0.2 个 gpu.a800-80g（显存 16384 MiB）即可满足，价格 6.00 CNY/小时。")
	over := idle
	over.Status, over.Why, over.Since = alert.Resolved, alert.Recovered, "2026-01-05T11:00:00Z"
	f(over, "", "Resolved: The GPU of session session-1 is hardly used",
		"It is no longer so. It fired from 2026-01-05 11:00:00 UTC to 2026-01-05 12:00:00 UTC.")
	silent := Example(alert.Kind(catalog.ExporterSilent), noon)
	silent.Tenant = ""
	silent.Figures = append(silent.Figures, figure("sessions", "9", ""))
	f(silent, "", "No usage arrives at all",
		"9 sessions run, and the last event came at 2026-01-05 12:00:00 UTC, 7 minutes ago.")
	f(Example(alert.Budget, noon), "", "Budget monthly has reached 80 %", "80,000.00 CNY of "+
		"100,000.00 CNY are spent in 2026-01. At this pace it will be 124,000.00 CNY.")
}

func TestGrouped_decimalsAlone(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := grouped(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	f("0", "0")
	f("999.123456", "999.123456")
	f("1000", "1,000")
	f("-1234567.89", "-1,234,567.89")
	f("-123", "-123")
	f("2026-01", "2026-01")
	f("1000a", "1000a")
	f("", "")
}

func TestMessageOf_ofOneAlertIsOneToAlertmanager(t *testing.T) {
	byAlert := make(map[string]notify.Message)
	for _, m := range Examples() {
		key := m.Type + m.Language
		first, ok := byAlert[key]
		if !ok {
			byAlert[key] = m
			continue
		}
		a, _ := json.Marshal([]any{first.Alert, first.Tenant, first.Severity, first.Labels})
		b, _ := json.Marshal([]any{m.Alert, m.Tenant, m.Severity, m.Labels})
		if string(a) != string(b) || first.ID == m.ID {
			t.Errorf("%s: %s then %s", m.Title, a, b)
		}
	}
}

func TestMessageOf_tellsAReceiverOfNoOther(t *testing.T) {
	a := Example(alert.Budget, noon)
	a.To = []alert.Contact{{Kind: catalog.Webhook, Target: "https://example.com/secret"}}
	m, err := MessageOf(&a, "")
	if err != nil || strings.Contains(string(m.Data), "secret") {
		t.Errorf("data is %s, %v", m.Data, err)
	}
}
