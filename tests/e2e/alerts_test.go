//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// alertPolicies are policies whose alerts come within minutes, to an inbox.
const alertPolicies = `kind: Policy
name: idle_gpu
type: idle_gpu
thresholds: {minutes: "2"}
notify: [{webhook: "URL"}, {email: ops@example.com}]
---
kind: Policy
name: unreleased
type: unreleased
thresholds: {minutes: "2"}
notify: [{webhook: "URL"}]
---
kind: Policy
name: dead_letters
type: dead_letters
notify: [{webhook: "URL"}]
---
kind: Policy
name: held_invoices
type: held_invoices
notify: [{webhook: "URL"}]
---
kind: Template
name: mine
type: policy.idle_gpu
subject: "{{.Status}}: {{.Title}}, says our template"
`

// windows is usage of one session in windows of a minute that end so many minutes from at on.
func windows(at time.Time, from, until int, util string) string {
	var out strings.Builder
	instant := func(minute int) string {
		return at.Add(time.Duration(minute) * time.Minute).Format(time.RFC3339)
	}
	for m := from; m < until; m++ {
		fmt.Fprintf(&out, `{"specversion":"1.0","type":"suanpan.usage.held.v1","source":"/e2e",`+
			`"id":"w%d","data":{"tenant":"acme","project":"p","lease":"rental","session":"rental.0",`+
			`"session_start":%q,"purchase":"on_demand","node":"n1","devices":["GPU-1"],"start":%q,`+
			`"end":%q,"held":{"gpu.a800-80g":"1"},"final":false,"telemetry":{"gpu_util":%s,`+
			`"mem_used_mib":9000,"mem_total_mib":81920}}}`+"\n", m, instant(-4), instant(m),
			instant(m+1), util)
	}
	return out.String()
}

// TestAlerts has a GPU stand idle, work again, a dead letter and a held invoice, while two billers
// look, and are killed: each is told once, and what recovers once more.
func TestAlerts(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *system) {
		b := newInbox(t)
		b.openMail(t, nil)
		o := &office{s, t.TempDir()}
		o.run("apply", "-f", o.file("catalog.yaml", deskCatalog))
		o.refuses(`bad.yaml:1: check template "bad"`, "apply", "-f", o.file("bad.yaml",
			"{kind: Template, name: bad, type: policy.idle_gpo, text: x}"))
		o.refuses(`bad.yaml:1: render template "bad"`, "apply", "-f", o.file("bad.yaml",
			"{kind: Template, name: bad, type: policy.idle_gpu, text: '{{.Data.nothing}}'}"))
		o.applySoon("policies.yaml", strings.NewReplacer("URL", b.url, "name: ",
			"effective_from: \"FROM\"\nname: ").Replace(alertPolicies))
		o.startService("rater", "rater", "--flush-bulk", "200ms", "--flush-live", "200ms")
		o.startService("archiver", "archiver")
		for _, name := range []string{"biller-a", "biller-b"} {
			o.startService(name, "biller", append(b.flags(o), "--alert-schedule", "@every 500ms")...)
		}
		at := time.Now().UTC().Truncate(time.Second)
		// The newest window ends a minute ago; the usage at work comes after it.
		o.runWith(windows(at, -4, -1, "0.01"), "send", "-")
		told := func(kind, status string) func() error {
			return func() error {
				if ids, _ := b.of(kind, status); len(ids) == 0 {
					return fmt.Errorf("no %s of %s was received", status, kind)
				}
				return nil
			}
		}
		waitFor(t, "the idle GPU", time.Minute, told("policy.idle_gpu", "firing"))
		o.kill("biller-a")
		waitFor(t, "the lease that is not released", time.Minute, told("policy.unreleased", "firing"))
		idle := o.idleAlert(b)
		o.says("acknowledged", "alert", "ack", idle, "--by", "ann", "--note", "they know")
		o.kill("biller-b")
		o.launch("biller-a")
		o.launch("biller-b")
		waitFor(t, "the acknowledgement", time.Minute, func() error {
			out := o.run("alert", "list", "--json")
			if !strings.Contains(out, `"status":"acknowledged"`) || !strings.Contains(out, "ann") {
				return errText(out)
			}
			return nil
		})
		o.runWith(windows(at, -1, 0, "0.95"), "send", "-")
		waitFor(t, "the GPU at work", time.Minute, told("policy.idle_gpu", "resolved"))
		waitFor(t, "the lease in use", time.Minute, told("policy.unreleased", "resolved"))
		o.runWith(strings.ReplaceAll(rented("blue"), "gpu.a800-80g", "gpu.of-no-price"), "send", "-")
		waitFor(t, "the dead letter", time.Minute, told("policy.dead_letters", "firing"))
		o.runWith(rented("acme"), "send", "-")
		o.waitFor("usage", func() error {
			if _, err := s.query("SELECT 1"); err != nil {
				return err
			}
			if out := o.run("summary"); !strings.Contains(out, "2026-01") {
				return errText(out)
			}
			return nil
		})
		o.says("held|has no seller", "close", "--period", "2026-01")
		waitFor(t, "the held invoice", time.Minute, told("policy.held_invoices", "firing"))
		o.kill("biller-a")
		o.launch("biller-a")
		time.Sleep(5 * time.Second)
		o.once(b)
	})
}

