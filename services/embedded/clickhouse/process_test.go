package clickhouse

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Rows whose INSERT was acknowledged survive kill -9, whole inserts only.
func TestKill_acknowledgedRowsSurvive(t *testing.T) {
	dir := t.TempDir()
	var acknowledged atomic.Int64
	const rows = 1000
	for round := range 4 {
		p := start(t, Config{DataDir: dir})
		ask(t, p, "CREATE TABLE IF NOT EXISTS kept (n UInt64) ENGINE = MergeTree ORDER BY n")
		got, err := strconv.ParseInt(strings.TrimSpace(ask(t, p, "SELECT count() FROM kept")), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		// One insert may have landed unacknowledged in each earlier round.
		if low := acknowledged.Load() * rows; got < low || got > low+int64(round)*rows {
			t.Fatalf("round %d: %d rows, %d were acknowledged", round, got, low)
		}
		torn := ask(t, p, "SELECT count() FROM (SELECT n FROM kept GROUP BY n HAVING count() != 1000)")
		if torn != "0\n" {
			t.Fatalf("round %d: %s inserts are torn", round, torn)
		}
		written := make(chan struct{})
		go func() {
			defer close(written)
			for n := 0; ; n++ {
				body := strings.Repeat(fmt.Sprintf("%d\n", round<<20+n), rows)
				response, err := http.Post(p.URL()+"?query=INSERT+INTO+kept+FORMAT+TSV", "",
					strings.NewReader(body))
				if err != nil {
					return
				}
				response.Body.Close()
				if response.StatusCode == http.StatusOK {
					acknowledged.Add(1)
				}
			}
		}()
		time.Sleep(time.Duration(150+100*round) * time.Millisecond)
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		<-written
		if err := p.Wait(); err == nil {
			t.Fatal("a killed child ended in order")
		}
	}
	if acknowledged.Load() == 0 {
		t.Error("nothing was acknowledged: the test shows nothing")
	}
}

func TestStop_endsInOrderAndFreesTheDirectory(t *testing.T) {
	dir := t.TempDir()
	p := start(t, Config{DataDir: dir})
	ask(t, p, "CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if other, err := Start(t.Context(), exe, nil, Config{DataDir: dir, Listen: "127.0.0.1:0"},
		t.Output()); err == nil {
		_ = other.Kill()
		t.Fatal("two processes opened one data directory")
	}
	reader, writer := io.Pipe() // an insert that is under way when the stop comes
	answer := make(chan reply, 1)
	go func() {
		answer <- send(t, p, url.Values{"query": {"INSERT INTO t FORMAT TSV"}}, reader)
	}()
	if _, err := io.WriteString(writer, "1\n"); err != nil {
		t.Fatal(err)
	}
	for ask(t, p, "SELECT count() FROM system.processes WHERE query LIKE 'INSERT%'") != "1\n" {
		time.Sleep(10 * time.Millisecond)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- p.Stop(t.Context()) }()
	time.Sleep(300 * time.Millisecond)
	if _, err := io.WriteString(writer, "2\n"); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	if r := <-answer; r.status != http.StatusOK {
		t.Errorf("the insert under way: %d %s %v", r.status, r.body, r.err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
	again := start(t, Config{DataDir: dir})
	if got := ask(t, again, "SELECT sum(n) FROM t"); got != "3\n" {
		t.Errorf("after the stop: %q", got)
	}
}

// A child must not outlive a parent that was killed.
func TestStart_childEndsWithItsParent(t *testing.T) {
	needLibrary(t)
	parent := exec.Command(os.Args[0], t.TempDir())
	parent.Env = append(os.Environ(), envTestParent+"=1")
	parent.Stderr = t.Output()
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(child, 0); err != nil {
		t.Fatalf("the child does not run: %v", err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	for range 200 {
		if gone(child) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	_ = syscall.Kill(child, syscall.SIGKILL)
	t.Error("the child outlived its parent by ten seconds")
}

// gone tells whether a process ended; nobody may be there to reap it.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && bytes.Contains(stat, []byte(") Z "))
}

func TestStart_saysWhyTheChildFailed(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var output strings.Builder
	_, err = Start(t.Context(), exe, nil, Config{
		DataDir: t.TempDir(), Library: "/nowhere.so",
		Listen: "127.0.0.1:0",
	}, &output)
	if err == nil || !strings.Contains(err.Error(), "it ended: exit status 1") {
		t.Errorf("error %v", err)
	}
	if !strings.Contains(output.String(), "find libchdb") {
		t.Errorf("output %q", output.String())
	}
}

func TestPassword_isAskedOfEveryStatement(t *testing.T) {
	p := start(t, Config{User: "bill", Password: "secret", MaxQueries: 2})
	f := func(header http.Header, query string, want int) {
		t.Helper()
		r := do(t, http.MethodPost, p.URL()+query, strings.NewReader("SELECT 1"), header)
		if r.status != want {
			t.Errorf("%v %s: %d, want %d: %s", header, query, r.status, want, r.body)
		}
	}
	basic := func(user, password string) http.Header {
		request := &http.Request{Header: http.Header{}}
		request.SetBasicAuth(user, password)
		return request.Header
	}
	f(nil, "", http.StatusUnauthorized)
	f(basic("bill", "wrong"), "", http.StatusForbidden)
	f(basic("other", "secret"), "", http.StatusForbidden)
	f(basic("bill", "secret"), "", http.StatusOK)
	f(http.Header{"X-Clickhouse-User": {"bill"}, "X-Clickhouse-Key": {"secret"}}, "", http.StatusOK)
	f(http.Header{"X-Clickhouse-User": {"bill"}}, "", http.StatusForbidden)
	f(nil, "?user=bill&password=secret", http.StatusOK)
	// More statements than may run at once wait for their turn.
	done := make(chan int, 8)
	for range cap(done) {
		go func() {
			r := do(t, http.MethodPost, p.URL(), strings.NewReader("SELECT sleep(0.1)"),
				basic("bill", "secret"))
			done <- r.status
		}()
	}
	for range cap(done) {
		if status := <-done; status != http.StatusOK {
			t.Errorf("a statement that had to wait: %d", status)
		}
	}
}

func TestTLS_servesHTTPS(t *testing.T) {
	cert, key, roots := makeCertificate(t)
	p := start(t, Config{TLSCert: cert, TLSKey: key})
	client := http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots},
	}}
	response, err := client.Post(p.URL(), "", strings.NewReader("SELECT 1"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || string(text) != "1\n" {
		t.Errorf("%q, %v", text, err)
	}
}

func makeCertificate(t *testing.T) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(t.TempDir(), name)
		text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(parsed)
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", keyDER), roots
}

// runParent is a process that starts a child, says its id and waits to be killed.
func runParent() int {
	p, err := Start(context.Background(), os.Args[0], nil,
		Config{DataDir: os.Args[1], Listen: "127.0.0.1:0"}, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(p.PID())
	<-p.Done()
	return 0
}
