package daemon

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
)

// serve starts an admin server and stops it when the test ends.
func serve(t *testing.T, o AdminOptions) *Admin {
	t.Helper()
	o.Addr = "127.0.0.1:0"
	admin, err := OpenAdmin(t.Context(), quiet(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- admin.Task().Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("the stop of the admin server returned %v", err)
		}
	})
	return admin
}

// get returns the status and the body of a URL.
func get(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestAdmin_healthAndMetrics(t *testing.T) {
	admin := serve(t, AdminOptions{})
	rows := prometheus.NewCounter(prometheus.CounterOpts{Name: "rows_total", Help: "Rows."})
	admin.Registry.MustRegister(rows)
	rows.Add(3)
	base := "http://" + admin.Addr()
	if status, body := get(t, http.DefaultClient, base+"/healthz"); status != 200 || body != "ok\n" {
		t.Errorf("/healthz: %d %q", status, body)
	}
	status, body := get(t, http.DefaultClient, base+"/metrics")
	if status != 200 || !strings.Contains(body, "rows_total 3") ||
		!strings.Contains(body, "go_goroutines") {
		t.Errorf("/metrics: %d\n%s", status, body)
	}
	if status, _ := get(t, http.DefaultClient, base+"/debug/pprof/"); status != 404 {
		t.Errorf("profiles are served without being asked for: %d", status)
	}
}

func TestAdmin_readyTellsEveryCheck(t *testing.T) {
	admin := serve(t, AdminOptions{Pprof: true})
	base := "http://" + admin.Addr()
	if status, body := get(t, http.DefaultClient, base+"/readyz"); status != 200 || body != "OK\n" {
		t.Errorf("without checks: %d %q", status, body)
	}
	admin.AddCheck("kafka", func(context.Context) error { return nil })
	admin.AddCheck("clickhouse", func(context.Context) error { return errors.New("refused: ok") })
	status, body := get(t, http.DefaultClient, base+"/readyz")
	want := "clickhouse: not ready: refused: ok\nkafka: ok\nService Unavailable\n"
	if status != 503 || body != want {
		t.Errorf("with a failing check: %d %q, want 503 %q", status, body, want)
	}
	admin.AddCheck("clickhouse", func(context.Context) error { return nil })
	if status, body := get(t, http.DefaultClient, base+"/readyz"); status != 200 {
		t.Errorf("after the check recovered: %d %q", status, body)
	}
	if status, _ := get(t, http.DefaultClient, base+"/debug/pprof/"); status != 200 {
		t.Errorf("profiles were asked for: %d", status)
	}
}

func TestAdmin_slowCheckIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		admin, err := OpenAdmin(t.Context(), quiet(), AdminOptions{})
		if err != nil {
			t.Fatal(err)
		}
		admin.AddCheck("slow", waits)
		began := time.Now()
		reply := httptest.NewRecorder()
		admin.handler.ServeHTTP(reply, httptest.NewRequestWithContext(
			t.Context(), http.MethodGet, "/readyz", http.NoBody))
		if body := reply.Body.String(); reply.Code != 503 ||
			!strings.Contains(body, "slow: not ready: context deadline exceeded") {
			t.Errorf("%d %q", reply.Code, body)
		}
		if took := time.Since(began); took != checkTimeout {
			t.Errorf("took %s, want %s", took, checkTimeout)
		}
	})
}

func TestAdmin_tls(t *testing.T) {
	cert, key, pool := certificate(t)
	admin := serve(t, AdminOptions{TLSCert: cert, TLSKey: key})
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
	}}
	defer client.CloseIdleConnections()
	if status, _ := get(t, client, "https://"+admin.Addr()+"/healthz"); status != 200 {
		t.Errorf("over TLS: %d", status)
	}
	if status, _ := get(t, http.DefaultClient, "http://"+admin.Addr()+"/healthz"); status != 400 {
		t.Errorf("plain HTTP to a TLS server: %d, want 400", status)
	}
}

func TestOpenAdmin_errors(t *testing.T) {
	taken := serve(t, AdminOptions{})
	for name, o := range map[string]AdminOptions{
		"address in use":  {Addr: taken.Addr()},
		"key alone":       {Addr: "127.0.0.1:0", TLSKey: "key.pem"},
		"missing files":   {Addr: "127.0.0.1:0", TLSCert: "cert.pem", TLSKey: "key.pem"},
		"no such address": {Addr: "nowhere"},
	} {
		if _, err := OpenAdmin(t.Context(), quiet(), o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestAdmin_withoutAddressServesNothing(t *testing.T) {
	var o AdminOptions
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.Register(flags, ":9090")
	if err := flags.Parse([]string{"--admin="}); err != nil {
		t.Fatal(err)
	}
	admin, err := OpenAdmin(t.Context(), quiet(), o)
	if err != nil || admin.Addr() != "" {
		t.Fatalf("listens on %q, error %v", admin.Addr(), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := admin.Task().Run(ctx); err != nil {
		t.Error(err)
	}
}

// certificate makes a self-signed certificate for 127.0.0.1 and returns its files.
func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return write(t, "cert.pem", string(certPEM)), write(t, "key.pem", string(keyPEM)), pool
}
