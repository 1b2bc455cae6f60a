package compare_test

import (
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"slotscope/handlers/compare"
	"slotscope/handlers/handlertest"
	playpage "slotscope/handlers/play"
	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/play"
)

// TestCompareInABrowser selects runs by mouse and by keyboard alone, then uses curves, smoothing, log y and the rule for bold.
func TestCompareInABrowser(t *testing.T) {
	f := handlertest.NewScored(t)
	handlertest.Pair(f)
	b := handlertest.Open(t, compare.Reports{Runs: f, Scores: f})
	b.Open("/compare")
	b.Until("nothing is selected at first", `document.querySelector('[data-part=pick-count]').textContent === 'none selected'`)
	b.Click("[data-testid=compare-go]")
	b.Until("the page requests a selection", `document.querySelector('[data-part=pick-count]').textContent.includes('at least one')`)

	b.Click(".pick li:first-child [data-part=pick-all]")
	b.Until("a group's checkbox selects its two runs", `document.querySelector('[data-part=pick-count]').textContent === '2 runs selected'`)
	b.Focus("#pick-filter")
	b.Do(chromedp.KeyEvent("denoiser"))
	b.Until("the filter leaves one group", `document.querySelectorAll('.pick li:not([hidden])').length === 1`)
	b.Focus(`input[value="b0"]`)
	b.Do(chromedp.KeyEvent(" "))
	b.Focus(`input[value="b1"]`)
	b.Do(chromedp.KeyEvent(" "))
	b.Until("keys select runs, too", `document.querySelector('[data-part=pick-count]').textContent === '4 runs selected'`)
	b.Focus("[data-testid=compare-go]")
	b.Do(chromedp.KeyEvent(kb.Enter))
	b.Until("the four are compared", `location.search.includes('a0,a1,b0,b1') && document.querySelector('.overlay canvas')`)
	b.Until("the decisive series are shown by default, with their titles", `[...document.querySelectorAll('.chart figcaption b')].map((b) => b.textContent).join() === 'Total loss,Perplexity, window,PSNR'`)
	b.Until("each chart shows its number of points", `[...document.querySelectorAll('.chart > p')].every((p) => /^\d+ points in 2 groups/.test(p.textContent))`)
	b.Click("[data-testid=series] summary")
	b.Click("[name=series][value='psnr/eval']")
	b.Click("[name=series][value=recon]")
	b.Until("the selected series are in the URL", `new URLSearchParams(location.search).get('series') === 'total,perplexity/window,recon' && document.querySelectorAll('.chart canvas').length === 3`)
	b.Focus("[data-part=curve-tools] [name=x]")
	b.Do(chromedp.KeyEvent("training"))
	b.Until("the x axis is training time", `new URLSearchParams(location.search).get('x') === 'time' && performance.getEntriesByType('resource').some((r) => r.name.includes('clock=true'))`)
	b.Focus("[data-testid=compare] summary")

	b.Do(chromedp.KeyEvent("]"), chromedp.KeyEvent("]"), chromedp.KeyEvent("l"))
	b.Until("keys change the smoothing", `document.querySelector('output[name=smooth-now]').value === '0.10'`)
	b.Until("the smoothed curve is fetched", `performance.getEntriesByType('resource').some((r) => r.name.includes('smooth=0.1'))`)
	b.Until("the smoothing is in the URL", `new URLSearchParams(location.search).get('smooth') === '0.1'`)
	b.Until("l makes y logarithmic", `document.querySelector('input[name=log]').checked`)
	b.Click(".legend label:first-child input")
	b.Until("a group can be hidden", `document.querySelector('.chart > p').textContent.includes('in 1 group')`)

	b.Until("nothing is bold with two seeds", `document.querySelector('[data-testid=scores]') && !document.querySelector('td.best')`)
	b.Focus("[data-part=rule] select")
	b.Do(chromedp.KeyEvent("nothing"))
	b.Until("selecting another rule for bold applies it", `location.search.includes('rule=none') && document.querySelector('[data-testid=scores]')`)
}

// TestReportProgressInABrowser checks that the page shows when a download is complete, repeatedly.
func TestReportProgressInABrowser(t *testing.T) {
	f := handlertest.NewScored(t)
	handlertest.Pair(f)
	b := handlertest.Open(t, compare.Reports{Runs: f, Scores: f})
	if _, err := chromedp.Call(b.Ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: t.TempDir(), BrowserContextID: chromedp.FromContext(b.Ctx).BrowserContextID}); err != nil {
		t.Fatal(err)
	}
	b.Open("/report?runs=a0,a1")
	b.Click("[data-testid=files] a[href*='summary.csv']")
	b.Until("a file is complete", `document.querySelector('[data-testid=progress]').textContent === 'summary.csv is complete.'`)
	b.Click("[data-testid=files] a[href*='summary.csv']")
	b.Until("it can be downloaded again", `performance.getEntriesByType('resource').filter((r) => r.name.includes('/api/report/progress/')).length > 1 && document.querySelector('[data-testid=progress]').textContent === 'summary.csv is complete.'`)
}

