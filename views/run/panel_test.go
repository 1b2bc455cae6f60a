package run

import (
	"encoding/json"
	"slices"
	"testing"

	"slotscope/model"
)

// Every model's page draws the terms of its loss and its statistics and nothing that it does not measure; targets are numbers.
func TestPanelsOfModels(t *testing.T) {
	shared := []string{"total", "psnr/eval", "recon", "grad_norm", "images_per_second", "latent/norm2", "latent/var", "latent/mean", "infom/eval", "infoe/eval", "infoc/eval", "owned/factors"}
	codes := []string{"commit", "perplexity/batch", "perplexity/window", "perplexity/used", "codebook/norm2", "codebook/var", "codebook/mean"}
	gaussian := []string{"latent/posterior_var", "latent/active"}
	for name, own := range map[string][]string{
		"hrr": append([]string{"vq", "latent", "value", "codebook", "tie", "coherence", "faithfulness/cos_bundle", "faithfulness/cos_retrieval",
			"faithfulness/cos_denoised", "faithfulness/reencode", "faithfulness/cleanup"}, codes...),
		"vqvae":     append([]string{"vq"}, codes...),
		"qlae":      append([]string{"quantize"}, codes...),
		"ae":        nil,
		"bioae":     {"nonneg", "activity"},
		"betavae":   append([]string{"kl"}, gaussian...),
		"betatcvae": append([]string{"mi", "tc", "dwkl"}, gaussian...),
	} {
		cfg, err := model.Default(name, "tiny", "shapes3d")
		if err != nil {
			t.Fatal(err)
		}
		view := RunView{Run: model.Run{Config: cfg}}
		if _, err := json.Marshal(view.data()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []string
		for _, p := range view.panels() {
			got = append(got, p.Series...)
		}
		want := append(slices.Clone(shared), own...)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s draws %v\nwant %v", name, got, want)
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
