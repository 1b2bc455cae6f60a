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

// patience is how long the browser may take for one step of a visitor: the machine may be busy.
const patience = 2 * time.Minute

// Browser is a window in a real browser that knows nothing of those of other tests: cookies, storage and cache are its own.
type Browser struct {
	T    *testing.T
	Ctx  context.Context
	URL  string // where the site is
	Site *httptest.Server
	Runs *Runs // for tests whose pages show them
}

// NeedsBrowser is asked before anything is made that only a browser looks at.
func NeedsBrowser(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("drives a browser, for minutes under the race detector")
	}
	if Chromium() == "" {
		t.Skip("no Chromium is installed here, so the pages' scripts go untested")
	}
}

// Chromium is the program that shows pages: where it can be had, the one without windows of its own, which takes a third less time.
var Chromium = sync.OnceValue(func() string {
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
})

// Main is TestMain of packages whose tests need a browser: all share one, which ends after the last of them.
func Main(m *testing.M) int {
	defer func() { stopBrowser() }()
	return m.Run()
}

// stopBrowser ends what startBrowser began.
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

// NewWindow opens a window that shows no page yet. Whatever a script throws in it fails the test.
func NewWindow(t *testing.T) Browser {
	t.Helper()
	NeedsBrowser(t)
	shared, err := startBrowser()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := chromedp.NewContext(shared, chromedp.WithNewBrowserContext())
	b := Browser{T: t, Ctx: ctx}
	b.hearConsole(stop) // the first call with this context opens the window, which lives as long as it
	b.Do(chromedp.EmulateViewport(1280, 1600))
	return b
}

// hearConsole makes what scripts throw, and what the pages' policy forbids them, failures of the test, until the window is closed.
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

// Do carries out steps of a visitor.
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

// BeforePages runs a script before those of every page that is opened from now on.
func (b Browser) BeforePages(script string) {
	b.T.Helper()
	if _, err := chromedp.Call(b.Ctx, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: script}); err != nil {
		b.T.Fatal(err)
	}
}

// Eval reads a string from the page.
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

// Wait gives the page time to say want.
func (b Browser) Wait(js, want string) {
	b.T.Helper()
	b.WaitWithin(patience, js, want)
}

// WaitWithin is Wait for what takes the page itself long.
func (b Browser) WaitWithin(most time.Duration, js, want string) {
	b.T.Helper()
	if got, ok := b.settled(most, js, func(v string) bool { return v == want }); !ok {
		b.T.Fatalf("%s stays %q, want %q", js, got, want)
	}
}

// Until waits for a condition of the page, a JavaScript expression.
func (b Browser) Until(what, js string) {
	b.T.Helper()
	if _, ok := b.settled(patience, "Boolean("+js+")", func(v string) bool { return v == "true" }); !ok {
		b.T.Errorf("it does not come about that %s", what)
	}
}

// Click presses an element in its middle once it is there, has come to rest and nothing covers it.
func (b Browser) Click(selector string) {
	b.T.Helper()
	x, y := b.Middle(selector)
	b.Do(chromedp.MouseClickXY(x, y))
}

// Drag presses the mouse at one point, moves it to another in ten steps and lets it go. chromedp's own drag waits two seconds for one that the
// browser itself begins wherever it starts on a link; the pages take care of theirs.
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

// Middle is where an element's centre lies in the window, once it is there, has come to rest and nothing covers it; it is scrolled into
// sight if it has to be.
func (b Browser) Middle(selector string) (x, y float64) {
	b.T.Helper()
	middle := fmt.Sprintf(`(() => {
	  const e = document.querySelector(%q);
	  if (!e) return 'absent';
	  const r = e.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2, top = document.elementFromPoint(x, y);
	  if (top && (e.contains(top) || top.closest('label')?.control === e)) return x + ' ' + y;
	  e.scrollIntoView({ block: 'center', behavior: 'instant' });
	  return 'covered, or out of sight';
	})()`, selector)
	before := ""
	at, ok := b.settled(patience, middle, func(v string) bool {
		_, err := fmt.Sscan(v, &x, &y)
		rests := v == before
		before = v
		return err == nil && rests
	})
	if !ok {
		b.T.Fatalf("%s cannot be pointed at: %s", selector, at)
	}
	return x, y
}

// Focus gives an element the focus once it is there.
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

// settled evaluates an expression until its value, as text, is as wanted. A reply that a navigation swallows is asked for again, at first
// soon, and later on after as long as the busiest page may need to answer.
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

// PlotBox is where a plot lies in the window, once it is in its middle.
func (b Browser) PlotBox(selector string) (left, top, wide float64) {
	b.T.Helper()
	b.Eval(fmt.Sprintf(`document.querySelector('%s').scrollIntoView({ block: 'center', behavior: 'instant' })`, selector))
	b.Wait(fmt.Sprintf(`document.querySelector('%s .u-over') !== null`, selector), "true")
	box := b.Eval(fmt.Sprintf(`(() => { const r = document.querySelector('%s .u-over').getBoundingClientRect(); return [r.left, r.top, r.width].join(' ') })()`, selector))
	if _, err := fmt.Sscan(box, &left, &top, &wide); err != nil {
		b.T.Fatal(err)
	}
	return left, top, wide
}

// View waits for a zoomed view that is not before, and reads which steps it shows.
func (b Browser) View(before string) (from, to int, text string) {
	b.T.Helper()
	const view = `document.querySelector('[data-part=view]').textContent`
	b.Wait(fmt.Sprintf(`%[1]s !== '' && %[1]s !== '%[2]s'`, view, before), "true")
	text = b.Eval(view)
	if _, err := fmt.Sscanf(strings.ReplaceAll(text, ",", ""), "steps %d to %d", &from, &to); err != nil {
		b.T.Fatalf("the view is %q: %v", text, err)
	}
	return from, to, text
}
