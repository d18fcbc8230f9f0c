//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/schemas"
	"github.com/suanpan/suanpan/tests/mailtest"
)

// noticeCatalog has an English and a Chinese tenant, for whom ten minutes of a GPU cost 1.00.
const noticeCatalog = `kind: PriceBook
name: public
effective_from: "2025-12-01T00:00:00Z"
currency: EUR
timezone: ZONE
prices: [{sku: gpu.a800-80g, per: hour, price: "6.00"}]
---
{kind: Tenant, name: acme, price_book: public, language: en, effective_from: "2025-12-01T00:00:00Z"}
---
{kind: Tenant, name: blue, price_book: public, language: zh, effective_from: "2025-12-01T00:00:00Z"}
`

// noticeBudgets tell two people and a webhook.
const noticeBudgets = `kind: Budget
name: research
tenant: acme
effective_from: "FROM"
scope: {project: p}
period: day
amount: "AMOUNT"
thresholds: ["0.8"]
notify: [{webhook: "URL"}, {email: ann@example.com}]
owner: ann
---
kind: Budget
name: training
tenant: blue
effective_from: "FROM"
period: month
amount: "AMOUNT"
thresholds: ["0.8"]
notify: [{email: li@example.com}]
`

// budgetEvent is the type of messages about budgets.
const budgetEvent = "budget.threshold_reached"

// notice is an office whose budgets reach people.
type notice struct {
	*office
	*inbox
	mu      sync.Mutex
	refused []mailtest.Letter // by the SMTP server
	refuse  bool
}

// TestNotifications follows one decision to people: over a signed webhook by HTTPS, and by e-mail
// in two languages. The servers are away or refuse at first, and the biller is killed between
// decision and delivery, and while a receiver has the message. Then budgets are raised.
func TestNotifications(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *system) {
		n := &notice{office: &office{s, t.TempDir()}, inbox: newInbox(t)}
		n.begin()
		n.fail()
		n.crash()
		n.told()
		n.commands()
		n.words()
		n.raise()
		n.check(t)
	})
}

// budgets applies the budgets with an amount, from a moment on.
func (n *notice) budgets(amount string) {
	n.t.Helper()
	n.applySoon("budgets.yaml", strings.NewReplacer("AMOUNT", amount, "URL", n.url).
		Replace(noticeBudgets))
}

func (n *notice) begin() {
	n.t.Helper()
	n.run("apply", "-f", n.file("catalog.yaml", strings.Replace(noticeCatalog, "ZONE",
		noonZone(time.Now()), 1)))
	n.budgets("1.00")
	n.startService("rater", "rater", "--flush-bulk", "200ms", "--flush-live", "200ms")
	n.startService("archiver", "archiver")
	n.startService("settler", "settler", "--every", "300ms")
	n.answers(func(*hook) int { return http.StatusInternalServerError })
	n.startService("biller", "biller", append(n.flags(n.office), "--alert-schedule",
		"@every 500ms")...)
	start := time.Now().Add(-11 * time.Minute)
	n.runWith(gpuSeconds("acme", start, 0, 480)+gpuSeconds("blue", start, 0, 480), "send", "-")
}

// attempts waits until the delivery log has entries of three receivers.
func (n *notice) attempts(what, where string) {
	n.t.Helper()
	n.waitFor(what, func() error {
		got, err := n.query("SELECT uniqExact(message, channel) FROM suanpan.delivery_log WHERE " + where)
		if err == nil && got != "3\n" {
			got, err = n.query("SELECT * FROM suanpan.delivery_log")
			err = fmt.Errorf("%s, %w", got, err)
		}
		return err
	})
}

// fail has attempts fail: nobody listens, then they are refused for now.
func (n *notice) fail() {
	n.t.Helper()
	n.attempts("attempts that reach nobody", `attempt = 1 AND outcome = 'retry'
		AND (status = 0 AND channel LIKE 'email:%' AND error LIKE '%connection refused%'
			OR status = 500 AND channel LIKE 'webhook:%')`)
	n.refuse = true
	n.openMail(n.t, func(l *mailtest.Letter) error {
		n.mu.Lock()
		defer n.mu.Unlock()
		if l.Raw == "" || !n.refuse {
			return nil
		}
		n.refused = append(n.refused, *l)
		return mailtest.Answer(http.StatusOK + 251) // 451: later
	})
	n.attempts("attempts that are refused", `attempt >= 2 AND outcome = 'retry'
		AND (status = 451 AND channel LIKE 'email:%' OR status = 500 AND channel LIKE 'webhook:%')`)
}

