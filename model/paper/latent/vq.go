package latent

import (
	"math"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/paper/layer"
)

// VQ is VQ-VAE's bottleneck (van den Oord et al. 2017): z is split into m parts of d numbers, and each part is quantized to the nearest
// of k entries, which all slots share.
type VQ struct {
	M, K, D  int
	UnitNorm bool // initialization of entries; see Params
	Rotation bool // use the rotation trick for the gradient through the quantizer, not straight-through

	Following
}

// Params returns the codebook, [k, d], under PyTorch's name, and "usage" if Follow needs it; see Following.
//
//	C ~ U(±√(3/d))          with UnitNorm: E‖c‖² = 1           Hsu et al. 2023, latent_quantization
//	C ~ U(±1/k)             otherwise                          van den Oord et al. 2017, published code
func (v VQ) Params() []layer.Param {
	bound := 1 / float64(v.K)
	if v.UnitNorm {
		bound = math.Sqrt(3 / float64(v.D))
	}
	return v.params(layer.Plain("codebook", layer.Uniform(bound), v.K, v.D))
}

// Apply splits z, [B, m·d], into parts, replaces each by its nearest entry and joins them again.
func (v VQ) Apply(scope *context.Context, z *Node) Slots {
	parts, entries := v.Retrieve(scope, z), layer.Value(scope, z.Graph(), "codebook")
	codes := Nearest(parts, entries)
	quantized := Lookup(entries, codes)
	bundle := Reshape(through(parts, quantized, v.Rotation), -1, v.M*v.D)
	return Slots{parts, parts, quantized, codes, entries, bundle}
}

// Retrieve splits z, [B, m·d], into the parts of the slots, [B, m, d].
func (v VQ) Retrieve(_ *context.Context, z *Node) *Node { return Reshape(z, -1, v.M, v.D) }

// Represent returns the codes, [B, m] int32, of the slots' parts, [B, m, d].
func (v VQ) Represent(scope *context.Context, parts *Node) *Node {
	return Nearest(parts, layer.Value(scope, parts.Graph(), "codebook"))
}

// Bundle joins the entries of code tuples, [B, m], to [B, m·d].
func (v VQ) Bundle(scope *context.Context, codes *Node) *Node {
	return Reshape(Lookup(layer.Value(scope, codes.Graph(), "codebook"), codes), -1, v.M*v.D)
}
