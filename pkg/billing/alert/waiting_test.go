package alert_test

import (
	"math/big"
	"testing"

	"github.com/suanpan/suanpan/pkg/billing/alert"
)

func bigInt(n int64) *big.Int { return big.NewInt(n) }

func TestLowUtilisation_ofCardsThatWereHeldLongEnough(t *testing.T) {
	f := func(name, policy, want string, wantUnsure bool, c alert.CardLoad) {
		t.Helper()
		_, p := policyWorld(t, "type: low_utilisation"+policy)
		look := alert.LowUtilisation(p, []alert.CardLoad{c}, judged)
		if got := show(look); got != want || unsure(look, "", "GPU-1") != wantUnsure {
			t.Errorf("%s: %q, unsure %t, want %q, %t", name, got, unsure(look, "", "GPU-1"), want,
				wantUnsure)
		}
	}
	card := func(held, mean int64) alert.CardLoad {
		return alert.CardLoad{Card: "GPU-1", Node: "n", SKU: "gpu.a10", Held: held, Mean: mean}
	}
	f("a day of seven", "", "/GPU-1 utilisation=69.99% threshold=70% days=7d held=24h "+
		"until=2026-01-01T00:00:00Z", false, card(86_400, 699_900))
	f("at the threshold", "", "", false, card(86_400, 700_000))
	f("less than a day", "", "", true, card(86_399, 100_000))
	f("less than a day, but busy", "", "", false, card(60, 900_000))
	f("a day of thirty", ", thresholds: {days: 30}", "", true, card(86_400, 1))
	f("in scope", ", scope: {skus: ['gpu.*']}, thresholds: {days: 1, utilisation: 0.1}",
		"/GPU-1 utilisation=0.1% threshold=0.1% days=1d held=5h until=2026-01-01T00:00:00Z", false,
		card(20_000, 999))
	f("another SKU", ", scope: {skus: [gpu.h100-80g]}", "", false, card(86_400, 1))
}

func TestFleetUtilisation_ofAllThatThePolicyIsFor(t *testing.T) {
	all := []alert.Busy{
		{Tenant: "acme", Project: "llm", SKU: "gpu.a10", Held: 3_600_000, Used: 3_000_000},
		{Tenant: "zeta", Project: "web", SKU: "gpu.h100-80g", Held: 3_600_000, Used: 3_119_999},
	}
	f := func(policy, want string, wantUnsure bool, seen ...alert.Busy) {
		t.Helper()
		_, p := policyWorld(t, "type: fleet_utilisation"+policy)
		look := alert.FleetUtilisation(p, seen, judged)
		if got := show(look); got != want || unsure(look, "", "fleet") != wantUnsure {
			t.Errorf("%s: %q, unsure %t, want %q, %t", policy, got, unsure(look, "", "fleet"), want,
				wantUnsure)
		}
	}
	f("", "/fleet utilisation=85% threshold=85% hours=24h held=2unit-hours used=1.7unit-hours "+
		"until=2026-01-01T00:00:00Z", false, all...)
	f("", "", false, append(all, alert.Busy{SKU: "x", Used: 1})...) // 85 % exactly
	f(", scope: {tenants: [zeta]}", "", false, all...)
	f(", scope: {tenants: [zeta], skus: [gpu.a10]}", "", true, all...)
	f(", scope: {projects: [llm]}", "/fleet utilisation=83.33% threshold=85% hours=24h "+
		"held=1unit-hours used=0.83unit-hours until=2026-01-01T00:00:00Z", false, all...)
	f("", "", true)
	f("", "", true, alert.Busy{SKU: "gpu.a10", Held: 3_599_999}) // less than an hour of a unit
}

