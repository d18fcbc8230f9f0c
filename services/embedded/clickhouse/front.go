package clickhouse

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	displayName = "suanpan-embedded"
	timezone    = "UTC"
	// helloQuery is what clickhouse-go asks first. We answer it ourselves: with revision 0 the
	// driver reads the engine's Native format, which has no revision, as it is.
	helloQuery = "SELECT displayName(), version(), revision(), timezone()"
	// insertBytes is how much of a body goes to the engine at once. The engine copies it and
	// queues up to 16 of them, so it also bounds what is in flight. BenchmarkInsert: with 256 KiB
	// a core takes a third more than with 1 MiB, twice as much as with 4 MiB.
	insertBytes = 256 << 10
)

// front answers ClickHouse's HTTP interface.
type front struct {
	cfg     Config
	pool    *pool
	log     *slog.Logger
	version string
	buffers sync.Pool // *[insertBytes]byte
}

func newFront(cfg Config, p *pool, version string, log *slog.Logger) http.Handler {
	f := &front{cfg: cfg, pool: p, log: log, version: version}
	f.buffers.New = func() any { return new([insertBytes]byte) }
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", f.root)
	mux.HandleFunc("/ping", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("Ok.\n"))
	})
	mux.HandleFunc("/replicas_status", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("Ok.\n"))
	})
	// A page in the user's browser must not reach a database that listens on the loopback.
	return http.NewCrossOriginProtection().Handler(mux)
}

// root answers a statement; without one it says that it is there.
func (f *front) root(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, "Only GET, HEAD and POST are supported", http.StatusMethodNotAllowed)
		return
	}
	if r.URL.RawQuery == "" && r.Method != http.MethodPost {
		_, _ = w.Write([]byte("Ok.\n"))
		return
	}
	a := newAnswer(w, r)
	if err := f.authenticate(r); err != nil {
		a.fail(err)
		return
	}
	if err := f.serve(a, r); err != nil {
		f.log.Debug("statement failed", "error", err)
		a.fail(err)
	}
}

// authenticate compares the user and password of a request, in constant time.
func (f *front) authenticate(r *http.Request) error {
	if f.cfg.User == "" && f.cfg.Password == "" {
		return nil
	}
	user, password, given := r.BasicAuth()
	if name := r.Header.Get("X-ClickHouse-User"); name != "" {
		user, password, given = name, r.Header.Get("X-ClickHouse-Key"), true
	} else if values := r.URL.Query(); values.Has("user") || values.Has("password") {
		user, password, given = values.Get("user"), values.Get("password"), true
	}
	if !given {
		return newException(codeRequiredPassword, "REQUIRED_PASSWORD",
			"Authentication failed: user and password are required")
	}
	equal := func(got, want string) int {
		g, w := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(want))
		return subtle.ConstantTimeCompare(g[:], w[:])
	}
	wantUser := f.cfg.User
	if wantUser == "" {
		wantUser = "default"
	}
	if equal(user, wantUser)&equal(password, f.cfg.Password) != 1 {
		return newException(codeAuthentication, "AUTHENTICATION_FAILED",
			"Authentication failed: password is incorrect, or there is no user with such name")
	}
	return nil
}

// serve runs the statement of a request.
func (f *front) serve(a *answer, r *http.Request) error {
	q, err := parseRequest(r, timedBody{r.Body, a.control})
	if err != nil {
		return err
	}
	a.describe(q)
	if q.native && strings.TrimSpace(string(q.text)) == helloQuery {
		if _, err := a.Write(f.hello()); err != nil {
			return err
		}
		return a.end()
	}
	h, err := f.pool.take(r.Context(), q.session)
	if err != nil {
		return err
	}
	defer f.pool.give(h)
	h.dirty = q.st.session
	if q.rows != nil {
		return f.insert(a, h, q)
	}
	return f.query(r.Context(), a, h, q)
}

func (f *front) insert(a *answer, h *handle, q *request) error {
	buffer := f.buffers.Get().(*[insertBytes]byte)
	defer f.buffers.Put(buffer)
	s, err := h.insert(q.st.head, q.st.format, q.params, q.rows, buffer[:])
	if err != nil {
		return err
	}
	a.summarize(s)
	return a.end()
}

// query runs a statement that has no rows of its own. When the client goes away a SELECT is
// killed; anything else goes on to its end, as with a ClickHouse server.
func (f *front) query(ctx context.Context, a *answer, h *handle, q *request) error {
	if q.st.keyword == "SELECT" || q.st.keyword == "WITH" {
		stop := context.AfterFunc(ctx, func() { f.pool.kill(h) })
		defer func() {
			// A kill that is under way must not hit the connection's next statement.
			h.dirty = !stop() || h.dirty
		}()
	}
	if q.st.streams(firstOf(q.st.format, q.format)) && !q.whole {
		err := h.stream(q.text, q.format, q.params, func(block []byte) error {
			_, err := a.Write(block)
			return err
		})
		if err != nil {
			return err
		}
		return a.end()
	}
	r, err := h.query(q.text, q.format, q.params)
	if err != nil {
		return err
	}
	defer r.free()
	a.summarize(r.summary())
	if _, err := a.Write(r.bytes()); err != nil {
		return err
	}
	return a.end()
}

// hello is the answer to helloQuery: one block of the Native format, at the revision that the
// driver assumes before it knows better. Its fields are described in ClickHouse's NativeWriter.
func (f *front) hello() []byte {
	block := []byte{
		1, 0, // field 1: not an overflow row
		2, 0xff, 0xff, 0xff, 0xff, // field 2: bucket -1
		0,    // no more fields
		4, 1, // columns, rows
	}
	text := func(s string) {
		block = binary.AppendUvarint(block, uint64(len(s)))
		block = append(block, s...)
	}
	column := func(name, kind string) {
		text(name)
		text(kind)
		block = append(block, 0) // no custom serialization
	}
	column("displayName()", "String")
	text(displayName)
	column("version()", "String")
	text(f.version)
	column("revision()", "UInt32")
	block = append(block, 0, 0, 0, 0)
	column("timezone()", "String")
	text(timezone)
	return block
}

// newServer returns the HTTP server around the front. Bodies have deadlines of their own, which
// move with each part; see timedBody and timedWriter.
func newServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    1 << 20, // clickhouse-go puts settings and parameters into the URL
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
