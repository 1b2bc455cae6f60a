package sweep

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slotscope/model"
)

// small returns a plan with one part that selects β for the β-VAE over two seeds, then runs it and HRR with three.
func small() Plan {
	return Plan{Name: "Small sweep", Preset: "tiny", Steps: 50, Set: map[string]string{"batch": "8"}, Parts: []Part{{
		Name: "main", Models: []string{"betavae", "hrr"}, Datasets: []string{"shapes3d-synthetic"}, Seeds: []int64{0, 1, 2},
		Select: &Select{Seeds: []int64{100, 101}, Axes: []Axis{{Field: "beta_kl", Values: []string{"1", "10"}, Models: []string{"betavae"}}}},
	}}}
}

// lab stores runs in memory and finishes them on request.
type lab map[string]Found

func (l lab) find(id string) (Found, bool) {
	f, ok := l[id]
	return f, ok
}

// finish ends an item's run with an InfoM.
func (l lab) finish(item Item, infom float64) {
	r := model.Run{ID: item.ID, Config: item.Config}
	r.State, r.Step, r.ImagesPerSecond = model.Finished, item.Config.Steps, 100
	l[item.ID] = Found{Run: r, Scores: &model.Scores{Step: item.Config.Steps, PSNR: 30, Seconds: 2, Metrics: &model.Metrics{InfoM: model.Score(infom)}}}
}

func TestSweepFromNothingToTheEnd(t *testing.T) {
	p, l := small(), lab{}
	b := p.Look(l.find)
	if len(b.Items) != 2*2+3 || b.Waiting != 3 || b.Total() != 10 || b.Count(Planned) != 7 || p.Runs() != 10 {
		t.Fatalf("%d items, %d waiting, %d in all", len(b.Items), b.Waiting, p.Runs())
	}
	if _, known := b.Left(); known {
		t.Error("the remaining time is known although nothing has run")
	}
	for _, s := range b.Items { // β 10 is better by mean InfoM: (0.9 + 0.5)/2 against (0.6 + 0.6)/2
		switch {
		case s.Selecting && s.Value == "1":
			l.finish(s.Item, 0.6)
		case s.Selecting && s.Config.Seed == 100:
			l.finish(s.Item, 0.9)
		case s.Selecting:
			if c := p.Look(l.find).Choices[0]; c.Chosen != "" || c.Problem != "" {
				t.Errorf("chosen before every run has ended: %+v", c)
			}
			l.finish(s.Item, 0.5)
		}
	}
	b = p.Look(l.find)
	if c := b.Choices[0]; c.Chosen != "10" || c.Seeds[1] != 2 || c.InfoM[1] != 0.7 || b.Waiting != 0 || len(b.Items) != 10 {
		t.Fatalf("%+v, %d items", c, len(b.Items))
	}
	for _, s := range b.Items {
		if s.Stage == Planned && s.Config.Model == "betavae" && s.Config.BetaKL != 10 {
			t.Errorf("%s runs with β %v", s.Name, s.Config.BetaKL)
		}
	}
	// six runs are left, of 50 steps of 8 images at 100 images a second and 2 s of evaluation: 6·(4 + 2)
	if left, known := b.Left(); !known || left < 35.9 || left > 36.1 {
		t.Errorf("%v s left", left)
	}
	if done, total := b.Steps(); done != 200 || total != 500 {
		t.Errorf("%d of %d steps", done, total)
	}
	for _, s := range b.Items {
		if s.Stage == Planned {
			l.finish(s.Item, 0.8)
		}
	}
	if b = p.Look(l.find); !b.Over() || b.Count(Done) != 10 {
		t.Errorf("%d done", b.Count(Done))
	}
}

