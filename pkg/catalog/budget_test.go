package catalog

import (
	"strings"
	"testing"
)

const budgets = `
{kind: PriceBook, name: yuan, currency: CNY, timezone: UTC, prices: []}
---
{kind: PriceBook, name: euro, currency: EUR, timezone: UTC, prices: []}
---
{kind: Tenant, name: acme, price_book: yuan}
---
{kind: Contract, name: c, tenant: acme, price_book: euro,
  effective_from: "2026-02-01T00:00:00Z", end: "2026-03-01T00:00:00Z"}
---
{kind: Budget, name: b, tenant: acme, period: month, amount: "100"}
---
{kind: Budget, name: b, tenant: acme, deleted: true, effective_from: "2026-04-01T00:00:00Z"}
---
{kind: Budget, name: b, tenant: acme, period: day, amount: "7", thresholds: [0.5, "1.00", 2],
  basis: list, effective_from: "2026-05-01T00:00:00Z"}
---
{kind: Budget, name: a, tenant: acme, period: month, amount: "5", currency: USD,
  scope: {project: llm, labels: {team: x}}, effective_from: "2026-02-15T00:00:00Z"}
`

func TestBudgets_inForceAtASecond(t *testing.T) {
	c := newCatalog(t, budgets)
	f := func(at, want string) {
		t.Helper()
		var got []string
		for _, b := range c.Budgets(second(t, at)) {
			text := b.Name + " " + b.Amount.String() + b.Currency
			for _, threshold := range b.Thresholds {
				text += " " + threshold.String()
			}
			if b.Daily {
				text += " daily"
			}
			if b.List {
				text += " list"
			}
			got = append(got, text+b.Project+b.Labels["team"])
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("at %s: %s, want %s", at, text, want)
		}
	}
	f("2026-01-01T00:00:00Z", "b 100CNY 0.8 1")
	f("2026-02-01T00:00:00Z", "b 100EUR 0.8 1") // the contract's book
	f("2026-03-31T23:59:59Z", "a 5USD 0.8 1llmx, b 100CNY 0.8 1")
	f("2026-04-01T00:00:00Z", "a 5USD 0.8 1llmx")
	f("2026-05-01T00:00:00Z", "a 5USD 0.8 1llmx, b 7CNY 0.5 1 2 daily list")
}

func TestParse_budgetFailureSaysWhereWhyAndHowToMend(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		got := failure("kind: Budget\nname: b\ntenant: t\nperiod: day\n" + text + "\n")
		if got != want {
			t.Errorf("%s\nerror %s\nwant  %s", text, got, want)
		}
	}
	f("", `c.yaml:1: Budget needs the field "amount"`)
	f("amount: 0.00", "c.yaml:5: amount must be above 0: every spend is beyond a budget of 0 from "+
		"the first cent, so it could only fire at once; give a small amount instead")
	f("amount: -1", `c.yaml:5: amount: "-1" is not a plain decimal such as 12.5`)
	f("amount: 1", `c.yaml:1: Budget/b names tenant "t", which is not in the catalog`)
	f("amount: 1\nthresholds: []", "c.yaml:6: thresholds is empty: leave it out for all")
	f("amount: 1\nthresholds: [0]", "c.yaml:6: threshold must be above 0")
	f("amount: 1\nthresholds: [80]",
		"c.yaml:6: threshold 80 is above 10: it is a fraction, 0.8 means 80 %")
	f("amount: 1\nthresholds: [1, 0.8]",
		"c.yaml:6: threshold 0.8 is not above the one before it, 1: they ascend")
	f("amount: 1\nthresholds: [1, 1.0]",
		"c.yaml:6: threshold 1 is not above the one before it, 1: they ascend")
	f("amount: 1\nthresholds: [1, 2, 3, 4, 5, 6, 7, 8, 9, 9.5, 10]",
		"c.yaml:6: there are 11 thresholds, more than 10")
	f("amount: 1\nscope: {labels: {}}",
		"c.yaml:6: labels is not a mapping of names to values, such as {team: research}")
	f("amount: 1\nscope: {labels: {a: b, a: c}}", `c.yaml:6: labels has "a" twice`)
	f("amount: 1\nnotify: [{}]", "c.yaml:6: a channel has one of webhook, email, alertmanager, log")
	f("amount: 1\nnotify: [{log: true, email: a@b}]",
		"c.yaml:6: a channel has one of webhook, email, alertmanager, log")
	f("amount: 1\nnotify: [{log: true, secret: s}]",
		"c.yaml:6: secret is for a webhook: it names the secret that signs")
	f("amount: 1\nnotify: [{webhook: 'https://u:p@x'}]", `c.yaml:6: url "https://u:p@x" is not like `+
		`https://example.com/path, without user and password (secrets are named by secret), at most `+
		`2048 bytes`)
	two := "amount: 1\n---\n{kind: Budget, name: b, tenant: u, deleted: true, " +
		"effective_from: \"2026-01-01T00:00:00Z\"}"
	f(two, "c.yaml:7: Budget/b is tenant t's and cannot become u's: make a new budget")
}

