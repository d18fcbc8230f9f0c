package notify_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/notify"
)

// postOffice is a real SMTP server on loopback. It wants a login, and TLS before it.
type postOffice struct {
	addr    string
	trust   *tls.Config
	mu      sync.Mutex
	letters []letter
	refuse  func(to string) error // by recipient; nil takes all
	content func() error          // at the end of a letter
}

// letter is one that the server took.
type letter struct {
	from string
	to   []string
	raw  string
	tls  bool
}

// office starts a server that speaks TLS from the first byte, or by STARTTLS, or not at all.
func office(t *testing.T, mode string) *postOffice {
	t.Helper()
	own, pool := certificate(t)
	p := &postOffice{trust: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	server := smtp.NewServer(p)
	server.Domain, server.ReadTimeout, server.WriteTimeout = "localhost", 5*time.Second, 5*time.Second
	server.EnableSMTPUTF8 = true
	server.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.addr = listener.Addr().String()
	secure := &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}
	switch mode {
	case "starttls":
		server.TLSConfig = secure
	case "implicit":
		listener = tls.NewListener(listener, secure)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return p
}

// all returns the letters so far.
func (p *postOffice) all() []letter {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.letters)
}

// settings are those that reach it.
func (p *postOffice) settings() *notify.EmailOptions {
	return &notify.EmailOptions{
		Addr: p.addr, From: "Suanpan 算盘 <billing@suanpan.example>", Username: "suanpan",
		Password: text("hunter2"), TLS: p.trust, Timeout: 5 * time.Second,
	}
}

// NewSession implements smtp.Backend.
func (p *postOffice) NewSession(c *smtp.Conn) (smtp.Session, error) {
	return &smtpSession{office: p, conn: c}, nil
}

type smtpSession struct {
	office *postOffice
	conn   *smtp.Conn
	login  bool
	letter letter
}

func (s *smtpSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *smtpSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, username, password string) error {
		if username != "suanpan" || password != "hunter2" {
			return smtp.ErrAuthFailed
		}
		s.login = true
		return nil
	}), nil
}

func (s *smtpSession) Mail(from string, _ *smtp.MailOptions) error {
	if !s.login {
		return smtp.ErrAuthRequired
	}
	_, secure := s.conn.TLSConnectionState()
	s.letter = letter{from: from, tls: secure}
	return nil
}

func (s *smtpSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	if s.office.refuse != nil {
		if err := s.office.refuse(to); err != nil {
			return err
		}
	}
	s.letter.to = append(s.letter.to, to)
	return nil
}

func (s *smtpSession) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if s.office.content != nil {
		if err := s.office.content(); err != nil {
			return err
		}
	}
	s.letter.raw = string(raw)
	s.office.mu.Lock()
	defer s.office.mu.Unlock()
	s.office.letters = append(s.office.letters, s.letter)
	return nil
}

func (s *smtpSession) Reset() {}

func (s *smtpSession) Logout() error { return nil }

// to is the channel of an address.
func to(address string) catalog.Channel {
	return catalog.Channel{Kind: catalog.Email, Target: address}
}

// parts reads a letter: its header and its parts by type.
func parts(t *testing.T, raw string) (mail.Header, map[string]string) {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("content type %q, error %v", kind, err)
	}
	found := make(map[string]string)
	reader := multipart.NewReader(m.Body, params["boundary"])
	for {
		part, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return m.Header, found
		}
		if err != nil {
			t.Fatal(err)
		}
		kind, params, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
		if err != nil || !strings.EqualFold(params["charset"], "utf-8") ||
			part.Header.Get("Content-Transfer-Encoding") != "quoted-printable" {
			t.Fatalf("part %v, error %v", part.Header, err)
		}
		text, err := io.ReadAll(quotedprintable.NewReader(part))
		if err != nil {
			t.Fatal(err)
		}
		found[kind] = strings.ReplaceAll(string(text), "\r\n", "\n")
	}
}

