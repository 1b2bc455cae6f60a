package theory_test

import (
	"context"
	"fmt"
	"image/png"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/go-chi/chi/v5"

	"slotscope/handlers/handlertest"
	theorypage "slotscope/handlers/theory"
	"slotscope/model"
	"slotscope/model/paper/hrr"
	"slotscope/model/play"
)

// fakeSlots has three HRR checkpoints, one still being counted and one above its channel term, and a checkpoint of another model.
type fakeSlots struct{}

func (fakeSlots) List() []play.Source {
	at := func(key, title, kind string, d int) play.Source {
		return play.Source{Key: key, Title: title, Run: "run-" + key, Step: 1000, Config: model.Config{Model: kind, M: 3, D: d, K: 4}}
	}
	return []play.Source{at("aaaa", "Measured", "hrr", 32), at("bbbb", "Counting", "hrr", 32), at("cccc", "Other", "vqvae", 32), at("dddd", "Leaky", "hrr", 4)}
}

func (f fakeSlots) Find(name string) (play.Source, error) {
	for _, s := range f.List() {
		if name == s.Key || name == s.Run {
			return s, nil
		}
	}
	return play.Source{}, fmt.Errorf("there is no checkpoint %s: %w", name, model.ErrNotFound)
}

func (fakeSlots) Usage(src play.Source) play.Counting {
	if src.Key == "bbbb" {
		return play.Counting{Done: 1200, Of: 4096}
	}
	joint := &model.JointEntropy{Images: 4, Tuples: 4, Nats: 1.386, Slots: []float64{1.386, 0.693, 0}, Redundancy: 0.693, Ceiling: 1.386, LowerBound: true}
	if src.Key == "dddd" {
		joint = &model.JointEntropy{Images: 100, Tuples: 60, Nats: 3.8, Ceiling: 4.61, Coverage: 0.95}
	}
	return play.Counting{Usage: &play.Usage{Images: 4, Joint: joint, Counts: [][]int{{1, 1, 1, 1}, {2, 2, 0, 0}, {4, 0, 0, 0}}}}
}

func (fakeSlots) Slots(_ context.Context, src play.Source) (play.Slots, error) {
	rng := rand.New(rand.NewPCG(1, 1))
	var s play.Slots
	for range 3 {
		s.Symbols = append(s.Symbols, hrr.Symbol[float64](rng, src.Config.D))
	}
	for range 4 {
		s.Entries = append(s.Entries, hrr.Symbol[float64](rng, src.Config.D))
	}
	return s, nil
}

// fakeScores has the scores of one run, evaluated at step 1000.
type fakeScores struct{}

func (fakeScores) Scores(_ context.Context, run string) (model.Scores, error) {
	if run != "run-aaaa" {
		return model.Scores{}, model.ErrNotFound
	}
	return model.Scores{Step: 1000, Usage: &model.Usage{Joint: &model.JointEntropy{Images: 10, Nats: 1.5, Redundancy: 0.5, LowerBound: true}}}, nil
}

func theorySite(l theorypage.SlotLibrary) http.Handler {
	r := chi.NewRouter()
	theorypage.Theory{Datasets: handlertest.Data{}, Library: l, Scores: fakeScores{}}.Routes(r)
	return r
}

func facts(doc *goquery.Document, part string) map[string]string {
	all := map[string]string{}
	doc.Find("[data-testid=part-" + part + "] dt").Each(func(_ int, s *goquery.Selection) { all[s.Text()] = s.Next().Text() })
	return all
}

