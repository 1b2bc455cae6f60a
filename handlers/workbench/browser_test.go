package workbench_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"slotscope/handlers/handlertest"
	"slotscope/handlers/workbench"
	"slotscope/model"
	"slotscope/model/view"
)

func open(t *testing.T) handlertest.Browser {
	t.Helper()
	f := handlertest.NewRuns(t.TempDir())
	b := handlertest.Open(t, workbench.Workbench{Runs: f, Views: view.Open(t.TempDir()), Evaluations: &evaluations{}})
	b.Runs = f
	return b
}

const rows = "document.querySelectorAll('[data-testid=run-row]').length"

// TestListByKeyboard: filter, navigate and select; live updates keep focus and selection.
func TestListByKeyboard(t *testing.T) {
	b := open(t)
	b.Runs.Put("a", model.Finished, 10).Name = "Alpha"
	b.Runs.Put("b", model.Running, 10).Name = "Beta"
	b.Open("/runs")
	b.Wait(rows, "2")
	b.Eval(`document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '/', bubbles: true}))`)
	b.Wait("document.activeElement.id", "q")
	b.Do(chromedp.KeyEvent("alp"))
	b.Wait(rows, "1")
	b.Wait("location.search", "?q=alp")
	b.Do(chromedp.KeyEvent("\b\b\b"))
	b.Wait(rows, "2")
	b.Do(chromedp.KeyEvent("lr<"))
	b.Wait("document.querySelector('[data-part=fault]').textContent", `"lr<": a value must follow, as in model=hrr or lr<1e-3`)
	b.Wait(rows, "2") // the list is unchanged
	b.Do(chromedp.KeyEvent("\b\b\b"))
	b.Wait("document.querySelector('[data-part=fault]').textContent", "")
	b.Do(chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent("j"))
	b.Wait("document.activeElement.textContent", "Beta")
	b.Do(chromedp.KeyEvent("x"))
	b.Wait("document.querySelector('[data-part=selected]').textContent", "1 selected")
	b.Runs.Grow("b", 5)
	b.Wait("document.querySelector('[data-run=b] [data-part=steps]').textContent.split(' ')[0]", "15")
	b.Wait("document.activeElement.textContent", "Beta")
	b.Wait("document.querySelector('[data-part=selected]').textContent", "1 selected")
	b.Runs.Put("c", model.Queued, 0).Name = "Started elsewhere"
	b.Runs.Grow("b", 1)
	b.Wait(rows, "3")
	b.Do(chromedp.KeyEvent(kb.Enter))
	b.Wait("location.pathname", "/runs/b")
}

// holdAnswers delays the responses to list requests until release(url); asked(url) counts the requests.
const holdAnswers = `(() => {
	const plain = window.fetch, held = [];
	window.asked = (url) => held.filter((h) => h.url === url).length;
	window.release = (url) => held.forEach((h) => h.url === url && h.go());
	window.fetch = async (url, ...more) => {
		if (!String(url).startsWith('/runs')) return plain(url, ...more);
		const answer = await plain(url, ...more);
		const text = await answer.text();
		return { ok: answer.ok, text: () => new Promise((go) => held.push({ url, go: () => go(text) })) };
	};
})()`

// TestAnswersOvertake: the list matches the query in the box, whatever the order of responses and updates.
func TestAnswersOvertake(t *testing.T) {
	b := open(t)
	b.Runs.Put("a", model.Finished, 10).Name = "Alpha"
	b.Runs.Put("b", model.Running, 10).Name = "Beta"
	b.Open("/runs?q=alp")
	b.Wait(rows, "1")
	b.Eval(holdAnswers)
	query := func(text, url string) {
		b.Eval(`((q) => { q.value = '` + text + `'; q.dispatchEvent(new Event('input')) })(document.getElementById('q'))`)
		b.Wait("window.asked('"+url+"') > 0", "true")
	}
	query("al", "/runs?q=al")
	query("", "/runs")
	b.Eval("release('/runs')")
	b.Wait(rows, "2")
	b.Eval("release('/runs?q=al')")
	b.Eval("new Promise((done) => setTimeout(done, 0))")
	b.Wait(rows, "2")
	b.Wait("location.search", "")

	query("bet", "/runs?q=bet")
	b.Runs.Grow("b", 5)
	b.Wait("window.asked('/runs?q=bet') > 1", "true") // an update, while the response to the query is pending
	b.Eval("release('/runs?q=bet')")
	b.Wait(rows, "1")
	b.Wait("location.search", "?q=bet")

	query("lr<", "/runs?q=lr%3C")
	b.Eval("release('/runs?q=lr%3C')")
	b.Wait("document.querySelector('[data-part=fault]').textContent !== ''", "true")
	b.Runs.Grow("b", 5)
	b.Wait("(release('/runs?q=bet'), document.querySelector('[data-run=b] [data-part=steps]').textContent.split(' ')[0])", "20")
	b.Wait("document.querySelector('[data-part=fault]').textContent !== ''", "true") // the box still has the invalid query
}