func TestStages(t *testing.T) {
	p := small()
	first := p.Look(lab{}.find).Items[0]
	run := func(state model.State, change func(*Found)) lab {
		l := lab{}
		l.finish(first.Item, 0.5)
		f := l[first.ID]
		f.Run.State = state
		if change != nil {
			change(&f)
		}
		l[first.ID] = f
		return l
	}
	for _, c := range []struct {
		l       lab
		stage   Stage
		problem string
	}{
		{lab{}, Planned, ""},
		{run(model.Queued, nil), Live, ""},
		{run(model.Stopping, nil), Live, ""},
		{run(model.Stopped, nil), Halted, ""},
		{run(model.Interrupted, nil), Halted, ""},
		{run(model.Failed, func(f *Found) { f.Run.Reason = "out of memory" }), Failed, "out of memory"},
		{run(model.Finished, nil), Done, ""},
		{run(model.Finished, func(f *Found) { f.Scores = nil }), Unmeasured, ""},
		{run(model.Finished, func(f *Found) { f.Scores.Metrics = nil }), Unmeasured, ""},
		{run(model.Finished, func(f *Found) { f.Scores.Metrics, f.Problem = nil, "no factors" }), Failed, "no factors"},
		{run(model.Finished, func(f *Found) { f.Run.Config.Steps = 70 }), Failed, "changed"},
		{run(model.Finished, func(f *Found) { f.Run.Config.Engine, f.Run.Config.Devices = "xla:cuda", 2 }), Done, ""},
	} {
		s := p.Look(c.l.find).Items[0]
		if s.Stage != c.stage || !strings.Contains(s.Problem, c.problem) || (c.problem == "") != (s.Problem == "") {
			t.Errorf("stage %q problem %q, want %q %q", s.Stage, s.Problem, c.stage, c.problem)
		}
	}
}

