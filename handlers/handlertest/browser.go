package handlertest

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"slotscope/web"

	"github.com/chromedp/chromedp"
)

// patience is how long the browser may take for one step of a visitor.
const patience = time.Minute

// Do carries out steps of a visitor.
func Do(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// Open shows pages in a real browser; whatever a script there throws fails the test.
func Open(t *testing.T, pages ...web.Page) (ctx context.Context, address string) {
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

// Until waits for a condition of the page, a JavaScript expression.
func Until(t *testing.T, ctx context.Context, what, js string) {
	t.Helper()
	if _, ok := settled(ctx, "Boolean("+js+")", func(v string) bool { return v == "true" }); !ok {
		t.Errorf("it does not come about that %s", what)
	}
}

// Click presses an element in its middle once it is there, has come to rest and nothing covers it.
func Click(t *testing.T, ctx context.Context, selector string) {
	t.Helper()
	middle := fmt.Sprintf(`(() => {
	  const e = document.querySelector(%q);
	  if (!e) return 'absent';
	  e.scrollIntoView({ block: 'center', behavior: 'instant' });
	  const r = e.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2, top = document.elementFromPoint(x, y);
	  return top && (e.contains(top) || top.closest('label')?.control === e) ? x + ' ' + y : 'covered';
	})()`, selector)
	var x, y float64
	before := ""
	at, ok := settled(ctx, middle, func(v string) bool {
		_, err := fmt.Sscan(v, &x, &y)
		rests := v == before
		before = v
		return err == nil && rests
	})
	if !ok {
		t.Fatalf("%s cannot be clicked: %s", selector, at)
	}
	Do(t, ctx, chromedp.MouseClickXY(x, y))
}

// Focus gives an element the focus once it is there.
func Focus(t *testing.T, ctx context.Context, selector string) {
	t.Helper()
	js := fmt.Sprintf(`((e) => { e?.focus(); return String(e !== null && document.activeElement === e); })(document.querySelector(%q))`, selector)
	if _, ok := settled(ctx, js, func(v string) bool { return v == "true" }); !ok {
		t.Fatalf("%s does not take the focus", selector)
	}
}

// settled evaluates an expression until its value, as text, is as wanted. A reply that a navigation swallows is asked for again.
func settled(ctx context.Context, js string, ok func(string) bool) (string, bool) {
	last := ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		one, stop := context.WithTimeout(ctx, patience/4)
		v, err := chromedp.Run(one, chromedp.Evaluate[string]("String("+js+")"))
		stop()
		if err != nil {
			last = err.Error()
		} else if last = v; ok(v) {
			return v, true
		}
	}
	return last, false
}

// Browser holds the pages of runs in a real browser.
type Browser struct {
	T    *testing.T
	Ctx  context.Context
	Runs *Runs
	Site *httptest.Server
}

func (b Browser) Do(actions ...chromedp.Action[chromedp.Void]) {
	b.T.Helper()
	ctx, stop := context.WithTimeout(b.Ctx, patience)
	defer stop()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.T.Fatal(err)
	}
}

func (b Browser) Open(path string) { b.T.Helper(); b.Do(chromedp.Navigate(b.Site.URL + path)) }

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

// Middle is where an element's centre lies in the window.
func (b Browser) Middle(selector string) (x, y float64) {
	b.T.Helper()
	box := fmt.Sprintf("document.querySelector('%s').getBoundingClientRect()", selector)
	if _, err := fmt.Sscan(b.Eval(fmt.Sprintf("[%[1]s.x + %[1]s.width / 2, %[1]s.y + %[1]s.height / 2].join(' ')", box)), &x, &y); err != nil {
		b.T.Fatal(err)
	}
	return x, y
}

// Wait gives the page a minute to say want: the machine may be busy.
func (b Browser) Wait(js, want string) {
	b.T.Helper()
	if got, ok := settled(b.Ctx, js, func(v string) bool { return v == want }); !ok {
		b.T.Fatalf("%s stays %q, want %q", js, got, want)
	}
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
