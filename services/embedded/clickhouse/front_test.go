package clickhouse

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestFront runs what a client of ClickHouse's HTTP interface does against one child.
func TestFront(t *testing.T) {
	p := start(t, Config{})
	ask(t, p, "CREATE TABLE numbers_kept (n UInt64, s String) ENGINE = MergeTree ORDER BY n")
	for name, test := range map[string]func(*testing.T, *Process){
		"liveness":              testLiveness,
		"statement forms":       testStatementForms,
		"parameters":            testParameters,
		"settings":              testSettings,
		"error codes":           testErrorCodes,
		"GET cannot write":      testGetCannotWrite,
		"formats":               testFormats,
		"failure in the middle": testFailureInTheMiddle,
		"binary rows":           testBinaryRows,
		"cut body":              testCutBody,
		"compression":           testCompression,
		"client goes away":      testClientGoesAway,
		"other sites":           testOtherSites,
		"many at once":          testManyAtOnce,
	} {
		t.Run(name, func(t *testing.T) { test(t, p) })
	}
}

func testLiveness(t *testing.T, p *Process) {
	for _, path := range []string{"", "ping", "replicas_status"} {
		r := do(t, http.MethodGet, p.URL()+path, nil, nil)
		if r.status != http.StatusOK || r.body != "Ok.\n" {
			t.Errorf("/%s: %d %q", path, r.status, r.body)
		}
	}
	if r := do(t, http.MethodGet, p.URL()+"nothing", nil, nil); r.status != http.StatusNotFound {
		t.Errorf("unknown path: %d", r.status)
	}
	if r := do(t, http.MethodPut, p.URL(), nil, nil); r.status != http.StatusMethodNotAllowed {
		t.Errorf("PUT: %d", r.status)
	}
}

func testStatementForms(t *testing.T, p *Process) {
	f := func(query, body, want string) {
		t.Helper()
		params := url.Values{}
		if query != "" {
			params.Set("query", query)
		}
		r := send(t, p, params, strings.NewReader(body))
		if r.err != nil || r.status != http.StatusOK || r.body != want {
			t.Errorf("%q + %q: %d %q, want %q", query, body, r.status, r.body, want)
		}
	}
	f("", "SELECT 1", "1\n")
	f("SELECT 1", "", "1\n")
	f("SELECT 1,", "2", "1\t2\n")
	f("", "SELECT 1;\n", "1\n")
	f("SELECT '"+strings.Repeat("x", 200<<10)+"' = ''", "", "0\n")
	f("", "SELECT length('"+strings.Repeat("x", 200<<10)+"')", "204800\n") // beyond one head
	f("CREATE TABLE forms (a String) ENGINE = MergeTree ORDER BY a", "", "")
	f("INSERT INTO forms FORMAT TSV", "in body\n", "")
	f("INSERT INTO forms FORMAT TSV\nin URL\n", "and body\n", "")
	f("", "INSERT INTO forms FORMAT JSONEachRow\n{\"a\":\"after a line end\"}", "")
	f("", "INSERT INTO forms VALUES ('values')", "")
	f("INSERT INTO forms VALUES", "('values in body')", "")
	f("SELECT count() FROM forms", "", "6\n")
	if r := do(t, http.MethodGet, p.URL()+"?query=SELECT+2", nil, nil); r.body != "2\n" {
		t.Errorf("GET: %q", r.body)
	}
	r := send(t, p, url.Values{"database": {"system"}, "default_format": {"JSONEachRow"}},
		strings.NewReader("SELECT currentDatabase() AS d, count() > 0 AS c FROM tables"))
	if r.body != `{"d":"system","c":1}`+"\n" {
		t.Errorf("database and default_format: %q", r.body)
	}
	if got := r.header.Get("X-ClickHouse-Format"); got != "JSONEachRow" {
		t.Errorf("X-ClickHouse-Format %q", got)
	}
}