// TestQueryIsCompleted: names, then values, by keyboard.
func TestQueryIsCompleted(t *testing.T) {
	b := open(t)
	b.Runs.PutMany(30)
	b.Open("/runs")
	b.Focus("#q")
	b.Do(chromedp.KeyEvent("sta"))
	b.Wait("document.querySelector('#completions [role=option] b')?.textContent", "state")
	b.Do(chromedp.KeyEvent(kb.ArrowDown))
	b.Wait("document.getElementById('q').getAttribute('aria-activedescendant')", "completion-0")
	b.Do(chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent("=run"))
	b.Wait("document.querySelector('#completions [role=option] b')?.textContent", "running")
	b.Do(chromedp.KeyEvent(kb.Tab))
	b.Wait("document.getElementById('q').value", "state=running ")
	b.Wait(rows, "2")
	b.Do(chromedp.KeyEvent("tag:ni"), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	b.Wait("document.getElementById('q').value", "state=running tag:night ")
	b.Wait("new URLSearchParams(location.search).get('q')", "state=running tag:night ")
}

// TestWorkbenchByHand: sorting, groups, columns, bulk actions and a saved view, all stored in the URL.
func TestWorkbenchByHand(t *testing.T) {
	b := open(t)
	b.Runs.PutMany(300)
	b.Open("/runs")
	b.Wait(rows, "100")
	b.Click(`th a[href*="sort=-infom"]`)
	b.Wait("location.search", "?sort=-infom")
	b.Wait("document.querySelector('th[aria-sort=descending]').textContent.trim().split(/\\s/)[0]", "InfoM")
	b.Eval(`((s) => { s.value = 'config'; s.dispatchEvent(new Event('change')) })(document.getElementById('group'))`)
	b.Wait("document.querySelectorAll('[data-testid=group-row]').length", "50")
	b.Wait("new URLSearchParams(location.search).get('sort')", "-infom")
	b.Click("[data-part=toggle]")
	b.Wait(rows+" > 3", "true")
	b.Click("[data-part=columns]")
	b.Wait("document.querySelector('dialog[open] [data-part=find]') !== null", "true")
	b.Do(chromedp.SendKeys("dialog [data-part=find]", "perplexity used"))
	b.Wait("document.querySelectorAll('dialog [data-text]:not([hidden])').length", "1")
	b.Click(`dialog input[value="perplexity/used"]`)
	b.Click("dialog button.primary")
	b.Wait("new URLSearchParams(location.search).getAll('cols').includes('perplexity/used')", "true")
	b.Wait("document.querySelectorAll('[data-testid=group-row]').length", "50") // grouped as before

	b.Eval("(window.before = true)")
	b.Click("[data-group] input[name=run]")
	b.Do(chromedp.SendKeys("#bulk-tag", "best"))
	b.Click(`[data-part=bulk] button[value=tag]`)
	b.Wait("!window.before && document.readyState === 'complete' && new URLSearchParams(location.search).get('group')", "config") // back where it was
	b.Eval(`((q) => { q.value = 'tag:best'; q.dispatchEvent(new Event('input')) })(document.getElementById('q'))`)
	b.Wait("document.querySelectorAll('[data-testid=group-row]').length", "1")

	b.Click("[data-part=save] summary")
	b.Do(chromedp.SendKeys("#view-name", "the best"))
	b.Click("[data-part=save] button.primary")
	b.Wait("document.querySelector('[data-testid=saved-views] nav [aria-current]')?.textContent", "the best")
	if where := b.Eval("location.search"); !strings.Contains(where, "q=tag%3Abest") || !strings.Contains(where, "view=the+best") || !strings.Contains(where, "group=config") {
		t.Errorf("the saved view is %s", where)
	}
	b.Click("[data-part=page-all]")
	b.Click(`[data-part=bulk] button[value=delete]`)
	b.Wait("document.querySelector('[data-testid=outcome] h1')?.textContent.startsWith('Delete')", "true")
	b.Click("[data-testid=confirm]")
	b.Wait("document.querySelector('[data-testid=no-match]') !== null", "true")
	b.Open("/runs")
	b.Click(".star")
	b.Wait("document.querySelector('.star')?.getAttribute('aria-pressed')", "true")
}
