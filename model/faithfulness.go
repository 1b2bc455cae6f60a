package model

import "math"

// Faithfulness measures whether a trained HRR model is a holographic reduced representation: nothing in the paper's objective ties the
// encoder's z to the bundle ẑ of its own codes. m slots, d components; symbols sᵢ, retrievals ṽᵢ = sᵢ† ⊗ z, denoised v̄ᵢ, selected
// entries qᵢ, ẑ = Σᵢ sᵢ ⊗ qᵢ. Baselines have none. metric.MeasureFaithfulness computes it.
type Faithfulness struct {
	Images int `json:"images"` // drawn at random with the seed

	CosBundle    Score `json:"cos_bundle"`    // mean over images of cos(z, ẑ), −1 to 1
	CosRetrieval Score `json:"cos_retrieval"` // mean over images and slots of cos(ṽᵢ, qᵢ), −1 to 1
	CosDenoised  Score `json:"cos_denoised"`  // mean over images and slots of cos(v̄ᵢ, qᵢ), −1 to 1
	Reencode     Score `json:"reencode"`      // share of (image, slot) whose code the model's own retrieval recovers from ẑ
	Cleanup      Score `json:"cleanup"`       // as Reencode, with plain unbinding and the nearest entry, without the denoiser
	Chance       Score `json:"chance"`        // chance level of Reencode and Cleanup: 1 / mean number of codes in use per slot
	Energy       Score `json:"energy"`        // mean ‖ẑ‖²
	Coherence    Score `json:"coherence"`     // standard deviation of cos between distinct entries in use
	RankCodebook Score `json:"rank_codebook"` // effective rank of the entries in use, 1 to d
	RankZ        Score `json:"rank_z"`        // effective rank of centred z, 1 to d
	RankBundle   Score `json:"rank_bundle"`   // effective rank of centred ẑ, 1 to d
	Entries      int   `json:"entries"`       // codebook entries in use by any slot

	True TrueHRR `json:"true_hrr"` // values for a true HRR
}

// TrueHRR holds the ideal value of each score, for independent entries N(0, 1/d) and z = ẑ.
type TrueHRR struct {
	CosBundle    float64 `json:"cos_bundle"`
	CosRetrieval float64 `json:"cos_retrieval"`
	CosDenoised  float64 `json:"cos_denoised"`
	Reencode     float64 `json:"reencode"`
	Cleanup      float64 `json:"cleanup"` // if the bundle is within capacity
	Energy       float64 `json:"energy"`
	Coherence    float64 `json:"coherence"`
	Rank         float64 `json:"rank"` // at most
}

// TrueHRROf returns the ideal scores for m slots in d components with a binding.
//
//	cos(ṽᵢ, qᵢ) ≈ 1/√(1+m)            ṽᵢ = qᵢ ⊗ (sᵢ† ⊗ sᵢ) + Σ_{j≠i} sᵢ† ⊗ sⱼ ⊗ qⱼ: qᵢ plus m noise terms of norm 1
//
// Permutations have an exact inverse, so m−1 noise terms; concatenation retrieves ⌊d/m⌋ of d components without noise: 1/√m for both.
func TrueHRROf(m, d int, binding string) TrueHRR {
	terms := float64(1 + m)
	if binding == "permutation" || binding == "concat" {
		terms = float64(m)
	}
	return TrueHRR{
		CosBundle: 1, CosRetrieval: 1 / math.Sqrt(terms), CosDenoised: 1, Reencode: 1, Cleanup: 1,
		Energy: float64(m), Coherence: 1 / math.Sqrt(float64(d)), Rank: float64(d),
	}
}

// Figures returns the scores by their JSON names, without those of a true HRR.
func (f Faithfulness) Figures() map[string]float64 {
	return map[string]float64{
		"cos_bundle": float64(f.CosBundle), "cos_retrieval": float64(f.CosRetrieval), "cos_denoised": float64(f.CosDenoised),
		"reencode": float64(f.Reencode), "cleanup": float64(f.Cleanup), "energy": float64(f.Energy), "coherence": float64(f.Coherence),
		"rank_codebook": float64(f.RankCodebook), "rank_z": float64(f.RankZ), "rank_bundle": float64(f.RankBundle),
	}
}
