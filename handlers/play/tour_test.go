package play_test

import (
	"slotscope/handlers/handlertest"
	"slotscope/model/expect"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const tourCount = `document.querySelector('[data-testid=play-tour] .quiet')?.textContent`

// The tour starts on the first visit only, in the live page and in the frozen one; the legend can restart it.
func TestTour(t *testing.T) {
	expect.Long(t)
	handlertest.NeedsBrowser(t)
	file := frozenOf(t, "hrr", "betavae")
	p := newPlayground(t)
	b := playBrowser{p, handlertest.NewWindow(t)} // first visit
	b.Do(chromedp.EmulateViewport(1280, 800))
	b.BeforePages(`self.remembered = localStorage.getItem('slotscope tour')`)
	b.waitFor("usage")
	for _, address := range []string{p.url + "/play/" + p.key + "?" + playState, "file://" + file.path} {
		b.Do(chromedp.Navigate(address))
		b.Wait(tourCount, "1 of 4")
		b.Wait(`document.querySelector('[data-toured]') === document.querySelector('#grid tr[data-row=a]')`, "true")
		for _, step := range []string{"2 of 4", "3 of 4", "4 of 4", "undefined"} {
			b.Eval(`document.querySelector('#tour .primary').click()`)
			b.Wait(tourCount, step)
		}
		b.Wait(`document.querySelectorAll('[data-toured]').length`, "0")
		b.Do(chromedp.Reload())
		b.Wait(`document.getElementById('play')?.dataset.ready`, "yes")
		if strings.HasPrefix(address, "file:") && b.Eval(`self.remembered`) != "seen" {
			// Headless Chromium on a busy machine may lose the storage of a file:// page when it is closed.
			b.Wait(tourCount, "1 of 4")
			b.Eval(`document.querySelector('#tour .plain').click()`)
		}
		b.click("play-help")
		b.Wait(`document.querySelectorAll('dialog[open] dt').length > 5`, "true")
		b.Wait(tourCount, "undefined") // not again
		b.Keys(kb.Escape)
		b.Wait(`document.querySelectorAll('dialog').length`, "0")
		b.click("play-help")
		b.Wait(`document.querySelectorAll('dialog[open] button').length`, "2")
		b.Eval(`document.querySelector('dialog button:not(.primary)').click()`)
		b.Wait(tourCount, "1 of 4")
		b.Eval(`document.querySelector('#tour .plain').click()`) // skips
		b.Wait(tourCount, "undefined")
	}
}
