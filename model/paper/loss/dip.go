package loss

import (
	. "github.com/gomlx/gomlx/pkg/core/graph"
)

// Covariance returns the covariance, [m, m], of means μ, [B, m], over the batch.
//
//	Cov = mean_B μμᵀ − (mean_B μ)(mean_B μ)ᵀ
func Covariance(mean *Node) *Node {
	centred := Sub(mean, ReduceAndKeep(mean, ReduceMean, 0))
	return DivScalar(DotGeneral(centred, []int{0}, nil, centred, []int{0}, nil), float64(mean.Shape().Dim(0)))
}

// MarginalCovariance returns the covariance, [m, m], of samples from the posteriors; mean and logVar log σ² are [B, m].
//
//	Cov[z] = E Cov[z|x] + Cov E[z|x] = diag(mean_B σ²) + Cov(μ)       Kumar et al. 2018, DIP-VAE-II
func MarginalCovariance(mean, logVar *Node) *Node {
	covariance := Covariance(mean)
	return Add(covariance, Mul(identity(covariance), InsertAxes(ReduceMean(Exp(logVar), 0), 0)))
}

// OffDiagonal penalizes correlated latents. It returns Σ_{i≠j} Cov_ij² ≥ 0 of a covariance, [m, m] (Kumar et al. 2018, equations 6 and 7,
// first sum).
func OffDiagonal(covariance *Node) *Node {
	return ReduceAllSum(Mul(OneMinus(identity(covariance)), Square(covariance)))
}

// UnitVariance penalizes variances other than 1. It returns Σ_i (Cov_ii − 1)² ≥ 0 of a covariance, [m, m] (same source, second sum).
func UnitVariance(covariance *Node) *Node {
	return ReduceAllSum(Mul(identity(covariance), Square(AddScalar(covariance, -1))))
}

func identity(square *Node) *Node {
	m := square.Shape().Dim(0)
	square.AssertDims(m, m)
	return DiagonalWithValue(ScalarOne(square.Graph(), square.DType()), m)
}
