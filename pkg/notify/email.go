package notify

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/mail"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
)

// EmailOptions are the settings of the SMTP server that takes e-mail.
type EmailOptions struct {
	Addr string // host:port; port 465 usually wants Implicit
	From string // such as "Suanpan <billing@example.com>"
	// Username and Password log in; an empty Username does not. Password may be nil then.
	Username string
	Password Secret
	// Implicit speaks TLS from the first byte. Otherwise the connection begins plain and must
	// become TLS (STARTTLS) before anything is said.
	Implicit bool
	// TLS are the roots and certificates; nil is the system's, with TLS 1.2 at least.
	TLS *tls.Config
	// Timeout bounds each of connecting and sending. Default: 15 s.
	Timeout time.Duration
	// Templates returns the words of a message that is about to be sent; nil is the built-in ones.
	// Several goroutines call it.
	Templates func() *Templates
}

// mailer sends by one SMTP server.
type mailer struct {
	options    EmailOptions
	host, name string // name is the mail domain: what From has after @
	port       int
	from       *mail.Address
	log        *slog.Logger
}

func newMailer(o EmailOptions, log *slog.Logger) (*mailer, error) {
	host, port, err := net.SplitHostPort(o.Addr)
	if err != nil {
		return nil, fmt.Errorf("parse address of the SMTP server: %w", err)
	}
	s := &mailer{options: o, host: host, log: log}
	if s.port, err = strconv.Atoi(port); err != nil || s.port < 1 || s.port > 65535 {
		return nil, fmt.Errorf("parse address of the SMTP server: port %q is not 1 to 65535", port)
	}
	if s.from, err = parseAddress(o.From); err != nil {
		return nil, fmt.Errorf("parse sender of e-mail: %w", err)
	}
	s.name = s.from.Address[strings.LastIndexByte(s.from.Address, '@')+1:]
	if o.Username != "" && o.Password == nil {
		return nil, errors.New("open e-mail: there is a user name and no password")
	}
	if s.options.Timeout <= 0 {
		s.options.Timeout = 15 * time.Second
	}
	if s.options.Templates == nil {
		s.options.Templates = func() *Templates { return &Templates{} }
	}
	s.options.TLS = &tls.Config{}
	if o.TLS != nil {
		s.options.TLS = o.TLS.Clone()
	}
	s.options.TLS.MinVersion = max(s.options.TLS.MinVersion, tls.VersionTLS12)
	if s.options.TLS.ServerName == "" {
		s.options.TLS.ServerName = host
	}
	return s, nil
}

// parseAddress reads one address; the name before it may have any characters but controls.
func parseAddress(text string) (*mail.Address, error) {
	a, err := mail.ParseAddress(text)
	if err != nil {
		return nil, err
	}
	if oneLine(a.Name, len(a.Name)+1) != a.Name || oneLine(a.Address, len(a.Address)+1) != a.Address {
		return nil, errors.New("it has control characters or blanks in a row")
	}
	return a, nil
}

// recipient is one e-mail address.
type recipient struct {
	mailer *mailer
	to     string
}

// Send makes one attempt. The Message-ID is that of the message, so that a repeat is known.
func (r *recipient) Send(ctx context.Context, m Message) error {
	to, err := parseAddress(r.to)
	if err != nil || to.Name != "" {
		return rejected("recipient is not an e-mail address")
	}
	s := r.mailer
	words, err := s.options.Templates().Render(m)
	if err != nil {
		s.log.WarnContext(ctx, "built-in words are used instead of a template that failed",
			"message", m.ID, "type", m.Type, "error", err)
	}
	letter := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	letter.FromMailAddress(s.from)
	letter.ToMailAddress(to)
	letter.Subject(words.Subject)
	letter.SetDateWithValue(m.Time)
	letter.SetMessageIDWithValue(m.ID + "@" + s.name)
	letter.SetGenHeader("Auto-Submitted", "auto-generated")
	letter.SetBodyString(gomail.TypeTextPlain, words.Text)
	letter.AddAlternativeString(gomail.TypeTextHTML, words.HTML)
	client, stop, err := s.client(ctx)
	if err != nil {
		return fmt.Errorf("open SMTP client: %w", err)
	}
	defer stop()
	err = client.DialAndSendWithContext(ctx, letter)
	if err == nil || letter.IsDelivered() { // then it was the goodbye that failed
		return nil
	}
	return smtpFailure(err)
}

// client returns a client for one attempt, whose connection ends with ctx, and what to call when
// it is done.
func (s *mailer) client(ctx context.Context) (*gomail.Client, func(), error) {
	o := s.options
	done := func() {}
	dial := func(ctx2 context.Context, network, address string) (net.Conn, error) {
		plain, err := (&net.Dialer{}).DialContext(ctx2, network, address)
		if err != nil {
			return nil, err
		}
		// The library looks at ctx only while it dials, and forgets connections of failed logins.
		stop := context.AfterFunc(ctx, func() { _ = plain.Close() })
		done = func() { stop(); _ = plain.Close() }
		if o.Implicit {
			return tls.Client(plain, o.TLS), nil
		}
		return plain, nil
	}
	options := []gomail.Option{
		gomail.WithPort(s.port), gomail.WithTimeout(o.Timeout), gomail.WithHELO(s.name),
		gomail.WithTLSConfig(o.TLS), gomail.WithDialContextFunc(dial),
		gomail.WithTLSPolicy(gomail.TLSMandatory),
	}
	if o.Implicit {
		options = append(options, gomail.WithSSL())
	}
	if o.Username != "" {
		options = append(options, gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthSCRAMSHA256,
			gomail.SMTPAuthSCRAMSHA1, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin),
			gomail.WithUsername(o.Username), gomail.WithPassword(o.Password.Reveal()))
	}
	client, err := gomail.NewClient(s.host, options...)
	return client, func() { done() }, err
}

// smtpFailure says what a failed attempt means. Only what the server says of this recipient or
// this message is for ever; the rest is trouble with the server, which somebody will mend.
func smtpFailure(err error) error {
	e, ok := errors.AsType[*gomail.SendError](err)
	if !ok {
		return err
	}
	code := e.ErrorCode()
	outcome := Retry
	about := e.Reason == gomail.ErrSMTPRcptTo || e.Reason == gomail.ErrSMTPData ||
		e.Reason == gomail.ErrSMTPDataClose
	if about && code >= 500 && code < 600 {
		outcome = Rejected
	}
	return &SendError{Outcome: outcome, Status: code, Err: err}
}
