//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/suanpan/suanpan/tests/mailtest"
)

// fails runs a command that must end with a code, and say why.
func (o *office) fails(code int, want string, args ...string) {
	o.t.Helper()
	out, errs, got := o.try("", args...)
	if got != code || !strings.Contains(errs, want) {
		o.t.Errorf("suanpan %s ended with %d, not %d, or says no %q:\n%s%s", strings.Join(args, " "),
			got, code, want, out, errs)
	}
}

// applySoon applies documents that start at FROM, in a few seconds, and returns when that is. On a
// slow machine that is past before the log has them: then they get more time.
func (o *office) applySoon(name, text string) time.Time {
	o.t.Helper()
	for wait := 3 * time.Second; ; wait *= 2 {
		from := time.Now().Add(wait).Truncate(time.Second)
		file := o.file(name, strings.ReplaceAll(text, "FROM", instant(from)))
		_, errs, code := o.try("", "apply", "-f", file)
		if code == 0 {
			return from
		}
		if wait > time.Minute || !strings.Contains(errs, "give it a later effective_from") {
			o.t.Fatalf("suanpan apply ended with %d: %s", code, errs)
		}
	}
}

// lines runs a command with --json and decodes its lines.
func lines[T any](o *office, args ...string) []T {
	o.t.Helper()
	var all []T
	for line := range strings.Lines(o.run(append(args, "--json")...)) {
		var one T
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			o.t.Fatalf("suanpan %s: %v: %s", strings.Join(args, " "), err, line)
		}
		all = append(all, one)
	}
	return all
}

// listed is what is read of the JSON of several commands.
type listed struct {
	Budget, Tenant, Project, Period, Amount, Currency, Spend, Share, Forecast string
	Key, Status, Name, Threshold, By, Note, Channel, Result, Query            string
	Thresholds, Notify                                                        []string
	Owner                                                                     string
}

// commands looks at budgets and alerts as a person does, and as a script.
func (n *notice) commands() {
	n.t.Helper()
	n.says("SCOPE|research|project=p|day|1 EUR|0.8|webhook:127.0.0.1|email:ann@example.com|training|"+
		"all", "budget", "list")
	rules := lines[listed](n.office, "budget", "list", "--tenant", "acme")
	if len(rules) != 1 || rules[0].Budget != "research" || rules[0].Project != "p" ||
		rules[0].Period != "day" || rules[0].Amount != "1" || rules[0].Currency != "EUR" ||
		strings.Join(rules[0].Thresholds, " ") != "0.8" || rules[0].Owner != "ann" ||
		strings.Join(rules[0].Notify, " ") != "webhook:"+strings.TrimPrefix(n.url, "https://")+
			" email:ann@example.com" {
		n.t.Errorf("budget list says %+v", rules)
	}
	n.says("USED UP|research|0.80|1 EUR|training", "budget", "status")
	stands := lines[listed](n.office, "budget", "status", "--tenant", "blue")
	if len(stands) != 1 || stands[0].Budget != "training" || stands[0].Spend != "0.8" ||
		stands[0].Share != "0.8" || len(stands[0].Period) != len("2026-01") {
		n.t.Errorf("budget status says %+v", stands)
	}
	n.acknowledge()
	n.test()
}

// acknowledge has somebody see to one of the alerts.
func (n *notice) acknowledge() {
	n.t.Helper()
	n.says("FIGURE|firing|budget|acme|0.8 EUR|webhook:127.0.0.1|email:ann@example.com delivered|blue",
		"alert", "list", "--firing")
	fires := lines[listed](n.office, "alert", "list", "--firing", "--name", "research")
	if len(fires) != 1 || fires[0].Status != "firing" || fires[0].Threshold != "0.8" ||
		fires[0].Spend != "0.8" || !strings.Contains(fires[0].Query, "FROM line_items") {
		n.t.Fatalf("alert list says %+v", fires)
	}
	key := fires[0].Key
	n.fails(1, "no alert of this key fires", "alert", "ack", key+"0", "--by", "ann")
	n.says(key+" is acknowledged", "alert", "ack", key, "--by", "ann", "--note", "asked the team")
	n.fails(1, "it is acknowledged already", "alert", "ack", key, "--by", "bob")
	n.waitFor("the acknowledgement", func() error {
		fires := lines[listed](n.office, "alert", "list", "--firing")
		all := lines[listed](n.office, "alert", "list", "--tenant", "acme", "--limit", "1")
		if len(fires) != 1 || fires[0].Name != "training" || len(all) != 1 ||
			all[0].Status != "acknowledged" || all[0].By != "ann" || all[0].Note != "asked the team" {
			return fmt.Errorf("firing are %+v, of acme %+v", fires, all)
		}
		return nil
	})
}

