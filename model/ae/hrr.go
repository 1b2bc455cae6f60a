package ae

import (
	"math"
	"slices"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/latent"
	"slotscope/model/loss"
	"slotscope/model/net"
)

// HRR is the paper's autoencoder: images to bundles of symbol-value pairs and back.
type HRR struct {
	store
	cfg     model.Config
	encoder net.Encoder
	slots   latent.HRR
	decoder net.Decoder
}

func newHRR(c model.Config, image Image) *HRR {
	h := &HRR{
		cfg:     c,
		encoder: net.Encoder{H: image.H, W: image.W, C: image.C, Widths: c.Widths, FC: c.FC, Out: c.D},
		slots: latent.HRR{
			M: c.M, K: c.K, D: c.D, Exact: c.Inverse == "exact", UnitSymbols: c.SymbolInit == "unit",
			LearnSymbols: c.LearnSymbols, StaticCodebook: c.StaticCodebook, FreeCodebook: c.FreeCodebook, NoDenoiser: c.NoDenoiser,
		},
		decoder: net.Decoder{H: image.H, W: image.W, C: image.C, Widths: c.Widths, FC: c.FC, In: c.D},
	}
	params := slices.Concat(h.encoder.Params(), h.slots.Params(), h.decoder.Params())
	h.store = store{params: params, seed: c.Seed, rate: c.CodebookLR}
	return h
}

// forward is what the model makes of a batch on the way to its objective.
type forward struct {
	z      *Node // [B, d]
	slots  latent.Slots
	logits *Node // [B, H, W, C]
}

func (h *HRR) forward(scope *context.Context, x *Node) forward {
	z := h.encode(scope, x)
	slots := h.slots.Apply(scope, z)
	return forward{z, slots, h.decode(scope, slots.Bundle)}
}

// Losses implements Model: Algorithm 2's objective.
//
//	L = λ_r·BCE + λ_vq·L_vq + β·L_commit + λ_lat·R(z) + λ_val·R(V̄) + λ_cb·R(C)
func (h *HRR) Losses(scope *context.Context, x *Node) Objective {
	f, λ := h.forward(scope, x), h.cfg
	v, q, C := f.slots.Denoised, f.slots.Quantized, f.slots.Codebook
	terms := []Term{
		{"recon", λ.LambdaRec, loss.Reconstruction(f.logits, x)},
		{"vq", λ.LambdaVQ, loss.VQ(q, v)},
		{"commit", λ.LambdaCommit, loss.Commit(q, v)},
		{"latent", λ.LambdaLat, loss.Latent(f.z, h.slots.M)},
		{"value", λ.LambdaVal, loss.Value(v)},
		{"codebook", λ.LambdaCB, loss.Codebook(C)},
	}
	watch := append(moments("latent", InsertAxes(f.z, 1)), moments("codebook", InsertAxes(C, 0))...)
	return Objective{Total: weighted(terms), Terms: terms, Codes: f.slots.Codes, Watch: watch, Logits: f.logits}
}

// Encode implements Model.
func (h *HRR) Encode(scope *context.Context, x *Node) *Node {
	return h.slots.Apply(scope, h.encode(scope, x)).Codes
}

// Decode implements Model.
func (h *HRR) Decode(scope *context.Context, codes *Node) *Node {
	return h.decode(scope, h.slots.Bundle(scope, codes))
}

// encode is z = f(x)·√(m/d), which leaves the encoder an output of unit variance; x is [B, H, W, C], z [B, d].
func (h *HRR) encode(scope *context.Context, x *Node) *Node {
	return MulScalar(h.encoder.Apply(scope, x), math.Sqrt(float64(h.slots.M)/float64(h.slots.D)))
}

// decode is g(ẑ·√(d/m)), which gives the decoder an input of unit variance; z is [B, d], the logits [B, H, W, C].
func (h *HRR) decode(scope *context.Context, z *Node) *Node {
	return h.decoder.Apply(scope, MulScalar(z, math.Sqrt(float64(h.slots.D)/float64(h.slots.M))))
}

// weighted is Σ weight · value; a term of weight 0 is measured but not learned from, whatever its value.
func weighted(terms []Term) *Node {
	total := MulScalar(terms[0].Value, terms[0].Weight)
	for _, t := range terms[1:] {
		if t.Weight != 0 {
			total = Add(total, MulScalar(t.Value, t.Weight))
		}
	}
	return total
}

// moments are the quantities that loss.Structural pulls at: of B matrices of n rows, [B, n, d], averaged over the matrices.
func moments(name string, x *Node) []Series {
	x = StopGradient(x)
	centred := Sub(x, ReduceAndKeep(x, ReduceMean, 1, 2))
	return []Series{
		{name + "/mean", ReduceAllMean(x)},
		{name + "/var", ReduceAllMean(Square(centred))},
		{name + "/norm2", ReduceAllMean(ReduceSum(Square(x), 2))},
	}
}
