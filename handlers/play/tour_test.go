package play_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const tourCount = `document.querySelector('[data-testid=play-tour] .quiet')?.textContent`

// The tour shows itself on the first visit only, in the live page and in the frozen one; the legend offers it again.
func TestTour(t *testing.T) {
	needsBrowser(t)
	file := frozenOf(t, "hrr", "betavae")
	p := newPlayground(t)
	b := browse(t, p, 1280, 800)
	b.waitFor("usage")
	for _, address := range []string{p.url + "/play/" + p.key + "?" + playState, "file://" + file.path} {
		b.beforePages(`if (!sessionStorage.visited) { sessionStorage.visited = 'yes'; localStorage.clear(); }`) // of this address
		b.do(chromedp.Navigate(address))
		b.seeWithin(time.Minute, tourCount, "1 of 4")
		b.see(`document.querySelector('[data-toured]') === document.querySelector('#grid tr[data-row=a]')`, "true")
		for _, step := range []string{"2 of 4", "3 of 4", "4 of 4", "undefined"} {
			b.eval(`document.querySelector('#tour .primary').click()`)
			b.see(tourCount, step)
		}
		b.see(`document.querySelectorAll('[data-toured]').length`, "0")
		b.do(chromedp.Reload())
		b.seeWithin(time.Minute, `document.getElementById('play')?.dataset.ready`, "yes")
		b.click("play-help")
		b.see(`document.querySelectorAll('dialog[open] dt').length > 5`, "true")
		b.see(tourCount, "undefined") // not again
		b.keys(kb.Escape)
		b.see(`document.querySelectorAll('dialog').length`, "0")
		b.click("play-help")
		b.see(`document.querySelectorAll('dialog[open] button').length`, "2")
		b.eval(`document.querySelector('dialog button:not(.primary)').click()`)
		b.see(tourCount, "1 of 4")
		b.eval(`document.querySelector('#tour .plain').click()`) // skips
		b.see(tourCount, "undefined")
	}
}