// A run's ID depends on what it learns, not on how it is computed.
func TestRunIDs(t *testing.T) {
	cfg, err := model.Default("hrr", "tiny", "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	want := RunID(cfg)
	cfg.Engine, cfg.Resident, cfg.StepsPerCall, cfg.Devices, cfg.Deterministic = "cpu", model.Never, 2, 4, true
	if got := RunID(cfg); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestFailedRunsDoNotHoldUpAChoice(t *testing.T) {
	p, l := small(), lab{}
	for i, s := range p.Look(l.find).Items {
		if !s.Selecting {
			continue
		}
		l.finish(s.Item, 0.4)
		if i < 3 { // all of β 1 and one of β 10
			f := l[s.ID]
			f.Run.State = model.Failed
			f.Scores = nil
			l[s.ID] = f
		}
	}
	c := p.Look(l.find).Choices[0]
	if c.Chosen != "10" || fmt.Sprint(c.Seeds) != "[0 1]" {
		t.Errorf("%+v", c)
	}
	for id, f := range l {
		f.Run.State, f.Scores = model.Failed, nil
		l[id] = f
	}
	b := p.Look(l.find)
	if c := b.Choices[0]; c.Chosen != "" || !strings.Contains(c.Problem, "InfoM") || len(b.Problems()) != 1 {
		t.Errorf("%+v", c)
	}
	for _, s := range b.Items {
		if s.Stage == Planned {
			l.finish(s.Item, 0.5)
		}
	}
	if b = p.Look(l.find); !b.Over() || b.Waiting != 3 {
		t.Error("runs that wait for a choice that cannot be made must not keep a sweep open")
	}
}

// The paper: 4 datasets × (2 VAEs × 5 values + 2 VQs × 4 values) × 2 seeds to choose, then 4 × 5 models × 5 seeds, 4 × 9 × 5
// of latent dimension and codebook size, 4 × (1 + 14) × 5 ablations and 4 × (1 + 4) × 5 remedies.
func TestPaper(t *testing.T) {
	p, err := Paper(Scale{Preset: "paper"})
	if err != nil {
		t.Fatal(err)
	}
	if want := 4*18*2 + 4*5*5 + 4*9*5 + 4*15*5 + 4*5*5; p.Runs() != want {
		t.Errorf("%d runs, want %d", p.Runs(), want)
	}
	b := p.Look(lab{}.find)
	ids := map[string]bool{}
	for _, s := range b.Items {
		if ids[s.ID] || !model.ValidID(s.ID) {
			t.Errorf("id %q is invalid or occurs twice", s.ID)
		}
		ids[s.ID] = true
	}
	// plain HRR is in all three parts with the same five seeds, so it is trained once
	if want := 4*18*2 + 4*5 + 4*8*5 + 4*14*5 + 4*5*5; len(b.Items) != want || b.Waiting != 4*4*5 {
		t.Errorf("%d items, want %d; %d waiting", len(b.Items), want, b.Waiting)
	}
	for _, s := range b.Items {
		if s.Selecting != (s.Config.Seed >= selectionSeeds) {
			t.Errorf("%s: selection seeds must differ from result seeds", s.Name)
		}
		if s.Config.Steps != 125_000 {
			t.Errorf("%s: %d steps", s.Name, s.Config.Steps)
		}
	}
	q, err := Paper(Scale{Preset: "tiny", Steps: 200, Seeds: 2, Datasets: []string{"shapes3d-synthetic"}, Models: []string{"hrr"}, Parts: []string{"main"}})
	if err != nil || q.Runs() != 2 || q.Parts[0].Select != nil || q.Look(lab{}.find).Items[0].Config.Steps != 200 {
		t.Errorf("scaled down: %v %+v", err, q)
	}
	if q.ID() == p.ID() || !strings.HasPrefix(q.ID(), "paper-") {
		t.Errorf("ids %s and %s", q.ID(), p.ID())
	}
}

func TestAvailable(t *testing.T) {
	here := func(names ...string) func(string) bool {
		return func(d string) bool { return strings.Contains(" "+strings.Join(names, " ")+" ", " "+d+" ") }
	}
	kept, missing := Available(PaperDatasets(), here("shapes3d-synthetic", "isaac3d"))
	if fmt.Sprint(kept, missing) != "[shapes3d-synthetic isaac3d] [shapes3d falcor3d mpi3d-complex]" {
		t.Errorf("%v %v", kept, missing)
	}
	kept, missing = Available(PaperDatasets(), here("shapes3d", "shapes3d-synthetic", "falcor3d", "isaac3d", "mpi3d-complex"))
	if len(kept) != 4 || missing != nil {
		t.Errorf("%v %v", kept, missing)
	}
}

func TestReadRefuses(t *testing.T) {
	whole := string(small().JSON())
	if p, err := Read(strings.NewReader(whole)); err != nil || p.ID() != small().ID() {
		t.Fatalf("a plan does not read back as itself: %v", err)
	}
	for _, c := range []struct{ from, to, key, say string }{
		{`"tiny"`, `"huge"`, "preset", "huge"},
		{`"betavae",`, `"gan",`, "parts[0].models", "gan"},
		{`"seeds": [
        0,
        1,
        2
      ]`, `"seeds": []`, "parts[0].seeds", "at least one"},
		{`"field": "beta_kl"`, `"field": "colour"`, "parts[0].vary", "colour"},
		{`"field": "beta_kl"`, `"field": "seed"`, "parts[0].vary", "can be varied" /* it is the part's own */},
		{`"batch": "8"`, `"batch": "many"`, "parts", "many"},
		{`"batch": "8"`, `"batch": "0"`, "parts", "minimum"},
		{`"batch": "8"`, `"batch": "8"}, "eval": {"luck": 3`, "eval", "luck"},
		{`"name": "Small sweep"`, `"nome": "x"`, "", "nome"},
		{`"Small sweep"`, `" "`, "name", "name"},
		{`"Small sweep"`, `"two\nlines"`, "name", "one line"},
		{`"steps": 50`, `"steps": -4`, "steps", "-4 is below 0"},
		{`"batch": "8"`, `"batch": "8"}, "eval": {"pairs": -1`, "eval", "pairs: -1 is negative"},
		{`"Small sweep"`, `"` + strings.Repeat("x", 1<<20) + `"`, "", "larger than the limit of 1048576 bytes"},
		{`{`, `[`, "", "JSON"},
	} {
		text := strings.Replace(whole, c.from, c.to, 1)
		if text == whole {
			t.Fatalf("%s is not in the plan", c.from)
		}
		_, err := Read(strings.NewReader(text))
		var bad model.Invalid
		if !errors.As(err, &bad) || !strings.Contains(bad[c.key], c.say) {
			t.Errorf("%s → %s: %v", c.from, c.to, err)
		}
	}
	var bad model.Invalid
	big := small()
	big.Parts[0].Vary = []Axis{{Field: "lr", Values: strings.Split(strings.Repeat("0.001,", 2000)+"0.1", ",")}}
	if err := big.Validate(); !errors.As(err, &bad) || !strings.Contains(bad["parts"], "the limit is") {
		t.Errorf("too many runs: %v", err)
	}
}

func TestEvalFlags(t *testing.T) {
	p := small()
	p.Eval = map[string]int{"pairs": 10, "noise": 20}
	for _, s := range p.Look(lab{}.find).Items {
		want := "--images 10000 --noise 20 --pairs 10"
		if s.Selecting {
			want += " --noise 0 --pairs 0 --heldout=false"
		}
		if got := strings.Join(s.EvalFlags(), " "); got != want {
			t.Errorf("%s: %s, want %s", s.Name, got, want)
		}
	}
}

func TestStore(t *testing.T) {
	dir := t.TempDir()
	s := OpenStore(dir)
	if all, err := s.List(); len(all) != 0 || err != nil {
		t.Errorf("%v %v", all, err)
	}
	one, err := s.Save(small())
	if err != nil {
		t.Fatal(err)
	}
	one.Active = true
	if err := s.SetMark(one.ID, one.Mark); err != nil {
		t.Fatal(err)
	}
	again, err := s.Save(small())
	if err != nil || !again.Active || again.ID != one.ID || again.Plan.Runs() != 10 {
		t.Errorf("saved again, it loses its mark: %+v %v", again, err)
	}
	os.MkdirAll(filepath.Join(dir, "sweeps", "broken"), 0o755)
	os.WriteFile(filepath.Join(dir, "sweeps", "broken", "plan.json"), []byte("{"), 0o644)
	if all, err := s.List(); len(all) != 1 || err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("%v %v", all, err)
	}
	for _, id := range []string{"nothing", "../runs", ""} {
		if _, err := s.Get(id); !errors.Is(err, model.ErrNotFound) || !strings.HasPrefix(err.Error(), "no sweep ") {
			t.Errorf("%q: %v", id, err)
		}
		if err := s.Delete(id); !errors.Is(err, model.ErrNotFound) {
			t.Errorf("deleting %q: %v", id, err)
		}
	}
	if err := s.Delete(one.ID); err != nil {
		t.Error(err)
	}
	if _, err := s.Get(one.ID); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("still exists after deletion: %v", err)
	}
}

