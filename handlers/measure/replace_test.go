package measure_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"slotscope/handlers/handlertest"
	"slotscope/handlers/measure"
	"slotscope/model"
)

// TestReplaceByKeyboard answers the question before a quick evaluation replaces full scores, by keyboard: the focus starts at Cancel;
// Enter there and Escape start nothing and return the focus to the button.
func TestReplaceByKeyboard(t *testing.T) {
	scores, e := measuredWorld(t), &fakeEvaluations{}
	f := handlertest.NewRuns(t.TempDir())
	f.Put("a", model.Finished, 400).Checkpoint = 400
	b := handlertest.Open(t, measure.Measure{Runs: f, Datasets: handlertest.Data{}, Scores: &laterScores{kept: &scores}, Evaluations: e})
	b.Open("/runs/a/measure")
	const (
		at   = `document.activeElement.dataset.testid || document.activeElement.textContent`
		open = `document.querySelector('#quick').matches(':popover-open')`
	)
	b.Focus("[data-testid=evaluate]")
	b.Keys(kb.Tab)
	b.Wait(at, "evaluate-quick")
	for _, leave := range []string{kb.Enter, kb.Escape} {
		b.Keys(kb.Enter)
		b.Wait(open, "true")
		b.Wait(at, "Cancel")
		b.Keys(leave)
		b.Wait(open, "false")
		b.Wait(at, "evaluate-quick")
	}
	if under := e.State("a"); under.State != "" {
		t.Fatalf("an evaluation was started: %+v", under)
	}
	b.Keys(kb.Enter)
	b.Wait(at, "Cancel")
	b.Do(chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(chromedp.ModifierShift)))
	b.Wait(at, "replace")
	b.Keys(kb.Enter)
	b.Until("the evaluation is shown", `document.querySelector('[data-testid=evaluating]')`)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.asked.Effort != model.Quick || !e.asked.Replace {
		t.Errorf("asked for %+v", e.asked)
	}
}
