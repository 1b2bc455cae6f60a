package ae

import (
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/paper/loss"
)

// BetaVAE is the baseline that weights the KL divergence from the prior (Higgins et al. 2017).
type BetaVAE struct{ vae }

func newBetaVAE(c model.Config, image Image) *BetaVAE { return &BetaVAE{newVAE(c, image)} }

// Losses implements Model. KL is in nats per image.
//
//	L = λ_r·BCE + β·KL(q(z|x) ‖ N(0, I)) / (H·W·C)
func (b *BetaVAE) Losses(scope *context.Context, batch Batch) Objective {
	s := b.sample(scope, batch)
	return s.objective(
		Term{"recon", b.cfg.LambdaRec, loss.Reconstruction(s.logits, batch.Images)},
		Term{"kl", b.perPixel(b.cfg.BetaKL), loss.KL(s.mean, s.logVar)})
}
