//go:build unix

package web

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestWhoComesIn has a row for every kind of client of a server on loopback.
func TestWhoComesIn(t *testing.T) {
	for _, c := range []struct {
		name  string
		user  int64
		root  bool // --allow-root
		path  string
		token string
		want  int
	}{
		{"its own user", 1000, false, "/", "", 200},
		{"another user", 1001, false, "/", "", 403},
		{"another user with the token", 1001, false, "/api/runs?token=t", "", 403},
		{"another user's probe", 1001, false, "/readyz", "", 200},
		{"root", 0, false, "/", "", 401},
		{"root with the token", 0, false, "/", "t", 200},
		{"root with --allow-root", 0, true, "/", "", 200},
		{"somebody", unknownUser, true, "/", "", 401},
		{"unknown user with a wrong token", unknownUser, false, "/", "s", 401},
		{"unknown user with the token", unknownUser, false, "/", "t", 200},
	} {
		a := &access{own: 1000, root: c.root, known: true, token: "t", addr: "127.0.0.1:1", log: slog.New(slog.DiscardHandler), told: map[int64]bool{}}
		r := httptest.NewRequest("GET", c.path, nil)
		r = r.WithContext(context.WithValue(r.Context(), connection{}, func() int64 { return c.user }))
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		w := httptest.NewRecorder()
		a.guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s: %d, want %d", c.name, w.Code, c.want)
		}
	}
}
