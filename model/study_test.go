package model

import (
	"slices"
	"strings"
	"testing"
)

// The paper's tables of swept and selected hyperparameters, and ⌈1.5·F⌉ latents.
func TestBaselinesAreThePapers(t *testing.T) {
	for _, c := range []struct {
		model, dataset, field, value string
		m                            int
	}{
		{"betavae", "shapes3d", "beta_kl", "10", 9}, {"betavae", "falcor3d", "beta_kl", "10", 11},
		{"betavae", "isaac3d", "beta_kl", "3", 14}, {"betavae", "mpi3d-complex", "beta_kl", "10", 11},
		{"betatcvae", "shapes3d", "beta_tc", "3", 9}, {"betatcvae", "falcor3d", "beta_tc", "3", 11},
		{"betatcvae", "isaac3d", "beta_tc", "3", 14}, {"betatcvae", "mpi3d-complex", "beta_tc", "3", 11},
		{"vqvae", "shapes3d", "weight_decay", "0.001", 9}, {"vqvae", "falcor3d", "weight_decay", "0.01", 11},
		{"vqvae", "isaac3d", "weight_decay", "0.001", 14}, {"vqvae", "mpi3d-complex", "weight_decay", "1", 11},
		{"qlae", "shapes3d", "weight_decay", "1", 9}, {"qlae", "falcor3d", "weight_decay", "1", 11},
		{"qlae", "isaac3d", "weight_decay", "1", 14}, {"qlae", "mpi3d-complex", "weight_decay", "1", 11},
		{"qlae", "shapes3d-synthetic", "weight_decay", "1", 9},
	} {
		cfg, err := Default(c.model, "paper", c.dataset)
		if err != nil {
			t.Fatal(err)
		}
		f, _ := FieldByName(c.field)
		if got := f.Get(cfg); got != c.value || cfg.M != c.m {
			t.Errorf("%s on %s: %s=%s with %d latents, the paper has %s and %d", c.model, c.dataset, c.field, got, cfg.M, c.value, c.m)
		}
		if source := f.SourceIn(cfg); source != tabSelected {
			t.Errorf("%s on %s: %s is from %q", c.model, c.dataset, c.field, source)
		}
		if cfg.Steps != 125_000 || cfg.Batch != 128 || cfg.LR != 3e-4 || cfg.Clip != 0.5 || cfg.Widths != [4]int{64, 128, 256, 512} {
			t.Errorf("%s on %s: training differs from the paper's other models: %+v", c.model, c.dataset, cfg)
		}
	}
}

func TestSwept(t *testing.T) {
	weights, decays := []float64{0.1, 0.3, 1, 3, 10}, []float64{0.001, 0.01, 0.1, 1}
	for name, want := range map[string][]float64{"betavae": weights, "betatcvae": weights, "vqvae": decays, "qlae": decays} {
		for dataset, known := range map[string]bool{"isaac3d": true, "isaac3d[lighting_intensity=0.0]": true, "sprites[x=0]": false, "sprites": false, "shapes3dx": false} {
			s, ok := Swept(name, dataset)
			if !ok || !slices.Equal(s.Values, want) || !slices.Contains(want, s.Selected) || s.Known != known {
				t.Errorf("%s on %s: %+v, %v", name, dataset, s, ok)
			}
			if ours := strings.HasPrefix(s.Chosen, "ours"); ours == known {
				t.Errorf("%s on %s: chosen by %q", name, dataset, s.Chosen)
			}
			if f, ok := FieldByName(s.Field); !ok || !f.Of(name) {
				t.Errorf("%s sweeps %q, which is not one of its fields", name, s.Field)
			}
		}
	}
	if s, ok := Swept("hrr", "shapes3d"); ok {
		t.Errorf("hrr has one setting for all datasets but sweeps %+v", s)
	}
}

func TestLatents(t *testing.T) {
	for factors, want := range map[int]int{1: 2, 2: 3, 6: 9, 7: 11, 9: 14} {
		if got := Latents(factors); got != want {
			t.Errorf("%d factors: %d latents, want %d", factors, got, want)
		}
		for _, c := range []struct {
			model, dataset string
			want           int
		}{{"qlae", "sprites", want}, {"qlae", "isaac3d", 14}, {"hrr", "sprites", 9}} {
			cfg, _ := Default(c.model, "tiny", c.dataset)
			if got := cfg.WithFactors(factors).M; got != c.want {
				t.Errorf("%s on %s with %d factors has %d slots, want %d", c.model, c.dataset, factors, got, c.want)
			}
		}
	}
}

