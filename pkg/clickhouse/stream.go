package clickhouse

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	driver "github.com/ClickHouse/clickhouse-go/v2"
)

// stream sends rows over HTTP while it encodes them. The driver builds the whole insert in memory
// first, twice, which takes five times as long for the two tables that most bytes go to.
type stream struct {
	client *http.Client
	hosts  []url.URL
	user   string
	key    string
	next   atomic.Uint64 // which host
}

const (
	streamBuffer = 256 << 10
	maxAnswer    = 64 << 10 // bytes of an error that are read
)

// newStream returns nil where only the driver can speak: ClickHouse's own protocol, compression.
func newStream(o *driver.Options) *stream {
	compressed := o.Compression != nil && o.Compression.Method != driver.CompressionNone
	if o.Protocol != driver.HTTP || compressed {
		return nil
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = o.TLS
	transport.MaxConnsPerHost = maxConnections
	transport.ResponseHeaderTimeout = readTimeout
	transport.WriteBufferSize = streamBuffer
	s := &stream{
		client: &http.Client{Transport: transport}, user: o.Auth.Username, key: o.Auth.Password,
	}
	values := url.Values{"database": {o.Auth.Database}, "wait_end_of_query": {"1"}}
	for name, value := range o.Settings {
		values.Set(name, fmt.Sprint(value))
	}
	for _, address := range o.Addr {
		host := url.URL{Scheme: "http", Host: address, Path: o.HttpUrlPath, RawQuery: values.Encode()}
		if o.TLS != nil {
			host.Scheme = "https"
		}
		if host.Path == "" {
			host.Path = "/"
		}
		s.hosts = append(s.hosts, host)
	}
	return s
}

func (s *stream) close() { s.client.CloseIdleConnections() }

// insert runs an INSERT with one block of rows. After an error the next call takes the next host.
func (s *stream) insert(ctx context.Context, statement string, rows int, fields []field) error {
	turn := s.next.Load()
	target := s.hosts[turn%uint64(len(s.hosts))]
	target.RawQuery += "&query=" + url.QueryEscape(statement+" FORMAT Native")
	reader, writer := io.Pipe()
	ended := make(chan struct{})
	go func() { // ends when all is sent, or when the request is over, which closes the reader
		defer close(ended)
		out := block{to: bufio.NewWriterSize(writer, streamBuffer)}
		out.write(rows, fields)
		_ = writer.CloseWithError(out.to.Flush()) // it always returns nil
	}()
	err := s.post(ctx, target.String(), reader)
	_ = reader.Close() // it always returns nil
	<-ended
	if err != nil {
		s.next.CompareAndSwap(turn, turn+1)
	}
	return err
}

func (s *stream) post(ctx context.Context, target string, body io.Reader) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, body)
	if err != nil {
		return err
	}
	if s.user != "" {
		request.Header.Set("X-ClickHouse-User", s.user)
		request.Header.Set("X-ClickHouse-Key", s.key)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it was read
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	// An insert that went well has nothing to say.
	if response.StatusCode != http.StatusOK || len(answer) > 0 {
		return fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(answer)))
	}
	return nil
}

// block writes rows in ClickHouse's Native format, as of revision 0. Errors stay in the writer.
type block struct {
	to *bufio.Writer
}

func (b *block) write(rows int, fields []field) {
	b.count(len(fields))
	b.count(rows)
	for _, f := range fields {
		b.text(f.name)
		b.text(strings.ReplaceAll(f.wire, "LowCardinality(String)", "String"))
		switch values := f.values.(type) {
		case []string:
			b.texts(values)
		case []int64:
			b.numbers(f.wire, values)
		case []int32:
			for _, v := range values {
				b.number32(uint32(v))
			}
		case []uint64:
			for _, v := range values {
				b.number64(v)
			}
		case [][]uint8:
			ends(b, values)
			for _, v := range values {
				_, _ = b.to.Write(v)
			}
		case [][]uint16:
			ends(b, values)
			for _, array := range values {
				for _, v := range array {
					_, _ = b.to.Write(binary.LittleEndian.AppendUint16(b.to.AvailableBuffer(), v))
				}
			}
		case [][]string:
			ends(b, values)
			for _, v := range values {
				b.texts(v)
			}
		default:
			panic(fmt.Sprintf("BUG: column %s has values of type %T", f.name, f.values))
		}
	}
}

// ends writes where each row's array ends.
func ends[V any](b *block, arrays [][]V) {
	end := 0
	for _, array := range arrays {
		end += len(array)
		b.number64(uint64(end))
	}
}

func (b *block) numbers(wire string, values []int64) {
	if strings.HasPrefix(wire, "DateTime(") { // seconds in 32 bits, until 2106
		for _, v := range values {
			b.number32(uint32(v))
		}
		return
	}
	for _, v := range values {
		b.number64(uint64(v))
	}
}

func (b *block) number32(v uint32) {
	_, _ = b.to.Write(binary.LittleEndian.AppendUint32(b.to.AvailableBuffer(), v))
}

func (b *block) number64(v uint64) {
	_, _ = b.to.Write(binary.LittleEndian.AppendUint64(b.to.AvailableBuffer(), v))
}

func (b *block) count(n int) {
	_, _ = b.to.Write(binary.AppendUvarint(b.to.AvailableBuffer(), uint64(n)))
}

func (b *block) text(s string) {
	b.count(len(s))
	_, _ = b.to.WriteString(s)
}

func (b *block) texts(values []string) {
	for _, v := range values {
		b.text(v)
	}
}
