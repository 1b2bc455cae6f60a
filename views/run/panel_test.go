package run

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"slotscope/model"
)

// Every model's page has charts of its loss terms and statistics, and no charts of series that it does not measure.
func TestPanelsOfModels(t *testing.T) {
	shared := []string{"total", "psnr/eval", "recon", "grad_norm", "images_per_second", "latent/norm2", "latent/var", "latent/mean", "infom/eval", "infoe/eval", "infoc/eval", "owned/factors", "process/cpu", "process/memory"}
	codes := []string{"commit", "perplexity/batch", "perplexity/window", "perplexity/used", "codebook/norm2", "codebook/var", "codebook/mean"}
	gaussian := []string{"latent/posterior_var", "latent/active"}
	owns := map[string][]string{
		"hrr": append([]string{"vq", "latent", "value", "codebook", "tie", "coherence", "orthogonality", "faithfulness/cos_bundle", "faithfulness/cos_retrieval",
			"faithfulness/cos_denoised", "faithfulness/reencode", "faithfulness/cleanup"}, codes...),
		"vqvae":       append([]string{"vq", "orthogonality"}, codes...),
		"qlae":        append([]string{"quantize"}, codes...),
		"ae":          {"latent/active"},
		"tripod":      {"klm", "nhp", "perplexity/batch", "perplexity/window", "perplexity/used"},
		"factorvae":   append([]string{"kl", "tc", "discriminator", "discriminator/accuracy", "discriminator/grad_norm"}, gaussian...),
		"annealedvae": append([]string{"kl", "kl/capacity", "gap"}, gaussian...),
		"dipvae1":     append([]string{"kl", "offdiagonal", "diagonal"}, gaussian...),
		"dipvae2":     append([]string{"kl", "offdiagonal", "diagonal"}, gaussian...),
		"bioae":       {"nonneg", "activity", "latent/active"},
		"betavae":     append([]string{"kl"}, gaussian...),
		"betatcvae":   append([]string{"mi", "tc", "dwkl"}, gaussian...),
	}
	for _, name := range model.ModelNames() {
		own, listed := owns[name]
		if !listed {
			t.Errorf("%s is missing in this test", name)
		}
		cfg, err := model.Default(name, "tiny", "shapes3d")
		if err != nil {
			t.Fatal(err)
		}
		view := RunView{Run: model.Run{Config: cfg}, Pixels: 64 * 64 * 3}
		if _, err := json.Marshal(view.data()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []string
		for _, p := range view.panels() {
			if p.Scale != nil { // the weighted terms
				weighted(t, cfg, p)
				continue
			}
			got = append(got, p.Series...)
		}
		want := append(slices.Clone(shared), own...)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s has charts of %v\nwant %v", name, got, want)
		}
		for _, g := range view.config() {
			for _, row := range g.Rows {
				if !row.Field.Of(name) || row.Changed {
					t.Errorf("%s: %s is listed, changed: %v", name, row.Field.Name, row.Changed)
				}
			}
		}
	}
}

// weighted checks the contributions: every term with a nonzero weight, times its weight; divergences are per pixel and channel.
func weighted(t *testing.T, c model.Config, p Panel) {
	t.Helper()
	want := map[string]map[string]float64{
		"hrr":         {"recon": c.LambdaRec, "vq": c.LambdaVQ, "commit": c.LambdaCommit, "codebook": c.LambdaCB},
		"vqvae":       {"recon": c.LambdaRec, "vq": c.LambdaVQ, "commit": c.LambdaCommit},
		"qlae":        {"recon": c.LambdaRec, "quantize": c.LambdaVQ, "commit": c.LambdaCommit},
		"betavae":     {"recon": c.LambdaRec, "kl": c.BetaKL / 12288},
		"ae":          nil, // a single term has no chart of contributions
		"tripod":      {"recon": 1, "klm": 1e-4, "nhp": 1e-4},
		"bioae":       {"recon": 1, "nonneg": 1, "activity": 0.01},
		"factorvae":   {"recon": 1, "kl": 1. / 12288, "tc": 30. / 12288},
		"annealedvae": {"recon": 1, "gap": 1000. / 12288},
		"dipvae1":     {"recon": 1, "kl": 1. / 12288, "offdiagonal": 10. / 12288, "diagonal": 100. / 12288},
		"dipvae2":     {"recon": 1, "kl": 1. / 12288, "offdiagonal": 10. / 12288, "diagonal": 10. / 12288},
		"betatcvae":   {"recon": c.LambdaRec, "mi": 1. / 12288, "tc": c.BetaTC / 12288, "dwkl": 1. / 12288},
	}[c.Model]
	got := map[string]float64{}
	for i, name := range p.Series {
		got[name] = p.Scale[i]
	}
	if !maps.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }) || len(p.Labels) != len(p.Series) {
		t.Errorf("%s: contributions %v, want %v", c.Model, got, want)
	}
}

