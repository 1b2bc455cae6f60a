package run_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"slotscope/handlers/handlertest"
	runpage "slotscope/handlers/run"
	"slotscope/model"
	"slotscope/model/expect"
)

func openRuns(t *testing.T) handlertest.Browser {
	t.Helper()
	f := handlertest.NewRuns(t.TempDir())
	b := handlertest.Open(t, runpage.Runs{Service: f, Datasets: handlertest.Data{}})
	b.Runs = f
	b.Do(chromedp.EmulateViewport(1280, 2800))
	return b
}

func text(selector string) string {
	return fmt.Sprintf("document.querySelector('%s')?.textContent.trim()", selector)
}

func pointsOf(series string) string {
	return fmt.Sprintf(`document.querySelector('[data-testid="chart-%s"]').dataset.points`, series)
}

const connection = "[data-testid=connection]"

// unfold expands every group of charts.
func unfold(b handlertest.Browser) {
	b.Eval(`document.querySelectorAll('details.charts, details.charts details').forEach((d) => (d.open = true))`)
}

// look scrolls to a chart so that it is drawn.
func look(b handlertest.Browser, chart string) {
	b.Eval(fmt.Sprintf(`document.querySelector('[data-testid="chart-%s"]').scrollIntoView({ block: 'center', behavior: 'instant' })`, chart))
}

func TestRunPageLives(t *testing.T) {
	b := openRuns(t)
	b.Runs.Put("a", model.Running, 300)
	b.Runs.Draw("a", 200)
	b.Open("/runs/a")
	b.Wait(text(connection), "live")
	b.Wait("document.querySelector('"+connection+"').hidden", "true") // shown only while disconnected
	b.Wait(pointsOf("total"), "300")
	b.Wait(pointsOf("codebook/mean"), "undefined") // collapsed, so not drawn
	unfold(b)
	b.Runs.Grow("a", 25)
	b.Wait(pointsOf("total"), "325")
	look(b, "codebook/mean")
	b.Wait(pointsOf("codebook/mean"), "325")
	look(b, "total")
	b.Wait(text("[data-testid=step]"), "325")

	b.Runs.Draw("a", 300) // a newer sheet appears automatically
	b.Runs.Grow("a", 80)
	b.Wait(text("[data-part=sample-step]"), "step 300")

	b.Site.CloseClientConnections() // the page reconnects and misses nothing
	b.Runs.Grow("a", 45)
	b.Wait(pointsOf("total"), "450")
	b.Wait(text(connection), "live")

	b.Click("[data-testid=delete]") // a running run must be stopped first
	b.Wait("document.querySelector('[data-testid=delete-go]').checkVisibility()", "false")
	b.Click("[data-testid=stop-first] [data-action=stop]")
	b.Wait(text("[data-testid=state]"), "stopped")
	b.Wait(text(connection), "ended")
	b.Wait(text("[data-testid=checkpoints] a"), "450")
	b.Wait("document.querySelector('[data-testid=play]').hidden", "false")
	b.Wait(text("[data-testid=gaps]"), "450 of 450 steps stored, 0 gaps")
	b.Until("the page shows what was saved at the stop", text("[data-testid=reason]")+".includes('step 450')")

	b.Click("[data-testid=resume]")
	b.Do(chromedp.SetValue(chromedp.ID("resume-steps"), "far"))
	b.Click("[data-testid=resume-go]")
	b.Wait("document.querySelector('#resume [data-testid=trouble]')?.checkVisibility()", "true") // rejected in its dialog, which keeps the input
	b.Wait("document.getElementById('resume-steps').value + ' ' + location.pathname", "far /runs/a")
	b.Do(chromedp.SetValue(chromedp.ID("resume-steps"), "20000"))
	b.Click("[data-testid=resume-go]")
	b.Wait(text("[data-testid=state]"), "running")
	b.Wait(pointsOf("total"), "450")
	b.Runs.ResumeFrom("a", 200) // as after a crash: the page rewinds with the run
	b.Wait(pointsOf("total"), "200")
	b.Runs.Grow("a", 10)
	b.Wait(pointsOf("total"), "210")
}