// idleAlert checks what was said of the idle GPU and returns the key of the alert.
func (o *office) idleAlert(b *inbox) string {
	o.t.Helper()
	_, h := b.of("policy.idle_gpu", "firing")
	if h.Data.Tenant != "acme" || h.Data.Labels["session"] != "rental.0" ||
		!strings.HasPrefix(h.Data.Query, "SELECT ") || len(h.Data.Evidence) == 0 {
		o.t.Errorf("the idle GPU is told as %+v", h)
	}
	var details struct {
		Key  string
		Hint struct {
			Options []struct{ SKU, Amount string }
		}
	}
	if err := json.Unmarshal(h.Data.Details, &details); err != nil {
		o.t.Fatal(err)
	}
	// 9000 MiB and a tenth, of 80 GiB.
	if len(details.Hint.Options) != 1 || details.Hint.Options[0].Amount != "0.2" {
		o.t.Errorf("it suggests %+v", details.Hint)
	}
	rows, err := o.queryIn("suanpan", h.Data.Query+" FORMAT TSV")
	if err != nil || !strings.Contains(rows, "\t120\t1\t1\t9000\t81920\n") {
		o.t.Errorf("the query shows %q, %v:\n%s", rows, err, h.Data.Query)
	}
	return details.Key
}

// once checks that everything was told once: two ids would be two decisions.
func (o *office) once(b *inbox) {
	o.t.Helper()
	b.check(o.t)
	for _, kind := range []string{
		"policy.idle_gpu", "policy.unreleased", "policy.dead_letters", "policy.held_invoices",
	} {
		for _, status := range []string{"firing", "resolved"} {
			want := 1
			if status == "resolved" && (kind == "policy.dead_letters" || kind == "policy.held_invoices") {
				want = 0
			}
			if ids, _ := b.of(kind, status); len(ids) != want {
				o.t.Errorf("%s was told as %s by %d messages, want %d", kind, status, len(ids), want)
			}
		}
	}
	var stop struct {
		Hint struct {
			Stop struct {
				Lease    string
				Sessions []string
			}
		}
	}
	_, h := b.of("policy.unreleased", "firing")
	if err := json.Unmarshal(h.Data.Details, &stop); err != nil {
		o.t.Fatal(err)
	}
	if got := stop.Hint.Stop; got.Lease != "rental" || strings.Join(got.Sessions, " ") != "rental.0" {
		o.t.Errorf("it suggests to stop %+v", got)
	}
	subjects := ""
	for _, m := range b.letters(o.t, "ops@example.com") {
		subjects += m.Subject + "\n"
	}
	for _, status := range []string{"firing: ", "resolved: "} {
		if !strings.Contains(subjects, status) || !strings.Contains(subjects, "says our template") {
			o.t.Errorf("no letter begins with %q:\n%s", status, subjects)
		}
	}
	o.says("dead_letters|held_invoices", "alert", "list", "--firing")
	if out := o.run("alert", "list", "--firing"); strings.Contains(out, "idle_gpu") {
		o.t.Errorf("the idle GPU fires still:\n%s", out)
	}
}