// TestIdleTermsAreFolded: terms of weight 0 are collapsed; terms with a weight are not.
func TestIdleTermsAreFolded(t *testing.T) {
	cfg, err := model.Default("hrr", "tiny", "shapes3d")
	if err != nil {
		t.Fatal(err)
	}
	idle := func() (names []string) {
		for _, g := range (RunView{Run: model.Run{Config: cfg}}).groups() {
			for _, p := range g.Idle {
				names = append(names, p.Series[0])
			}
		}
		return names
	}
	if got, want := idle(), []string{"latent", "value", "tie", "coherence", "orthogonality"}; !slices.Equal(got, want) {
		t.Errorf("collapsed %v, want %v", got, want)
	}
	cfg.LambdaTie = 0.01
	if slices.Contains(idle(), "tie") {
		t.Error("a term with a nonzero weight is collapsed")
	}
	groups := RunView{Run: model.Run{Config: cfg}}.groups()
	var first []string
	for _, p := range groups[0].Panels {
		first = append(first, p.Title)
	}
	if want := []string{"Total loss", "Perplexity", "PSNR", "InfoM"}; groups[0].Title != "" || !slices.Equal(first, want) {
		t.Errorf("the first charts are %v, want %v", first, want)
	}
}

// TestChartsOfAnotherProgram: an external run shows only its logged series; without points it shows a message.
func TestChartsOfAnotherProgram(t *testing.T) {
	run := model.Run{Config: model.Config{Model: model.External}}
	run.State = model.Finished
	view := RunView{Run: run, Series: []string{"a", "b", "c", "d", "train/loss"}}
	var titles []string
	for _, p := range view.panels() {
		titles = append(titles, p.Title)
	}
	if !slices.Equal(titles, []string{"train/loss", "a", "b", "c", "d"}) || view.unlogged() != "" {
		t.Errorf("charts %v, %q", titles, view.unlogged())
	}
	mixed := []string{"_runtime", "epoch", "latent/kl", "lr", "system/gpu.0.gpu", "train/loss", "train/loss/grad", "val/psnr"}
	view.Series, titles = mixed, nil
	for _, p := range view.panels() {
		titles = append(titles, p.Title)
	}
	if want := []string{"train/loss", "val/psnr", "latent/kl", "_runtime", "epoch", "lr", "train/loss/grad", "system/gpu.0.gpu"}; !slices.Equal(titles, want) || mixed[0] != "_runtime" {
		t.Errorf("charts %v, want %v", titles, want)
	}
	view.Series = []string{"a", "b", "c", "d", "train/loss"}
	if groups := view.groups(); len(groups) != 2 || groups[0].Title != "" || len(groups[0].Panels) != atFirst || len(groups[1].Panels) != 1 {
		t.Errorf("groups %+v", groups)
	}
	if view.Series = nil; len(view.panels()) != 0 || !strings.Contains(view.unlogged(), "No curves") {
		t.Errorf("%d charts, %q", len(view.panels()), view.unlogged())
	}
	if strings.Contains(view.unlogged(), "the model itself") {
		t.Errorf("a run without a model: %q", view.unlogged())
	}
	if view.Run.Checkpoint = 1; !strings.Contains(view.unlogged(), "the model itself") {
		t.Errorf("an adopted model: %q", view.unlogged())
	}
	if view.Run.State = model.Running; !strings.Contains(view.unlogged(), "No curves") {
		t.Errorf("%q", view.unlogged())
	}
	if view.Run.Checkpoint = 0; !strings.Contains(view.unlogged(), "No points yet") {
		t.Errorf("%q", view.unlogged())
	}
	if view.Run.Config.Model = "hrr"; view.unlogged() != "" {
		t.Errorf("a run that is not external: %q", view.unlogged())
	}
}
