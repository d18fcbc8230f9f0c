package clickhouse

import (
	"strings"
	"time"
)

// escapes are the bytes that ClickHouse's string literals do not take as they are.
var escapes = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\x00", `\0`)

// quote returns s, whatever its bytes, as a string literal.
func quote(s string) string { return "'" + escapes.Replace(s) + "'" }

// quoteTime returns an instant as an expression, to the millisecond.
func quoteTime(t time.Time) string {
	return "toDateTime64('" + t.UTC().Format("2006-01-02 15:04:05.000") + "', 3, 'UTC')"
}

// lists splits items into comma-separated lists that each fit into a statement.
func lists(items []string) []string {
	var out []string
	var list strings.Builder
	for _, item := range items {
		if list.Len() > 0 && list.Len()+len(item) >= maxQueryBytes/2 {
			out = append(out, list.String())
			list.Reset()
		}
		if list.Len() > 0 {
			list.WriteByte(',')
		}
		list.WriteString(item)
	}
	if list.Len() > 0 {
		out = append(out, list.String())
	}
	return out
}