// TestCompareFollowsRuns checks that charts and tables of running runs update with new points and scores and keep the view.
func TestCompareFollowsRuns(t *testing.T) {
	f := handlertest.NewScored(t)
	handlertest.Pair(f)
	f.Put("live", model.Running, 60)
	b := handlertest.Open(t, compare.Reports{Runs: f, Scores: f})
	b.Open("/compare?runs=a0,a1,live&series=total,none&smooth=0.5&x=moon")
	b.Until("ignored URL parameters are listed", `document.querySelector('[data-testid=unread]').textContent.startsWith('Ignored in the URL: series=none, x=moon.')`)
	b.Open("/compare?runs=a0,a1,live&series=total&smooth=0.5")
	b.Until("80 points of two runs and 60 of one are drawn", `document.querySelector('.chart > p')?.textContent.startsWith('140 points')`)
	b.Until("the page shows that it follows one run", `document.querySelector('[data-part=live]').textContent.startsWith('1 run is unfinished') && !document.querySelector('[data-part=live]').hidden`)
	f.Grow("live", 25)
	b.Until("25 more points appear automatically", `document.querySelector('.chart > p').textContent.startsWith('165 points')`)
	b.Until("the series and the smoothing stay", `new URLSearchParams(location.search).get('series') === 'total' && document.querySelector('output[name=smooth-now]').value === '0.50'`)
	b.Until("the run is not in the tables yet", `document.querySelectorAll('[data-testid=scores] tbody')[0].rows.length === 1`)
	f.Score("live", 0, 0.9, 33, func(c *model.Config) { c.NoDenoiser = true })
	if err := f.Rename(t.Context(), "live", "done"); err != nil { // announces it
		t.Fatal(err)
	}
	b.Until("its scores appear in the tables automatically", `document.querySelectorAll('[data-testid=scores] tbody')[0].rows.length === 2 && document.querySelector('[data-part=live]').hidden`)
}

// TestComparePairInABrowser checks that the image numbers match the dataset and that downloads follow the displayed pair.
func TestComparePairInABrowser(t *testing.T) {
	f, dir := handlertest.NewScored(t), t.TempDir()
	f.Score(handlertest.RunID, 0, 0.8, 30, nil).Checkpoint = 40
	handlertest.WriteRun(t, dir)
	engine, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	library := play.NewLibrary(dir, engine, data.Catalogue{Dir: dir})
	t.Cleanup(library.Close)
	b := handlertest.Open(t, compare.Reports{Runs: f, Scores: f, Pairs: library}, &playpage.Play{Library: library})
	b.Do(chromedp.Navigate(b.URL + "/compare?runs=" + handlertest.RunID))
	b.Until("the pair is within the dataset", `['a', 'b'].every((n) => { const e = document.querySelector('[data-part=pair]').elements[n]; return e.max === '479999' && e.checkValidity() && e.value !== '' })`)
	b.Do(chromedp.ScrollIntoView("[data-part=swaps]"))
	b.Until("A, B and five swaps are shown", `document.querySelectorAll('[data-part=tiles] img').length === 7`)
	b.Focus("[name=view][value=swaps]")
	b.Do(chromedp.KeyEvent(kb.ArrowRight))
	b.Until("an arrow key shows the interpolation from A over five slots", `[...document.querySelectorAll('[data-part=tiles] figcaption')].map((c) => c.firstChild.textContent).join() === 'A,+ slot 0,+ slot 1,+ slot 2,+ slot 3,+ slot 4'`)
	b.Click("[name=random]")
	b.Until("links follow a random pair", `[...document.querySelectorAll('[data-figure]')].every((l) => { const q = new URL(l.href).searchParams; const e = document.querySelector('[data-part=pair]').elements; return q.get('a') === e.a.value && q.get('b') === e.b.value })`)
	b.Until("every link is a figure", `(window.all ??= Promise.all([...document.querySelectorAll('[data-figure]')].map((l) => fetch(l.href).then((r) => r.ok && /image.(svg|png)/.test(r.headers.get('content-type'))))).then((ok) => (window.good = ok.length === 4 && ok.every(Boolean)))) && window.good`)
}

// TestCompareByTouch zooms and resets the charts of compared runs by touch.
func TestCompareByTouch(t *testing.T) {
	f := handlertest.NewScored(t)
	handlertest.Pair(f)
	b := handlertest.Open(t, compare.Reports{Runs: f, Scores: f})
	h := b.TouchScreen()
	b.Open("/compare?runs=a0,a1,b0,b1")
	b.Wait(`document.querySelector('.overlay canvas') !== null`, "true")
	b.Wait(`document.querySelector('.overlay').ariaLabel.startsWith('Total loss: HRR ends')`, "true")
	left, top, wide := b.PlotBox(".overlay")
	at := handlertest.Place{left + wide/2, top + 100}
	h.Tap(at)
	b.Wait(`document.querySelector('[data-part=curve-foot]').textContent.startsWith('Total loss, step ')`, "true")
	h.Now = h.Now.Add(time.Second)
	h.Drag(0, []handlertest.Place{{at[0] - 20, at[1]}, {at[0] + 20, at[1]}}, []handlertest.Place{{at[0] - 100, at[1]}, {at[0] + 100, at[1]}})
	b.Wait(`document.querySelector('[name=reset]').disabled`, "false")
	h.Now = h.Now.Add(time.Second)
	h.Tap(at)
	h.Tap(at)
	b.Wait(`document.querySelector('[name=reset]').disabled`, "true")
}
