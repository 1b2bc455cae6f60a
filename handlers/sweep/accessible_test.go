package sweep_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"slotscope/handlers/compare"
	"slotscope/handlers/handlertest"
	sweeppage "slotscope/handlers/sweep"
	"slotscope/model/expect"
)

// TestSweepsAreAccessible checks the explore page, the form, the sweep page and the comparison of a sweep.
func TestSweepsAreAccessible(t *testing.T) {
	expect.Long(t)
	f := handlertest.NewScored(t)
	id, _ := searched(t, f)
	b := handlertest.Open(t, compare.Reports{Runs: f, Scores: f, Sweeps: handlertest.Sweeps{Scored: f}}, sweeppage.Sweeps{Service: handlertest.Sweeps{Scored: f}, Datasets: handlertest.Data{}})
	for path, there := range map[string]string{
		"/sweeps/" + id + "/explore": `document.querySelector('[data-line]')`,
		"/sweeps/new?kind=own":       `document.querySelector('[data-testid=estimate]').textContent.includes('runs')`,
		"/compare?sweep=" + id:       `document.querySelectorAll('.chart canvas').length > 1`,
		"/sweeps/" + id:              `document.querySelector('[data-testid=explore-link]')`,
	} {
		b.Do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(b.URL+path))
		b.Until(path+" is drawn", there)
		b.Accessible()
	}
}
