package measure_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/handlers/handlertest"
	"slotscope/handlers/measure"
	"slotscope/model"
	"slotscope/model/data"
	"slotscope/model/measure/metric"
)

// measuredWorld is a run of three slots: the first carries factor 0 with two codes per value, the second half of factor 1, and the third
// takes one code; with plausible noise and swap scores.
func measuredWorld(t *testing.T) model.Scores {
	t.Helper()
	const n = 400
	rng := rand.New(rand.NewPCG(1, 2))
	table := metric.Table{Codes: [][]int{nil, nil, nil}, Factors: [][]int{nil, nil}, Names: []string{"hue", "shape"}}
	counts := [][]int{make([]int, 16), make([]int, 16), make([]int, 16)}
	for range n {
		hue, shape := rng.IntN(4), rng.IntN(3)
		codes := []int{2*hue + rng.IntN(2), min(shape, 1), 5}
		for i, c := range codes {
			table.Codes[i] = append(table.Codes[i], c)
			counts[i][c]++
		}
		table.Factors[0], table.Factors[1] = append(table.Factors[0], hue), append(table.Factors[1], shape)
	}
	m, err := metric.Measure(t.Context(), table, metric.Options{Seed: 1, Trees: 5})
	if err != nil {
		t.Fatal(err)
	}
	s := model.Scores{Version: model.ScoresVersion, Step: 900, Images: n, Seed: 7, PSNR: 26.04, PSNRInterval: at(26.04, 0.1), Metrics: &m, Seconds: 12, Engine: "cpu"}
	s.Usage = &model.Usage{Counts: counts, Used: []int{8, 2, 1}, Entries: 9, Codebook: 6.5, Names: metric.CodeNames(table, m.Ownership.Slots)}
	for _, c := range counts {
		s.Usage.Perplexity = append(s.Usage.Perplexity, metric.Perplexity(c))
	}
	s.Noise = &model.Noise{Power: 0.07, Images: n}
	for snr := 20.0; snr >= -20; snr -= 10 {
		lost := 1 / (1 + math.Exp(snr/6))
		s.Noise.Curve = append(s.Noise.Curve, model.NoisePoint{SNR: snr, PSNR: *at(26-14*lost, 0.2), Flipped: []float64{lost, lost / 2, 0}})
	}
	for i, p := range s.Noise.Curve {
		s.Noise.Curve[i].EsN0, s.Noise.Curve[i].Accuracy = p.SNR+21, []float64{0.9, 0.5}
		s.Noise.BundleRaw = append(s.Noise.BundleRaw, model.NoisePoint{SNR: p.SNR, EsN0: p.SNR + 21, PSNR: p.PSNR, Accuracy: []float64{0.8, 0.4}})
	}
	s.Noise.BundleClean, s.Noise.Components, s.Noise.BundlePower, s.Noise.Accuracy = s.Noise.Curve, 128, 0.3, []float64{0.95, 0.7}
	s.Faithfulness = &model.Faithfulness{Images: n, CosBundle: -0.07, CosRetrieval: -0.03, CosDenoised: 0.996, Reencode: 0.017, Cleanup: 0.12, Chance: 0.06,
		Energy: 38.6, Coherence: model.Undefined(), RankCodebook: 8.7, RankZ: 9.3, RankBundle: 8.9, Entries: 9, True: model.TrueHRROf(3, 128, "")}
	hits := model.TruthShare{Factor: 0, Slots: []int{0}, Owned: true, Hits: *at(0.9, 0.05), PSNR: 24, Leak: []model.Score{1, 0.25}, LeaksMost: 1}
	none := model.TruthShare{Factor: -1, Slots: []int{1}, Hits: model.Interval{Value: model.Undefined(), Low: model.Undefined(), High: model.Undefined()}, PSNR: model.Undefined(), LeaksMost: -1}
	s.SwapTruth = &model.SwapTruth{Pairs: 60, Tolerance: 3, Single: *at(0.34, 0.06), Group: *at(0.67, 0.07), Coverage: m.Ownership.Coverage, Slots: []model.TruthShare{hits, none, none}, Groups: []model.TruthShare{hits}}
	slot := func(factor int, exact float64) model.SlotSwap {
		return model.SlotSwap{Factor: factor, Edits: 50, Exact: *at(exact, 0.05), None: *at(1-exact, 0.05), Others: *at(0.02, 0.01), Leakage: []model.Interval{*at(exact, 0.05), *at(0.02, 0.01)}}
	}
	s.Swap = &model.Swap{Pairs: 60, Edits: 150, Exact: *at(0.81, 0.04), None: *at(0.17, 0.04), Others: *at(0.02, 0.01),
		Slots: []model.SlotSwap{slot(0, 0.95), slot(1, 0.6), slot(-1, 0)}, ProbeAccuracy: []float64{0.99, 0.93}, ProbeImages: 2000}
	return s
}

