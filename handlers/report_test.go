package handlers_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/sweep"
	"slotscope/web"
)

// scoredRuns are fake runs with scores, and one sweep over them.
type scoredRuns struct {
	*fakeRuns
	scores  map[string]model.Scores
	plans   map[string]sweep.Status
	did     []string
	damaged string // the run whose scores cannot be read
}

func (f *scoredRuns) Scores(_ context.Context, id string) (model.Scores, error) {
	s, ok := f.scores[id]
	if f.damaged == id {
		return s, errors.New("scores.json is damaged: unexpected EOF")
	}
	if !ok {
		return s, fmt.Errorf("run %s is not scored: %w", id, model.ErrNotFound)
	}
	return s, nil
}

// score puts a finished run with scores in.
func (f *scoredRuns) score(id string, seed int64, infom, psnr float64, change func(*model.Config)) *fakeRun {
	r := f.put(id, model.Finished, 40)
	r.Config.Steps, r.Config.Seed = 40, seed
	if change != nil {
		change(&r.Config)
	}
	dci := model.DCIScore{D: 0.5, I: 0.9, C: 0.4}
	f.scores[id] = model.Scores{Step: 40, Images: 100, PSNR: psnr, Metrics: &model.Metrics{Discrete: true, InfoM: model.Score(infom), InfoE: 1, InfoC: 0.5, InfoEHeldOut: 0.4,
		DCI: model.DCI{OneHot: dci, SlotSum: dci, Slots: dci}},
		Noise: &model.Noise{Power: 1, Images: 10, Curve: []model.NoisePoint{{SNR: 20, PSNR: model.Interval{Value: model.Score(psnr)}}, {SNR: -20, PSNR: model.Interval{Value: 9}}}}}
	return r
}

// sweeps is the service of the sweeps that a test puts in.
type sweeps struct{ *scoredRuns }

func (f sweeps) CreateAt(ctx context.Context, p sweep.Plan, at model.Placement) (sweep.Status, error) {
	f.placed = at
	if err := p.Validate(); err != nil {
		return sweep.Status{}, err
	}
	s := sweep.Status{Saved: sweep.Saved{ID: p.ID(), Plan: p, Mark: sweep.Mark{Active: true, Placement: at}}}
	f.plans[s.ID] = s
	return f.Get(ctx, s.ID)
}

