package handlers

import (
	"context"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
)

// Timing of sockets that only tell news.
const (
	newsEvery   = time.Second // one message at most each time
	newsWrite   = 10 * time.Second
	newsPing    = 25 * time.Second
	newsSilence = 60 * time.Second // without a pong the visitor is gone
)

var newsUpgrader = websocket.Upgrader{ReadBufferSize: 1 << 10, WriteBufferSize: 1 << 10, HandshakeTimeout: 10 * time.Second}

// SendNews keeps a socket that tells a page what is new about runs, wherever they were started, until either side leaves. At first and
// after every change, at most once a second, news says what to send; nil is not sent.
func SendNews(w http.ResponseWriter, r *http.Request, watch func(id string) (changes <-chan struct{}, cancel func()), news func(ctx context.Context) any) {
	conn, err := newsUpgrader.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has answered
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

// awaitEnd takes what the visitor sends, which is nothing but pongs, until the connection ends.
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

// tellNews sends news until ctx ends or the visitor is gone.
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
			select { // a run that works announces itself many times a second
			case <-ctx.Done():
			case <-time.After(newsEvery):
			}
		}
		if !awaitChange(ctx, conn, changes, ping.C) {
			return
		}
	}
}

// awaitChange waits for the next change, pinging meanwhile; false where ctx ends or the visitor is gone.
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
