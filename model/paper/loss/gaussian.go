package loss

import (
	"math"

	. "github.com/gomlx/gomlx/pkg/core/graph"
)

// KL returns the KL divergence of diagonal Gaussian posteriors from N(0, I), in nats, summed over latents and averaged over the batch.
//
//	KL = mean_B Σ_i ½ (μ_i² + σ_i² − log σ_i² − 1)
//
// mean μ and logVar log σ² are [B, m].
func KL(mean, logVar *Node) *Node { return ReduceAllMean(ReduceSum(LatentKL(mean, logVar), 1)) }

// LatentKL returns the KL divergence of every image and latent, [B, m].
func LatentKL(mean, logVar *Node) *Node {
	mean.AssertDims(logVar.Shape().Dimensions...)
	return MulScalar(AddScalar(Sub(Add(Square(mean), Exp(logVar)), logVar), -1), 0.5)
}

// Densities holds log densities at samples z, [B], in nats, from which the KL divergence of a VAE is composed
// (Chen et al. 2018). The aggregate posterior q(z) is estimated from the images of the batch:
//
//	log q(z)   ≈ log 1/B Σ_n Π_j q(z_j | x_n)
//	log q(z_j) ≈ log 1/B Σ_n q(z_j | x_n)
//
// Minibatch-weighted sampling divides by N·B instead, where N is the size of the dataset. That shifts the terms below by
// multiples of log N without changing any gradient, so these terms use the batch's own mixture.
type Densities struct {
	Conditional *Node // log q(z|x)
	Joint       *Node // log q(z)
	Product     *Node // Σ_j log q(z_j)
	Prior       *Node // log p(z), N(0, I)
}

// DensitiesOf returns the densities of samples z, [B, m], drawn from the posteriors with mean μ and logVar log σ², [B, m], in this order.
func DensitiesOf(z, mean, logVar *Node) Densities {
	z.AssertDims(mean.Shape().Dimensions...)
	logB := math.Log(float64(z.Shape().Dim(0)))
	of := logNormal(InsertAxes(z, 1), InsertAxes(mean, 0), InsertAxes(logVar, 0)) // [B samples, B posteriors, m]
	return Densities{
		Conditional: ReduceSum(logNormal(z, mean, logVar), 1),
		Joint:       AddScalar(logSumExp(ReduceSum(of, 2)), -logB),
		Product:     ReduceSum(AddScalar(logSumExp(of), -logB), 1),
		Prior:       ReduceSum(MulScalar(AddScalar(Square(z), math.Log(2*math.Pi)), -0.5), 1),
	}
}

// MutualInformation returns that of image and latents, I(x; z) = E log q(z|x)/q(z), in nats; at most log B.
func MutualInformation(p Densities) *Node { return ReduceAllMean(Sub(p.Conditional, p.Joint)) }

// TotalCorrelation returns the dependence between latents, E log q(z)/Π_j q(z_j), in nats.
func TotalCorrelation(p Densities) *Node { return ReduceAllMean(Sub(p.Joint, p.Product)) }

// DimensionKL returns the KL divergence of the latents from N(0, 1), E log Π_j q(z_j)/p(z_j), in nats, summed over latents.
func DimensionKL(p Densities) *Node { return ReduceAllMean(Sub(p.Product, p.Prior)) }

// logNormal returns log N(z; μ, σ²) = −½ (log 2π + log σ² + (z − μ)²/σ²), element by element.
func logNormal(z, mean, logVar *Node) *Node {
	quadratic := Mul(Square(Sub(z, mean)), Exp(Neg(logVar)))
	return MulScalar(AddScalar(Add(logVar, quadratic), math.Log(2*math.Pi)), -0.5)
}

// logSumExp returns log Σ e^x over axis 1, finite for every finite x.
func logSumExp(x *Node) *Node {
	top := StopGradient(ReduceAndKeep(x, ReduceMax, 1))
	sum := Log(ReduceSum(Exp(Sub(x, top)), 1))
	return Add(sum, Reshape(top, sum.Shape().Dimensions...))
}
