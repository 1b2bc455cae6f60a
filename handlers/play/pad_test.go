package play_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"slotscope/handlers/handlertest"
	"slotscope/model/expect"
)

const (
	padNow     = `document.querySelector('[data-testid=play-pad-now]').textContent`
	padPixels  = `document.querySelector('[data-testid=play-pad-shown]').getContext('2d').getImageData(0, 0, 64, 64).data`
	padAsFirst = `String(` + padPixels + `.every((v, i) => Math.abs(v - window.first[i]) < 2))`
)

// choosePad sets the axes of the pad.
func (b playBrowser) choosePad(x, y string) {
	b.t.Helper()
	for axis, slot := range map[string]string{"x": x, "y": y} {
		b.Eval(fmt.Sprintf(`(() => { const s = document.querySelector('[data-testid=play-pad-%s]'); s.value = '%s'; s.dispatchEvent(new Event('change')); })()`, axis, slot))
	}
	b.Eval(`document.querySelector('[data-testid=play-pad]').scrollIntoView({ block: 'center' })`)
}

// padAt returns the coordinates of a position on the pad, in percent from its lower left.
func (b playBrowser) padAt(x, y float64) (float64, float64) {
	b.t.Helper()
	b.at("play-pad") // waits until it has stopped moving
	var left, top, side float64
	fmt.Sscanf(b.Eval(`(() => { const r = document.querySelector('[data-testid=play-pad]').getBoundingClientRect(); return r.left + ' ' + r.top + ' ' + r.width; })()`), "%g %g %g", &left, &top, &side)
	return left + side*x/100, top + side*(1-y/100)
}

// Mouse and keys blend two slots at once from A to B; the extremes are the swaps themselves.
func TestPadByMouseAndKeys(t *testing.T) {
	b := openPlay(t, 1280, 900)
	b.decodes()
	b.Wait(`document.querySelectorAll('[data-testid=play-pad-x] option').length > 4`, "true")
	b.choosePad("s0", "s2")
	b.Wait(padNow, "0% of slot 0, 0% of slot 2")
	b.Wait(padPixels+`.some((v, i) => i % 4 < 3 && v > 0)`, "true")
	b.Eval(`void (window.first = ` + padPixels + `)`)
	x0, y0 := b.padAt(10, 10)
	x1, y1 := b.padAt(60, 40)
	b.Drag(x0, y0, x1, y1)
	b.Wait(`/^(59|60|61)% of slot 0, (39|40|41)% of slot 2$/.test(`+padNow+`)`, "true")
	b.Wait(padAsFirst, "false")
	b.Wait(`[document.querySelector('[data-testid=play-blend-0]').value, document.querySelector('[data-testid=play-blend-2]').value].every((v, i) => Math.abs(v - [60, 40][i]) < 2)`, "true")
	b.Keys(kb.End)
	b.Wait(padNow, "100% of slot 0, 100% of slot 2")
	b.Eval(`(async () => { const i = new Image(); i.src = '/img/` + b.key + `/6.2.8.4.5.png'; await i.decode(); const c = new OffscreenCanvas(64, 64).getContext('2d'); c.drawImage(i, 0, 0); window.swapped = c.getImageData(0, 0, 64, 64).data; })()`)
	b.Wait(`window.swapped && `+padPixels+`.every((v, i) => Math.abs(v - window.swapped[i]) < 2)`, "true")
	b.Keys(kb.ArrowLeft, kb.ArrowDown)
	b.Wait(padNow+` + ' ' + document.querySelector('[data-testid=play-pad]').getAttribute('aria-valuetext')`, "95% of slot 0, 95% of slot 2 95% of slot 0, 95% of slot 2")
	b.Keys(kb.Home)
	b.Wait(padAsFirst, "true")
	b.shows("1.2.3.4.5")
	b.has("a", "1.2.3.4.5")
	b.Eval(`(() => { const s = document.querySelector('[data-testid=play-blend-3]'); s.value = 50; s.dispatchEvent(new Event('input', { bubbles: true })); })()`)
	b.Wait(`document.getElementById('result-state').textContent`, "with 50% of slot 3 from B")
	b.Wait(padNow, "0% of slot 0, 0% of slot 2") // moving another slider resets the pad
}

func TestPadByTouch(t *testing.T) {
	expect.Long(t)
	p := newPlayground(t)
	b := browse(t, p, 390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch)
	b.waitFor("usage")
	b.open("/play/" + p.key + "?" + playState)
	b.decodes()
	b.choosePad("s2", "s3")
	hand := b.TouchScreen()
	b.choosePad("s2", "s3")
	x0, y0 := b.padAt(20, 20)
	x1, y1 := b.padAt(80, 70)
	hand.Drag(0, []handlertest.Place{{x0, y0}}, []handlertest.Place{{x1, y1}})
	b.Wait(`/^(79|80|81)% of slot 2, (69|70|71)% of slot 3$/.test(`+padNow+`)`, "true")
	b.Wait(`document.documentElement.scrollWidth`, "390")
}
