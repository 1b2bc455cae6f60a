package ae

import (
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/paper/latent"
	"slotscope/model/paper/loss"
)

// Plain is the autoencoder whose only bottleneck is its m numbers; weight decay is its only regularizer.
type Plain struct{ autoencoder }

func newPlain(c model.Config, image Image) *Plain {
	return &Plain{newAutoencoder(c, image, latent.Plain{M: c.M}, c.M, c.M, 1)}
}

// Losses implements Model.
//
//	L = λ_r·BCE
func (p *Plain) Losses(scope *context.Context, batch Batch) Objective {
	z := p.Latent(scope, batch.Images)
	logits := p.Render(scope, z)
	terms := []Term{{"recon", p.cfg.LambdaRec, loss.Reconstruction(logits, batch.Images)}}
	return Objective{Total: weighted(terms), Terms: terms, Watch: activity(z), Logits: logits}
}
