package loss

import (
	"math"

	. "github.com/gomlx/gomlx/pkg/core/graph"
)

// Deviation is the standard deviation of each latent over the batch, [m], plus 1e-6: z is [B, m]. It is differentiated; where a latent
// is the same in the whole batch its gradient is 0.
func Deviation(z *Node) *Node {
	variance := ReduceMean(Square(Sub(z, ReduceAndKeep(z, ReduceMean, 0))), 0)
	zero := ScalarZero(z.Graph(), z.DType())
	varies := GreaterThan(variance, zero)
	root := Sqrt(Where(varies, variance, OnesLike(variance)))
	return AddScalar(Where(varies, root, ZerosLike(root)), 1e-6)
}

// Kernels are logarithms of densities of latents by Gaussian kernels on the batch, itself included: of the joint, [B], and of every
// latent, [B, m].
type Kernels struct{ Joint, Marginal *Node }

// KernelsOf quantized latents z, [B, m], of deviation std, [m]. The joint's kernels are narrower by Silverman's factor s; the marginals'
// are std wide, as in the published code, so that the difference is not 0 for independent latents.
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

// Multiinformation is how far latents are from independent by their kernel densities, in nats: a regularizer, not an estimate.
//
//	KLM = mean_B [log p(z) − Σ_j log p(z_j)]
func Multiinformation(k Kernels) *Node {
	return ReduceAllMean(Sub(k.Joint, ReduceSum(k.Marginal, 1)))
}

// Curvature is how much second differences of a layer differ from probe to probe: the variance over p probes (divided by p), averaged
// over the layer's numbers. at is the layer at z, [B, …]; ahead and behind at z ± v, [p, B, …]; the result is [B].
//
//	D(v) = (f(z+v) − 2f(z) + f(z−v))/ε²
func Curvature(at, ahead, behind *Node, epsilon float64) *Node {
	p, b := ahead.Shape().Dim(0), ahead.Shape().Dim(1)
	second := Sub(Add(ahead, behind), MulScalar(InsertAxes(at, 0), 2))
	second = Reshape(DivScalar(second, epsilon*epsilon), p, b, -1)
	spread := ReduceMean(Square(Sub(second, ReduceAndKeep(second, ReduceMean, 0))), 0)
	return ReduceMean(spread, 1)
}

// HessianPenalty is the share of mixed second derivatives: the curvatures of layers along Rademacher probes over those along normal
// ones, both [B, layers].
//
//	NHP = mean_B Σ_l a_l(Rademacher)/(a_l(normal) + 1e-10)
func HessianPenalty(rademacher, normal *Node) *Node {
	return ReduceAllMean(ReduceSum(HessianRatio(rademacher, normal), 1))
}

// HessianRatio is the quotient of HessianPenalty, [B, layers].
func HessianRatio(rademacher, normal *Node) *Node { return Div(rademacher, AddScalar(normal, 1e-10)) }