func at(v, half float64) *model.Interval {
	return &model.Interval{Value: model.Score(v), Low: model.Score(v - half), High: model.Score(v + half)}
}

// fakeEvaluations records the started evaluations.
type fakeEvaluations struct {
	mu      sync.Mutex
	started []string
	asked   model.Evaluation // of the last start
	state   model.Evaluation
	err     error
}

func (f *fakeEvaluations) Queue(_ context.Context, id string, ask model.Evaluation) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.started, f.state, f.asked = append(f.started, id), model.Evaluation{State: model.Running, Started: time.Now(), Said: "noise, 3 of 9"}, ask
	}
	return f.err
}

func (f *fakeEvaluations) Cancel(_ context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = model.Evaluation{State: model.Stopped, Ended: time.Now()}
	return f.err
}

func (f *fakeEvaluations) State(string) model.Evaluation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

func (f *fakeEvaluations) say(line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.Said = line
}

func (f *fakeEvaluations) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.State = model.Finished
}

// laterScores has no scores until they are set.
type laterScores struct {
	mu   sync.Mutex
	kept *model.Scores
}

func (l *laterScores) Scores(_ context.Context, id string) (model.Scores, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept == nil {
		return model.Scores{}, fmt.Errorf("run %s: not evaluated yet: %w", id, model.ErrNotFound)
	}
	return *l.kept, nil
}

func (l *laterScores) set(s model.Scores) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = &s
}

// measureSite serves the page of a fake run "a", with the given scores, if any.
func measureSite(t *testing.T, scores *model.Scores, e handlers.EvaluationService) (*handlertest.Runs, http.Handler) {
	f := handlertest.NewRuns(t.TempDir())
	run := f.Put("a", model.Finished, 400)
	run.Checkpoint, run.Config.M, run.Config.K = 900, 3, 16
	r := chi.NewRouter()
	measure.Measure{Runs: f, Datasets: handlertest.Data{}, Evaluations: e, Scores: &laterScores{kept: scores}}.Routes(r)
	return f, r
}

// TestMeasure: the page has every number of an evaluation and every figure, and each figure can be downloaded.
func TestMeasure(t *testing.T) {
	scores := measuredWorld(t)
	_, h := measureSite(t, &scores, &fakeEvaluations{})
	doc := handlertest.Document(t, handlertest.Get(t, h, "/runs/a/measure"))
	values := map[string]string{}
	doc.Find("[data-testid=scores] tr").Each(func(_ int, s *goquery.Selection) {
		values[s.Find("th").Text()] = strings.TrimSpace(s.Find("td").First().Text())
	})
	three := func(s model.Score) string { return strings.Replace(fmt.Sprintf("%.3f", float64(s)), "-", "−", 1) }
	m := scores.Metrics
	for name, want := range map[string]string{
		"PSNR": "26.04 dB", "InfoM": three(m.InfoM), "InfoC": three(m.InfoC), "InfoE": three(m.InfoE),
		"InfoE, held out": three(m.InfoEHeldOut), "InfoE, shuffled": three(m.InfoEShuffled), "Exact": "81.0%", "Groups": "67.0%", "Single slots": "34.0%",
		"D I C, each code a feature": three(m.DCI.OneHot.D) + "  " + three(m.DCI.OneHot.I) + "  " + three(m.DCI.OneHot.C),
	} {
		if values[name] != want {
			t.Errorf("%s is shown as %q, want %q", name, values[name], want)
		}
	}
	if text := doc.Find("[data-testid=measured]").Text(); text != "Measured at step 900 on 400 random images (seed 7) in 12 s on cpu." {
		t.Errorf("the page says: %s", text)
	}
	for _, name := range []string{"nmi", "importance", "infoe", "usage", "ranks", "purity", "leakage", "truth", "truth-groups", "noise", "noise-energy", "noise-accuracy", "flips", "mean", "variance-latent", "variance-codebook", "perplexity"} {
		if doc.Find("[data-testid=figure-"+name+"] svg").Length() != 1 {
			t.Errorf("figure %s is missing", name)
		}
		if w := handlertest.Get(t, h, "/runs/a/measure/"+name+".svg"); w.Code != 200 || handlertest.WellFormed(w.Body.String()) != nil || strings.Contains(w.Body.String(), "NaN") {
			t.Errorf("%s.svg returns %d", name, w.Code)
		}
	}
	var sent model.Scores
	if err := json.Unmarshal(handlertest.Get(t, h, "/api/runs/a/scores").Body.Bytes(), &sent); err != nil || sent.Metrics.InfoM != m.InfoM || len(sent.Usage.Names) != 3 {
		t.Errorf("as JSON: %v", err)
	}
	w := handlertest.Get(t, h, "/runs/a/measure/nmi.png")
	if _, err := png.Decode(w.Body); err != nil || w.Header().Get("Content-Type") != "image/png" {
		t.Errorf("nmi.png: %v", err)
	}
	if doc.Find("[data-testid=measure-empty], [data-testid=stale], [data-live]").Length() != 0 {
		t.Error("a run with fresh scores is shown as empty, stale or live")
	}
}

