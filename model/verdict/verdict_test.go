package verdict_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"slotscope/model"
	"slotscope/model/verdict"
)

// healthy returns the progress of a normal HRR training: the loss falls, more entries are used, PSNR rises.
func healthy(t *testing.T, name string, steps int) verdict.Progress {
	t.Helper()
	cfg, err := model.Default(name, "tiny", "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Steps = 4000
	p := verdict.Progress{Config: cfg, State: model.Running, Series: map[string][]model.Sample{}}
	for s := 1; s <= steps; s++ {
		x := float64(s)
		set(p, "total", s, 0.3+0.4*math.Exp(-x/200))
		if cfg.Discrete() {
			set(p, "perplexity/window", s, 8+60*(1-math.Exp(-x/900)))
			set(p, "perplexity/used", s, math.Round(10+67*(1-math.Exp(-x/900))))
		} else {
			set(p, "latent/active", s, 7)
		}
		if s%200 == 0 {
			set(p, "psnr/eval", s, 12+0.002*x)
			set(p, "infom/eval", s, 0.61)
			set(p, "owned/factors", s, 4)
			set(p, "owned/coverage", s, 4.0/6)
		}
	}
	return p
}

func set(p verdict.Progress, name string, step int, v float64) {
	p.Series[name] = append(p.Series[name], model.Sample{Step: step, Value: v})
}

// from changes the values of a series from a step on.
func from(p verdict.Progress, name string, step int, f func(step int, v float64) float64) {
	for i, s := range p.Series[name] {
		if s.Step >= step {
			p.Series[name][i].Value = f(s.Step, s.Value)
		}
	}
}

// ranks sets the codebook's newest ranks, the last at the last step.
func ranks(p verdict.Progress, v ...float64) {
	last := len(p.Series["total"])
	for i, x := range v {
		set(p, "faithfulness/rank_codebook", last-200*(len(v)-1-i), x)
	}
}

func constant(v float64) func(int, float64) float64 {
	return func(int, float64) float64 { return v }
}

func earlier(psnr ...float64) (all []map[string]float64) {
	for _, v := range psnr {
		all = append(all, map[string]float64{"psnr/eval": v, "infom/eval": v / 40})
	}
	return all
}

func TestJudge(t *testing.T) {
	tests := []struct {
		name   string
		model  string
		steps  int
		change func(p *verdict.Progress)
		kind   verdict.Kind
		rule   string
		why    string // part of it
	}{
		{"nothing yet", "hrr", 0, nil, verdict.None, "no-points", ""},
		{"a few steps", "hrr", 150, nil, verdict.Early, "early", ""},
		{"a few steps of a run that ended", "hrr", 150, func(p *verdict.Progress) { p.State = model.Stopped }, verdict.Healthy, "healthy", ""},
		{"as it should be", "hrr", 2000, nil, verdict.Healthy, "healthy", ""},
		{"VAE as it should be", "betavae", 2000, nil, verdict.Healthy, "healthy", ""},
		{"NaN at once", "hrr", 20, func(p *verdict.Progress) { from(*p, "total", 20, constant(math.NaN())) }, verdict.Diverging, "not-finite", "NaN at step 20"},
		{"infinite", "hrr", 2000, func(p *verdict.Progress) { from(*p, "total", 2000, constant(math.Inf(1))) }, verdict.Diverging, "not-finite", "+Inf at step 2,000"},
		{"one NaN long ago", "hrr", 2000, func(p *verdict.Progress) { p.Series["total"][300].Value = math.NaN() }, verdict.Healthy, "healthy", ""},
		{"the loss grows", "hrr", 2000, func(p *verdict.Progress) { from(*p, "total", 1750, constant(0.6)) }, verdict.Diverging, "loss-rose", "to 0.6 (limit 0.45)"},
		{"one spike of the loss", "hrr", 2000, func(p *verdict.Progress) { p.Series["total"][1990].Value = 99 }, verdict.Healthy, "healthy", ""},
		{"the loss is a little higher", "hrr", 2000, func(p *verdict.Progress) { from(*p, "total", 1750, constant(0.43)) }, verdict.Healthy, "healthy", ""},
		{"PSNR fell", "hrr", 2000, func(p *verdict.Progress) { from(*p, "psnr/eval", 1800, constant(12)) }, verdict.Diverging, "psnr-fell", "from 15.2 dB at step 1,600 to 12.0 dB"},
		{"one low PSNR", "hrr", 2000, func(p *verdict.Progress) { from(*p, "psnr/eval", 2000, constant(9)) }, verdict.Healthy, "healthy", ""},
		{"perplexity fell", "hrr", 2000, func(p *verdict.Progress) { from(*p, "perplexity/window", 1700, constant(20)) }, verdict.Collapsing, "perplexity-fell", "to 20"},
		{"perplexity was always low", "hrr", 2000, func(p *verdict.Progress) { from(*p, "perplexity/window", 1, constant(2.1)) }, verdict.Collapsing, "perplexity-low", "2.1 (limit 2.56 of 128 entries)"},
		{"QLAE's slots take one code each", "qlae", 2000, func(p *verdict.Progress) { from(*p, "perplexity/window", 1, constant(float64(p.Config.M))) }, verdict.Collapsing, "perplexity-low", "limit"},
		{"entries on a line", "hrr", 2000, func(p *verdict.Progress) { ranks(*p, 2.4, 1.8, 1.62) }, verdict.Collapsing, "rank-low", "rank 1.6 at step 2,000 (limit 2)"},
		{"entries on a line once", "hrr", 2000, func(p *verdict.Progress) { ranks(*p, 1.8, 2.4, 1.9) }, verdict.Healthy, "healthy", ""},
		{"entries on a line so far", "hrr", 900, func(p *verdict.Progress) { ranks(*p, 1.8, 1.8, 1.8) }, verdict.Healthy, "healthy", ""},
		{"posterior collapse", "betavae", 2000, func(p *verdict.Progress) { from(*p, "latent/active", 1, constant(0)) }, verdict.Collapsing, "latents-off", "0 of"},
		{"latents go off", "betatcvae", 2000, func(p *verdict.Progress) { from(*p, "latent/active", 1500, constant(3)) }, verdict.Collapsing, "latents-off", "after 7 at best"},
		{"behind every earlier run", "hrr", 2000, func(p *verdict.Progress) { p.Earlier = earlier(24, 24.1, 24.2) }, verdict.Behind, "behind", "PSNR is 16.00 dB; 3 earlier runs had 24.00 dB to 24.20 dB"},
		{"behind two earlier runs alone", "hrr", 2000, func(p *verdict.Progress) { p.Earlier = earlier(24, 24.1) }, verdict.Healthy, "healthy", ""},
		{"behind widely spread runs", "hrr", 2000, func(p *verdict.Progress) { p.Earlier = earlier(16.1, 20, 24) }, verdict.Healthy, "healthy", ""},
		{"no more PSNR", "hrr", 3000, func(p *verdict.Progress) { from(*p, "psnr/eval", 1000, constant(14)) }, verdict.Plateau, "plateau", "14.00 dB since step 2,200"},
		{"no more PSNR, and finished", "hrr", 3000, func(p *verdict.Progress) {
			from(*p, "psnr/eval", 1000, constant(14))
			p.State = model.Finished
		}, verdict.Healthy, "healthy", ""},
	}
	hit := map[string]bool{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := healthy(t, tt.model, tt.steps)
			if tt.change != nil {
				tt.change(&p)
			}
			v := verdict.Judge(p)
			hit[v.Rule] = true
			if v.Kind != tt.kind || v.Rule != tt.rule || !strings.Contains(v.Why, tt.why) || v.Step != tt.steps || v.Title != v.Kind.Title() {
				t.Errorf("%+v", v)
			}
		})
	}
	for _, r := range verdict.Rules() {
		if !hit[r.Key] {
			t.Errorf("no case decides by %q", r.Key)
		}
	}
}

