package ae

import (
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/paper/latent"
	"slotscope/model/paper/loss"
)

// vae is what the variational autoencoders share: the posterior, a draw from it, and what is watched.
type vae struct {
	autoencoder
	slots latent.Gaussian
}

func newVAE(c model.Config, image Image) vae {
	slots := latent.Gaussian{Plain: latent.Plain{M: c.M}}
	return vae{newAutoencoder(c, image, slots, 2*c.M, c.M, 1), slots}
}

// Noise implements Model: one number per latent.
func (v vae) Noise() int { return v.cfg.M }

// Variational is a model whose encoder writes a posterior.
type Variational interface {
	// Divergence is that of every latent's posterior from N(0, 1), in nats, [B, m], of images x, [B, H, W, C] in [0, 1].
	Divergence(scope *context.Context, x *Node) *Node
}

// Divergence implements Variational.
func (v vae) Divergence(scope *context.Context, x *Node) *Node {
	return loss.LatentKL(v.slots.Posterior(v.encoder.Apply(scope, x)))
}

// sample is one draw from the posterior of every image of a batch.
type sample struct {
	z, mean, logVar *Node // [B, m]
	logits          *Node // [B, H, W, C], decoded from z
}

func (v vae) sample(scope *context.Context, batch Batch) sample {
	mean, logVar := v.slots.Posterior(v.encoder.Apply(scope, batch.Images))
	z := v.slots.Sample(mean, logVar, batch.Draws)
	return sample{z, mean, logVar, v.Render(scope, z)}
}

// objective is the sum of the terms, beside what is watched of the posterior.
func (s sample) objective(terms ...Term) Objective {
	return Objective{Total: weighted(terms), Terms: terms, Watch: s.watch(), Logits: s.logits}
}

// perPixel turns a weight on nats per image into one on nats per pixel and channel, the unit of the reconstruction.
func (v vae) perPixel(weight float64) float64 {
	return weight / float64(v.encoder.H*v.encoder.W*v.encoder.C)
}

// watch are the moments of the means, how many of them tell images apart, and the mean posterior variance.
func (s sample) watch() []Series {
	return append(activity(s.mean), Series{"latent/posterior_var", ReduceAllMean(StopGradient(Exp(s.logVar)))})
}