// TestIsItAnHRR: the page shows each figure with that of a true HRR, slot names with a bar per factor, and the leak by name.
func TestIsItAnHRR(t *testing.T) {
	scores := measuredWorld(t)
	_, h := measureSite(t, &scores, nil)
	doc := handlertest.Document(t, handlertest.Get(t, h, "/runs/a/measure"))
	rows := map[string]string{}
	doc.Find("[data-testid=hrr-figures] tbody tr").Each(func(_ int, s *goquery.Selection) {
		rows[s.Find("th").Text()] = s.Find("td").Eq(0).Text() + " | " + s.Find("td").Eq(1).Text()
	})
	for name, want := range map[string]string{
		"cos(z, ẑ)": "−0.07 | near 1", "cos(ṽ, q)": "−0.03 | 0.50", "Re-encoded": "0.017 | near 1", "Energy ‖ẑ‖²": "38.6 | 3", "Coherence": "– | 0.088", "Rank of z": "9.3 | up to 128",
	} {
		if rows[name] != want {
			t.Errorf("%s: %q, want %q", name, rows[name], want)
		}
	}
	owners := doc.Find("[data-testid=owners] tbody tr")
	if len(rows) != 10 || owners.Length() != 3 || owners.Eq(0).Find("td").First().Text() != "hue" || owners.Eq(2).Find("td").First().Text() != "unused" || owners.Eq(0).Find("rect").Length() != 2 {
		t.Errorf("%d figures; slots: %s", len(rows), owners.Text())
	}
	if text := doc.Find("#truth").Text(); !strings.Contains(text, "hue changes shape in 25% of pairs") {
		t.Errorf("the leaked factor is not named: %s", text)
	}
	if doc.Find("[data-testid=missing]").Length() != 0 {
		t.Error("scores are shown as missing")
	}
}

// TestOlderScores: scores of an earlier version open; missing ones are listed, with a button to measure them.
func TestOlderScores(t *testing.T) {
	scores := measuredWorld(t)
	scores.Faithfulness, scores.SwapTruth, scores.Metrics.Ownership, scores.Noise.BundleRaw, scores.Noise.BundleClean, scores.Noise.Components = nil, nil, nil, nil, nil, 0
	_, h := measureSite(t, &scores, &fakeEvaluations{})
	doc := handlertest.Document(t, handlertest.Get(t, h, "/runs/a/measure"))
	missing := doc.Find("[data-testid=missing]")
	if text := missing.Text(); !strings.Contains(text, "Not measured: faithfulness to HRR, slot names, swaps against the truth, noise on ẑ.") || missing.Find("[data-testid=evaluate]").Length() != 1 {
		t.Errorf("missing: %s", text)
	}
	if doc.Find("[data-testid=hrr-figures], [data-testid=owners], [data-testid=figure-truth], [data-testid=figure-noise-energy]").Length() != 0 || doc.Find("[data-testid=figure-noise] svg").Length() != 1 {
		t.Error("a score that was not measured is shown, or the measured noise is not")
	}
}

