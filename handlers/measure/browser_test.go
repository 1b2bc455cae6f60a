package measure_test

import (
	"testing"
	"time"

	"slotscope/handlers/handlertest"
	"slotscope/handlers/measure"
	"slotscope/model"
)

// TestMeasureLive: the page follows an evaluation and shows the scores when it ends.
func TestMeasureLive(t *testing.T) {
	e := &fakeEvaluations{state: model.Evaluation{State: model.Running, Started: time.Now(), Said: "encoding, 12 of 400"}}
	f := handlertest.NewRuns(t.TempDir())
	f.Put("a", model.Finished, 400).Checkpoint = 400
	kept := &laterScores{}
	b := handlertest.Open(t, measure.Measure{Runs: f, Datasets: handlertest.Data{}, Scores: kept, Evaluations: e})
	b.Open("/runs/a/measure")
	b.Until("progress is shown", `document.querySelector('[data-testid=evaluating]').textContent.includes('12 of 400')`)
	e.say("noise, 3 of 9")
	b.Until("progress continues", `document.querySelector('[data-testid=evaluating]').textContent.includes('noise, 3 of 9')`)
	kept.set(measuredWorld(t))
	e.end()
	b.Until("scores appear", `document.querySelector('[data-testid=scores]') && !document.querySelector('[data-testid=evaluating]')`)
}
