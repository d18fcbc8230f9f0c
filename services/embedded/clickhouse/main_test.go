package clickhouse

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// envTestParent makes the test binary a parent, see runParent.
const envTestParent = "SUANPAN_TEST_PARENT"

// TestMain lets the test binary be the child that Start runs, or such a child's parent.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv(envChild) != "":
		os.Exit(runChild())
	case os.Getenv(envTestParent) != "":
		os.Exit(runParent())
	}
	os.Exit(m.Run())
}

func runChild() int {
	var cfg Config
	flags := flag.NewFlagSet("child", flag.ContinueOnError)
	cfg.RegisterFlags(flags)
	if err := flags.Parse(os.Args[1:]); err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := Serve(ctx, cfg, log); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// needLibrary ends a test that cannot run: loudly, and as a failure where all tests must run.
func needLibrary(t *testing.T) {
	t.Helper()
	if _, err := FindLibrary(""); err != nil {
		if os.Getenv("SUANPAN_TEST_ALL") == "1" {
			t.Fatalf("SUANPAN_TEST_ALL=1 and %v", err)
		}
		t.Skipf("NOT RUN: %v", err)
	}
}

// start runs a child on any free port.
func start(t *testing.T, cfg Config) *Process {
	t.Helper()
	needLibrary(t)
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	if cfg.DataDir == "" {
		cfg.DataDir = t.TempDir()
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(t.Context(), exe, nil, cfg, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
		defer cancel()
		_ = p.Stop(ctx) // a test that cares has stopped it itself
	})
	return p
}

// reply is what a request brought.
type reply struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body
}

// send posts body with the given URL parameters.
func send(t *testing.T, p *Process, params url.Values, body io.Reader) reply {
	t.Helper()
	return do(t, http.MethodPost, p.URL()+"?"+params.Encode(), body, nil)
}

func do(t *testing.T, method, address string, body io.Reader, header http.Header) reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, body)
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		request.Header = header
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return reply{err: err}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header, string(text), err}
}

// ask runs a statement that must succeed and returns its answer.
func ask(t *testing.T, p *Process, query string) string {
	t.Helper()
	r := send(t, p, nil, strings.NewReader(query))
	if r.err != nil || r.status != http.StatusOK {
		t.Fatalf("%s: status %d, error %v, body %s", query, r.status, r.err, r.body)
	}
	return r.body
}
