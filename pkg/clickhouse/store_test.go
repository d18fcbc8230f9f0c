package clickhouse

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
)

func TestMigrate_twiceAndByManyAtOnce(t *testing.T) {
	s := open(t)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if err := s.Migrate(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.LineItems(t.Context(), LineItemFilter{}); err != nil {
		t.Error(err)
	}
	applied, err := s.applied(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, err := migrations(schemas.ClickHouse)
	if err != nil || len(applied) != len(all) || len(all) == 0 {
		t.Errorf("%d of %d migrations are recorded (%v)", len(applied), len(all), err)
	}
}

func TestMigrate_takesAnyDatabaseName(t *testing.T) {
	s := openNamed(t, "it's-a`b\\c")
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestMigrate_refusesWhatWasChangedAndWhatIsNewer(t *testing.T) {
	s := store(t)
	all, err := migrations(schemas.ClickHouse)
	if err != nil {
		t.Fatal(err)
	}
	f := func(list []migration, want string) {
		t.Helper()
		if err := s.migrate(t.Context(), list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	f(all[:1], "older than the database")
	all[0].checksum = "other"
	f(all, "changed after it was applied")
}

// A database of before alerts looked at telemetry keeps what it has, and takes what comes.
func TestMigrate_keepsTelemetry(t *testing.T) {
	s := open(t)
	all, err := migrations(schemas.ClickHouse)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if err := s.admin.Exec(ctx, "CREATE DATABASE "+quoteName(s.database)); err != nil {
		t.Fatal(err)
	}
	put := func(offset int64) {
		t.Helper()
		value := `{"data":{"session":"s","node":"n","start":"2026-01-31T15:59:00Z",` +
			`"end":"2026-01-31T16:00:00Z","devices":["GPU-a"],"final":true,` +
			`"telemetry":{"gpu_util":0.5,"mem_used_mib":7}}}`
		record := pipeline.Record{
			Topic: schemas.TopicUsage, Offset: offset, Time: worldStart, Key: []byte("acme"),
			Value: []byte(value),
		}
		if err := s.Archive(ctx, []pipeline.Record{record}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.migrate(ctx, all[:4]); err != nil {
		t.Fatal(err)
	}
	put(1)
	for range 2 {
		if err := s.migrate(ctx, all); err != nil {
			t.Fatal(err)
		}
	}
	put(2)
	var got []string
	err = s.each(ctx, `SELECT concat(toString(offset), ' ', toString(start), ' ', toString(time), ' ',
		toString(gpu_util), ' ', toString(devices), ' ', ifNull(toString(final), '-'))
		FROM telemetry FINAL ORDER BY offset`, func(row scanner) error {
		var line string
		err := row.Scan(&line)
		got = append(got, line)
		return err
	})
	want := []string{
		"1 2026-01-31 16:00:00.000 2026-01-31 16:00:00.000 0.5 [] -",
		"2 2026-01-31 15:59:00.000 2026-01-31 16:00:00.000 0.5 ['GPU-a'] true",
	}
	if diff := gocmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	// A migration that was torn after it was applied is applied again.
	if err := s.apply(ctx, all[4]); err != nil {
		t.Error(err)
	}
}

func TestMigrations_areNumberedWithoutGaps(t *testing.T) {
	file := &fstest.MapFile{Data: []byte("-- a\nSELECT 1;\n\nSELECT\n 2;\n")}
	all, err := migrations(fstest.MapFS{"clickhouse/0001_a.sql": file})
	if err != nil || len(all) != 1 || len(all[0].statements) != 2 || all[0].name != "0001_a" {
		t.Errorf("%+v, %v", all, err)
	}
	for _, names := range [][]string{{"0002_a.sql"}, {"0001_a.sql", "0003_b.sql"}, {"x.sql"}} {
		files := fstest.MapFS{}
		for _, name := range names {
			files["clickhouse/"+name] = file
		}
		if _, err := migrations(files); err == nil {
			t.Errorf("%v: no error", names)
		}
	}
}

func TestArchive_keepsRecordsAsTheyCameAndOnce(t *testing.T) {
	s := store(t)
	at := time.Date(2026, 1, 31, 23, 59, 59, 999_000_000, time.UTC)
	var binary []byte
	for i := range 256 {
		binary = append(binary, byte(i))
	}
	records := []pipeline.Record{
		{Topic: "t", Partition: 63, Offset: 0, Time: at, Key: []byte("acme"), Value: binary},
		{
			Topic: "t", Partition: 63, Offset: math.MaxInt64, Time: at.Add(time.Millisecond),
			Key: []byte{0xff, 0}, Headers: []pipeline.Header{
				{Key: "a", Value: binary}, {Key: "a", Value: nil}, {Key: "", Value: []byte("x")},
			},
		},
	}
	for range 2 {
		if err := s.Archive(t.Context(), records); err != nil {
			t.Fatal(err)
		}
		if err := s.Archive(t.Context(), records[:1]); err != nil {
			t.Fatal(err)
		}
	}
	var got []pipeline.Record
	err := s.each(t.Context(), `SELECT topic, partition, offset, record_time, toString(tenant), value,
		header_names, header_values FROM usage_events FINAL ORDER BY offset`, func(row scanner) error {
		var r pipeline.Record
		var partition int32
		var key, value string
		var names, values []string
		err := row.Scan(&r.Topic, &partition, &r.Offset, &r.Time, &key, &value, &names, &values)
		r.Partition, r.Key, r.Value, r.Time = int(partition), []byte(key), []byte(value), r.Time.UTC()
		for i := range names {
			r.Headers = append(r.Headers, pipeline.Header{Key: names[i], Value: []byte(values[i])})
		}
		got = append(got, r)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(records, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestArchive_extractsTelemetryAndNothingFromWhatHasNone(t *testing.T) {
	s := store(t)
	values := []string{
		`{"data":{"session":"s","node":"n","end":"2026-02-01T00:00:00.25+08:00",` +
			`"telemetry":{"gpu_util":0.5,"mem_used_mib":null,"power_w":312.5,"energy_j":18750}}}`,
		`{"data":{"telemetry":null}}`, `{"data":{"labels":{"x":"\"telemetry\""}}}`,
		`{"telemetry":{"gpu_util":1},"data":{"session":"s"}}`, `"telemetry"`, `{"telemetry"`,
		"\xff\"telemetry\"",
		`{"data":{"telemetry":{}, "end": "x"}}`, "",
		`{"data":{"session":"t","node":"n","devices":["GPU-a","b"],"final":false,` +
			`"start":"2026-01-31T15:59:00.0001Z","end":"2026-01-31T16:00:00Z",` +
			`"telemetry":{"mem_used_mib":1,"mem_total_mib":81920}}}`,
		`{"data":{"session":"t","start":"2026-01-31T16:00:00Z","end":"2026-01-31T16:00:01Z",` +
			`"final":true}}`,
		`{"data":{"final":null,"session":"t"}}`, `{"data":{"final":"true"}}`, `{"final":true}`,
		`{"data":{"final":1}}`, `"final"`, `{"data":{"final":true`, `{"data":["final"]}`,
		`{"data":{"final":true,"devices":"GPU-a","session":7,"telemetry":[],"start":{}}}`,
		`{"data":{"telemetry":{"gpu_util":"nan","mem_used_mib":1e300,"mem_total_mib":"x"},` +
			`"devices":["a",1,null],"final":"no"}}`,
	}
	records := make([]pipeline.Record, len(values))
	for i, v := range values {
		records[i] = pipeline.Record{
			Topic: "t", Offset: int64(i), Time: worldStart,
			Key: []byte("acme"), Value: []byte(v),
		}
	}
	for range 2 {
		if err := s.Archive(t.Context(), records); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	err := s.each(t.Context(), `SELECT concat(tenant, ' ', node, ' ', session, ' ',
		toString(start), ' ', toString(time), ' ',
		ifNull(toString(gpu_util), '-'), ' ', ifNull(toString(mem_used_mib), '-'), ' ',
		ifNull(toString(power_w), '-'), ' ', ifNull(toString(temp_c), '-'), ' ',
		ifNull(toString(energy_j), '-'), ' ', toString(devices), ' ',
		ifNull(toString(mem_total_mib), '-'), ' ', ifNull(toString(final), '-'), ' ',
		toString(offset)) FROM telemetry FINAL ORDER BY offset`,
		func(row scanner) error {
			var line string
			err := row.Scan(&line)
			got = append(got, line)
			return err
		})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"acme n s 1970-01-01 00:00:00.000 2026-01-31 16:00:00.250 0.5 - 312.5 - 18750 [] - - 0",
		"acme   1970-01-01 00:00:00.000 1970-01-01 00:00:00.000 - - - - - [] - - 7",
		"acme n t 2026-01-31 15:59:00.000 2026-01-31 16:00:00.000 - 1 - - - ['GPU-a','b'] 81920 false 9",
		"acme  t 2026-01-31 16:00:00.000 2026-01-31 16:00:01.000 - - - - - [] - true 10",
		"acme  7 1970-01-01 00:00:00.000 1970-01-01 00:00:00.000 - - - - - [] - true 18",
		"acme   1970-01-01 00:00:00.000 1970-01-01 00:00:00.000 nan inf - - - ['a','1',''] - - 19",
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDeadLetters_comeBackByteForByte(t *testing.T) {
	s := store(t)
	letter := func(offset int64, tenant, reason string) pipeline.DeadLetter {
		return pipeline.DeadLetter{
			Record: pipeline.Record{
				Topic: "it's", Partition: 2, Offset: offset,
				Time: worldStart.Add(time.Duration(offset) * time.Second), Key: []byte(tenant),
				Value:   []byte("\x00\xff{'\\\n" + tenant),
				Headers: []pipeline.Header{{Key: "h'", Value: []byte{0, 1}}},
			},
			Reason: reason, Detail: `what's \wrong`, Source: "src", ID: "id", SeenAt: worldStart,
		}
	}
	letters := []pipeline.DeadLetter{
		letter(1, "acme", "no_price"), letter(2, "acme", "future"), letter(3, "it's", "no_price"),
	}
	for range 2 {
		if err := s.WriteDeadLetters(t.Context(), letters); err != nil {
			t.Fatal(err)
		}
	}
	f := func(filter DeadLetterFilter, want ...pipeline.DeadLetter) {
		t.Helper()
		got, err := s.DeadLetters(t.Context(), filter)
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", filter, diff)
		}
	}
	f(DeadLetterFilter{}, letters...)
	f(DeadLetterFilter{Limit: 2}, letters[:2]...)
	f(DeadLetterFilter{Tenant: "it's"}, letters[2])
	f(DeadLetterFilter{Reason: "no_price", Since: worldStart.Add(2 * time.Second)}, letters[2])
	f(DeadLetterFilter{Tenant: "' OR 1 --"})
	got, ok, err := s.DeadLetter(t.Context(), "it's", 2, 2)
	if diff := gocmp.Diff(letters[1], got); err != nil || !ok || diff != "" {
		t.Errorf("%v, %v (-want +got):\n%s", ok, err, diff)
	}
	if _, ok, err := s.DeadLetter(t.Context(), "it's", 2, 9); ok || err != nil {
		t.Errorf("a letter that is not there: %v, %v", ok, err)
	}
}

// Property: a quoted string is that string.
func TestQuote_isReadBackAsItWas(t *testing.T) {
	s, ctx := open(t), t.Context()
	check := func(t rapid.TB, text string) {
		t.Helper()
		var got string
		err := s.admin.QueryRow(ctx, "SELECT "+quote(text)).Scan(&got)
		if err != nil || got != text {
			t.Fatalf("%q came back as %q, %v", text, got, err)
		}
	}
	for _, text := range hostile {
		check(t, text)
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()),
			func(b []byte) string { return string(b) })).Draw(t, "text"))
	})
}

func TestOpen_refusesWhatCannotWork(t *testing.T) {
	f := func(c Config, want string) {
		t.Helper()
		s, err := Open(t.Context(), c)
		if err == nil {
			_ = s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", c, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
	f(Config{URL: "http://127.0.0.1:1/x"}, "refused")
	f(Config{URL: "http://u:hunter2@127.0.0.1:1/x"}, "refused")
	f(Config{URL: "http://u:hunter2@[::1/x"}, "open ClickHouse")
	f(Config{URL: "ftp://u:hunter2@127.0.0.1:1/x"}, "does not begin with")
	f(Config{URL: "http://127.0.0.1:1/x", TLS: TLS{CA: "ca.pem"}}, "neither https:// nor")
	f(Config{URL: "https://127.0.0.1:1/x", TLS: TLS{CA: "no such file"}}, "no such file")
}

// Both ways of writing must say so when nothing was written.
func TestArchive_failsWhereRecordsDoNotLand(t *testing.T) {
	for _, parameters := range []string{"", "?compress=lz4"} {
		s := open(t) // it has no tables
		url := "http://" + address(t) + "/" + s.database + parameters
		with, err := Open(t.Context(), Config{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		records := make([]pipeline.Record, 20_000)
		for i := range records {
			records[i] = event(i, false)
		}
		if err := with.Archive(t.Context(), records); err == nil ||
			!strings.Contains(err.Error(), "UNKNOWN_DATABASE") {
			t.Errorf("%q: without a database: %v", parameters, err)
		}
		if err := with.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := with.Archive(ctx, records); !errors.Is(err, context.Canceled) {
			t.Errorf("%q: cancelled: %v", parameters, err)
		}
		if err := with.Archive(t.Context(), records); err != nil {
			t.Errorf("%q: after errors: %v", parameters, err)
		}
		counts, err := with.Counts(t.Context())
		if err != nil || counts["usage_events"] != 20_000 {
			t.Errorf("%q: %v, %v", parameters, counts, err)
		}
		if err := with.Close(); err != nil {
			t.Error(err)
		}
	}
}
