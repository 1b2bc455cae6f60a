package handlertest

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"slotscope/web"

	"github.com/chromedp/cdproto/input"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// patience limits the time of one step in the browser; the machine may be busy.
const patience = 2 * time.Minute

// Browser is a window in a real browser with its own cookies, storage and cache, isolated from other tests.
type Browser struct {
	T    *testing.T
	Ctx  context.Context
	URL  string // of the site
	Site *httptest.Server
	Runs *Runs // for tests whose pages show runs
}

// NeedsBrowser skips the test in short mode or if no Chromium is installed. Call it before any set-up for the browser.
func NeedsBrowser(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("drives a browser, which takes minutes under the race detector")
	}
	if Chromium() == "" {
		t.Skip("Chromium is not installed; the pages' scripts are not tested")
	}
}

// Chromium returns the path of the browser, "" if none is installed. It prefers the headless shell, which takes a third less time.
var Chromium = sync.OnceValue(func() string {
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
})

// Main is TestMain of packages with browser tests: they share one browser, which is stopped after the last test.
func Main(m *testing.M) int {
	defer func() { stopBrowser() }()
	return m.Run()
}

// stopBrowser stops the browser if startBrowser started it.
var stopBrowser = func() {}

var startBrowser = sync.OnceValues(func() (context.Context, error) {
	dir, err := os.MkdirTemp("", "slotscope-browser-")
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.ExecPath(Chromium()), chromedp.UserDataDir(dir))
	ctx, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stop := chromedp.NewContext(ctx)
	stopBrowser = func() {
		stop()
		stopAllocator()
		os.RemoveAll(dir)
	}
	return ctx, chromedp.Do(ctx) // starts the browser, which lives as long as this context
})

// NewWindow opens an empty window. Uncaught exceptions of scripts fail the test.
func NewWindow(t *testing.T) Browser {
	t.Helper()
	NeedsBrowser(t)
	shared, err := startBrowser()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := chromedp.NewContext(shared, chromedp.WithNewBrowserContext())
	b := Browser{T: t, Ctx: ctx}
	b.hearConsole(stop) // the first call with this context opens the window, which lives as long as the context
	b.Do(chromedp.EmulateViewport(1280, 1600))
	return b
}

// hearConsole fails the test on uncaught exceptions and violations of the Content Security Policy until the window is closed.
func (b Browser) hearConsole(stop context.CancelFunc) {
	messages := chromedp.Console(b.Ctx)
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		for m, err := range messages {
			if err == nil && (m.IsException() || strings.Contains(m.String(), "Content Security Policy")) {
				b.T.Errorf("%s:%d %s", m.URL, m.Line+1, m)
			}
		}
	}()
	b.T.Cleanup(func() {
		stop()
		<-heard
	})
}

// Open serves pages and opens a window for them.
func Open(t *testing.T, pages ...web.Page) Browser {
	t.Helper()
	NeedsBrowser(t)
	h, err := web.New(web.Config{Addr: "127.0.0.1:0", Pages: pages})
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(h)
	t.Cleanup(site.Close)
	b := NewWindow(t)
	b.Site, b.URL = site, site.URL
	return b
}

// Do runs actions in the browser.
func (b Browser) Do(steps ...chromedp.Action[chromedp.Void]) {
	b.T.Helper()
	ctx, stop := context.WithTimeout(b.Ctx, patience)
	defer stop()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.T.Fatal(err)
	}
}

// Open goes to a path of the site.
func (b Browser) Open(path string) { b.T.Helper(); b.Do(chromedp.Navigate(b.URL + path)) }

// BeforePages runs a script before the scripts of every page opened from now on.
func (b Browser) BeforePages(script string) {
	b.T.Helper()
	if _, err := chromedp.Call(b.Ctx, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: script}); err != nil {
		b.T.Fatal(err)
	}
}

// Eval returns the value of an expression on the page, as a string.
func (b Browser) Eval(js string) string {
	b.T.Helper()
	ctx, stop := context.WithTimeout(b.Ctx, patience)
	defer stop()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[string]("String("+js+")"))
	if err != nil {
		b.T.Fatalf("%s: %v", js, err)
	}
	return v
}

// Wait waits until an expression on the page has the value want.
func (b Browser) Wait(js, want string) {
	b.T.Helper()
	b.WaitWithin(patience, js, want)
}

// WaitWithin is Wait with a time limit of its own.
func (b Browser) WaitWithin(most time.Duration, js, want string) {
	b.T.Helper()
	if got, ok := b.settled(most, js, func(v string) bool { return v == want }); !ok {
		b.T.Fatalf("%s stays %q, want %q", js, got, want)
	}
}

// Until waits until a JavaScript expression on the page is true; what describes it in the failure message.
func (b Browser) Until(what, js string) {
	b.T.Helper()
	if _, ok := b.settled(patience, "Boolean("+js+")", func(v string) bool { return v == "true" }); !ok {
		b.T.Errorf("not reached: %s", what)
	}
}

