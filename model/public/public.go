// Package public makes HTTP requests only to servers on the public internet, for addresses that the operator has not approved.
package public

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

// Refused is the error for a server that is not on the public internet.
type Refused struct {
	Host  string
	Allow string // flag with which the operator can allow it
}

func (r Refused) Error() string {
	return fmt.Sprintf("%s is this machine or on a private network, which this server does not connect to; its operator can allow it with %s", r.Host, r.Allow)
}

// Check rejects an address whose host is obviously private: localhost or a private IP address. It does not resolve other names. allow is
// the flag that lifts the restriction.
func Check(address *url.URL, allow string) error {
	host := address.Hostname()
	ip, err := netip.ParseAddr(host)
	if host == "localhost" || err == nil && !Is(ip) {
		return Refused{host, allow}
	}
	return nil
}

// Transport connects directly to public addresses, or through the environment's proxy. It checks the resolved address at connection time,
// so that neither a redirect nor a DNS change can bypass the check. A proxy, which the operator chose, resolves names itself; names that
// are private on this machine are still rejected.
type Transport struct {
	direct, proxied *http.Transport
	proxy           func(*http.Request) (*url.URL, error)
	allow           string
}

// NewTransport waits at most patience for response headers. allow is the flag named in errors.
func NewTransport(allow string, patience time.Duration) *Transport {
	proxied := http.DefaultTransport.(*http.Transport).Clone()
	proxied.ResponseHeaderTimeout = patience
	t := &Transport{proxied.Clone(), proxied, http.ProxyFromEnvironment, allow}
	t.direct.Proxy = nil
	dialer := &net.Dialer{Timeout: patience / 2, Control: t.control}
	t.direct.DialContext = dialer.DialContext
	return t
}

// RoundTrip sends one request; the client calls it again for every redirect.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := Check(r.URL, t.allow); err != nil {
		return nil, err
	}
	proxy, err := t.proxy(r)
	if err != nil {
		return nil, err
	}
	if proxy == nil {
		return t.direct.RoundTrip(r)
	}
	if err := t.look(r.Context(), r.URL.Hostname()); err != nil {
		return nil, err
	}
	return t.proxied.RoundTrip(r)
}

// control rejects a connection to a private address; address is the resolved address.
func (t *Transport) control(_, address string, _ syscall.RawConn) error {
	end, err := netip.ParseAddrPort(address)
	if err != nil || !Is(end.Addr()) {
		return Refused{address, t.allow}
	}
	return nil
}

// look rejects a name that resolves to a private address here. Names that do not resolve are left to the proxy.
func (t *Transport) look(ctx context.Context, host string) error {
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil
	}
	for _, ip := range ips {
		if !Is(ip) {
			return Refused{host, t.allow}
		}
	}
	return nil
}

// reserved are ranges outside the public internet, besides those that netip knows, from IANA's special-purpose registries.
var reserved = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "3fff::/20")

var (
	globalUnicast = netip.MustParsePrefix("2000::/3")
	nat64         = netip.MustParsePrefix("64:ff9b::/96") // contains an IPv4 address in the last four bytes
	sixToFour     = netip.MustParsePrefix("2002::/16")    // contains one in bytes 2 to 5
)

func prefixes(all ...string) (parsed []netip.Prefix) {
	for _, p := range all {
		parsed = append(parsed, netip.MustParsePrefix(p))
	}
	return parsed
}

// Is reports whether an address is on the public internet: not loopback, private, link-local, multicast or reserved, including IPv4
// addresses embedded in IPv6 addresses.
func Is(ip netip.Addr) bool {
	ip = ip.Unmap()
	raw := ip.As16()
	switch {
	case !ip.IsValid() || ip.Zone() != "" || !ip.IsGlobalUnicast() || ip.IsPrivate():
		return false
	case nat64.Contains(ip):
		return Is(netip.AddrFrom4([4]byte(raw[12:])))
	case sixToFour.Contains(ip):
		return Is(netip.AddrFrom4([4]byte(raw[2:6])))
	}
	for _, p := range reserved {
		if p.Contains(ip) {
			return false
		}
	}
	return ip.Is4() || globalUnicast.Contains(ip)
}
