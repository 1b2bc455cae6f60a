// Package public makes HTTP requests to servers of the public internet alone, for addresses that the operator did not vouch for.
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
	Allow string // the flag by which the operator allows it
}

func (r Refused) Error() string {
	return fmt.Sprintf("%s is this machine or belongs to a private network, which this server does not connect to; its operator can allow it with %s", r.Host, r.Allow)
}

// Check refuses an address whose host is plainly private: localhost or a private IP address. Other names are not resolved. allow is the
// flag that lifts the refusal.
func Check(address *url.URL, allow string) error {
	host := address.Hostname()
	ip, err := netip.ParseAddr(host)
	if host == "localhost" || err == nil && !Is(ip) {
		return Refused{host, allow}
	}
	return nil
}

// Transport connects directly to public addresses, or through the environment's proxy. What a name resolves to is checked when the
// connection is made, so that neither a redirect nor a change of DNS leads elsewhere. Through a proxy, which the operator chose, the
// proxy resolves names; those that are private here too are refused.
type Transport struct {
	direct, proxied *http.Transport
	proxy           func(*http.Request) (*url.URL, error)
	allow           string
}

// NewTransport waits at most patience for the header of an answer. allow is the flag that errors name.
func NewTransport(allow string, patience time.Duration) *Transport {
	proxied := http.DefaultTransport.(*http.Transport).Clone()
	proxied.ResponseHeaderTimeout = patience
	t := &Transport{proxied.Clone(), proxied, http.ProxyFromEnvironment, allow}
	t.direct.Proxy = nil
	dialer := &net.Dialer{Timeout: patience / 2, Control: t.control}
	t.direct.DialContext = dialer.DialContext
	return t
}

// RoundTrip sends one request; a client calls it again for every redirect.
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

// control refuses a connection to a private address; address is what the name resolved to.
func (t *Transport) control(_, address string, _ syscall.RawConn) error {
	end, err := netip.ParseAddrPort(address)
	if err != nil || !Is(end.Addr()) {
		return Refused{address, t.allow}
	}
	return nil
}

// look refuses a name that resolves to a private address here. One that does not resolve is left to the proxy.
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

// Ranges that are not the public internet's, beside what netip knows: IANA's special-purpose registries.
var reserved = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "3fff::/20")

var (
	globalUnicast = netip.MustParsePrefix("2000::/3")
	nat64         = netip.MustParsePrefix("64:ff9b::/96") // holds an IPv4 address in its last four bytes
	sixToFour     = netip.MustParsePrefix("2002::/16")    // holds one in bytes 2 to 5
)

func prefixes(all ...string) (parsed []netip.Prefix) {
	for _, p := range all {
		parsed = append(parsed, netip.MustParsePrefix(p))
	}
	return parsed
}

// Is says whether an address belongs to the public internet: no loopback, private, link-local, multicast or reserved one, also
// not inside an IPv6 address that carries an IPv4 address.
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