// A model has only the hyperparameters that it uses; any other is rejected by name, regardless of its value.
func TestFieldsOfModels(t *testing.T) {
	shared := []string{"dataset", "model", "preset", "engine", "precision", "steps", "batch", "seed", "widths", "fc", "m", "lambda_rec",
		"lr", "lr_schedule", "beta1", "beta2", "epsilon", "weight_decay", "decay_lr", "no_bias_decay", "clip", "clip_by", "checkpoint_every", "sample_every", "eval_every", "eval_images", "evaluate", "stop_when", "best_by", "resident", "steps_per_call", "devices", "deterministic"}
	codes := []string{"k", "lambda_vq", "beta", "codebook_lr"}
	owns := map[string][]string{
		"factorvae": {"beta_kl", "gamma_tc", "disc_width", "disc_layers", "disc_lr", "disc_beta1", "disc_beta2"}, "annealedvae": {"gamma_kl", "capacity", "anneal_steps"},
		"dipvae1": {"beta_kl", "lambda_od", "lambda_d"}, "dipvae2": {"beta_kl", "lambda_od", "lambda_d"},
		"tripod": {"k", "lambda_klm", "lambda_nhp", "probes", "epsilon_nhp", "layers_nhp"},
		"ae":     nil, "bioae": {"lambda_nonneg", "lambda_activity"},
		"betavae": {"beta_kl"}, "betatcvae": {"beta_tc"}, "qlae": codes, "vqvae": append([]string{"d", "vq_distance", "codebook_init", "vq_gradient", "ema_decay", "reset_below", "lambda_orth"}, codes...),
		"hrr": append([]string{"d", "lambda_lat", "lambda_val", "lambda_cb", "lambda_tie", "lambda_coherence", "lambda_orth", "vq_gradient", "vq_distance", "binding", "inverse", "symbol_init", "static_codebook", "learn_symbols",
			"no_denoiser", "free_codebook", "ema_decay", "reset_below"}, codes...),
	}
	for _, name := range ModelNames() {
		own, listed := owns[name]
		if !listed {
			t.Errorf("%s is not listed here", name)
		}
		want := append(slices.Clone(shared), own...)
		var got []string
		for _, f := range FieldsOf(name) {
			got = append(got, f.Name)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s has %v\nwant %v", name, got, want)
		}
	}
	for field, text := range map[string]string{"k": "10", "inverse": "exact", "no_denoiser": "true", "lambda_cb": "0.5", "beta_tc": "1"} {
		cfg, _ := Default("betavae", "tiny", "shapes3d")
		cfg.Set(field, text)
		if bad := cfg.Validate(); len(bad) != 1 || !strings.Contains(bad[field], "is not a hyperparameter of betavae") {
			t.Errorf("betavae with %s=%s: %v", field, text, bad)
		}
	}
}