// TestTheory: the page shows the paper's sizes by default, otherwise the numbers for the URL's entries.
func TestTheory(t *testing.T) {
	doc := handlertest.Document(t, handlertest.Get(t, theorySite(fakeSlots{}), "/theory"))
	if got := facts(doc, "capacity"); got["Bound"] != "56.1 nats, 81 bits" || got["Channel"] != "243 nats, 350 bits" {
		t.Errorf("at the paper's sizes: %v", got)
	}
	doc = handlertest.Document(t, handlertest.Get(t, theorySite(fakeSlots{}), "/theory?m=2&d=8&k=4&R=5&rho=1"))
	if got := facts(doc, "capacity"); got["Channel"] != "3.24 nats, 4.68 bits" || got["Bound"] != "2.77 nats, 4 bits" { // 8·ln 1.5, 2·ln 4
		t.Errorf("m=2 d=8 k=4: %v", got)
	}
	if got := facts(doc, "least"); got["Minimum d"] != "13" || got["Minimum k"] != "13" { // 5/ln 1.5 = 12.33, e^2.5 = 12.18
		t.Errorf("least: %v", got)
	}
	if text := doc.Find("[data-testid=part-capacity]").Text(); !strings.Contains(text, "R = 5 nats do not fit; they exceed the bound by 2.23.") {
		t.Errorf("too large a rate: %s", text)
	}
	if v := doc.Find("input[name=d]").AttrOr("value", ""); v != "8" {
		t.Errorf("the form shows d = %s", v)
	}
	doc.Find("math").Each(func(i int, s *goquery.Selection) {
		if html, err := goquery.OuterHtml(s); err != nil || handlertest.WellFormed(html) != nil || strings.TrimSpace(s.Text()) == "" {
			t.Errorf("equation %d is not well-formed: %v", i, html)
		}
	})
	if n := doc.Find("math").Length(); n != 10 {
		t.Errorf("%d equations of 10", n)
	}
}

