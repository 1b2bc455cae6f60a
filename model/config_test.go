package model

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

func TestEveryPresetIsValid(t *testing.T) {
	for _, name := range ModelNames() {
		for _, preset := range PresetNames() {
			cfg, err := Default(name, preset, "shapes3d-synthetic")
			if err != nil {
				t.Fatal(err)
			}
			if bad := cfg.Validate(); bad != nil {
				t.Errorf("%s %s: %v", name, preset, bad)
			}
		}
	}
	if _, err := Default("hrr", "huge", ""); err == nil || !strings.Contains(err.Error(), "huge") {
		t.Errorf("unknown preset: %v", err)
	}
}

func TestPaperPresetIsThePapers(t *testing.T) {
	cfg, _ := Default("hrr", "paper", "shapes3d")
	for name, want := range map[string]string{
		"widths": "64,128,256,512", "fc": "512", "d": "512", "m": "9", "k": "512", "steps": "125000", "batch": "128", "lr": "0.0003",
		"codebook_lr": "2", "beta": "0.6", "lambda_rec": "1", "lambda_vq": "0.25", "lambda_lat": "0", "lambda_cb": "0.001", "clip": "0.5",
		"beta1": "0.9", "beta2": "0.999", "epsilon": "1e-08", "weight_decay": "0",
	} {
		f, ok := FieldByName(name)
		if !ok {
			t.Fatalf("no field %s", name)
		}
		if got := f.Get(cfg); got != want {
			t.Errorf("%s is %s, the paper has %s", name, got, want)
		}
		if source := f.SourceIn(cfg); source != f.Source {
			t.Errorf("%s: source %q", name, source)
		}
	}
	lr, _ := FieldByName("lr")
	cfg.Preset = "tiny"
	if source := lr.SourceIn(cfg); !strings.Contains(source, "ours") || !strings.Contains(source, "0.0003") {
		t.Errorf("tiny's learning rate claims %q", source)
	}
}

// Decay per step is what the paper selected at its learning rate, regardless of a preset's learning rate.
func TestDecayKeepsItsRate(t *testing.T) {
	for _, name := range []string{"qlae", "vqvae"} {
		for _, preset := range PresetNames() {
			c, err := Default(name, preset, "shapes3d")
			if err != nil {
				t.Fatal(err)
			}
			rate := c.DecayLR
			if rate == 0 {
				rate = c.LR
			}
			if rate != 3e-4 {
				t.Errorf("%s %s: decay rate %v", name, preset, rate)
			}
		}
	}
	if c, _ := Default("hrr", "tiny", "shapes3d"); c.DecayLR != 0 {
		t.Error("DecayLR is set although nothing decays")
	}
}

func TestHints(t *testing.T) {
	for _, c := range []struct {
		model string
		batch int
		says  string
	}{{"betatcvae", 32, "at most log(batch) = 3.5 nats"}, {"betatcvae", 128, ""}, {"betavae", 32, ""}} {
		cfg, err := Default(c.model, "tiny", "shapes3d")
		if err != nil {
			t.Fatal(err)
		}
		cfg.Batch = c.batch
		if got := cfg.Hints()["batch"]; !strings.Contains(got, c.says) || (got == "") != (c.says == "") {
			t.Errorf("%s in batches of %d: %q", c.model, c.batch, got)
		}
	}
}

