package metering

import (
	"fmt"
	"time"
)

// Instant is a point of time in nanoseconds since 1970-01-01T00:00:00Z. Events carry instants;
// everything that is billed is in whole seconds, see [Instant.Second].
type Instant int64

// The instants that an event may have: from 1970 until before 2100.
const (
	MinSecond int64 = 0
	MaxSecond int64 = 4_102_444_800
)

const nanos = 1_000_000_000

// InstantOf is the instant at which a whole second begins.
func InstantOf(second int64) Instant { return Instant(second * nanos) }

// Second is the whole second that the instant lies in.
func (i Instant) Second() int64 {
	s := int64(i) / nanos
	if int64(i)%nanos < 0 {
		s--
	}
	return s
}

// Time returns the instant in UTC.
func (i Instant) Time() time.Time { return time.Unix(0, int64(i)).UTC() }

// String prints the instant as RFC 3339 in UTC.
func (i Instant) String() string { return i.Time().Format(time.RFC3339Nano) }

// ParseInstant reads RFC 3339 with an offset and at most nine fraction digits, in the years 1970 to
// 2099.
func ParseInstant(s string) (Instant, error) {
	bad := func(why string) (Instant, error) {
		return 0, fmt.Errorf("%q is not a time such as 2026-01-05T02:00:00Z: %s", clip(s), why)
	}
	if len(s) < len("2006-01-02T15:04:05Z") {
		return bad("too short")
	}
	if s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' {
		return bad("its separators are not as in RFC 3339")
	}
	year, ok1 := number(s[0:4])
	month, ok2 := number(s[5:7])
	day, ok3 := number(s[8:10])
	hour, ok4 := number(s[11:13])
	minute, ok5 := number(s[14:16])
	second, ok6 := number(s[17:19])
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !ok6 {
		return bad("a part is not a number")
	}
	if month < 1 || month > 12 || day < 1 || day > daysIn(year, month) ||
		hour > 23 || minute > 59 || second > 59 {
		return bad("there is no such date or time of day")
	}
	fraction, rest, ok := parseFraction(s[19:])
	if !ok {
		return bad("its fraction has no digits, or more than nine")
	}
	offset, ok := parseOffset(rest)
	if !ok {
		return bad("its offset is not Z or ±hh:mm")
	}
	seconds := daysFromEpoch(year, month, day)*86_400 + hour*3600 + minute*60 + second - offset
	if seconds < MinSecond || seconds >= MaxSecond {
		return bad("only the years 1970 to 2099 can be billed")
	}
	return Instant(seconds*nanos + fraction), nil
}

func number(s string) (int64, bool) {
	var n int64
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, true
}

// parseFraction reads an optional ".123" in nanoseconds and returns what follows it.
func parseFraction(s string) (fraction int64, rest string, ok bool) {
	if s == "" || s[0] != '.' {
		return 0, s, true
	}
	end := 1
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	if end == 1 || end > 10 {
		return 0, "", false
	}
	fraction, _ = number(s[1:end])
	for range 10 - end {
		fraction *= 10
	}
	return fraction, s[end:], true
}

func parseOffset(s string) (seconds int64, ok bool) {
	if s == "Z" {
		return 0, true
	}
	if len(s) != 6 || s[0] != '+' && s[0] != '-' || s[3] != ':' {
		return 0, false
	}
	hours, ok1 := number(s[1:3])
	minutes, ok2 := number(s[4:6])
	if !ok1 || !ok2 || hours > 23 || minutes > 59 {
		return 0, false
	}
	seconds = hours*3600 + minutes*60
	if s[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}

func daysIn(year, month int64) int64 {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// daysFromEpoch counts the days from 1970-01-01 to a date of the proleptic Gregorian calendar. A
// year that begins in March puts the leap day last, so that a month's length needs no table.
func daysFromEpoch(year, month, day int64) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	era := year / 400
	yearOfEra := year - era*400
	dayOfYear := (153*(month-3)+2)/5 + day - 1
	dayOfEra := yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear
	return era*146_097 + dayOfEra - 719_468
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}
