package ae

import (
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/paper/loss"
)

// DIPVAE is the variational autoencoder that pulls the covariance of its latents toward the identity (Kumar et al. 2018): that of the
// posterior means in DIP-VAE-I, that of posterior samples in DIP-VAE-II.
type DIPVAE struct {
	vae
	draws bool // DIP-VAE-II
}

func newDIPVAE(c model.Config, image Image) *DIPVAE {
	return &DIPVAE{newVAE(c, image), c.Model == "dipvae2"}
}

// Losses implements Model. KL is in nats per image.
//
//	L = λ_r·BCE + (β·KL + λ_od·Σ_{i≠j} Cov_ij² + λ_d·Σ_i (Cov_ii − 1)²) / (H·W·C)       Kumar et al. 2018, equations 6 and 7
func (d *DIPVAE) Losses(scope *context.Context, batch Batch) Objective {
	s := d.sample(scope, batch)
	covariance := loss.Covariance(s.mean)
	if d.draws {
		covariance = loss.MarginalCovariance(s.mean, s.logVar)
	}
	return s.objective(
		Term{"recon", d.cfg.LambdaRec, loss.Reconstruction(s.logits, batch.Images)},
		Term{"kl", d.perPixel(d.cfg.BetaKL), loss.KL(s.mean, s.logVar)},
		Term{"offdiagonal", d.perPixel(d.cfg.LambdaOD), loss.OffDiagonal(covariance)},
		Term{"diagonal", d.perPixel(d.cfg.LambdaD), loss.UnitVariance(covariance)})
}
