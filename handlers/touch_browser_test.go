package handlers_test

import (
	"fmt"
	"testing"
	"time"

	"slotscope/model"
)

// TestChartsByTouch: two fingers zoom and every point is fetched, one pans, up and down scrolls the page, a finger that was
// held reads, two taps show everything.
func TestChartsByTouch(t *testing.T) {
	b := openRuns(t)
	b.runs.put("a", model.Finished, 9000)
	h := touchScreen(t, b.ctx)
	b.open("/runs/a")
	b.wait(text(connection), "ended")
	const total, psnr = `[data-testid="chart-total"]`, `[data-testid="chart-psnr/eval"]`
	reads := func(chart string) string {
		return fmt.Sprintf(`/^step [0-9,]+: /.test(document.querySelector('%s [data-part=now]').textContent)`, chart)
	}
	points := fmt.Sprintf(`document.querySelector('%s [data-part=points]').textContent`, total)
	left, top, wide := b.plotBox(total)
	b.wait(points+`.includes('least, greatest, last of each span')`, "true")
	x, y := left+wide/2, top+60

	h.drag(0, []place{{x, y}}, []place{{x + 60, y}})
	b.wait(reads(total), "true")
	b.wait(reads(psnr), "true") // one crosshair for all
	h.tap(place{x, top - 40})
	b.wait(reads(total), "false")
	h.tap(place{x, y})
	b.wait(reads(psnr), "true")

	h.now = h.now.Add(time.Second)
	h.drag(0, []place{{x - 20, y}, {x + 20, y}}, []place{{x - 100, y}, {x + 100, y}})
	from, to, first := b.view("")
	if span := to - from; span < 1750 || span > 1850 || from > 4400 || to < 4600 {
		t.Errorf("fingers five times as far apart about the middle of 9,000 steps show %s", first)
	}
	b.wait(points+`.replace(/,/g, '')`, fmt.Sprintf("%d points", to-from+1)) // every one

	h.drag(0, []place{{x + 50, y}}, []place{{x - 50, y}})
	later, last, second := b.view(first)
	if moved := float64(later-from) - 100/wide*float64(to-from); moved < -3 || moved > 3 || last-later-(to-from) > 2 {
		t.Errorf("100 of %.0f px to the left take %s to %s", wide, first, second)
	}
	b.wait(points+`.replace(/,/g, '')`, fmt.Sprintf("%d points", last-later+1))

	start := b.eval("scrollY")
	h.now = h.now.Add(time.Second)
	h.drag(500*time.Millisecond, []place{{x, y}}, []place{{x + 40, y - 60}})
	b.wait(reads(total), "true")
	if now := b.eval("scrollY"); now != start || b.eval(`document.querySelector('[data-part=view]').textContent`) != second {
		t.Errorf("a finger that was held scrolls the page from %s to %s, or the view from %s", start, now, second)
	}
	for end := time.Now().Add(time.Minute); b.eval("scrollY > "+start) != "true"; { // a busy browser may take a swipe for a finger that was held
		if time.Now().After(end) {
			t.Fatal("a finger that goes up over a chart does not scroll the page")
		}
		h.now = h.now.Add(time.Second)
		h.drag(0, []place{{x, y}}, []place{{x + 5, y - 150}})
	}
	if now := b.eval(`document.querySelector('[data-part=view]').textContent`); now != second {
		t.Errorf("scrolling takes the view from %s to %s", second, now)
	}

	_, top, _ = b.plotBox(total)
	h.now = h.now.Add(time.Second)
	h.tap(place{x, top + 60})
	h.tap(place{x, top + 60})
	b.wait(`document.querySelector('[data-part=view]').textContent`, "")
	b.wait(points+`.includes('least, greatest, last of each span')`, "true")
}
