package sweep_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"slotscope/handlers/compare"
	"slotscope/handlers/handlertest"
	sweeppage "slotscope/handlers/sweep"
	"slotscope/model"
	"slotscope/model/sweep"
	"slotscope/web"
)

func smallPlan() sweep.Plan {
	return sweep.Plan{Name: "small", Preset: "tiny", Steps: 40, Parts: []sweep.Part{{Name: "main", Models: []string{"hrr"}, Datasets: []string{"shapes3d-synthetic"}, Seeds: []int64{0, 1}}}}
}

func TestSweepPages(t *testing.T) {
	f, h := openSweeps(t)
	if doc := handlertest.Page(t, handlertest.Ask(h, "GET", "/sweeps", "")); doc.Find("[data-testid=empty]").Length() != 1 {
		t.Error("the page without sweeps lacks its notice")
	}
	w := handlertest.Ask(h, "POST", "/api/sweeps", string(smallPlan().JSON()))
	if w.Code != http.StatusCreated {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	page := strings.TrimPrefix(w.Header().Get("Location"), "/api")
	items := smallPlan().Look(func(string) (sweep.Found, bool) { return sweep.Found{}, false }).Items
	f.Score(items[0].ID, 0, 0.7, 28, nil).Config = items[0].Config
	r := f.Put(items[1].ID, model.Failed, 10)
	r.Config, r.Reason = items[1].Config, "Out of memory."
	doc := handlertest.Page(t, handlertest.Ask(h, "GET", page, ""))
	rows := doc.Find("[data-testid=item]")
	if rows.Length() != 2 || !strings.Contains(rows.Eq(0).Text(), "0.70") || !strings.Contains(rows.Eq(1).Text(), "Out of memory.") {
		t.Errorf("items: %s", rows.Text())
	}
	if doc.Find("[data-testid=results] table").Length() == 0 || doc.Find("[data-testid=retry]").Length() != 1 {
		t.Error("no results so far, or no retry button")
	}
	handlertest.Page(t, handlertest.Ask(h, "GET", "/compare?sweep="+strings.TrimPrefix(page, "/sweeps/"), ""))
	if doc := handlertest.Page(t, handlertest.Ask(h, "GET", "/sweeps", "")); doc.Find("[data-testid=sweeps] tbody tr").Length() != 1 {
		t.Error("the sweep is not listed")
	}
	for _, what := range []string{"stop", "resume", "retry"} {
		if w := handlertest.Ask(h, "POST", page+"/"+what, ""); w.Code != http.StatusSeeOther {
			t.Errorf("%s: status %d", what, w.Code)
		}
		if w := handlertest.Ask(h, "POST", "/api"+page+"/"+what, ""); w.Code != http.StatusAccepted {
			t.Errorf("%s: status %d", what, w.Code)
		}
	}
	if got := strings.Join(f.Did, ", "); got != "stop, stop, resume retry=false, resume retry=false, resume retry=true, resume retry=true" {
		t.Errorf("actions: %s", got)
	}
	if w := handlertest.Ask(h, "POST", page+"/explode", ""); w.Code != http.StatusNotFound {
		t.Errorf("status %d", w.Code)
	}
	if w := handlertest.Ask(h, "DELETE", "/api"+page, ""); w.Code != http.StatusNoContent {
		t.Errorf("status %d", w.Code)
	}
	if w := handlertest.Ask(h, "GET", "/api/sweeps/nothing", ""); w.Code != http.StatusNotFound {
		t.Errorf("status %d", w.Code)
	}
}

func TestSweepForm(t *testing.T) {
	f, h := openSweeps(t)
	handlertest.Page(t, handlertest.Ask(h, "GET", "/sweeps/new", ""))
	own := url.Values{"kind": {"own"}, "name": {"widths"}, "preset": {"tiny"}, "steps": {"40"}, "seeds": {"2"}, "datasets": {"shapes3d-synthetic"}, "models": {"hrr"},
		"field": {"d", ""}, "values": {"64, 128", ""}, "set": {"batch=8\n\nk = 64"}}
	w := handlertest.Ask(h, "POST", "/sweeps", own.Encode())
	if w.Code != http.StatusSeeOther {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	s := f.Plans[strings.TrimPrefix(w.Header().Get("Location"), "/sweeps/")]
	if s.Plan.Runs() != 4 || s.Plan.Set["batch"] != "8" || s.Plan.Set["k"] != "64" || s.Plan.Steps != 40 {
		t.Errorf("%+v", s.Plan)
	}
	paper := url.Values{"kind": {"paper"}, "preset": {"tiny"}, "seeds": {"1"}, "datasets": {"shapes3d-synthetic"}, "parts": {"main", "ablations"}}
	if w := handlertest.Ask(h, "POST", "/sweeps", paper.Encode()); w.Code != http.StatusSeeOther {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	field := url.Values{"kind": {"field"}, "preset": {"tiny"}, "seeds": {"2"}, "steps": {"50"}, "datasets": {"shapes3d-synthetic"}, "field-parts": {"models", "ratio"}, "parts": {"main"}}
	w = handlertest.Ask(h, "POST", "/sweeps", field.Encode())
	if s := f.Plans[strings.TrimPrefix(w.Header().Get("Location"), "/sweeps/")]; w.Code != http.StatusSeeOther || s.Plan.Name != "field" || len(s.Plan.Parts) != 2 || s.Plan.Runs() != 2*len(model.ModelNames())+2*5*3 {
		t.Errorf("the field protocol: status %d, %+v", w.Code, s.Plan)
	}
	field["field-parts"] = []string{"all"}
	if w := handlertest.Ask(h, "POST", "/sweeps", field.Encode()); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "is not one of models, tuned, ratio, splits") {
		t.Errorf("an unknown part of the field protocol: status %d", w.Code)
	}
	w = handlertest.Ask(h, "POST", "/api/sweeps", `{"field": {"preset": "tiny", "seeds": 1, "steps": 50, "datasets": ["shapes3d-synthetic"], "models": ["ae", "tripod"]}}`)
	if w.Code != http.StatusCreated || !strings.Contains(w.Body.String(), "Models of the field") {
		t.Errorf("the field protocol over the API: status %d: %s", w.Code, w.Body)
	}
	for name, c := range map[string][2]string{"seeds": {"none", "none"}, "steps": {"-4", "-4"}, "values": {"", "at least one value"}, "set": {"batch", "name=value"}, "preset": {"huge", "huge"},
		"field": {"colour", "not a hyperparameter"}, "models": {"perceptron", "perceptron"}, "datasets": {"nowhere", "nowhere"}} {
		q := maps.Clone(own)
		q[name] = []string{c[0]}
		w := handlertest.Ask(h, "POST", "/sweeps", q.Encode())
		if w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), c[1]) || !strings.Contains(w.Body.String(), "widths") {
			t.Errorf("%s %q: status %d", name, c[0], w.Code)
		}
	}
}