func (f sweeps) List(ctx context.Context) ([]sweep.Status, error) {
	var all []sweep.Status
	for id := range f.plans {
		s, err := f.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func (f sweeps) Get(ctx context.Context, id string) (sweep.Status, error) {
	s, ok := f.plans[id]
	if !ok {
		return s, fmt.Errorf("sweep %q: %w", id, model.ErrNotFound)
	}
	s.Board = s.Plan.Look(func(id string) (sweep.Found, bool) {
		run, err := f.fakeRuns.Get(ctx, id)
		if err != nil {
			return sweep.Found{}, false
		}
		found := sweep.Found{Run: run}
		if scores, ok := f.scores[id]; ok {
			found.Scores = &scores
		}
		return found, true
	})
	return s, nil
}

func (f sweeps) Stop(ctx context.Context, id string) error { return f.note(ctx, "stop", id) }
func (f sweeps) Resume(ctx context.Context, id string, retry bool) error {
	return f.note(ctx, fmt.Sprintf("resume retry=%v", retry), id)
}
func (f sweeps) Delete(ctx context.Context, id string) error { return f.note(ctx, "delete", id) }

func (f sweeps) note(ctx context.Context, what, id string) error {
	f.did = append(f.did, what)
	s, err := f.Get(ctx, id)
	if err == nil {
		s.Active = what != "stop"
		f.plans[id] = s
	}
	return err
}

func openReports(t *testing.T) (*scoredRuns, http.Handler) {
	t.Helper()
	f := fakeScored(t)
	h, err := web.New(web.Config{Addr: "127.0.0.1:0", Pages: []web.Page{handlers.Reports{Runs: f, Scores: f, Sweeps: sweeps{f}}, handlers.Sweeps{Service: sweeps{f}, Datasets: fakeData{}}}})
	if err != nil {
		t.Fatal(err)
	}
	return f, h
}

// pair is two groups of two seeds: InfoM 0.8 ± and 0.5 ±, far apart.
func pair(f *scoredRuns) {
	bare := func(c *model.Config) { c.NoDenoiser = true }
	f.score("a0", 0, 0.80, 30, nil)
	f.score("a1", 1, 0.81, 31, nil)
	f.score("b0", 0, 0.50, 30.2, bare)
	f.score("b1", 1, 0.51, 30.9, bare)
}

func ask(h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(body))
	if strings.HasPrefix(body, "{") {
		r.Header.Set("Content-Type", "application/json")
	} else if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func documentOf(t *testing.T, w *httptest.ResponseRecorder) *goquery.Document {
	t.Helper()
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	doc, err := goquery.NewDocumentFromReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestComparePage(t *testing.T) {
	f, h := openReports(t)
	if doc := documentOf(t, ask(h, "GET", "/compare", "")); doc.Find("[data-testid=empty]").Length() != 1 {
		t.Error("without runs the page says what to do")
	}
	pair(f)
	failed := f.put("c", model.Failed, 12)
	failed.Config.Steps, failed.Config.Seed, failed.Reason = 40, 2, "The loss is not finite."
	doc := documentOf(t, ask(h, "GET", "/compare", ""))
	if n := doc.Find("[data-testid=picker] input[name=runs]").Length(); n != 5 {
		t.Errorf("%d runs to choose from", n)
	}
	doc = documentOf(t, ask(h, "GET", "/compare?runs=a0,a1,b0,b1,c", ""))
	rows := doc.Find("[data-testid=scores] tbody").First().Find("tr")
	if rows.Length() != 2 || !strings.HasPrefix(strings.TrimSpace(rows.Eq(1).Text()), "HRR, no denoiser") {
		t.Errorf("rows: %s", rows.Text())
	}
	first := rows.Eq(0).Find("td")
	if got := strings.Join(strings.Fields(first.Eq(1).Text()), " "); got != "0.81 ± 0.06 paper 0.85 ± 0.05 (other images)" { // ± 12.7·0.00707/√2 = 0.0635
		t.Errorf("InfoM of the plain model: %q", got)
	}
	if doc.Find(".best").Length() != 0 {
		t.Error("two seeds at another preset set something in bold")
	}
	verdict := doc.Find("[data-testid=verdicts] tbody tr").First().Text()
	if !strings.Contains(verdict, "yes") || !strings.Contains(verdict, "HRR, no denoiser") {
		t.Errorf("verdict on InfoM: %s", verdict)
	}
	if left := doc.Find("[data-testid=left-out]").Text(); !strings.Contains(left, "The loss is not finite.") {
		t.Errorf("left out: %q", left)
	}
	if d := doc.Find("[data-testid=differences]").Text(); !strings.Contains(d, "No denoiser") || !strings.Contains(d, "Seed") {
		t.Errorf("differences: %q", d)
	}
	if doc.Find("[data-testid=ablations]").Length() != 1 || doc.Find("[data-testid=figures] svg").Length() != 1 {
		t.Error("no ablations, or no figure of noise")
	}
	link, _ := doc.Find("[data-testid=figures] figcaption a").First().Attr("href")
	if w := ask(h, "GET", link, ""); w.Code != 200 || w.Header().Get("Content-Type") != "image/svg+xml" {
		t.Errorf("%s: status %d", link, w.Code)
	}
}

func TestCompareRefuses(t *testing.T) {
	f, h := openReports(t)
	pair(f)
	many := strings.Repeat("x,", 1) + func() string {
		var ids []string
		for i := range 250 {
			ids = append(ids, fmt.Sprint("r", i))
		}
		return strings.Join(ids, ",")
	}()
	for path, want := range map[string]struct {
		status int
		say    string
	}{
		"/api/report/results.json?runs=nothing":         {404, "nothing"},
		"/api/report/results.json":                      {422, "?runs="},
		"/api/report/results.json?runs=a0&rule=loud":    {422, "loud"},
		"/api/report/results.json?runs=a0&sweep=s":      {422, "not both"},
		"/api/report/results.json?sweep=nothing":        {404, "nothing"},
		"/api/report/secrets?runs=a0":                   {404, "No file"},
		"/api/report/results.json?runs=" + many:         {422, "most"},
		"/api/compare/curves?runs=a0":                   {422, "series"},
		"/api/compare/curves?series=total":              {422, "?runs="},
		"/api/compare/curves?runs=a0&series=x&smooth=1": {422, "0.999"},
		"/compare?runs=nothing":                         {404, "nothing"},
		"/compare/figures/x.svg?runs=a0":                {404, "no figure"},
		"/compare/figures/x.exe?runs=a0":                {404, "neither"},
	} {
		if w := ask(h, "GET", path, ""); w.Code != want.status || !strings.Contains(w.Body.String(), want.say) {
			t.Errorf("%.60s: status %d, want %d saying %q: %.300s", path, w.Code, want.status, want.say, w.Body)
		}
	}
}

func TestReportFiles(t *testing.T) {
	f, h := openReports(t)
	pair(f)
	f.draw("a1", 0)
	doc := documentOf(t, ask(h, "GET", "/report?runs=a0,a1,b0,b1", ""))
	links := doc.Find("[data-testid=files] a")
	if links.Length() != 10 {
		t.Errorf("%d files", links.Length())
	}
	links.Each(func(_ int, a *goquery.Selection) {
		href, _ := a.Attr("href")
		w := ask(h, "GET", href, "")
		if w.Code != 200 || w.Body.Len() == 0 || !strings.Contains(w.Header().Get("Content-Disposition"), a.Text()) {
			t.Errorf("%s: status %d, %d bytes, %s", href, w.Code, w.Body.Len(), w.Header().Get("Content-Disposition"))
		}
		if again := ask(h, "GET", href, ""); !bytes.Equal(again.Body.Bytes(), w.Body.Bytes()) {
			t.Errorf("%s: the same runs gave other bytes", href)
		}
	})
	raw := ask(h, "GET", "/api/report/report.zip?runs=a0,a1", "").Body.Bytes()
	archive, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	in, err := archive.Open("results.json")
	if err != nil {
		t.Fatal(err)
	}
	var results struct{ Runs []struct{ ID string } }
	if err := json.NewDecoder(in).Decode(&results); err != nil || len(results.Runs) != 2 {
		t.Errorf("%v %v", results, err)
	}
	if w := ask(h, "GET", "/report", ""); w.Code != http.StatusSeeOther {
		t.Errorf("a report of nothing: status %d", w.Code)
	}
}

// What cannot be read whole is not sent in part.
func TestReportOfADamagedPicture(t *testing.T) {
	f, h := openReports(t)
	pair(f)
	f.draw("a1", 0)
	if err := os.WriteFile(filepath.Join(f.dir, "sample-0.png"), []byte("no picture"), 0o644); err != nil {
		t.Fatal(err)
	}
	if w := ask(h, "GET", "/api/report/report.zip?runs=a0,a1", ""); w.Code != http.StatusInternalServerError || w.Header().Get("Content-Disposition") != "" {
		t.Errorf("status %d, %v", w.Code, w.Header())
	}
	if w := ask(h, "GET", "/api/report/summary.csv?runs=a0,a1", ""); w.Code != http.StatusOK {
		t.Errorf("what needs no picture: status %d", w.Code)
	}
}

// One run's damaged scores do not take the others' away.
func TestCompareDamagedScores(t *testing.T) {
	f, h := openReports(t)
	pair(f)
	f.damaged = "a1"
	doc := documentOf(t, ask(h, "GET", "/compare?runs=a0,a1,b0,b1", ""))
	if left := doc.Find("[data-testid=left-out]").Text(); !strings.Contains(left, "scores.json is damaged") || strings.Contains(left, "EOF") {
		t.Errorf("left out: %q", left)
	}
	if n := doc.Find("[data-testid=scores] tbody").First().Find("tr").Length(); n != 2 {
		t.Errorf("%d rows", n)
	}
	w := ask(h, "GET", "/api/report/results.json?runs=a0,a1,b0,b1", "")
	if !json.Valid(w.Body.Bytes()) || strings.Contains(w.Body.String(), "NaN") {
		t.Errorf("status %d: %.200s", w.Code, w.Body)
	}
}

func TestCurvesOfGroups(t *testing.T) {
	f, h := openReports(t)
	pair(f)
	var out struct {
		Groups []struct {
			Label  string
			Points int
			Mean   struct {
				Steps, N        []int
				Mean, Low, High []*float64
			}
			Members []struct {
				Run    string
				Steps  []int
				Values []*float64
			}
		}
	}
	w := ask(h, "GET", "/api/compare/curves?runs=a0,a1,b0&series=total", "")
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || len(out.Groups) != 2 {
		t.Fatalf("%v: %s", err, w.Body)
	}
	g := out.Groups[0]
	if g.Label != "HRR" || g.Points != 80 || len(g.Mean.Steps) != 40 || g.Mean.N[0] != 2 || len(g.Members) != 2 || *g.Mean.Low[0] != *g.Mean.Mean[0] {
		t.Errorf("%+v", g)
	}
	if one := out.Groups[1]; one.Mean.Low[0] != nil || one.Mean.N[0] != 1 {
		t.Error("one run has no interval")
	}
	if w := ask(h, "GET", "/api/compare/curves?runs=a0&series=nothing", ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"groups":[]`) {
		t.Errorf("a series that none has: %d %s", w.Code, w.Body)
	}
}

func smallPlan() sweep.Plan {
	return sweep.Plan{Name: "small", Preset: "tiny", Steps: 40, Parts: []sweep.Part{{Name: "main", Models: []string{"hrr"}, Datasets: []string{"shapes3d-synthetic"}, Seeds: []int64{0, 1}}}}
}

func TestSweepPages(t *testing.T) {
	f, h := openReports(t)
	if doc := documentOf(t, ask(h, "GET", "/sweeps", "")); doc.Find("[data-testid=empty]").Length() != 1 {
		t.Error("no sweeps, and no word about it")
	}
	w := ask(h, "POST", "/api/sweeps", string(smallPlan().JSON()))
	if w.Code != http.StatusCreated {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	page := strings.TrimPrefix(w.Header().Get("Location"), "/api")
	items := smallPlan().Look(func(string) (sweep.Found, bool) { return sweep.Found{}, false }).Items
	f.score(items[0].ID, 0, 0.7, 28, nil).Config = items[0].Config
	r := f.put(items[1].ID, model.Failed, 10)
	r.Config, r.Reason = items[1].Config, "Out of memory."
	doc := documentOf(t, ask(h, "GET", page, ""))
	rows := doc.Find("[data-testid=item]")
	if rows.Length() != 2 || !strings.Contains(rows.Eq(0).Text(), "0.70") || !strings.Contains(rows.Eq(1).Text(), "Out of memory.") {
		t.Errorf("items: %s", rows.Text())
	}
	if doc.Find("[data-testid=results] table").Length() == 0 || doc.Find("[data-testid=retry]").Length() != 1 {
		t.Error("no results so far, or no way to try again")
	}
	documentOf(t, ask(h, "GET", "/compare?sweep="+strings.TrimPrefix(page, "/sweeps/"), ""))
	if doc := documentOf(t, ask(h, "GET", "/sweeps", "")); doc.Find("[data-testid=sweeps] tbody tr").Length() != 1 {
		t.Error("the sweep is not listed")
	}
	for _, what := range []string{"stop", "resume", "retry"} {
		if w := ask(h, "POST", page+"/"+what, ""); w.Code != http.StatusSeeOther {
			t.Errorf("%s: status %d", what, w.Code)
		}
		if w := ask(h, "POST", "/api"+page+"/"+what, ""); w.Code != http.StatusAccepted {
			t.Errorf("%s: status %d", what, w.Code)
		}
	}
	if got := strings.Join(f.did, ", "); got != "stop, stop, resume retry=false, resume retry=false, resume retry=true, resume retry=true" {
		t.Errorf("what was asked for: %s", got)
	}
	if w := ask(h, "POST", page+"/explode", ""); w.Code != http.StatusNotFound {
		t.Errorf("status %d", w.Code)
	}
	if w := ask(h, "DELETE", "/api"+page, ""); w.Code != http.StatusNoContent {
		t.Errorf("status %d", w.Code)
	}
	if w := ask(h, "GET", "/api/sweeps/nothing", ""); w.Code != http.StatusNotFound {
		t.Errorf("status %d", w.Code)
	}
}

func TestSweepForm(t *testing.T) {
	f, h := openReports(t)
	documentOf(t, ask(h, "GET", "/sweeps/new", ""))
	own := url.Values{"kind": {"own"}, "name": {"widths"}, "preset": {"tiny"}, "steps": {"40"}, "seeds": {"2"}, "datasets": {"shapes3d-synthetic"}, "models": {"hrr"},
		"field": {"d"}, "values": {"64, 128"}, "set": {"batch=8\n\nk = 64"}}
	w := ask(h, "POST", "/sweeps", own.Encode())
	if w.Code != http.StatusSeeOther {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	s := f.plans[strings.TrimPrefix(w.Header().Get("Location"), "/sweeps/")]
	if s.Plan.Runs() != 4 || s.Plan.Set["batch"] != "8" || s.Plan.Set["k"] != "64" || s.Plan.Steps != 40 {
		t.Errorf("%+v", s.Plan)
	}
	paper := url.Values{"kind": {"paper"}, "preset": {"tiny"}, "seeds": {"1"}, "datasets": {"shapes3d-synthetic"}, "parts": {"main", "ablations"}}
	if w := ask(h, "POST", "/sweeps", paper.Encode()); w.Code != http.StatusSeeOther {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	for name, c := range map[string][2]string{"seeds": {"none", "none"}, "steps": {"-4", "-4"}, "values": {"", "at least one value"}, "set": {"batch", "name=value"}, "preset": {"huge", "huge"}} {
		q := url.Values{}
		for k, v := range own {
			q[k] = v
		}
		q.Set(name, c[0])
		if w := ask(h, "POST", "/sweeps", q.Encode()); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), c[1]) || !strings.Contains(w.Body.String(), "widths") {
			t.Errorf("%s %q: status %d", name, c[0], w.Code)
		}
	}
}
