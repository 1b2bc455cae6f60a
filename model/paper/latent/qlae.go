package latent

import (
	"math/rand/v2"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/paper/layer"
)

// QLAE is the bottleneck of latent quantization (Hsu et al. 2023): each of m latents is a number, and takes the nearest of the
// k values in a codebook of its own.
type QLAE struct{ M, K int }

// Params are the values, [m, k], under PyTorch's name: at first k points from −½ to ½, the same for every latent.
func (q QLAE) Params() []layer.Param {
	return layer.At(layer.Codebook, []layer.Param{layer.Plain("codebook", q.spread, q.M, q.K)})
}

func (q QLAE) spread(_ *rand.Rand, out []float32) {
	for i := range out {
		out[i] = float32(float64(i%q.K)/float64(q.K-1) - 0.5)
	}
}

// Apply takes, for every latent of z, [B, m], the nearest of its values. Quantized and Denoised are [B, m, 1], Codebook [m, k].
func (q QLAE) Apply(scope *context.Context, z *Node) Slots {
	latents, values := q.Retrieve(scope, z), layer.Value(scope, z.Graph(), "codebook")
	codes := q.Represent(scope, latents)
	quantized := q.lookup(values, codes)
	bundle := Reshape(straight(latents, quantized), -1, q.M)
	return Slots{latents, latents, quantized, codes, values, bundle}
}

// Retrieve is z, [B, m], as m slots of one number, [B, m, 1].
func (q QLAE) Retrieve(_ *context.Context, z *Node) *Node { return Reshape(z, -1, q.M, 1) }

// Represent is the code of every slot, [B, m] int32, ties going to the lowest; latents is [B, m, 1].
//
//	j_i = argmin_j |z_i − v_ij|                Hsu et al. 2023, equation 1
func (q QLAE) Represent(scope *context.Context, latents *Node) *Node {
	values := layer.Value(scope, latents.Graph(), "codebook")
	distance := Abs(Sub(StopGradient(latents), InsertAxes(StopGradient(values), 0))) // [B, m, k]
	return ArgMin(distance, 2)
}

// Bundle are the values of code tuples: codes and result are [B, m].
func (q QLAE) Bundle(scope *context.Context, codes *Node) *Node {
	return Reshape(q.lookup(layer.Value(scope, codes.Graph(), "codebook"), codes), -1, q.M)
}

// lookup takes value codes_i of latent i: values is [m, k], codes [B, m] int32, the result [B, m, 1].
func (q QLAE) lookup(values, codes *Node) *Node {
	first := MulScalar(Iota(codes.Graph(), shapes.Make(dtypes.Int32, 1, q.M), 1), q.K) // of every latent's values in one list
	return Lookup(Reshape(values, q.M*q.K, 1), Add(ConvertDType(codes, dtypes.Int32), first))
}
