package fetch

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
)

func TestIsPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"93.184.216.34": true, "8.8.8.8": true, "172.32.0.1": true, "2606:4700::1111": true, "64:ff9b::808:808": true, "2002:808:808::1": true,
		"127.0.0.1": false, "127.9.9.9": false, "0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "172.16.0.1": false, "192.168.1.1": false,
		"169.254.169.254": false, "100.64.0.1": false, "192.0.0.192": false, "198.18.0.1": false, "224.0.0.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false, "fec0::1": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::127.0.0.1": false, "64:ff9b::7f00:1": false, "64:ff9b:1::1": false, "2002:7f00:1::1": false,
		"2001::1": false, "2001:db8::1": false,
	} {
		if got := IsPublic(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func TestCheckPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"http://example.org/x": true, "http://localhost/x": false, "http://127.0.0.1:9/x": false, "http://[::1]/x": false,
		"http://[::ffff:10.0.0.1]/": false, "http://169.254.169.254/latest/meta-data": false, "https://8.8.8.8/": true,
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckPublic(u); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// refused fails unless a download ends at once because the server is private.
func refused(t *testing.T, f Fetcher, address string) {
	t.Helper()
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	start := time.Now()
	err = f.Download(t.Context(), dir, Want{URL: address, Name: "x"}, func(int64, int64) {})
	var private PrivateAddress
	if !errors.As(err, &private) || !strings.Contains(err.Error(), "--allow-private-urls") {
		t.Errorf("%s: %v", address, err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("%s: it took %v, so it was tried again", address, took)
	}
}

// TestPrivateServersAreRefused: nothing reaches a server of this machine, under whatever name, by a redirect or by a name that has come
// to mean another address.
func TestPrivateServersAreRefused(t *testing.T) {
	reached := 0
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	defer inside.Close()
	_, port, _ := net.SplitHostPort(inside.Listener.Addr().String())

	f := Public()
	f.Client.Transport.(*publicTransport).proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "127.1", "2130706433", "0x7f000001"} {
		if ip := net.ParseIP(strings.Trim(host, "[]")); ip == nil && host != "localhost" {
			if addresses, err := net.LookupHost(host); err != nil || len(addresses) == 0 {
				continue // this resolver does not know the old ways of writing it
			}
		}
		refused(t, f, "http://"+host+":"+port+"/x")
	}

	// A public server sends to a private one; the name of the public one is resolved by the test.
	redirect := httptest.NewServer(http.RedirectHandler(inside.URL+"/x", http.StatusFound))
	defer redirect.Close()
	transport := f.Client.Transport.(*publicTransport)
	direct := transport.direct.(*http.Transport)
	guarded := direct.DialContext
	direct.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		switch address {
		case "public.example:80":
			return net.Dial(network, redirect.Listener.Addr().String())
		case "rebound.example:80": // DNS now says that it is this machine
			return guarded(ctx, network, inside.Listener.Addr().String())
		}
		return guarded(ctx, network, address)
	}
	refused(t, f, "http://public.example/x")
	refused(t, f, "http://rebound.example/x")

	// A proxy is asked for public names alone.
	asked := ""
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		w.Write([]byte("data"))
	}))
	defer proxy.Close()
	through, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport.proxy = http.ProxyURL(through)
	transport.proxied.(*http.Transport).Proxy = transport.proxy
	refused(t, f, inside.URL+"/x")
	refused(t, f, "http://localhost:"+port+"/x")
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := f.Download(t.Context(), dir, Want{URL: "http://data.invalid/x.npz", Name: "x"}, func(int64, int64) {}); err != nil || asked != "http://data.invalid/x.npz" {
		t.Errorf("the proxy was asked for %q: %v", asked, err)
	}
	if reached != 0 {
		t.Errorf("%d requests reached the private server", reached)
	}
}
