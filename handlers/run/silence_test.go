package run

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/gorilla/websocket"

	"slotscope/handlers"
	"slotscope/model"
)

// oneRun is a service with one run that never changes.
type oneRun struct{ handlers.RunService }

func (oneRun) Get(_ context.Context, id string) (model.Run, error) { return model.Run{ID: id}, nil }

func (oneRun) Watch(string) (<-chan struct{}, func()) { return nil, func() {} }

// TestSilence: a client that sends nothing gets the reason before the socket closes.
func TestSilence(t *testing.T) {
	before := greetTime
	greetTime = 50 * time.Millisecond
	t.Cleanup(func() { greetTime = before })
	r := chi.NewRouter()
	r.Get("/ws/runs/{id}", Runs{Service: oneRun{}}.socket(&share{}))
	server := httptest.NewServer(r)
	defer server.Close()
	conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http")+"/ws/runs/1", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, message, err := conn.ReadMessage()
	var bye endFrame
	if err != nil || json.Unmarshal(message, &bye) != nil || bye != (endFrame{Type: "bye", Reason: "no message for 50ms"}) {
		t.Errorf("got %s, %v", message, err)
	}
	var closed *websocket.CloseError
	if _, _, err := conn.ReadMessage(); !errors.As(err, &closed) || closed.Code != websocket.ClosePolicyViolation || closed.Text != "no message for 50ms" {
		t.Errorf("closed with %v", err)
	}
}
