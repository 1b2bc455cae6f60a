package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// CheckOrigin returns an error unless text is an origin in the form that browsers send: scheme, host and optional port.
func CheckOrigin(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return fmt.Errorf("%q is not an origin; use e.g. https://lab.example", text)
	case u.Scheme+"://"+u.Host != text:
		return fmt.Errorf("%q is more than an origin; remove user, path and query", text)
	case text != strings.ToLower(text) || strings.ContainsAny(u.Host, "*;,' \t"):
		return fmt.Errorf("%q is not a valid origin; use lower case and no wildcards", text)
	case u.Port() == "80" && u.Scheme == "http", u.Port() == "443" && u.Scheme == "https":
		return fmt.Errorf("%q has the default port of its scheme; remove the port, as browsers do", text)
	}
	return nil
}

// shareReads allows pages of the given origins to read responses, without cookies. They cannot write: preflight requests for writes get no
// permission, and writes are rejected as from any other site.
func shareReads(origins []string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		if len(origins) == 0 {
			return next
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Add("Vary", "Origin")
			from := r.Header.Get("Origin")
			if !slices.Contains(origins, from) || isSocket(r) {
				next.ServeHTTP(w, r)
				return
			}
			switch asked := r.Header.Get("Access-Control-Request-Method"); {
			case r.Method == http.MethodGet, r.Method == http.MethodHead:
				h.Set("Access-Control-Allow-Origin", from)
				next.ServeHTTP(w, r)
			case r.Method == http.MethodOptions && (asked == http.MethodGet || asked == http.MethodHead):
				h.Set("Access-Control-Allow-Origin", from)
				h.Set("Access-Control-Allow-Methods", "GET, HEAD")
				h.Set("Access-Control-Allow-Headers", "Authorization")
				w.WriteHeader(http.StatusNoContent)
			default:
				next.ServeHTTP(w, r)
			}
		})
	}
}
