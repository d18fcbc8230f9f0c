// Package mailtest runs a real SMTP server on loopback for tests, with a certificate of an
// authority that nobody trusts who was not told to. It refuses what a test wants refused, and keeps
// the letters that it took as they came.
package mailtest

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// Security is how a server speaks TLS.
type Security string

// The kinds of security.
const (
	STARTTLS Security = "starttls" // it begins plain and offers TLS
	Implicit Security = "implicit" // TLS from the first byte
	Plain    Security = "plain"    // none at all
)

// Options are what a server is like. Certificate is needed unless it is plain.
type Options struct {
	Addr        string // to listen at; "" is a free port of 127.0.0.1
	Security    Security
	Certificate tls.Certificate
	// User and Password must be given before a letter; an empty User lets everybody in.
	User, Password string
}

// Server is a running SMTP server. Its methods may be called by several goroutines.
type Server struct {
	Addr string // host:port

	options Options
	mu      sync.Mutex
	letters []Letter
	refuse  func(l *Letter) error
}

// Letter is one that the server was given.
type Letter struct {
	From string
	To   []string
	Raw  string // header and body; "" while only its recipients are known
	TLS  bool   // it came over TLS
}

// Start starts a server that ends with the test.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", o.Addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Addr: listener.Addr().String(), options: o}
	server := smtp.NewServer(s)
	server.Domain, server.ReadTimeout, server.WriteTimeout = "localhost", 5*time.Second, 5*time.Second
	server.EnableSMTPUTF8 = true
	server.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secure := &tls.Config{Certificates: []tls.Certificate{o.Certificate}, MinVersion: tls.VersionTLS12}
	switch o.Security {
	case STARTTLS:
		server.TLSConfig = secure
	case Implicit:
		listener = tls.NewListener(listener, secure)
	case Plain:
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }() // ends with Close
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-served; err != nil {
			t.Errorf("serve SMTP: %v", err)
		}
	})
	return s
}

// Refuse has the server ask why after each recipient and at the end of each letter. An error other
// than nil refuses it: see [Answer].
func (s *Server) Refuse(why func(l *Letter) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = why
}

// Answer is an answer by which a server refuses, such as 451: try again later.
func Answer(code int) error {
	return &smtp.SMTPError{
		Code: code, EnhancedCode: smtp.EnhancedCode{code / 100, 1, 1}, Message: "no",
	}
}

// Letters returns the letters that it took so far.
func (s *Server) Letters() []Letter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.letters)
}

// take judges a letter, and keeps it where it is whole and not refused.
func (s *Server) take(l *Letter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		if err := s.refuse(l); err != nil {
			return err
		}
	}
	if l.Raw != "" {
		s.letters = append(s.letters, *l)
	}
	return nil
}

// NewSession implements smtp.Backend.
func (s *Server) NewSession(c *smtp.Conn) (smtp.Session, error) {
	return &session{server: s, conn: c}, nil
}

// session is one conversation.
type session struct {
	server *Server
	conn   *smtp.Conn
	login  bool
	letter Letter
}

// AuthMechanisms implements smtp.AuthSession.
func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

// Auth implements smtp.AuthSession.
func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != s.server.options.User || password != s.server.options.Password {
			return smtp.ErrAuthFailed
		}
		s.login = true
		return nil
	}), nil
}

// Mail implements smtp.Session.
func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.server.options.User != "" && !s.login {
		return smtp.ErrAuthRequired
	}
	_, secure := s.conn.TLSConnectionState()
	s.letter = Letter{From: from, TLS: secure}
	return nil
}

// Rcpt implements smtp.Session.
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	l := s.letter
	l.To = append(slices.Clone(l.To), to)
	if err := s.server.take(&l); err != nil {
		return err
	}
	s.letter = l
	return nil
}

// Data implements smtp.Session.
func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	l := s.letter
	l.Raw = string(raw)
	return s.server.take(&l)
}

// Reset implements smtp.Session.
func (s *session) Reset() {}

// Logout implements smtp.Session.
func (s *session) Logout() error { return nil }
