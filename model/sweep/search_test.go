package sweep

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"slotscope/model"
)

// wide returns a plan of HRR over two hyperparameters.
func wide(seeds int) Plan {
	return Plan{Name: "wide", Preset: "tiny", Steps: 50, Parts: []Part{{Name: "main", Models: []string{"hrr"}, Datasets: []string{"shapes3d-synthetic"}, Seeds: upTo(seeds),
		Vary: []Axis{{Field: "lr", Low: 1e-4, High: 1e-2, Log: true}, {Field: "k", Values: []string{"32", "64", "128"}}}, Random: &Random{Draws: 40, Seed: 3}}}}
}

func TestRandomSearch(t *testing.T) {
	p := wide(1)
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	items := p.Look(lab{}.find).Items
	if len(items) != 40 || p.Runs() != 40 {
		t.Fatalf("%d items, %d runs", len(items), p.Runs())
	}
	below := 0
	for _, item := range items {
		if lr := item.Config.LR; lr < 1e-4 || lr > 1e-2 {
			t.Errorf("learning rate %v", lr)
		} else if lr < 1e-3 {
			below++
		}
		if text := strconv.FormatFloat(item.Config.LR, 'g', -1, 64); len(strings.TrimLeft(strings.ReplaceAll(text, ".", ""), "0")) > drawDigits && !strings.Contains(text, "e") {
			t.Errorf("learning rate %s has more than %d digits", text, drawDigits)
		}
	}
	if below < 10 || below > 30 { // half of the magnitudes; the bounds hold for 40 draws of probability ½ except for 1 in 1,000 seeds
		t.Errorf("%d of 40 are below the middle magnitude", below)
	}
	again, err := Read(strings.NewReader(string(p.JSON())))
	if err != nil || again.ID() != p.ID() || again.Look(lab{}.find).Items[39].ID != items[39].ID {
		t.Errorf("a plan that is read again draws differently: %v", err)
	}
	rates := func(p Plan) (all []float64) {
		for _, set := range p.Parts[0].settings("hrr") {
			lr, _ := strconv.ParseFloat(set["lr"], 64)
			all = append(all, lr)
		}
		return all
	}
	without := wide(1)
	without.Parts[0].Vary = without.Parts[0].Vary[:1]
	if !slices.Equal(rates(p), rates(without)) {
		t.Error("learning rates depend on whether k is also drawn")
	}
	p.Parts[0].Random = &Random{Draws: 40, Seed: 4}
	if slices.Equal(rates(p), rates(wide(1))) {
		t.Error("another seed draws the same settings")
	}
}

func TestSearchRefuses(t *testing.T) {
	for want, change := range map[string]func(*Part){
		"parts[0].random.draws: 0 draws":                              func(p *Part) { p.Random.Draws = 0 },
		"parts[0].random.draws: 4 draws are more than the 3 distinct": func(p *Part) { p.Random.Draws, p.Vary = 4, p.Vary[1:] },
		"parts[0].random: random search needs":                        func(p *Part) { p.Vary = nil },
		"parts[0].vary: lr has a range, which only random search":     func(p *Part) { p.Random = nil },
		"parts[0].vary: lr has both values and a range":               func(p *Part) { p.Vary[0].Values = []string{"1"} },
		"parts[0].vary: lr: the range 0.01..0.0001 log does not":      func(p *Part) { p.Vary[0].Low, p.Vary[0].High = 1e-2, 1e-4 },
		"parts[0].vary: lr: a logarithmic range must begin above 0":   func(p *Part) { p.Vary[0].Low = -1 },
		"parts[0].vary: binding is not a number":                      func(p *Part) { p.Vary[0].Field = "binding" },
		"parts[0].race.least: 1 seeds":                                func(p *Part) { p.Seeds, p.Race = upTo(4), &Race{1} },
		"parts[0].race.least: 4 seeds":                                func(p *Part) { p.Seeds, p.Race = upTo(4), &Race{4} },
	} {
		p := wide(1)
		change(&p.Parts[0])
		var bad model.Invalid
		if err := p.Validate(); !errors.As(err, &bad) {
			t.Errorf("%s: %v", want, err)
			continue
		}
		field, text, _ := strings.Cut(want, ": ")
		if !strings.HasPrefix(bad[field], text) {
			t.Errorf("want %q, got %v", want, bad)
		}
	}
}