// TestMeasureNames: codes have the value that most of their images show; a slot without a factor is marked.
func TestMeasureNames(t *testing.T) {
	scores := measuredWorld(t)
	_, h := measureSite(t, &scores, nil)
	slots := handlertest.Document(t, handlertest.Get(t, h, "/runs/a/measure")).Find("[data-testid=code-names] .names > section")
	if slots.Length() != 3 {
		t.Fatalf("%d slots of 3", slots.Length())
	}
	first := slots.Eq(0)
	if n := first.Find("li").Length(); n != 8 || !strings.Contains(first.Find("h3").Text(), "hue") {
		t.Errorf("slot 0 lists %d codes of 8 under %s", n, first.Find("h3").Text())
	}
	first.Find("li").Each(func(_ int, s *goquery.Selection) {
		if code, value := s.Find(".code").Text(), s.Find(".value").Text(); fmt.Sprint(number(t, code)/2) != value || s.Find(".n").First().Text() != "100%" {
			t.Errorf("code %s means %s", code, value)
		}
	})
	if text := slots.Eq(2).Text(); !strings.Contains(text, "carries no factor") {
		t.Errorf("slot 2: %s", text)
	}
}

func number(t *testing.T, text string) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestMeasureStates: the page before, during and after an evaluation, and after a failure.
func TestMeasureStates(t *testing.T) {
	e := &fakeEvaluations{}
	_, h := measureSite(t, nil, e)
	if w := handlertest.Get(t, h, "/api/runs/a/scores"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "not evaluated yet") {
		t.Errorf("scores before an evaluation: %d %s", w.Code, w.Body)
	}
	doc := handlertest.Document(t, handlertest.Get(t, h, "/runs/a/measure"))
	empty := doc.Find("[data-testid=measure-empty]")
	if !strings.Contains(empty.Text(), "slotscope eval a") || empty.Find("button[disabled]").Length() != 0 || empty.Find("button").Length() != 2 {
		t.Errorf("before: %s", empty.Text())
	}
	if doc.Find("[data-testid=figure-mean]").Length() != 1 || doc.Find("[data-testid=scores]").Length() != 0 {
		t.Error("before an evaluation, training curves are shown")
	}
	if w := handlertest.Post(t, h, "/runs/a/measure", url.Values{}); w.Code != http.StatusSeeOther || fmt.Sprint(e.started) != "[a]" {
		t.Errorf("starting returns %d and starts %v", w.Code, e.started)
	}
	doc = handlertest.Document(t, handlertest.Get(t, h, "/runs/a/measure"))
	if text := doc.Find("[data-testid=evaluating]").Text(); !strings.Contains(text, "noise, 3 of 9") || doc.Find("[data-live]").Length() != 1 || doc.Find("button[disabled]").Length() != 2 {
		t.Errorf("during: %s", text)
	}
	if w := handlertest.Post(t, h, "/runs/a/measure/cancel", url.Values{}); w.Code != http.StatusSeeOther {
		t.Errorf("cancelling returns %d", w.Code)
	}
	if text := handlertest.Document(t, handlertest.Get(t, h, "/runs/a/measure")).Find("[data-testid=evaluation-stopped]").Text(); !strings.Contains(text, "You cancelled the evaluation") {
		t.Errorf("after cancelling: %s", text)
	}
	if w := handlertest.Post(t, h, "/runs/a/measure", url.Values{"effort": {"quick"}, "now": {"1"}}); w.Code != http.StatusSeeOther || e.asked.Effort != model.Quick || !e.asked.Now {
		t.Errorf("starting a quick evaluation now returns %d: %+v", w.Code, e.asked)
	}
	if w := handlertest.Post(t, h, "/runs/a/measure", url.Values{"effort": {"some"}}); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("an unknown effort returns %d", w.Code)
	}
	e.state = model.Evaluation{State: model.Queued, Asked: time.Now()}
	queued := handlertest.Document(t, handlertest.Get(t, h, "/runs/a/measure")).Find("[data-testid=evaluation-queued]")
	if queued.Find("[data-testid=evaluate-now]").Length() != 1 || queued.Find("[data-testid=evaluation-cancel]").Length() != 1 || !strings.Contains(queued.Text(), "Starts when") {
		t.Errorf("queued: %s", queued.Text())
	}
	e.state = model.Evaluation{Started: time.Now(), Ended: time.Now(), State: model.Failed, Reason: "the dataset is not here"}
	if text := handlertest.Document(t, handlertest.Get(t, h, "/runs/a/measure")).Find("[data-testid=evaluation-failed]").Text(); !strings.Contains(text, "the dataset is not here") {
		t.Errorf("after a failure: %s", text)
	}
	e.err = fmt.Errorf("run a is being evaluated already: %w", model.ErrConflict)
	if w := handlertest.Post(t, h, "/runs/a/measure", url.Values{}); w.Code != http.StatusConflict {
		t.Errorf("a second start returns %d", w.Code)
	}
	if _, h := measureSite(t, nil, nil); handlertest.Post(t, h, "/runs/a/measure", url.Values{}).Code != http.StatusConflict {
		t.Error("an evaluation starts although evaluations are disabled")
	}
}