// TestFirstSheetArrives: the sheet of step 1 appears without reloading the page, and so does the PSNR with its step.
func TestFirstSheetArrives(t *testing.T) {
	expect.Long(t)
	b := openRuns(t)
	b.Runs.Put("a", model.Running, 0)
	b.Open("/runs/a")
	b.Wait(text(connection), "live")
	b.Wait("document.querySelector('[data-testid=samples] img') === null", "true")
	b.Runs.Draw("a", 1)
	b.Runs.Grow("a", 1)
	b.Wait(text("[data-part=sample-step]"), "step 1")
	b.Wait(text("[data-testid=psnr-step]"), "at step 1")
	b.Wait("document.querySelector('[data-testid=verdict]').dataset.kind", "early")
}

func TestChartsByHand(t *testing.T) {
	b := openRuns(t)
	b.Runs.Put("a", model.Finished, 9000)
	b.Open("/runs/a")
	b.Wait(text(connection), "ended")
	unfold(b)
	total := `document.querySelector('[data-testid="chart-total"] [data-part=points]').textContent`
	b.Wait(total+".includes('min, max and last of each interval')", "true") // 9,000 points are thinned
	b.Click("[name=log]")
	look(b, "latent/mean") // a chart is drawn only while it is near the viewport
	b.Wait(`document.querySelector('[data-testid="chart-latent/mean"] [data-part=marks]').textContent.includes('≤ 0')`, "true")

	look(b, "total")
	b.Wait(`document.querySelector('[data-testid="chart-total"] .u-over') !== null`, "true")
	b.Focus(`[data-testid="chart-total"] [data-part=plot]`)
	b.Keys("+", "+")
	b.Wait(`document.querySelector('[data-part=view]').textContent !== ''`, "true")
	b.Wait(total+".replace(/[0-9,]+/, 'n')", "n points") // zoomed in, every point is loaded
	b.Do(chromedp.KeyEvent("0"))
	b.Wait(`document.querySelector('[data-part=view]').textContent`, "")
	b.Wait(total+".includes('interval')", "true")
	b.Do(chromedp.KeyEvent(kb.ArrowRight))
	b.Wait(`document.querySelector('[data-testid="chart-total"] [data-part=now]').textContent.startsWith('step ')`, "true")
	b.Wait(`document.querySelector('[data-testid="chart-perplexity/window"] [data-part=now]').textContent.startsWith('step ')`, "true") // one crosshair for all

	x, y := b.Middle(`[data-testid="chart-total"] .u-over`)
	b.Drag(x-80, y, x+80, y)
	b.Wait(`/^steps [0-9,]+ to [0-9,]+$/.test(document.querySelector('[data-part=view]').textContent)`, "true")
	b.Click("[name=reset]")
	b.Wait(`document.querySelector('[data-part=view]').textContent`, "")
	b.Do(chromedp.KeyEvent("]"))
	b.Wait(`document.querySelector('[name=smooth-now]').value`, "0.05")
}

