package run_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"slotscope/handlers/handlertest"
	"slotscope/model"
)

// socketClient imitates the page: it keeps the points of one series, applies rewinds and tracks its last step.
type socketClient struct {
	t       *testing.T
	conn    *websocket.Conn
	steps   []int
	head    int
	attempt int
	status  model.Run
}

type socketFrame struct {
	Type                    string
	From, To, Head, Attempt int
	Series                  map[string][]model.Sample
	Run                     model.Run
	Reason, Error           string
}

func (c *socketClient) dial(site *httptest.Server, id string) {
	c.t.Helper()
	conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(site.URL, "http")+"/ws/runs/"+id, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	c.conn = conn
	c.t.Cleanup(func() { conn.Close() })
	c.hello()
}

func (c *socketClient) hello() {
	c.t.Helper()
	if err := c.conn.WriteJSON(map[string]any{"type": "hello", "v": 1, "since": c.head, "attempt": c.attempt}); err != nil {
		c.t.Fatal(err)
	}
}

// read receives one frame; ok is false if the connection is closed.
func (c *socketClient) read() (f socketFrame, ok bool) {
	c.t.Helper()
	c.conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	_, body, err := c.conn.ReadMessage()
	if err != nil {
		return f, false
	}
	if err := json.Unmarshal(body, &f); err != nil {
		c.t.Fatalf("a frame is not JSON: %s", body)
	}
	c.take(f)
	return f, true
}

func (c *socketClient) take(f socketFrame) {
	switch f.Type {
	case "points":
		if f.From != c.head {
			c.t.Errorf("points from %d for a page that has %d", f.From, c.head)
		}
		for _, s := range f.Series["total"] {
			c.steps = append(c.steps, s.Step)
		}
		c.head, c.attempt = f.To, f.Attempt
	case "rewind":
		c.steps, c.head, c.attempt = c.steps[:f.To], f.To, f.Attempt
	case "status":
		c.status = f.Run
	}
}

// until reads frames up to the next of the given type.
func (c *socketClient) until(kind string) socketFrame {
	c.t.Helper()
	for {
		f, ok := c.read()
		if !ok {
			c.t.Fatalf("the connection ended before a frame of type %s", kind)
		}
		if f.Type == kind {
			return f
		}
	}
}

// catchUp reads until the client has step.
func (c *socketClient) catchUp(step int) {
	c.t.Helper()
	for c.head != step {
		if _, ok := c.read(); !ok {
			c.t.Fatalf("the connection ended at step %d of %d", c.head, step)
		}
	}
}

func everyStep(n int) []int {
	steps := make([]int, n)
	for i := range steps {
		steps[i] = i + 1
	}
	return steps
}

func liveSite(t *testing.T) (*handlertest.Runs, *httptest.Server) {
	t.Helper()
	f, h := runSite(t)
	site := httptest.NewServer(h)
	t.Cleanup(site.Close)
	return f, site
}

