package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/gorilla/websocket"

	"slotscope/handlers"
	"slotscope/model"
)

// Timing and limits of a run's WebSocket.
const (
	frameEvery  = 200 * time.Millisecond // at most two frames each time: ten per second
	writeTime   = 10 * time.Second
	pingEvery   = 25 * time.Second
	silenceTime = 60 * time.Second // without a message or pong, the client counts as gone
	socketRead  = 4 << 10
	socketSteps = 1000 // steps in one frame of points
	maxMistakes = 10   // unreadable messages before the socket is closed
)

// greetTime is how long a socket waits for the client's first hello.
var greetTime = 10 * time.Second

// hello starts the exchange in both directions; another hello from the client restarts it.
type hello struct {
	Type    string `json:"type"` // "hello"
	V       int    `json:"v,omitempty"`
	Since   int    `json:"since,omitempty"` // last step that the client has
	Head    int    `json:"head"`            // last step stored
	Attempt int    `json:"attempt"`
	Resumed int    `json:"resumed"`
	Alerted int64  `json:"alerted"` // ID of the newest alert that the client has; 0 from the client means the newest that exists
}

type pointsFrame struct {
	Type    string                    `json:"type"` // "points"
	From    int                       `json:"from"` // exclusive
	To      int                       `json:"to"`   // inclusive
	Attempt int                       `json:"attempt"`
	Series  map[string][]model.Sample `json:"series"`
}

type statusFrame struct {
	Type string    `json:"type"` // "status"
	Run  model.Run `json:"run"`
}

type alertFrame struct {
	Type  string      `json:"type"` // "alert"
	Alert model.Alert `json:"alert"`
}

type rewindFrame struct {
	Type    string `json:"type"` // "rewind"
	To      int    `json:"to"`   // the client drops its points after this step
	Attempt int    `json:"attempt"`
}

type endFrame struct {
	Type   string `json:"type"` // "bye" or "error"
	Reason string `json:"reason,omitempty"`
	Error  string `json:"error,omitempty"`
}

var upgrader = websocket.Upgrader{ReadBufferSize: 4 << 10, WriteBufferSize: 32 << 10, WriteBufferPool: &sync.Pool{}, HandshakeTimeout: 10 * time.Second}

// socket streams a run: the client sends its last step, and the server sends the points after it as they arrive. Points are read from the
// store, so a client that reconnects misses nothing, and a slow client delays nobody.
func (h Runs) socket(common *share) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := chi.URLParam(r, "id")
		if _, err := h.Service.Get(r.Context(), id); err != nil {
			handlers.Fail(w, r, err)
			return
		}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return // Upgrade has written the error response
		}
		ctx, cancel := context.WithCancelCause(r.Context())
		s := &runSocket{runs: h.Service, common: common, id: id, conn: conn, hellos: make(chan hello), notes: make(chan string)}
		done := make(chan struct{})
		go func() { defer close(done); cancel(s.read(ctx)) }()
		s.write(ctx)
		cancel(nil)
		conn.Close()
		<-done
	}
}

// runSocket is a client's connection. read and write run in separate goroutines; only write sends.
type runSocket struct {
	runs interface {
		handlers.RunReader
		handlers.RunSeries
		handlers.RunNews
	}
	common *share
	id     string
	conn   *websocket.Conn

	hellos chan hello
	notes  chan string // error messages for a client whose message was invalid

	changed time.Time // time of the last change notification
	since   int       // last step sent
	attempt int       // the attempt that since belongs to
	status  []byte
	alerted int64 // last alert sent
}

// errSilent closes the connection of a client that sends neither messages nor pongs.
type errSilent time.Duration

func (e errSilent) Error() string { return fmt.Sprintf("no message for %v", time.Duration(e)) }

// errMistakes closes the connection of a client that does not follow the protocol.
var errMistakes = errors.New("too many invalid messages")

// read receives the client's messages until the connection ends; a non-nil error is the reason to close it.
func (s *runSocket) read(ctx context.Context) error {
	patience := greetTime
	s.conn.SetReadDeadline(time.Now().Add(patience))
	s.conn.SetPongHandler(func(string) error { return s.conn.SetReadDeadline(time.Now().Add(silenceTime)) })
	for mistakes := 0; mistakes < maxMistakes; {
		_, message, err := s.conn.NextReader() // skips the rest of the previous message
		if handlers.TimedOut(err) {
			return errSilent(patience)
		}
		if err != nil {
			return nil
		}
		patience = silenceTime
		body, err := io.ReadAll(io.LimitReader(message, socketRead+1))
		if err != nil {
			return nil
		}
		s.conn.SetReadDeadline(time.Now().Add(silenceTime))
		in, why := readHello(body)
		if why != "" {
			mistakes++
			if !send(ctx, s.notes, why) {
				return nil
			}
			continue
		}
		if !send(ctx, s.hellos, in) {
			return nil
		}
	}
	return errMistakes
}

