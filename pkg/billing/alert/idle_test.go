package alert_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
)

const policyCatalog = `
kind: PriceBook
name: public
currency: CNY
timezone: UTC
skus:
  - {sku: gpu.h100-80g, memory_gib: 80}
  - {sku: gpu.a10, memory_gib: 24}
  - {sku: gpu.a30, memory_gib: 24}
  - {sku: gpu.t4, memory_gib: 16}
prices:
  - {sku: gpu.h100-80g, per: hour, price: "20"}
  - {sku: gpu.h100-80g, region: south, per: hour, price: "2"}
  - {sku: gpu.a10, per: day, price: "72"}
  - {sku: gpu.a30, per: hour, price: "3.5"}
  - {sku: gpu.t4, per: hour, price: "1"}
  - {sku: gpu.free, per: hour, price: "0"}
  - {sku: gpu.new, per: hour, price: "30"}
---
kind: Tenant
name: acme
price_book: public
---
kind: Tenant
name: zeta
price_book: public
`

// policyWorld returns the catalog of policies with more documents, and the policy p among them.
func policyWorld(t interface {
	Helper()
	Fatal(args ...any)
}, policy string, more ...string,
) (*catalog.Catalog, *catalog.Policy) {
	t.Helper()
	texts := append([]string{policyCatalog}, more...)
	texts = append(texts, "{kind: Policy, name: p, "+policy+"}")
	documents, err := catalog.Parse("policy.yaml", []byte(strings.Join(texts, "\n---\n")))
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.New(documents)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range c.Policies(1_767_225_600) {
		if p.Name == "p" {
			return c, p
		}
	}
	t.Fatal("there is no policy p")
	return nil, nil
}

// idle is a session that did little for ten minutes, with changes.
func idle(change ...func(l *alert.Load)) alert.Load {
	l := alert.Load{
		Tenant: "acme", Project: "llm", Lease: "l", Session: "s", Node: "n", Region: "north",
		Held: map[string]int64{"gpu.h100-80g": 1000, "cpu.core": 16_000},
		From: 1_767_225_000, Until: 1_767_225_600, Covered: 600, Mean: 100_000, Peak: 250_000,
		MemoryUsed: 9000, MemoryTotal: 81_920,
	}
	for _, c := range change {
		c(&l)
	}
	return l
}

