// Package latent implements the models' bottlenecks between encoder and decoder, one per file.
package latent

import (
	"math"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/paper/layer"
)

const leak = 0.01 // negative slope of LeakyReLU in denoiser and generator

// HRR is the paper's bottleneck: m slots, each a frozen symbol bound to one of k codebook entries, bundled into a vector of d numbers.
// The boolean options are the ablations of “Negative results”.
type HRR struct {
	M, K, D        int
	Binding        string // one of the constants Circular …
	Exact          bool   // unbind with the exact inverse, not the involution
	UnitSymbols    bool   // symbols projected to unit magnitude
	LearnSymbols   bool   // symbols are learned
	StaticCodebook bool   // the codebook keeps its initial value
	FreeCodebook   bool   // entries are learned directly, without seeds and generator
	NoDenoiser     bool   // v̄ = ṽ
	Rotation       bool   // use the rotation trick for the gradient through the quantizer, not straight-through

	Products layer.Products // of denoiser and generator

	Following // of a free codebook, which follows denoised values
}

// Slots holds the outputs of the bottleneck for a batch of latents.
type Slots struct {
	Retrieved *Node // ṽ, [B, m, d]
	Denoised  *Node // v̄, [B, m, d]
	Quantized *Node // v̂, [B, m, d]: rows of the codebook
	Codes     *Node // j, [B, m] int32
	Codebook  *Node // C, [k, d]
	Bundle    *Node // ẑ, [B, d]; its gradient passes through the quantizer
}

// Params returns the bottleneck's tensors, under PyTorch's names; a free codebook is "codebook".
func (h HRR) Params() []layer.Param {
	params := h.bindingParams()
	if !h.NoDenoiser {
		params = append(params, layer.Linear("denoise1", h.D, 2*h.D)...)
		params = append(params, layer.Linear("denoise2", 2*h.D, h.D)...)
	}
	if h.StaticCodebook {
		return append(params, layer.At(layer.Frozen, h.codebookParams())...)
	}
	return append(params, h.codebookParams()...)
}

func (h HRR) codebookParams() []layer.Param {
	if h.FreeCodebook { // initialized as HRR vectors, N(0, 1/d)
		return h.params(layer.Plain("codebook", layer.Normal(1/math.Sqrt(float64(h.D))), h.K, h.D))
	}
	params := []layer.Param{layer.Plain("seeds", layer.Normal(1), h.K, h.D)}
	params = append(params, layer.Linear("generator1", h.D, h.D)...)
	return layer.At(layer.Codebook, append(params, layer.Linear("generator2", h.D, h.D)...))
}

// Apply is Algorithm 1: it retrieves the value of every slot from z, [B, d], denoises it, quantizes it to the nearest entry and bundles
// the entries again.
func (h HRR) Apply(scope *context.Context, z *Node) Slots {
	z.AssertDims(-1, h.D)
	binding := h.binding(scope, z.Graph())
	retrieved := binding.unbindAll(z)
	denoised := h.denoise(scope, retrieved)
	entries := h.Codebook(scope, z.Graph())
	codes := Nearest(denoised, entries)
	quantized := Lookup(entries, codes)
	return Slots{retrieved, denoised, quantized, codes, entries, binding.bindAll(through(denoised, quantized, h.Rotation))}
}

// Retrieve returns ṽ_i = s_i† ⊗ z for every slot: z is [B, d], the result [B, m, d].
func (h HRR) Retrieve(scope *context.Context, z *Node) *Node {
	z.AssertDims(-1, h.D)
	return h.binding(scope, z.Graph()).unbindAll(z)
}

// Represent returns the code of every slot: retrieved is ṽ, [B, m, d], the result [B, m] int32.
func (h HRR) Represent(scope *context.Context, retrieved *Node) *Node {
	return Nearest(h.denoise(scope, retrieved), h.Codebook(scope, retrieved.Graph()))
}

// Bundle returns ẑ = Σ_i s_i ⊗ c_{j_i}, [B, d], for code tuples, [B, m].
func (h HRR) Bundle(scope *context.Context, codes *Node) *Node {
	codes.AssertDims(-1, h.M)
	return h.binding(scope, codes.Graph()).bindAll(h.entriesOf(scope, codes))
}

// boundValues is the maximum number of values that Bound returns, 64 MiB.
const boundValues = 1 << 24

// Bound returns s_i ⊗ c_j for every slot and code, [m·k, d], which depends only on the weights, or nil if that would be too many values.
func (h HRR) Bound(scope *context.Context, g *Graph) *Node {
	if h.M*h.K*h.D > boundValues {
		return nil
	}
	binding, entries := h.binding(scope, g), Reshape(h.Codebook(scope, g), h.K, 1, h.D)
	pairs := make([]*Node, h.M)
	for i := range pairs {
		pairs[i] = binding.bind.Slot(i).BindAll(entries)
	}
	return Concatenate(pairs, 0)
}

// BundleBound is Bundle, given the output of Bound.
func (h HRR) BundleBound(bound, codes *Node) *Node {
	codes.AssertDims(-1, h.M)
	return ReduceSum(Lookup(bound, ofSlots(codes, h.M, h.K)), 1)
}

