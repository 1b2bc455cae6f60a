package ae

import (
	"math/rand/v2"
	"slices"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/paper/loss"
	"slotscope/model/paper/net"
)

// FactorVAE is the variational autoencoder that penalizes the total correlation estimated by a discriminator (Kim and Mnih 2018,
// Algorithms 1 and 2). The first half of a batch is reconstructed and gives the joint samples; the second half is encoded only for the
// permuted samples. The gradients of autoencoder and discriminator are taken at the same parameters; then both optimizers step.
type FactorVAE struct {
	vae
	judge net.Discriminator
}

func newFactorVAE(c model.Config, image Image) *FactorVAE {
	f := &FactorVAE{newVAE(c, image), net.Discriminator{In: c.M, Width: c.DiscWidth, Layers: c.DiscLayers}}
	f.params, f.discRate = slices.Concat(f.params, f.judge.Params()), c.DiscLR
	return f
}

// Noise implements Model: a normal number and an element of a permutation for every latent.
func (f *FactorVAE) Noise() int { return 2 * f.cfg.M }

// Draw implements Model. Row i holds ε_i, [m], then permutation[j, i] for every latent j: each latent has its own permutation of
// 0 … B/2−1 over the first half of the rows; the second half holds 0.
func (f *FactorVAE) Draw(rng *rand.Rand, out []float32) {
	m := f.cfg.M
	batch := len(out) / (2 * m)
	for i := range batch {
		f.vae.Draw(rng, out[2*m*i:2*m*i+m])
		clear(out[2*m*i+m : 2*m*(i+1)])
	}
	for j := range m {
		for i, from := range rng.Perm(batch / 2) {
			out[2*m*i+m+j] = float32(from)
		}
	}
}

// halves holds the forward pass of a batch: a posterior sample of its first half, and independent permuted draws from its second half.
type halves struct {
	sample
	mean, logVar, z    *Node // [B, m], of the whole batch
	permuted           *Node // [B/2, m], without gradient
	judged             *Node // D(z), [B/2, 2], differentiated with respect to z
	joint, independent *Node // D(z) and D(z_perm), [B/2, 2], differentiated with respect to D only
}

func (f *FactorVAE) halves(scope *context.Context, batch Batch) halves {
	m, half := f.cfg.M, batch.Images.Shape().Dim(0)/2
	first := func(x *Node) *Node { return Slice(x, AxisRange(0, half)) }
	mean, logVar := f.slots.Posterior(f.encoder.Apply(scope, batch.Images))
	z := f.slots.Sample(mean, logVar, Slice(batch.Draws, AxisRange(), AxisRange(0, m)))
	order := Slice(batch.Draws, AxisRange(0, half), AxisRange(m, 2*m))
	permuted := StopGradient(permute(Slice(z, AxisRange(half, 2*half)), order))
	s := sample{first(z), first(mean), first(logVar), f.Render(scope, first(z))}
	return halves{s, mean, logVar, z, permuted, f.judge.Apply(scope, s.z), f.judge.Apply(scope, StopGradient(s.z)), f.judge.Apply(scope, permuted)}
}

// permute returns z_perm[i, j] = z[order[i, j], j]; all are [n, m], and order holds whole numbers.
func permute(z, order *Node) *Node {
	n, m := z.Shape().Dim(0), z.Shape().Dim(1)
	column := Iota(z.Graph(), shapes.Make(dtypes.Int32, n, m), 1)
	at := Add(MulScalar(ConvertDType(order, dtypes.Int32), m), column)
	return Gather(Reshape(z, n*m), InsertAxes(at, -1))
}

// Losses implements Model. KL and TC are in nats per image; the discriminator minimizes L_D.
//
//	L = λ_r·BCE + (β·KL + γ·TC) / (H·W·C),  TC = mean (D(z)₀ − D(z)₁)
func (f *FactorVAE) Losses(scope *context.Context, batch Batch) Objective {
	s := f.halves(scope, batch)
	images := Slice(batch.Images, AxisRange(0, s.logits.Shape().Dim(0)))
	o := s.objective(
		Term{"recon", f.cfg.LambdaRec, loss.Reconstruction(s.logits, images)},
		Term{"kl", f.perPixel(f.cfg.BetaKL), loss.KL(s.sample.mean, s.sample.logVar)},
		Term{"tc", f.perPixel(f.cfg.GammaTC), loss.DensityRatio(s.judged)})
	o.Discriminator = loss.Discrimination(s.joint, s.independent)
	o.Watch = append(o.Watch, Series{"discriminator/accuracy", loss.Discriminated(s.joint, s.independent)})
	return o
}
