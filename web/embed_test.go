//go:build unix

package web

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
)

// embedded is a page that accepts reads and writes.
type embedded struct{}

func (embedded) Routes(r chi.Router) {
	r.HandleFunc("/page", func(http.ResponseWriter, *http.Request) {})
	r.Get("/ws/echo", func(http.ResponseWriter, *http.Request) {})
}

func TestCheckOrigin(t *testing.T) {
	for _, good := range []string{"https://lab.example", "http://localhost:3000", "http://127.0.0.1:8888", "http://[::1]:8080"} {
		if err := CheckOrigin(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "*", "null", "lab.example", "https://", "https://*.example", "https://lab.example/", "https://lab.example/x", "https://me@lab.example",
		"ftp://lab.example", "https://LAB.example", "https://lab.example:443", "http://lab.example:80", "https://a.example https://b.example", "https://a.example;script-src *", "javascript:alert(1)"} {
		if CheckOrigin(bad) == nil {
			t.Errorf("%q is accepted as an origin", bad)
		}
	}
}

// Listed origins may frame and read; nothing else changes, for them or for others.
func TestEmbed(t *testing.T) {
	const friend = "https://lab.example"
	config := Config{Addr: "127.0.0.1:8080", Pages: []Page{embedded{}}}
	closed, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	config.Embed = []string{friend, "http://localhost:3000"}
	open, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(h http.Handler, method, path, origin string, head ...string) *http.Response {
		r := httptest.NewRequest(method, "http://127.0.0.1:8080"+path, nil)
		if origin != "" {
			r.Header.Set("Origin", origin)
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		}
		for i := 0; i+1 < len(head); i += 2 {
			r.Header.Set(head[i], head[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	allowed := func(r *http.Response) string { return r.Header.Get("Access-Control-Allow-Origin") }
	for _, origin := range []string{"", friend, "https://evil.example"} {
		r := ask(closed, "GET", "/page", origin)
		if r.StatusCode != 200 || allowed(r) != "" || !strings.HasSuffix(r.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
			t.Errorf("without --embed, from %q: %d, %v", origin, r.StatusCode, r.Header)
		}
	}
	for _, origin := range config.Embed {
		r := ask(open, "GET", "/page", origin)
		if r.StatusCode != 200 || allowed(r) != origin || r.Header.Get("Access-Control-Allow-Credentials") != "" || !slices.Contains(r.Header.Values("Vary"), "Origin") {
			t.Errorf("from %s: %d, %v", origin, r.StatusCode, r.Header)
		}
		if !strings.HasSuffix(r.Header.Get("Content-Security-Policy"), "frame-ancestors https://lab.example http://localhost:3000") || r.Header.Get("Cross-Origin-Resource-Policy") != "same-origin" {
			t.Errorf("headers %v", r.Header)
		}
	}
	for _, origin := range []string{"null", "*", "http://lab.example", "https://lab.example.evil.example", "https://lab.example:8443", "https://evil-lab.example", "https://LAB.EXAMPLE", friend + ", " + friend, friend + "/"} {
		if r := ask(open, "GET", "/page", origin); allowed(r) != "" {
			t.Errorf("%q may read", origin)
		}
		if r := ask(open, "OPTIONS", "/page", origin, "Access-Control-Request-Method", "GET"); allowed(r) != "" {
			t.Errorf("%q gets permission in a preflight", origin)
		}
	}
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		if r := ask(open, method, "/page", friend); r.StatusCode != 403 || allowed(r) != "" {
			t.Errorf("%s from a listed origin: %d, %v", method, r.StatusCode, r.Header)
		}
		if r := ask(open, "OPTIONS", "/page", friend, "Access-Control-Request-Method", method); allowed(r) != "" || r.Header.Get("Access-Control-Allow-Methods") != "" {
			t.Errorf("a listed origin gets permission for %s: %v", method, r.Header)
		}
	}
	if r := ask(open, "OPTIONS", "/page", friend, "Access-Control-Request-Method", "GET"); r.StatusCode != 204 || allowed(r) != friend || r.Header.Get("Access-Control-Allow-Headers") != "Authorization" {
		t.Errorf("preflight of a listed origin: %d, %v", r.StatusCode, r.Header)
	}
	if r := ask(open, "GET", "/ws/echo", friend); allowed(r) != "" {
		t.Errorf("a listed origin may read sockets: %v", r.Header)
	}
	r := httptest.NewRequest("GET", "http://evil.example/page", nil)
	r.Header.Set("Origin", friend)
	w := httptest.NewRecorder()
	if open.ServeHTTP(w, r); w.Code != http.StatusMisdirectedRequest {
		t.Errorf("another host name: %d", w.Code)
	}
	config.Token = "secret"
	locked, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	if r := ask(locked, "GET", "/page", friend); r.StatusCode != 401 {
		t.Errorf("without the token: %d", r.StatusCode)
	}
	if r := ask(locked, "GET", "/page", friend, "Authorization", "Bearer secret"); r.StatusCode != 200 || allowed(r) != friend {
		t.Errorf("with the token: %d, %v", r.StatusCode, r.Header)
	}
}
