package ae

import (
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/paper/loss"
)

// AnnealedVAE is the variational autoencoder that holds its KL divergence at a capacity that grows during training (Burgess et al. 2018).
type AnnealedVAE struct{ vae }

func newAnnealedVAE(c model.Config, image Image) *AnnealedVAE { return &AnnealedVAE{newVAE(c, image)} }

// Losses implements Model. KL and C are in nats per image; t is the step, T is Config.AnnealSteps.
//
//	L = λ_r·BCE + γ·|KL − C(t)| / (H·W·C),  C(t) = C_max·min(1, t/T)          Burgess et al. 2018, equation 8
func (a *AnnealedVAE) Losses(scope *context.Context, batch Batch) Objective {
	s := a.sample(scope, batch)
	kl, capacity := loss.KL(s.mean, s.logVar), a.capacity(batch)
	o := s.objective(
		Term{"recon", a.cfg.LambdaRec, loss.Reconstruction(s.logits, batch.Images)},
		Term{"gap", a.perPixel(a.cfg.GammaKL), Abs(Sub(kl, capacity))})
	o.Watch = append(o.Watch, Series{"kl", kl}, Series{"kl/capacity", capacity})
	return o
}

// capacity returns C(t), a scalar in nats per image.
func (a *AnnealedVAE) capacity(batch Batch) *Node {
	end := Scalar(batch.Images.Graph(), batch.Images.DType(), a.cfg.Capacity)
	if batch.Step == nil {
		return end
	}
	return Mul(end, MinScalar(DivScalar(batch.Step, float64(a.cfg.AnnealSteps)), 1))
}
