//go:build unix

package web_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/gorilla/websocket"

	"slotscope/handlers"
	"slotscope/static"
	"slotscope/views"
	"slotscope/web"
)

// stub is a page with routes for the middleware tests.
type stub struct{ released chan struct{} }

func (s stub) Routes(r chi.Router) {
	r.Get("/", handlers.Handle(func(w http.ResponseWriter, r *http.Request) error {
		return handlers.Draw(w, r, views.Page(views.PageInfo{Title: "Stub", Modules: []string{"run/run.js"}}))
	}))
	r.Post("/write", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) })
	r.Get("/panic", func(http.ResponseWriter, *http.Request) { panic("a programming mistake") })
	r.Get("/api/panic", func(http.ResponseWriter, *http.Request) { panic("a programming mistake") })
	r.Get("/ws/echo", func(w http.ResponseWriter, r *http.Request) {
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		conn.WriteMessage(websocket.TextMessage, []byte("hello"))
		<-r.Context().Done()
		conn.WriteMessage(websocket.TextMessage, []byte("bye"))
		close(s.released)
	})
}

func site(t *testing.T, c web.Config) http.Handler {
	t.Helper()
	if c.Addr == "" {
		c.Addr = "127.0.0.1:8080"
	}
	c.Pages = append(c.Pages, stub{make(chan struct{})})
	h, err := web.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func ask(h http.Handler, method, target string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "localhost:8080"
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func host(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }

func TestHosts(t *testing.T) {
	tests := []struct {
		config web.Config
		host   string
		want   int
	}{
		{web.Config{}, "localhost:8080", 200},
		{web.Config{}, "127.0.0.1:8080", 200},
		{web.Config{}, "[::1]:8080", 200},
		{web.Config{}, "bench.localhost:8080", 200},
		{web.Config{}, "rebound.example:8080", 421},
		{web.Config{}, "localhost.example", 421},
		{web.Config{Hosts: []string{"bench"}}, "bench:8080", 200},
		{web.Config{Addr: "10.0.0.7:80"}, "10.0.0.7", 200},
		{web.Config{Addr: "10.0.0.7:80", Token: "t"}, "lab.example", 401},
	}
	for _, tt := range tests {
		if w := ask(site(t, tt.config), "GET", "/", host(tt.host)); w.Code != tt.want {
			t.Errorf("Host %s at %q: %d, want %d", tt.host, tt.config.Addr, w.Code, tt.want)
		}
	}
}

func TestCrossOriginWrites(t *testing.T) {
	h := site(t, web.Config{})
	tests := []struct {
		name, fetchSite, origin string
		want                    int
	}{
		{"a form of our own", "same-origin", "", 204},
		{"a program", "", "", 204},
		{"a form elsewhere", "cross-site", "", 403},
		{"an old browser's form elsewhere", "", "http://evil.example", 403},
	}
	for _, tt := range tests {
		w := ask(h, "POST", "/write", func(r *http.Request) {
			if tt.fetchSite != "" {
				r.Header.Set("Sec-Fetch-Site", tt.fetchSite)
			}
			if tt.origin != "" {
				r.Header.Set("Origin", tt.origin)
			}
		})
		if w.Code != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, w.Code, tt.want)
		}
	}
}

