package notify_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/notify"
)

// nameServer is a resolver whose server answers the n-th question for an address by answer(n).
func nameServer(t *testing.T, answer func(n int) [4]byte) *net.Resolver {
	t.Helper()
	var asked atomic.Int64
	dial := func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			var size [2]byte
			for {
				if _, err := there.Read(size[:]); err != nil {
					return
				}
				query := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := there.Read(query); err != nil {
					return
				}
				reply := respond(t, query, func() [4]byte { return answer(int(asked.Add(1))) })
				// One write: a pipe hands over each on its own.
				out := binary.BigEndian.AppendUint16(nil, uint16(len(reply)))
				if _, err := there.Write(append(out, reply...)); err != nil {
					return
				}
			}
		}()
		return here, nil
	}
	return &net.Resolver{PreferGo: true, Dial: dial}
}

// respond answers one DNS query: A by address, all else by nothing.
func respond(t *testing.T, query []byte, address func() [4]byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		t.Error(err)
		return nil
	}
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
			Body:   &dnsmessage.AResource{A: address()},
		}}
	}
	reply, err := m.Pack()
	if err != nil {
		t.Error(err)
	}
	return reply
}

// outcome returns what an error of Send says.
func outcome(err error) notify.Outcome {
	if err == nil {
		return notify.Delivered
	}
	if e, ok := errors.AsType[*notify.SendError](err); ok {
		return e.Outcome
	}
	return notify.Retry
}

func TestWebhook_privateAddressesAreRefusedInEveryForm(t *testing.T) {
	r := receive(t, nil)
	o := trusting(t, r)
	o.HTTP.Allowed = nil
	_, port, err := net.SplitHostPort(strings.TrimPrefix(r.URL, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{
		"127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255",
		"192.168.1.1", "169.254.169.254", "100.64.0.1", "100.127.255.255", "224.0.0.1",
		"239.255.255.255", "255.255.255.255", "240.0.0.1", "192.0.2.1", "198.18.0.1",
		"[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:8.8.8.8]",
		"[0:0:0:0:0:ffff:a00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b::8.8.8.8]",
		"[64:ff9b:1::1]", "[fe80::1]", "[fe80::1%25lo]", "[fc00::1]", "[fd12:3456::1]", "[fec0::1]",
		"[ff02::1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]", "[2001:db8::1]", "[100::1]",
		"2130706433", "0x7f000001", "0X7F000001", "017700000001", "0177.0.0.1", "127.1", "127.0.1",
		"0x7f.0.0.1", "127.0.0.0x1", "127.0.0.1.", "1", "0", "0x",
	} {
		to := catalog.Channel{Kind: catalog.Webhook, Target: "https://" + host + ":" + port + "/"}
		if err := open(t, o, to).Send(t.Context(), reached()); outcome(err) != notify.Rejected {
			t.Errorf("%s: %v, want it refused", host, err)
		}
	}
	for _, target := range []string{
		"https://user:secret@example.com/", "https:///path", "https:example.com", "ftp://example.com/",
		"file:///etc/passwd", "gopher://127.0.0.1/", "https://exa mple.com/", "",
	} {
		to := catalog.Channel{Kind: catalog.Webhook, Target: target}
		if err := open(t, o, to).Send(t.Context(), reached()); outcome(err) != notify.Rejected {
			t.Errorf("%s: %v, want it rejected", target, err)
		}
	}
	// A name is judged when it is resolved, and may be better tomorrow.
	to := catalog.Channel{Kind: catalog.Webhook, Target: "https://localhost:" + port + "/"}
	if err := open(t, o, to).Send(t.Context(), reached()); outcome(err) != notify.Retry ||
		!strings.Contains(err.Error(), "not a public one") {
		t.Errorf("localhost: %v", err)
	}
	if n := len(r.all()); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

// A name server that shows a public address first and a private one afterwards gains nothing: the
// address that is checked is the one that is connected to, at each attempt.
func TestWebhook_reboundNameIsRefused(t *testing.T) {
	r := receive(t, nil)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(r.URL, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	to := catalog.Channel{Kind: catalog.Webhook, Target: "https://hook.example.com:" + port + "/"}
	o := trusting(t, r) // the certificate of httptest is for example.com too
	o.HTTP.TLS.ServerName = "example.com"
	// 127.0.0.2, which is allowed, stands for a public address: tests leave the machine alone.
	o.HTTP.Allowed = []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}
	o.HTTP.Resolver = nameServer(t, func(n int) [4]byte {
		if n == 1 {
			return [4]byte{127, 0, 0, 2}
		}
		return [4]byte{127, 0, 0, 1}
	})
	channel := open(t, o, to)
	if err := channel.Send(t.Context(), reached()); err == nil ||
		strings.Contains(err.Error(), "not a public one") {
		t.Errorf("the public address: %v, want that nobody answers", err)
	}
	for range 3 {
		err := channel.Send(t.Context(), reached())
		if err == nil || !strings.Contains(err.Error(), "127.0.0.1: address is not a public one") {
			t.Errorf("the private address: %v, want it refused", err)
		}
	}
	if n := len(r.all()); n != 0 {
		t.Fatalf("%d requests arrived", n)
	}
	// The same name reaches the receiver once its network is allowed: the test can see a request.
	o.HTTP.Allowed = loopback
	o.HTTP.Resolver = nameServer(t, func(int) [4]byte { return [4]byte{127, 0, 0, 1} })
	if err := open(t, o, to).Send(t.Context(), reached()); err != nil || len(r.all()) != 1 {
		t.Errorf("allowed: %v, %d requests", err, len(r.all()))
	}
}

func TestWebhook_redirectsAreNotFollowed(t *testing.T) {
	inner := receive(t, nil)
	for _, status := range []int{301, 302, 303, 307, 308} {
		r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", inner.URL+"/admin")
			w.WriteHeader(status)
		})
		err := open(t, trusting(t, r), hook(r, "/")).Send(t.Context(), reached())
		if outcome(err) != notify.Retry || !strings.Contains(err.Error(), "redirects are not followed") {
			t.Errorf("status %d: %v", status, err)
		}
	}
	if n := len(inner.all()); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

func TestWebhook_proxiesOfTheEnvironmentAreNotUsed(t *testing.T) {
	r := receive(t, nil)
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:"+strconv.Itoa(1))
	if err := open(t, trusting(t, r), hook(r, "/")).Send(t.Context(), reached()); err != nil {
		t.Error(err)
	}
}

func TestWebhook_allowedNetworkIsOnlyThatNetwork(t *testing.T) {
	r := receive(t, nil)
	o := trusting(t, r)
	o.HTTP.Allowed = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/30")}
	if err := open(t, o, hook(r, "/")).Send(t.Context(), reached()); err != nil {
		t.Error(err)
	}
	to := hook(r, "/")
	to.Target = strings.Replace(to.Target, "127.0.0.1", "127.0.0.4", 1)
	if err := open(t, o, to).Send(t.Context(), reached()); outcome(err) != notify.Rejected {
		t.Errorf("127.0.0.4: %v", err)
	}
}

func TestGuard_publicAddressesPass(t *testing.T) {
	for _, a := range []string{
		"8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1",
		"192.167.1.1", "223.255.255.255", "2606:4700::1111", "2a00:1450:4001::1", "2001:4860:4860::8888",
	} {
		if err := notify.CheckAddress(netip.MustParseAddr(a)); err != nil {
			t.Errorf("%s: %v", a, err)
		}
	}
}
