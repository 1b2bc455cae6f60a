package web

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"

	"slotscope/web/peer"
)

// access controls who may use a server without --token. On loopback, only the server's own user may; other users of the machine are
// rejected. Connections whose user is unknown, such as a forwarded port, need a token that the server generates.
type access struct {
	own   int64 // user ID of this process
	root  bool  // also allow root
	known bool  // owners of connections can be determined
	token string
	addr  string // host:port
	url   string // URL of the site with the token
	log   *slog.Logger

	mu   sync.Mutex
	told map[int64]bool // users already logged; unknownUser for unknown ones
}

// unknownUser represents an unknown owner of a connection.
const unknownUser = -1

// newAccess returns nil if everyone may use the site or the operator set a token.
func newAccess(c Config, l net.Listener) *access {
	host, _, _ := net.SplitHostPort(l.Addr().String())
	if c.Open || c.Token != "" || !loopback(host) {
		return nil
	}
	token := rand.Text()
	return &access{own: int64(os.Geteuid()), root: c.Root, known: peer.Known(), token: token, addr: l.Addr().String(), url: siteURL(l.Addr(), token), log: c.Log, told: map[int64]bool{}}
}

type connection struct{}

// remember stores in the context a function that looks up the connection's owner once; see user.
func (a *access) remember(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connection{}, sync.OnceValue(func() int64 {
		uid, err := peer.Owner(c)
		if err != nil || !a.known {
			return unknownUser
		}
		return int64(uid)
	}))
}

// user returns the ID of the user who owns the request's connection, or unknownUser.
func user(r *http.Request) int64 {
	if of, ok := r.Context().Value(connection{}).(func() int64); ok {
		return of()
	}
	return unknownUser
}

// guard allows the server's own user, rejects other users, and requires the token from unknown users and from root, because root
// forwards connections of others, for example into containers.
func (a *access) guard(next http.Handler) http.Handler {
	asking := askToken(a.token, a.addr)(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		uid := user(r)
		switch {
		case probePath(r.URL.Path), uid == a.own, uid == 0 && a.root:
			next.ServeHTTP(w, r)
		case uid == unknownUser, uid == 0:
			a.tell(uid, "a connection may belong to another user; the token is required", "open", a.url)
			asking.ServeHTTP(w, r)
		default:
			a.tell(uid, "rejected a connection of another user", "uid", uid)
			deny(w, r, http.StatusForbidden, fmt.Sprintf("This server belongs to another user of this machine and serves only that user. "+
				"You are user %d. The owner can share it with --token.", uid))
		}
	})
}

// tell logs a message once per user.
func (a *access) tell(uid int64, text string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.told[uid] {
		a.told[uid] = true
		a.log.Warn(text, args...)
	}
}