func TestToken(t *testing.T) {
	h := site(t, web.Config{Addr: "0.0.0.0:8080", Token: "s3 cret"})
	if w := ask(h, "GET", "/"); w.Code != 401 || !strings.Contains(w.Body.String(), `data-testid="ask-token"`) {
		t.Errorf("without a token: %d", w.Code)
	}
	if w := ask(h, "GET", "/?token=guess"); w.Code != 401 || !strings.Contains(w.Body.String(), "Wrong token") {
		t.Errorf("with a wrong one: %d", w.Code)
	}
	w := ask(h, "GET", "/?token=s3+cret&a=1")
	if w.Code != 303 || w.Header().Get("Location") != "/?a=1" {
		t.Fatalf("with the token: %d to %q", w.Code, w.Header().Get("Location"))
	}
	cookie := w.Result().Cookies()[0]
	if !cookie.HttpOnly || strings.Contains(cookie.Value, "s3") {
		t.Errorf("the cookie is %v", cookie)
	}
	for name, tt := range map[string]struct {
		path   string
		change func(*http.Request)
		want   int
	}{
		"cookie":          {"/", func(r *http.Request) { r.AddCookie(cookie) }, 200},
		"bearer":          {"/", header("Authorization", "Bearer s3 cret"), 200},
		"wrong bearer":    {"/", header("Authorization", "Bearer s3"), 401},
		"API":             {"/api/runs", host("x"), 401},
		"static":          {views.Asset("shared/base.css"), host("x"), 401},
		"metrics":         {"/metrics", host("x"), 401},
		"health":          {"/healthz", host("x"), 200},
		"redirect inside": {"//evil.example/?token=s3+cret", host("x"), 303},
	} {
		w := ask(h, "GET", "http://localhost"+tt.path, tt.change)
		if w.Code != tt.want {
			t.Errorf("%s: %d, want %d", name, w.Code, tt.want)
		}
		if strings.HasPrefix(w.Header().Get("Location"), "//") {
			t.Errorf("%s redirects to another host: %s", name, w.Header().Get("Location"))
		}
	}
}

func TestCheckAccess(t *testing.T) {
	for addr, safe := range map[string]bool{"127.0.0.1:0": true, "[::1]:80": true, "localhost:80": true, "0.0.0.0:80": false, ":80": false, "10.1.2.3:80": false, "nonsense": false} {
		for _, open := range []bool{false, true} {
			if err := (web.Config{Addr: addr, Open: open}).CheckAccess(); (err == nil) != safe {
				t.Errorf("%s without a token, open %v: %v", addr, open, err)
			}
		}
	}
	if err := (web.Config{Addr: "0.0.0.0:80", Token: "t"}).CheckAccess(); err != nil {
		t.Error(err)
	}
	if err := (web.Config{Addr: "127.0.0.1:80", Token: "t", Open: true}).CheckAccess(); err == nil {
		t.Error("a token and --open together are accepted")
	}
}

func TestHeadersAndImportMap(t *testing.T) {
	w := ask(site(t, web.Config{}), "GET", "/")
	policy := w.Header().Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'self'", "frame-ancestors 'none'", "img-src 'self' data: blob:", "connect-src 'self'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy lacks %s", part)
		}
	}
	if strings.Contains(strings.ReplaceAll(policy, "'wasm-unsafe-eval'", ""), "unsafe") || // only WebAssembly, not eval
		w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("the policy is %s", policy)
	}
	inline := regexp.MustCompile(`<script(?: type="importmap")?>`).FindAllString(w.Body.String(), -1)
	if len(inline) != 1 {
		t.Errorf("%d inline scripts; only the import map is allowed", len(inline))
	}
	if strings.Contains(w.Body.String(), " style=") {
		t.Error("a style attribute, which the policy forbids")
	}
}

func TestStaticFiles(t *testing.T) {
	h := site(t, web.Config{})
	url := views.Asset("shared/base.css")
	if !regexp.MustCompile(`^/static/shared/base\.[0-9a-f]{12}\.css$`).MatchString(url) {
		t.Fatalf("the URL %s has no hash", url)
	}
	w := ask(h, "GET", url)
	if w.Code != 200 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/css") {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := ask(h, "GET", "/static/shared/base.css"); w.Code != 200 || w.Header().Get("Cache-Control") != "no-cache" {
		t.Errorf("a plain URL: %d %s", w.Code, w.Header().Get("Cache-Control"))
	}
	for _, path := range []string{"/static/shared/base.000000000000.css", "/static/", "/static/../web.go", "/static/shared", "/static/play/codes.test.js"} {
		if w := ask(h, "GET", path); w.Code != 404 {
			t.Errorf("%s returns %d", path, w.Code)
		}
	}
}

