package ae

import (
	"math"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/paper/latent"
	"slotscope/model/paper/loss"
)

// HRR is the paper's autoencoder, which maps images to bundles of symbol-value pairs and back.
type HRR struct {
	autoencoder
	slots latent.HRR
}

// newHRR scales z so that the encoder's output and the decoder's input have unit variance.
//
//	z = f(x)·√(m/d),  x̂ = g(ẑ·√(d/m))                   paper, Algorithm 2, lines 7 and 10
func newHRR(c model.Config, image Image) *HRR {
	slots := latent.HRR{
		M: c.M, K: c.K, D: c.D, Exact: c.Inverse == "exact", UnitSymbols: c.SymbolInit == "unit",
		LearnSymbols: c.LearnSymbols, StaticCodebook: c.StaticCodebook, FreeCodebook: c.FreeCodebook, NoDenoiser: c.NoDenoiser,
		Binding: c.Binding, Rotation: c.VQGradient != "", Following: following(c), Products: products(c),
	}
	return &HRR{newAutoencoder(c, image, slots, c.D, c.D, math.Sqrt(float64(c.M)/float64(c.D))), slots}
}

// forward holds the intermediate results of a forward pass.
type forward struct {
	z      *Node // [B, d]
	slots  latent.Slots
	logits *Node // [B, H, W, C]
}

func (h *HRR) forward(scope *context.Context, x *Node) forward {
	z := h.Latent(scope, x)
	slots := h.slots.Apply(scope, z)
	return forward{z, slots, h.Render(scope, slots.Bundle)}
}

// Losses implements Model: Algorithm 2's objective and three terms that are off by default.
//
//	L = λ_r·BCE + λ_vq·L_vq + β·L_commit + λ_lat·R(z) + λ_val·R(V̄) + λ_cb·R(C)  +  λ_tie·L_tie + λ_coh·L_coh + λ_orth·L_orth
func (h *HRR) Losses(scope *context.Context, batch Batch) Objective {
	f, λ := h.forward(scope, batch.Images), h.cfg
	v, q, C := f.slots.Denoised, f.slots.Quantized, f.slots.Codebook
	terms := []Term{
		{"recon", λ.LambdaRec, loss.Reconstruction(f.logits, batch.Images)},
		{"vq", λ.LambdaVQ, scaled(loss.VQ(q, v), h.distance())},
		{"commit", λ.LambdaCommit, scaled(loss.Commit(q, v), h.distance())},
		{"latent", λ.LambdaLat, loss.Latent(f.z, h.slots.M)},
		{"value", λ.LambdaVal, loss.Value(v)},
		{"codebook", λ.LambdaCB, loss.Codebook(C)},
		{"tie", λ.LambdaTie, loss.Tie(f.z, f.slots.Bundle)},
		{"coherence", λ.LambdaCoherence, loss.Coherence(C, f.slots.Codes)},
	}
	if λ.LambdaOrth > 0 { // [k, k] numbers
		terms = append(terms, Term{"orthogonality", λ.LambdaOrth, loss.Orthogonality(C)})
	}
	watch := append(moments("latent", InsertAxes(f.z, 1)), moments("codebook", InsertAxes(C, 0))...)
	o := Objective{Total: weighted(terms), Terms: terms, Codes: f.slots.Codes, Watch: watch, Logits: f.logits}
	if h.slots.Follows() {
		o.Follow = func() { h.slots.Follow(scope, v, f.slots.Codes) }
	}
	return o
}

// distance returns the factor on squared distances, which are summed over d: 1, or 1/d to average them.
func (h *HRR) distance() float64 {
	if h.cfg.VQDistance == "mean" {
		return 1 / float64(h.slots.D)
	}
	return 1
}

// Slots returns the results of Algorithm 1 for latents z, [B, d].
func (h *HRR) Slots(scope *context.Context, z *Node) latent.Slots { return h.slots.Apply(scope, z) }

// CleanUp reads codes, [B, m] int32, from bundles, [B, d], by plain unbinding and the nearest entry, without the denoiser.
func (h *HRR) CleanUp(scope *context.Context, bundle *Node) *Node {
	return latent.Nearest(h.slots.Retrieve(scope, bundle), h.slots.Codebook(scope, bundle.Graph()))
}

// Binding returns the model's binding, as in Config.
func (h *HRR) Binding() string { return h.slots.Binding }
