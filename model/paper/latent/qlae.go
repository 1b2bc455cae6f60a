package latent

import (
	"math/rand/v2"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/paper/layer"
)

// QLAE is the bottleneck of latent quantization (Hsu et al. 2023): each of m latents is a number that is quantized to the nearest of
// the k values in its own codebook.
type QLAE struct{ M, K int }

// Params returns the values, [m, k], under PyTorch's name. They start as k evenly spaced points from −½ to ½ for every latent.
func (q QLAE) Params() []layer.Param {
	return layer.At(layer.Codebook, []layer.Param{layer.Plain("codebook", q.spread, q.M, q.K)})
}

func (q QLAE) spread(_ *rand.Rand, out []float32) {
	for i := range out {
		out[i] = float32(float64(i%q.K)/float64(q.K-1) - 0.5)
	}
}

// Apply quantizes every latent of z, [B, m], to its nearest value. Quantized and Denoised are [B, m, 1], Codebook is [m, k].
func (q QLAE) Apply(scope *context.Context, z *Node) Slots {
	latents, values := q.Retrieve(scope, z), layer.Value(scope, z.Graph(), "codebook")
	codes := q.Represent(scope, latents)
	quantized := q.lookup(values, codes)
	bundle := Reshape(straight(latents, quantized), -1, q.M)
	return Slots{latents, latents, quantized, codes, values, bundle}
}

// Retrieve returns z, [B, m], as m slots of one number, [B, m, 1].
func (q QLAE) Retrieve(_ *context.Context, z *Node) *Node { return Reshape(z, -1, q.M, 1) }

// Represent returns the code of every slot, [B, m] int32, the lowest in a tie; latents is [B, m, 1].
//
//	j_i = argmin_j |z_i − v_ij|                Hsu et al. 2023, equation 1
func (q QLAE) Represent(scope *context.Context, latents *Node) *Node {
	values := layer.Value(scope, latents.Graph(), "codebook")
	distance := Abs(Sub(StopGradient(latents), InsertAxes(StopGradient(values), 0))) // [B, m, k]
	return ArgMin(distance, 2)
}

// Bundle returns the values of code tuples: codes and result are [B, m].
func (q QLAE) Bundle(scope *context.Context, codes *Node) *Node {
	return Reshape(q.lookup(layer.Value(scope, codes.Graph(), "codebook"), codes), -1, q.M)
}

// lookup returns value codes_i of each latent i: values is [m, k], codes [B, m] int32, the result [B, m, 1].
func (q QLAE) lookup(values, codes *Node) *Node {
	return Lookup(Reshape(values, q.M*q.K, 1), ofSlots(codes, q.M, q.K))
}
