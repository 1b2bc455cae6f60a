package fetch

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
)

// Public is New for addresses that a visitor chose: it connects to servers of the public internet alone. What a name resolves to is
// checked when the connection is made, so that neither a redirect nor a change of DNS leads elsewhere. Through a proxy of the
// environment, which the operator chose, the proxy resolves names; those that are private here too are refused.
func Public() Fetcher {
	f := New()
	f.Client.Transport = newPublicTransport()
	return f
}

// PrivateAddress is the error for a server that is not on the public internet.
type PrivateAddress struct{ Host string }

func (p PrivateAddress) Error() string {
	return fmt.Sprintf("%s is this machine or belongs to a private network, which this server does not download from; its operator can allow it with --allow-private-urls", p.Host)
}

// CheckPublic refuses an address whose host is plainly private: localhost or a private IP address. Other names are not resolved.
func CheckPublic(address *url.URL) error {
	host := address.Hostname()
	ip, err := netip.ParseAddr(host)
	if host == "localhost" || err == nil && !IsPublic(ip) {
		return PrivateAddress{host}
	}
	return nil
}

// publicTransport connects directly to public addresses, or through the environment's proxy.
type publicTransport struct {
	direct, proxied http.RoundTripper
	proxy           func(*http.Request) (*url.URL, error)
}

func newPublicTransport() *publicTransport {
	proxied := http.DefaultTransport.(*http.Transport).Clone()
	proxied.ResponseHeaderTimeout = patience
	direct := proxied.Clone()
	direct.Proxy = nil
	dialer := &net.Dialer{Timeout: patience / 2, Control: controlPublic}
	direct.DialContext = dialer.DialContext
	return &publicTransport{direct, proxied, http.ProxyFromEnvironment}
}

// RoundTrip sends one request; the client calls it again for every redirect.
func (t *publicTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := CheckPublic(r.URL); err != nil {
		return nil, permanent{err}
	}
	proxy, err := t.proxy(r)
	if err != nil {
		return nil, err
	}
	if proxy == nil {
		return t.direct.RoundTrip(r)
	}
	if err := lookPublic(r.Context(), r.URL.Hostname()); err != nil {
		return nil, permanent{err}
	}
	return t.proxied.RoundTrip(r)
}

// controlPublic refuses a connection to a private address; address is what the name resolved to.
func controlPublic(_, address string, _ syscall.RawConn) error {
	end, err := netip.ParseAddrPort(address)
	if err != nil || !IsPublic(end.Addr()) {
		return permanent{PrivateAddress{address}}
	}
	return nil
}

// lookPublic refuses a name that resolves to a private address here. One that does not resolve is left to the proxy.
func lookPublic(ctx context.Context, host string) error {
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil
	}
	for _, ip := range ips {
		if !IsPublic(ip) {
			return PrivateAddress{host}
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

// IsPublic says whether an address belongs to the public internet: no loopback, private, link-local, multicast or reserved one, also
// not inside an IPv6 address that carries an IPv4 address.
func IsPublic(ip netip.Addr) bool {
	ip = ip.Unmap()
	raw := ip.As16()
	switch {
	case !ip.IsValid() || ip.Zone() != "" || !ip.IsGlobalUnicast() || ip.IsPrivate():
		return false
	case nat64.Contains(ip):
		return IsPublic(netip.AddrFrom4([4]byte(raw[12:])))
	case sixToFour.Contains(ip):
		return IsPublic(netip.AddrFrom4([4]byte(raw[2:6])))
	}
	for _, p := range reserved {
		if p.Contains(ip) {
			return false
		}
	}
	return ip.Is4() || globalUnicast.Contains(ip)
}