// entriesOf returns the entries of codes, [B, m, d]. If there are fewer codes than codebook entries, it generates only those needed.
func (h HRR) entriesOf(scope *context.Context, codes *Node) *Node {
	if h.FreeCodebook || codes.Shape().Size() >= h.K {
		return Lookup(h.Codebook(scope, codes.Graph()), codes)
	}
	seeds := Lookup(layer.Value(scope, codes.Graph(), "seeds"), codes)
	return Reshape(h.generate(scope, Reshape(seeds, -1, h.D)), -1, h.M, h.D)
}

// Codebook returns C, [k, d], generated from seeds, or the learned entries of a free codebook.
//
//	C = φ(S)·√(1/d),  φ(s) = W₂ LeakyReLU(W₁ s + b₁) + b₂      paper, Algorithm 2, line 8
func (h HRR) Codebook(scope *context.Context, g *Graph) *Node {
	var entries *Node
	if h.FreeCodebook {
		entries = layer.Value(scope, g, "codebook")
	} else {
		entries = h.generate(scope, layer.Value(scope, g, "seeds"))
	}
	if h.StaticCodebook {
		entries = StopGradient(entries)
	}
	entries.AssertDims(h.K, h.D)
	return entries
}

// generate returns φ(S)·√(1/d) for seeds [n, d].
func (h HRR) generate(scope *context.Context, seeds *Node) *Node {
	hidden := layer.LeakyReLU(h.Products.Dense(scope, "generator1", seeds), leak)
	return MulScalar(h.Products.Dense(scope, "generator2", hidden), math.Sqrt(1/float64(h.D)))
}

// denoise returns v̄ = W₂ LeakyReLU(W₁ ṽ + b₁) + b₂, with 2d hidden units shared by all slots; ṽ and v̄ are [B, m, d].
func (h HRR) denoise(scope *context.Context, retrieved *Node) *Node {
	if h.NoDenoiser {
		return retrieved
	}
	hidden := layer.LeakyReLU(h.Products.Dense(scope, "denoise1", Reshape(retrieved, -1, h.D)), leak)
	return Reshape(h.Products.Dense(scope, "denoise2", hidden), -1, h.M, h.D)
}

// Nearest returns the index of the entry nearest to each value, the lowest in a tie.
//
//	j_i = argmin_j ‖v̄_i - c_j‖² = argmin_j ‖c_j‖² - 2 v̄_i·c_j      paper, Algorithm 1, line 5
//
// values is [B, m, d], entries [k, d]; the result is [B, m] int32.
func Nearest(values, entries *Node) *Node {
	batch, m, d := values.Shape().Dim(0), values.Shape().Dim(1), values.Shape().Dim(2)
	values, entries = StopGradient(values), StopGradient(entries)
	products := DotGeneral(Reshape(values, -1, d), []int{1}, nil, entries, []int{1}, nil) // [B·m, k]
	norms := InsertAxes(ReduceSum(Square(entries), 1), 0)
	return Reshape(ArgMin(Sub(norms, MulScalar(products, 2)), 1), batch, m)
}

// straight returns quantized, and passes its gradient unchanged to values: v + sg(v̂ - v).
func straight(values, quantized *Node) *Node {
	return Add(values, StopGradient(Sub(quantized, values)))
}

// through returns quantized, with a straight-through or rotated gradient to values.
func through(values, quantized *Node, rotation bool) *Node {
	if rotation {
		return rotated(values, quantized)
	}
	return straight(values, quantized)
}

// rotated returns quantized q, and passes its gradient to values e rotated back and scaled, which preserves the angle between gradient
// and vector. R rotates e/‖e‖ to q/‖q‖; R and the norms are constants in the gradient.
//
//	q = (‖q‖/‖e‖) R e,  R = I − 2 r rᵀ + 2 q̂ êᵀ,  r = (ê + q̂)/‖ê + q̂‖             Fifty et al. 2024, equation 4
//
// Both are [B, m, d]. Zero or opposite vectors have no rotation; their gradient is finite.
func rotated(values, quantized *Node) *Node {
	const least = 1e-12
	norm := func(x *Node) *Node { return Sqrt(AddScalar(ReduceAndKeep(Square(x), ReduceSum, -1), least)) }
	along := func(a, b *Node) *Node { return ReduceAndKeep(Mul(a, b), ReduceSum, -1) }
	e, q := StopGradient(values), StopGradient(quantized)
	from, to := Div(e, norm(e)), Div(q, norm(q))
	r := Add(from, to)
	r = Div(r, norm(r))
	turned := Add(Sub(values, MulScalar(Mul(r, along(r, values)), 2)), MulScalar(Mul(to, along(from, values)), 2))
	return straight(Mul(turned, Div(norm(q), norm(e))), quantized)
}

// Lookup returns rows of the codebook: entries is [k, d], codes [B, m] int32, the result [B, m, d].
func Lookup(entries, codes *Node) *Node { return Gather(entries, InsertAxes(codes, -1)) }

// ofSlots returns where the values of codes, [B, m], are in a list of k values for each slot.
func ofSlots(codes *Node, m, k int) *Node {
	first := MulScalar(Iota(codes.Graph(), shapes.Make(dtypes.Int32, 1, m), 1), k)
	return Add(ConvertDType(codes, dtypes.Int32), first)
}
