//go:build e2e

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"mime"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	webhook "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// inbox is a webhook receiver over HTTPS and an SMTP server with STARTTLS, on loopback. Commands
// trust both by the file that roots names.
type inbox struct {
	url, smtp, roots, key string

	mu      sync.Mutex
	hooks   []hook
	letters []*mail.Message
	bad     []string
}

// hook is a webhook that was received.
type hook struct {
	id, Type string
	Data     struct {
		Alert, Status, Tenant, Title, Summary, Query string
		Labels                                       map[string]string
		Evidence                                     []struct{ Name, Value string }
		Details                                      json.RawMessage
	}
}

func newInbox(t *testing.T) *inbox {
	t.Helper()
	own, roots := ownCertificate(t)
	secure := &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}
	b := &inbox{
		key:   base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef")),
		roots: filepath.Join(t.TempDir(), "roots.pem"),
	}
	writeFile(t, b.roots, roots)
	verifier, err := webhook.NewWebhook("whsec_" + b.key)
	if err != nil {
		t.Fatal(err)
	}
	hooks := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter,
		q *http.Request,
	) {
		b.hook(verifier, q)
	}))
	hooks.TLS = secure
	hooks.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	hooks.StartTLS()
	t.Cleanup(hooks.Close)
	b.url = hooks.URL
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) {
		return &letterbox{inbox: b}, nil
	}))
	server.Domain, server.TLSConfig = "localhost", secure
	server.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.smtp = listener.Addr().String()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }() // ends with Close
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return b
}

// ownCertificate makes a certificate for 127.0.0.1 that trusts itself.
func ownCertificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, string(text)
}

// hook takes a webhook and checks its signature.
func (b *inbox) hook(verifier *webhook.Webhook, q *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	body, err := io.ReadAll(q.Body)
	if err == nil {
		err = verifier.Verify(body, q.Header)
	}
	h := hook{id: q.Header.Get("Webhook-Id")}
	if err == nil {
		err = json.Unmarshal(body, &h)
	}
	if err != nil {
		b.bad = append(b.bad, fmt.Sprintf("%v: %s", err, body))
	}
	b.hooks = append(b.hooks, h)
}

// letterbox is one SMTP conversation.
type letterbox struct{ inbox *inbox }

// Mail implements smtp.Session.
func (*letterbox) Mail(string, *smtp.MailOptions) error { return nil }

// Rcpt implements smtp.Session.
func (*letterbox) Rcpt(string, *smtp.RcptOptions) error { return nil }

// Reset implements smtp.Session.
func (*letterbox) Reset() {}

// Logout implements smtp.Session.
func (*letterbox) Logout() error { return nil }

// Data implements smtp.Session.
func (l *letterbox) Data(r io.Reader) error {
	m, err := mail.ReadMessage(r)
	if err != nil {
		return err
	}
	if m.Body, err = keep(m.Body); err != nil {
		return err
	}
	l.inbox.mu.Lock()
	defer l.inbox.mu.Unlock()
	l.inbox.letters = append(l.inbox.letters, m)
	return nil
}

// keep reads all of it, to be read later.
func keep(r io.Reader) (io.Reader, error) {
	data, err := io.ReadAll(r)
	return strings.NewReader(string(data)), err
}

// of returns the ids of the webhooks of a type and status, each once, and the last of them.
func (b *inbox) of(kind, status string) (ids []string, last hook) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range b.hooks {
		if h.Type == kind && h.Data.Status == status {
			last = h
			if !slices.Contains(ids, h.id) {
				ids = append(ids, h.id)
			}
		}
	}
	return ids, last
}

// subjects returns the subjects of the letters so far.
func (b *inbox) subjects(t *testing.T) []string {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []string
	for _, m := range b.letters {
		subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
		if err != nil {
			t.Error(err)
		}
		all = append(all, subject)
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
