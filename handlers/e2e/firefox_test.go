//go:build linux

package e2e_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"slotscope/model"
	"slotscope/model/expect"
)

// firefox is a second browser, besides the Chromium of the other tests, driven by WebDriver BiDi.
type firefox struct {
	t      *testing.T
	conn   *websocket.Conn
	sent   int
	tab    string
	errors []string // console errors of pages
}

// bidi is a message from the browser: a reply to a command, or an event.
type bidi struct {
	Type    string          `json:"type"`
	ID      int             `json:"id"`
	Result  json.RawMessage `json:"result"`
	Error   string          `json:"error"`
	Message string          `json:"message"`
	Params  struct {
		Level string `json:"level"`
		Text  string `json:"text"`
	} `json:"params"`
}

// startFirefox starts Firefox with one tab of 1280 × 900 pixels.
func startFirefox(t *testing.T) *firefox {
	t.Helper()
	name := ""
	for _, one := range []string{"firefox-esr", "firefox"} {
		if path, err := exec.LookPath(one); err == nil && name == "" {
			name = path
		}
	}
	if name == "" {
		t.Skip("Firefox is not installed; pages are only tested in Chromium")
	}
	home := t.TempDir()
	cmd := exec.Command(name, "--headless", "--no-remote", "--profile", home, "--remote-debugging-port", "0", "--width", "1280", "--height", "900", "about:blank")
	cmd.Env = append(cmd.Environ(), "HOME="+home, "MOZ_CRASHREPORTER_DISABLE=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
	})
	address := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(said)
		for lines.Scan() {
			if _, found, ok := strings.Cut(lines.Text(), "WebDriver BiDi listening on "); ok {
				address <- strings.TrimSpace(found)
			}
		}
	}()
	select {
	case at := <-address:
		f := &firefox{t: t}
		f.connect(at + "/session")
		return f
	case <-time.After(patience):
		t.Fatal("Firefox does not print its address")
		return nil
	}
}

