package run_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"slotscope/handlers/handlertest"
	"slotscope/model"
	"slotscope/model/expect"
)

// TestOddSeries: series with one point, without finite values or with extreme values, and jumping clocks, neither break a chart nor show an
// invalid time.
func TestOddSeries(t *testing.T) {
	expect.Long(t)
	b := openRuns(t)
	odd := func(id string, n int, value func(step int) float64) *handlertest.Run {
		r := b.Runs.Put(id, model.Running, n)
		for i := range r.Points {
			for name := range r.Points[i].Values {
				r.Points[i].Values[name] = value(i + 1)
			}
		}
		return r
	}
	odd("one", 1, func(int) float64 { return 0.5 })
	odd("none", 50, func(step int) float64 { return []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[step%3] })
	odd("wide", 50, func(step int) float64 {
		return []float64{math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 0}[step%4]
	})
	back := odd("back", 50, func(step int) float64 { return float64(step) })
	back.Started, back.Updated = time.Now().Add(3*time.Hour), time.Now().Add(5*time.Hour) // another machine's clock, or a clock that was set back
	back.Created = time.Now().Add(4 * time.Hour)
	back.ImagesPerSecond, back.SecondsLeft = 0, -5
	for i := range back.Points {
		back.Points[i].Time = time.Unix(int64(1_000_000-1000*i), 0)
	}
	for id, points := range map[string]string{"one": "1", "none": "50", "wide": "50", "back": "50"} {
		for _, view := range []string{"", "?smooth=0.9&log=1", "?x=time&smooth=0.5", "?axis=total:log,all,0~3"} {
			b.Open("/runs/" + id + view)
			b.Wait(text(connection), "live")
			b.Wait(pointsOf("total"), points)
			for _, part := range []string{"[data-testid=elapsed]", "[data-part=updated]", "[data-part=left]", "[data-testid=verdict] strong"} {
				if got := b.Eval(text(part)); got == "" || strings.Contains(got, "NaN") || strings.Contains(got, "undefined") || strings.HasPrefix(got, "-") || strings.HasPrefix(got, "−") {
					t.Errorf("%s%s: %s says %q", id, view, part, got)
				}
			}
			if facts := b.Eval(text("[data-testid=verdict-facts]")); len(facts) > 200 || strings.Contains(facts, "NaN") {
				t.Errorf("%s%s: the verdict has %q", id, view, facts)
			}
		}
	}
	b.Wait("document.querySelector('[data-testid=unread]').hidden", "true")
	b.Open("/runs/wide?smooth=much&steps=9-1&log=1&axis=total:3~1")
	b.Wait(text("[data-testid=unread]"), "Ignored invalid settings in the URL: smooth=much, steps=9-1, axis=total:3~1.")
	b.Wait(pointsOf("total"), "50")
	b.Open("/runs/none")
	b.Wait("document.querySelector('[data-testid=verdict]').dataset.kind", "diverging")
}