// subject returns a letter's subject, decoded.
func subject(t *testing.T, h mail.Header) string {
	t.Helper()
	s, err := new(mime.WordDecoder).DecodeHeader(h.Get("Subject"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEmail_arrivesByTLSInTwoLanguages(t *testing.T) {
	for _, mode := range []string{"starttls", "implicit"} {
		p := office(t, mode)
		o := p.settings()
		o.Implicit = mode == "implicit"
		channel := open(t, notify.GatewayOptions{Email: o}, to("ops@acme.example"))
		english, chinese := reached(), reached()
		chinese.Language, chinese.Title = "zh-CN", "预算 research 已用 80 %"
		chinese.Summary = "已用 <812.50> 美元。"
		for _, m := range []notify.Message{english, chinese} {
			if err := channel.Send(t.Context(), m); err != nil {
				t.Fatalf("%s: %v", mode, err)
			}
		}
		got := p.all()
		if len(got) != 2 || !got[0].tls || got[0].from != "billing@suanpan.example" ||
			!slices.Equal(got[0].to, []string{"ops@acme.example"}) {
			t.Fatalf("%s: %+v", mode, got)
		}
		header, body := parts(t, got[0].raw)
		if s := subject(t, header); s != english.Title {
			t.Errorf("subject %q", s)
		}
		if id := header.Get("Message-Id"); id != "<"+english.ID+"@suanpan.example>" {
			t.Errorf("message id %q", id)
		}
		if header.Get("Auto-Submitted") != "auto-generated" {
			t.Errorf("header %v", header)
		}
		contains(t, body["text/plain"], english.Summary, "- Spend: 812.50 USD", english.Query,
			"Severity: warning · Status: firing · Tenant: acme", "2026-11-30 16:00:00 +00:00")
		contains(t, body["text/html"], `<html lang="en">`, "<h1", ">Share</th>", ">81.25 %</td>",
			"tenant = &#39;acme&#39; AND day &lt; &#39;2026-12-01&#39;")
		header, body = parts(t, got[1].raw)
		if s := subject(t, header); s != chinese.Title {
			t.Errorf("subject %q", s)
		}
		contains(t, body["text/plain"], "依据：\n- Spend：812.50 USD", "级别：警告 · 状态：触发 · 租户：acme")
		contains(t, body["text/html"], `<html lang="zh-Hans">`, "已用 &lt;812.50&gt; 美元。", "级别：警告")
	}
}

// contains reports what a text lacks.
func contains(t *testing.T, s string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(s, want) {
			t.Errorf("there is no %q in:\n%s", want, s)
		}
	}
}

// Whatever a message, a template or an address holds, a letter has the headers of any letter.
func TestEmail_headersCannotBeInjected(t *testing.T) {
	p := office(t, "starttls")
	template := notify.Template{Name: "evil", Subject: "{{.Data.subject}}"}
	evil := reached()
	evil.Data = []byte(`{"subject":"Hello\r\nBcc: thief@example.com\r\n\r\nbody\u2028x\u0000y"}`)
	templates, err := notify.NewTemplates([]notify.Message{evil}, template)
	if err != nil {
		t.Fatal(err)
	}
	o := p.settings()
	o.Templates = func() *notify.Templates { return templates }
	options := notify.GatewayOptions{Email: o}
	if err := open(t, options, to("ops@acme.example")).Send(t.Context(), evil); err != nil {
		t.Fatal(err)
	}
	o.Templates = nil // Send does not rely on Validate here
	evil.Title = "Hi\r\nBcc: thief@example.com\nX-Evil: 1\r\n\r\n" + strings.Repeat("算", 200)
	if err := open(t, options, to("ops@acme.example")).Send(t.Context(), evil); err != nil {
		t.Fatal(err)
	}
	for _, l := range p.all() {
		header, body := parts(t, l.raw)
		if header.Get("Bcc") != "" || header.Get("X-Evil") != "" || len(body) != 2 ||
			len(l.to) != 1 {
			t.Errorf("header %v, %d parts, to %v", header, len(body), l.to)
		}
		if s := subject(t, header); len(s) > notify.MaxSubjectBytes ||
			strings.ContainsAny(s, "\r\n\x00\u2028") {
			t.Errorf("subject %q", s)
		}
	}
	for _, address := range []string{
		"ops@acme.example\r\nBcc: thief@example.com", "ops@acme.example\nRCPT TO:<thief@example.com>",
		"a@acme.example, b@acme.example", "Ops <ops@acme.example>", "ops", "",
		"ops@acme.example>\r\nDATA", "\"a\r\nb\"@acme.example",
	} {
		if err := open(t, options, to(address)).Send(t.Context(), reached()); outcome(err) !=
			notify.Rejected {
			t.Errorf("%q: %v, want it rejected", address, err)
		}
	}
	if n := len(p.all()); n != 2 {
		t.Errorf("%d letters", n)
	}
}

// letterTo sends a letter by a server.
func letterTo(t *testing.T, o *notify.EmailOptions) error {
	t.Helper()
	channel := open(t, notify.GatewayOptions{Email: o}, to("ops@acme.example"))
	return channel.Send(t.Context(), reached())
}

func TestEmail_isNeverSentWithoutTLS(t *testing.T) {
	p := office(t, "plain")
	o := p.settings()
	err := letterTo(t, o)
	if outcome(err) != notify.Retry || !strings.Contains(err.Error(), "STARTTLS") {
		t.Errorf("a server without TLS: %v", err)
	}
	p = office(t, "starttls")
	o = p.settings()
	o.TLS = nil // its certificate is not one of the system's
	err = letterTo(t, o)
	if outcome(err) != notify.Retry || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown certificate: %v", err)
	}
	if len(p.all()) != 0 {
		t.Error("a letter arrived")
	}
}

func TestEmail_answersOfTheServerSayWhetherToTryAgain(t *testing.T) {
	f := func(
		name string, change func(*postOffice, *notify.EmailOptions), want notify.Outcome, status int,
	) {
		t.Helper()
		p := office(t, "starttls")
		o := p.settings()
		change(p, o)
		err := letterTo(t, o)
		got := 0
		if e, ok := errors.AsType[*notify.SendError](err); ok {
			got = e.Status
		}
		if outcome(err) != want || got != status {
			t.Errorf("%s: %v (status %d), want %s, %d", name, err, got, want, status)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the password: %v", name, err)
		}
	}
	answer := func(code int) error {
		enhanced := smtp.EnhancedCode{code / 100, 1, 1}
		return &smtp.SMTPError{Code: code, EnhancedCode: enhanced, Message: "no"}
	}
	f("taken", func(*postOffice, *notify.EmailOptions) {}, notify.Delivered, 0)
	f("no such user", func(p *postOffice, _ *notify.EmailOptions) {
		p.refuse = func(string) error { return answer(550) }
	}, notify.Rejected, 550)
	f("greylisted", func(p *postOffice, _ *notify.EmailOptions) {
		p.refuse = func(string) error { return answer(451) }
	}, notify.Retry, 451)
	f("spam", func(p *postOffice, _ *notify.EmailOptions) {
		p.content = func() error { return answer(554) }
	}, notify.Rejected, 554)
	f("disk full", func(p *postOffice, _ *notify.EmailOptions) {
		p.content = func() error { return answer(452) }
	}, notify.Retry, 452)
	f("wrong password", func(_ *postOffice, o *notify.EmailOptions) {
		o.Password = text("hunter22")
	}, notify.Retry, 0)
	f("nobody there", func(_ *postOffice, o *notify.EmailOptions) {
		o.Addr = "127.0.0.1:1"
	}, notify.Retry, 0)
}

func TestEmail_silentServerHoldsNobody(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	o := &notify.EmailOptions{Addr: listener.Addr().String(), From: "a@b.example"}
	channel := open(t, notify.GatewayOptions{Email: o}, to("ops@acme.example"))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := channel.Send(ctx, reached()); err == nil {
		t.Error("silence counts as delivered")
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestNewGateway_wrongSettingsOfEmail(t *testing.T) {
	for name, o := range map[string]notify.EmailOptions{
		"no port":     {Addr: "localhost", From: "a@b.example"},
		"port 0":      {Addr: "localhost:0", From: "a@b.example"},
		"no sender":   {Addr: "localhost:25"},
		"two lines":   {Addr: "localhost:25", From: "a\r\nBcc: x@y.example <a@b.example>"},
		"no password": {Addr: "localhost:25", From: "a@b.example", Username: "a"},
	} {
		if _, err := notify.NewGateway(quiet(), notify.GatewayOptions{Email: &o}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	g, err := notify.NewGateway(quiet(), notify.GatewayOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Open(to("ops@acme.example")); outcome(err) != notify.Retry {
		t.Errorf("e-mail without a server: %v", err)
	}
	if _, err := g.Open(catalog.Channel{Kind: "pigeon"}); outcome(err) != notify.Rejected {
		t.Errorf("an unknown kind: %v", err)
	}
}
