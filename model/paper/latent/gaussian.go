package latent

import (
	. "github.com/gomlx/gomlx/pkg/core/graph"
)

// Gaussian is the bottleneck of the variational autoencoders: the encoder outputs the mean and log variance of each of m latents, and
// the posterior is a diagonal Gaussian. The mean represents an image.
type Gaussian struct{ Plain }

// Posterior splits the encoder's outputs, [B, 2m], into m means and m log variances, [B, m] each.
func (n Gaussian) Posterior(outputs *Node) (mean, logVar *Node) {
	outputs.AssertDims(-1, 2*n.M)
	return Slice(outputs, AxisRange(), AxisRange(0, n.M)), Slice(outputs, AxisRange(), AxisRange(n.M, 2*n.M))
}

// Sample draws from the posterior with noise ε ~ N(0, 1); all are [B, m].
//
//	z = μ + e^{½ log σ²}·ε                     Kingma and Welling 2014, “reparameterization”
func (n Gaussian) Sample(mean, logVar, noise *Node) *Node {
	noise.AssertDims(mean.Shape().Dimensions...)
	return Add(mean, Mul(Exp(MulScalar(logVar, 0.5)), noise))
}
