package ae

import (
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/paper/latent"
	"slotscope/model/paper/loss"
)

// vae holds the parts shared by the variational autoencoders: the posterior, a sample from it and monitored series.
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

// Variational is a model whose encoder outputs a posterior.
type Variational interface {
	// Divergence returns the KL divergence of every latent's posterior from N(0, 1), in nats, [B, m], for images x, [B, H, W, C] in [0, 1].
	Divergence(scope *context.Context, x *Node) *Node
}

// Divergence implements Variational.
func (v vae) Divergence(scope *context.Context, x *Node) *Node {
	return loss.LatentKL(v.slots.Posterior(v.encoder.Apply(scope, x)))
}

// sample holds one sample from the posterior of every image of a batch.
type sample struct {
	z, mean, logVar *Node // [B, m]
	logits          *Node // [B, H, W, C], decoded from z
}

func (v vae) sample(scope *context.Context, batch Batch) sample {
	mean, logVar := v.slots.Posterior(v.encoder.Apply(scope, batch.Images))
	z := v.slots.Sample(mean, logVar, batch.Draws)
	return sample{z, mean, logVar, v.Render(scope, z)}
}

// objective returns the weighted sum of the terms, with the posterior's monitored series.
func (s sample) objective(terms ...Term) Objective {
	return Objective{Total: weighted(terms), Terms: terms, Watch: s.watch(), Logits: s.logits}
}

// perPixel converts a weight per nat per image to one per nat per pixel and channel, the unit of the reconstruction term.
func (v vae) perPixel(weight float64) float64 {
	return weight / float64(v.encoder.H*v.encoder.W*v.encoder.C)
}

// watch returns the moments of the means, the number of active latents and the mean posterior variance.
func (s sample) watch() []Series {
	return append(activity(s.mean), Series{"latent/posterior_var", ReduceAllMean(StopGradient(Exp(s.logVar)))})
}
