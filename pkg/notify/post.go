package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"syscall"
	"time"
)

// HTTPOptions are the settings of everything that is sent by HTTP.
type HTTPOptions struct {
	// Allowed are networks that may be connected to although they are not public.
	Allowed []netip.Prefix
	// AllowPlain also takes http URLs, which anybody on the way can read.
	AllowPlain bool
	// TLS are the roots, certificates and the least version (default: the system's, TLS 1.2).
	TLS *tls.Config
	// Timeout bounds one attempt, from the resolver to the end of the response. Default: 15 s.
	Timeout time.Duration
	// Resolver resolves names. Default: the system's.
	Resolver *net.Resolver
	// Now is the clock of timestamps. Default: time.Now.
	Now func() time.Time
}

// Bounds of what a receiver may make us read.
const (
	maxResponseBytes = 64 << 10
	maxHeaderBytes   = 64 << 10
)

// overloaded is the least pause after a status by which a receiver or what is before it says
// that it cannot keep up.
const overloaded = time.Minute

// poster posts JSON. It follows no redirect, uses no proxy, keeps no connection, and connects only
// to addresses that its guard lets pass.
type poster struct {
	client *http.Client
	guard  guard
	plain  bool
	now    func() time.Time
}

func newPoster(o HTTPOptions) *poster {
	p := &poster{guard: guard{o.Allowed}, plain: o.AllowPlain, now: o.Now}
	if p.now == nil {
		p.now = time.Now
	}
	timeout := o.Timeout
	if timeout <= 0 {
		timeout = 15 * time.Second
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.TLS != nil {
		secure = o.TLS.Clone()
		secure.MinVersion = max(secure.MinVersion, tls.VersionTLS12)
	}
	dialer := &net.Dialer{
		Timeout:  timeout,
		Resolver: o.Resolver,
		// Here names are resolved: what is checked is what is connected to.
		Control: func(_, address string, _ syscall.RawConn) error {
			return p.guard.checkDial(address)
		},
	}
	p.client = &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSClientConfig:        secure,
			TLSHandshakeTimeout:    timeout,
			ResponseHeaderTimeout:  timeout,
			MaxResponseHeaderBytes: maxHeaderBytes,
			DisableKeepAlives:      true, // receivers are many and messages are few
			DisableCompression:     true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
	return p
}

// post sends a body and returns nil for a status of 2xx.
func (p *poster) post(ctx context.Context, target string, header http.Header, body []byte) error {
	u, err := p.guard.checkURL(target, p.plain)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return rejected("malformed URL")
	}
	request.Header = header.Clone()
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "Suanpan")
	response, err := p.client.Do(request)
	if err != nil {
		return fmt.Errorf("post to %s: %w", u.Host, withoutURL(err))
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode/100 == 2 {
		return nil // whatever the body says
	}
	_, _ = io.CopyN(io.Discard, response.Body, maxResponseBytes)
	return p.failure(u.Host, response)
}

// failure says what a status other than 2xx means.
func (p *poster) failure(host string, response *http.Response) error {
	e := &SendError{Outcome: Retry, Status: response.StatusCode}
	e.Err = fmt.Errorf("post to %s: %s", host, http.StatusText(e.Status))
	switch status := e.Status; {
	case status == http.StatusGone:
		e.Outcome = Disabled
	case status/100 == 3:
		e.Err = fmt.Errorf("post to %s: redirects are not followed", host)
	case status == http.StatusTooManyRequests, status == http.StatusBadGateway,
		status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		e.After = overloaded
	}
	if e.Outcome == Retry {
		e.After = max(e.After, retryAfter(response.Header.Get("Retry-After"), p.now()))
	}
	return e
}

// retryAfter reads the header of that name: seconds or a date; 0 for what is neither.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// withoutURL takes the URL off an error: its path may be a secret.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
