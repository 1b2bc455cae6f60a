package handlers_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"slotscope/handlers"
	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/play"
)

// TestCompareInABrowser: runs are chosen by mouse and by keyboard alone; curves, smoothing, log y and bold follow.
func TestCompareInABrowser(t *testing.T) {
	f := fakeScored(t)
	pair(f)
	ctx, address := openSite(t, handlers.Reports{Runs: f, Scores: f})
	browse(t, ctx, chromedp.Navigate(address+"/compare"))
	until(t, ctx, "nothing is chosen at first", `document.querySelector('[data-part=pick-count]').textContent === 'none chosen'`)
	browse(t, ctx, chromedp.Click("[data-testid=compare-go]"))
	until(t, ctx, "the page asks for a run", `document.querySelector('[data-part=pick-count]').textContent.includes('at least one')`)

	browse(t, ctx, chromedp.Click(".pick li:first-child [data-part=pick-all]"))
	until(t, ctx, "the box of a group chooses its two runs", `document.querySelector('[data-part=pick-count]').textContent === '2 runs chosen'`)
	browse(t, ctx, chromedp.Focus("#pick-filter"), chromedp.KeyEvent("denoiser"))
	until(t, ctx, "the filter leaves one group", `document.querySelectorAll('.pick li:not([hidden])').length === 1`)
	browse(t, ctx, chromedp.Focus(`input[value="b0"]`), chromedp.KeyEvent(" "), chromedp.Focus(`input[value="b1"]`), chromedp.KeyEvent(" "))
	until(t, ctx, "keys choose too", `document.querySelector('[data-part=pick-count]').textContent === '4 runs chosen'`)
	browse(t, ctx, chromedp.Focus("[data-testid=compare-go]"), chromedp.KeyEvent(kb.Enter))
	until(t, ctx, "the four are compared", `location.search.includes('a0,a1,b0,b1') && document.querySelector('.overlay canvas')`)
	until(t, ctx, "the points behind the curves are counted", `/^\d+ points behind 2 groups/.test(document.querySelector('[data-part=curve-foot]').textContent)`)

	browse(t, ctx, chromedp.KeyEvent("]"), chromedp.KeyEvent("]"), chromedp.KeyEvent("l"))
	until(t, ctx, "keys smooth", `document.querySelector('output[name=smooth-now]').value === '0.10'`)
	until(t, ctx, "the smoothed curve is fetched", `performance.getEntriesByType('resource').some((r) => r.name.includes('smooth=0.1'))`)
	until(t, ctx, "l makes y logarithmic", `document.querySelector('input[name=log]').checked`)
	browse(t, ctx, chromedp.Click(".legend label:first-child input"))
	until(t, ctx, "a group can be hidden", `document.querySelector('[data-part=curve-foot]').textContent.includes('behind 1 group')`)

	until(t, ctx, "two seeds set nothing in bold", `document.querySelector('[data-testid=scores]') && !document.querySelector('td.best')`)
	browse(t, ctx, chromedp.Focus("[data-part=rule] select"), chromedp.KeyEvent("nothing"))
	until(t, ctx, "another rule for bold is one choice away", `location.search.includes('rule=none') && document.querySelector('[data-testid=scores]')`)
}

// TestComparePairInABrowser: numbers fit the dataset, and the figures to download follow the pair that is shown.
func TestComparePairInABrowser(t *testing.T) {
	f, dir := fakeScored(t), t.TempDir()
	f.score(playRun, 0, 0.8, 30, nil).Checkpoint = 40
	writePlayRun(t, dir)
	engine, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	library := play.NewLibrary(dir, engine, data.Catalogue{Dir: dir})
	t.Cleanup(library.Close)
	ctx, address := openSite(t, handlers.Reports{Runs: f, Scores: f, Pairs: library}, &handlers.Play{Library: library})
	browse(t, ctx, chromedp.Navigate(address+"/compare?runs="+playRun))
	until(t, ctx, "the pair is of the dataset", `['a', 'b'].every((n) => { const e = document.querySelector('[data-part=pair]').elements[n]; return e.max === '479999' && e.checkValidity() && e.value !== '' })`)
	browse(t, ctx, chromedp.ScrollIntoView("[data-part=swaps]"))
	until(t, ctx, "A, B and five swaps are shown", `document.querySelectorAll('[data-part=tiles] img').length === 7`)
	browse(t, ctx, chromedp.Focus("[name=view][value=swaps]"), chromedp.KeyEvent(kb.ArrowRight))
	until(t, ctx, "an arrow key shows the walk from A by five slots", `[...document.querySelectorAll('[data-part=tiles] figcaption')].map((c) => c.firstChild.textContent).join() === 'A,+ slot 0,+ slot 1,+ slot 2,+ slot 3,+ slot 4'`)
	browse(t, ctx, chromedp.Click("[name=random]"))
	until(t, ctx, "links follow another pair", `[...document.querySelectorAll('[data-figure]')].every((l) => { const q = new URL(l.href).searchParams; const e = document.querySelector('[data-part=pair]').elements; return q.get('a') === e.a.value && q.get('b') === e.b.value })`)
	until(t, ctx, "every link is a figure", `(window.all ??= Promise.all([...document.querySelectorAll('[data-figure]')].map((l) => fetch(l.href).then((r) => r.ok && /image.(svg|png)/.test(r.headers.get('content-type'))))).then((ok) => (window.good = ok.length === 4 && ok.every(Boolean)))) && window.good`)
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