// TestMeasureWithoutCheckpoint: a run without a checkpoint offers no evaluation, and says why and what to do.
func TestMeasureWithoutCheckpoint(t *testing.T) {
	scores := measuredWorld(t)
	for name, c := range map[string]struct {
		state  model.State
		model  string
		scores *model.Scores
		where  string
		want   string
	}{
		"still training":           {model.Running, "hrr", nil, "measure-empty", "no checkpoint yet. You can evaluate it after it saves one."},
		"removed":                  {model.Finished, "hrr", nil, "measure-empty", "its files were removed. Resume the run to train it again."},
		"removed after evaluation": {model.Finished, "hrr", &scores, "no-checkpoint", "its files were removed. Resume the run to train it again."},
		"another program's":        {model.Finished, model.External, nil, "measure-empty", "Adopt its model to evaluate it."},
	} {
		f, h := measureSite(t, c.scores, &fakeEvaluations{})
		run := f.Runs["a"]
		run.State, run.Config.Model, run.Checkpoint = c.state, c.model, 0
		doc := handlertest.Document(t, handlertest.Get(t, h, "/runs/a/measure"))
		if said := doc.Find("[data-testid=" + c.where + "]").Text(); !strings.Contains(said, c.want) || strings.Contains(said, "slotscope eval") {
			t.Errorf("%s: the page says %q", name, said)
		}
		if n := doc.Find("[data-testid=evaluate], [data-testid=evaluate-quick], [data-testid=replace]").Length(); n != 0 {
			t.Errorf("%s: %d buttons start an evaluation", name, n)
		}
	}
}

// TestQuickReplacesOnlyIfAsked: a quick evaluation of a run with full scores asks first; without them it does not.
func TestQuickReplacesOnlyIfAsked(t *testing.T) {
	scores, e := measuredWorld(t), &fakeEvaluations{}
	_, h := measureSite(t, &scores, e)
	doc := handlertest.Document(t, handlertest.Get(t, h, "/runs/a/measure"))
	box := doc.Find("#quick[popover]")
	if !strings.Contains(box.Text(), "replaces these full scores of 400 images") || doc.Find("[data-testid=evaluate-quick]").AttrOr("popovertarget", "") != "quick" {
		t.Errorf("the page asks: %q", box.Text())
	}
	form := url.Values{}
	box.Find("input").Each(func(_ int, s *goquery.Selection) { form.Set(s.AttrOr("name", ""), s.AttrOr("value", "")) })
	if w := handlertest.Post(t, h, "/runs/a/measure", form); w.Code != http.StatusSeeOther || e.asked.Effort != model.Quick || !e.asked.Replace {
		t.Errorf("replacing returns %d: %+v", w.Code, e.asked)
	}
	scores.Effort = model.Quick
	_, h = measureSite(t, &scores, &fakeEvaluations{})
	doc = handlertest.Document(t, handlertest.Get(t, h, "/runs/a/measure"))
	if doc.Find("#quick").Length() != 0 || doc.Find("[data-testid=evaluate-quick]").AttrOr("value", "") != model.Quick {
		t.Error("quick scores are replaced only after a question")
	}
}