// Modules import each other by plain relative names; the import map must map each to its hashed URL.
func TestModulesFindEachOther(t *testing.T) {
	assets, err := static.New()
	if err != nil {
		t.Fatal(err)
	}
	site(t, web.Config{})
	h := site(t, web.Config{})
	imports := regexp.MustCompile(`(?m)^(?:import|export) .*?from '([^']+)'`)
	seen := 0
	for _, m := range regexp.MustCompile(`"(/static/[^"]+?)":"([^"]+)"`).FindAllStringSubmatch(assets.ImportMap(), -1) {
		body := ask(h, "GET", m[2]).Body.String()
		for _, imp := range imports.FindAllStringSubmatch(body, -1) {
			dir := m[1][:strings.LastIndex(m[1], "/")]
			to := resolve(dir, imp[1])
			if !strings.Contains(assets.ImportMap(), `"`+to+`":`) {
				t.Errorf("%s imports %s, which is not in the map", m[1], to)
			}
			seen++
		}
	}
	if seen == 0 {
		t.Error("no imports found")
	}
}

func resolve(dir, name string) string {
	for strings.HasPrefix(name, "../") {
		name, dir = name[3:], dir[:strings.LastIndex(dir, "/")]
	}
	return dir + "/" + strings.TrimPrefix(name, "./")
}

func TestFailures(t *testing.T) {
	h := site(t, web.Config{})
	log := &logged{}
	before := slog.Default()
	slog.SetDefault(web.NewLog(log))
	defer slog.SetDefault(before)
	for _, path := range []string{"/panic", "/api/panic"} {
		w := ask(h, "GET", path)
		id := regexp.MustCompile(`See the server log for request ID (r-[a-z2-7]{8})\.`).FindStringSubmatch(w.Body.String())
		if w.Code != 500 || id == nil || strings.Contains(w.Body.String(), "programming") || w.Header().Get("X-Request-ID") != id[1] {
			t.Fatalf("a panic returns %d %v %s", w.Code, w.Header(), w.Body)
		}
		if said := log.String(); !strings.Contains(said, "level=ERROR") || !strings.Contains(said, "programming") || !strings.Contains(said, "request="+id[1]) {
			t.Errorf("the log says %s", said)
		}
		if path == "/api/panic" && !strings.Contains(w.Body.String(), `"request":"`+id[1]+`"`) {
			t.Errorf("a panic in the API returns %s", w.Body)
		}
	}
	if w := ask(h, "GET", "/api/nowhere"); !strings.Contains(w.Body.String(), `"request":"`+w.Header().Get("X-Request-ID")+`"`) {
		t.Errorf("an error of the API does not name its request: %s", w.Body)
	}
	if a, b := ask(h, "GET", "/"), ask(h, "GET", "/", header("X-Request-Id", "forged")); a.Header().Get("X-Request-ID") == b.Header().Get("X-Request-ID") || b.Header().Get("X-Request-ID") == "forged" {
		t.Error("two requests share an ID, or a client chose one")
	}
	if w := ask(h, "GET", "/nowhere"); w.Code != 404 || !strings.Contains(w.Body.String(), `data-testid="problem"`) {
		t.Errorf("an unknown page returns %d", w.Code)
	}
	if w := ask(h, "GET", "/api/nowhere"); w.Code != 404 || !strings.HasPrefix(w.Body.String(), `{"error":`) {
		t.Errorf("an unknown path of the API returns %d %s", w.Code, w.Body)
	}
	if w := ask(h, "GET", "/ws/echo"); w.Code != 426 || !strings.HasPrefix(w.Body.String(), `{"error":"/ws/echo is a WebSocket`) {
		t.Errorf("a socket requested as a page returns %d %s", w.Code, w.Body)
	}
	evil := func(r *http.Request) { r.Host = "evil.example" }
	if w := ask(h, "GET", "/api/panic", evil); w.Code != 421 || !strings.HasPrefix(w.Body.String(), `{"error":"This server does not accept the host name`) {
		t.Errorf("the API under another host name returns %d %s", w.Code, w.Body)
	}
	if w := ask(h, "POST", "/api/panic", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }); w.Code != 403 || !strings.HasPrefix(w.Body.String(), `{"error":"This request came`) {
		t.Errorf("another site's write to the API returns %d %s", w.Code, w.Body)
	}
	if w := ask(h, "DELETE", "/write"); w.Code != 405 {
		t.Errorf("an unsupported method returns %d", w.Code)
	}
	if w := ask(h, "HEAD", "/"); w.Code != 200 {
		t.Errorf("HEAD returns %d", w.Code)
	}
}

