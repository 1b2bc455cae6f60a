package sweep_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"slotscope/handlers/compare"
	"slotscope/handlers/handlertest"
	sweeppage "slotscope/handlers/sweep"
)

// TestSweepInABrowser starts a sweep from the form, stops it and resumes it.
func TestSweepInABrowser(t *testing.T) {
	f := handlertest.NewScored(t)
	b := handlertest.Open(t, compare.Reports{Runs: f, Scores: f, Sweeps: handlertest.Sweeps{Scored: f}}, sweeppage.Sweeps{Service: handlertest.Sweeps{Scored: f}, Datasets: handlertest.Data{}})
	b.Open("/sweeps/new")
	b.Until("the paper protocol hides the fields of custom sweeps", `document.querySelector('[data-kind=own]').hidden && !document.querySelector('[data-kind=paper]').hidden`)
	b.Focus("[name=kind][value=paper]")
	b.Do(chromedp.KeyEvent(kb.ArrowRight))
	b.Until("an arrow key selects the custom sweep", `!document.querySelector('[data-kind=own]').hidden && document.querySelector('[data-kind=paper]').hidden`)
	if b.Eval(`(() => {
	  const top = () => document.querySelector('[data-testid=begin]').getBoundingClientRect().top, before = top();
	  document.querySelector('[data-testid=estimate]').textContent = 'runs '.repeat(500);
	  return top() === before;
	})()`) != "true" {
		t.Error("an estimate that comes late moves the button")
	}
	b.Click("[data-testid=begin]")
	b.Until("it is running", `/^.sweeps.my-sweep/.test(location.pathname) && document.querySelector('[data-testid=state]').textContent === 'running'`)
	b.Click("[data-testid=stop]")
	b.Until("it is stopped", `document.querySelector('[data-testid=state]').textContent === 'stopped' && !document.querySelector('[data-testid=stop]')`)
	b.Focus("[data-testid=resume]")
	b.Do(chromedp.KeyEvent(kb.Enter))
	b.Until("it is running again", `document.querySelector('[data-testid=state]').textContent === 'running' && document.querySelector('[data-testid=stop]')`)
	if len(f.Did) != 2 || f.Did[0] != "stop" || f.Did[1] != "resume retry=false" {
		t.Errorf("actions: %v", f.Did)
	}
}
