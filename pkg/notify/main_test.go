package notify_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/notify"
)

// Every test ends all that it began.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// began is when the messages of tests were decided.
var began = time.Date(2026, 11, 30, 16, 0, 0, 0, time.UTC)

// loopback is what tests allow, as their receivers are there.
var loopback = []netip.Prefix{
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"),
}

// reached is a message as a budget sends it.
func reached() notify.Message {
	return notify.Message{
		ID:    notify.MessageID("budget", "research", "2026-11", "0.8"),
		Alert: "budget/research/2026-11/0.8",
		Type:  "budget.threshold_reached", Time: began, Tenant: "acme", Language: "en",
		Severity: notify.Warning, Status: notify.Firing,
		Title:   "Budget research reached 80 %",
		Summary: "812.50 USD of 1,000.00 USD are spent.\nAt this pace 100 % come on 5 December.",
		Evidence: []notify.Figure{
			{Name: "Spend", Value: "812.50 USD"}, {Name: "Share", Value: "81.25 %"},
		},
		Query:  "SELECT sum(amount) FROM line_items WHERE tenant = 'acme' AND day < '2026-12-01'",
		Labels: map[string]string{"budget": "research", "threshold": "0.8"},
		Data:   json.RawMessage(`{"spend":"812.50","budget":{"name":"research","amount":"1000.00"}}`),
	}
}

// text is a secret in clear.
type text string

// Reveal implements notify.Secret.
func (s text) Reveal() string { return string(s) }

// secret returns the n-th secret of tests, as receivers get it.
func secret(n byte) string {
	key := make([]byte, 32)
	for i := range key {
		key[i] = n + byte(i)
	}
	return "whsec_" + base64.StdEncoding.EncodeToString(key)
}

// keys returns the keys of these secrets under the default name.
func keys(t *testing.T, secrets ...string) notify.Keys {
	t.Helper()
	var all []notify.Secret
	for _, s := range secrets {
		all = append(all, text(s))
	}
	found, err := notify.NewKeys(map[string][]notify.Secret{"": all})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// quiet is a log that nobody reads.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// request is one that a receiver got.
type request struct {
	path   string
	header http.Header
	body   []byte
}

// receiver is a real HTTPS server on loopback.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	requests []request
}

// receive starts a receiver that keeps requests and answers by answer, if not nil.
func receive(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(
		func(w http.ResponseWriter, in *http.Request) {
			body, err := io.ReadAll(in.Body)
			if err != nil {
				t.Error(err)
			}
			r.mu.Lock()
			r.requests = append(r.requests, request{in.URL.Path, in.Header, body})
			r.mu.Unlock()
			if answer != nil {
				answer(w, in)
			}
		}))
	r.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	r.StartTLS()
	t.Cleanup(r.Close)
	return r
}

// all returns the requests so far.
func (r *receiver) all() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]request(nil), r.requests...)
}

// trust returns TLS settings that trust the receiver.
func (r *receiver) trust() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(r.Certificate())
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// open returns a channel of a gateway with these options.
func open(t *testing.T, o notify.GatewayOptions, to catalog.Channel) notify.Channel {
	t.Helper()
	g, err := notify.NewGateway(quiet(), o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := g.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
