package notify

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// errRefused is an address that messages may not go to.
var errRefused = errors.New("address is not a public one, and not allowed by the settings")

// guard decides which addresses may be connected to: public ones, and those that are allowed.
type guard struct{ allowed []netip.Prefix }

// global is where IPv6 has public addresses; everything else is local, reserved or translated.
var global = netip.MustParsePrefix("2000::/3")

// special are addresses that are not public hosts, by the registries of special-purpose addresses
// (RFC 6890 and its successors). IPv6 forms that carry IPv4 addresses are among them: what they
// reach is decided by a gateway, so they get around any list.
var special = prefixes(
	"0.0.0.0/8",       // this network, unspecified
	"10.0.0.0/8",      // private
	"100.64.0.0/10",   // carrier-grade NAT
	"127.0.0.0/8",     // loopback
	"169.254.0.0/16",  // link-local, metadata of clouds
	"172.16.0.0/12",   // private
	"192.0.0.0/24",    // protocol assignments
	"192.0.2.0/24",    // documentation
	"192.88.99.0/24",  // 6to4 relays
	"192.168.0.0/16",  // private
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"224.0.0.0/4",     // multicast
	"240.0.0.0/4",     // reserved, broadcast
	"2001::/23",       // Teredo, ORCHID and other protocols
	"2001:db8::/32",   // documentation
	"2002::/16",       // 6to4
	"3fff::/20",       // documentation
)

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}

// check returns errRefused, wrapped, for an address that may not be connected to.
func (g guard) check(addr netip.Addr) error {
	plain := addr.WithZone("")
	for _, p := range g.allowed {
		if p.Contains(plain) || p.Contains(plain.Unmap()) {
			return nil
		}
	}
	refuse := plain.Is6() && !global.Contains(plain) // also IPv4 that is mapped
	for _, p := range special {
		refuse = refuse || p.Contains(plain)
	}
	if refuse {
		return fmt.Errorf("connect to %s: %w", addr, errRefused)
	}
	return nil
}

// checkDial is check for an address as [net.Dialer.Control] gets it, after names are resolved.
func (g guard) checkDial(address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", address, errRefused)
	}
	return g.check(to.Addr())
}

// checkURL reports a URL that can never be posted to: of another scheme, without host, with a
// password, or with a host that is a number. Names are judged when they are resolved.
func (g guard) checkURL(target string, plain bool) (*url.URL, error) {
	u, err := url.Parse(target)
	if err != nil { // its text would show the URL, which may hold a secret
		return nil, rejected("malformed URL")
	}
	host := u.Hostname()
	switch {
	case u.Scheme != "https" && (u.Scheme != "http" || !plain):
		return nil, rejected("URL is not https")
	case host == "" || u.Opaque != "":
		return nil, rejected("URL has no host")
	case u.User != nil:
		return nil, rejected("URL has a user or password")
	}
	addr, err := netip.ParseAddr(host)
	if err == nil {
		if err := g.check(addr); err != nil {
			return nil, &SendError{Outcome: Rejected, Err: err}
		}
	} else if numeric(host) {
		// Some resolvers read 2130706433, 0x7f.1 or 0177.0.0.1 as 127.0.0.1.
		return nil, rejected("host %q is neither a name nor an address: %w", host, errRefused)
	}
	return u, nil
}

// numeric reports whether the last label of a host is a number, as no name's is.
func numeric(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	if _, err := strconv.ParseUint(last, 10, 64); err == nil {
		return true
	}
	digits, hex := strings.CutPrefix(strings.ToLower(last), "0x")
	return hex && strings.Trim(digits, "0123456789abcdef") == ""
}
