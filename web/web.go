// Package web joins the pages into one server: router, middleware, limits, and an end that waits for what is in flight.
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

// Page is a handler group that enters its own routes. Routes under /ws/ are sockets: their requests' contexts end when the
// server shuts down, and nothing buffers or compresses them.
type Page interface{ Routes(r chi.Router) }

// Config is what a server needs to know.
type Config struct {
	Addr  string   // host:port to listen on, as in "127.0.0.1:8080"
	Token string   // asked of every request where set; CheckAccess says when it must be
	Open  bool     // on loopback, serve every user of this machine, not only the server's own
	Root  bool     // on loopback, serve root beside the server's own user
	Embed []string // origins, as https://lab.example, whose pages may show ours in frames and read what they answer
	Hosts []string // further names by which browsers may call the server, without port; on loopback only
	Pages []Page

	Log     *slog.Logger                // nil for slog.Default
	Ready   func(context.Context) error // what /readyz asks; nil for always ready
	Version any                         // what /version answers, as JSON

	sockets *sockets
	access  *access // nil where the address and the token decide
}

// New builds the handler of the whole site.
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

// guard asks for the token, or for the right user of this machine.
func (c Config) guard() func(http.Handler) http.Handler {
	if c.access != nil {
		return c.access.guard
	}
	return askToken(c.Token, c.Addr)
}

// notFound sends "/runs/" to "/runs" where that is a page; any other unknown address answers 404.
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

// methods are those that pages take; HEAD goes wherever GET does.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// notAllowed answers 405 and names the methods that the path takes.
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

// logRequests writes a line per request where the log is set to debug; what fails is logged by the one who answers it.
func logRequests(log *slog.Logger) func(http.Handler) http.Handler {
	return httplog.RequestLogger(log, &httplog.Options{
		Level: slog.LevelInfo, Schema: httplog.SchemaOTEL.Concise(true), RecoverPanics: false,
		Skip: func(r *http.Request, _ int) bool { return !log.Enabled(r.Context(), slog.LevelDebug) },
	})
}

// recoverPanics answers a programming mistake as any other failure: logged whole with its stack, one sentence to the visitor.
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

// open are the paths that need no token: supervisors ask there.
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

// sockets ends the requests under /ws/ when the server closes, and waits for their handlers.
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

// join lets a socket's request in, with a context that ends when the server closes.
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

// end asks every socket to say goodbye and waits until they have or ctx ends.
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
