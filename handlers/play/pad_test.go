package play_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"slotscope/handlers/handlertest"
)

const (
	padNow     = `document.querySelector('[data-testid=play-pad-now]').textContent`
	padPixels  = `document.querySelector('[data-testid=play-pad-shown]').getContext('2d').getImageData(0, 0, 64, 64).data`
	padAsFirst = `String(` + padPixels + `.every((v, i) => Math.abs(v - window.first[i]) < 2))`
)

// choosePad puts slots on the axes of the pad.
func (b playBrowser) choosePad(x, y string) {
	b.t.Helper()
	for axis, slot := range map[string]string{"x": x, "y": y} {
		b.eval(fmt.Sprintf(`(() => { const s = document.querySelector('[data-testid=play-pad-%s]'); s.value = '%s'; s.dispatchEvent(new Event('change')); })()`, axis, slot))
	}
	b.eval(`document.querySelector('[data-testid=play-pad]').scrollIntoView({ block: 'center' })`)
}

// padAt is a place of the pad, in percent from its lower left.
func (b playBrowser) padAt(x, y float64) (float64, float64) {
	b.t.Helper()
	var left, top, side float64
	fmt.Sscanf(b.eval(`(() => { const r = document.querySelector('[data-testid=play-pad]').getBoundingClientRect(); return r.left + ' ' + r.top + ' ' + r.width; })()`), "%g %g %g", &left, &top, &side)
	return left + side*x/100, top + side*(1-y/100)
}

// Mouse and keys move two slots at once between A and B; the ends are the swaps themselves.
func TestPadByMouseAndKeys(t *testing.T) {
	b := openPlay(t, 1280, 900)
	b.seeWithin(time.Minute, `document.getElementById('play').dataset.decoder`, "browser")
	b.see(`document.querySelectorAll('[data-testid=play-pad-x] option').length > 4`, "true")
	b.choosePad("s0", "s2")
	b.see(padNow, "0% of slot 0, 0% of slot 2")
	b.see(padPixels+`.some((v, i) => i % 4 < 3 && v > 0)`, "true")
	b.eval(`void (window.first = ` + padPixels + `)`)
	x0, y0 := b.padAt(10, 10)
	x1, y1 := b.padAt(60, 40)
	b.do(chromedp.DragAndDropXY(x0, y0, x1, y1))
	b.see(`/^(59|60|61)% of slot 0, (39|40|41)% of slot 2$/.test(`+padNow+`)`, "true")
	b.see(padAsFirst, "false")
	b.see(`[document.querySelector('[data-testid=play-blend-0]').value, document.querySelector('[data-testid=play-blend-2]').value].every((v, i) => Math.abs(v - [60, 40][i]) < 2)`, "true")
	b.keys(kb.End)
	b.see(padNow, "100% of slot 0, 100% of slot 2")
	b.eval(`(async () => { const i = new Image(); i.src = '/img/` + b.key + `/6.2.8.4.5.png'; await i.decode(); const c = new OffscreenCanvas(64, 64).getContext('2d'); c.drawImage(i, 0, 0); window.swapped = c.getImageData(0, 0, 64, 64).data; })()`)
	b.see(`window.swapped && `+padPixels+`.every((v, i) => Math.abs(v - window.swapped[i]) < 2)`, "true")
	b.keys(kb.ArrowLeft, kb.ArrowDown)
	b.see(padNow+` + ' ' + document.querySelector('[data-testid=play-pad]').getAttribute('aria-valuetext')`, "95% of slot 0, 95% of slot 2 95% of slot 0, 95% of slot 2")
	b.keys(kb.Home)
	b.see(padAsFirst, "true")
	b.shows("1.2.3.4.5")
	if got := b.row("a"); got != "1.2.3.4.5" {
		t.Errorf("row A is %s", got)
	}
	b.eval(`(() => { const s = document.querySelector('[data-testid=play-blend-3]'); s.value = 50; s.dispatchEvent(new Event('input', { bubbles: true })); })()`)
	b.see(`document.getElementById('result-state').textContent`, "with 50% of slot 3 from B")
	b.see(padNow, "0% of slot 0, 0% of slot 2") // a slider of its own takes the pad back
}

func TestPadByTouch(t *testing.T) {
	p := newPlayground(t)
	b := browse(t, p, 390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch)
	b.waitFor("usage")
	b.open("/play/" + p.key + "?" + playState)
	b.seeWithin(time.Minute, `document.getElementById('play').dataset.decoder`, "browser")
	b.choosePad("s2", "s3")
	hand := handlertest.TouchScreen(t, b.ctx)
	b.choosePad("s2", "s3")
	x0, y0 := b.padAt(20, 20)
	x1, y1 := b.padAt(80, 70)
	hand.Drag(0, []handlertest.Place{{x0, y0}}, []handlertest.Place{{x1, y1}})
	b.see(`/^(79|80|81)% of slot 2, (69|70|71)% of slot 3$/.test(`+padNow+`)`, "true")
	b.see(`document.documentElement.scrollWidth`, "390")
}