func testParameters(t *testing.T, p *Process) {
	r := send(t, p, url.Values{"param_x": {`it's\ta "\\"`}, "param_n": {"18446744073709551615"}},
		strings.NewReader("SELECT {x:String}, {n:UInt64} FORMAT TSVRaw"))
	if want := "it's\ta \"\\\"\t18446744073709551615\n"; r.body != want {
		t.Errorf("got %q, want %q", r.body, want)
	}
}

func testSettings(t *testing.T, p *Process) {
	query := "SELECT getSetting('max_threads'), getSetting('final'), timezone()"
	r := send(t, p, url.Values{"max_threads": {"3"}, "final": {"1"}}, strings.NewReader(query))
	if r.body != "3\ttrue\tUTC\n" {
		t.Errorf("settings in the URL: %q", r.body)
	}
	for range 20 { // none of them may leak into a later statement
		ask(t, p, "SET max_threads = 5")
		if got := ask(t, p, query); strings.HasPrefix(got, "3\t") || strings.HasPrefix(got, "5\t") {
			t.Fatalf("settings leaked: %q", got)
		}
	}
	ask(t, p, "CREATE TEMPORARY TABLE leak (a Int8)")
	if got := ask(t, p, "EXISTS TEMPORARY TABLE leak"); got != "0\n" {
		t.Errorf("a temporary table outlived its request: %q", got)
	}
}

func testErrorCodes(t *testing.T, p *Process) {
	f := func(params url.Values, query string, status int, code string) {
		t.Helper()
		r := send(t, p, params, strings.NewReader(query))
		if r.status != status || r.header.Get("X-ClickHouse-Exception-Code") != code ||
			!strings.HasPrefix(r.body, "Code: "+code+". DB::Exception: ") {
			t.Errorf("%s: %d, code %s, %q", query, r.status,
				r.header.Get("X-ClickHouse-Exception-Code"), r.body)
		}
	}
	f(nil, "SELEC 1", http.StatusBadRequest, "62")
	f(nil, "SELECT * FROM nothing", http.StatusNotFound, "60")
	f(nil, "INSERT INTO nothing FORMAT TSV\n1", http.StatusNotFound, "60")
	f(nil, "INSERT INTO numbers_kept (n) FORMAT TSV\nx\n", http.StatusBadRequest, "27")
	f(nil, "SELECT throwIf(1)", http.StatusInternalServerError, "395")
	f(nil, "SELECT 1; SELECT 2", http.StatusBadRequest, "62")
	f(nil, "SELECT {x:String}", http.StatusBadRequest, "456")
	f(url.Values{"nonsense": {"1"}}, "SELECT 1", http.StatusNotFound, "115")
	f(url.Values{"database": {"nowhere"}}, "SELECT 1", http.StatusNotFound, "81")
	f(nil, "SELECT '"+strings.Repeat("x", maxQueryBytes)+"'", http.StatusBadRequest, "62")
}

func testGetCannotWrite(t *testing.T, p *Process) {
	r := do(t, http.MethodGet, p.URL()+"?query="+url.QueryEscape(
		"CREATE TABLE by_link (a Int8) ENGINE = Memory"), nil, nil)
	if r.status == http.StatusOK || ask(t, p, "EXISTS TABLE by_link") != "0\n" {
		t.Errorf("a GET made a table: %d", r.status)
	}
}

func testFormats(t *testing.T, p *Process) {
	// Small blocks, so that a format that cannot be cut would show it.
	query := "SELECT number AS n FROM numbers(100000) SETTINGS max_block_size = 1000 FORMAT "
	f := func(format string, want int, count string) {
		t.Helper()
		if got := strings.Count(ask(t, p, query+format), count); got != want {
			t.Errorf("%s: %d of %q, want %d", format, got, count, want)
		}
	}
	f("TSV", 100000, "\n")
	f("TSVWithNames", 100001, "\n")
	f("CSVWithNames", 1, "n")
	f("JSONEachRow", 100000, `{"n":`)
	f("JSON", 1, "meta")
	f("JSONCompact", 1, "meta")
	f("Parquet", 2, "PAR1")
	if got := len(ask(t, p, query+"RowBinary")); got != 800000 {
		t.Errorf("RowBinary: %d bytes", got)
	}
	if got := ask(t, p, "SELECT 1 AS a WHERE 0 FORMAT JSONCompact"); !strings.Contains(got,
		`"rows": 0`) {
		t.Errorf("an empty answer: %q", got)
	}
}

