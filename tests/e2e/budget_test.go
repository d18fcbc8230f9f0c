//go:build e2e

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	webhook "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// receiver takes webhooks, and checks their signatures.
type receiver struct {
	server *httptest.Server
	mu     sync.Mutex
	fails  int            // of the next requests
	seen   map[string]int // by threshold
	ids    map[string]string
	bad    []string
}

func newReceiver(t *testing.T, key string) *receiver {
	t.Helper()
	verifier, err := webhook.NewWebhook(key)
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{seen: make(map[string]int), ids: make(map[string]string)}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		body, err := io.ReadAll(q.Body)
		if err == nil {
			err = verifier.Verify(body, q.Header)
		}
		var m struct {
			Data struct {
				Data   struct{ Threshold string }
				Labels struct{ Threshold string }
			}
		}
		if err == nil {
			err = json.Unmarshal(body, &m)
		}
		if err != nil {
			r.bad = append(r.bad, fmt.Sprintf("%v: %s", err, body))
		}
		if r.fails > 0 {
			r.fails--
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		threshold := m.Data.Labels.Threshold
		r.seen[threshold]++
		if id := r.ids[threshold]; id != "" && id != q.Header.Get("webhook-id") {
			r.bad = append(r.bad, "two ids for "+threshold)
		}
		r.ids[threshold] = q.Header.Get("webhook-id")
	}))
	t.Cleanup(r.server.Close)
	return r
}

func (r *receiver) count(threshold string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[threshold]
}

// TestBudget crosses 80 % and 100 % of a budget, while two billers look and are killed, and the
// receiver fails at first. Each threshold is one decision, and one id at the receiver.
func TestBudget(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *system) {
		key := base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))
		r := newReceiver(t, "whsec_"+key)
		r.fails = 2
		o := &office{s, t.TempDir()}
		o.run("apply", "-f", o.file("catalog.yaml", strings.Replace(deskCatalog, "timezone: UTC",
			"timezone: "+noonZone(time.Now()), 1)))
		o.applySoon("budget.yaml", `kind: Budget
name: monthly
tenant: acme
period: day
amount: "1.00"
effective_from: "FROM"
scope: {project: p}
notify: [{webhook: "`+r.server.URL+`"}, {log: true}]
`)
		keys := o.file("keys", "=whsec_"+key)
		o.startService("rater", "rater", "--flush-bulk", "200ms", "--flush-live", "200ms")
		o.startService("archiver", "archiver")
		for _, name := range []string{"biller-a", "biller-b"} {
			o.startService(name, "biller", "--alert-schedule", "@every 500ms", "--notify-allow",
				"127.0.0.0/8", "--notify-plain-http", "--webhook-keys-file", keys)
		}
		waitFor(t, "the budget to begin", 2*time.Minute, func() error {
			if out := o.run("budget", "status"); !strings.Contains(out, "monthly") {
				return errText(out)
			}
			return nil
		})
		// Ten minutes of one GPU cost 1.00; the seconds are the last ones of the day so far.
		start := time.Now().Add(-11 * time.Minute)
		use := func(from, until int) {
			begun := time.Now()
			o.runWith(gpuSeconds("acme", start, from, until), "send", "-")
			t.Logf("usage until second %d sent in %s", until, time.Since(begun))
		}
		use(0, 470)
		time.Sleep(4 * time.Second)
		if n := r.count("0.8"); n != 0 {
			t.Errorf("78 %% fired")
		}
		use(470, 480) // exactly 80 %
		waitFor(t, "the alert at 80 %", time.Minute, func() error { return r.reached("0.8") })
		o.kill("biller-a")
		use(480, 600)
		o.kill("biller-b")
		o.launch("biller-a")
		o.launch("biller-b")
		waitFor(t, "the alert at 100 %", time.Minute, func() error { return r.reached("1") })
		time.Sleep(3 * time.Second)
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, bad := range r.bad {
			t.Error(bad)
		}
		out := o.run("alert", "list", "--json")
		if strings.Count(out, "\n") != 2 {
			t.Errorf("there are not two alerts:\n%s", out)
		}
		o.says("delivered", "alert", "list")
		o.says("monthly|1.00|1 EUR", "budget", "status", "--tenant", "acme")
	})
}

// gpuSeconds is usage of one GPU by a tenant, in seconds after start.
func gpuSeconds(tenant string, start time.Time, from, until int) string {
	second := func(n int) string { return instant(start.Add(time.Duration(n) * time.Second)) }
	return fmt.Sprintf(`{"specversion":"1.0","type":"suanpan.usage.held.v1","source":"/e2e",`+
		`"id":"%s-%d","data":{"tenant":%q,"project":"p","lease":"l","session":"s","session_start":`+
		`%q,"purchase":"on_demand","start":%q,"end":%q,"held":{"gpu.a800-80g":"1"}}}`+"\n", tenant,
		until, tenant, second(0), second(from), second(until))
}

// noonZone is a time zone in which it is noon: what happens within hours lies in one day, whenever
// the test runs.
func noonZone(now time.Time) string {
	east := 12 - now.UTC().Hour()
	return fmt.Sprintf("Etc/GMT%+d", -east) // their signs are the other way round
}

func TestNoonZone(t *testing.T) {
	for hour := range 24 {
		at := time.Date(2026, 3, 1, hour, 59, 59, 0, time.UTC)
		zone, err := time.LoadLocation(noonZone(at))
		if err != nil || at.In(zone).Hour() != 12 {
			t.Errorf("at %s it is not noon in %s, %v", at, noonZone(at), err)
		}
	}
}

func (r *receiver) reached(threshold string) error {
	if r.count(threshold) == 0 {
		return fmt.Errorf("it was not received: %v", r.seen)
	}
	return nil
}