// crash kills the biller between decision and delivery, and again while the receiver has taken the
// message and the biller does not know it yet.
func (n *notice) crash() {
	n.t.Helper()
	n.kill("biller")
	taken, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	n.answers(func(*hook) int {
		once.Do(func() {
			close(taken)
			<-release
		})
		return http.StatusOK
	})
	n.mu.Lock()
	n.refuse = false
	n.mu.Unlock()
	n.launch("biller")
	select {
	case <-taken:
	case <-time.After(time.Minute):
		n.t.Fatal("the webhook was not tried again")
	}
	n.kill("biller")
	close(release)
	n.launch("biller")
	n.waitFor("the messages", func() error {
		delivered, err := n.query("SELECT count() FROM suanpan.deliveries FINAL " +
			"WHERE state = 'delivered' AND attempts >= 3")
		if err == nil && delivered != "3\n" {
			err = errText(delivered)
		}
		return err
	})
}

// told checks what arrived: each decision under one id, however often it was sent, with the right
// words and figures.
func (n *notice) told() {
	n.t.Helper()
	ids, h := n.of(budgetEvent, "firing")
	if len(ids) != 1 {
		n.t.Fatalf("the webhook got %d messages", len(ids))
	}
	n.inbox.mu.Lock()
	if len(n.hooks) < 4 { // refused twice, taken without the biller knowing it, taken
		n.t.Errorf("the webhook was tried %d times", len(n.hooks))
	}
	for _, h := range n.hooks {
		if h.id != ids[0] {
			n.t.Errorf("an attempt has the id %s, not %s", h.id, ids[0])
		}
	}
	n.inbox.mu.Unlock()
	if got := fmt.Sprint(h.Data.Evidence); got != "[{spend 0.80 EUR} {budget 1.00 EUR} {expected at "+
		"the end of the period "+n.forecast(h)+" EUR} {threshold 80 %}]" || h.Data.Tenant != "acme" ||
		h.Data.Severity != "warning" || h.Data.Labels["budget"] != "research" {
		n.t.Errorf("the webhook says %+v", h.Data)
	}
	n.evidence(h.Data.Query, "0.8")
	english, chinese := n.letter("ann@example.com"), n.letter("li@example.com")
	if id := english.Header.Get("Message-Id"); id != "<"+ids[0]+"@example.com>" {
		n.t.Errorf("the letter has the id %s, the webhook %s", id, ids[0])
	}
	n.reads(english, "Budget research has reached 80 %", `<html lang="en">`, "spend|0.80 EUR",
		"budget|1.00 EUR", "threshold|80 %", "0.80 EUR of 1.00 EUR are spent", "Tenant: acme",
		"Severity: warning")
	n.reads(chinese, "预算 training 已达到 80 %", `<html lang="zh-Hans">`, "已支出|0.80 EUR",
		"预算|1.00 EUR", "阈值|80 %", "已支出 0.80 EUR，预算为 1.00 EUR", "租户：blue", "级别：警告")
	n.decisions("firing", "research", "training")
}

// forecast is what the details of an alert expect, as people read it.
func (n *notice) forecast(h hook) string {
	n.t.Helper()
	var details struct{ Spend, Amount, Forecast string }
	if err := json.Unmarshal(h.Data.Details, &details); err != nil {
		n.t.Fatal(err)
	}
	if details.Spend != "0.8" || details.Amount != "1" {
		n.t.Errorf("the details say %+v", details)
	}
	var forecast float64
	_, err := fmt.Sscan(details.Forecast, &forecast)
	if err != nil || forecast < 1.4 || forecast > 1.6 {
		n.t.Errorf("at noon the day's end is expected at %s, %v", details.Forecast, err)
	}
	return fmt.Sprintf("%.2f", forecast)
}

