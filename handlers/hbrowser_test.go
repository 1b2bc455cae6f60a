package handlers_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os/exec"
	"slotscope/web"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// browse carries out steps of a visitor.
func browse(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// openSite shows pages in a real browser; whatever a script there throws fails the test.
func openSite(t *testing.T, pages ...web.Page) (ctx context.Context, address string) {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("chromium is not installed here, so the pages' scripts go untested")
	}
	h, err := web.New(web.Config{Addr: "127.0.0.1:0", Pages: pages})
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(h)
	t.Cleanup(site.Close)
	ctx, stop := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox)...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 1600)); err != nil { // starts the browser
		t.Fatal(err)
	}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err == nil && (m.IsException() || strings.Contains(m.String(), "Content Security Policy")) {
				t.Errorf("%s:%d %s", m.URL, m.Line+1, m)
			}
		}
	}()
	return ctx, site.URL
}

// until waits for a condition of the page, a JavaScript expression.
func until(t *testing.T, ctx context.Context, what, js string) {
	t.Helper()
	for range 200 {
		if v, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+js+")")); err == nil && v {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("it does not come about that %s", what)
}

// runBrowser holds the pages of runs in a real browser.
type runBrowser struct {
	t    *testing.T
	ctx  context.Context
	runs *fakeRuns
	site *httptest.Server
}

func (b runBrowser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, time.Minute)
	defer stop()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

func (b runBrowser) open(path string) { b.t.Helper(); b.do(chromedp.Navigate(b.site.URL + path)) }

// eval reads a string from the page.
func (b runBrowser) eval(js string) string {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, time.Minute)
	defer stop()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[string]("String("+js+")"))
	if err != nil {
		b.t.Fatalf("%s: %v", js, err)
	}
	return v
}

// middle is where an element's centre lies in the window.
func (b runBrowser) middle(selector string) (x, y float64) {
	b.t.Helper()
	box := fmt.Sprintf("document.querySelector('%s').getBoundingClientRect()", selector)
	if _, err := fmt.Sscan(b.eval(fmt.Sprintf("[%[1]s.x + %[1]s.width / 2, %[1]s.y + %[1]s.height / 2].join(' ')", box)), &x, &y); err != nil {
		b.t.Fatal(err)
	}
	return x, y
}

// wait gives the page a minute to say want: the machine may be busy.
func (b runBrowser) wait(js, want string) {
	b.t.Helper()
	got := ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if got = b.eval(js); got == want {
			return
		}
	}
	b.t.Fatalf("%s stays %q, want %q", js, got, want)
}

// plotBox is where a plot lies in the window, once it is in its middle.
func (b runBrowser) plotBox(selector string) (left, top, wide float64) {
	b.t.Helper()
	b.eval(fmt.Sprintf(`document.querySelector('%s').scrollIntoView({ block: 'center', behavior: 'instant' })`, selector))
	b.wait(fmt.Sprintf(`document.querySelector('%s .u-over') !== null`, selector), "true")
	box := b.eval(fmt.Sprintf(`(() => { const r = document.querySelector('%s .u-over').getBoundingClientRect(); return [r.left, r.top, r.width].join(' ') })()`, selector))
	if _, err := fmt.Sscan(box, &left, &top, &wide); err != nil {
		b.t.Fatal(err)
	}
	return left, top, wide
}

// view waits for a zoomed view that is not before, and reads which steps it shows.
func (b runBrowser) view(before string) (from, to int, text string) {
	b.t.Helper()
	const view = `document.querySelector('[data-part=view]').textContent`
	b.wait(fmt.Sprintf(`%[1]s !== '' && %[1]s !== '%[2]s'`, view, before), "true")
	text = b.eval(view)
	if _, err := fmt.Sscanf(strings.ReplaceAll(text, ",", ""), "steps %d to %d", &from, &to); err != nil {
		b.t.Fatalf("the view is %q: %v", text, err)
	}
	return from, to, text
}