// TestChartMenu: each chart has its own axes, a wrong limit shows an error, and the URL restores the view.
func TestChartMenu(t *testing.T) {
	b := openRuns(t)
	b.Runs.Put("a", model.Finished, 9000)
	b.Open("/runs/a?smooth=0.5&open=terms-of-the-loss&steps=100-5000")
	b.Wait(text(connection), "ended")
	b.Wait(`document.querySelector('[name=smooth-now]').value + document.querySelector('[data-part=view]').textContent + document.querySelector('[data-group=terms-of-the-loss]').open`, "0.50steps 100 to 5,000true")
	b.Wait(`document.querySelector('[data-testid="chart-total"] .u-over') !== null`, "true")
	b.Click(`[data-testid="chart-total"] [data-part=menu]`)
	b.Wait(`document.querySelector('#chart-menu h2').textContent`, "Total loss")
	set := func(name, v string) {
		b.Eval(fmt.Sprintf(`(() => { const f = document.querySelector('#chart-menu [name=%s]'); f.value = '%s'; f.dispatchEvent(new Event('change')) })()`, name, v))
	}
	set("lo", "much")
	b.Wait(text("#chart-menu [data-part=why]"), "“much” is not a number.")
	set("lo", "0.2")
	set("hi", "0.1")
	b.Wait(text("#chart-menu [data-part=why]"), "The lower limit (0.2) must be below the upper one (0.1).")
	set("hi", "0.6")
	b.Wait(`new URLSearchParams(location.search).get('axis')`, "total:0.2~0.6")
	b.Wait(`document.querySelector('#chart-menu [data-part=csv]').getAttribute('href')`, "/api/runs/a/points.csv?names=total")
	b.Click(`#chart-menu [name=enlarge]`)
	b.Wait(`document.querySelector('[data-testid="chart-total"] .u-over').clientHeight > 350`, "true")
	b.Open(strings.TrimPrefix(b.Eval("location.href"), b.Site.URL)) // the URL restores the view
	b.Wait(`document.querySelector('[data-testid="chart-total"] .u-over')?.clientHeight > 350`, "true")
	b.Wait(`document.querySelector('[data-part=view]').textContent`, "steps 100 to 5,000")
	b.Do(chromedp.KeyEvent("?"))
	b.Wait(`document.getElementById('keys').open`, "true")
}

// TestEarlierRunBehind: an earlier run of the same configuration can be drawn as a reference and is stored in the URL; the sheet of
// reconstructions follows the crosshair and is restored.
func TestEarlierRunBehind(t *testing.T) {
	b := openRuns(t)
	old := b.Runs.Put("old", model.Finished, 500)
	old.Config.Seed, old.Created, old.Name = 7, old.Created.AddDate(0, 0, -1), "hrr tiny with a rate of 0.003, warmed up over a tenth of the steps"
	older := b.Runs.Put("older", model.Finished, 300)
	older.Config.Seed, older.Created = 8, older.Created.AddDate(0, 0, -2)
	other := b.Runs.Put("other", model.Finished, 500)
	other.Config.LR, other.Created = 1, other.Created.AddDate(0, 0, -1)
	b.Runs.Put("a", model.Finished, 400)
	b.Runs.Draw("a", 1)
	b.Runs.Draw("a", 200)
	b.Runs.Draw("a", 400)
	b.Open("/runs/a")
	b.Wait(text(connection), "ended")
	b.Wait(`[...document.querySelector('[name=ref]').options].map((o) => o.value).join(' ')`, " all old older")
	b.Eval(`(() => { const f = document.querySelector('[name=ref]'); f.value = 'old'; f.dispatchEvent(new Event('change')) })()`)
	b.Wait(`location.search`, "?ref=old")
	behind := `document.querySelector('[data-testid="chart-total"]').dataset.behind`
	b.Wait(behind, "1")
	b.Do(chromedp.KeyEvent("]"))
	b.Wait(`document.querySelector('[name=smooth-now]').value`, "0.05")
	b.Eval(`(() => {
		const ask = window.fetch;
		const asked = new Promise((done) => (window.answer = done));
		window.fetch = (...of) => asked.then(() => ask(...of));
		const f = document.querySelector('[name=ref]');
		f.value = 'all';
		f.dispatchEvent(new Event('change'));
	})()`)
	b.Wait(`location.search`, "?smooth=0.05&ref=all")
	b.Do(chromedp.KeyEvent("]"), chromedp.Sleep(300*time.Millisecond)) // the charts are redrawn before the other run's points arrive
	b.Wait(`document.querySelector('[name=smooth-now]').value`, "0.10")
	b.Eval(`window.answer()`)
	b.Wait(behind, "2")
	b.Open("/runs/a?ref=all")
	b.Wait(behind, "2")
	b.Open("/runs/a?ref=old")
	b.Wait(text(connection), "ended")
	b.Wait(`document.querySelector('[name=ref]').value`, "old")
	b.Wait(`document.querySelector('[data-testid="chart-total"] .u-over') !== null`, "true")
	b.Focus(`[data-testid="chart-total"] [data-part=plot]`)
	b.Keys(kb.ArrowRight) // to the middle
	b.Wait(text("[data-part=sample-step]"), "step 200")
	b.Click("h1")
	b.Wait(text("[data-part=sample-step]"), "step 400")
	b.Do(chromedp.EmulateViewport(390, 900)) // a phone, with long run names in the select
	b.Wait(`Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth)`, "0")
}