// test sends messages that nobody decided on.
func (n *notice) test() {
	n.t.Helper()
	test := append([]string{"alert", "test"}, n.flags(n.office)...)
	to := func(what, name string) []string { return append(test[:len(test):len(test)], what, name) }
	n.fails(1, `no budget or policy "nobody" in force`, to("--budget", "nobody")...)
	n.says("CHANNEL|webhook:127.0.0.1|email:ann@example.com|delivered", to("--budget", "research")...)
	sent := lines[listed](n.office, to("--budget", "training")...)
	if len(sent) != 1 || sent[0].Channel != "email:li@example.com" || sent[0].Result != "delivered" {
		n.t.Errorf("alert test says %+v", sent)
	}
	n.says("log|delivered", to("--policy", "idle_gpu")...)
	n.fails(1, "1 of 2 did not take", append(to("--budget", "research"), "--smtp", "127.0.0.1:1")...)
	tests := 0
	n.inbox.mu.Lock()
	for _, h := range n.hooks {
		if h.Data.Labels["test"] != "" {
			tests++
			if h.Data.Title != "Test: Budget research has reached 80 %" || h.Data.Tenant != "acme" {
				n.t.Errorf("the test says %+v", h.Data)
			}
		}
	}
	n.inbox.mu.Unlock()
	if tests != 2 {
		n.t.Errorf("the webhook got %d tests", tests)
	}
	if m := n.last("li@example.com"); m.Subject != "Test: 预算 training 已达到 80 %" {
		n.t.Errorf("the test is called %q", m.Subject)
	}
}

// last is the newest letter to an address.
func (n *notice) last(to string) mailtest.Mail {
	n.t.Helper()
	all := n.letters(n.t, to)
	if len(all) == 0 {
		n.t.Fatalf("no letter to %s", to)
	}
	return all[len(all)-1]
}

// noticeTemplates change how Chinese messages about budgets read.
const noticeTemplates = `kind: Template
name: mine
effective_from: "FROM"
type: budget.threshold_reached
language: zh
subject: "算盘 {{.Status}} {{.Labels.budget}}"
html: "<p lang=zh>{{.Title}}</p><p>{{.Data.spend}}</p>"
`

// words applies templates: a wrong one is refused, with its place, and what is beside it; one that
// is right changes the mail.
func (n *notice) words() {
	n.t.Helper()
	good := strings.Replace(noticeTemplates, "FROM", instant(time.Now().Add(time.Hour)), 1)
	n.fails(1, `templates.yaml:9: render template "bad"`, "apply", "-f", n.file("templates.yaml",
		good+"---\n{kind: Template, name: bad, text: '{{.Data.nothing}}'}\n"))
	n.fails(1, `templates.yaml:11: parse template "bad"`, "apply", "-f", n.file("templates.yaml",
		good+"---\n# not closed\n\n{kind: Template, name: bad, text: '{{if .Title}}'}\n"))
	if out := n.run("get", "template"); strings.Contains(out, "mine") {
		n.t.Errorf("a template was applied beside a wrong one:\n%s", out)
	}
	from := n.applySoon("templates.yaml", noticeTemplates)
	n.says("mine", "get", "template")
	time.Sleep(time.Until(from))
	test := append([]string{"alert", "test", "--budget", "training"}, n.flags(n.office)...)
	n.says("delivered", test...)
	if m := n.last("li@example.com"); m.Subject != "算盘 触发 training" ||
		m.HTML != "<p lang=zh>Test: 预算 training 已达到 80 %</p><p>0.8</p>" ||
		!strings.Contains(m.Text, "已支出：0.80 EUR") {
		n.t.Errorf("with the template the mail is %q\n%s\n%s", m.Subject, m.HTML, m.Text)
	}
}
