package ae

import (
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/latent"
	"slotscope/model/loss"
)

// VQVAE is the baseline with one codebook of vectors for all slots (van den Oord et al. 2017).
type VQVAE struct {
	autoencoder
	slots latent.VQ
}

func newVQVAE(c model.Config, image Image) *VQVAE {
	slots := latent.VQ{M: c.M, K: c.K, D: c.D}
	return &VQVAE{newAutoencoder(c, image, slots, c.M*c.D, c.M*c.D, 1), slots}
}

// Losses implements Model.
//
//	L = λ_r·BCE + λ_vq·mean_{B,m} ‖v̂ − sg(v)‖² + β·mean_{B,m} ‖sg(v̂) − v‖²
func (v *VQVAE) Losses(scope *context.Context, x, _ *Node) Objective {
	z := v.Latent(scope, x)
	slots := v.slots.Apply(scope, z)
	logits := v.Render(scope, slots.Bundle)
	terms := []Term{
		{"recon", v.cfg.LambdaRec, loss.Reconstruction(logits, x)},
		{"vq", v.cfg.LambdaVQ, loss.VQ(slots.Quantized, slots.Retrieved)},
		{"commit", v.cfg.LambdaCommit, loss.Commit(slots.Quantized, slots.Retrieved)},
	}
	watch := append(moments("latent", InsertAxes(z, 1)), moments("codebook", InsertAxes(slots.Codebook, 0))...)
	return Objective{Total: weighted(terms), Terms: terms, Codes: slots.Codes, Watch: watch, Logits: logits}
}
