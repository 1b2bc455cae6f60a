package evaluate

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"slotscope/model/measure/metric"
	"slotscope/model/measure/metric/input"
)

// agreementOf evaluates an untrained model minimally and reads the latents that it saves for comparisons.
func agreementOf(t *testing.T, name string, seed int64) metric.Latents {
	t.Helper()
	o := few
	o.Pairs, o.Noise, o.Images, o.Agree, o.Seed = 0, 0, 70, 100, seed
	r, err := staged(t.Context(), t, untrained(t, name), dataset(t), o, (*evaluation).agreed)
	if err != nil {
		t.Fatal(err)
	}
	l, err := input.Latents(filepath.Join(saved(t, r), AgreementFile))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestAgreementFile: the images are the same for every seed, codes are saved as codes, and a VAE's KL divergences are present and positive.
func TestAgreementFile(t *testing.T) {
	a, b := agreementOf(t, "qlae", 1), agreementOf(t, "betavae", 2)
	if len(a.Index) != 100 || !slices.Equal(a.Index, b.Index) {
		t.Fatalf("images %v and %v", a.Index, b.Index)
	}
	if len(a.Codes) == 0 || len(a.Codes[0]) != 100 || a.Values != nil || a.KL != nil {
		t.Errorf("QLAE: %d slots of codes, %d of numbers, KL %v", len(a.Codes), len(a.Values), a.KL)
	}
	if len(b.Values) == 0 || len(b.Values[0]) != 100 || b.Codes != nil || len(b.KL) != len(b.Values) {
		t.Fatalf("β-VAE: %d latents, KL %v", len(b.Values), b.KL)
	}
	for j, kl := range b.KL {
		// KL ≥ ½ mean μ², computed from the means in the file.
		least := 0.0
		for _, v := range b.Values[j] {
			least += v * v / 200
		}
		if !(kl >= least-1e-6) || math.IsInf(kl, 0) {
			t.Errorf("latent %d: KL %v is below %v", j, kl, least)
		}
	}
}