func TestSocketStreams(t *testing.T) {
	t.Parallel()
	f, site := liveSite(t)
	f.Put("a", model.Running, 2500)
	c := &socketClient{t: t}
	c.dial(site, "a")
	if hello := c.until("hello"); hello.Head != 2500 || hello.Attempt != 1 {
		t.Errorf("greeted with %+v", hello)
	}
	c.catchUp(2500)
	f.Grow("a", 40)
	c.catchUp(2540)
	if diff := cmp.Diff(everyStep(2540), c.steps); diff != "" {
		t.Error(diff)
	}
	if err := f.Stop(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	for c.status.State != model.Stopped {
		c.until("status")
	}
	f.Delete(t.Context(), "a")
	if bye := c.until("bye"); bye.Reason != "the run was deleted" {
		t.Errorf("closed with reason %q", bye.Reason)
	}
}

// At most ten frames per second are sent, however often the run changes.
func TestSocketCoalesces(t *testing.T) {
	t.Parallel()
	f, site := liveSite(t)
	f.Put("a", model.Running, 10)
	c := &socketClient{t: t}
	c.dial(site, "a")
	c.catchUp(10)
	go func() {
		for range 300 {
			f.Grow("a", 1)
			time.Sleep(3 * time.Millisecond)
		}
	}()
	start, frames := time.Now(), 0
	for c.head < 310 {
		if _, ok := c.read(); !ok {
			t.Fatal("the connection ended")
		}
		frames++
	}
	if most := int(time.Since(start).Seconds()*10) + 3; frames > most {
		t.Errorf("%d frames in %v, more than %d", frames, time.Since(start), most)
	}
	if diff := cmp.Diff(everyStep(310), c.steps); diff != "" {
		t.Error(diff)
	}
}

// After any disconnects and resumes, the client ends with every step of the store, each once.
func TestSocketSurvivesCutsAndResumes(t *testing.T) {
	t.Parallel()
	for trial := range 3 {
		f, site := liveSite(t)
		f.Put("a", model.Running, 100)
		random := rand.New(rand.NewPCG(1, uint64(trial)))
		c := &socketClient{t: t}
		c.dial(site, "a")
		for range 12 {
			switch random.IntN(4) {
			case 0:
				c.conn.Close()
				f.Grow("a", 1+random.IntN(50))
				c.dial(site, "a")
			case 1:
				f.ResumeFrom("a", f.Runs["a"].Step/2)
			case 2: // away for two resumes
				c.conn.Close()
				f.ResumeFrom("a", f.Runs["a"].Step/3)
				f.Grow("a", random.IntN(30))
				f.ResumeFrom("a", f.Runs["a"].Step-random.IntN(10))
				c.dial(site, "a")
			default:
				f.Grow("a", 1+random.IntN(20))
			}
			if random.IntN(2) == 0 {
				c.read()
			}
		}
		f.Grow("a", 5)
		page, err := f.Points(t.Context(), "a", model.PointQuery{})
		if err != nil {
			t.Fatal(err)
		}
		for c.head != page.Head || c.attempt != page.Attempt {
			if _, ok := c.read(); !ok {
				t.Fatalf("trial %d: the connection ended at %d of %d", trial, c.head, page.Head)
			}
		}
		if diff := cmp.Diff(everyStep(page.Head), c.steps); diff != "" {
			t.Errorf("trial %d: %s", trial, diff)
		}
	}
}

// A client that reconnects rewinds as far as the resumes in the meantime require, and no further.
func TestSocketRewinds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		attempt int // attempt of the client's 100 points
		resumes []int
		to      int // step it rewinds to; -1 for no rewind
	}{
		{"never resumed", 1, nil, -1},
		{"one", 1, []int{70}, 70},
		{"three, the second deepest", 1, []int{80, 60, 90}, 60},
		{"after the first, two", 2, []int{10, 80, 70}, 70},
		{"all seen", 3, []int{80, 60}, -1},
		{"two beyond its points", 1, []int{110, 100}, -1},
		{"of no attempt", 0, []int{80}, 0},
		{"of an attempt that never was", 7, []int{80}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, site := liveSite(t)
			f.Put("a", model.Running, 120)
			for _, keep := range c.resumes {
				f.ResumeFrom("a", keep)
				f.Grow("a", 120-keep)
			}
			page := &socketClient{t: t, steps: everyStep(100), head: 100, attempt: c.attempt}
			page.dial(site, "a")
			to := -1
			for page.head != 120 {
				frame, ok := page.read()
				if !ok {
					t.Fatalf("the connection ended at step %d", page.head)
				}
				if frame.Type == "rewind" {
					to = frame.To
				}
			}
			if to != c.to {
				t.Errorf("rewound to step %d, want %d", to, c.to)
			}
			if diff := cmp.Diff(everyStep(120), page.steps); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSocketAnswersNonsense(t *testing.T) {
	f, site := liveSite(t)
	f.Put("a", model.Running, 5)
	c := &socketClient{t: t}
	c.dial(site, "a")
	c.catchUp(5)
	for _, message := range []string{"hello there", `{"type":"dance"}`, `{"type":"hello","v":9}`, `{"type":"hello","v":1,"since":-4}`, `{"type":"hello","v":1,"since":4,"attempt":-1}`, strings.Repeat("x", 100_000)} {
		if err := c.conn.WriteMessage(websocket.TextMessage, []byte(message)); err != nil {
			t.Fatal(err)
		}
		if f := c.until("error"); !strings.HasSuffix(f.Error, ".") && !strings.HasSuffix(f.Error, "}") {
			t.Errorf("%s gives %q, want a sentence", message, f.Error)
		}
	}
	f.Grow("a", 3)
	c.catchUp(8)  // it continues
	for range 4 { // the tenth closes the socket
		c.conn.WriteMessage(websocket.TextMessage, []byte("?"))
	}
	if f := c.until("bye"); f.Reason != "too many invalid messages" {
		t.Errorf("after ten mistakes the reason is %q", f.Reason)
	}
	if _, ok := c.read(); ok {
		t.Error("it continues after ten mistakes")
	}
}

func TestSocketRefuses(t *testing.T) {
	_, site := liveSite(t)
	address := "ws" + strings.TrimPrefix(site.URL, "http") + "/ws/runs/"
	_, answer, err := websocket.DefaultDialer.Dial(address+"gone", nil)
	if err == nil || answer.StatusCode != 404 {
		t.Errorf("an unknown run returns %v", answer)
	}
	f, site := liveSite(t)
	f.Put("a", model.Running, 5)
	_, answer, err = websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(site.URL, "http")+"/ws/runs/a", http.Header{"Origin": {"http://elsewhere.example"}})
	if err == nil || answer.StatusCode != 403 {
		t.Errorf("another site's page can connect: %v", answer)
	}
}