func TestExporterSilent_oneOrAll(t *testing.T) {
	seen := func(tenant, session string, ago int64) alert.LastSeen {
		return alert.LastSeen{
			Tenant: tenant, Project: "llm", Lease: "l", Session: session, Node: "n", Until: judged - ago,
		}
	}
	const one = "acme/a last_seen=2025-12-31T23:54:00Z silent=6min minutes=5min"
	f := func(name, policy, want string, wantUnsure bool, newest int64, all ...alert.LastSeen) {
		t.Helper()
		_, p := policyWorld(t, "type: exporter_silent"+policy)
		look := alert.ExporterSilent(p, all, newest, judged)
		if got := show(look); got != want || unsure(look, "acme", "b") != wantUnsure {
			t.Errorf("%s: %q, unsure %t, want %q, %t", name, got, unsure(look, "acme", "b"), want,
				wantUnsure)
		}
	}
	f("nobody is", "", "", false, judged-10)
	f("one is, others report", "", one, false, judged-10, seen("acme", "a", 360))
	f("one is, and it is the only one", "", one, false, judged-360, seen("acme", "a", 360))
	f("several are, others report", "", one+"\nzeta/b last_seen=2025-12-31T23:54:30Z silent=5min "+
		"minutes=5min", false, judged-299, seen("zeta", "b", 330), seen("acme", "a", 360))
	f("nothing arrives", "", "/all sessions=2 last_seen=2025-12-31T23:55:00Z silent=5min minutes=5min",
		true, judged-300, seen("zeta", "b", 330), seen("acme", "a", 360))
	f("not long enough", "", "", false, judged-10, seen("acme", "a", 299))
	f("not long enough for this policy", ", thresholds: {minutes: 10}", "", false, judged-10,
		seen("acme", "a", 360))
	f("in scope", ", scope: {tenants: [acme], projects: [llm]}", one, false, judged-10,
		seen("zeta", "b", 330), seen("acme", "a", 360))
}

func TestDeadLetters_byTenantAndReason(t *testing.T) {
	all := []alert.Letters{
		{Tenant: "acme", Reason: "no_price", Count: 2, Newest: judged - 60},
		{Tenant: "acme", Reason: "future", Count: 1, Newest: judged},
		{Tenant: "what", Reason: "no_tenant", Count: 1, Newest: judged - 30},
		{Tenant: "ever", Reason: "no_tenant", Count: 1, Newest: judged - 10},
	}
	f := func(policy, want string) {
		t.Helper()
		c, p := policyWorld(t, "type: dead_letters"+policy)
		if got := show(alert.DeadLetters(p, all, c, judged)); got != want {
			t.Errorf("%s: %q, want %q", policy, got, want)
		}
	}
	const price = "acme/no_price count=2 newest=2025-12-31T23:59:00Z"
	const strangers = "/no_tenant count=2 newest=2025-12-31T23:59:50Z"
	f("", strangers+"\nacme/future count=1 newest=2026-01-01T00:00:00Z\n"+price)
	f(", thresholds: {count: 2}", strangers+"\n"+price)
	f(", scope: {tenants: [zeta]}", "")
	f(", scope: {tenants: [acme]}, thresholds: {count: 2}", price)
}

func TestHeldInvoices_byTenant(t *testing.T) {
	all := []alert.HeldDocument{
		{Tenant: "acme", ID: "d2", Period: "2025-11", Since: judged, Why: []string{"negative"}},
		{
			Tenant: "acme", ID: "d1", Period: "2025-10", Since: judged - 86_400,
			Why: []string{"dead letters", "overlap"},
		},
		{Tenant: "zeta", ID: "d3", Period: "2025-11", Since: judged},
	}
	f := func(policy, want string) {
		t.Helper()
		_, p := policyWorld(t, "type: held_invoices"+policy)
		if got := show(alert.HeldInvoices(p, all, judged)); got != want {
			t.Errorf("%s: %q, want %q", policy, got, want)
		}
	}
	const acme = "acme/documents count=2 document=d1 period=2025-10 since=2025-12-31T00:00:00Z " +
		"reason=dead letters"
	f("", acme+"\nzeta/documents count=1 document=d3 period=2025-11 since=2026-01-01T00:00:00Z")
	f(", thresholds: {count: 2}", acme)
	f(", scope: {tenants: [acme]}", acme)
}
