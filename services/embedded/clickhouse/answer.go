package clickhouse

import (
	"compress/gzip"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go/compress"
)

const (
	idleTimeout = 60 * time.Second // a client that neither sends nor takes a byte for so long is gone
	writeBytes  = 1 << 20          // an answer goes out in pieces of this size
	frameBytes  = 1 << 20          // what one compressed frame holds at most
)

// answer writes one response. The status and the headers go out with the first byte, so an error
// before it has a status of its own, and one after it ends the body in ClickHouse's exception
// block and cuts the connection, so that no client takes half an answer for a whole one.
type answer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	tag     string
	begun   bool
	frames  *frameWriter // ClickHouse's own compression
	zip     *gzip.Writer
}

func newAnswer(w http.ResponseWriter, r *http.Request) *answer {
	a := &answer{w: w, control: http.NewResponseController(w), tag: strings.ToLower(rand.Text())[:16]}
	id := r.URL.Query().Get("query_id")
	if id == "" {
		id = rand.Text()
	}
	header := w.Header()
	header.Set("X-ClickHouse-Query-Id", id)
	header.Set("X-ClickHouse-Server-Display-Name", displayName)
	header.Set("X-ClickHouse-Exception-Tag", a.tag)
	return a
}

// describe sets the headers that depend on the statement.
func (a *answer) describe(q *request) {
	header := a.w.Header()
	format := firstOf(q.st.format, q.format)
	header.Set("X-ClickHouse-Format", format)
	header.Set("X-ClickHouse-Timezone", timezone)
	header.Set("Content-Type", contentType(format))
	if q.gzip {
		header.Set("Content-Encoding", "gzip")
		a.zip = gzip.NewWriter(io.Writer(timedWriter{a}))
	}
	if q.compress {
		a.frames = &frameWriter{to: a.plain(), encoder: compress.NewWriter(0, compress.LZ4)}
	}
}

func contentType(format string) string {
	switch upper := strings.ToUpper(format); {
	case strings.HasPrefix(upper, "TSV"), strings.HasPrefix(upper, "TABSEPARATED"):
		return "text/tab-separated-values; charset=UTF-8"
	case strings.HasPrefix(upper, "CSV"):
		return "text/csv; charset=UTF-8"
	case strings.Contains(upper, "EACHROW"):
		return "application/x-ndjson; charset=UTF-8"
	case strings.HasPrefix(upper, "JSON"):
		return "application/json; charset=UTF-8"
	case strings.HasPrefix(upper, "PRETTY"), upper == "VERTICAL":
		return "text/plain; charset=UTF-8"
	default:
		return "application/octet-stream"
	}
}

func (a *answer) plain() io.Writer {
	if a.zip != nil {
		return a.zip
	}
	return timedWriter{a}
}

// Write sends a part of the answer's body.
func (a *answer) Write(data []byte) (int, error) {
	if a.frames != nil {
		return a.frames.Write(data)
	}
	return a.plain().Write(data)
}

// timedWriter writes to the client in pieces, each within the idle timeout.
type timedWriter struct{ a *answer }

func (t timedWriter) Write(data []byte) (int, error) {
	written := 0
	t.a.begun = t.a.begun || len(data) > 0
	for len(data) > 0 {
		piece := data[:min(len(data), writeBytes)]
		if err := t.a.control.SetWriteDeadline(time.Now().Add(idleTimeout)); err != nil {
			return written, err
		}
		n, err := t.a.w.Write(piece)
		written += n
		if err != nil {
			return written, err
		}
		data = data[len(piece):]
	}
	return written, nil
}

// end finishes the body.
func (a *answer) end() error {
	if a.frames != nil {
		if err := a.frames.flush(); err != nil {
			return err
		}
	}
	if a.zip != nil {
		return a.zip.Close()
	}
	return nil
}

// summarize sets the header that counts what the statement did; it is lost once the body began.
func (a *answer) summarize(s summary) {
	text := func(n uint64) string { return strconv.FormatUint(n, 10) }
	line, err := json.Marshal(map[string]string{
		"read_rows": text(s.readRows), "read_bytes": text(s.readBytes),
		"written_rows": text(s.writtenRows), "written_bytes": text(s.writtenBytes),
		"elapsed_ns": strconv.FormatInt(s.elapsedNanos, 10),
	})
	if err != nil {
		panic("BUG: " + err.Error()) // strings always marshal
	}
	a.w.Header().Set("X-ClickHouse-Summary", string(line))
}

// fail answers with an error.
func (a *answer) fail(err error) {
	e := asException(err)
	if a.begun {
		a.breakOff(e)
	}
	header := a.w.Header()
	header.Del("Content-Encoding")
	header.Set("Content-Type", "text/plain; charset=UTF-8")
	header.Set("X-ClickHouse-Exception-Code", strconv.Itoa(e.code))
	if e.code == codeRequiredPassword {
		header.Set("WWW-Authenticate", `Basic realm="ClickHouse server HTTP API"`)
	}
	// The rest of a body that was not read would have to be read to use the connection again.
	header.Set("Connection", "close")
	a.w.WriteHeader(e.status())
	a.zip, a.frames = nil, nil
	// The client is told; that it went away meanwhile is nobody's loss.
	_, _ = io.WriteString(timedWriter{a}, e.text+"\n")
}

// breakOff ends a body that has begun: the exception block, then a connection cut short.
func (a *answer) breakOff(e *exception) {
	text := e.text[:min(len(e.text), 12<<10)] // a block has at most 16 KiB
	block := fmt.Sprintf("\r\n__exception__\r\n%s\r\n%s\n%d %s\r\n__exception__\r\n",
		a.tag, text, len(text)+1, a.tag)
	if _, err := io.WriteString(a, block); err == nil {
		if err = a.end(); err == nil {
			_ = a.control.Flush() // the cut says the same
		}
	}
	panic(http.ErrAbortHandler)
}

// frameWriter compresses in ClickHouse's own framing.
type frameWriter struct {
	to      io.Writer
	encoder *compress.Writer
	pending []byte
}

func (f *frameWriter) Write(data []byte) (int, error) {
	total := len(data)
	for len(data) > 0 {
		n := min(len(data), frameBytes-len(f.pending))
		f.pending = append(f.pending, data[:n]...)
		data = data[n:]
		if len(f.pending) == frameBytes {
			if err := f.flush(); err != nil {
				return total - len(data), err
			}
		}
	}
	return total, nil
}

func (f *frameWriter) flush() error {
	if len(f.pending) == 0 {
		return nil
	}
	if err := f.encoder.Compress(f.pending); err != nil {
		return fmt.Errorf("compress answer: %w", err)
	}
	f.pending = f.pending[:0]
	if _, err := f.to.Write(f.encoder.Data); err != nil {
		return err
	}
	return nil
}

// timedBody reads a request's body, each part within the idle timeout.
type timedBody struct {
	body    io.Reader
	control *http.ResponseController
}

func (t timedBody) Read(p []byte) (int, error) {
	err := t.control.SetReadDeadline(time.Now().Add(idleTimeout))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return t.body.Read(p)
}
