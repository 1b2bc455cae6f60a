package loss

import . "github.com/gomlx/gomlx/pkg/core/graph"

// DensityRatio estimates the total correlation of latents, in nats, from a discriminator's logits of joint draws, [B, 2].
//
//	TC ≈ mean_B (D(z)₀ − D(z)₁)                  Kim and Mnih 2018, equation 3
func DensityRatio(logits *Node) *Node { return ReduceAllMean(evidence(logits)) }

// Discrimination returns the cross-entropy of a discriminator between joint and permuted draws, in nats; log 2 at chance. Both arguments
// are logits, [B, 2].
//
//	L_D = −½ (mean log softmax(D(z))₀ + mean log softmax(D(z_perm))₁)
func Discrimination(joint, permuted *Node) *Node {
	return MulScalar(Add(ReduceAllMean(softplus(Neg(evidence(joint)))), ReduceAllMean(softplus(evidence(permuted)))), 0.5)
}

// Discriminated returns the share of draws that a discriminator classifies correctly, 0 to 1.
func Discriminated(joint, permuted *Node) *Node {
	right := func(of *Node) *Node {
		return ReduceAllMean(ConvertDType(GreaterThan(of, ScalarZero(of.Graph(), of.DType())), of.DType()))
	}
	return MulScalar(Add(right(evidence(joint)), right(Neg(evidence(permuted)))), 0.5)
}

// evidence returns D(z)₀ − D(z)₁, [B], for logits [B, 2].
func evidence(logits *Node) *Node {
	logits.AssertDims(-1, 2)
	return Sub(Slice(logits, AxisRange(), AxisElem(0)), Slice(logits, AxisRange(), AxisElem(1)))
}

// softplus returns log(1 + eˣ), finite for every finite x.
func softplus(x *Node) *Node { return softplusOf(x, tailOf(x)) }

// softplusOf is softplus, given tailOf(x).
func softplusOf(x, tail *Node) *Node {
	return Add(Max(x, ScalarZero(x.Graph(), x.DType())), Log1p(tail))
}

// tailOf returns e^{-|x|}.
func tailOf(x *Node) *Node { return Exp(Neg(Abs(x))) }
