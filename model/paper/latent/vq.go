package latent

import (
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/paper/layer"
)

// VQ is VQ-VAE's bottleneck (van den Oord et al. 2017): z is cut into m parts of d numbers, and each part takes the nearest of
// k entries, which all slots share.
type VQ struct{ M, K, D int }

// Params is the codebook, [k, d], under PyTorch's name.
//
//	C ~ U(±1/k)
func (v VQ) Params() []layer.Param {
	return layer.At(layer.Codebook, []layer.Param{layer.Plain("codebook", layer.Uniform(1/float64(v.K)), v.K, v.D)})
}

// Apply cuts z, [B, m·d], takes the nearest entries and joins them again.
func (v VQ) Apply(scope *context.Context, z *Node) Slots {
	parts, entries := v.Retrieve(scope, z), layer.Value(scope, z.Graph(), "codebook")
	codes := Nearest(parts, entries)
	quantized := Lookup(entries, codes)
	bundle := Reshape(straight(parts, quantized), -1, v.M*v.D)
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