func TestFieldsRoundTrip(t *testing.T) {
	want, _ := Default("hrr", "small", "shapes3d-synthetic")
	want.StaticCodebook, want.Seed = true, 7
	var got Config
	for _, f := range Fields() {
		if err := f.Set(&got, f.Get(want)); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	raw, _ := json.Marshal(want)
	var entries map[string]any
	json.Unmarshal(raw, &entries)
	for _, f := range Fields() {
		delete(entries, f.Name)
	}
	if len(entries) > 0 {
		t.Errorf("no field describes %v", entries)
	}
}

// How a run is computed does not change its identity: WithoutComputing clears these fields and no others, and their defaults are absent from
// JSON, from which IDs are made.
func TestComputingFields(t *testing.T) {
	plain, _ := Default("hrr", "tiny", "shapes3d-synthetic")
	raw, _ := json.Marshal(plain)
	for name, text := range map[string]string{"engine": "cpu", "resident": Always, "steps_per_call": "8", "devices": "4", "deterministic": "true"} {
		cfg := plain
		if err := cfg.Set(name, text); err != nil {
			t.Fatal(err)
		}
		f, _ := FieldByName(name)
		if !f.Computing() || cfg == plain || f.Get(cfg) != text || cfg.WithoutComputing() != plain.WithoutComputing() || cfg.Validate() != nil {
			t.Errorf("%s=%s: %+v, %v", name, text, cfg, cfg.Validate())
		}
		if name != "engine" && strings.Contains(string(raw), name) {
			t.Errorf("a default configuration names %s: %s", name, raw)
		}
	}
	for _, f := range Fields() {
		if cleared := f.Get(plain.WithoutComputing()) != f.Get(plain); cleared && !f.Computing() {
			t.Errorf("%s is cleared", f.Name)
		}
	}
	one := plain
	if err := one.Set("devices", "1"); err != nil || one != plain {
		t.Errorf("devices=1 is not the default: %d, %v", one.Devices, err)
	}
}

func TestValidateNamesEachField(t *testing.T) {
	cases := []struct{ field, text, says string }{
		{"k", "1", "below the minimum 2"}, {"m", "0", "below the minimum 1"}, {"lr", "-1", "not above 0"}, {"lr", "0", "not above 0"}, {"beta", "-0.1", "below the minimum 0"},
		{"model", "gan", `"gan" is not one of`}, {"preset", "", "not one of"}, {"engine", "abacus", "not one of"}, {"dataset", "", "choose one"},
		{"inverse", "left", "not one of"}, {"widths", "1,2,3,0", "below the minimum 1"}, {"beta1", "1", "above"}, {"batch", "0", "below the minimum 1"}, {"seed", "-1", "below the minimum 0"},
		{"resident", "yes", "not one of auto, always, never"}, {"steps_per_call", "65", "above the maximum 64"}, {"steps_per_call", "-1", "below the minimum 0"},
		{"devices", "-1", "below the minimum 1"}, {"devices", "65", "above the maximum 64"}, {"devices", "3", "3 devices cannot share a batch of 32 images equally"},
	}
	for _, c := range cases {
		cfg, _ := Default("hrr", "tiny", "shapes3d-synthetic")
		if err := cfg.Set(c.field, c.text); err != nil {
			t.Errorf("set %s=%s: %v", c.field, c.text, err)
			continue
		}
		bad := cfg.Validate()
		if len(bad) != 1 || !strings.Contains(bad[c.field], c.says) {
			t.Errorf("%s=%s: %v, want one sentence with %q", c.field, c.text, bad, c.says)
		}
	}
	cfg, _ := Default("hrr", "tiny", "shapes3d-synthetic")
	cfg.Resident, cfg.Devices = Always, 2
	if bad := cfg.Validate(); len(bad) != 1 || !strings.Contains(bad["resident"], "one device only") {
		t.Errorf("a resident dataset of two devices: %v", bad)
	}
	cfg = Config{Model: "hrr"}
	if bad := cfg.Validate(); len(bad) < 10 {
		t.Errorf("an empty configuration has only %d problems: %v", len(bad), bad)
	}
}

func TestSetRefusesWhatIsNoNumber(t *testing.T) {
	cfg, _ := Default("hrr", "tiny", "shapes3d-synthetic")
	before := cfg
	for name, text := range map[string]string{"steps": "many", "lr": "NaN", "clip": "inf", "widths": "8,16", "no_denoiser": "perhaps", "latents": "9"} {
		err := cfg.Set(name, text)
		var bad Invalid
		if err == nil || !asInvalid(err, &bad) || bad[name] == "" {
			t.Errorf("%s=%s gives %v", name, text, err)
		}
	}
	if cfg != before {
		t.Errorf("a rejected value changed the configuration: %+v", cfg)
	}
}

func asInvalid(err error, out *Invalid) bool {
	v, ok := err.(Invalid)
	*out = v
	return ok
}

func TestPointKeepsWhatIsNotFinite(t *testing.T) {
	in := Point{Step: 3, Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Values: map[string]float64{
		"a": 1.5, "nan": math.NaN(), "up": math.Inf(1), "down": math.Inf(-1), "small": 1e-300}}
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out Point
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	if out.Step != 3 || !out.Time.Equal(in.Time) || len(out.Values) != 5 {
		t.Errorf("%s became %+v", raw, out)
	}
	for name, v := range in.Values {
		if got := out.Values[name]; got != v && !(math.IsNaN(v) && math.IsNaN(got)) {
			t.Errorf("%s: %v became %v", name, v, got)
		}
	}
	for _, bad := range []string{`{"step":0,"values":{}}`, `{"step":1,"values":{"a":"x"}}`, `[]`} {
		if err := json.Unmarshal([]byte(bad), &out); err == nil {
			t.Errorf("%s was read as a point", bad)
		}
	}
}

func TestNewID(t *testing.T) {
	now := time.Date(2026, 11, 20, 19, 0, 0, 0, time.UTC)
	a, b := NewID(now), NewID(now)
	if a == b || !ValidID(a) || !strings.HasPrefix(a, "20261120-190000-") {
		t.Errorf("ids %q and %q", a, b)
	}
	for _, bad := range []string{"", ".", "..", "a/b", "../x", "A", "-x", "é", strings.Repeat("a", 65)} {
		if ValidID(bad) {
			t.Errorf("%q passes as an id", bad)
		}
	}
}

// TestFollowingNeedsFreeEntries: generated entries cannot be moved; the error says which options to set.
func TestFollowingNeedsFreeEntries(t *testing.T) {
	c, err := Default("hrr", "tiny", "shapes3d")
	if err != nil {
		t.Fatal(err)
	}
	c.EMADecay, c.ResetBelow = 0.99, 0.1
	if bad := c.Validate(); len(bad) != 2 || !strings.Contains(bad["ema_decay"], "set free_codebook to true") || bad["reset_below"] == "" {
		t.Errorf("with a generator: %v", bad)
	}
	c.FreeCodebook = true
	if bad := c.Validate(); bad != nil {
		t.Errorf("free: %v", bad)
	}
	c.StaticCodebook = true
	if bad := c.Validate(); bad["ema_decay"] == "" {
		t.Errorf("static: %v", bad)
	}
}