func (f *firefox) connect(address string) {
	f.t.Helper()
	conn, _, err := websocket.DefaultDialer.Dial(address, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	f.conn = conn
	f.t.Cleanup(func() { conn.Close() })
	f.do("session.new", map[string]any{"capabilities": map[string]any{}}, nil)
	f.do("session.subscribe", map[string]any{"events": []string{"log.entryAdded"}}, nil)
	var tree struct {
		Contexts []struct{ Context string }
	}
	f.do("browsingContext.getTree", map[string]any{}, &tree)
	f.tab = tree.Contexts[0].Context
	f.do("browsingContext.setViewport", map[string]any{"context": f.tab, "viewport": map[string]int{"width": 1280, "height": 900}}, nil)
}

// do runs a command and decodes its result into out unless out is nil.
func (f *firefox) do(method string, params map[string]any, out any) {
	f.t.Helper()
	if err := f.try(method, params, out); err != nil {
		f.t.Fatalf("%s: %v", method, err)
	}
}

func (f *firefox) try(method string, params map[string]any, out any) error {
	f.sent++
	if err := f.conn.WriteJSON(map[string]any{"id": f.sent, "method": method, "params": params}); err != nil {
		return err
	}
	f.conn.SetReadDeadline(time.Now().Add(patience))
	for {
		var m bidi
		if err := f.conn.ReadJSON(&m); err != nil {
			return err
		}
		switch {
		case m.Type == "event" && m.Params.Level == "error":
			f.errors = append(f.errors, m.Params.Text)
		case m.ID == f.sent && m.Type == "error":
			return errors.New(m.Error + ": " + m.Message)
		case m.ID == f.sent && out != nil:
			return json.Unmarshal(m.Result, out)
		case m.ID == f.sent:
			return nil
		}
	}
}

// open leaves the page, after all its images are loaded, for another: Firefox reports each image that navigation interrupts as a corrupt
// one.
func (f *firefox) open(address string) {
	f.t.Helper()
	f.await("all images are loaded", `[...document.images].every((image) => (image.loading = 'eager', image.complete))`)
	if broken := f.value(`[...document.images].filter((image) => image.getAttribute('src') && image.naturalWidth === 0).map((image) => image.src).join(' ')`); broken != "" {
		f.t.Errorf("%s: images without pixels: %s", f.value("location.href"), broken)
	}
	f.do("browsingContext.navigate", map[string]any{"context": f.tab, "url": address, "wait": "complete"}, nil)
}

// value returns the value of an expression on the page, as a string.
func (f *firefox) value(js string) string {
	f.t.Helper()
	var out struct {
		Type             string
		Result           struct{ Value string }
		ExceptionDetails struct{ Text string }
	}
	f.do("script.evaluate", map[string]any{"expression": "String(" + js + ")", "target": map[string]string{"context": f.tab}, "awaitPromise": true}, &out)
	if out.Type != "success" {
		f.t.Fatalf("%s: %s", js, out.ExceptionDetails.Text)
	}
	return out.Result.Value
}

func (f *firefox) await(what, js string) {
	f.t.Helper()
	await(f.t, what, func() bool { return f.value("Boolean("+js+")") == "true" })
}

// drag drags one element onto another with the pointer.
func (f *firefox) drag(from, to string) {
	f.t.Helper()
	at := func(selector string) (x, y int) {
		var text string
		await(f.t, selector+" has stopped moving", func() bool {
			before := text
			text = f.value(fmt.Sprintf(`((r) => Math.round(r.x + r.width / 2) + ' ' + Math.round(r.y + r.height / 2))(document.querySelector(%q).getBoundingClientRect())`, selector))
			return text == before
		})
		if _, err := fmt.Sscan(text, &x, &y); err != nil {
			f.t.Fatalf("%s lies at %q: %v", selector, text, err)
		}
		return x, y
	}
	f.value(fmt.Sprintf(`document.querySelector(%q).scrollIntoView({ block: 'center', behavior: 'instant' })`, to))
	x, y := at(from)
	u, v := at(to)
	move := func(x, y int) map[string]any {
		return map[string]any{"type": "pointerMove", "x": x, "y": y, "duration": 100}
	}
	f.do("input.performActions", map[string]any{"context": f.tab, "actions": []any{map[string]any{"type": "pointer", "id": "hand", "actions": []any{
		move(x, y), map[string]any{"type": "pointerDown", "button": 0}, move((x+u)/2, (y+v)/2), move(u, v), map[string]any{"type": "pointerUp", "button": 0}}}}}, nil)
}

// TestFirefox checks that the first steps of a user work in Firefox, live and frozen, without console errors and without pages wider than
// the window.
func TestFirefox(t *testing.T) {
	t.Parallel()
	expect.Long(t)
	f := startFirefox(t)
	dir := t.TempDir()
	s := started(t, command(t, "serve", "--addr", "127.0.0.1:0", "--data", dir), dir)
	frozen, err := filepath.Abs("../../docs/playground.html")
	if err != nil {
		t.Fatal(err)
	}
	for name, address := range map[string]string{"live": s.url + "/play", "frozen": "file://" + frozen} {
		f.open(address)
		f.await(name+" playground decodes in the browser", `document.getElementById('play')?.dataset.decoder === 'browser' && document.querySelector('[data-testid=play-image]').dataset.painted === 'yes'`)
		const pixels = `document.querySelector('canvas[data-testid=play-image]').toDataURL()`
		slot := f.value(`[...document.querySelectorAll('[data-testid^=play-slot-a-]')].findIndex((a, i) => a.dataset.code !== document.querySelector('[data-testid=play-slot-b-' + i + ']').dataset.code)`)
		before := f.value(pixels)
		f.drag("[data-testid=play-slot-b-"+slot+"]", "[data-testid=play-slot-a-"+slot+"]")
		f.await("the code of B is in A", fmt.Sprintf(`document.querySelector('[data-testid=play-slot-a-%[1]s]').dataset.code === document.querySelector('[data-testid=play-slot-b-%[1]s]').dataset.code`, slot))
		f.await("the swap is drawn", pixels+` !== '`+before+`'`)
		f.value(`document.querySelector('[data-testid=play-undo]').click()`)
		f.await("undo restores the image", pixels+` === '`+before+`'`)
	}
	var list struct{ Runs []model.Run }
	s.want(http.StatusOK, "GET", "/api/runs", nil, &list)
	if len(list.Runs) == 0 {
		t.Fatal("there are no shipped runs")
	}
	run, other := list.Runs[0].ID, list.Runs[len(list.Runs)-1].ID
	f.open(s.url + "/runs/" + run)
	f.await("a chart is drawn", `document.querySelector('.chart [data-part=plot] canvas')?.width > 0`)
	for _, path := range []string{"/", "/runs", "/runs/new", "/runs/" + run, "/runs/" + run + "/measure", "/compare?runs=" + run + "," + other, "/sweeps", "/datasets", "/theory", "/measure", "/system", "/docs", "/play"} {
		f.open(s.url + path)
		if wide := f.value(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide != "0" {
			t.Errorf("%s is %s pixels wider than the window", path, wide)
		}
	}
	if len(f.errors) > 0 {
		t.Errorf("console errors:\n%s", strings.Join(f.errors, "\n"))
	}
}
