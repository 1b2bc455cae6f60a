package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"
)

// Limits of the server. There is no write timeout, because downloads may take long.
const (
	headerTime = 5 * time.Second
	idleTime   = 120 * time.Second
	headerSize = 64 << 10
	closeTime  = 10 * time.Second
)

// Listen listens on c.Addr; its error is a message for the user who started the server.
func Listen(c Config) (net.Listener, error) {
	if err := c.CheckAccess(); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", c.Addr)
	var dns *net.DNSError
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use by another program, perhaps another slotscope; stop it or choose another address with --addr, e.g. --addr 127.0.0.1:0 for any free port", c.Addr)
	case errors.Is(err, os.ErrPermission):
		return nil, fmt.Errorf("no permission to listen on %s: ports below 1024 are reserved; choose a higher port with --addr", c.Addr)
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.As(err, &dns):
		return nil, fmt.Errorf("%s is not an address of this machine; choose another with --addr", c.Addr)
	}
	return nil, fmt.Errorf("listening on %s: %w", c.Addr, err)
}

// CheckAccess returns an error if other machines can reach the address and no token is set.
func (c Config) CheckAccess() error {
	host, _, err := net.SplitHostPort(c.Addr)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not an address; use HOST:PORT, e.g. 127.0.0.1:8080", c.Addr)
	case c.Token != "" && c.Open:
		return errors.New("--open and --token cannot be combined; give one")
	case c.Token == "" && !loopback(host):
		return fmt.Errorf("other machines can reach %s, so a token is required; set it with --token or $SLOTSCOPE_TOKEN", c.Addr)
	}
	return nil
}

// Serve handles requests on l until ctx ends, then waits up to ten seconds for requests and WebSockets to finish. It calls ready once
// with the site's URL when the server accepts requests.
func Serve(ctx context.Context, l net.Listener, c Config, ready func(url string)) error {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.sockets, c.access = newSockets(), newAccess(c, l)
	c.Addr = l.Addr().String()
	h, err := New(c)
	if err != nil {
		l.Close()
		return err
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerSize, ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelWarn)}
	url := siteURL(l.Addr(), c.Token)
	if c.access != nil {
		srv.ConnContext = c.access.remember
		if !c.access.known {
			url = c.access.url
		}
	}
	srv.RegisterOnShutdown(c.sockets.close)
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	if ready != nil {
		ready(url)
	}
	select {
	case err := <-failed:
		return fmt.Errorf("serving on %s: %w", c.Addr, err)
	case <-ctx.Done():
	}
	return shutDown(context.WithoutCancel(ctx), srv, c.sockets)
}

func shutDown(ctx context.Context, srv *http.Server, s *sockets) error {
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	err := srv.Shutdown(ctx)
	s.end(ctx)
	if err != nil {
		srv.Close()
		return fmt.Errorf("closing the server: some requests did not finish within %v: %w", closeTime, err)
	}
	return nil
}

// siteURL returns the URL to open in a browser, including the token if there is one.
func siteURL(addr net.Addr, token string) string {
	host, port, _ := net.SplitHostPort(addr.String())
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	url := "http://" + net.JoinHostPort(host, port)
	if token != "" {
		url += "/?token=" + queryEscape(token)
	}
	return url
}
