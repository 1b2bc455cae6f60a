// Package loss implements the terms of the objectives, one function each; terms are scalars before weighting.
package loss

import (
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"slotscope/model/paper/layer"
)

// Reconstruction returns the binary cross-entropy of images, in nats per pixel and channel.
//
//	BCE = mean(max(l, 0) - l·x + log(1 + e^{-|l|}))       equal to -x·log σ(l) - (1-x)·log σ(-l), finite for every l
//
// logits l and x are [B, H, W, C]; x lies in [0, 1] and receives no gradient. That of l is written out, with the exponential that the loss needs anyway:
//
//	∂l = (σ(l) - x)·v        σ(l) = 1/(1 + e^{-|l|}) for l ≥ 0, otherwise e^{-|l|}/(1 + e^{-|l|})
func Reconstruction(logits, x *Node) *Node {
	logits.AssertDims(x.Shape().Dimensions...)
	tail := tailOf(logits)
	slope := func(v *Node) *Node {
		positive := GreaterOrEqual(logits, ScalarZero(logits.Graph(), logits.DType()))
		return Mul(Sub(Div(Where(positive, OnesLike(tail), tail), OnePlus(tail)), x), v)
	}
	return ReduceAllMean(layer.WithGradient(Sub(softplusOf(logits, tail), Mul(logits, x)), []*Node{logits}, slope))
}

// VQ pulls entries toward the values assigned to them; its gradient reaches only the codebook.
//
//	L_vq = mean_{B,m} ‖v̂ - sg(v̄)‖²                       paper, Algorithm 2, line 11
//
// quantized v̂ and denoised v̄ are [B, m, d].
func VQ(quantized, denoised *Node) *Node { return meanDistance(quantized, StopGradient(denoised)) }

// Commit pulls values toward their assigned entries; its gradient reaches only the encoder.
//
//	L_commit = mean_{B,m} ‖sg(v̂) - v̄‖²                   paper, Algorithm 2, line 12
func Commit(quantized, denoised *Node) *Node { return meanDistance(StopGradient(quantized), denoised) }

func meanDistance(a, b *Node) *Node {
	a.AssertDims(b.Shape().Dimensions...)
	return ReduceAllMean(ReduceSum(Square(Sub(a, b)), -1))
}

// Latent returns the structural regularizer of z, [B, d], per image: norm² m, variance m/d.
func Latent(z *Node, m int) *Node {
	d := z.Shape().Dim(1)
	return Structural(InsertAxes(z, 1), float64(m), float64(m)/float64(d))
}

// Value returns the structural regularizer of the denoised retrievals, [B, m, d], per image over its m rows: norm² 1, variance 1/d.
func Value(denoised *Node) *Node { return Structural(denoised, 1, 1/float64(denoised.Shape().Dim(2))) }

// Codebook returns the structural regularizer of the codebook, [k, d]: norm² 1, variance 1/d.
func Codebook(entries *Node) *Node {
	return Structural(InsertAxes(entries, 0), 1, 1/float64(entries.Shape().Dim(1)))
}

// Tie pulls z toward the bundle of its own codes; its gradient reaches only the encoder.
//
//	L_tie = mean_B ‖z - sg(ẑ)‖²                           ours; the paper's objective has no such term
//
// z and bundle ẑ are [B, d].
func Tie(z, bundle *Node) *Node {
	z.AssertDims(bundle.Shape().Dimensions...)
	return ReduceAllMean(ReduceSum(Square(Sub(z, StopGradient(bundle))), -1))
}

// Coherence returns the mean squared cosine between distinct entries used by the batch, 0 if it uses fewer than two; it is about 1/d for
// random vectors.
//
//	L_coh = mean_{a≠b in use} cos²(c_a, c_b)              ours
//
// entries is [k, d], codes [B, m] int32. If the batch has fewer codes than there are entries, the cosines are those of its codes, where an entry counts once in all.
func Coherence(entries, codes *Node) *Node {
	k, flat := entries.Shape().Dim(0), Reshape(codes, -1, 1)
	n := flat.Shape().Dim(0)
	times := Scatter(flat, Ones(codes.Graph(), shapes.Make(entries.DType(), n)), shapes.Make(entries.DType(), k), false, false)
	var counts, others *Node
	if n >= k {
		counts, others = MinScalar(times, 1), distinct(entries)
	} else {
		number := ConvertDType(flat, entries.DType()) // exact up to 2²⁴
		counts, others = Inverse(Gather(times, flat)), ConvertDType(NotEqual(number, Transpose(number, 0, 1)), entries.DType())
		entries = Gather(entries, flat)
	}
	pairs := StopGradient(Mul(others, Mul(InsertAxes(counts, 0), InsertAxes(counts, 1))))
	return Div(ReduceAllSum(Mul(pairs, Square(cosines(entries)))), MaxScalar(ReduceAllSum(pairs), 1))
}

// Orthogonality returns the mean squared cosine between all distinct entries of a codebook, [k, d], divided by k² as in its source.
//
//	L_orth = 1/k² Σ_{a≠b} cos²(c_a, c_b)                  Shin et al. 2021
func Orthogonality(entries *Node) *Node {
	return ReduceAllMean(Mul(distinct(entries), Square(cosines(entries))))
}

// cosines returns the cosines between entries, [k, d], as [k, k].
func cosines(entries *Node) *Node {
	squares := AddScalar(ReduceAndKeep(Square(entries), ReduceSum, 1), 1e-12) // avoids division by 0 for a zero entry
	unit := Div(entries, Sqrt(squares))
	return DotGeneral(unit, []int{1}, nil, unit, []int{1}, nil)
}

// distinct returns the [k, k] mask that is 1 for pairs of distinct entries of [k, d] and 0 on the diagonal.
func distinct(entries *Node) *Node {
	k, g := entries.Shape().Dim(0), entries.Graph()
	square := shapes.Make(dtypes.Int32, k, k)
	return ConvertDType(NotEqual(Iota(g, square, 0), Iota(g, square, 1)), entries.DType())
}

// Structural pulls matrices toward mean 0, squared row norm τn and variance τv (biased), averaged over the matrices.
//
//	R(X; τn, τv) = (1/n Σ_i ‖x_i‖² - τn)² + mean(X)² + (Var(X) - τv)²      paper, “Regularization and optimization”
//
// x is [B, n, d]: B matrices of n rows.
func Structural(x *Node, normSquared, variance float64) *Node {
	x.AssertRank(3)
	mean := ReduceMean(x, 1, 2) // [B]
	spread := ReduceMean(Square(Sub(x, InsertAxes(mean, -1, -1))), 1, 2)
	norm := ReduceMean(ReduceSum(Square(x), 2), 1)
	r := Add(Square(AddScalar(norm, -normSquared)), Square(mean))
	return ReduceAllMean(Add(r, Square(AddScalar(spread, -variance))))
}