// TestSettle: baselines have as many latents as a separately created run of the same model, for any dataset.
func TestSettle(t *testing.T) {
	factors := map[string]int{"shapes3d": 6, "mine": 3, "mine[a=1]": 3, "isaac3d[a=1]": 9}
	count := func(dataset string) (int, error) {
		if n, ok := factors[dataset]; ok {
			return n, nil
		}
		return 0, fmt.Errorf("no dataset %q", dataset)
	}
	p := Plan{Name: "latents", Preset: "tiny", Parts: []Part{{Name: "main", Models: []string{"qlae", "hrr"}, Datasets: []string{"shapes3d", "mine", "mine[a=1]", "isaac3d[a=1]"}, Seeds: []int64{0}}}}
	settled, err := p.Settle(count)
	if err != nil || len(settled.Factors) != 2 {
		t.Fatalf("%v, %v", settled.Factors, err)
	}
	got := map[string]int{}
	for _, item := range settled.Look(lab{}.find).Items {
		got[item.Config.Model+" "+item.Config.Dataset] = item.Config.M
	}
	want := map[string]int{"qlae shapes3d": 9, "qlae mine": 5, "qlae mine[a=1]": 5, "qlae isaac3d[a=1]": 14, "hrr shapes3d": 9, "hrr mine": 9, "hrr mine[a=1]": 9, "hrr isaac3d[a=1]": 9}
	if !maps.Equal(got, want) {
		t.Errorf("latents %v, want %v", got, want)
	}
	again, err := Read(bytes.NewReader(settled.JSON()))
	if err != nil || again.ID() != settled.ID() {
		t.Errorf("read again: ID %s, want %s; %v", again.ID(), settled.ID(), err)
	}
	p.Parts[0].Datasets = []string{"nowhere"}
	var bad model.Invalid
	if _, err := p.Settle(count); !errors.As(err, &bad) || !strings.Contains(bad["datasets"], "nowhere") {
		t.Errorf("missing dataset: %v", err)
	}
}

