package latent

import (
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/paper/layer"
)

// Plain is the bottleneck of autoencoders whose m latents are the encoder's outputs.
type Plain struct{ M int }

// Params returns nil: the bottleneck has no parameters.
func (p Plain) Params() []layer.Param { return nil }

// Retrieve returns z, [B, m], as m slots of one number, [B, m, 1].
func (p Plain) Retrieve(_ *context.Context, z *Node) *Node { return Reshape(z, -1, p.M, 1) }

// Represent returns the number in every slot, [B, m].
func (p Plain) Represent(_ *context.Context, retrieved *Node) *Node {
	return Reshape(retrieved, -1, p.M)
}

// Bundle returns the decoder's input: the numbers of the slots, [B, m].
func (p Plain) Bundle(_ *context.Context, slots *Node) *Node { return slots }