// Published settings of models that the paper does not study: every number with its source, on datasets with and without one.
func TestRecipes(t *testing.T) {
	for _, c := range []struct{ model, dataset, field, value, source string }{
		{"ae", "shapes3d", "weight_decay", "0.001", lqCode}, {"ae", "mpi3d-complex", "weight_decay", "0.001", lqCode},
		{"ae", "isaac3d", "weight_decay", "0.001", "ours, after Shapes3D in " + lqCode}, {"ae", "shapes3d", "steps", "200000", lqCode},
		{"ae", "shapes3d", "batch", "128", lqCode}, {"ae", "shapes3d", "lr", "0.001", lqCode}, {"ae", "shapes3d", "clip_by", "value", lqCode},
		{"ae", "isaac3d", "m", "18", lqCode}, {"ae", "mpi3d-complex", "m", "14", lqCode}, {"ae", "shapes3d-synthetic[scale=0]", "m", "12", lqCode},
		{"bioae", "shapes3d", "lambda_activity", "0.01", lqCode}, {"bioae", "falcor3d", "lambda_activity", "0.01", lqCode},
		{"bioae", "isaac3d", "lambda_activity", "0.1", lqCode}, {"bioae", "sprites", "lambda_activity", "0.1", "default of " + lqCode},
		{"bioae", "shapes3d", "lambda_nonneg", "1", lqCode}, {"bioae", "shapes3d", "weight_decay", "0.0001", lqCode},
		{"tripod", "shapes3d", "lambda_klm", "0.0001", tripodCode}, {"tripod", "mpi3d-complex", "lambda_klm", "1e-08", tripodCode}, {"tripod", "falcor3d", "lambda_klm", "1e-10", tripodCode},
		{"tripod", "isaac3d", "lambda_nhp", "1e-08", tripodCode}, {"tripod", "shapes3d", "lambda_nhp", "0.01", tripodCode}, {"tripod", "sprites", "lambda_klm", "0.0001", "ours, after Shapes3D in " + tripodCode},
		{"tripod", "shapes3d", "k", "12", tripodCode}, {"tripod", "isaac3d", "m", "18", tripodCode}, {"tripod", "shapes3d", "steps", "250000", tripodCode}, {"tripod", "shapes3d", "lr", "0.0002", tripodCode},
		{"factorvae", "isaac3d", "m", "10", studyCode}, {"factorvae", "isaac3d", "gamma_tc", "30", "ours, within the range swept by " + studyCode},
		{"factorvae", "isaac3d", "beta_kl", "1", studyCode}, {"factorvae", "shapes3d", "lr", "0.0001", studyCode}, {"factorvae", "shapes3d", "steps", "300000", studyCode},
		{"factorvae", "shapes3d", "batch", "128", studyCode}, {"factorvae", "shapes3d", "disc_layers", "6", studyCode}, {"factorvae", "shapes3d", "disc_beta2", "0.9", studyCode},
		{"annealedvae", "shapes3d", "anneal_steps", "100000", studyCode}, {"annealedvae", "shapes3d", "gamma_kl", "1000", studyCode}, {"annealedvae", "shapes3d", "batch", "64", studyCode},
		{"dipvae1", "shapes3d", "lambda_d", "100", studyCode}, {"dipvae2", "shapes3d", "lambda_d", "10", studyCode}, {"dipvae2", "shapes3d", "clip", "0", studyCode},
	} {
		cfg, err := Default(c.model, "paper", c.dataset)
		if err != nil {
			t.Fatal(err)
		}
		f, _ := FieldByName(c.field)
		if got, source := f.Get(cfg), f.SourceIn(cfg); got != c.value || source != c.source {
			t.Errorf("%s on %s: %s is %s from %q, want %s from %q", c.model, c.dataset, c.field, got, source, c.value, c.source)
		}
	}
	for dataset, want := range map[string][2]string{"shapes3d": {"0.0001", "ours for tiny; 0.01 in " + tripodCode}, "isaac3d": {"1e-08", tripodCode}} {
		tiny, _ := Default("tripod", "tiny", dataset)
		f, _ := FieldByName("lambda_nhp")
		if got, source := f.Get(tiny), f.SourceIn(tiny); got != want[0] || source != want[1] {
			t.Errorf("tripod at tiny on %s: λ_nhp is %s from %q", dataset, got, source)
		}
	}
	for name, r := range recipes {
		f, ok := FieldByName(r.swept)
		number := false
		if ok {
			_, number = f.at(&Config{}).(*float64)
		}
		if !number || !f.Of(name) {
			t.Errorf("%s tunes %q, which is not a number field of the model", name, r.swept)
		}
		if r.fallback != 0 && !slices.Contains(r.values, r.fallback) {
			t.Errorf("%s: the default %v is not among the values tried", name, r.fallback)
		}
		for _, v := range r.selected {
			if !slices.Contains(r.values, v) {
				t.Errorf("%s: the selected %v is not among the values tried", name, v)
			}
		}
		tiny, _ := Default(name, "tiny", "shapes3d")
		steps, _ := FieldByName("steps")
		if source := steps.SourceIn(tiny); !strings.HasPrefix(source, "ours for tiny") || !strings.Contains(source, r.source) {
			t.Errorf("%s at tiny: steps are from %q", name, source)
		}
	}
	if cfg, _ := Default("ae", "tiny", "sprites"); cfg.WithFactors(4).M != 8 {
		t.Errorf("4 factors give an AE %d latents, want 8", cfg.WithFactors(4).M)
	}
}

// A batch of FactorVAE has two halves, each of at least two images.
func TestBatchOfFactorVAE(t *testing.T) {
	for batch, fits := range map[int]bool{2: false, 3: false, 4: true, 7: false, 32: true} {
		cfg, _ := Default("factorvae", "tiny", "shapes3d")
		cfg.Batch = batch
		if bad := cfg.Validate(); (bad == nil) != fits || !fits && !strings.Contains(bad["batch"], "not an even number of at least 4") {
			t.Errorf("batch %d: %v", batch, bad)
		}
	}
}

// Tripod's second differences need precision: the default is float32, and bf16 is rejected.
func TestPrecisionOfTripod(t *testing.T) {
	cfg, _ := Default("tripod", "tiny", "shapes3d")
	if cfg.Precision != Float32 || cfg.Hints() != nil {
		t.Errorf("by default %q, with %v", cfg.Precision, cfg.Hints())
	}
	cfg.Precision = ""
	if hint := cfg.Hints()["precision"]; !strings.Contains(hint, "float32") || cfg.Validate() != nil {
		t.Errorf("tf32: %q", hint)
	}
	cfg.Precision = BF16
	if bad := cfg.Validate(); len(bad) != 1 || !strings.Contains(bad["precision"], "choose float32") {
		t.Errorf("bf16: %v", bad)
	}
}

func TestEntries(t *testing.T) {
	for name, want := range map[string][2]int{"hrr": {128, 7}, "vqvae": {512, 7}, "qlae": {90, 37}, "betavae": {0, 7}, "bioae": {0, 7}, "tripod": {144, 43}} {
		cfg, _ := Default(name, "tiny", "shapes3d")
		if got := [2]int{cfg.Entries(), cfg.Entry(3, 7)}; got != want {
			t.Errorf("%s: entries and entry of code 7 in slot 3 are %v, want %v", name, got, want)
		}
	}
}