func TestFormFollowsThePreset(t *testing.T) {
	b := openRuns(t)
	b.Open("/runs/new")
	paper, _ := model.Default("hrr", "paper", "shapes3d-synthetic")
	b.Do(chromedp.SetValue(chromedp.ID("steps"), "77"),
		func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
			_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`(document.getElementById('preset').value = 'paper', document.getElementById('preset').dispatchEvent(new Event('change', {bubbles: true})))`))
			return chromedp.Void{}, err
		})
	b.Wait(`document.getElementById('widths').value`, "64,128,256,512")
	b.Wait(`document.getElementById('d').value`, fmt.Sprint(paper.D))
	b.Wait(`document.getElementById('steps').value`, "77") // edited by hand: kept
	b.Click("[data-testid=start]")
	b.Wait("location.pathname", "/runs/run-1")
	if c := b.Runs.Runs["run-1"].Config; c.Steps != 77 || c.Widths != paper.Widths {
		t.Errorf("started with %+v", c)
	}
}

// Choosing another model adds and removes fields; edited values and the focus are kept.
func TestFormFollowsTheModel(t *testing.T) {
	b := openRuns(t)
	b.Open("/runs/new?preset=paper")
	choose := func(name string) {
		b.Eval(fmt.Sprintf(`(document.getElementById('model').focus(), document.getElementById('model').value = '%s', document.getElementById('model').dispatchEvent(new Event('change', {bubbles: true})))`, name))
	}
	entries := `[...document.querySelectorAll('[data-field]')].map((f) => f.dataset.field).join(' ')`
	b.Do(chromedp.SetValue(chromedp.ID("steps"), "77"))
	b.Wait(text("[data-part=networks]"), "15,419,328 in encoder and decoder, 1,837,568 between them")
	choose("betavae")
	var want []string
	for _, g := range model.Groups {
		for _, f := range model.FieldsOf("betavae") {
			if f.Group == g {
				want = append(want, f.Name)
			}
		}
	}
	b.Wait(entries, strings.Join(want, " "))
	b.Wait(`document.querySelector('[data-group=ablation]') === null`, "true")
	b.Wait(text("[data-part=networks]"), "14,908,370, all in encoder and decoder")
	b.Wait("document.activeElement.id", "model")
	choose("vqvae")
	b.Wait(`document.getElementById('codebook_lr')?.value`, "1")
	b.Wait(text("[data-part=networks]"), "15,484,928 in encoder and decoder, 32,768 between them")
	b.Do(chromedp.SetValue(chromedp.ID("k"), "100"))
	b.Eval(`document.getElementById('k').dispatchEvent(new Event('change', {bubbles: true}))`)
	b.Wait(text("[data-part=networks]"), "15,484,928 in encoder and decoder, 6,400 between them")
	choose("hrr")
	b.Wait(`[...document.querySelectorAll('[data-group]')].map((g) => g.dataset.group).join(' ')`, "run network objective optimizer ablation cadence compute")
	choose("qlae")
	b.Wait(`document.getElementById('d') === null`, "true")
	b.Wait(`document.getElementById('weight_decay').value`, "1")
	b.Click("[data-testid=start]")
	b.Wait("location.pathname", "/runs/run-1")
	if c := b.Runs.Runs["run-1"].Config; c.Model != "qlae" || c.Steps != 77 || c.WeightDecay != 1 || c.D != 0 {
		t.Errorf("started with %+v", c)
	}
}
