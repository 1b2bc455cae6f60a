package loss

import (
	. "github.com/gomlx/gomlx/pkg/core/graph"
)

// Covariance is that of the rows of means μ, [B, m], over the batch: the result is [m, m].
//
//	Cov = mean_B μμᵀ − (mean_B μ)(mean_B μ)ᵀ
func Covariance(mean *Node) *Node {
	centred := Sub(mean, ReduceAndKeep(mean, ReduceMean, 0))
	return DivScalar(DotGeneral(centred, []int{0}, nil, centred, []int{0}, nil), float64(mean.Shape().Dim(0)))
}

// MarginalCovariance is that of draws from the posteriors, [m, m]: mean and logVar log σ² are [B, m].
//
//	Cov[z] = E Cov[z|x] + Cov E[z|x] = diag(mean_B σ²) + Cov(μ)       Kumar et al. 2018, DIP-VAE-II
func MarginalCovariance(mean, logVar *Node) *Node {
	covariance := Covariance(mean)
	return Add(covariance, Mul(identity(covariance), InsertAxes(ReduceMean(Exp(logVar), 0), 0)))
}

// OffDiagonal is what latents that vary together cost, a scalar ≥ 0: Σ_{i≠j} Cov_ij² of a covariance, [m, m] (Kumar et al. 2018, equations 6
// and 7, first sum).
func OffDiagonal(covariance *Node) *Node {
	return ReduceAllSum(Mul(OneMinus(identity(covariance)), Square(covariance)))
}

// UnitVariance is what variances other than 1 cost, a scalar ≥ 0: Σ_i (Cov_ii − 1)² of a covariance, [m, m] (the same, second sum).
func UnitVariance(covariance *Node) *Node {
	return ReduceAllSum(Mul(identity(covariance), Square(AddScalar(covariance, -1))))
}

func identity(square *Node) *Node {
	m := square.Shape().Dim(0)
	square.AssertDims(m, m)
	return DiagonalWithValue(ScalarOne(square.Graph(), square.DType()), m)
}
