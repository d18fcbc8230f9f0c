package clickhouse

import (
	"math"
	"math/big"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
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
		{Topic: "t", Partition: 63, Offset: math.MaxInt64, Time: at.Add(time.Millisecond),
			Key: []byte{0xff, 0}, Headers: []pipeline.Header{
				{Key: "a", Value: binary}, {Key: "a", Value: nil}, {Key: "", Value: []byte("x")},
			}},
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
	}
	records := make([]pipeline.Record, len(values))
	for i, v := range values {
		records[i] = pipeline.Record{Topic: "t", Offset: int64(i), Time: worldStart,
			Key: []byte("acme"), Value: []byte(v)}
	}
	for range 2 {
		if err := s.Archive(t.Context(), records); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	err := s.each(t.Context(), `SELECT concat(tenant, ' ', node, ' ', session, ' ',
		toString(time), ' ',
		ifNull(toString(gpu_util), '-'), ' ', ifNull(toString(mem_used_mib), '-'), ' ',
		ifNull(toString(power_w), '-'), ' ', ifNull(toString(temp_c), '-'), ' ',
		ifNull(toString(energy_j), '-'), ' ', toString(offset)) FROM telemetry FINAL ORDER BY offset`,
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
		"acme n s 2026-01-31 16:00:00.250 0.5 - 312.5 - 18750 0",
		"acme   1970-01-01 00:00:00.000 - - - - - 7",
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDeadLetters_comeBackByteForByte(t *testing.T) {
	s := store(t)
	letter := func(offset int64, tenant, reason string) pipeline.DeadLetter {
		return pipeline.DeadLetter{
			Record: pipeline.Record{Topic: "it's", Partition: 2, Offset: offset,
				Time: worldStart.Add(time.Duration(offset) * time.Second), Key: []byte(tenant),
				Value:   []byte("\x00\xff{'\\\n" + tenant),
				Headers: []pipeline.Header{{Key: "h'", Value: []byte{0, 1}}}},
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

func TestTouched_findsWhatWasWrittenSince(t *testing.T) {
	s, w, l := store(t), newWorld(t, 12), rating.NewLedger()
	w.run(t, 150)
	w.write(t, s, l)
	all, next, err := s.Touched(t.Context(), time.Time{})
	if err != nil || len(all) < 3 {
		t.Fatalf("periods %v, %v", all, err)
	}
	if age := time.Since(next); age < landing/2 || age > 2*landing {
		t.Errorf("next is %s ago", age)
	}
	again, _, err := s.Touched(t.Context(), next)
	if diff := gocmp.Diff(all, again); err != nil || diff != "" {
		t.Errorf("since next: %v\n%s", err, diff)
	}
	none, _, err := s.Touched(t.Context(), time.Now().Add(time.Hour))
	if err != nil || len(none) != 0 {
		t.Errorf("since an hour hence: %v, %v", none, err)
	}
	one, err := s.Sums(t.Context(), all[:1])
	if err != nil {
		t.Fatal(err)
	}
	want := make(rating.Sums)
	for charge, q := range l.Sums() {
		if charge.Tenant == all[0].Tenant && charge.Contract == all[0].Contract &&
			charge.Period == all[0].Period {
			want[charge] = q
		}
	}
	if diff := gocmp.Diff(texts(want), texts(one)); diff != "" {
		t.Errorf("sums of %+v (-want +got):\n%s", all[0], diff)
	}
	byName, err := s.AllSums(t.Context(), all[0].Tenant, all[0].Period)
	if diff := gocmp.Diff(texts(want), texts(byName)); err != nil || diff != "" {
		t.Errorf("AllSums of %+v: %v (-want +got):\n%s", all[0], err, diff)
	}
	empty, err := s.Sums(t.Context(), nil)
	if err != nil || len(empty) != 0 {
		t.Errorf("sums of nothing: %v, %v", empty, err)
	}
}

// exact has the largest and the most awkward numbers that events and prices may have.
func exact(t *testing.T, s *Store, tenant string, milli int64, seconds uint16, unit, amount string,
	per int64,
) {
	t.Helper()
	charge := rating.Charge{Tenant: tenant, Book: "b", SKU: "gpu", Purchase: "on_demand",
		Band: "standard", Period: "2026-01"}
	hour := rating.HourKey{SessionKey: rating.SessionKey{Tenant: tenant, Session: "s"},
		Hour: worldStart.Unix()}
	row := rating.Row{HourKey: hour, SKU: "gpu", Milli: milli,
		Used: metering.Set{{From: 0, To: seconds}}, Voided: metering.Set{{From: 1, To: 2}},
		Segments: []rating.Segment{
			{Charge: &charge, Billing: "2026-01", From: 0, To: seconds, Seconds: seconds},
			{Kind: rating.VoidSegment, Charge: &charge, Billing: "2026-01", From: 1, To: 2, Seconds: 1},
		}}
	changes := rating.Changes{Hours: []rating.Row{row},
		Sessions: []rating.SessionRow{{SessionKey: hour.SessionKey, SKU: "gpu", Milli: milli}}}
	if err := s.Write(t.Context(), &changes); err != nil {
		t.Fatal(err)
	}
	settled := rating.Settled{Charge: charge, Quantity: metering.HeldFor(milli, int64(seconds)-1),
		BaseUnit: "unit-second", UnitPrice: parseAmount(t, unit),
		Per: catalog.Per{Name: "x", Seconds: per},
		Amount: parseAmount(t, amount), Currency: "CNY"}
	key := pipeline.PeriodKey{Tenant: tenant, Period: "2026-01"}
	err := s.WriteSettlements(t.Context(), map[pipeline.PeriodKey][]rating.Settled{key: {settled}},
		worldStart)
	if err != nil {
		t.Fatal(err)
	}
	items, err := s.LineItems(t.Context(), LineItemFilter{Tenant: tenant})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][2]string{}
	rest := settled.Amount
	for i := range row.Segments {
		q := row.Segments[i].Quantity(milli)
		share := settled.Amount.MulRatio(q.Big(), settled.Quantity.Big(), money.Scale, money.Down)
		list := settled.UnitPrice.MulRatio(q.Big(), settled.Per.Nano(), money.Scale, money.Down)
		rest = rest.Sub(share)
		want[[]string{"usage", "void"}[i]] = [2]string{share.Fixed(money.Scale), list.Fixed(money.Scale)}
	}
	if rest.Sign() != 0 {
		want["rounding"] = [2]string{rest.Fixed(money.Scale), "0.000000000000"}
	}
	got := map[string][2]string{}
	for _, i := range items {
		got[i.Kind] = [2]string{i.Amount, i.ListAmount}
		if i.UnitPrice != settled.UnitPrice.String() {
			t.Errorf("unit price %s, want %s", i.UnitPrice, settled.UnitPrice)
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("held %d for %d s at %s, amount %s (-want +got):\n%s", milli, seconds, unit,
			amount, diff)
	}
	if spend, err := s.Spend(t.Context(), tenant, ""); err != nil || len(spend) != 1 ||
		spend[0].Amount != settled.Amount.Fixed(money.Scale) {
		t.Errorf("spend %+v, %v", spend, err)
	}
}

// parseAmount reads more digits than money.Parse takes.
func parseAmount(t *testing.T, text string) money.Amount {
	t.Helper()
	whole, fraction, _ := strings.Cut(text, ".")
	n, ok := new(big.Int).SetString(whole+fraction, 10)
	if !ok {
		t.Fatalf("%q is not a number", text)
	}
	return money.New(n, len(fraction))
}

func TestLineItems_exactAtTheLimits(t *testing.T) {
	s := store(t)
	exact(t, s, "t1", 3000, 3600, "30", "29.991666666667", 3600)
	// What literals and products of decimals would spoil.
	exact(t, s, "t2", 30_000_000, 3600, "1", "99999999999.9999", 3600)
	exact(t, s, "t3", 999_999_999_999_999_999, 3600, "0.000000000000000001", "1.234567890123", 1)
	exact(t, s, "t4", 999_999_999_999_999_999, 7, "12345.6789",
		"99999999999999999999999.999999999999", 3600)
	exact(t, s, "t5", 1, 3, "999999999999999.999999999999999999", "0.000000000001", 2_628_000)
	exact(t, s, "t6", 1, 3600, "0.123456789012345678901234567890123456",
		"999999999999999.999999999999", 86_400)
	exact(t, s, "t7", 7, 3600, "0", "0", 3600)
}

func TestWriteSettlements_refusesWhatColumnsDoNotHold(t *testing.T) {
	s := store(t)
	f := func(unit, amount, want string) {
		t.Helper()
		line := rating.Settled{UnitPrice: parseAmount(t, unit), Amount: parseAmount(t, amount),
			Per: catalog.Per{Name: "hour", Seconds: 3600}}
		err := s.WriteSettlements(t.Context(),
			map[pipeline.PeriodKey][]rating.Settled{{Tenant: "acme"}: {line}}, worldStart)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	f("1", "100000000000000000000000000", "more than 26 digits")
	f("1."+strings.Repeat("1", 37), "1", "more than 36 decimals")
	f("1"+strings.Repeat("0", 40), "1", "too large")
	f(strings.Repeat("9", 40)+"."+strings.Repeat("9", 36), "1", "too many digits")
}

func TestWriteSettlements_theLaterOneStaysWhole(t *testing.T) {
	s := store(t)
	line := func(sku, amount string) rating.Settled {
		return rating.Settled{Charge: rating.Charge{Tenant: "acme", SKU: sku, Period: "2026-01"},
			Quantity: quantity(1), UnitPrice: money.MustParse("1"), Amount: money.MustParse(amount),
			Per: catalog.Per{Name: "hour", Seconds: 3600}, Currency: "CNY"}
	}
	key := pipeline.PeriodKey{Tenant: "acme", Period: "2026-01"}
	f := func(asOf time.Time, want string, lines ...rating.Settled) {
		t.Helper()
		err := s.WriteSettlements(t.Context(), map[pipeline.PeriodKey][]rating.Settled{key: lines}, asOf)
		if err != nil {
			t.Fatal(err)
		}
		spend, err := s.Spend(t.Context(), "acme", "2026-01")
		got := ""
		for _, line := range spend {
			got += line.Amount
		}
		if err != nil || got != want {
			t.Errorf("spend %q, %v, want %q", got, err, want)
		}
	}
	f(worldStart, "3.000000000000", line("a", "1"), line("b", "2"))
	f(worldStart.Add(1), "5.000000000000", line("a", "5"))
	f(worldStart, "5.000000000000", line("a", "1"), line("b", "2"))
	f(worldStart.Add(2), "")
}

func TestLineItems_showUsageBeforeItIsSettled(t *testing.T) {
	s, w, l := store(t), newWorld(t, 13), rating.NewLedger()
	w.run(t, 50)
	w.write(t, s, l)
	items, err := s.LineItems(t.Context(), LineItemFilter{})
	if err != nil || len(items) == 0 {
		t.Fatalf("%d items, %v", len(items), err)
	}
	for _, i := range items {
		if i.Amount != "0.000000000000" || i.Currency != "" || i.Kind == "rounding" {
			t.Errorf("before it is settled: %+v", i)
		}
	}
	settle(t, s, w)
	top, err := s.TopLineItems(t.Context(), 3)
	if err != nil || len(top) != 3 || top[0].Currency != "CNY" {
		t.Errorf("top line items %+v, %v", top, err)
	}
}

func TestSpendDaily_addsUpToTheSettlements(t *testing.T) {
	s, w, l := store(t), newWorld(t, 14), rating.NewLedger()
	w.run(t, 150)
	w.write(t, s, l)
	settle(t, s, w)
	read := func(query string) string {
		var sum string
		if err := s.conn.QueryRow(t.Context(), query).Scan(&sum); err != nil {
			t.Fatal(err)
		}
		return sum
	}
	days := read("SELECT toString(sum(amount)) FROM spend_daily")
	bill := read("SELECT toString(sum(arraySum(amount))) FROM settlements FINAL")
	if days != bill || days == "0" {
		t.Errorf("days add up to %s, the bill to %s", days, bill)
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
