package compare_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"slotscope/handlers/handlertest"
	"slotscope/model"
)

// standing is one message of the socket.
type standing struct {
	Type, Points, Scores string
	Live                 int
}

// TestSocketSendsProgress checks that the socket sends progress at once and after every change of the compared runs, but not for
// changes of other runs.
func TestSocketSendsProgress(t *testing.T) {
	f, h := openReports(t)
	handlertest.Pair(f)
	f.Put("r", model.Running, 10)
	f.Put("other", model.Running, 10)
	server := httptest.NewServer(h)
	defer server.Close()
	conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http")+"/ws/compare?runs=a0,r", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	next := func() (s standing) {
		conn.SetReadDeadline(time.Now().Add(time.Minute))
		if err := conn.ReadJSON(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := next()
	if first.Type != "standing" || first.Live != 1 {
		t.Errorf("at first: %+v", first)
	}
	f.Grow("other", 5)
	f.Grow("r", 5)
	grown := next()
	if grown.Points == first.Points || grown.Scores != first.Scores {
		t.Errorf("after five steps: %+v, before: %+v", grown, first)
	}
	if err := f.Stop(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	if stopped := next(); stopped.Points != grown.Points || stopped.Scores == grown.Scores {
		t.Errorf("after the stop: %+v, before: %+v", stopped, grown)
	}
	for path, want := range map[string]int{"/ws/compare": 422, "/ws/compare?runs=nothing": 404, "/ws/compare?sweep=nothing": 404} {
		if _, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http")+path, nil); err == nil || resp.StatusCode != want {
			t.Errorf("%s: %v %v, want status %d", path, err, resp, want)
		}
	}
}