func TestPolicies_documentsTakeThePlaceOfDefaults(t *testing.T) {
	c := newCatalog(t, `
{kind: Tenant, name: acme, price_book: p}
---
{kind: PriceBook, name: p, currency: CNY, timezone: UTC, prices: []}
---
{kind: Policy, name: idle_gpu, type: idle_gpu, enabled: false,
  effective_from: "2026-01-01T00:00:00Z"}
---
{kind: Policy, name: night, type: unreleased, thresholds: {minutes: "5"}, cooldown: 2h,
  scope: {tenants: [acme], skus: ["gpu.*"]}, effective_from: "2026-01-01T00:00:00Z",
  quiet_hours: {from: "22:00", to: "08:00", timezone: Asia/Shanghai, days: [sat]}}
`)
	names := func(at string) string {
		var list []string
		for _, p := range c.Policies(second(t, at)) {
			list = append(list, p.Name)
		}
		return strings.Join(list, " ")
	}
	const defaults = "allowance contract_end dead_letters exporter_silent fleet_utilisation " +
		"held_invoices idle_gpu low_utilisation price_change price_low spend_anomaly unreleased"
	if got := names("2025-12-31T23:59:59Z"); got != defaults {
		t.Errorf("by default %s", got)
	}
	want := strings.Replace(strings.Replace(defaults, "idle_gpu ", "", 1), "price_change",
		"night price_change", 1)
	if got := names("2026-01-01T00:00:00Z"); got != want {
		t.Errorf("then %s, want %s", got, want)
	}
	var night *Policy
	for _, p := range c.Policies(second(t, "2026-01-01T00:00:00Z")) {
		if p.Name == "night" {
			night = p
		}
	}
	if night.Whole("minutes") != 5 || night.Threshold("utilisation").String() != "2" ||
		night.Cooldown != 7200 || !night.Covers("acme", "x", "gpu.a") ||
		night.Covers("acme", "x", "cpu.core") || night.Covers("blue", "x", "gpu.a") {
		t.Errorf("%+v", night)
	}
	quiet := func(at string, want bool) {
		t.Helper()
		if got := night.QuietHours.Holds(second(t, at)); got != want {
			t.Errorf("quiet at %s: %v", at, got)
		}
	}
	quiet("2026-01-10T13:59:59Z", false) // Saturday, 21:59:59 in Shanghai
	quiet("2026-01-10T14:00:00Z", true)
	quiet("2026-01-10T23:59:59Z", true) // Sunday, 07:59:59
	quiet("2026-01-11T00:00:00Z", false)
	quiet("2026-01-11T15:00:00Z", false) // Sunday night
}

func TestDefaultPolicies_areWithinTheirBounds(t *testing.T) {
	for _, p := range DefaultPolicies() {
		if !p.Enabled || len(p.Notify) == 0 || len(Thresholds(p.Type)) == 0 {
			t.Errorf("%+v", p)
		}
		for _, threshold := range Thresholds(p.Type) {
			if threshold.Default.Cmp(threshold.Least) < 0 || threshold.Default.Cmp(threshold.Most) > 0 {
				t.Errorf("%s: %+v", p.Type, threshold)
			}
			if threshold.Whole && p.Whole(threshold.Name) < 1 {
				t.Errorf("%s: %s is %d", p.Type, threshold.Name, p.Whole(threshold.Name))
			}
		}
	}
}

func TestParse_policyFailureSaysWhereWhyAndHowToMend(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := failure("kind: Policy\nname: p\n" + text + "\n"); got != want {
			t.Errorf("%s\nerror %s\nwant  %s", text, got, want)
		}
	}
	f("type: bored", `c.yaml:3: type "bored" is none of idle_gpu, unreleased, low_utilisation, `+
		`fleet_utilisation, spend_anomaly, exporter_silent, contract_end, allowance, price_change, `+
		`price_low, dead_letters, held_invoices`)
	f("type: idle_gpu\nthresholds: {days: 7}",
		`c.yaml:4: thresholds of idle_gpu has no field "days"; it has utilisation, minutes`)
	f("type: idle_gpu\nthresholds: {minutes: 0}", "c.yaml:4: minutes 0 is not from 1 to 1440")
	f("type: idle_gpu\nthresholds: {minutes: 1.5}", "c.yaml:4: minutes: 1.5 has more than 0 decimals")
	f("type: idle_gpu\nthresholds: {utilisation: 101}",
		"c.yaml:4: utilisation 101 is not from 0.1 to 100")
	f("type: idle_gpu\nquiet_hours: {from: '08:00', to: '08:00', timezone: UTC}",
		"c.yaml:4: from equals to: whole days are 00:00 to 24:00")
	f("type: idle_gpu\nquiet_hours: {from: '08:00', to: '09:00'}",
		`c.yaml:4: quiet_hours needs the field "timezone"`)
	f("type: idle_gpu\nscope: {tenants: [t]}",
		`c.yaml:1: Policy/p names tenant "t", which is not in the catalog`)
	f("type: idle_gpu\nscope: {projects: []}", "c.yaml:4: projects is empty: leave it out for all")
	if got, want := failure("kind: Policy\nname: unreleased\ntype: idle_gpu\n"), "c.yaml:1: the name "+
		"unreleased is that of the default policy of type unreleased: give it another"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
