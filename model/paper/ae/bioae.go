package ae

import (
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/paper/latent"
	"slotscope/model/paper/loss"
)

// BioAE is the autoencoder that penalizes negative latents and latent activity (Whittington et al. 2023, in the variant of Hsu et al.
// 2023: negative latents are penalized rather than excluded, and weight decay replaces the penalty on weight energy).
type BioAE struct{ autoencoder }

func newBioAE(c model.Config, image Image) *BioAE {
	return &BioAE{newAutoencoder(c, image, latent.Plain{M: c.M}, c.M, c.M, 1)}
}

// Losses implements Model.
//
//	L = λ_r·BCE + λ_nn·mean_{B,m} max(−z, 0) + λ_act·mean_{B,m} z²
func (b *BioAE) Losses(scope *context.Context, batch Batch) Objective {
	z := b.Latent(scope, batch.Images)
	logits := b.Render(scope, z)
	terms := []Term{
		{"recon", b.cfg.LambdaRec, loss.Reconstruction(logits, batch.Images)},
		{"nonneg", b.cfg.LambdaNonneg, loss.Nonnegative(z)},
		{"activity", b.cfg.LambdaActivity, loss.Activity(z)},
	}
	return Objective{Total: weighted(terms), Terms: terms, Watch: activity(z), Logits: logits}
}
