package handlers_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/web"
)

func openRuns(t *testing.T) runBrowser {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("chromium is not installed here, so the pages' scripts go untested")
	}
	f := newFakeRuns(t.TempDir())
	h, err := web.New(web.Config{Addr: "127.0.0.1:0", Pages: []web.Page{handlers.Runs{Service: f, Datasets: fakeData{}}}})
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(h)
	t.Cleanup(site.Close)
	ctx, stop := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox)...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	b := runBrowser{t, ctx, f, site}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 2800)); err != nil { // the first call starts the browser, which lives as long as its context
		t.Fatal(err)
	}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err == nil && m.IsException() {
				t.Errorf("%s:%d %s", m.URL, m.Line+1, m)
			}
		}
	}()
	return b
}

func text(selector string) string {
	return fmt.Sprintf("document.querySelector('%s')?.textContent.trim()", selector)
}

func pointsOf(series string) string {
	return fmt.Sprintf(`document.querySelector('[data-testid="chart-%s"]').dataset.points`, series)
}

const connection = "[data-testid=connection]"

func TestRunPageLives(t *testing.T) {
	b := openRuns(t)
	b.runs.put("a", model.Running, 300)
	b.runs.draw("a", 200)
	b.open("/runs/a")
	b.wait(text(connection), "live")
	b.wait(pointsOf("total"), "300")
	b.runs.grow("a", 25)
	b.wait(pointsOf("total"), "325")
	b.wait(pointsOf("codebook/mean"), "325")
	b.wait(text("[data-testid=step]"), "325")

	b.runs.draw("a", 300) // a newer sheet is shown by itself
	b.runs.grow("a", 80)
	b.wait(text("[data-part=sample-step]"), "step 300")

	b.site.CloseClientConnections() // the page comes back by itself and misses nothing
	b.runs.grow("a", 45)
	b.wait(pointsOf("total"), "450")
	b.wait(text(connection), "live")

	b.do(chromedp.Click(chromedp.CSS("[data-testid=stop]")))
	b.wait(text("[data-testid=state]"), "stopped")
	b.wait(text(connection), "ended")
	b.wait(text("[data-testid=checkpoints] a"), "450")
	b.wait("document.querySelector('[data-testid=play]').hidden", "false")
	b.wait(text("[data-testid=gaps]"), "450 of 450 steps stored, 0 gaps")
	if !strings.Contains(b.eval(text("[data-testid=reason]")), "step 450") {
		t.Error("the page does not say what a stop kept")
	}

	b.do(chromedp.Click(chromedp.CSS("[data-testid=resume]")), chromedp.Click(chromedp.CSS("[data-testid=resume-go]")))
	b.wait(text("[data-testid=state]"), "running")
	b.wait(pointsOf("total"), "450")
	b.runs.resumeFrom("a", 200) // as after a crash: the page takes back what the run took back
	b.wait(pointsOf("total"), "200")
	b.runs.grow("a", 10)
	b.wait(pointsOf("total"), "210")
}

func TestChartsByHand(t *testing.T) {
	b := openRuns(t)
	b.runs.put("a", model.Finished, 9000)
	b.open("/runs/a")
	b.wait(text(connection), "ended")
	total := `document.querySelector('[data-testid="chart-total"] [data-part=points]').textContent`
	if s := b.eval(total); !strings.Contains(s, "least, greatest, last of each span") {
		t.Errorf("9,000 points are drawn as %q", s)
	}
	b.do(chromedp.Click(chromedp.CSS(`[name=log]`)))
	b.wait(`document.querySelector('[data-testid="chart-latent/mean"] [data-part=marks]').textContent.includes('not above 0')`, "true")

	plot := chromedp.CSS(`[data-testid="chart-total"] [data-part=plot]`)
	b.do(chromedp.Focus(plot), chromedp.KeyEvent("+"), chromedp.KeyEvent("+"))
	b.wait(`document.querySelector('[data-part=view]').textContent !== ''`, "true")
	b.wait(total+".replace(/[0-9,]+/, 'n')", "n points") // zoomed in, every point is there
	b.do(chromedp.KeyEvent("0"))
	b.wait(`document.querySelector('[data-part=view]').textContent`, "")
	b.wait(total+".includes('span')", "true")
	b.do(chromedp.KeyEvent(kb.ArrowRight))
	b.wait(`document.querySelector('[data-testid="chart-total"] [data-part=now]').textContent.startsWith('step ')`, "true")
	b.wait(`document.querySelector('[data-testid="chart-recon"] [data-part=now]').textContent.startsWith('step ')`, "true") // one crosshair for all

	x, y := b.middle(`[data-testid="chart-total"] .u-over`)
	b.do(chromedp.DragAndDropXY(x-80, y, x+80, y))
	b.wait(`/^steps [0-9,]+ to [0-9,]+$/.test(document.querySelector('[data-part=view]').textContent)`, "true")
	b.do(chromedp.Click(chromedp.CSS("[name=reset]")))
	b.wait(`document.querySelector('[data-part=view]').textContent`, "")
	b.do(chromedp.KeyEvent("]"))
	b.wait(`document.querySelector('[name=smooth-now]').value`, "0.05")
}

