package handlers_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"slotscope/handlers"
	"slotscope/model"
)

// hand touches a page at times of its own, so that what counts as a tap does not depend on how busy the machine is.
type hand struct {
	t   *testing.T
	ctx context.Context
	now time.Time
}

// touchScreen makes the browser a phone.
func touchScreen(t *testing.T, ctx context.Context) *hand {
	t.Helper()
	browse(t, ctx, chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch))
	return &hand{t, ctx, time.Now()}
}

type place [2]float64

// fingers sends one event, 20 ms after the last; without a place all fingers are lifted.
func (h *hand) fingers(kind input.DispatchTouchEventType, at ...place) {
	h.t.Helper()
	h.now = h.now.Add(20 * time.Millisecond)
	p := input.DispatchTouchEventParams{Type: kind, TouchPoints: []*input.TouchPoint{}, Timestamp: input.TimeSinceEpoch(float64(h.now.UnixMicro()) / 1e6)}
	for i, xy := range at {
		id := float64(i)
		p.TouchPoints = append(p.TouchPoints, &input.TouchPoint{X: xy[0], Y: xy[1], ID: &id})
	}
	ctx, stop := context.WithTimeout(h.ctx, time.Minute)
	defer stop()
	if _, err := chromedp.Call(ctx, input.DispatchTouchEvent, p); err != nil {
		h.t.Fatal(err)
	}
}

// drag takes fingers from places to places in ten moves, after resting for a while.
func (h *hand) drag(rest time.Duration, from, to []place) {
	h.t.Helper()
	h.fingers(input.DispatchTouchEventTypeTouchStart, from[0])
	if len(from) > 1 {
		h.fingers(input.DispatchTouchEventTypeTouchStart, from...)
	}
	h.now = h.now.Add(rest)
	for i := 1; i <= 10; i++ {
		at := make([]place, len(from))
		for j := range from {
			for k := range at[j] {
				at[j][k] = from[j][k] + (to[j][k]-from[j][k])*float64(i)/10
			}
		}
		h.fingers(input.DispatchTouchEventTypeTouchMove, at...)
	}
	h.fingers(input.DispatchTouchEventTypeTouchEnd)
}

func (h *hand) tap(at place) {
	h.t.Helper()
	h.fingers(input.DispatchTouchEventTypeTouchStart, at)
	h.fingers(input.DispatchTouchEventTypeTouchEnd)
}

// plotBox is where a plot lies in the window, once it is in its middle.
func (b runBrowser) plotBox(selector string) (left, top, wide float64) {
	b.t.Helper()
	b.eval(fmt.Sprintf(`document.querySelector('%s').scrollIntoView({ block: 'center', behavior: 'instant' })`, selector))
	b.wait(fmt.Sprintf(`document.querySelector('%s .u-over') !== null`, selector), "true")
	box := b.eval(fmt.Sprintf(`(() => { const r = document.querySelector('%s .u-over').getBoundingClientRect(); return [r.left, r.top, r.width].join(' ') })()`, selector))
	if _, err := fmt.Sscan(box, &left, &top, &wide); err != nil {
		b.t.Fatal(err)
	}
	return left, top, wide
}

// view waits for a zoomed view that is not before, and reads which steps it shows.
func (b runBrowser) view(before string) (from, to int, text string) {
	b.t.Helper()
	const view = `document.querySelector('[data-part=view]').textContent`
	b.wait(fmt.Sprintf(`%[1]s !== '' && %[1]s !== '%[2]s'`, view, before), "true")
	text = b.eval(view)
	if _, err := fmt.Sscanf(strings.ReplaceAll(text, ",", ""), "steps %d to %d", &from, &to); err != nil {
		b.t.Fatalf("the view is %q: %v", text, err)
	}
	return from, to, text
}

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

// TestCompareByTouch: the overlay of compared runs is zoomed and reset in the same way.
func TestCompareByTouch(t *testing.T) {
	f := fakeScored(t)
	pair(f)
	ctx, address := openSite(t, handlers.Reports{Runs: f, Scores: f})
	h := touchScreen(t, ctx)
	browse(t, ctx, chromedp.Navigate(address+"/compare?runs=a0,a1,b0,b1"))
	b := runBrowser{t: t, ctx: ctx}
	b.wait(`document.querySelector('.overlay canvas') !== null`, "true")
	b.eval(`((s) => { s.value = 'total'; s.dispatchEvent(new Event('change')) })(document.querySelector('[name=series]'))`)
	b.wait(`document.querySelector('.overlay').ariaLabel.startsWith('total')`, "true")
	left, top, wide := b.plotBox(".overlay")
	at := place{left + wide/2, top + 100}
	h.tap(at)
	b.wait(`document.querySelector('[data-part=curve-foot]').textContent.startsWith('step ')`, "true")
	h.now = h.now.Add(time.Second)
	h.drag(0, []place{{at[0] - 20, at[1]}, {at[0] + 20, at[1]}}, []place{{at[0] - 100, at[1]}, {at[0] + 100, at[1]}})
	b.wait(`document.querySelector('[name=reset]').disabled`, "false")
	h.now = h.now.Add(time.Second)
	h.tap(at)
	h.tap(at)
	b.wait(`document.querySelector('[name=reset]').disabled`, "true")
}
