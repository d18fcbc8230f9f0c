//go:build e2e

package e2e

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	webhook "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/suanpan/suanpan/tests/mailtest"
)

// inbox is a webhook receiver over HTTPS and an SMTP server with STARTTLS, on loopback. Commands
// trust both by the file of authorities that ca names.
type inbox struct {
	url, smtp, ca, key string
	authority          *mailtest.Authority
	mail               *mailtest.Server // nil: nobody listens there yet

	mu     sync.Mutex
	hooks  []hook
	bad    []string
	answer func(h *hook) int // HTTP status; nil is always 200
}

// hook is a webhook that was received.
type hook struct {
	id, Type string
	status   int // by which it was answered
	Data     struct {
		Alert, Status, Severity, Tenant, Title, Summary, Query string
		Labels                                                 map[string]string
		Evidence                                               []struct{ Name, Value string }
		Details                                                json.RawMessage
	}
}

// newInbox returns an inbox whose SMTP server is still to be opened.
func newInbox(t *testing.T) *inbox {
	t.Helper()
	b := &inbox{
		key:  base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef")),
		smtp: freeAddress(t), ca: filepath.Join(t.TempDir(), "ca.pem"),
		authority: mailtest.NewAuthority(t),
	}
	writeFile(t, b.ca, string(b.authority.PEM))
	verifier, err := webhook.NewWebhook("whsec_" + b.key)
	if err != nil {
		t.Fatal(err)
	}
	hooks := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
		q *http.Request,
	) {
		b.take(verifier, w, q)
	}))
	hooks.TLS = &tls.Config{
		Certificates: []tls.Certificate{b.authority.Certificate(t)}, MinVersion: tls.VersionTLS12,
	}
	hooks.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	hooks.StartTLS()
	t.Cleanup(hooks.Close)
	b.url = hooks.URL
	return b
}

// openMail starts the SMTP server. It asks why it should refuse: nil refuses nothing.
func (b *inbox) openMail(t *testing.T, why func(l *mailtest.Letter) error) {
	t.Helper()
	b.mail = mailtest.Start(t, mailtest.Options{
		Addr: b.smtp, Security: mailtest.STARTTLS, Certificate: b.authority.Certificate(t),
	})
	b.mail.Refuse(why)
}

// flags are those by which a command sends to the inbox.
func (b *inbox) flags(o *office) []string {
	return []string{
		"--notify-allow", "127.0.0.0/8", "--notify-tls-ca", b.ca, "--smtp", b.smtp,
		"--smtp-from", "Suanpan 算盘 <billing@example.com>",
		"--webhook-keys-file", o.file("keys", "=whsec_"+b.key),
	}
}

// answers has webhooks answered otherwise from now on.
func (b *inbox) answers(answer func(h *hook) int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = answer
}

// take takes a webhook and checks its signature.
func (b *inbox) take(verifier *webhook.Webhook, w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err == nil {
		err = verifier.Verify(body, q.Header)
	}
	h := hook{id: q.Header.Get("Webhook-Id"), status: http.StatusOK}
	if err == nil {
		err = json.Unmarshal(body, &h)
	}
	b.mu.Lock()
	if err != nil {
		b.bad = append(b.bad, fmt.Sprintf("%v: %s", err, body))
	}
	answer := b.answer
	b.mu.Unlock()
	if answer != nil {
		h.status = answer(&h)
	}
	b.mu.Lock()
	b.hooks = append(b.hooks, h)
	b.mu.Unlock()
	w.WriteHeader(h.status)
}

// of returns the ids of the webhooks of a type and status that were taken, each once, and the last
// of them. Tests do not count.
func (b *inbox) of(kind, status string) (ids []string, last hook) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range b.hooks {
		if h.Type == kind && h.Data.Status == status && h.status == http.StatusOK &&
			h.Data.Labels["test"] == "" {
			last = h
			if !slices.Contains(ids, h.id) {
				ids = append(ids, h.id)
			}
		}
	}
	return ids, last
}

// letters returns the letters to an address so far.
func (b *inbox) letters(t *testing.T, to string) []mailtest.Mail {
	t.Helper()
	var all []mailtest.Mail
	for _, l := range b.mail.Letters() {
		if !l.TLS || l.From != "billing@example.com" {
			t.Errorf("a letter from %s, TLS %v", l.From, l.TLS)
		}
		if slices.Equal(l.To, []string{to}) {
			all = append(all, l.Read(t))
		}
	}
	return all
}

// check reports what no webhook may be.
func (b *inbox) check(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, bad := range b.bad {
		t.Error(bad)
	}
}