func TestFacts(t *testing.T) {
	p := healthy(t, "hrr", 1000)
	p.Earlier = earlier(13, 13.5, 15, 11)
	p.Earlier = append(p.Earlier, map[string]float64{"psnr/eval": math.NaN()}) // ignored
	want := []string{"55 of 128 entries in use, perplexity 48.2, rising", "InfoM 0.61 at step 1,000, above 4 of 4 earlier runs", "4 of 6 factors own a slot", "PSNR 14.00 dB at step 1,000, above 3 of 4 earlier runs"}
	if got := verdict.Judge(p).Facts; strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%q", got)
	}
	vae := healthy(t, "betavae", 150)
	vae.Config.M = 9
	if got := verdict.Judge(vae).Facts; strings.Join(got, "|") != "7 of 9 latents active" {
		t.Errorf("%q", got)
	}
}

// TestJudgeAnything: for any series there is a verdict with a known rule that can be encoded as JSON.
func TestJudgeAnything(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, -1, math.MaxFloat64, -math.MaxFloat64, 1e-300}
	known := map[string]verdict.Kind{}
	for _, r := range verdict.Rules() {
		known[r.Key] = r.Kind
	}
	for range 2000 {
		cfg, _ := model.Default(model.ModelNames()[rng.IntN(len(model.ModelNames()))], "tiny", "shapes3d-synthetic")
		p := verdict.Progress{Config: cfg, State: []model.State{model.Running, model.Finished, model.Queued}[rng.IntN(3)], Series: map[string][]model.Sample{}}
		for _, name := range verdict.Names() {
			step := 0
			for range rng.IntN(40) {
				step += 1 + rng.IntN(300)
				v := rng.NormFloat64() * 30
				if rng.IntN(8) == 0 {
					v = odd[rng.IntN(len(odd))]
				}
				set(p, name, step, v)
			}
		}
		p.Earlier = earlier(odd[:rng.IntN(len(odd))]...)
		v := verdict.Judge(p)
		if known[v.Rule] != v.Kind || v.Kind == "" {
			t.Fatalf("%+v", v)
		}
		if _, err := json.Marshal(v); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWorseIsNeverHealthier: multiplying the loss from a step on, or shrinking the codebook further, does not turn a bad verdict good.
func TestWorseIsNeverHealthier(t *testing.T) {
	bad := func(name string, at float64) bool {
		p := healthy(t, "hrr", 1500)
		from(p, name, 1200, func(_ int, v float64) float64 { return v * at })
		return verdict.Judge(p).Kind.Bad()
	}
	was := false
	for f := 1.0; f < 20; f *= 1.1 {
		if now := bad("total", f); was && !now {
			t.Errorf("a loss %v times as high is judged healthy again", f)
		} else {
			was = now
		}
	}
	if !was {
		t.Error("no loss is too high")
	}
	was = false
	for f := 1.0; f > 0.01; f /= 1.1 {
		if now := bad("perplexity/window", f); was && !now {
			t.Errorf("a perplexity %v times as high is judged healthy again", f)
		} else {
			was = now
		}
	}
	if !was {
		t.Error("no perplexity is too low")
	}
}

func TestSameConfiguration(t *testing.T) {
	a, _ := model.Default("hrr", "tiny", "shapes3d-synthetic")
	a.LRSchedule = ""
	for _, tt := range []struct {
		name   string
		change func(c *model.Config)
		want   bool
	}{
		{"itself", func(*model.Config) {}, true},
		{"seed, engine, cadence", func(c *model.Config) { c.Seed, c.Engine, c.EvalEvery, c.SampleEvery = 7, "xla:cuda", 3, 4 }, true},
		{"computation", func(c *model.Config) {
			c.Resident, c.StepsPerCall, c.Devices, c.Deterministic = model.Never, 8, 2, true
		}, true},
		{"steps", func(c *model.Config) { c.Steps *= 2 }, true},
		{"learning rate", func(c *model.Config) { c.LR *= 2 }, false},
		{"slots", func(c *model.Config) { c.M++ }, false},
		{"dataset", func(c *model.Config) { c.Dataset = "dsprites" }, false},
	} {
		b := a
		tt.change(&b)
		if got := verdict.SameConfiguration(a, b); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	a.LRSchedule = model.Cosine
	b := a
	b.Steps *= 2
	if verdict.SameConfiguration(a, b) {
		t.Error("runs with cosine schedules of different lengths are compared")
	}
}

// TestDocumented: docs/verdict.md lists every rule in order, word for word.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/verdict.md")
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, r := range verdict.Rules() {
		row := "| `" + r.Key + "` | " + r.Kind.Title() + " | " + r.When + " |"
		i := strings.Index(string(text[at:]), row)
		if i < 0 {
			t.Errorf("docs/verdict.md is missing this row or has it in another place: %s", row)
			continue
		}
		at += i
	}
}