func TestProbes(t *testing.T) {
	sick := errors.New("the database is read-only")
	h := site(t, web.Config{Version: map[string]string{"version": "v1"}, Ready: func(context.Context) error { return sick }})
	if w := ask(h, "GET", "/readyz"); w.Code != 503 || strings.Contains(w.Body.String(), "read-only") {
		t.Errorf("not ready: %d %s", w.Code, w.Body)
	}
	sick = nil
	for path, want := range map[string]string{"/readyz": "ready", "/healthz": "ok", "/version": `{"version":"v1"}`, "/metrics": "slotscope_http_request_seconds"} {
		if w := ask(h, "GET", path); w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %.80s", path, w.Code, w.Body)
		}
	}
}

func serve(t *testing.T, c web.Config) (url string, stop func() error) {
	t.Helper()
	c.Addr = "127.0.0.1:0"
	l, err := web.Listen(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- web.Serve(ctx, l, c, func(url string) { ready <- url }) }()
	return <-ready, func() error { cancel(); return <-ended }
}

// At shutdown, the server closes its sockets with a final message.
func TestShutdownEndsSockets(t *testing.T) {
	page := stub{make(chan struct{})}
	url, stop := serve(t, web.Config{Pages: []web.Page{page}})
	conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(url, "http")+"/ws/echo", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	said := func() string { _, m, _ := conn.ReadMessage(); return string(m) }
	if s := said(); s != "hello" {
		t.Fatalf("the socket says %q", s)
	}
	start := time.Now()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if s := said(); s != "bye" {
		t.Errorf("the socket ends with %q", s)
	}
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("it took %v", took)
	}
	if _, err := http.Get(url); err == nil {
		t.Error("the server still responds")
	}
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = web.Listen(web.Config{Addr: l.Addr().String()})
	if err == nil || !strings.Contains(err.Error(), "in use") || !strings.Contains(err.Error(), "--addr") {
		t.Errorf("a port in use: %v", err)
	}
	if _, err := web.Listen(web.Config{Addr: "203.0.113.9:80", Token: "t"}); err == nil {
		t.Error("an address of another machine is accepted")
	}
}

func TestSiteWithTokenInABrowser(t *testing.T) {
	url, stop := serve(t, web.Config{Token: "abc", Pages: []web.Page{stub{make(chan struct{})}}})
	defer stop()
	if !strings.HasSuffix(url, "/?token=abc") {
		t.Fatalf("the address is %s", url)
	}
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar}
	for _, address := range []string{url, strings.TrimSuffix(url, "?token=abc")} {
		resp, err := browser.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 || resp.Request.URL.RawQuery != "" {
			t.Errorf("%s returns %d at %s", address, resp.StatusCode, resp.Request.URL)
		}
	}
}

