package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// words are severities and statuses in Chinese; in English they are themselves.
var words = map[string]string{
	string(Info): "提示", string(Warning): "警告", string(Critical): "严重",
	string(Firing): "触发", string(Resolved): "已恢复",
}

// view returns what templates see of a message.
func view(m Message) (View, error) {
	v := View{
		ID: m.ID, Alert: m.Alert, Type: m.Type, Tenant: m.Tenant, Language: m.Language,
		Severity: string(m.Severity), Status: string(m.Status), Time: m.Time, Since: m.since(),
		Title: m.Title, Summary: m.Summary, Query: m.Query, Evidence: m.Evidence, Labels: m.Labels,
	}
	if chinese(m.Language) {
		v.Severity, v.Status = words[v.Severity], words[v.Status]
	}
	if len(m.Data) == 0 {
		return v, nil
	}
	d := json.NewDecoder(bytes.NewReader(m.Data))
	d.UseNumber()
	if err := d.Decode(&v.Data); err != nil {
		return View{}, fmt.Errorf("decode data: %w", err)
	}
	return v, nil
}

// executor is a template, of text or of HTML.
type executor interface {
	Execute(w io.Writer, data any) error
}

// execute renders a template within a limit of bytes.
func execute(t executor, v View, limit int) (string, error) {
	w := limited{left: limit}
	if err := t.Execute(&w, v); err != nil {
		return "", err
	}
	return w.text.String(), nil
}

// limited is a writer that takes a bounded number of bytes.
type limited struct {
	text strings.Builder
	left int
}

// Write implements [io.Writer].
func (l *limited) Write(p []byte) (int, error) {
	if len(p) > l.left {
		return 0, fmt.Errorf("it makes more than the allowed bytes")
	}
	l.left -= len(p)
	return l.text.Write(p)
}

// oneLine returns s as a header may hold it: clean, with its blanks joined.
func oneLine(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, clean(s, len(s), false))
	return cut(strings.Join(strings.Fields(s), " "), limit)
}

// clean returns s as UTF-8, with blanks for control characters (line ends would begin another
// header), but for tabs and line ends where lines are allowed, and cut.
func clean(s string, limit int, lines bool) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case lines && (r == '\n' || r == '\t'):
			return r
		case unicode.IsControl(r):
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, " "))
	return cut(s, limit)
}

// cut shortens s to a number of bytes, of at least 3, between characters.
func cut(s string, limit int) string {
	const ellipsis = "…"
	if len(s) <= limit {
		return s
	}
	end := limit - len(ellipsis)
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis
}
