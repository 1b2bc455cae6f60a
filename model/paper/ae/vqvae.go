package ae

import (
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/paper/latent"
	"slotscope/model/paper/loss"
)

// VQVAE is the baseline with one codebook of vectors for all slots (van den Oord et al. 2017).
type VQVAE struct {
	autoencoder
	slots latent.VQ
}

func newVQVAE(c model.Config, image Image) *VQVAE {
	slots := latent.VQ{M: c.M, K: c.K, D: c.D, UnitNorm: c.CodebookInit == model.UnitNorm,
		Rotation: c.VQGradient != "", Following: following(c)}
	return &VQVAE{newAutoencoder(c, image, slots, c.M*c.D, c.M*c.D, 1), slots}
}

func following(c model.Config) latent.Following {
	return latent.Following{Decay: c.EMADecay, ResetBelow: c.ResetBelow}
}

// Losses implements Model. The squared distances are averaged over the d numbers too, as in VQ-VAE's published code: summed over
// d (Config.VQDistance), they initially outweigh the reconstruction and every slot collapses to one entry.
//
//	L = λ_r·BCE + λ_vq·mean_{B,m,d} (v̂ − sg(v))² + β·mean_{B,m,d} (sg(v̂) − v)² + λ_orth·L_orth
func (v *VQVAE) Losses(scope *context.Context, batch Batch) Objective {
	z := v.Latent(scope, batch.Images)
	slots := v.slots.Apply(scope, z)
	logits := v.Render(scope, slots.Bundle)
	perNumber := 1 / float64(v.slots.D)
	if v.cfg.VQDistance == "sum" {
		perNumber = 1
	}
	terms := []Term{
		{"recon", v.cfg.LambdaRec, loss.Reconstruction(logits, batch.Images)},
		{"vq", v.cfg.LambdaVQ, MulScalar(loss.VQ(slots.Quantized, slots.Retrieved), perNumber)},
		{"commit", v.cfg.LambdaCommit, MulScalar(loss.Commit(slots.Quantized, slots.Retrieved), perNumber)},
	}
	if v.cfg.LambdaOrth > 0 { // [k, k] numbers
		terms = append(terms, Term{"orthogonality", v.cfg.LambdaOrth, loss.Orthogonality(slots.Codebook)})
	}
	watch := append(moments("latent", InsertAxes(z, 1)), moments("codebook", InsertAxes(slots.Codebook, 0))...)
	o := Objective{Total: weighted(terms), Terms: terms, Codes: slots.Codes, Watch: watch, Logits: logits}
	if v.slots.Follows() {
		o.Follow = func() { v.slots.Follow(scope, slots.Retrieved, slots.Codes) }
	}
	return o
}