// A page with all its resources stays under 60 KB compressed.
func TestPageWeight(t *testing.T) {
	url, stop := serve(t, web.Config{Pages: []web.Page{stub{make(chan struct{})}}})
	defer stop()
	run := []string{"/", views.Asset("shared/base.css"), views.Asset("run/run.css"), views.Asset("vendor/uplot/uPlot.min.css"), views.Asset("vendor/uplot/uPlot.iife.min.js")}
	for _, script := range withImports(t, "run/run.js") {
		run = append(run, views.Asset(script))
	}
	total := int64(0)
	for _, address := range run {
		n, err := wireSize(url + address)
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	t.Logf("the heaviest page loads %d bytes", total)
	if total > 60_000 {
		t.Errorf("%d bytes are more than 60 KB", total)
	}
}

// importLine matches a static import; dynamic imports do not delay the page.
var importLine = regexp.MustCompile(`(?m)^import [^;]*?from '(\.[^']+)';`)

// withImports returns a script of the static folder and its transitive static imports.
func withImports(t *testing.T, script string) []string {
	t.Helper()
	all := []string{script}
	for i := 0; i < len(all); i++ {
		text, err := os.ReadFile(filepath.Join("../static", all[i]))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range importLine.FindAllStringSubmatch(string(text), -1) {
			if name := path.Join(path.Dir(all[i]), m[1]); !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	if len(all) < 2 {
		t.Fatalf("%s imports nothing", script)
	}
	return all
}

func wireSize(url string) (int64, error) {
	r, err := http.NewRequest("GET", url, nil)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Accept-Encoding", "gzip")
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("Content-Encoding") != "gzip" {
		return 0, fmt.Errorf("%s: %s, encoding %q", url, resp.Status, resp.Header.Get("Content-Encoding"))
	}
	n, err := io.Copy(io.Discard, resp.Body)
	return n, err
}

// TestAllow: 405 lists the methods that the path supports.
func TestAllow(t *testing.T) {
	h := site(t, web.Config{})
	if w := ask(h, "DELETE", "/write"); w.Code != 405 || w.Header().Get("Allow") != "POST" {
		t.Errorf("DELETE /write: %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
	if w := ask(h, "POST", "/version"); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST /version: %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
}

// TestTrailingSlash: a page with a trailing slash is redirected, and never to another host.
func TestTrailingSlash(t *testing.T) {
	h := site(t, web.Config{})
	for path, want := range map[string]string{"/version/": "/version", "/version/?a=1": "/version?a=1", "/nowhere/": "", "//evil.example/": ""} {
		w := ask(h, "GET", "http://localhost:8080"+path)
		if code := w.Code; (want != "" && code != 301) || (want == "" && code != 404) || w.Header().Get("Location") != want {
			t.Errorf("%s: %d %q, want %q", path, code, w.Header().Get("Location"), want)
		}
	}
}

// TestCompression: gzip only for clients that accept it, and never for ranges.
func TestCompression(t *testing.T) {
	h := site(t, web.Config{})
	for _, c := range []struct{ accept, ranges, want string }{
		{"gzip", "", "gzip"}, {"br, gzip;q=0.5", "", "gzip"}, {"gzip;q=0", "", ""}, {"gzip; q=0.0, identity", "", ""}, {"", "", ""}, {"gzip", "bytes=0-9", ""},
	} {
		w := ask(h, "GET", views.Asset("shared/base.css"), func(r *http.Request) {
			r.Header.Set("Accept-Encoding", c.accept)
			if c.ranges != "" {
				r.Header.Set("Range", c.ranges)
			}
		})
		if got := w.Header().Get("Content-Encoding"); got != c.want {
			t.Errorf("Accept-Encoding %q, Range %q: Content-Encoding %q, want %q", c.accept, c.ranges, got, c.want)
		}
		if c.ranges != "" && (w.Code != 206 || w.Body.Len() != 10) {
			t.Errorf("a range: %d with %d bytes", w.Code, w.Body.Len())
		}
	}
}

// TestPageNotSentTwice: an unchanged page returns 304 without a body.
func TestPageNotSentTwice(t *testing.T) {
	h := site(t, web.Config{})
	first := ask(h, "GET", "/")
	tag := first.Header().Get("ETag")
	again := ask(h, "GET", "/", func(r *http.Request) { r.Header.Set("If-None-Match", tag) })
	if tag == "" || again.Code != 304 || again.Body.Len() != 0 {
		t.Errorf("tag %q, then %d with %d bytes", tag, again.Code, again.Body.Len())
	}
	if other := ask(h, "GET", "/", func(r *http.Request) { r.Header.Set("If-None-Match", `W/"0"`) }); other.Code != 200 {
		t.Errorf("another tag returns %d", other.Code)
	}
}
