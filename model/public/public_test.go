package public

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestIs(t *testing.T) {
	for text, want := range map[string]bool{
		"93.184.216.34": true, "8.8.8.8": true, "172.32.0.1": true, "2606:4700::1111": true, "64:ff9b::808:808": true, "2002:808:808::1": true,
		"127.0.0.1": false, "127.9.9.9": false, "0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "172.16.0.1": false, "192.168.1.1": false,
		"169.254.169.254": false, "100.64.0.1": false, "192.0.0.192": false, "198.18.0.1": false, "224.0.0.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false, "fec0::1": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::127.0.0.1": false, "64:ff9b::7f00:1": false, "64:ff9b:1::1": false, "2002:7f00:1::1": false,
		"2001::1": false, "2001:db8::1": false,
	} {
		if got := Is(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	for text, want := range map[string]bool{
		"http://example.org/x": true, "http://localhost/x": false, "http://127.0.0.1:9/x": false, "http://[::1]/x": false,
		"http://[::ffff:10.0.0.1]/": false, "http://169.254.169.254/latest/meta-data": false, "https://8.8.8.8/": true,
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(u, "--allow"); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// refused fails unless a request is rejected because the server is private, with the flag that allows it.
func refused(t *testing.T, client *http.Client, address string) {
	t.Helper()
	reply, err := client.Get(address)
	if err == nil {
		reply.Body.Close()
	}
	var private Refused
	if !errors.As(err, &private) || !strings.Contains(err.Error(), "--allow") {
		t.Errorf("%s: %v", address, err)
	}
}

// TestPrivateServersAreRefused: no request reaches a server of this machine, under any name, by a redirect or by a name whose address has
// changed.
func TestPrivateServersAreRefused(t *testing.T) {
	reached := 0
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	defer inside.Close()
	_, port, _ := net.SplitHostPort(inside.Listener.Addr().String())

	transport := NewTransport("--allow", time.Minute)
	client := &http.Client{Transport: transport}
	transport.proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "127.1", "2130706433", "0x7f000001"} {
		if ip := net.ParseIP(strings.Trim(host, "[]")); ip == nil && host != "localhost" {
			if addresses, err := net.LookupHost(host); err != nil || len(addresses) == 0 {
				continue // this resolver does not support the legacy notation
			}
		}
		refused(t, client, "http://"+host+":"+port+"/x")
	}

	// A public server redirects to a private one; the test resolves the public name.
	redirect := httptest.NewServer(http.RedirectHandler(inside.URL+"/x", http.StatusFound))
	defer redirect.Close()
	guarded := transport.direct.DialContext
	transport.direct.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		switch address {
		case "public.example:80":
			return net.Dial(network, redirect.Listener.Addr().String())
		case "rebound.example:80": // DNS now resolves to this machine
			return guarded(ctx, network, inside.Listener.Addr().String())
		}
		return guarded(ctx, network, address)
	}
	refused(t, client, "http://public.example/x")
	refused(t, client, "http://rebound.example/x")

	// Only public names are sent to a proxy.
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
	transport.proxied.Proxy = transport.proxy
	refused(t, client, inside.URL+"/x")
	refused(t, client, "http://localhost:"+port+"/x")
	reply, err := client.Get("http://data.invalid/x.npz")
	if err != nil || asked != "http://data.invalid/x.npz" {
		t.Fatalf("the proxy received %q: %v", asked, err)
	}
	reply.Body.Close()
	if reached != 0 {
		t.Errorf("%d requests reached the private server", reached)
	}
}
