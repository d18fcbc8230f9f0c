package metering

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseInstant_success(t *testing.T) {
	f := func(text string, want int64) {
		t.Helper()
		got, err := ParseInstant(text)
		if err != nil || int64(got) != want {
			t.Errorf("ParseInstant(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	f("1970-01-01T00:00:00Z", 0)
	f("1970-01-01T08:00:00+08:00", 0)
	f("1969-12-31T16:00:00-08:00", 0) // the instant counts, not its local year
	f("1970-01-01T00:00:00.000000001Z", 1)
	f("1970-01-01T00:00:00.1Z", 100_000_000)
	f("1970-01-01T00:00:00.120000000Z", 120_000_000)
	f("1970-01-01T23:59:00+23:59", 0)
	f("2000-02-29T00:00:00Z", 951_782_400*nanos)
	f("2024-02-29T23:59:59-00:00", 1_709_251_199*nanos)
	f("2026-01-05T10:00:00+08:00", 1_767_578_400*nanos)
	f("2099-12-31T23:59:59.999999999Z", MaxSecond*nanos-1)
	f("2100-01-01T07:59:59+08:00", (MaxSecond-1)*nanos)
}

func TestParseInstant_failure(t *testing.T) {
	f := func(want string, texts ...string) {
		t.Helper()
		for _, text := range texts {
			got, err := ParseInstant(text)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("ParseInstant(%q) = %v, error %v; want %q", text, got, err, want)
			}
		}
	}
	f("too short", "", "2026", "2026-01-05", "2026-01-05T02:00Z", "2026-01-05T02:00:00")
	f("separators", "2026/01/05T02:00:00Z", "2026-01-05t02:00:00Z", "2026-01-05 02:00:00Z",
		"2026-01-05T02.00:00Z", "2026-01-05T02:00-00Z", "+2026-01-05T02:00:00Z")
	f("not a number", "202x-01-05T02:00:00Z", "2026-0a-05T02:00:00Z", "2026-01- 5T02:00:00Z",
		"2026-01-05T+2:00:00Z", "2026-01-05T02:-1:00Z", "2026-01-05T02:00:0.Z0",
		"２0-01-05T02:00:00Z")
	f("no such date", "2026-00-05T02:00:00Z", "2026-13-05T02:00:00Z", "2026-01-00T02:00:00Z",
		"2026-01-32T02:00:00Z", "2026-04-31T02:00:00Z", "2026-02-29T02:00:00Z", // no leap year
		"2099-02-29T00:00:00Z", "2024-02-30T00:00:00Z", "2026-01-05T24:00:00Z",
		"2026-01-05T02:60:00Z", "2016-12-31T23:59:60Z") // leap seconds have no POSIX time
	f("fraction", "2026-01-05T02:00:00.Z", "2026-01-05T02:00:00.0000000001Z",
		"2026-01-05T02:00:00.0000000000Z")
	f("offset", "2026-01-05T02:00:00z", "2026-01-05T02:00:00,5Z", "2026-01-05T02:00:00+0800",
		"2026-01-05T02:00:00+08", "2026-01-05T02:00:00+24:00", "2026-01-05T02:00:00+08:60",
		"2026-01-05T02:00:00+8:000", "2026-01-05T02:00:00Z ", "2026-01-05T02:00:00+08:0x",
		"2026-01-05T02:00:00.5", "2026-01-05T02:00:00 08:00", "2026-01-05T02:00:00.5ZZ")
	f("1970 to 2099", "1969-12-31T23:59:59.999999999Z", "1970-01-01T00:00:00+00:01",
		"2100-01-01T00:00:00Z", "2099-12-31T23:59:59-00:01", "0000-01-01T00:00:00Z",
		"9999-12-31T23:59:59Z", "1900-02-28T00:00:00Z")
}

// Property: what is accepted means what the standard library says it means, and nothing that it
// accepts in our form and years is refused.
func TestParseInstant_agreesWithTimeParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := fmt.Sprintf("%04d-%02d-%02dT%02d:%02d:%02d",
			rapid.IntRange(1968, 2102).Draw(t, "year"), rapid.IntRange(0, 13).Draw(t, "month"),
			rapid.IntRange(0, 32).Draw(t, "day"), rapid.IntRange(0, 24).Draw(t, "hour"),
			rapid.IntRange(0, 60).Draw(t, "minute"), rapid.IntRange(0, 60).Draw(t, "second"))
		text += rapid.StringMatching(`(\.[0-9]{1,9})?`).Draw(t, "fraction")
		text += rapid.StringMatching(`Z|[+-](0[0-9]|1[0-9]|2[0-3]):[0-5][0-9]`).Draw(t, "offset")
		got, err := ParseInstant(text)
		want, wantErr := time.Parse(time.RFC3339Nano, text)
		valid := wantErr == nil && want.Unix() >= MinSecond && want.Unix() < MaxSecond
		if valid != (err == nil) {
			t.Fatalf("ParseInstant(%q) error %v, time.Parse %v", text, err, wantErr)
		}
		if valid && int64(got) != want.UnixNano() {
			t.Fatalf("ParseInstant(%q) = %v, want %v", text, got, want)
		}
		if valid && (got.Second() != want.Unix() || !got.Time().Equal(want)) {
			t.Fatalf("%q: Second() = %d, Time() = %v", text, got.Second(), got.Time())
		}
	})
}

// Property: parse(print(x)) = x.
func TestParseInstant_roundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Instant(rapid.Int64Range(MinSecond*nanos, MaxSecond*nanos-1).Draw(t, "instant"))
		got, err := ParseInstant(want.String())
		if err != nil || got != want {
			t.Fatalf("ParseInstant(%q) = %d, %v; want %d", want, got, err, want)
		}
	})
}

// Every day of the years that can be billed, as leap days are where a calendar goes wrong.
func TestParseInstant_everyDay(t *testing.T) {
	days := 0
	for second := MinSecond; second < MaxSecond; second += 86_400 {
		text := time.Unix(second, 0).UTC().Format(time.RFC3339)
		if got, err := ParseInstant(text); err != nil || got.Second() != second {
			t.Fatalf("ParseInstant(%q) = %v, %v", text, got, err)
		}
		days++
	}
	if days != 47_482 {
		t.Errorf("130 years have %d days", days)
	}
}

func TestInstant_secondIsFloor(t *testing.T) {
	for instant, want := range map[Instant]int64{
		0: 0, 1: 0, nanos - 1: 0, nanos: 1, -1: -1, -nanos: -1, -nanos - 1: -2,
	} {
		if got := instant.Second(); got != want {
			t.Errorf("Instant(%d).Second() = %d, want %d", instant, got, want)
		}
	}
}

func FuzzParseInstant(f *testing.F) {
	for _, seed := range []string{
		"", "2026-01-05T02:00:00Z", "2026-01-05T02:00:00.123456789+08:00", "2024-02-29T00:00:00-00:00",
		"2016-12-31T23:59:60Z", "2026-02-29T00:00:00Z", "2100-01-01T00:00:00+08:00",
		"2026-01-05t02:00:00z", "2026-01-05T02:00:00,5Z", "2026-01-05T02:00:00.Z",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseInstant(text)
		if err != nil {
			return
		}
		want, err := time.Parse(time.RFC3339Nano, text)
		if err != nil || want.UnixNano() != int64(got) {
			t.Errorf("ParseInstant(%q) = %v; time.Parse %v, %v", text, got, want, err)
		}
		if again, err := ParseInstant(got.String()); err != nil || again != got {
			t.Errorf("ParseInstant(%q) = %v, %v; want %v", got.String(), again, err, got)
		}
	})
}