// evidence runs the query of a message and compares its sum.
func (n *notice) evidence(query, want string) {
	n.t.Helper()
	n.waitFor("the evidence", func() error {
		got, err := n.queryIn("suanpan", "SELECT toString(round(sum(spend), 6)) FROM ("+query+")")
		if err == nil && got != want+"\n" {
			err = fmt.Errorf("it shows %s, want %s: %s", got, want, query)
		}
		return err
	})
}

// letter returns the letter to an address. All that were sent there have its id.
func (n *notice) letter(to string) mailtest.Mail {
	n.t.Helper()
	all := n.letters(n.t, to)
	if len(all) == 0 {
		n.t.Fatalf("no letter to %s", to)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.refused {
		if l.To[0] == to {
			all = append(all, l.Read(n.t))
		}
	}
	if len(all) < 2 {
		n.t.Errorf("%s was written to once, though the first letter was refused", to)
	}
	for _, m := range all {
		if m.Header.Get("Message-Id") != all[0].Header.Get("Message-Id") {
			n.t.Errorf("letters to %s have the ids %s and %s", to, m.Header.Get("Message-Id"),
				all[0].Header.Get("Message-Id"))
		}
	}
	return all[0]
}

// reads looks for words in both parts of a letter. A figure, name|value, is a row of its table.
func (n *notice) reads(m mailtest.Mail, subject, language string, words ...string) {
	n.t.Helper()
	if m.Subject != subject || !strings.Contains(m.HTML, language) {
		n.t.Errorf("the subject is %q, not %q, or it is not %s", m.Subject, subject, language)
	}
	for _, word := range words {
		text, html := regexp.QuoteMeta(word), regexp.QuoteMeta(word)
		if name, value, ok := strings.Cut(word, "|"); ok {
			text = "(?m)^- " + name + "(: |：)" + value + "$"
			html = "<th[^>]*>" + name + "</th>\\s*<td[^>]*>" + value + "</td>"
		}
		if !regexp.MustCompile(text).MatchString(m.Text) ||
			!regexp.MustCompile(html).MatchString(m.HTML) {
			n.t.Errorf("there is no %s in\n%s\n%s", word, m.Text, m.HTML)
		}
	}
}

// decisions reads the log: of each budget one record decides this.
func (n *notice) decisions(status string, budgets ...string) {
	n.t.Helper()
	got := make(map[string]int)
	for _, r := range readTopic(n.t, n.system, schemas.TopicBilling) {
		parsed, err := billing.ParseRecord(r.Value)
		if err != nil {
			n.t.Fatal(err)
		}
		if a := parsed.Alert; a != nil && a.Kind == "budget" && string(a.Status) == status {
			got[a.Name]++
		}
	}
	for _, name := range budgets {
		if got[name] != 1 {
			n.t.Errorf("that %s is %s was decided %d times", name, status, got[name])
		}
	}
}

// raise gives the budgets more money: what fires is over, and is told so once.
func (n *notice) raise() {
	n.t.Helper()
	n.budgets("2.00")
	n.waitFor("that it is over", func() error {
		ids, _ := n.of(budgetEvent, "resolved")
		if m := n.last("li@example.com"); len(ids) == 0 || !strings.Contains(m.Subject, "已恢复") {
			return fmt.Errorf("%d webhooks, and %s", len(ids), m.Subject)
		}
		return nil
	})
	time.Sleep(3 * time.Second)
	for _, status := range []string{"firing", "resolved"} {
		if ids, _ := n.of(budgetEvent, status); len(ids) != 1 {
			n.t.Errorf("the webhook got %d messages that it is %s", len(ids), status)
		}
	}
	n.decisions("resolved", "research", "training")
	over := make(map[string]int)
	for _, to := range []string{"ann@example.com", "li@example.com"} {
		for _, m := range n.letters(n.t, to) {
			over[m.Subject]++
		}
	}
	for _, subject := range []string{
		"Resolved: Budget research has reached 80 %", "算盘 已恢复 training", // by the template
	} {
		if over[subject] != 1 {
			n.t.Errorf("the letters are %v", over)
		}
	}
}
