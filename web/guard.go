package web

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5/middleware"
	"github.com/klauspost/compress/gzip"

	"slotscope/handlers"
	"slotscope/views"
)

func isSocket(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/ws/") }

func queryEscape(s string) string { return url.QueryEscape(s) }

// deny writes an error message, as JSON for the API and WebSockets, otherwise as text.
func deny(w http.ResponseWriter, r *http.Request, status int, text string) {
	if strings.HasPrefix(r.URL.Path, "/api/") || isSocket(r) {
		_ = handlers.JSONError(w, r, status, text)
		return
	}
	http.Error(w, text, status)
}

// loopback reports whether host is reachable only from this machine.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// allowHosts rejects host names that a malicious page could resolve to this machine (DNS rebinding). With a token, any name is allowed,
// because the token's cookie is bound to the name it was set for.
func allowHosts(addr, token string, more []string) func(http.Handler) http.Handler {
	bound, _, _ := net.SplitHostPort(addr)
	allowed := func(host string) bool {
		return token != "" || loopback(host) || strings.HasSuffix(host, ".localhost") || (bound != "" && host == bound) || slices.Contains(more, host)
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if host := hostname(r.Host); !allowed(host) {
				deny(w, r, http.StatusMisdirectedRequest, fmt.Sprintf("This server does not accept the host name %q. Use localhost.", host))
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// hostname returns a Host header without port and brackets, in lower case.
func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

// refuseCrossOrigin rejects writes from pages of other sites with 403.
func refuseCrossOrigin() func(http.Handler) http.Handler {
	c := http.NewCrossOriginProtection()
	c.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		deny(w, r, http.StatusForbidden, "This request came from another site and was rejected.")
	}))
	return c.Handler
}

// secure sets the security headers. The import map is the only inline script, allowed by its hash; WebAssembly is allowed because the
// playground decodes with it. Only pages of the origins in embed may show the site in frames.
func secure(importMap string, embed []string) func(http.Handler) http.Handler {
	sum := sha256.Sum256([]byte(importMap))
	policy := strings.Join([]string{
		"default-src 'self'",
		"script-src 'self' 'wasm-unsafe-eval' 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'",
		"img-src 'self' data: blob:",
		"connect-src 'self'",
		"object-src 'none'",
		"base-uri 'none'",
		"form-action 'self'",
		"frame-ancestors " + cmp.Or(strings.Join(embed, " "), "'none'"),
	}, "; ")
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Set("Content-Security-Policy", policy)
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set("Referrer-Policy", "no-referrer")
			h.Set("Cross-Origin-Opener-Policy", "same-origin")
			h.Set("Cross-Origin-Resource-Policy", "same-origin")
			next.ServeHTTP(w, r)
		})
	}
}

// compressPages compresses text responses, except on WebSockets. Dynamic responses use the fastest level; static files, which a browser
// requests once, use the best.
func compressPages(next http.Handler) http.Handler {
	quickly, well := compressor(gzip.BestSpeed)(next), compressor(gzip.BestCompression)(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case isSocket(r) || r.Header.Get("Range") != "" || !takesGzip(r): // ranges refer to uncompressed bytes
			next.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, "/static/"):
			well.ServeHTTP(w, r)
		default:
			quickly.ServeHTTP(w, r)
		}
	})
}

func compressor(level int) func(http.Handler) http.Handler {
	c := middleware.NewCompressor(level, "text/html", "text/css", "text/javascript", "text/plain", "text/csv", "application/json", "image/svg+xml")
	c.SetEncoder("gzip", func(w io.Writer, level int) io.Writer { // several times faster than the standard library's at the default level
		z, err := gzip.NewWriterLevel(w, level)
		if err != nil {
			panic(err) // cannot happen: the level is valid
		}
		return z
	})
	return c.Handler
}

// takesGzip reports whether the client accepts gzip; "gzip;q=0" rejects it (RFC 9110, section 12.5.3).
func takesGzip(r *http.Request) bool {
	for _, coding := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, weighted := strings.Cut(coding, ";")
		if strings.TrimSpace(name) != "gzip" {
			continue
		}
		if !weighted {
			return true
		}
		q, err := strconv.ParseFloat(strings.TrimPrefix(strings.ReplaceAll(weight, " ", ""), "q="), 64)
		return err == nil && q > 0
	}
	return false
}

// cookieName includes the port because browsers send a cookie to every port of a host.
func cookieName(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return "slotscope_token_" + port
}

// askToken requires the token: once in the URL (?token=…, which sets a cookie), as the cookie, or as a bearer header. The cookie has a
// hash, so that it does not reveal the token.
func askToken(token, addr string) func(http.Handler) http.Handler {
	if token == "" {
		return func(next http.Handler) http.Handler { return next }
	}
	name, key := cookieName(addr), cookieKey(token)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			given := r.URL.Query().Get("token")
			switch {
			case probePath(r.URL.Path):
				next.ServeHTTP(w, r)
			case given != "" && equal(given, token):
				http.SetCookie(w, &http.Cookie{Name: name, Value: key, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: 30 * 24 * 3600})
				passOrTidy(next, w, r)
			case given == "" && (hasCookie(r, name, key) || equal(bearer(r), token)):
				next.ServeHTTP(w, r)
			default:
				refuse(w, r, given != "")
			}
		})
	}
}

// passOrTidy redirects a page request to its URL without the token, so that the token does not remain in history and links.
func passOrTidy(next http.Handler, w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || isSocket(r) || strings.HasPrefix(r.URL.Path, "/api/") {
		next.ServeHTTP(w, r)
		return
	}
	q := r.URL.Query()
	q.Del("token")
	to := url.URL{Path: "/" + strings.TrimLeft(r.URL.Path, "/"), RawQuery: q.Encode()}
	http.Redirect(w, r, to.String(), http.StatusSeeOther)
}

func refuse(w http.ResponseWriter, r *http.Request, wrong bool) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="slotscope"`)
	if strings.HasPrefix(r.URL.Path, "/api/") || isSocket(r) {
		deny(w, r, http.StatusUnauthorized, "This server requires a token. Send it in the header “Authorization: Bearer TOKEN”.")
		return
	}
	_ = handlers.DrawStatus(w, r, http.StatusUnauthorized, views.AskToken(views.TokenView{Wrong: wrong}))
}

func cookieKey(token string) string {
	sum := sha256.Sum256([]byte("slotscope cookie " + token))
	return hex.EncodeToString(sum[:])
}

func hasCookie(r *http.Request, name, key string) bool {
	c, err := r.Cookie(name)
	return err == nil && equal(c.Value, key)
}

func bearer(r *http.Request) string {
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	return strings.TrimSpace(text)
}

// equal compares strings of any length in constant time.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
