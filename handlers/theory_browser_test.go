package handlers_test

import (
	"context"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/web"
)

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

// TestTheoryLive: a slider moves its number, the answers, the figure and the address; the number moves the slider back.
func TestTheoryLive(t *testing.T) {
	ctx, address := openSite(t, handlers.Theory{Datasets: fakeData{}, Library: fakeSlots{}})
	if err := chromedp.Do(ctx, chromedp.Navigate(address+"/theory?m=9&d=512&k=512&R=13&tau=1")); err != nil {
		t.Fatal(err)
	}
	until(t, ctx, "sliders are shown", `document.querySelectorAll('.entry input[type=range]:not([hidden])').length === 5`)
	set := func(selector, value string) {
		t.Helper()
		js := `(() => { const e = document.querySelector('` + selector + `'); e.value = '` + value + `'; e.dispatchEvent(new Event('input', { bubbles: true })); return true })()`
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](js)); err != nil {
			t.Fatal(err)
		}
	}
	set("[data-field=d] input[type=range]", "0")
	until(t, ctx, "the number follows the slider", `document.querySelector('input[name=d]').value === '8'`)
	until(t, ctx, "the figure follows", `document.querySelector('[data-testid=figure-capacity]').textContent.includes('d = 8,')`)
	until(t, ctx, "the address follows", `location.search.includes('d=8&') && location.search.includes('m=9')`)
	set("input[name=d]", "4096")
	until(t, ctx, "the slider follows the number", `document.querySelector('[data-field=d] input[type=range]').value === '1000'`)
	until(t, ctx, "answers follow the number", `document.querySelector('[data-testid=part-capacity]').textContent.includes('d/2 = 2,050 nats')`)
	set("input[name=d]", "0")
	time.Sleep(300 * time.Millisecond)
	until(t, ctx, "an impossible number leaves the answers alone", `document.querySelector('[data-testid=part-capacity]').textContent.includes('2,050') && location.search.includes('d=4096')`)
}

// TestMeasureLive: the page follows an evaluation, and shows its scores when it has ended.
func TestMeasureLive(t *testing.T) {
	e := &fakeEvaluations{state: model.Evaluation{Running: true, Started: time.Now(), Said: "encoding, 12 of 400"}}
	f := newFakeRuns(t.TempDir())
	f.put("a", model.Finished, 400).Checkpoint = 400
	kept := &laterScores{}
	ctx, address := openSite(t, handlers.Measure{Runs: f, Datasets: fakeData{}, Scores: kept, Evaluations: e})
	if err := chromedp.Do(ctx, chromedp.Navigate(address+"/runs/a/measure")); err != nil {
		t.Fatal(err)
	}
	until(t, ctx, "progress is told", `document.querySelector('[data-testid=evaluating]').textContent.includes('12 of 400')`)
	e.say("noise, 3 of 9")
	until(t, ctx, "progress goes on", `document.querySelector('[data-testid=evaluating]').textContent.includes('noise, 3 of 9')`)
	kept.set(measuredWorld(t))
	e.end()
	until(t, ctx, "scores appear", `document.querySelector('[data-testid=scores]') && !document.querySelector('[data-testid=evaluating]')`)
}
