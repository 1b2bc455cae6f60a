package ae

import (
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/paper/latent"
	"slotscope/model/paper/loss"
)

// QLAE is the baseline whose latents are numbers, each from its own small codebook (Hsu et al. 2023).
type QLAE struct {
	autoencoder
	slots latent.QLAE
}

func newQLAE(c model.Config, image Image) *QLAE {
	slots := latent.QLAE{M: c.M, K: c.K}
	return &QLAE{newAutoencoder(c, image, slots, c.M, c.M, 1), slots}
}

// Losses implements Model.
//
//	L = λ_r·BCE + λ_q·mean_{B,m} (v̂ − sg(z))² + β·mean_{B,m} (sg(v̂) − z)²
func (q *QLAE) Losses(scope *context.Context, batch Batch) Objective {
	z := q.Latent(scope, batch.Images)
	slots := q.slots.Apply(scope, z)
	logits := q.Render(scope, slots.Bundle)
	terms := []Term{
		{"recon", q.cfg.LambdaRec, loss.Reconstruction(logits, batch.Images)},
		{"quantize", q.cfg.LambdaVQ, loss.VQ(slots.Quantized, slots.Retrieved)},
		{"commit", q.cfg.LambdaCommit, loss.Commit(slots.Quantized, slots.Retrieved)},
	}
	watch := append(moments("latent", InsertAxes(z, 1)), moments("codebook", InsertAxes(slots.Codebook, 0))...)
	return Objective{Total: weighted(terms), Terms: terms, Codes: slots.Codes, Watch: watch, Logits: logits}
}
