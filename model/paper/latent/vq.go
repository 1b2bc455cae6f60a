package latent

import (
	"math"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/paper/layer"
)

// VQ is VQ-VAE's bottleneck (van den Oord et al. 2017): z is cut into m parts of d numbers, and each part takes the nearest of
// k entries, which all slots share.
type VQ struct {
	M, K, D  int
	UnitNorm bool // how entries begin; see Params
	Rotation bool // the gradient passes the quantizer by the rotation trick, else straight through

	Following
}

// Params is the codebook, [k, d], under PyTorch's name, and where Follow needs it "usage"; see Following.
//
//	C ~ U(±√(3/d))          with UnitNorm: E‖c‖² = 1           Hsu et al. 2023, latent_quantization
//	C ~ U(±1/k)             else                               van den Oord et al. 2017, published code
func (v VQ) Params() []layer.Param {
	bound := 1 / float64(v.K)
	if v.UnitNorm {
		bound = math.Sqrt(3 / float64(v.D))
	}
	return v.params(layer.Plain("codebook", layer.Uniform(bound), v.K, v.D))
}

// Apply cuts z, [B, m·d], takes the nearest entries and joins them again.
func (v VQ) Apply(scope *context.Context, z *Node) Slots {
	parts, entries := v.Retrieve(scope, z), layer.Value(scope, z.Graph(), "codebook")
	codes := Nearest(parts, entries)
	quantized := Lookup(entries, codes)
	bundle := Reshape(through(parts, quantized, v.Rotation), -1, v.M*v.D)
	return Slots{parts, parts, quantized, codes, entries, bundle}
}

// Retrieve cuts z, [B, m·d], into the parts of the slots, [B, m, d].
func (v VQ) Retrieve(_ *context.Context, z *Node) *Node { return Reshape(z, -1, v.M, v.D) }

// Represent is the code of every slot, [B, m] int32, of its part, [B, m, d].
func (v VQ) Represent(scope *context.Context, parts *Node) *Node {
	return Nearest(parts, layer.Value(scope, parts.Graph(), "codebook"))
}

// Bundle joins the entries of code tuples, [B, m], to [B, m·d].
func (v VQ) Bundle(scope *context.Context, codes *Node) *Node {
	return Reshape(Lookup(layer.Value(scope, codes.Graph(), "codebook"), codes), -1, v.M*v.D)
}