// show prints findings: tenant, subject, figures and hint.
func show(look alert.Look) string {
	var lines []string
	for _, f := range look.Findings {
		if !strings.HasPrefix(f.Query, "SELECT ") {
			lines = append(lines, "a finding without a query")
		}
		text := f.Tenant + "/" + f.Subject
		for _, figure := range f.Figures {
			text += " " + figure.Name + "=" + figure.Value + figure.Unit
		}
		if f.Hint != nil {
			for _, o := range f.Hint.Options {
				text += " or " + o.Amount + " " + o.SKU + " for " + o.Price
			}
			if s := f.Hint.Stop; s != nil {
				text += " stop " + s.Lease + ": " + strings.Join(s.Sessions, " ") + " on " +
					strings.Join(s.Nodes, " ")
			}
			if l := f.Hint.Lock; l != nil {
				text += " lock " + l.SKU + " " + l.Region + " at " + l.Price + " " + l.Currency + "/" + l.Per
			}
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n")
}

// unsure reports whether a look knows nothing of a subject.
func unsure(look alert.Look, tenant, subject string) bool {
	return look.Unsure != nil && look.Unsure(&alert.Alert{Tenant: tenant, Subject: subject})
}

func TestIdleGPU_everyWindowIsBelow(t *testing.T) {
	const found, clear, unknown = "found", "clear", "unknown"
	f := func(name, policy, want string, change ...func(l *alert.Load)) {
		t.Helper()
		c, p := policyWorld(t, "type: idle_gpu"+policy)
		look := alert.IdleGPU(p, []alert.Load{idle(change...)}, c, 1_767_225_600)
		got := clear
		if len(look.Findings) > 0 {
			got = found
		} else if unsure(look, "acme", "s") {
			got = unknown
		}
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	f("all of ten minutes", "", found)
	f("just below", "", found, func(l *alert.Load) { l.Peak = 499_999 })
	f("at the threshold", "", clear, func(l *alert.Load) { l.Peak = 500_000 })
	f("one busy window", "", clear, func(l *alert.Load) { l.Peak = 990_000 })
	f("too young", "", unknown, func(l *alert.Load) { l.From, l.Covered = l.From+1, l.Covered-1 })
	f("too young and busy", "", clear, func(l *alert.Load) {
		l.From, l.Covered, l.Peak = l.From+300, 300, 500_000
	})
	f("a gap", "", unknown, func(l *alert.Load) { l.Covered = 599 })
	f("longer windows", "", found, func(l *alert.Load) { l.From, l.Covered = l.From-45, 645 })
	f("it ended", "", clear, func(l *alert.Load) { l.Final = true })
	f("another threshold", ", thresholds: {utilisation: 25}", clear)
	f("another time", ", thresholds: {minutes: 11}", unknown)
	f("in scope", ", scope: {tenants: [acme], projects: [llm], skus: ['gpu.*']}", found)
	f("another tenant", ", scope: {tenants: [zeta]}", clear)
	f("another project", ", scope: {projects: [web]}", clear)
	f("another SKU", ", scope: {skus: ['gpu.a10']}", clear)
	f("memory not known", "", found, func(l *alert.Load) { l.MemoryUsed, l.MemoryTotal = 0, 0 })
}

func TestIdleGPU_suggestsWhatSuffices(t *testing.T) {
	c, p := policyWorld(t, "type: idle_gpu")
	f := func(name, want string, change ...func(l *alert.Load)) {
		t.Helper()
		text := show(alert.IdleGPU(p, []alert.Load{idle(change...)}, c, 1_767_225_600))
		_, got, _ := strings.Cut(text, "held=")
		if _, got, _ = strings.Cut(got, " or "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	use := func(memory int64) func(l *alert.Load) {
		return func(l *alert.Load) { l.MemoryUsed = memory }
	}
	f("the cheapest other SKU, then a fraction", "1 gpu.t4 for 1 or 0.3 gpu.h100-80g for 6")
	f("memory and a tenth fills 16 GiB", "1 gpu.t4 for 1 or 0.3 gpu.h100-80g for 6", use(14_894))
	f("one MiB more does not fit", "1 gpu.a10 for 3 or 0.3 gpu.h100-80g for 6", use(14_895))
	f("memory decides the fraction", "0.9 gpu.h100-80g for 18", use(60_000))
	f("all of it is needed", "", use(74_000))
	f("nothing of it is known", "", use(0))
	f("utilisation decides the fraction", "1 gpu.t4 for 1 or 0.5 gpu.h100-80g for 10",
		func(l *alert.Load) { l.Peak = 400_001 })
	f("cheaper where it is", "0.3 gpu.h100-80g for 0.6 or 1 gpu.t4 for 1",
		func(l *alert.Load) { l.Region = "south" })
	f("whole cards of several", "8 gpu.t4 for 8 or 2 gpu.h100-80g for 40", func(l *alert.Load) {
		l.Held["gpu.h100-80g"], l.MemoryUsed, l.MemoryTotal = 8000, 80_000, 8*81_920
	})
	f("a part of a card", "1 gpu.t4 for 1 or 0.2 gpu.h100-80g for 4", func(l *alert.Load) {
		l.Held["gpu.h100-80g"], l.Peak, l.MemoryUsed = 500, 150_000, 2000
	})
	f("by telemetry's total where the book says nothing", "1 gpu.t4 for 1 or 0.5 gpu.new for 15",
		func(l *alert.Load) {
			l.Held = map[string]int64{"gpu.new": 1000}
			l.MemoryTotal = 20_000
		})
	f("no total and no book", "1 gpu.t4 for 1", func(l *alert.Load) {
		l.Held = map[string]int64{"gpu.new": 1000}
		l.MemoryTotal = 0
	})
	f("without a price only less of the same", "0.5 gpu.odd for ", func(l *alert.Load) {
		l.Held = map[string]int64{"gpu.odd": 1000}
		l.MemoryTotal = 20_000
	})
	f("absurd telemetry", "", use(1<<62))
	f("a tenant without a book", "", func(l *alert.Load) { l.Tenant = "nobody" })
}

// Property: what is suggested has the memory in use and a tenth more, can do what the busiest
// window did, is less than what is held, and the cheaper suggestion comes first.
func TestIdleGPU_suggestionsAreNeverTooSmall(t *testing.T) {
	c, p := policyWorld(t, "type: idle_gpu")
	rapid.Check(t, func(t *rapid.T) {
		sku := rapid.SampledFrom([]string{"gpu.h100-80g", "gpu.a30", "gpu.new"}).Draw(t, "sku")
		held := rapid.Int64Range(1, 16_000).Draw(t, "held")
		l := idle(func(l *alert.Load) {
			l.Held = map[string]int64{sku: held}
			l.Peak = rapid.Int64Range(0, 499_999).Draw(t, "peak")
			l.MemoryUsed = rapid.Int64Range(1, 1<<20).Draw(t, "used")
			l.MemoryTotal = rapid.Int64Range(0, 1<<20).Draw(t, "total")
		})
		look := alert.IdleGPU(p, []alert.Load{l}, c, 1_767_225_600)
		if len(look.Findings) != 1 {
			t.Fatalf("there are %d findings", len(look.Findings))
		}
		if look.Findings[0].Hint == nil {
			return
		}
		last := ""
		for _, o := range look.Findings[0].Hint.Options {
			if 10*o.MemoryMiB < 11*l.MemoryUsed {
				t.Errorf("%+v has too little memory for %d MiB", o, l.MemoryUsed)
			}
			amount := scaled(t, o.Amount, 3)
			if o.SKU == sku && (amount >= held || amount*1000 < l.Peak*((held+999)/1000)) {
				t.Errorf("%+v of %d thousandths at %d millionths", o, held, l.Peak)
			}
			if o.SKU != sku && amount < held {
				t.Errorf("%+v has fewer cards than %d thousandths", o, held)
			}
			if last != "" && scaled(t, last, 12) > scaled(t, o.Price, 12) {
				t.Errorf("%s comes before %s", last, o.Price)
			}
			last = o.Price
		}
	})
}

func TestUnreleased_allSessionsOfALeaseAreStill(t *testing.T) {
	still := func(session string, change ...func(l *alert.Load)) alert.Load {
		return idle(append([]func(l *alert.Load){func(l *alert.Load) {
			l.Session, l.From, l.Covered, l.Mean, l.Peak = session, l.Until-1800, 1800, 1000, 19_999
		}}, change...)...)
	}
	f := func(name, policy, want string, wantUnsure bool, loads ...alert.Load) {
		t.Helper()
		_, p := policyWorld(t, "type: unreleased"+policy)
		look := alert.Unreleased(p, loads, 1_767_225_600)
		_, got, _ := strings.Cut(show(look), " stop ")
		if got != want || unsure(look, "acme", "l") != wantUnsure {
			t.Errorf("%s: %q, unsure %t, want %q, %t", name, got, unsure(look, "acme", "l"), want,
				wantUnsure)
		}
	}
	on := func(node string) func(l *alert.Load) { return func(l *alert.Load) { l.Node = node } }
	peak := func(peak int64) func(l *alert.Load) { return func(l *alert.Load) { l.Peak = peak } }
	young := func(l *alert.Load) { l.From, l.Covered = l.From+60, l.Covered-60 }
	f("one session", "", "l: s on n", false, still("s"))
	f("two sessions", "", "l: a b on n m", false, still("b", on("m")), still("a"))
	f("one of them works", "", "", false, still("a"), still("b", peak(20_000)))
	f("one of them is young", "", "", true, still("a"), still("b", young))
	f("young and at work", "", "", false, still("a", young), still("b", peak(20_000)))
	f("one of them has ended", "", "l: a on n", false, still("a"),
		still("b", peak(900_000), func(l *alert.Load) { l.Final = true }))
	f("another lease works", "", "l: a on n", false, still("a"),
		still("b", peak(900_000), func(l *alert.Load) { l.Lease = "other" }))
	f("another tenant's lease of that name works", "", "l: a on n", false, still("a"),
		still("b", peak(900_000), func(l *alert.Load) { l.Tenant = "zeta" }))
	f("out of scope", ", scope: {projects: [web]}", "", false, still("a"))
}
