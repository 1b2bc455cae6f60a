package play

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"slotscope/handlers"
	"slotscope/model/play"
)

// Limits of one socket of the playground.
const (
	playPongTime  = 60 * time.Second // without a pong for this long, the client has gone
	playPingEvery = 54 * time.Second
	playWriteTime = 10 * time.Second
	playReadLimit = 64 << 10
)

// playUpgrader keeps the default CheckOrigin, which accepts pages of this host only.
var playUpgrader = websocket.Upgrader{ReadBufferSize: 4 << 10, WriteBufferSize: 32 << 10, WriteBufferPool: &sync.Pool{}}

// socket decodes images interactively. The page sends {"seq":n,"codes":[[…],…],"lane":"held"} with 1–64 tuples. The reply is a binary frame,
// little-endian: seq uint32; count, H, W and C uint16; then count · H · W · C bytes. In each lane ("held", "strip", "rest", "palette",
// "beside", "aside", "many") a new request replaces the previous one, which then gets no reply. The reply to an invalid request is
// {"seq":n,"error":"sentence"}.
func (p *Play) socket(w http.ResponseWriter, r *http.Request) {
	rm, release, err := p.open(r)
	if err != nil {
		handlers.Fail(w, r, err)
		return
	}
	defer release()
	conn, err := playUpgrader.Upgrade(w, r, nil)
	if err != nil {
		return // playUpgrader has written the error
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s := &playSocket{room: rm, conn: conn, out: make(chan playFrame), lanes: map[string]context.CancelFunc{}}
	var tasks sync.WaitGroup
	tasks.Go(func() { s.write(ctx); cancel() })
	s.read(ctx, &tasks)
	cancel()
	conn.Close()
	tasks.Wait()
}

// playSocket has one reader, one writer, and one task for the newest request of each lane.
type playSocket struct {
	room  playRoom
	conn  *websocket.Conn
	out   chan playFrame
	lanes map[string]context.CancelFunc // used by the reader only
}

// playFrame is an outgoing message.
type playFrame struct {
	kind int
	body []byte
}

type playRequest struct {
	Seq   uint32  `json:"seq"`
	Codes [][]int `json:"codes"`
	Lane  string  `json:"lane"`
}

func (s *playSocket) read(ctx context.Context, tasks *sync.WaitGroup) {
	s.conn.SetReadDeadline(time.Now().Add(playPongTime))
	s.conn.SetPongHandler(func(string) error { return s.conn.SetReadDeadline(time.Now().Add(playPongTime)) })
	for {
		_, message, err := s.conn.NextReader() // skips unread bytes of the previous message
		if handlers.TimedOut(err) {
			why := websocket.FormatCloseMessage(websocket.ClosePolicyViolation, fmt.Sprintf("no message for %v", playPongTime))
			s.conn.WriteControl(websocket.CloseMessage, why, time.Now().Add(time.Second))
		}
		if err != nil {
			return
		}
		body, err := io.ReadAll(io.LimitReader(message, playReadLimit+1))
		if err != nil {
			return
		}
		if len(body) > playReadLimit {
			s.send(ctx, playRefusal(0, fmt.Sprintf("That message is too large (limit %d bytes).", playReadLimit)))
			continue
		}
		var in playRequest
		if err := json.Unmarshal(body, &in); err != nil {
			s.send(ctx, playRefusal(0, `That message is not valid JSON; send {"seq":1,"codes":[[17,301,4]]}.`))
			continue
		}
		if err := checkCount(len(in.Codes)); err != nil {
			s.send(ctx, playRefusal(in.Seq, handlers.SentenceOf(err)))
			continue
		}
		lane, ok := playLanes[in.Lane]
		if !ok {
			s.send(ctx, playRefusal(in.Seq, `Unknown lane; use "held", "strip", "rest", "palette", "beside", "aside" or "many".`))
			continue
		}
		if before := s.lanes[lane]; before != nil {
			before()
		}
		mine, cancel := context.WithCancel(ctx)
		s.lanes[lane] = cancel
		tasks.Go(func() {
			defer cancel()
			s.answer(mine, in)
		})
	}
}

// playLanes maps the lane of a request to its name; the default is "held".
var playLanes = map[string]string{"": "held", "held": "held", "strip": "strip", "rest": "rest", "palette": "palette", "beside": "beside", "aside": "aside", "many": "many"}

func (s *playSocket) answer(ctx context.Context, in playRequest) {
	images, err := s.room.model.Decode(ctx, urgencyOf(in.Lane), in.Codes)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		if handlers.StatusOf(err) == http.StatusInternalServerError && !errors.Is(err, context.Canceled) {
			slog.ErrorContext(ctx, "decoding for a socket", "checkpoint", s.room.source.Key, "error", err)
		}
		s.send(ctx, playRefusal(in.Seq, handlers.SentenceOf(err)))
	default:
		s.send(ctx, playFrame{websocket.BinaryMessage, packImages(in.Seq, images, s.room.model)})
	}
}

// packImages encodes a reply: seq, count, H, W, C, pixels.
func packImages(seq uint32, images [][]byte, m *play.Model) []byte {
	out := make([]byte, 0, 12+len(images)*m.Size())
	out = binary.LittleEndian.AppendUint32(out, seq)
	for _, n := range []int{len(images), m.Image.H, m.Image.W, m.Image.C} {
		out = binary.LittleEndian.AppendUint16(out, uint16(n))
	}
	for _, pixels := range images {
		out = append(out, pixels...)
	}
	return out
}

func playRefusal(seq uint32, text string) playFrame {
	body, _ := json.Marshal(map[string]any{"seq": seq, "error": text}) // cannot fail
	return playFrame{websocket.TextMessage, body}
}

// send passes a message to the writer, or drops it once ctx is done.
func (s *playSocket) send(ctx context.Context, f playFrame) {
	select {
	case s.out <- f:
	case <-ctx.Done():
	}
}

func (s *playSocket) write(ctx context.Context) {
	ping := time.NewTicker(playPingEvery)
	defer ping.Stop()
	defer s.conn.Close() // ends the reader too
	for {
		var f playFrame
		select {
		case f = <-s.out:
		case <-ping.C:
			f = playFrame{kind: websocket.PingMessage}
		case <-ctx.Done():
			bye := websocket.FormatCloseMessage(websocket.CloseGoingAway, "the server is closing")
			s.conn.WriteControl(websocket.CloseMessage, bye, time.Now().Add(time.Second))
			return
		}
		s.conn.SetWriteDeadline(time.Now().Add(playWriteTime))
		if err := s.conn.WriteMessage(f.kind, f.body); err != nil {
			return
		}
	}
}
