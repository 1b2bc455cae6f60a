package latent

import (
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/paper/layer"
)

// Grid is Tripod's bottleneck, finite scalar latent quantization (Hsu et al. 2024): each of m latents is squashed to −1 … 1 and quantized
// to the nearest of k evenly spaced values. It has no parameters and no commitment term.
type Grid struct{ M, K int }

// Params returns nil.
func (f Grid) Params() []layer.Param { return nil }

// Apply squashes and rounds z, [B, m]. Retrieved and Denoised are tanh z, [B, m]; Quantized and Bundle are its grid values, [B, m], with
// a straight-through gradient.
//
//	z_c = tanh z,  j = round((z_c + 1)/2 · (k − 1)), halves to even,  z_q = 2j/(k − 1) − 1,  ∂z_q/∂z_c = 1
func (f Grid) Apply(z *Node) Slots {
	z.AssertDims(-1, f.M)
	squashed := Tanh(z)
	codes := f.nearest(squashed)
	quantized := straight(squashed, f.value(codes, z.DType()))
	return Slots{Retrieved: squashed, Denoised: squashed, Quantized: quantized, Codes: codes, Bundle: quantized}
}

// Retrieve returns tanh z for z of [B, m], as m slots of one number, [B, m, 1].
func (f Grid) Retrieve(_ *context.Context, z *Node) *Node { return Reshape(Tanh(z), -1, f.M, 1) }

// Represent returns the code of every slot, [B, m] int32; squashed is [B, m, 1]. Values outside −1 … 1 get the nearest end's code.
func (f Grid) Represent(_ *context.Context, squashed *Node) *Node {
	return f.nearest(Reshape(ClipScalar(squashed, -1, 1), -1, f.M))
}

// Bundle returns the values of code tuples: codes and result are [B, m].
func (f Grid) Bundle(_ *context.Context, codes *Node) *Node { return f.value(codes, dtypes.Float32) }

func (f Grid) nearest(squashed *Node) *Node {
	return ConvertDType(Round(MulScalar(AddScalar(StopGradient(squashed), 1), float64(f.K-1)/2)), dtypes.Int32)
}

func (f Grid) value(codes *Node, dtype dtypes.DType) *Node {
	return AddScalar(MulScalar(ConvertDType(codes, dtype), 2/float64(f.K-1)), -1)
}