// TestTheoryModels: the page shows the newest HRR checkpoint by default, and explains why a checkpoint has no numbers.
func TestTheoryModels(t *testing.T) {
	doc := handlertest.Document(t, handlertest.Get(t, theorySite(fakeSlots{}), "/theory"))
	if n := doc.Find("[data-testid=theory-sources] input").Length(); n != 3 {
		t.Errorf("%d models to choose from; the model without bundles must not be offered", n)
	}
	points := doc.Find("[data-testid=theory-points] tbody tr")
	cells := points.Find("td").Map(func(_ int, s *goquery.Selection) string { return s.Text() })
	if points.Length() != 1 || len(cells) != 12 || cells[3] != "4.16" || cells[4] != "≥ 1.5" || cells[5] != "≤ 0.5" || cells[6] != "not evaluated" { // 3·ln 4
		t.Errorf("%d models with %q", points.Length(), cells)
	}
	doc = handlertest.Document(t, handlertest.Get(t, theorySite(fakeSlots{}), "/theory?m=3&run=bbbb&run=cccc"))
	text := doc.Find("[data-testid=theory-points]").Text()
	for _, want := range []string{"1,200 of 4,096 images", "A vqvae model does not bundle its slots"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
	doc = handlertest.Document(t, handlertest.Get(t, theorySite(fakeSlots{}), "/theory?m=3&run=aaaa&run=dddd"))
	if f := facts(doc, "capacity"); f["Leaky"] != "outside: its codes carry 3.8 nats, above the channel term of 1.73" || f["Measured"] != "" { // 6·ln 4/3
		t.Errorf("models outside the bound: %v", f)
	}
	if text := doc.Find("[data-testid=figure-capacity]").Text(); !strings.Contains(text, "Leaky, outside") || !strings.Contains(text, "≥ Measured") {
		t.Errorf("dots: %s", text)
	}
	if text := handlertest.Document(t, handlertest.Get(t, theorySite(nil), "/theory")).Find("form").Text(); !strings.Contains(text, "No trained HRR model yet") {
		t.Errorf("without checkpoints: %s", text)
	}
	if w := handlertest.Get(t, theorySite(fakeSlots{}), "/theory?m=3&run=nobody"); w.Code != http.StatusNotFound {
		t.Errorf("an unknown checkpoint returns %d", w.Code)
	}
}

// TestTheoryFloor: at ρ = 1 total correlation is about 12% of the channel; at τ = 1 both vanish. The variance of values does not change the SNR.
func TestTheoryFloor(t *testing.T) {
	page := func(query string) *goquery.Document {
		return handlertest.Document(t, handlertest.Get(t, theorySite(nil), "/theory?m=9&d=512&k=512&R=13"+query))
	}
	one := facts(page("&rho=1"), "correlation")
	if one["Channel with this noise"] != "243 nats, 350 bits" || !strings.HasPrefix(one["Share of the channel"], "12.") {
		t.Errorf("at ρ = 1: %v", one)
	}
	unit := facts(page("&rho=56.8889"), "correlation")
	if unit["Floor"] != "ρ = 56.9, τ = 1" || unit["Channel with this noise"] != "4.5 nats, 6.49 bits" || !strings.HasPrefix(unit["Total correlation"], "0.03") {
		t.Errorf("at τ = 1: %v", unit)
	}
	plain, loud := facts(page("&var=1"), "retrieval"), facts(page("&var=100"), "retrieval")
	if plain["SNR"] != loud["SNR"] || plain["Sampled"] != loud["Sampled"] || plain["Signal per component"] == loud["Signal per component"] {
		t.Errorf("variance 1: %v, variance 100: %v", plain, loud)
	}
}

// TestTheoryProblems: invalid entries are kept with an error, and the rest is computed.
func TestTheoryProblems(t *testing.T) {
	for name, typed := range map[string]string{"m": "0", "d": "wide", "k": "2.5", "R": "-1", "rho": "NaN", "var": "-1"} {
		w := handlertest.Get(t, theorySite(fakeSlots{}), "/theory?"+name+"="+typed)
		doc := handlertest.Document(t, w)
		problem := doc.Find("[data-testid=problem-" + name + "]").Text()
		if w.Code != http.StatusUnprocessableEntity || !strings.Contains(problem, strings.TrimPrefix(typed, "-")) {
			t.Errorf("%s=%s returns %d: %q", name, typed, w.Code, problem)
		}
		if v := doc.Find("input[name="+name+"]").AttrOr("value", ""); v != typed {
			t.Errorf("%s=%s is shown as %q", name, typed, v)
		}
		if len(facts(doc, "capacity")) == 0 {
			t.Errorf("%s=%s: nothing is computed", name, typed)
		}
	}
}

// TestTheoryFigures: each figure of the page can be downloaded as SVG and PNG, at the page's sizes.
func TestTheoryFigures(t *testing.T) {
	h := theorySite(fakeSlots{})
	doc := handlertest.Document(t, handlertest.Get(t, h, "/theory?m=4&d=64&k=16&R=3&rho=1"))
	links := doc.Find(".drawn figcaption a").Map(func(_ int, s *goquery.Selection) string { return s.AttrOr("href", "") })
	if len(links) != 12 {
		t.Fatalf("%d files of six figures", len(links))
	}
	for _, link := range links {
		w := handlertest.Get(t, h, link)
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Disposition"), "attachment") {
			t.Errorf("%s returns %d %v", link, w.Code, w.Header())
			continue
		}
		if strings.Contains(link, ".png") {
			if _, err := png.Decode(w.Body); err != nil {
				t.Errorf("%s: %v", link, err)
			}
		} else if err := handlertest.WellFormed(w.Body.String()); err != nil {
			t.Errorf("%s: %v", link, err)
		}
	}
	if body := handlertest.Get(t, h, "/theory/capacity.svg?m=4&d=64&k=16").Body.String(); !strings.Contains(body, "Capacity at d = 64, k = 16") {
		t.Error("the file does not have the sizes in its URL")
	}
	for path, want := range map[string]int{"/theory/nothing.svg": 404, "/theory/capacity.pdf": 200, "/theory/capacity.gif": 404, "/theory/capacity.svg?m=0": 422, "/theory/capacity.png?x=99": 422} {
		if w := handlertest.Get(t, h, path); w.Code != want {
			t.Errorf("%s returns %d, want %d", path, w.Code, want)
		}
	}
}
