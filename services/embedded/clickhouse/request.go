package clickhouse

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/ClickHouse/ch-go/compress"
)

const (
	maxQueryBytes = 16 << 20 // a statement with all that is in its text
	headBytes     = 64 << 10 // how much of a body is looked at to find an INSERT's rows
)

// request is one statement as it came over HTTP.
type request struct {
	session  session
	params   parameters
	format   string // default_format
	text     []byte // the statement, with an INSERT's rows if they are in its text
	st       statement
	rows     io.Reader // an INSERT's rows, nil for other statements
	compress bool      // ClickHouse's own framing of the answer
	gzip     bool
	whole    bool // wait_end_of_query: no answer before the statement is done
	native   bool // the client speaks a revision of the Native protocol
}

// urlOnly lists parameters of the URL that are not settings.
var urlOnly = map[string]bool{
	"query": true, "database": true, "default_format": true, "query_id": true, "quota_key": true,
	"session_id": true, "session_timeout": true, "session_check": true, "user": true,
	"password": true, "compress": true, "decompress": true, "stacktrace": true, "role": true,
	"client_protocol_version": true, "buffer_size": true, "wait_end_of_query": true,
	"enable_http_compression": true, "http_zlib_compression_level": true, "close_session": true,
	"network_compression_method": true, "network_zstd_compression_level": true,
}

// parseRequest reads a request as far as its statement; an INSERT's rows are left in the body.
func parseRequest(r *http.Request, body io.Reader) (*request, error) {
	q := &request{session: session{settings: map[string]string{}}, params: parameters{}}
	values := r.URL.Query()
	for name := range values {
		value := values.Get(name)
		if param, ok := strings.CutPrefix(name, "param_"); ok {
			q.params[param] = value
		} else if !urlOnly[name] {
			q.session.settings[name] = value
		}
	}
	if r.Method != http.MethodPost {
		q.session.settings["readonly"] = "2" // as ClickHouse does: a link must not change data
	}
	q.session.database = firstOf(values.Get("database"), r.Header.Get("X-ClickHouse-Database"))
	q.format = firstOf(values.Get("default_format"), r.Header.Get("X-ClickHouse-Format"),
		"TabSeparated")
	q.compress = isOn(values.Get("compress"))
	q.whole = isOn(values.Get("wait_end_of_query"))
	version := values.Get("client_protocol_version")
	q.native = version != "" && version != "0"
	q.gzip = strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") &&
		isOn(values.Get("enable_http_compression"))
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		return nil, newException(codeNotImplemented, "NOT_IMPLEMENTED",
			"External tables are not supported by the embedded ClickHouse")
	}
	body, err := decode(body, r.Header.Get("Content-Encoding"), isOn(values.Get("decompress")))
	if err != nil {
		return nil, err
	}
	if err := q.readStatement(values.Get("query"), body); err != nil {
		return nil, err
	}
	if q.st.several {
		return nil, newException(codeSyntax, "SYNTAX_ERROR", "Multi-statements are not allowed")
	}
	return q, nil
}

func firstOf(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}

func isOn(value string) bool { return value == "1" || value == "true" }

// decode undoes the body's compression: gzip by its header, ClickHouse's own framing (LZ4, ZSTD)
// by decompress=1.
func decode(body io.Reader, encoding string, framed bool) (io.Reader, error) {
	switch encoding {
	case "", "identity":
	case "gzip":
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			return nil, newException(codeCannotDecompress, "CANNOT_DECOMPRESS", err.Error())
		}
		body = unzipped
	default:
		return nil, newException(codeNotImplemented, "NOT_IMPLEMENTED",
			fmt.Sprintf("Content-Encoding %q is not supported; use gzip or none", encoding))
	}
	if framed {
		body = frameReader{compress.NewReader(body)}
	}
	return body, nil
}

// frameReader gives io.EOF where the frames end, which the decoder wraps.
type frameReader struct{ frames *compress.Reader }

func (r frameReader) Read(p []byte) (int, error) {
	n, err := r.frames.Read(p)
	if err != nil && errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// readStatement takes the statement from the URL and the body, and leaves an INSERT's rows.
func (q *request) readStatement(inURL string, body io.Reader) error {
	if inURL != "" {
		q.text = []byte(inURL)
		q.st = parseStatement(q.text, true)
		if q.st.data >= 0 {
			q.rows = io.MultiReader(bytes.NewReader(q.text[q.st.data:]), body)
			return nil
		}
		rest, err := readAtMost(body, maxQueryBytes)
		if err != nil {
			return err
		}
		if len(rest) > 0 {
			q.text = append(append(q.text, '\n'), rest...)
			q.st = parseStatement(q.text, true)
		}
		return nil
	}
	head := make([]byte, headBytes)
	n, err := fill(body, head)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read statement: %w", err)
	}
	q.text = head[:n]
	q.st = parseStatement(q.text, errors.Is(err, io.EOF))
	if q.st.data < 0 && err == nil {
		rest, err := readAtMost(body, maxQueryBytes)
		if err != nil {
			return err
		}
		q.text = append(q.text, rest...)
		q.st = parseStatement(q.text, true)
		body = bytes.NewReader(nil)
	}
	if q.st.data >= 0 {
		q.rows = io.MultiReader(bytes.NewReader(q.text[q.st.data:]), body)
	}
	return nil
}

func readAtMost(body io.Reader, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read statement: %w", err)
	}
	if int64(len(text)) > limit {
		return nil, newException(codeSyntax, "SYNTAX_ERROR", fmt.Sprintf(
			"Max query size exceeded: a statement has at most %d bytes; rows go as FORMAT", limit))
	}
	return text, nil
}
