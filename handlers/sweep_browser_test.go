package handlers_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"slotscope/handlers"
)

// TestSweepInABrowser: a sweep is begun from the form, stopped and resumed.
func TestSweepInABrowser(t *testing.T) {
	f := fakeScored(t)
	ctx, address := openSite(t, handlers.Reports{Runs: f, Scores: f, Sweeps: sweeps{f}}, handlers.Sweeps{Service: sweeps{f}, Datasets: fakeData{}})
	browse(t, ctx, chromedp.Navigate(address+"/sweeps/new"))
	until(t, ctx, "the paper's protocol hides what belongs to one's own question", `document.querySelector('[data-kind=own]').hidden && !document.querySelector('[data-kind=paper]').hidden`)
	browse(t, ctx, chromedp.Focus("[name=kind][value=paper]"), chromedp.KeyEvent(kb.ArrowRight))
	until(t, ctx, "an arrow key chooses the other", `!document.querySelector('[data-kind=own]').hidden && document.querySelector('[data-kind=paper]').hidden`)
	browse(t, ctx, chromedp.Click("[data-testid=begin]"))
	until(t, ctx, "it works", `/^.sweeps.my-sweep/.test(location.pathname) && document.querySelector('[data-testid=state]').textContent === 'working'`)
	browse(t, ctx, chromedp.Click("[data-testid=stop]"))
	until(t, ctx, "it is stopped", `document.querySelector('[data-testid=state]').textContent === 'stopped' && !document.querySelector('[data-testid=stop]')`)
	browse(t, ctx, chromedp.Focus("[data-testid=resume]"), chromedp.KeyEvent(kb.Enter))
	until(t, ctx, "it works again", `document.querySelector('[data-testid=state]').textContent === 'working' && document.querySelector('[data-testid=stop]')`)
	if len(f.did) != 2 || f.did[0] != "stop" || f.did[1] != "resume retry=false" {
		t.Errorf("done: %v", f.did)
	}
}