func testFailureInTheMiddle(t *testing.T, p *Process) {
	query := "SELECT throwIf(number = 5000000) FROM numbers(10000000)"
	r := send(t, p, nil, strings.NewReader(query))
	if r.err == nil || r.status != http.StatusOK {
		t.Errorf("a half answer looks whole: status %d, error %v", r.status, r.err)
	}
	tag := r.header.Get("X-ClickHouse-Exception-Tag")
	if !strings.Contains(r.body, "__exception__\r\n"+tag+"\r\nCode: 395. ") {
		t.Errorf("no exception block in the body, tag %q", tag)
	}
	r = send(t, p, url.Values{"wait_end_of_query": {"1"}}, strings.NewReader(query))
	if r.status != http.StatusInternalServerError || !strings.HasPrefix(r.body, "Code: 395. ") {
		t.Errorf("wait_end_of_query: status %d, %.100q", r.status, r.body)
	}
}

// testBinaryRows inserts rows whose first byte is a line end, in many pieces.
func testBinaryRows(t *testing.T, p *Process) {
	ask(t, p, "CREATE TABLE binary_rows (s String) ENGINE = MergeTree ORDER BY s")
	row := []byte("\n" + "\n\x00\n45678\xff\n") // the length, ten, is a line end too
	const rows = 500_000
	r := send(t, p, url.Values{"query": {"INSERT INTO binary_rows FORMAT RowBinary"}},
		bytes.NewReader(bytes.Repeat(row, rows)))
	if r.status != http.StatusOK {
		t.Fatalf("insert: %d %s", r.status, r.body)
	}
	if got := r.header.Get("X-ClickHouse-Summary"); !strings.Contains(got,
		`"written_rows":"500000"`) {
		t.Errorf("summary %s", got)
	}
	want := fmt.Sprintf("%d\t1\t0A000A3435363738FF0A\n", rows)
	if got := ask(t, p, "SELECT count(), uniqExact(s), hex(any(s)) FROM binary_rows"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// testCutBody sends half of a body: nothing of it may be kept.
func testCutBody(t *testing.T, p *Process) {
	for _, length := range []int64{-1, 1 << 20} { // chunked, and with a length
		body := io.MultiReader(strings.NewReader(strings.Repeat("7\tcut\n", 50000)),
			&failingReader{after: 200 * time.Millisecond})
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			p.URL()+"?query=INSERT+INTO+numbers_kept+FORMAT+TSV", body)
		if err != nil {
			t.Fatal(err)
		}
		request.ContentLength = length
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
			t.Errorf("a cut body was answered: %s", response.Status)
		}
	}
	time.Sleep(500 * time.Millisecond) // for the server to see the cut
	if got := ask(t, p, "SELECT count() FROM numbers_kept WHERE s = 'cut'"); got != "0\n" {
		t.Errorf("%s rows of a cut body are kept", got)
	}
}

type failingReader struct{ after time.Duration }

func (r *failingReader) Read([]byte) (int, error) {
	time.Sleep(r.after)
	return 0, fmt.Errorf("the client died")
}

