package run

import "testing"

// TestNames: every measured series has a unique title.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Names() {
		if s.Title == "" || seen[s.Title] {
			t.Errorf("%s has the title %q, which is empty or used twice", s.Name, s.Title)
		}
		seen[s.Title] = true
	}
	for name, want := range map[string]string{
		"total": "Total loss", "psnr/eval": "PSNR", "infom/eval": "InfoM", "perplexity/window": "Perplexity, window", "infoe/eval": "InfoE", "gpu/power": "GPU power",
		"faithfulness/cos_bundle": "HRR cosines, ẑ", "kl": "Divergence", "discriminator/grad_norm": "Discriminator: Gradient norm", "mine/own": "mine/own",
	} {
		if got := NameOf(name).Title; got != want {
			t.Errorf("%s has the title %q, want %q", name, got, want)
		}
	}
	if u := NameOf("psnr/eval").Unit; u != "dB" {
		t.Errorf("PSNR has the unit %q", u)
	}
	for _, name := range []string{"latent/active", "perplexity/window"} {
		if u := NameOf(name).Unit; u != "" {
			t.Errorf("%s has the unit %q, although the total differs between runs", name, u)
		}
	}
}