// readHello parses a client's message; why is a sentence if it is invalid.
func readHello(message []byte) (in hello, why string) {
	if len(message) > socketRead {
		return in, fmt.Sprintf("the message is larger than the limit of %d bytes", socketRead)
	}
	switch err := json.Unmarshal(message, &in); {
	case err != nil:
		return in, fmt.Sprintf("the message is not the expected JSON: %s; send e.g. {\"type\":\"hello\",\"v\":1,\"since\":0,\"attempt\":0}", model.JSONFault(err))
	case in.Type != "hello":
		return in, fmt.Sprintf("unknown message type %q; send \"hello\"", in.Type)
	case in.V != 1:
		return in, fmt.Sprintf("protocol version %d is not supported; use 1", in.V)
	case in.Since < 0:
		return in, fmt.Sprintf("since is %d; steps start at 0", in.Since)
	case in.Attempt < 0:
		return in, fmt.Sprintf("attempt is %d; attempts start at 1, 0 means none", in.Attempt)
	}
	return in, ""
}

func send[T any](ctx context.Context, to chan<- T, v T) bool {
	select {
	case to <- v:
		return true
	case <-ctx.Done():
		return false
	}
}

// write sends frames until the client disconnects or the server closes. It sends nothing about the run before the first hello.
func (s *runSocket) write(ctx context.Context) {
	changes, cancel := s.runs.Watch(s.id)
	defer cancel()
	s.changed = time.Now()
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	tick := time.NewTimer(untilFrame(time.Now()))
	defer tick.Stop()
	greeted, dirty := false, false
	for {
		var err error
		select {
		case <-ctx.Done():
			why, silent := context.Cause(ctx), errSilent(0)
			if errors.Is(why, errMistakes) || errors.As(why, &silent) {
				s.frame(endFrame{Type: "bye", Reason: why.Error()})
				s.close(websocket.ClosePolicyViolation, why.Error())
				return
			}
			s.frame(endFrame{Type: "bye", Reason: "the server is closing"})
			s.close(websocket.CloseGoingAway, "closing")
			return
		case in := <-s.hellos:
			greeted, dirty = true, true
			err = s.greet(ctx, in)
		case why := <-s.notes:
			err = s.frame(endFrame{Type: "error", Error: handlers.Sentence(why)})
		case <-changes:
			dirty, s.changed = true, time.Now()
		case <-ping.C:
			err = s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTime))
		case <-tick.C:
			tick.Reset(untilFrame(time.Now()))
			if greeted && dirty {
				dirty, err = s.update(ctx)
			}
		}
		if err != nil {
			s.end(ctx, err)
			return
		}
	}
}

// greet replies to a hello and starts from its step.
func (s *runSocket) greet(ctx context.Context, in hello) error {
	page, err := s.runs.Points(ctx, s.id, model.PointQuery{Since: in.Since, Names: []string{"total"}, Limit: 1, Attempt: in.Attempt})
	if err != nil {
		return err
	}
	s.since, s.attempt, s.status, s.alerted = in.Since, in.Attempt, nil, in.Alerted
	if s.alerted == 0 {
		newest, err := s.runs.Alerts(ctx, model.AlertQuery{Run: s.id, Limit: 1})
		if err != nil {
			return err
		}
		if len(newest) > 0 {
			s.alerted = newest[0].ID
		}
	}
	return s.frame(hello{Type: "hello", Head: page.Head, Attempt: page.Attempt, Resumed: page.Resumed, Alerted: s.alerted})
}

// update sends at most one status frame and one points frame; more reports whether points are left.
func (s *runSocket) update(ctx context.Context) (more bool, err error) {
	if err := s.sendStatus(ctx); err != nil {
		return false, err
	}
	if err := s.sendAlerts(ctx); err != nil {
		return false, err
	}
	return s.sendPoints(ctx)
}

func (s *runSocket) sendAlerts(ctx context.Context) error {
	later, err := ask(ctx, s.common, question{run: s.id, kind: "alerts", since: s.alerted}, s.changed, func(ctx context.Context) ([]model.Alert, error) {
		return s.runs.Alerts(ctx, model.AlertQuery{Run: s.id, After: s.alerted})
	})
	if err != nil {
		return err
	}
	for _, a := range slices.Backward(later) {
		s.alerted = a.ID
		if err := s.frame(alertFrame{Type: "alert", Alert: a}); err != nil {
			return err
		}
	}
	return nil
}

