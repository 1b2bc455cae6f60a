package sweep_test

import (
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
		t.Error("no sweeps, and no word about it")
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
		t.Error("no results so far, or no way to try again")
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
		t.Errorf("what was asked for: %s", got)
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
		"field": {"d"}, "values": {"64, 128"}, "set": {"batch=8\n\nk = 64"}}
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
	for name, c := range map[string][2]string{"seeds": {"none", "none"}, "steps": {"-4", "-4"}, "values": {"", "at least one value"}, "set": {"batch", "name=value"}, "preset": {"huge", "huge"}} {
		q := url.Values{}
		for k, v := range own {
			q[k] = v
		}
		q.Set(name, c[0])
		if w := handlertest.Ask(h, "POST", "/sweeps", q.Encode()); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), c[1]) || !strings.Contains(w.Body.String(), "widths") {
			t.Errorf("%s %q: status %d", name, c[0], w.Code)
		}
	}
}

// openSweeps is the pages of sweeps and of their reports over runs of a test.
func openSweeps(t *testing.T) (*handlertest.Scored, http.Handler) {
	t.Helper()
	f := handlertest.NewScored(t)
	h, err := web.New(web.Config{Addr: "127.0.0.1:0", Pages: []web.Page{compare.Reports{Runs: f, Scores: f, Sweeps: handlertest.Sweeps{Scored: f}}, sweeppage.Sweeps{Service: handlertest.Sweeps{Scored: f}, Datasets: handlertest.Data{}}}})
	if err != nil {
		t.Fatal(err)
	}
	return f, h
}
