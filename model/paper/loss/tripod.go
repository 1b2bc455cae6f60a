package loss

import (
	"math"

	. "github.com/gomlx/gomlx/pkg/core/graph"
)

// Deviation returns the standard deviation of each latent over the batch plus 1e-6, [m], for z of [B, m]. It is differentiable; the
// gradient of a latent that is constant over the batch is 0.
func Deviation(z *Node) *Node {
	variance := ReduceMean(Square(Sub(z, ReduceAndKeep(z, ReduceMean, 0))), 0)
	zero := ScalarZero(z.Graph(), z.DType())
	varies := GreaterThan(variance, zero)
	root := Sqrt(Where(varies, variance, OnesLike(variance)))
	return AddScalar(Where(varies, root, ZerosLike(root)), 1e-6)
}

// Kernels holds log densities of latents, estimated by Gaussian kernels on the batch, including the sample itself: of the joint, [B], and
// of every latent, [B, m].
type Kernels struct{ Joint, Marginal *Node }

// KernelsOf returns the log densities of quantized latents z, [B, m], with standard deviations std, [m]. The joint's kernels have width s·std
// with Silverman's factor s; the marginals' have width std, as in the published code, so the difference is not 0 for independent latents.
//
//	log p(z_I) = log 1/B Σ_J Π_j N(z_Ij; z_Jj, (s·std_j)²),  s = (4/(m+2))^{1/(m+4)} · B^{−1/(m+4)}
//	log p(z_Ij) = log 1/B Σ_J N(z_Ij; z_Jj, std_j²)                                            Hsu et al. 2024
func KernelsOf(z, std *Node) Kernels {
	b, m := float64(z.Shape().Dim(0)), float64(z.Shape().Dim(1))
	silverman := math.Pow(4/(m+2), 1/(m+4)) * math.Pow(b, -1/(m+4))
	apart := Div(Sub(InsertAxes(z, 1), InsertAxes(z, 0)), InsertAxes(std, 0, 0)) // [B at, B kernels, m]
	kernel := func(width float64) *Node {
		constant := -math.Log(width) - math.Log(2*math.Pi)/2
		return AddScalar(Sub(MulScalar(Square(apart), -0.5/(width*width)), InsertAxes(Log(std), 0, 0)), constant)
	}
	return Kernels{
		Joint:    AddScalar(logSumExp(ReduceSum(kernel(silverman), 2)), -math.Log(b)),
		Marginal: AddScalar(logSumExp(kernel(1)), -math.Log(b)),
	}
}

// Multiinformation measures the dependence of latents by their kernel densities, in nats. It is a regularizer, not an estimate.
//
//	KLM = mean_B [log p(z) − Σ_j log p(z_j)]
func Multiinformation(k Kernels) *Node {
	return ReduceAllMean(Sub(k.Joint, ReduceSum(k.Marginal, 1)))
}

// Curvature returns the biased variance over p probes of a layer's second differences, averaged over the layer's elements. at is the
// layer at z, [B, …]; ahead and behind are at z ± v, [p, B, …]; the result is [B].
//
//	D(v) = (f(z+v) − 2f(z) + f(z−v))/ε²
func Curvature(at, ahead, behind *Node, epsilon float64) *Node {
	p, b := ahead.Shape().Dim(0), ahead.Shape().Dim(1)
	second := Sub(Add(ahead, behind), MulScalar(InsertAxes(at, 0), 2))
	second = Reshape(DivScalar(second, epsilon*epsilon), p, b, -1)
	spread := ReduceMean(Square(Sub(second, ReduceAndKeep(second, ReduceMean, 0))), 0)
	return ReduceMean(spread, 1)
}

// HessianPenalty returns the share of mixed second derivatives: the curvatures of layers along Rademacher probes over those along normal
// probes, both [B, layers].
//
//	NHP = mean_B Σ_l a_l(Rademacher)/(a_l(normal) + 1e-10)
func HessianPenalty(rademacher, normal *Node) *Node {
	return ReduceAllMean(ReduceSum(HessianRatio(rademacher, normal), 1))
}

// HessianRatio returns the quotients of HessianPenalty, [B, layers].
func HessianRatio(rademacher, normal *Node) *Node { return Div(rademacher, AddScalar(normal, 1e-10)) }