// TestMeasureSparse: scores of a continuous model, and those of a run that ended without an evaluation.
func TestMeasureSparse(t *testing.T) {
	scores := model.Scores{Version: 1, Step: 400, Images: 100, PSNR: 20}
	f, h := measureSite(t, &scores, nil)
	doc := handlertest.Document(t, handlertest.Get(t, h, "/runs/a/measure"))
	if doc.Find("[data-testid=measure-empty]").Length() != 1 || doc.Find("[data-testid=scores] tr.main").Length() != 1 {
		t.Error("a run with only PSNR shows more or less than PSNR")
	}
	if text := doc.Find("[data-testid=stale]").Text(); !strings.Contains(text, "step 900") {
		t.Errorf("scores of an earlier step: %q", text)
	}
	nothing := model.Undefined()
	scores.Metrics = &model.Metrics{Rows: 100, Latents: 2, Factors: []string{"hue"}, InfoM: nothing, InfoE: 0.5, InfoC: nothing, NMI: [][]model.Score{{0.4, nothing}}, KeptFactors: []int{0},
		InfoEFactors: []model.Score{0.5}, InfoEHeldOut: -0.25, DCI: model.DCI{OneHot: model.DCIScore{D: nothing, I: nothing, C: nothing}}}
	f.Runs["a"].Config.Model = "betavae"
	w := handlertest.Get(t, h, "/runs/a/measure")
	if doc = handlertest.Document(t, w); w.Code != 200 || doc.Find("[data-testid=figure-nmi]").Length() != 1 || doc.Find("[data-testid=figure-usage], [data-testid=figure-flips], [data-testid=figure-mean]").Length() != 0 {
		t.Errorf("a continuous model returns %d", w.Code)
	}
	if text := doc.Find("[data-testid=scores]").Text(); !strings.Contains(text, "−0.250") || !strings.Contains(text, "–") {
		t.Errorf("undefined and negative scores: %s", text)
	}
	for path, want := range map[string]int{"/runs/b/measure": 404, "/runs/a/measure/usage.svg": 404, "/runs/a/measure/x.svg": 404, "/runs/a/measure/nmi.gif": 404, "/runs/a/measure/nmi.png?x=0": 422} {
		if w := handlertest.Get(t, h, path); w.Code != want {
			t.Errorf("%s returns %d, want %d", path, w.Code, want)
		}
	}
	f.Broken = errors.New("disk on fire")
	if w := handlertest.Get(t, h, "/runs/a/measure"); w.Code != 500 || strings.Contains(w.Body.String(), "disk") {
		t.Errorf("a broken store returns %d", w.Code)
	}
}

// hueData has one dataset with two factors, that of the fake runs.
type hueData struct{}

func (hueData) List(context.Context) []data.Info {
	return []data.Info{{Name: "shapes3d-synthetic", Factors: []data.Factor{
		{Name: "floor_hue", Values: []string{"0.0", "0.1", "0.5", "0.9"}}, {Name: "shape", Values: []string{"cube", "ball", "pill"}},
	}}}
}

// TestMeasureHues: if the dataset is available, values have names; hues are named by colour.
func TestMeasureHues(t *testing.T) {
	scores := measuredWorld(t)
	scores.Metrics.Factors = []string{"floor_hue", "shape"}
	f, _ := measureSite(t, nil, nil)
	r := chi.NewRouter()
	measure.Measure{Runs: f, Datasets: hueData{}, Scores: &laterScores{kept: &scores}}.Routes(r)
	slots := handlertest.Document(t, handlertest.Get(t, r, "/runs/a/measure")).Find("[data-testid=code-names] .names > section")
	if name := slots.Eq(0).Find("h3").Text(); !strings.Contains(name, "floor hue") {
		t.Errorf("slot 0 is headed %q", name)
	}
	slots.Eq(0).Find("li").Each(func(_ int, s *goquery.Selection) {
		want := []string{"0.0 red", "0.1 orange", "0.5 cyan", "0.9 pink"}[number(t, s.Find(".code").Text())/2]
		if got := s.Find(".value").Text(); got != want {
			t.Errorf("a hue is called %q, want %q", got, want)
		}
	})
	if text := slots.Eq(1).Find("li .value").Text(); !strings.Contains(text, "cube") {
		t.Errorf("shapes are called %q", text)
	}
}

// damagedScores exist but cannot be read.
type damagedScores struct{}

func (damagedScores) Scores(context.Context, string) (model.Scores, error) {
	return model.Scores{}, model.Invalid{"": "scores.json is damaged: its JSON is truncated"}
}

// TestMeasureDamagedScores: the page names the damage and offers to evaluate again.
func TestMeasureDamagedScores(t *testing.T) {
	f := handlertest.NewRuns(t.TempDir())
	f.Put("a", model.Finished, 400).Checkpoint = 400
	r := chi.NewRouter()
	measure.Measure{Runs: f, Datasets: handlertest.Data{}, Scores: damagedScores{}, Evaluations: &fakeEvaluations{}}.Routes(r)
	w := handlertest.Get(t, r, "/runs/a/measure")
	doc := handlertest.Document(t, w)
	if said := doc.Find("[data-testid=damage]").Text(); w.Code != http.StatusOK || !strings.HasPrefix(said, "Scores.json is damaged") && !strings.HasPrefix(said, "scores.json is damaged") {
		t.Errorf("status %d, the page says %q", w.Code, said)
	}
	if doc.Find("[data-testid=evaluate]:not([disabled])").Length() != 1 {
		t.Error("no button to evaluate again")
	}
	if w := handlertest.Get(t, r, "/api/runs/a/scores"); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("API: status %d", w.Code)
	}
}
