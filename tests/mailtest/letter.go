package mailtest

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"testing"
)

// Mail is a letter as its reader sees it.
type Mail struct {
	Header  mail.Header
	Subject string
	Text    string
	HTML    string
}

// Read takes a letter apart: one of text and HTML, both in UTF-8, as ours are.
func (l *Letter) Read(t testing.TB) Mail {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(l.Raw))
	if err != nil {
		t.Fatal(err)
	}
	read := Mail{Header: m.Header}
	if read.Subject, err = new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); err != nil {
		t.Fatal(err)
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("content type %q, error %v", kind, err)
	}
	reader := multipart.NewReader(m.Body, params["boundary"])
	for n := 0; ; n++ {
		part, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			if n != 2 {
				t.Errorf("the letter has %d parts", n)
			}
			return read
		}
		if err != nil {
			t.Fatal(err)
		}
		text := decode(t, part)
		switch kind, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type")); {
		case kind == "text/plain" && n == 0:
			read.Text = text
		case kind == "text/html" && n == 1: // the last one is what is shown
			read.HTML = text
		default:
			t.Errorf("part %d is %s", n, kind)
		}
	}
}

func decode(t testing.TB, part *multipart.Part) string {
	t.Helper()
	_, params, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
	if err != nil || !strings.EqualFold(params["charset"], "utf-8") ||
		part.Header.Get("Content-Transfer-Encoding") != "quoted-printable" {
		t.Fatalf("part %v, error %v", part.Header, err)
	}
	text, err := io.ReadAll(quotedprintable.NewReader(part))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}
