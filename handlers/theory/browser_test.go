package theory_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"slotscope/handlers/handlertest"
	theorypage "slotscope/handlers/theory"
)

// TestTheoryLive: a slider updates its number, the results, the figure and the URL; the number updates the slider.
func TestTheoryLive(t *testing.T) {
	b := handlertest.Open(t, theorypage.Theory{Datasets: handlertest.Data{}, Library: fakeSlots{}})
	b.Open("/theory?m=9&d=512&k=512&R=13&rho=1")
	b.Until("sliders are shown", `document.querySelectorAll('.entry input[type=range]:not([hidden])').length === 6`)
	set := func(selector, value string) {
		t.Helper()
		js := `(() => { const e = document.querySelector('` + selector + `'); e.value = '` + value + `'; e.dispatchEvent(new Event('input', { bubbles: true })); return true })()`
		if _, err := chromedp.Run(b.Ctx, chromedp.Evaluate[bool](js)); err != nil {
			t.Fatal(err)
		}
	}
	set("[data-field=d] input[type=range]", "0")
	b.Until("the number follows the slider", `document.querySelector('input[name=d]').value === '8'`)
	b.Until("the figure follows", `document.querySelector('[data-testid=figure-capacity]').textContent.includes('d = 8,')`)
	b.Until("the URL follows", `location.search.includes('d=8&') && location.search.includes('m=9')`)
	set("input[name=d]", "4096")
	b.Until("the slider follows the number", `document.querySelector('[data-field=d] input[type=range]').value === '1000'`)
	b.Until("results follow the number", `document.querySelector('[data-testid=part-capacity]').textContent.includes('d/2 = 2,050 nats')`)
	set("input[name=d]", "0")
	time.Sleep(300 * time.Millisecond)
	b.Until("an invalid number leaves the results unchanged", `document.querySelector('[data-testid=part-capacity]').textContent.includes('2,050') && location.search.includes('d=4096')`)
}
