package sweep_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"slotscope/handlers/compare"
	"slotscope/handlers/handlertest"
	sweeppage "slotscope/handlers/sweep"
)

// TestSweepInABrowser: a sweep is begun from the form, stopped and resumed.
func TestSweepInABrowser(t *testing.T) {
	f := handlertest.NewScored(t)
	ctx, address := handlertest.Open(t, compare.Reports{Runs: f, Scores: f, Sweeps: handlertest.Sweeps{Scored: f}}, sweeppage.Sweeps{Service: handlertest.Sweeps{Scored: f}, Datasets: handlertest.Data{}})
	handlertest.Do(t, ctx, chromedp.Navigate(address+"/sweeps/new"))
	handlertest.Until(t, ctx, "the paper's protocol hides what belongs to one's own question", `document.querySelector('[data-kind=own]').hidden && !document.querySelector('[data-kind=paper]').hidden`)
	handlertest.Focus(t, ctx, "[name=kind][value=paper]")
	handlertest.Do(t, ctx, chromedp.KeyEvent(kb.ArrowRight))
	handlertest.Until(t, ctx, "an arrow key chooses the other", `!document.querySelector('[data-kind=own]').hidden && document.querySelector('[data-kind=paper]').hidden`)
	handlertest.Click(t, ctx, "[data-testid=begin]")
	handlertest.Until(t, ctx, "it works", `/^.sweeps.my-sweep/.test(location.pathname) && document.querySelector('[data-testid=state]').textContent === 'working'`)
	handlertest.Click(t, ctx, "[data-testid=stop]")
	handlertest.Until(t, ctx, "it is stopped", `document.querySelector('[data-testid=state]').textContent === 'stopped' && !document.querySelector('[data-testid=stop]')`)
	handlertest.Focus(t, ctx, "[data-testid=resume]")
	handlertest.Do(t, ctx, chromedp.KeyEvent(kb.Enter))
	handlertest.Until(t, ctx, "it works again", `document.querySelector('[data-testid=state]').textContent === 'working' && document.querySelector('[data-testid=stop]')`)
	if len(f.Did) != 2 || f.Did[0] != "stop" || f.Did[1] != "resume retry=false" {
		t.Errorf("done: %v", f.Did)
	}
}
