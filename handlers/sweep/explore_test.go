package sweep_test

import (
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/chromedp/chromedp"

	"slotscope/handlers/compare"
	"slotscope/handlers/handlertest"
	sweeppage "slotscope/handlers/sweep"
	"slotscope/model"
	"slotscope/model/sweep"
)

// searched creates a sweep over two hyperparameters with scores for all runs but one: InfoM rises with the learning rate, and a little with k.
func searched(t *testing.T, f *handlertest.Scored) (id string, items []sweep.Standing) {
	t.Helper()
	p, err := sweep.Own{Name: "searched", Preset: "tiny", Steps: 40, Seeds: 2, Models: []string{"hrr"}, Datasets: []string{"shapes3d-synthetic"},
		Vary: []sweep.Line{{Name: "lr", Value: "0.0001, 0.001, 0.01"}, {Name: "k", Value: "32, 64"}}}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	s, err := handlertest.Sweeps{Scored: f}.CreateAt(t.Context(), p, model.Placement{})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range s.Board.Items[1:] {
		infom := 0.5 + 0.15*(math.Log10(item.Config.LR)+3) + float64(item.Config.K)/1280 + 0.01*float64(item.Config.Seed)
		f.Score(item.ID, item.Config.Seed, infom, 30, nil).Config = item.Config
	}
	return s.ID, s.Board.Items
}

func TestExplorePage(t *testing.T) {
	f, h := openSweeps(t)
	id, items := searched(t, f)
	if href := handlertest.Page(t, handlertest.Ask(h, "GET", "/sweeps/"+id, "")).Find("[data-testid=explore-link]").AttrOr("href", ""); href != "/sweeps/"+id+"/explore" {
		t.Errorf("the sweep page links to %q", href)
	}
	doc := handlertest.Page(t, handlertest.Ask(h, "GET", "/sweeps/"+id+"/explore?x=k&y=lr", ""))
	var cells []string
	doc.Find(".heat tr").Each(func(_ int, tr *goquery.Selection) {
		tr.Find("th, td").Each(func(_ int, c *goquery.Selection) {
			var texts []string
			if c.Find("text").Each(func(_ int, s *goquery.Selection) { texts = append(texts, s.Text()) }); len(texts) == 0 {
				texts = []string{strings.Join(strings.Fields(c.Text()), " ")}
			}
			cells = append(cells, strings.Join(texts, " "))
		})
	})
	// seeds differ by 0.01: the interval's half is 12.7·0.00707/√2 = 0.0635; one of the first cell's two runs has no score
	want := `Learning rate η \ Codebook entries k|32|64|0.0001|0.39 1 of 2 runs|0.41 ± 0.06 2 runs|0.001|0.53 ± 0.06 2 runs|0.56 ± 0.06 2 runs|0.01|0.68 ± 0.06 2 runs|0.71 ± 0.06 2 runs`
	if got := strings.Join(cells, "|"); got != want {
		t.Errorf("heat map\n%s\nwant\n%s", got, want)
	}
	last := doc.Find(".heat a").Last()
	address, _ := last.Attr("href")
	if !strings.HasPrefix(address, "/compare?runs=hrr-") || strings.Count(address, "hrr-") != 2 || !strings.HasSuffix(address, "#swaps") {
		t.Errorf("a cell opens %s", address)
	}
	if w := handlertest.Ask(h, "GET", strings.TrimSuffix(address, "#swaps"), ""); w.Code != http.StatusOK {
		t.Errorf("%s: status %d", address, w.Code)
	}
	low, high := doc.Find(".heat rect").First().AttrOr("class", ""), last.Find("rect").AttrOr("class", "")
	if low != "f-h0" || high != "f-h20" {
		t.Errorf("the lowest is %s, the highest %s", low, high)
	}
	rows := doc.Find("[data-testid=run]")
	if rows.Length() != 12 || rows.First().Find("td").Eq(1).Text() != "0.710" || rows.Last().AttrOr("data-run", "") != items[0].ID {
		t.Errorf("%d rows, first %q, last %s", rows.Length(), rows.First().Text(), rows.Last().AttrOr("data-run", ""))
	}
	if n := doc.Find("[data-testid^=figure-marginal]").Length(); n != 2 {
		t.Errorf("%d marginals", n)
	}
	for _, name := range []string{"importance.svg", "marginal-lr.svg", "marginal-k.png"} {
		if w := handlertest.Ask(h, "GET", "/sweeps/"+id+"/figures/"+name, ""); w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "image/") {
			t.Errorf("%s: status %d", name, w.Code)
		}
	}
}

func TestExploreForPrograms(t *testing.T) {
	f, h := openSweeps(t)
	id, items := searched(t, f)
	var out struct {
		Metric     string
		Chance     []float64
		Parameters []struct {
			Field      string
			Levels     []string
			Importance []float64
		}
		Runs []struct {
			Run    string
			Values map[string]string
			Score  *float64
		}
	}
	w := handlertest.Ask(h, "GET", "/api/sweeps/"+id+"/explore", "")
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || out.Metric != "infom" || len(out.Parameters) != 2 || len(out.Runs) != 12 {
		t.Fatalf("%v: %.300s", err, w.Body)
	}
	if r := out.Runs[0]; r.Run != items[0].ID || r.Score != nil || r.Values["lr"] != "0.0001" || r.Values["k"] != "32" {
		t.Errorf("%+v", r)
	}
	for _, p := range out.Parameters {
		if p.Field == "lr" && (len(p.Levels) != 3 || len(p.Importance) != 3 || p.Importance[0] < 0.6 || out.Chance[0] > 0.05) {
			t.Errorf("importance of the learning rate (chance %v): %+v", out.Chance, p)
		}
	}
}

