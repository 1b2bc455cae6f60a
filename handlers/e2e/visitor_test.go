//go:build linux

package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"slotscope/handlers/handlertest"
)

// visitor is a user with a browser, a mouse and a keyboard.
type visitor struct {
	*site
	ctx context.Context

	mu     sync.Mutex
	frames int      // messages with points received over a socket
	faults []string // error responses and exceptions in the browser
}

// visitorOf returns a visitor for a subtest.
func (s *site) visitorOf(t *testing.T) *visitor {
	own := *s
	own.t = t
	return own.visitor()
}

func (s *site) visitor() *visitor {
	s.t.Helper()
	handlertest.NeedsBrowser(s.t)
	ctx, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.ExecPath(handlertest.Chromium()))...)
	s.t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	s.t.Cleanup(stop)
	v := &visitor{site: s, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil { // starts the browser, which lives as long as this context
		s.t.Fatal(err)
	}
	v.do(chromedp.EmulateViewport(1280, 1400))
	if err := chromedp.Listen(ctx, v.hear); err != nil {
		s.t.Fatal(err)
	}
	v.hearConsole()
	s.t.Cleanup(v.keepPicture)
	return v
}

// hear counts socket messages and records error responses.
func (v *visitor) hear(event any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch e := event.(type) {
	case *network.EventWebSocketFrameReceived:
		if bytes.Contains(e.Response.PayloadData, []byte(`"type":"points"`)) {
			v.frames++
		}
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 && e.Response.Status != http.StatusUnprocessableEntity { // which startRun provokes
			v.faults = append(v.faults, fmt.Sprintf("%s: status %d", e.Response.URL, e.Response.Status))
		}
	}
}

func (v *visitor) hearConsole() {
	messages := chromedp.Console(v.ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.IsException() {
				v.mu.Lock()
				v.faults = append(v.faults, fmt.Sprintf("%s:%d %s", m.URL, m.Line+1, m))
				v.mu.Unlock()
			}
		}
	}()
}

// keepPicture saves a screenshot if the test failed; `go test -artifacts` keeps it.
func (v *visitor) keepPicture() {
	if !v.t.Failed() {
		return
	}
	shot, err := chromedp.Run(v.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		return
	}
	file := filepath.Join(v.t.ArtifactDir(), "page.png")
	if os.WriteFile(file, shot, 0o644) == nil {
		v.t.Logf("screenshot of %s: %s", v.eval(`location.href`), file)
	}
}

func (v *visitor) do(actions ...chromedp.Action[chromedp.Void]) {
	v.t.Helper()
	ctx, stop := context.WithTimeout(v.ctx, patience)
	defer stop()
	if err := chromedp.Do(ctx, actions...); err != nil {
		v.t.Fatal(err)
	}
}

// eval returns the value of an expression on the page, as a string.
func (v *visitor) eval(js string) string {
	v.t.Helper()
	got, err := chromedp.Run(v.ctx, chromedp.Evaluate[string]("String("+js+")"))
	if err != nil {
		v.t.Fatalf("%s: %v", js, err)
	}
	return got
}

func (v *visitor) number(js string) int {
	v.t.Helper()
	n, err := strconv.Atoi(strings.ReplaceAll(v.eval(js), ",", ""))
	if err != nil {
		v.t.Fatalf("%s: %v", js, err)
	}
	return n
}

// see waits until an expression is true.
func (v *visitor) see(js string) {
	v.t.Helper()
	for start := time.Now(); time.Since(start) < patience; time.Sleep(15 * time.Millisecond) {
		// During a navigation there is no value.
		if got, err := chromedp.Run(v.ctx, chromedp.Evaluate[bool]("Boolean("+js+")")); err == nil && got {
			return
		}
	}
	v.t.Fatalf("never true: %s", js)
}

// at returns the middle of the first element that matches, scrolled into view, once it has stopped moving and can be clicked.
func (v *visitor) at(selector string) (x, y float64) {
	v.t.Helper()
	where := ""
	await(v.t, selector+" can be clicked", func() bool {
		before := where
		where = v.eval(fmt.Sprintf(`(() => {
			const e = document.querySelector(%q);
			if (!e || document.readyState !== 'complete') return '';
			const r0 = e.getBoundingClientRect();
			if (r0.top < 0 || r0.bottom > innerHeight) e.scrollIntoView({block: 'center', behavior: 'instant'});
			const r = e.getBoundingClientRect(), x = r.left + r.width / 2, y = r.top + r.height / 2;
			return e.contains(document.elementFromPoint(x, y)) ? x + ' ' + y : '';
		})()`, selector))
		return where != "" && where == before
	})
	if _, err := fmt.Sscan(where, &x, &y); err != nil {
		v.t.Fatalf("%s is at %q: %v", selector, where, err)
	}
	return x, y
}

func (v *visitor) click(selector string) {
	v.t.Helper()
	x, y := v.at(selector)
	v.do(chromedp.MouseClickXY(x, y))
}

func (v *visitor) keys(keys ...string) {
	v.t.Helper()
	for _, k := range keys {
		v.do(chromedp.KeyEvent(k))
	}
}

// control presses a letter with Control and further modifiers.
func (v *visitor) control(letter string, more ...chromedp.Modifier) {
	v.t.Helper()
	v.do(chromedp.KeyEvent(letter, chromedp.KeyModifiers(append(more, chromedp.ModifierCtrl)...)))
}

// fill replaces the text of a field.
func (v *visitor) fill(selector, text string) {
	v.t.Helper()
	v.click(selector)
	v.control("a")
	v.keys(text)
	v.see(fmt.Sprintf(`document.querySelector(%q).value === %q`, selector, text))
}

// tab presses Tab until the focused element matches.
func (v *visitor) tab(fits string) {
	v.t.Helper()
	for range 200 {
		v.keys(kb.Tab)
		if v.eval(fmt.Sprintf(`Boolean(document.activeElement?.matches(%q))`, fits)) == "true" {
			return
		}
	}
	v.t.Fatalf("the Tab key does not reach %s", fits)
}

func testID(id string) string { return fmt.Sprintf(`[data-testid="%s"]`, id) }
