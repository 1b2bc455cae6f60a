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

// access is who may use a server without --token. On loopback that is its own user; another user of the machine is refused. Whoever
// cannot be told apart, such as a forwarded port, needs a token that the server makes up.
type access struct {
	own   int64 // user ID of this process
	root  bool  // root is let in too
	known bool  // the owner of a connection can be known here
	token string
	addr  string // host:port
	url   string // address of the site with the token
	log   *slog.Logger

	mu   sync.Mutex
	told map[int64]bool // users whose refusal was logged; unknownUser for those that cannot be known
}

// unknownUser stands for the owner of a connection that cannot be known.
const unknownUser = -1

// newAccess is nil where everybody may come in, or a token of the operator's guards the site.
func newAccess(c Config, l net.Listener) *access {
	host, _, _ := net.SplitHostPort(l.Addr().String())
	if c.Open || c.Token != "" || !loopback(host) {
		return nil
	}
	token := rand.Text()
	return &access{own: int64(os.Geteuid()), root: c.Root, known: peer.Known(), token: token, addr: l.Addr().String(), url: siteURL(l.Addr(), token), log: c.Log, told: map[int64]bool{}}
}

type connection struct{}

// remember keeps a connection for user, which looks once for whose it is.
func (a *access) remember(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connection{}, sync.OnceValue(func() int64 {
		uid, err := peer.Owner(c)
		if err != nil || !a.known {
			return unknownUser
		}
		return int64(uid)
	}))
}

// user is the ID of the user who made the request's connection, or unknownUser.
func user(r *http.Request) int64 {
	if of, ok := r.Context().Value(connection{}).(func() int64); ok {
		return of()
	}
	return unknownUser
}

// guard lets in the server's own user, refuses others, and asks those it cannot tell apart for the token. Root is among the last: it
// forwards the connections of others, in containers for example.
func (a *access) guard(next http.Handler) http.Handler {
	asking := askToken(a.token, a.addr)(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		uid := user(r)
		switch {
		case probePath(r.URL.Path), uid == a.own, uid == 0 && a.root:
			next.ServeHTTP(w, r)
		case uid == unknownUser, uid == 0:
			a.tell(uid, "a connection may belong to another user, so it needs the token", "open", a.url)
			asking.ServeHTTP(w, r)
		default:
			a.tell(uid, "refused a connection of another user", "uid", uid)
			deny(w, r, http.StatusForbidden, fmt.Sprintf("This server belongs to another user of this machine and serves only that user. "+
				"You are user %d. Its owner can share it with --token.", uid))
		}
	})
}

// tell logs once per user.
func (a *access) tell(uid int64, text string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.told[uid] {
		a.told[uid] = true
		a.log.Warn(text, args...)
	}
}
