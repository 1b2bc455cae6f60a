package workbench

import (
	"context"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
)

// Timing of the list's socket.
const (
	newsEvery   = time.Second // one message at most each time
	writeTime   = 10 * time.Second
	pingEvery   = 25 * time.Second
	silenceTime = 60 * time.Second // without a pong the visitor is gone
)

var upgrader = websocket.Upgrader{ReadBufferSize: 1 << 10, WriteBufferSize: 1 << 10, HandshakeTimeout: 10 * time.Second}

// socket says {"type":"changed"} whenever something about any run is new, wherever it was started; the page then asks for the list again.
func (h Workbench) socket(w http.ResponseWriter, r *http.Request) {
	conn, err := upgrader.Upgrade(w, r, nil)
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
		listen(conn)
	}()
	h.announce(ctx, conn)
	conn.Close()
	<-done
}

// listen takes what the visitor sends, which is nothing but pongs, until the connection ends.
func listen(conn *websocket.Conn) {
	conn.SetReadLimit(512)
	conn.SetReadDeadline(time.Now().Add(silenceTime))
	conn.SetPongHandler(func(string) error { return conn.SetReadDeadline(time.Now().Add(silenceTime)) })
	for {
		if _, _, err := conn.NextReader(); err != nil {
			return
		}
	}
}

// announce sends news until ctx ends or the visitor is gone.
func (h Workbench) announce(ctx context.Context, conn *websocket.Conn) {
	changes, stop := h.Runs.Watch("")
	defer stop()
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		select {
		case <-ctx.Done():
			conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseGoingAway, "the server is closing"), time.Now().Add(writeTime))
			return
		case <-ping.C:
			if conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTime)) != nil {
				return
			}
		case <-changes:
			conn.SetWriteDeadline(time.Now().Add(writeTime))
			if conn.WriteJSON(map[string]string{"type": "changed"}) != nil {
				return
			}
			select { // a run that works announces itself many times a second
			case <-ctx.Done():
			case <-time.After(newsEvery):
			}
		}
	}
}