func TestParseAxis(t *testing.T) {
	for text, want := range map[string]Axis{
		"0.1, 0.3 1":       {Field: "lr", Values: []string{"0.1", "0.3", "1"}},
		"1e-4 .. 1e-2 log": {Field: "lr", Low: 1e-4, High: 1e-2, Log: true},
		"-1..2":            {Field: "lr", Low: -1, High: 2},
		"":                 {Field: "lr", Values: []string{}},
	} {
		got, err := ParseAxis(" lr ", text)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) || got.Log != want.Log || got.Low != want.Low || !slices.Equal(got.Values, want.Values) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if again, err := ParseAxis("lr", got.String()); err != nil || again.String() != got.String() {
			t.Errorf("%q is written as %q", text, got)
		}
	}
	for _, text := range []string{"1..", "..", "a..b", "1..2 lin", "1..2..3"} {
		if a, err := ParseAxis("lr", text); err == nil {
			t.Errorf("%q is read as %+v", text, a)
		}
	}
}

func TestOwnQuestion(t *testing.T) {
	o := Own{Name: "mine", Preset: "tiny", Steps: 50, Seeds: 4, Models: []string{"hrr"}, Datasets: []string{"shapes3d-synthetic"},
		Vary: []Line{{"lr", "0.001, 0.01"}, {"k", "32,64"}}, Set: []Line{{"batch", "8"}}, Race: 2}
	p, err := o.Plan()
	if err != nil || p.Runs() != 16 || p.Set["batch"] != "8" || p.Parts[0].Race.Least != 2 || p.Parts[0].Random != nil {
		t.Fatalf("%+v, %v", p, err)
	}
	o.Vary, o.Draws = append(o.Vary, Line{"lr", "1"}, Line{"d", "1.."}, Line{"name", "x"}), 3
	_, err = o.Plan()
	var bad model.Invalid
	if !errors.As(err, &bad) || len(bad) != 3 || !strings.Contains(bad["vary[2]"], "twice") || !strings.Contains(bad["vary[3]"], "not a range") || !strings.Contains(bad["vary[4]"], "not a hyperparameter") {
		t.Errorf("%v", err)
	}
	for _, text := range []string{"batch", "=8", ""} {
		if _, err := ParseLine(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

// TestRace: all settings get two seeds; then at most the worse half drops out, if the intervals support it, and gets no more seeds.
func TestRace(t *testing.T) {
	p := wide(5)
	part := &p.Parts[0]
	part.Random, part.Vary, part.Race = nil, []Axis{{Field: "lr", Values: []string{"0.0001", "0.0003", "0.001", "0.003"}}}, &Race{2}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	means := map[string]float64{"0.0001": 0.2, "0.0003": 0.5, "0.001": 0.8, "0.003": 0.8}
	l := lab{}
	finish := func(seed int64) (runs int) {
		for _, s := range p.Look(l.find).Items {
			if s.Config.Seed == seed && s.Next(Worker{}, false, 0) == Begin {
				lr, _ := model.FieldByName("lr")
				l.finish(s.Item, means[lr.Get(s.Config)]+0.01*float64(seed%2))
				runs++
			}
		}
		return runs
	}
	for seed, want := range []int{4, 4, 2, 2, 2} {
		for _, s := range p.Look(l.find).Items {
			if begins := s.Next(Worker{}, false, 0) == Begin; begins && s.Config.Seed > int64(max(seed, 1)) {
				t.Fatalf("seed %d begins before seed %d ended", s.Config.Seed, seed)
			}
		}
		if n := finish(int64(seed)); n != want {
			t.Fatalf("%d runs with seed %d, want %d", n, seed, want)
		}
	}
	b := p.Look(l.find)
	if b.Count(Done) != 14 || b.Count(Out) != 6 || !b.Over() || b.Total() != 20 {
		t.Errorf("%d done, %d out of %d, over %v", b.Count(Done), b.Count(Out), b.Total(), b.Over())
	}
	if done, total := b.Steps(); done != total || total != 14*50 {
		t.Errorf("%d of %d steps", done, total)
	}
	for _, s := range b.Items {
		if s.Stage == Out && s.Config.LR > 4e-4 || s.Stage == Out && s.Next(Worker{Stopped: true, Orphans: true, Retry: true}, false, 0) != Wait {
			t.Errorf("%s is %s", s.Name, s.Stage)
		}
	}
}

// TestRaceStopsNobodyInDoubt: settings whose intervals overlap get every seed, and a run that another part also wants is never out.
func TestRaceStopsNobodyInDoubt(t *testing.T) {
	p := wide(4)
	part := &p.Parts[0]
	part.Random, part.Vary, part.Race = nil, []Axis{{Field: "lr", Values: []string{"0.001", "0.003"}}}, &Race{2}
	l := lab{}
	noise := []float64{0.2, -0.2, 0.1, -0.1}
	for range 4 {
		for _, s := range p.Look(l.find).Items {
			if s.Next(Worker{}, false, 0) == Begin {
				l.finish(s.Item, 0.5+100*(s.Config.LR-0.002)/10+noise[s.Config.Seed])
			}
		}
	}
	if b := p.Look(l.find); b.Count(Done) != 8 || b.Count(Out) != 0 {
		t.Errorf("%d done, %d out", b.Count(Done), b.Count(Out))
	}
	l = lab{}
	p.Parts = append(p.Parts, Part{Name: "too", Models: []string{"hrr"}, Datasets: []string{"shapes3d-synthetic"}, Seeds: upTo(4), Set: map[string]string{"lr": "0.001"}})
	for _, s := range p.Look(l.find).Items {
		if s.Config.Seed < 2 {
			l.finish(s.Item, 100*s.Config.LR+0.001*float64(s.Config.Seed))
		}
	}
	b := p.Look(l.find)
	for _, s := range b.Items {
		if want := map[bool]Stage{true: Planned, false: Done}[s.Config.Seed >= 2]; s.Stage != want || s.Later {
			t.Errorf("%s is %s, later %v", s.Name, s.Stage, s.Later)
		}
	}
}

// TestLead compares lead with Welch's interval by hand: means 2 and 0, variances 1 and 1, three values each: ν = 4, t = 2.776445, √(2/3) = 0.816497.
func TestLead(t *testing.T) {
	if got := lead([]float64{1, 2, 3}, []float64{-1, 0, 1}); math.Abs(got-(2-2.776445*0.816497)) > 1e-5 {
		t.Errorf("%v", got)
	}
	if got := lead([]float64{1, 1}, []float64{0.5, 0.5}); got != 0.5 {
		t.Errorf("without spread %v", got)
	}
}

func TestEstimate(t *testing.T) {
	p, l := small(), lab{}
	b := p.Look(l.find)
	if e := b.Estimate(nil); e.Known || e.Runs != 10 || e.Steps != 500 || e.From != "" {
		t.Errorf("before anything was timed: %+v", e)
	}
	run := func(name, preset string, rate float64) (r model.Run) {
		r.Config, _ = model.Default(name, preset, "shapes3d-synthetic")
		r.ImagesPerSecond = rate
		return r
	}
	other := []model.Run{run("hrr", "small", 1)}
	if e := b.Estimate(other); e.Known {
		t.Errorf("runs of another preset are used: %+v", e)
	}
	// 7 β-VAE runs and 3 of HRR, 50 steps of 8 images each; β-VAEs at 200 images/s, HRR at the median of 100, 50 and 1, a run that was disturbed
	e := b.Estimate(append(other, run("betavae", "tiny", 200), run("hrr", "tiny", 100), run("hrr", "tiny", 1), run("hrr", "tiny", 50)))
	if want := 7*400/200.0 + 3*400/50.0; !e.Known || math.Abs(e.Seconds-want) > 1e-9 || e.From != "4 earlier runs of tiny" {
		t.Errorf("%+v, want %v s", e, want)
	}
	// without an earlier β-VAE run, the speed of the preset's other runs is used
	if e := b.Estimate([]model.Run{run("hrr", "tiny", 100)}); !e.Known || e.Seconds != 40 || e.From != "1 earlier run of tiny" {
		t.Errorf("%+v", e)
	}
	l.finish(b.Items[0].Item, 0.5)
	if e := p.Look(l.find).Estimate(nil); e.Done != 1 || e.Steps != 450 {
		t.Errorf("with one run done: %+v", e)
	}
}
