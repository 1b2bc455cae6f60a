package run_test

import (
	"fmt"
	"testing"
	"time"

	"slotscope/handlers/handlertest"
	"slotscope/model"
)

// TestChartsByTouch: pinching zooms and loads every point, a horizontal swipe pans, a vertical swipe scrolls the page, a long press shows
// values, and a double tap resets the zoom.
func TestChartsByTouch(t *testing.T) {
	b := openRuns(t)
	b.Runs.Put("a", model.Finished, 9000)
	h := b.TouchScreen()
	b.Open("/runs/a")
	b.Wait(text(connection), "ended")
	const total, psnr = `[data-testid="chart-total"]`, `[data-testid="chart-psnr/eval"]`
	reads := func(chart string) string {
		return fmt.Sprintf(`/^step [0-9,]+: /.test(document.querySelector('%s [data-part=now]').textContent)`, chart)
	}
	points := fmt.Sprintf(`document.querySelector('%s [data-part=points]').textContent`, total)
	left, top, wide := b.PlotBox(total)
	b.Wait(points+`.includes('min, max and last of each interval')`, "true")
	x, y := left+wide/2, top+60

	h.Drag(0, []handlertest.Place{{x, y}}, []handlertest.Place{{x + 60, y}})
	b.Wait(reads(total), "true")
	b.Wait(reads(psnr), "true") // one crosshair for all
	h.Tap(handlertest.Place{x, top - 40})
	b.Wait(reads(total), "false")
	h.Tap(handlertest.Place{x, y})
	b.Wait(reads(psnr), "true")

	h.Now = h.Now.Add(time.Second)
	h.Drag(0, []handlertest.Place{{x - 20, y}, {x + 20, y}}, []handlertest.Place{{x - 100, y}, {x + 100, y}})
	from, to, _ := b.View("pinching out five times at the middle of 9,000 steps", func(from, to int) bool {
		return to-from >= 1750 && to-from <= 1850 && from <= 4400 && to >= 4600
	})
	b.Wait(points+`.replace(/,/g, '')`, fmt.Sprintf("%d points", to-from+1)) // every point

	h.Drag(0, []handlertest.Place{{x + 50, y}}, []handlertest.Place{{x - 50, y}})
	later, last, second := b.View(fmt.Sprintf("a swipe of 100 of %.0f px to the left from steps %d to %d", wide, from, to), func(later, last int) bool {
		moved := float64(later-from) - 100/wide*float64(to-from)
		return moved >= -3 && moved <= 3 && last-later-(to-from) <= 2
	})
	b.Wait(points+`.replace(/,/g, '')`, fmt.Sprintf("%d points", last-later+1))

	start := b.Eval("scrollY")
	h.Now = h.Now.Add(time.Second)
	h.Drag(500*time.Millisecond, []handlertest.Place{{x, y}}, []handlertest.Place{{x + 40, y - 60}})
	b.Wait(reads(total), "true")
	if now := b.Eval("scrollY"); now != start || b.Eval(`document.querySelector('[data-part=view]').textContent`) != second {
		t.Errorf("a long press scrolls the page from %s to %s, or the view from %s", start, now, second)
	}
	for end := time.Now().Add(time.Minute); b.Eval("scrollY > "+start) != "true"; { // a busy browser may mistake a swipe for a long press
		if time.Now().After(end) {
			t.Fatal("a vertical swipe over a chart does not scroll the page")
		}
		h.Now = h.Now.Add(time.Second)
		h.Drag(0, []handlertest.Place{{x, y}}, []handlertest.Place{{x + 5, y - 150}})
	}
	if now := b.Eval(`document.querySelector('[data-part=view]').textContent`); now != second {
		t.Errorf("scrolling moves the view from %s to %s", second, now)
	}

	_, top, _ = b.PlotBox(total)
	h.Now = h.Now.Add(time.Second)
	h.Tap(handlertest.Place{x, top + 60})
	h.Tap(handlertest.Place{x, top + 60})
	b.Wait(`document.querySelector('[data-part=view]').textContent`, "")
	b.Wait(points+`.includes('min, max and last of each interval')`, "true")
}
