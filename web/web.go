// Package web combines the pages into one server: router, middleware, limits and graceful shutdown.
package web

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/httplog/v3"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"slotscope/handlers"
	"slotscope/static"
	"slotscope/views"
)

// Page is a group of handlers that registers its routes. Routes under /ws/ are WebSockets: their request contexts end when the server
// shuts down, and they are not buffered or compressed.
type Page interface{ Routes(r chi.Router) }

// Config configures a server.
type Config struct {
	Addr  string   // host:port to listen on, e.g. "127.0.0.1:8080"
	Token string   // required in every request if set; CheckAccess reports if it must be set
	Open  bool     // on loopback, serve every user of this machine, not only the server's own
	Root  bool     // on loopback, serve root in addition to the server's own user
	Embed []string // origins, e.g. https://lab.example, whose pages may show the site in frames and read responses
	Hosts []string // additional host names without port that browsers may use; only on loopback
	Pages []Page

	Log     *slog.Logger                // nil for slog.Default
	Ready   func(context.Context) error // readiness check of /readyz; nil for always ready
	Version any                         // JSON response of /version

	sockets *sockets
	access  *access // nil if access depends only on the address and the token
}

// New returns the handler of the whole site.
func New(c Config) (http.Handler, error) {
	assets, err := static.New()
	if err != nil {
		return nil, fmt.Errorf("reading the embedded static files: %w", err)
	}
	views.Asset, views.ImportMap = assets.URL, assets.ImportMap()
	if c.sockets == nil {
		c.sockets = newSockets()
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	r := chi.NewRouter()
	r.Use(
		numberRequests,
		middleware.ClientIPFromRemoteAddr,
		logRequests(c.Log),
		measure,
		recoverPanics,
		allowHosts(c.Addr, c.Token, c.Hosts),
		refuseCrossOrigin(),
		secure(views.ImportMap, c.Embed),
		shareReads(c.Embed),
		c.guard(),
		middleware.GetHead,
	)
	r.NotFound(notFound(r))
	r.MethodNotAllowed(notAllowed(r))
	probes(r, c)
	r.Group(func(r chi.Router) {
		r.Use(compressPages, c.sockets.join)
		r.Handle("/metrics", promhttp.Handler())
		r.Get("/version", answerJSON(c.Version))
		r.Get(static.Prefix+"*", assets.ServeHTTP)
		r.Get("/favicon.ico", redirectTo(func() string { return views.Asset("icon.svg") }))
		for _, p := range c.Pages {
			p.Routes(r)
		}
	})
	return r, nil
}

// guard returns the middleware that checks the token or the user.
func (c Config) guard() func(http.Handler) http.Handler {
	if c.access != nil {
		return c.access.guard
	}
	return askToken(c.Token, c.Addr)
}

// notFound redirects "/runs/" to "/runs" if that is a page, and returns 404 for other unknown paths.
func notFound(routes chi.Routes) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimSuffix(r.URL.Path, "/")
		read := r.Method == http.MethodGet || r.Method == http.MethodHead
		if read && path != r.URL.Path && !strings.HasPrefix(path, "//") && routes.Match(chi.NewRouteContext(), http.MethodGet, path) {
			to := url.URL{Path: path, RawQuery: r.URL.RawQuery}
			http.Redirect(w, r, to.String(), http.StatusMovedPermanently)
			return
		}
		handlers.NotFound(w, r)
	}
}

// methods are the methods that pages support; HEAD is supported with GET.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// notAllowed returns 405 and lists the supported methods in the Allow header.
func notAllowed(routes chi.Routes) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, method := range methods {
			if !routes.Match(chi.NewRouteContext(), method, r.URL.Path) {
				continue
			}
			if allowed = append(allowed, method); method == http.MethodGet {
				allowed = append(allowed, http.MethodHead)
			}
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		handlers.NotAllowed(w, r)
	}
}

// logRequests logs a line per request at debug level; failures are logged by the handlers that report them.
func logRequests(log *slog.Logger) func(http.Handler) http.Handler {
	return httplog.RequestLogger(log, &httplog.Options{
		Level: slog.LevelInfo, Schema: httplog.SchemaOTEL.Concise(true), RecoverPanics: false,
		Skip: func(r *http.Request, _ int) bool { return !log.Enabled(r.Context(), slog.LevelDebug) },
	})
}

// recoverPanics handles panics like other internal errors: it logs the stack and returns a fixed message to the client.
func recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch v := recover(); v {
			case nil:
			case http.ErrAbortHandler:
				panic(v)
			default:
				handlers.Fail(w, r, fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// open are the paths that need no token, for health checks.
var open = []string{"/healthz", "/readyz"}

func probePath(path string) bool { return slices.Contains(open, path) }

func probes(r chi.Router, c Config) {
	r.Get("/healthz", answerText("ok\n"))
	r.Get("/readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if c.Ready != nil {
			if err := c.Ready(ctx); err != nil {
				c.Log.ErrorContext(r.Context(), "not ready", "error", err)
				http.Error(w, "not ready; see the log", http.StatusServiceUnavailable)
				return
			}
		}
		answerText("ready\n")(w, r)
	})
}

func answerText(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(text))
	}
}

func answerJSON(v any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_ = json.NewEncoder(w).Encode(v)
	}
}

func redirectTo(where func() string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, where(), http.StatusFound)
	}
}

// sockets ends the requests under /ws/ when the server closes and waits for their handlers.
type sockets struct {
	closing context.Context
	close   context.CancelFunc
	mu      sync.Mutex
	closed  bool
	open    sync.WaitGroup
}

func newSockets() *sockets {
	ctx, cancel := context.WithCancel(context.Background())
	return &sockets{closing: ctx, close: cancel}
}

// join gives WebSocket requests a context that ends when the server closes.
func (s *sockets) join(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isSocket(r) {
			next.ServeHTTP(w, r)
			return
		}
		if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			w.Header().Set("Upgrade", "websocket")
			deny(w, r, http.StatusUpgradeRequired, fmt.Sprintf("%s is a WebSocket endpoint.", r.URL.Path))
			return
		}
		if !s.enter() {
			deny(w, r, http.StatusServiceUnavailable, "The server is closing.")
			return
		}
		defer s.open.Done()
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(s.closing, cancel)()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func (s *sockets) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.open.Add(1)
	}
	return !s.closed
}

// end cancels every socket's context and waits for their handlers or until ctx ends.
func (s *sockets) end(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.close()
	done := make(chan struct{})
	go func() { s.open.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
