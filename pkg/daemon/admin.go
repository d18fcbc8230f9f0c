package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"
)

const (
	// checkTimeout bounds all checks of one request to /readyz together.
	checkTimeout = 3 * time.Second
	// profileTimeout bounds a reply: a CPU profile takes 30 s by default.
	profileTimeout = time.Minute
)

// Check says whether something that a service depends on works. It must return when ctx ends; its
// error is shown to whoever asks, so it must not hold a secret.
type Check func(ctx context.Context) error

// AdminOptions say where the admin server of a service listens.
type AdminOptions struct {
	Addr    string // host:port; port 0 takes a free one; empty: no admin server
	TLSCert string // certificate chain in PEM; empty: plain HTTP
	TLSKey  string // its key in PEM
	Pprof   bool   // also serve /debug/pprof/
}

// Register adds --admin and what belongs to it to flags. addr is the default of --admin.
func (o *AdminOptions) Register(flags *pflag.FlagSet, addr string) {
	flags.StringVar(&o.Addr, "admin", addr,
		"host:port of /metrics, /healthz and /readyz (empty: none)")
	flags.StringVar(&o.TLSCert, "admin-cert-file", "", "serve --admin with this certificate (PEM)")
	flags.StringVar(&o.TLSKey, "admin-key-file", "", "key of --admin-cert-file (PEM)")
	flags.BoolVar(&o.Pprof, "admin-pprof", false, "serve /debug/pprof/ on --admin too")
}

// Admin is the HTTP server by which a service is watched: /metrics in the Prometheus format,
// /healthz (200 while the process lives) and /readyz (200 if all checks pass, else 503, with a line
// a check).
type Admin struct {
	// Registry holds the metrics that /metrics shows; those of Go and of the process are in it.
	Registry *prometheus.Registry

	listener net.Listener // nil: no server
	handler  *http.ServeMux
	tls      *tls.Config
	log      *slog.Logger

	mu     sync.Mutex
	checks map[string]Check
}

// OpenAdmin listens, so that an address in use is known at once. Its Task answers.
//
// What is wrong with connections (a failed TLS handshake, say) goes to log as a warning.
func OpenAdmin(ctx context.Context, log *slog.Logger, o AdminOptions) (*Admin, error) {
	a := &Admin{Registry: prometheus.NewRegistry(), log: log, checks: map[string]Check{}}
	a.Registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	if (o.TLSCert == "") != (o.TLSKey == "") {
		return nil, errors.New("open admin server: a certificate needs a key, and a key one")
	}
	if o.TLSCert != "" {
		cert, err := tls.LoadX509KeyPair(o.TLSCert, o.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("open admin server: %w", err)
		}
		a.tls = &tls.Config{
			Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12,
		}
	}
	a.handler = a.routes(o.Pprof)
	if o.Addr == "" {
		return a, nil
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("open admin server: %w", err)
	}
	a.listener = listener
	return a, nil
}

// Addr returns the host:port that the server listens on, or "" if there is none.
func (a *Admin) Addr() string {
	if a.listener == nil {
		return ""
	}
	return a.listener.Addr().String()
}

// AddCheck makes /readyz depend on check. A later check of the same name replaces the earlier one.
func (a *Admin) AddCheck(name string, check Check) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.checks[name] = check
}

// Handle lets the server also answer requests of a pattern, as [http.ServeMux] reads it. Call it
// before the Task runs.
func (a *Admin) Handle(pattern string, handler http.Handler) { a.handler.Handle(pattern, handler) }

// Task returns the loop that answers requests. It is meant to be started first, so that it stops
// last. It can run once; an error of it is fatal.
func (a *Admin) Task() Task {
	return Task{Name: "admin", Run: a.serve, Fatal: func(error) bool { return true }}
}

// serve answers requests until ctx ends, then lets those under way finish.
func (a *Admin) serve(ctx context.Context) error {
	if a.listener == nil {
		<-ctx.Done()
		return nil
	}
	server := &http.Server{
		Handler:           a.handler,
		TLSConfig:         a.tls,
		ErrorLog:          slog.NewLogLogger(a.log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      profileTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    1 << 16,
	}
	served := make(chan error, 1)
	go func() {
		if a.tls != nil {
			served <- server.ServeTLS(a.listener, "", "")
			return
		}
		served <- server.Serve(a.listener)
	}()
	select {
	case err := <-served:
		return fmt.Errorf("serve admin: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := server.Shutdown(grace)
	if err != nil { // somebody still holds a request: it is cut off
		err = server.Close()
	}
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	if err != nil {
		return fmt.Errorf("stop admin server: %w", err)
	}
	return nil
}

// routes returns the handler of everything the server answers.
func (a *Admin) routes(profiles bool) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.Registry, promhttp.HandlerOpts{
		Registry: a.Registry, MaxRequestsInFlight: 4, Timeout: 10 * time.Second,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", a.ready)
	if profiles {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// verdict is what one check says.
type verdict struct {
	name string
	err  error
}

// ready runs all checks at the same time and prints what each says, sorted by name.
func (a *Admin) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
	defer cancel()
	a.mu.Lock()
	verdicts := make(chan verdict, len(a.checks))
	for name, check := range a.checks {
		go func() { verdicts <- verdict{name, check(ctx)} }()
	}
	a.mu.Unlock()
	lines := make([]string, 0, cap(verdicts))
	status := http.StatusOK
	for range cap(verdicts) {
		v := <-verdicts
		if v.err != nil {
			status = http.StatusServiceUnavailable
			lines = append(lines, fmt.Sprintf("%s: not ready: %v", v.name, v.err))
			continue
		}
		lines = append(lines, v.name+": ok")
	}
	sort.Strings(lines)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, strings.Join(append(lines, http.StatusText(status)), "\n"))
}