// message is an encoded frame, shared by all sockets that send it.
type message struct {
	body     []byte
	prepared *websocket.PreparedMessage
}

func newMessage(id string, v any) (m message, err error) {
	if m.body, err = json.Marshal(v); err == nil {
		m.prepared, err = websocket.NewPreparedMessage(websocket.TextMessage, m.body)
	}
	if err != nil {
		return m, fmt.Errorf("encoding a frame for run %s: %w", id, err)
	}
	return m, nil
}

func (s *runSocket) send(m message) error {
	s.conn.SetWriteDeadline(time.Now().Add(writeTime))
	return s.conn.WritePreparedMessage(m.prepared)
}

func (s *runSocket) sendStatus(ctx context.Context) error {
	status, err := ask(ctx, s.common, question{run: s.id, kind: "status"}, s.changed, func(ctx context.Context) (message, error) {
		run, err := s.runs.Get(ctx, s.id)
		if err != nil {
			return message{}, err
		}
		return newMessage(s.id, statusFrame{Type: "status", Run: run})
	})
	if err != nil || bytes.Equal(status.body, s.status) {
		return err
	}
	s.status = status.body
	return s.send(status)
}

// news is a page of points and the frame with them, if any.
type news struct {
	page  model.PointPage // without its points
	frame message
}

func (s *runSocket) sendPoints(ctx context.Context) (more bool, err error) {
	n, err := ask(ctx, s.common, question{s.id, "points", int64(s.since), s.attempt}, s.changed, s.news)
	if err != nil {
		return false, err
	}
	page := n.page
	if to, needed := rewound(s.since, s.attempt, page); needed {
		s.since, s.attempt = to, page.Attempt
		return true, s.frame(rewindFrame{Type: "rewind", To: to, Attempt: page.Attempt})
	}
	s.attempt = page.Attempt
	if page.Last <= s.since {
		return false, nil
	}
	s.since = page.Last
	return page.Last < page.Head, s.send(n.frame)
}

// news reads the points after the last sent step.
func (s *runSocket) news(ctx context.Context) (n news, err error) {
	n.page, err = s.runs.Points(ctx, s.id, model.PointQuery{Since: s.since, Limit: socketSteps, Attempt: s.attempt})
	if _, needed := rewound(s.since, s.attempt, n.page); err == nil && !needed && n.page.Last > s.since {
		n.frame, err = newMessage(s.id, pointsFrame{Type: "points", From: s.since, To: n.page.Last, Attempt: n.page.Attempt, Series: n.page.Series})
	}
	n.page.Series = nil
	return n, err
}

// rewound returns the step to which a client with points up to since, from the given attempt, must rewind. Each resume replaces the points
// after the step it continued from. The page was requested with that attempt, so page.Resumed covers all resumes since. A client without
// an attempt must start over.
func rewound(since, attempt int, page model.PointPage) (to int, needed bool) {
	kept := page.Head
	switch {
	case attempt == 0:
		kept = 0
	case attempt != page.Attempt:
		kept = min(page.Resumed, page.Head)
	}
	return min(kept, since), since > kept
}

func (s *runSocket) frame(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding a frame for run %s: %w", s.id, err)
	}
	return s.bytes(body)
}

func (s *runSocket) bytes(body []byte) error {
	s.conn.SetWriteDeadline(time.Now().Add(writeTime))
	return s.conn.WriteMessage(websocket.TextMessage, body)
}

// end sends the final frame after an error, such as a deleted run or a failed read. If the client has gone, it sends nothing.
func (s *runSocket) end(ctx context.Context, err error) {
	switch {
	case errors.Is(err, model.ErrNotFound):
		s.frame(endFrame{Type: "bye", Reason: "the run was deleted"})
		s.close(websocket.CloseNormalClosure, "deleted")
	case ctx.Err() != nil, isNetwork(err):
	default:
		slog.ErrorContext(ctx, "streaming a run", "run", s.id, "error", err)
		s.frame(endFrame{Type: "error", Error: handlers.FaultIn(ctx)})
		s.close(websocket.CloseInternalServerErr, "failed")
	}
}

func (s *runSocket) close(code int, text string) {
	s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, text), time.Now().Add(time.Second))
}

func isNetwork(err error) bool {
	var timeout interface{ Timeout() bool }
	var closed *websocket.CloseError
	return errors.Is(err, websocket.ErrCloseSent) || errors.As(err, &closed) || errors.As(err, &timeout)
}