func TestFormFollowsThePreset(t *testing.T) {
	b := openRuns(t)
	b.open("/runs/new")
	paper, _ := model.Default("hrr", "paper", "shapes3d-synthetic")
	b.do(chromedp.SetValue(chromedp.ID("steps"), "77"),
		func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
			_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`(document.getElementById('preset').value = 'paper', document.getElementById('preset').dispatchEvent(new Event('change', {bubbles: true})))`))
			return chromedp.Void{}, err
		})
	b.wait(`document.getElementById('widths').value`, "64,128,256,512")
	b.wait(`document.getElementById('d').value`, fmt.Sprint(paper.D))
	b.wait(`document.getElementById('steps').value`, "77") // typed by hand: kept
	b.do(chromedp.Click(chromedp.CSS("[data-testid=start]")))
	b.wait("location.pathname", "/runs/run-1")
	if c := b.runs.runs["run-1"].Config; c.Steps != 77 || c.Widths != paper.Widths {
		t.Errorf("started with %+v", c)
	}
}

// Another model brings its entries and takes those that it lacks away; what was typed stays, and so does the focus.
func TestFormFollowsTheModel(t *testing.T) {
	b := openRuns(t)
	b.open("/runs/new?preset=paper")
	choose := func(name string) {
		b.eval(fmt.Sprintf(`(document.getElementById('model').focus(), document.getElementById('model').value = '%s', document.getElementById('model').dispatchEvent(new Event('change', {bubbles: true})))`, name))
	}
	entries := `[...document.querySelectorAll('[data-field]')].map((f) => f.dataset.field).join(' ')`
	b.do(chromedp.SetValue(chromedp.ID("steps"), "77"))
	b.wait(text("[data-part=networks]"), "15,419,328 in encoder and decoder, 1,837,568 between them")
	choose("betavae")
	var want []string
	for _, g := range model.Groups {
		for _, f := range model.FieldsOf("betavae") {
			if f.Group == g {
				want = append(want, f.Name)
			}
		}
	}
	b.wait(entries, strings.Join(want, " "))
	b.wait(`document.querySelector('[data-group=ablation]') === null`, "true")
	b.wait(text("[data-part=networks]"), "14,908,370, all in encoder and decoder")
	b.wait("document.activeElement.id", "model")
	choose("vqvae")
	b.wait(`document.getElementById('codebook_lr')?.value`, "1")
	b.wait(text("[data-part=networks]"), "15,484,928 in encoder and decoder, 32,768 between them")
	b.do(chromedp.SetValue(chromedp.ID("k"), "100"))
	b.eval(`document.getElementById('k').dispatchEvent(new Event('change', {bubbles: true}))`)
	b.wait(text("[data-part=networks]"), "15,484,928 in encoder and decoder, 6,400 between them")
	choose("hrr")
	b.wait(`[...document.querySelectorAll('[data-group]')].map((g) => g.dataset.group).join(' ')`, "run network objective optimizer ablation cadence")
	choose("qlae")
	b.wait(`document.getElementById('d') === null`, "true")
	b.wait(`document.getElementById('weight_decay').value`, "1")
	b.do(chromedp.Click(chromedp.CSS("[data-testid=start]")))
	b.wait("location.pathname", "/runs/run-1")
	if c := b.runs.runs["run-1"].Config; c.Model != "qlae" || c.Steps != 77 || c.WeightDecay != 1 || c.D != 0 {
		t.Errorf("started with %+v", c)
	}
}

func TestTableByKeyboard(t *testing.T) {
	b := openRuns(t)
	b.runs.put("a", model.Finished, 10).Name = "Alpha"
	b.runs.put("b", model.Running, 10).Name = "Beta"
	b.open("/runs")
	b.eval(`dispatchEvent(Object.defineProperty(new KeyboardEvent('keydown', {key: '/'}), 'target', {value: document.body}))`)
	b.wait("document.activeElement.id", "q")
	b.do(chromedp.KeyEvent("alp"))
	b.wait("document.querySelectorAll('[data-testid=run-row]').length", "1")
	b.wait("location.search", "?q=alp")
	b.do(chromedp.KeyEvent("\b\b\b"))
	b.wait("document.querySelectorAll('[data-testid=run-row]').length", "2")
	b.do(chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent("j"))
	b.wait("document.activeElement.textContent", "Beta")
	b.runs.grow("b", 5)
	b.wait(text("[data-run=b] [data-part=steps]")+".split(' ')[0]", "15") // live rows move, the focus stays
	b.wait("document.activeElement.textContent", "Beta")
	b.do(chromedp.KeyEvent(kb.Enter))
	b.wait("location.pathname", "/runs/b")
}