// Click clicks the middle of an element once it exists, has stopped moving and is not covered.
func (b Browser) Click(selector string) {
	b.T.Helper()
	x, y := b.Middle(selector)
	b.Do(chromedp.MouseClickXY(x, y))
}

// Drag presses the mouse at one point, moves it to another in ten steps and releases it. chromedp's own drag waits two seconds for a
// native drag if it starts on a link; the pages implement drags themselves.
func (b Browser) Drag(x0, y0, x1, y1 float64) {
	b.T.Helper()
	held := func(p *input.DispatchMouseEventParams) { p.Buttons, p.ClickCount = 1, 1 }
	b.Do(chromedp.MouseEvent(chromedp.MousePressed, x0, y0, chromedp.ButtonLeft, held))
	const steps = 10
	for i := 1; i <= steps; i++ {
		part := float64(i) / steps
		b.Do(chromedp.MouseEvent(chromedp.MouseMoved, x0+part*(x1-x0), y0+part*(y1-y0), chromedp.ButtonLeft, func(p *input.DispatchMouseEventParams) { p.Buttons = 1 }))
	}
	b.Do(chromedp.MouseEvent(chromedp.MouseReleased, x1, y1, chromedp.ButtonLeft, func(p *input.DispatchMouseEventParams) { p.ClickCount = 1 }))
}

// Middle returns the centre of an element in the window once it exists, has stopped moving and is not covered; it scrolls the element
// into view if necessary.
func (b Browser) Middle(selector string) (x, y float64) {
	b.T.Helper()
	middle := fmt.Sprintf(`(() => {
	  const e = document.querySelector(%q);
	  if (!e) return 'absent';
	  const r = e.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2, top = document.elementFromPoint(x, y);
	  if (top && (e.contains(top) || top.closest('label')?.control === e)) return x + ' ' + y;
	  e.scrollIntoView({ block: 'center', behavior: 'instant' });
	  return 'covered or out of view';
	})()`, selector)
	before := ""
	at, ok := b.settled(patience, middle, func(v string) bool {
		_, err := fmt.Sscan(v, &x, &y)
		rests := v == before
		before = v
		return err == nil && rests
	})
	if !ok {
		b.T.Fatalf("%s cannot be clicked: %s", selector, at)
	}
	return x, y
}

// Focus focuses an element once it exists.
func (b Browser) Focus(selector string) {
	b.T.Helper()
	js := fmt.Sprintf(`((e) => { e?.focus(); return String(e !== null && document.activeElement === e); })(document.querySelector(%q))`, selector)
	if _, ok := b.settled(patience, js, func(v string) bool { return v == "true" }); !ok {
		b.T.Fatalf("%s does not take the focus", selector)
	}
}

// Keys presses keys, one after another.
func (b Browser) Keys(keys ...string) {
	b.T.Helper()
	for _, k := range keys {
		b.Do(chromedp.KeyEvent(k))
	}
}

// settled evaluates an expression until ok accepts its value, as a string. Replies lost in a navigation time out and are requested again;
// the timeout starts short and grows to what the busiest page may need.
func (b Browser) settled(most time.Duration, js string, ok func(string) bool) (string, bool) {
	last, pause, answer := "", 5*time.Millisecond, 2*time.Second
	for end := time.Now().Add(most); time.Now().Before(end); time.Sleep(pause) {
		one, stop := context.WithTimeout(b.Ctx, answer)
		v, err := chromedp.Run(one, chromedp.Evaluate[string]("String("+js+")"))
		stop()
		if err != nil {
			last, answer = err.Error(), min(2*answer, patience/4)
		} else if last = v; ok(v) {
			return v, true
		}
		pause = min(2*pause, 50*time.Millisecond)
	}
	return last, false
}

// PlotBox scrolls a plot to the middle of the window and returns its position and width.
func (b Browser) PlotBox(selector string) (left, top, wide float64) {
	b.T.Helper()
	b.Eval(fmt.Sprintf(`document.querySelector('%s').scrollIntoView({ block: 'center', behavior: 'instant' })`, selector))
	b.Middle(selector + " .u-over") // waits until charts drawn above no longer move it
	box := b.Eval(fmt.Sprintf(`(() => { const r = document.querySelector('%s .u-over').getBoundingClientRect(); return [r.left, r.top, r.width].join(' ') })()`, selector))
	if _, err := fmt.Sscan(box, &left, &top, &wide); err != nil {
		b.T.Fatal(err)
	}
	return left, top, wide
}

// View waits until the steps of the page's zoomed view satisfy ok, and returns them and their text; what describes them in the failure
// message. Charts follow a gesture with a delay.
func (b Browser) View(what string, ok func(from, to int) bool) (from, to int, text string) {
	b.T.Helper()
	text, reached := b.settled(patience, `document.querySelector('[data-part=view]').textContent`, func(v string) bool {
		_, err := fmt.Sscanf(strings.ReplaceAll(v, ",", ""), "steps %d to %d", &from, &to)
		return err == nil && ok(from, to)
	})
	if !reached {
		b.T.Fatalf("%s: the view is %q", what, text)
	}
	return from, to, text
}
