package notify_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/notify"
	"github.com/suanpan/suanpan/tests/mailtest"
)

// office starts an SMTP server that wants a login, and returns it with settings that reach it.
func office(t *testing.T, security mailtest.Security) (*mailtest.Server, *notify.EmailOptions) {
	t.Helper()
	authority := mailtest.NewAuthority(t)
	server := mailtest.Start(t, mailtest.Options{
		Security: security, Certificate: authority.Certificate(t), User: "suanpan", Password: "hunter2",
	})
	return server, &notify.EmailOptions{
		Addr: server.Addr, From: "Suanpan 算盘 <billing@suanpan.example>", Username: "suanpan",
		Password: text("hunter2"), TLS: authority.Trust(), Timeout: 5 * time.Second,
	}
}

// to is the channel of an address.
func to(address string) catalog.Channel {
	return catalog.Channel{Kind: catalog.Email, Target: address}
}

func TestEmail_arrivesByTLSInTwoLanguages(t *testing.T) {
	for _, mode := range []mailtest.Security{mailtest.STARTTLS, mailtest.Implicit} {
		p, o := office(t, mode)
		o.Implicit = mode == mailtest.Implicit
		channel := open(t, notify.GatewayOptions{Email: o}, to("ops@acme.example"))
		english, chinese := reached(), reached()
		chinese.Language, chinese.Title = "zh-CN", "预算 research 已用 80 %"
		chinese.Summary = "已用 <812.50> 美元。"
		for _, m := range []notify.Message{english, chinese} {
			if err := channel.Send(t.Context(), m); err != nil {
				t.Fatalf("%s: %v", mode, err)
			}
		}
		got := p.Letters()
		if len(got) != 2 || !got[0].TLS || got[0].From != "billing@suanpan.example" ||
			!slices.Equal(got[0].To, []string{"ops@acme.example"}) {
			t.Fatalf("%s: %+v", mode, got)
		}
		read := got[0].Read(t)
		if read.Subject != english.Title {
			t.Errorf("subject %q", read.Subject)
		}
		if id := read.Header.Get("Message-Id"); id != "<"+english.ID+"@suanpan.example>" {
			t.Errorf("message id %q", id)
		}
		if read.Header.Get("Auto-Submitted") != "auto-generated" {
			t.Errorf("header %v", read.Header)
		}
		contains(t, read.Text, english.Summary, "- Spend: 812.50 USD", english.Query,
			"Severity: warning · Status: firing · Tenant: acme", "2026-11-30 16:00:00 UTC")
		contains(t, read.HTML, `<html lang="en">`, "<h1", ">Share</th>", ">81.25 %</td>",
			"tenant = &#39;acme&#39; AND day &lt; &#39;2026-12-01&#39;")
		if read = got[1].Read(t); read.Subject != chinese.Title {
			t.Errorf("subject %q", read.Subject)
		}
		contains(t, read.Text, "依据：\n- Spend：812.50 USD", "级别：警告 · 状态：触发 · 租户：acme")
		contains(t, read.HTML, `<html lang="zh-Hans">`, "已用 &lt;812.50&gt; 美元。", "级别：警告")
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
	p, o := office(t, mailtest.STARTTLS)
	template := notify.Template{Name: "evil", Subject: "{{.Data.subject}}"}
	evil := reached()
	evil.Data = []byte(`{"subject":"Hello\r\nBcc: thief@example.com\r\n\r\nbody\u2028x\u0000y"}`)
	templates, err := notify.NewTemplates([]notify.Message{evil}, template)
	if err != nil {
		t.Fatal(err)
	}
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
	for _, l := range p.Letters() {
		read := l.Read(t)
		if read.Header.Get("Bcc") != "" || read.Header.Get("X-Evil") != "" || len(l.To) != 1 {
			t.Errorf("header %v, to %v", read.Header, l.To)
		}
		if len(read.Subject) > notify.MaxSubjectBytes ||
			strings.ContainsAny(read.Subject, "\r\n\x00\u2028") {
			t.Errorf("subject %q", read.Subject)
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
	if n := len(p.Letters()); n != 2 {
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
	f := func(security mailtest.Security, change func(o *notify.EmailOptions), want string) {
		t.Helper()
		p, o := office(t, security)
		change(o)
		err := letterTo(t, o)
		if outcome(err) != notify.Retry || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a word of %s", security, err, want)
		}
		if len(p.Letters()) != 0 {
			t.Errorf("%s: a letter arrived", security)
		}
	}
	f(mailtest.Plain, func(*notify.EmailOptions) {}, "STARTTLS")
	// Its certificate is not one of the system's.
	f(mailtest.STARTTLS, func(o *notify.EmailOptions) { o.TLS = nil }, "certificate")
}

func TestEmail_answersOfTheServerSayWhetherToTryAgain(t *testing.T) {
	f := func(
		name string, change func(*mailtest.Server, *notify.EmailOptions), want notify.Outcome, status int,
	) {
		t.Helper()
		p, o := office(t, mailtest.STARTTLS)
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
	// refuses answers recipients, or whole letters.
	refuses := func(whole bool, code int) func(*mailtest.Server, *notify.EmailOptions) {
		return func(p *mailtest.Server, _ *notify.EmailOptions) {
			p.Refuse(func(l *mailtest.Letter) error {
				if whole == (l.Raw != "") {
					return mailtest.Answer(code)
				}
				return nil
			})
		}
	}
	f("taken", func(*mailtest.Server, *notify.EmailOptions) {}, notify.Delivered, 0)
	f("no such user", refuses(false, 550), notify.Rejected, 550)
	f("greylisted", refuses(false, 451), notify.Retry, 451)
	f("spam", refuses(true, 554), notify.Rejected, 554)
	f("disk full", refuses(true, 452), notify.Retry, 452)
	f("wrong password", func(_ *mailtest.Server, o *notify.EmailOptions) {
		o.Password = text("hunter22")
	}, notify.Retry, 0)
	f("nobody there", func(_ *mailtest.Server, o *notify.EmailOptions) {
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
