package ae

import (
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/paper/loss"
)

// BetaTCVAE is the baseline that decomposes the KL divergence and weights the total correlation (Chen et al. 2018).
type BetaTCVAE struct{ vae }

func newBetaTCVAE(c model.Config, image Image) *BetaTCVAE { return &BetaTCVAE{newVAE(c, image)} }

// Losses implements Model. The three parts of the KL divergence are in nats per image; with β = 1 they sum to a sample of it.
//
//	L = λ_r·BCE + (MI + β·TC + DWKL) / (H·W·C)
func (b *BetaTCVAE) Losses(scope *context.Context, batch Batch) Objective {
	s := b.sample(scope, batch)
	p := loss.DensitiesOf(s.z, s.mean, s.logVar)
	return s.objective(
		Term{"recon", b.cfg.LambdaRec, loss.Reconstruction(s.logits, batch.Images)},
		Term{"mi", b.perPixel(1), loss.MutualInformation(p)},
		Term{"tc", b.perPixel(b.cfg.BetaTC), loss.TotalCorrelation(p)},
		Term{"dwkl", b.perPixel(1), loss.DimensionKL(p)})
}
