package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// CheckOrigin says why a text is no origin that may be named: a scheme, a host and perhaps a port, as browsers write them.
func CheckOrigin(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return fmt.Errorf("%q is not an origin such as https://lab.example", text)
	case u.Scheme+"://"+u.Host != text:
		return fmt.Errorf("%q is more than an origin; leave out user, path and query", text)
	case text != strings.ToLower(text) || strings.ContainsAny(u.Host, "*;,' \t"):
		return fmt.Errorf("%q is not written as browsers write origins: lower case, without wildcards", text)
	case u.Port() == "80" && u.Scheme == "http", u.Port() == "443" && u.Scheme == "https":
		return fmt.Errorf("%q names the port that its scheme implies; browsers leave it out", text)
	}
	return nil
}

// shareReads lets pages of the origins named read answers, without cookies. They may not write: what is asked before a write is answered
// without permission, and the write itself is refused as any other site's.
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