func TestExploreRefuses(t *testing.T) {
	f, h := openSweeps(t)
	id, _ := searched(t, f)
	for path, want := range map[string]struct {
		status int
		say    string
	}{
		"/sweeps/nothing/explore":                      {404, "nothing"},
		"/sweeps/" + id + "/explore?metric=beauty":     {422, "beauty"},
		"/sweeps/" + id + "/explore?x=colour":          {422, "colour"},
		"/sweeps/" + id + "/explore?x=lr&y=lr":         {422, "two different"},
		"/api/sweeps/" + id + "/explore?y=seed":        {422, "seed"},
		"/sweeps/" + id + "/figures/secret.svg":        {404, "secret"},
		"/sweeps/" + id + "/figures/importance.exe":    {404, "use .svg, .png or .pdf"},
		"/sweeps/" + id + "/figures/importance.svg?x=": {200, "<svg"},
	} {
		if w := handlertest.Ask(h, "GET", path, ""); w.Code != want.status || !strings.Contains(w.Body.String(), want.say) {
			t.Errorf("%s: status %d, want %d saying %q: %.300s", path, w.Code, want.status, want.say, w.Body)
		}
	}
	plain, err := handlertest.Sweeps{Scored: f}.CreateAt(t.Context(), smallPlan(), model.Placement{})
	if err != nil {
		t.Fatal(err)
	}
	if doc := handlertest.Page(t, handlertest.Ask(h, "GET", "/sweeps/"+plain.ID+"/explore", "")); doc.Find("[data-testid=nothing]").Length() != 1 {
		t.Error("the page of a sweep over seeds alone lacks the notice")
	}
}

// TestExploreInABrowser checks that lines and rows are highlighted together, that limits filter both, and that the score can be changed.
func TestExploreInABrowser(t *testing.T) {
	f := handlertest.NewScored(t)
	id, _ := searched(t, f)
	b := handlertest.Open(t, compare.Reports{Runs: f, Scores: f, Sweeps: handlertest.Sweeps{Scored: f}}, sweeppage.Sweeps{Service: handlertest.Sweeps{Scored: f}, Datasets: handlertest.Data{}})
	b.Do(chromedp.Navigate(b.URL + "/sweeps/" + id + "/explore"))
	b.Until("there are eleven lines and twelve rows", `document.querySelectorAll('[data-line]').length === 11 && document.querySelectorAll('[data-testid=run]:not([hidden])').length === 12`)
	b.Eval(`document.querySelector('[data-testid=run] a').dispatchEvent(new PointerEvent('pointerover', { bubbles: true }))`)
	b.Until("the line of the row under the pointer is highlighted", `document.querySelector('[data-line].held')?.dataset.line === document.querySelector('[data-testid=run]').dataset.run && document.querySelectorAll('[data-line].held').length === 1`)
	b.Focus(`[aria-label="Learning rate η from"]`)
	b.Do(chromedp.KeyEvent("from 0.01"))
	b.Until("four runs have the highest learning rate", `document.querySelectorAll('[data-line]:not(.out)').length === 4 && document.querySelectorAll('[data-testid=run]:not([hidden])').length === 4`)
	b.Until("they can be compared", `document.querySelector('[data-part=compare]').href.split(',').length === 4 && document.querySelector('[data-part=shown]').textContent === '4 of 11 runs within the limits.'`)
	b.Focus("[name=metric]")
	b.Do(chromedp.KeyEvent("PSNR"))
	b.Until("another score is shown", `new URLSearchParams(location.search).get('metric') === 'psnr' && document.querySelector('[data-testid=heat] h2').textContent.startsWith('PSNR')`)
	b.Focus(".heat a")
	b.Do(chromedp.KeyEvent("\r"))
	b.Until("a cell opens the comparison of its runs", `location.pathname === '/compare' && location.hash === '#swaps'`)
}

// TestPlanInABrowser checks that the estimate follows the form, that hyperparameters can be added, and that each search shows its fields.
func TestPlanInABrowser(t *testing.T) {
	f := handlertest.NewScored(t)
	b := handlertest.Open(t, sweeppage.Sweeps{Service: handlertest.Sweeps{Scored: f}, Datasets: handlertest.Data{}})
	b.Open("/sweeps/new?kind=own")
	b.Until("three seeds are three runs", `document.querySelector('[data-testid=estimate]').textContent.trim().startsWith('Up to 3 runs')`)
	b.Focus("[name=field]")
	b.Do(chromedp.KeyEvent("lr"))
	b.Focus("[name=values]")
	b.Do(chromedp.KeyEvent("0.001, 0.01"))
	b.Until("two learning rates are six runs", `document.querySelector('[data-testid=estimate]').textContent.trim().startsWith('Up to 6 runs')`)
	b.Click("[data-part=add]")
	b.Until("another hyperparameter can be selected", `document.querySelectorAll('[data-part=vary-line]').length === 3 && document.activeElement.name === 'field'`)
	b.Focus("[name=search][value=random]")
	b.Do(chromedp.KeyEvent(" "))
	b.Until("random search shows its fields", `!document.querySelector('[data-search=random]').hidden`)
	b.Until("twenty draws from two settings are rejected with a reason", `document.querySelector('[data-testid=estimate]').textContent.includes('more than the 2 distinct settings')`)
	b.Click("[name=race]")
	b.Until("the race shows its field for seeds", `!document.querySelector('[data-race]').hidden`)
}
