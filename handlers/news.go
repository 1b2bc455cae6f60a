package handlers

import (
	"context"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
)

// Timing of notification sockets.
const (
	newsEvery   = time.Second // minimum time between messages
	newsWrite   = 10 * time.Second
	newsPing    = 25 * time.Second
	newsSilence = 60 * time.Second // without a pong, the client counts as gone
)

var newsUpgrader = websocket.Upgrader{ReadBufferSize: 1 << 10, WriteBufferSize: 1 << 10, HandshakeTimeout: 10 * time.Second}

// SendNews upgrades the request to a WebSocket and notifies the page of changes of any run until either side closes. It sends the result of
// news at the start and after every change, at most once per second; nil is not sent.
func SendNews(w http.ResponseWriter, r *http.Request, watch func(id string) (changes <-chan struct{}, cancel func()), news func(ctx context.Context) any) {
	conn, err := newsUpgrader.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has written the error response
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		awaitEnd(conn)
	}()
	tellNews(ctx, conn, watch, news)
	conn.Close()
	<-done
}

// awaitEnd reads and discards the client's messages, handling pongs, until the connection ends.
func awaitEnd(conn *websocket.Conn) {
	conn.SetReadLimit(512)
	conn.SetReadDeadline(time.Now().Add(newsSilence))
	conn.SetPongHandler(func(string) error { return conn.SetReadDeadline(time.Now().Add(newsSilence)) })
	for {
		if _, _, err := conn.NextReader(); err != nil {
			return
		}
	}
}

// tellNews sends news until ctx ends or the client has gone.
func tellNews(ctx context.Context, conn *websocket.Conn, watch func(string) (<-chan struct{}, func()), news func(context.Context) any) {
	changes, stop := watch("")
	defer stop()
	ping := time.NewTicker(newsPing)
	defer ping.Stop()
	for {
		if message := news(ctx); message != nil {
			conn.SetWriteDeadline(time.Now().Add(newsWrite))
			if conn.WriteJSON(message) != nil {
				return
			}
			select { // an active run changes many times per second
			case <-ctx.Done():
			case <-time.After(newsEvery):
			}
		}
		if !awaitChange(ctx, conn, changes, ping.C) {
			return
		}
	}
}

// awaitChange waits for the next change and sends pings; it returns false if ctx ends or the client has gone.
func awaitChange(ctx context.Context, conn *websocket.Conn, changes <-chan struct{}, ping <-chan time.Time) bool {
	for {
		select {
		case <-ctx.Done():
			conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseGoingAway, "the server is closing"), time.Now().Add(newsWrite))
			return false
		case <-ping:
			if conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(newsWrite)) != nil {
				return false
			}
		case <-changes:
			return true
		}
	}
}