func testCompression(t *testing.T, p *Process) {
	ask(t, p, "CREATE TABLE zipped (n UInt64) ENGINE = MergeTree ORDER BY n")
	var body bytes.Buffer
	zip := gzip.NewWriter(&body)
	for n := range 100000 {
		fmt.Fprintln(zip, n)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	address := p.URL() + "?query=INSERT+INTO+zipped+FORMAT+TSV"
	cut := bytes.NewReader(body.Bytes()[:body.Len()/2])
	header := http.Header{"Content-Encoding": {"gzip"}}
	if r := do(t, http.MethodPost, address, cut, header); r.status == http.StatusOK {
		t.Error("half of a gzip body was taken")
	}
	r := do(t, http.MethodPost, address, &body, header)
	if got := ask(t, p, "SELECT sum(n) FROM zipped"); r.status != 200 || got != "4999950000\n" {
		t.Errorf("gzip body: %d %s, sum %s", r.status, r.body, got)
	}
	// Frames of ClickHouse's own: what the server packs it must take back.
	framed := send(t, p, url.Values{"compress": {"1"}},
		strings.NewReader("SELECT n FROM zipped FORMAT TSV"))
	if framed.status != http.StatusOK || strings.HasPrefix(framed.body, "0\n1\n") {
		t.Fatalf("compress=1: %d, not in frames", framed.status)
	}
	r = send(t, p, url.Values{"decompress": {"1"}, "query": {"INSERT INTO zipped FORMAT TSV"}},
		strings.NewReader(framed.body))
	if got := ask(t, p, "SELECT sum(n) FROM zipped"); r.status != 200 || got != "9999900000\n" {
		t.Errorf("decompress=1: %d %s, sum %s", r.status, r.body, got)
	}
	r = send(t, p, url.Values{"decompress": {"1"}, "query": {"INSERT INTO zipped FORMAT TSV"}},
		strings.NewReader(framed.body[:len(framed.body)/2]))
	if r.status == http.StatusOK {
		t.Error("half of a framed body was taken")
	}
}

func testClientGoesAway(t *testing.T, p *Process) {
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	slow := "SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number))"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL(),
		strings.NewReader(slow))
	if err != nil {
		t.Fatal(err)
	}
	if response, err := http.DefaultClient.Do(request); err == nil {
		response.Body.Close()
		t.Fatal("a query without end was answered")
	}
	for range 100 {
		running := ask(t, p, "SELECT count() FROM system.processes WHERE query LIKE '%sipHash64%'"+
			" AND query NOT LIKE '%processes%'")
		if running == "0\n" {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Error("the query of a client that went away still runs")
}

func testOtherSites(t *testing.T, p *Process) {
	header := http.Header{"Sec-Fetch-Site": {"cross-site"}, "Origin": {"https://example.com"}}
	r := do(t, http.MethodPost, p.URL(), strings.NewReader("SELECT 1"), header)
	if r.status != http.StatusForbidden {
		t.Errorf("a page of another site got %d %q", r.status, r.body)
	}
}

// testManyAtOnce runs four readers and two writers; no read may see half of an insert.
func testManyAtOnce(t *testing.T, p *Process) {
	ask(t, p, "CREATE TABLE busy (w UInt8, r UInt32) ENGINE = MergeTree ORDER BY (w, r)")
	const inserts, rows = 15, 2000
	var group sync.WaitGroup
	for w := range 2 {
		group.Go(func() {
			for n := range inserts {
				body := strings.Repeat(fmt.Sprintf("%d\t%d\n", w, n), rows)
				r := send(t, p, url.Values{"query": {"INSERT INTO busy FORMAT TSV"}},
					strings.NewReader(body))
				if r.status != http.StatusOK {
					t.Errorf("insert: %d %s", r.status, r.body)
				}
			}
		})
	}
	for range 4 {
		group.Go(func() {
			for range 20 {
				r := send(t, p, nil, strings.NewReader(
					"SELECT count() FROM (SELECT w, r, count() AS c FROM busy GROUP BY w, r "+
						"HAVING c != 2000)"))
				if r.body != "0\n" {
					t.Errorf("a read saw half of an insert: %d %q", r.status, r.body)
				}
			}
		})
	}
	group.Wait()
	if got := ask(t, p, "SELECT count() FROM busy"); got != fmt.Sprintf("%d\n", 2*inserts*rows) {
		t.Errorf("%s rows after all", got)
	}
}
