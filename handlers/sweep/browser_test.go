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
	b := handlertest.Open(t, compare.Reports{Runs: f, Scores: f, Sweeps: handlertest.Sweeps{Scored: f}}, sweeppage.Sweeps{Service: handlertest.Sweeps{Scored: f}, Datasets: handlertest.Data{}})
	b.Open("/sweeps/new")
	b.Until("the paper's protocol hides what belongs to one's own question", `document.querySelector('[data-kind=own]').hidden && !document.querySelector('[data-kind=paper]').hidden`)
	b.Focus("[name=kind][value=paper]")
	b.Do(chromedp.KeyEvent(kb.ArrowRight))
	b.Until("an arrow key chooses the other", `!document.querySelector('[data-kind=own]').hidden && document.querySelector('[data-kind=paper]').hidden`)
	b.Click("[data-testid=begin]")
	b.Until("it works", `/^.sweeps.my-sweep/.test(location.pathname) && document.querySelector('[data-testid=state]').textContent === 'working'`)
	b.Click("[data-testid=stop]")
	b.Until("it is stopped", `document.querySelector('[data-testid=state]').textContent === 'stopped' && !document.querySelector('[data-testid=stop]')`)
	b.Focus("[data-testid=resume]")
	b.Do(chromedp.KeyEvent(kb.Enter))
	b.Until("it works again", `document.querySelector('[data-testid=state]').textContent === 'working' && document.querySelector('[data-testid=stop]')`)
	if len(f.Did) != 2 || f.Did[0] != "stop" || f.Did[1] != "resume retry=false" {
		t.Errorf("done: %v", f.Did)
	}
}