// A part and its selection may have a different size than the plan; a different preset uses its own steps, and a part's settings apply only to
// its own runs and selection.
func TestPartsOfOtherSizes(t *testing.T) {
	p := small()
	p.Parts[0].Size = Size{Preset: "small"}
	p.Parts[0].Set = map[string]string{"lr_schedule": "cosine"}
	p.Parts[0].Select.Size = Size{Preset: "tiny", Steps: 20}
	p.Parts = append(p.Parts, Part{Name: "control", Models: []string{"hrr"}, Datasets: []string{"shapes3d-synthetic"}, Seeds: []int64{0}})
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	type size struct {
		preset   string
		steps    int
		schedule string
	}
	own, err := model.Default("hrr", "small", "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]size{}
	for _, s := range p.Look(lab{}.find).Items {
		kind := p.Parts[s.Part].Name
		if s.Selecting {
			kind += " choice"
		}
		got[kind] = size{s.Config.Preset, s.Config.Steps, s.Config.LRSchedule}
	}
	want := map[string]size{"main": {"small", own.Steps, "cosine"}, "main choice": {"tiny", 20, "cosine"}, "control": {"tiny", 50, model.WSD}}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	again, err := Read(bytes.NewReader(p.JSON()))
	if err != nil || again.ID() != p.ID() {
		t.Errorf("written and read, the plan is %s (%v), want %s", again.ID(), err, p.ID())
	}
	p.Parts[0].Preset, p.Parts[0].Select.Steps = "huge", -1
	var bad model.Invalid
	if err := p.Validate(); !errors.As(err, &bad) || bad["parts[0].preset"] == "" || bad["parts[0].select.steps"] == "" {
		t.Errorf("an unknown preset and negative steps: %v", err)
	}
}

// The field protocol has every model once with every seed, tunes models with a tuned hyperparameter, and varies m and d together.
func TestFieldProtocol(t *testing.T) {
	p, err := Field(Scale{Preset: "tiny", Seeds: 3, Datasets: []string{"shapes3d-synthetic"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Parts) != 1 || p.Runs() != 3*len(model.ModelNames()) || !slices.Equal(p.Parts[0].Models, model.ModelNames()) {
		t.Errorf("%d parts, %d runs of %v", len(p.Parts), p.Runs(), p.Parts[0].Models)
	}
	if p, err = Field(Scale{Preset: "tiny", Seeds: 1, Datasets: []string{"shapes3d-synthetic"}, Parts: []string{"tuned", "ratio"}}); err != nil {
		t.Fatal(err)
	}
	for _, name := range model.ModelNames() {
		a, ok := p.Parts[0].axis(name)
		if swept, has := model.Swept(name, "shapes3d-synthetic"); ok != has || a.Field != swept.Field || len(a.Values) != len(swept.Values) {
			t.Errorf("%s is tuned over %+v", name, a)
		}
	}
	if n := p.Parts[1].countSettings("hrr"); p.Parts[1].Name != RatioPart || n != 15 {
		t.Errorf("%s has %d settings", p.Parts[1].Name, n)
	}
	p, err = Field(Scale{Preset: "tiny", Seeds: 2, Models: []string{"ae", "hrr"}, Datasets: []string{"isaac3d"}, Parts: []string{"splits"}})
	if err != nil || p.Runs() != 2*2*4 || !slices.Contains(p.Datasets(), "isaac3d[split=composition]") {
		t.Fatalf("%d runs on %v, %v", p.Runs(), p.Datasets(), err)
	}
	if item, err := p.Item(0, "ae", "isaac3d[split=extrapolation]", 0, nil); err != nil || item.Config.M != 18 {
		t.Errorf("an AE on a split has %d latents, %v", item.Config.M, err)
	}
	if _, err := Field(Scale{Preset: "tiny", Parts: []string{"grid"}}); err == nil || !strings.Contains(err.Error(), "models, tuned, ratio, splits") {
		t.Errorf("an unknown part gives %v", err)
	}
}