// TestSearchForm checks a random search with a race; errors appear beside their fields, and the form keeps its input.
func TestSearchForm(t *testing.T) {
	f, h := openSweeps(t)
	search := url.Values{"kind": {"own"}, "name": {"draws"}, "preset": {"tiny"}, "steps": {"40"}, "seeds": {"3"}, "datasets": {"shapes3d-synthetic"}, "models": {"hrr"},
		"field": {"lr", "k"}, "values": {"0.0001..0.01 log", "32, 64"}, "search": {"random"}, "draws": {"5"}, "draw-seed": {"7"}, "race": {"1"}, "race-least": {"2"}}
	w := handlertest.Ask(h, "POST", "/sweeps", search.Encode())
	if w.Code != http.StatusSeeOther {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	p := f.Plans[strings.TrimPrefix(w.Header().Get("Location"), "/sweeps/")].Plan.Parts[0]
	if *p.Random != (sweep.Random{Draws: 5, Seed: 7}) || *p.Race != (sweep.Race{Least: 2}) || len(p.Vary) != 2 || p.Vary[0].High != 0.01 || !p.Vary[0].Log || p.Vary[1].Values[1] != "64" {
		t.Errorf("%+v", p)
	}
	for _, c := range []struct{ name, value, at, why string }{
		{"values", "0.01..0.0001", "#vary-0-error", "does not ascend"},
		{"values", "1..x", "#vary-0-error", "not a range"},
		{"draws", "many", "#draws-error", `"many" is not a whole number`},
		{"draws", "5000", "[role=alert]", "the limit is 5000"},
		{"draw-seed", "-1", "#draw-seed-error", `"-1" is not`},
		{"race-least", "3", "#race-least-error", "fewer than the part's 3"},
		{"race-least", "x", "#race-least-error", `"x" is not`},
	} {
		q := maps.Clone(search)
		q[c.name] = append([]string{c.value}, search[c.name][1:]...)
		w := handlertest.Ask(h, "POST", "/sweeps", q.Encode())
		doc := handlertest.Document(t, w)
		if why := doc.Find(c.at).Text(); w.Code != http.StatusUnprocessableEntity || !strings.Contains(why, c.why) {
			t.Errorf("%s %q: status %d, %q", c.name, c.value, w.Code, why)
		}
		if got := doc.Find("[name=values]").First().AttrOr("value", ""); got != q["values"][0] || doc.Find("[name=field]").First().Find("[selected]").AttrOr("value", "") != "lr" {
			t.Errorf("%s %q: the input is lost: %q", c.name, c.value, got)
		}
	}
}

// TestEstimate checks that the work is estimated before anything starts, with the speed of earlier runs of the preset.
func TestEstimate(t *testing.T) {
	f, h := openSweeps(t)
	q := url.Values{"do": {"estimate"}, "kind": {"own"}, "name": {"widths"}, "preset": {"tiny"}, "steps": {"100"}, "seeds": {"2"}, "datasets": {"shapes3d-synthetic"}, "models": {"hrr"},
		"field": {"k"}, "values": {"32, 64"}, "set": {"batch=8"}}
	said := func() string {
		return strings.Join(strings.Fields(handlertest.Page(t, handlertest.Ask(h, "POST", "/sweeps", q.Encode())).Find("[data-testid=estimate]").Text()), " ")
	}
	if got := said(); got != "Up to 4 runs; 400 steps left. Duration unknown: no run of this preset has been timed on this machine." {
		t.Errorf("at first: %s", got)
	}
	f.Put("earlier", model.Finished, 40).ImagesPerSecond = 320
	if got := said(); got != "Up to 4 runs; 400 steps left. About 10 s of training, one run after another, at the speed of 1 earlier run of tiny; excludes evaluation." {
		t.Errorf("with an earlier run: %s", got)
	}
	if len(f.Plans) != 0 {
		t.Error("estimating started a sweep")
	}
	w := handlertest.Ask(h, "POST", "/api/sweeps/estimate", string(smallPlan().JSON()))
	var e sweep.EstimateRecord
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Runs != 2 || e.Steps != 80 || e.Seconds == nil {
		t.Errorf("%v: %s", err, w.Body)
	}
	if w := handlertest.Ask(h, "POST", "/api/sweeps/estimate", `{"name":"x"}`); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("status %d", w.Code)
	}
}

// openSweeps returns the sweep and report pages with their test runs.
func openSweeps(t *testing.T) (*handlertest.Scored, http.Handler) {
	t.Helper()
	f := handlertest.NewScored(t)
	h, err := web.New(web.Config{Addr: "127.0.0.1:0", Pages: []web.Page{compare.Reports{Runs: f, Scores: f, Sweeps: handlertest.Sweeps{Scored: f}}, sweeppage.Sweeps{Service: handlertest.Sweeps{Scored: f}, Datasets: handlertest.Data{}}}})
	if err != nil {
		t.Fatal(err)
	}
	return f, h
}
