package latent

import (
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/paper/layer"
)

// Plain is the bottleneck of autoencoders whose m latents are the encoder's numbers as they stand.
type Plain struct{ M int }

// Params is empty: nothing is learned here.
func (p Plain) Params() []layer.Param { return nil }

// Retrieve is z, [B, m], as m slots of one number, [B, m, 1].
func (p Plain) Retrieve(_ *context.Context, z *Node) *Node { return Reshape(z, -1, p.M, 1) }

// Represent is the number in every slot, [B, m].
func (p Plain) Represent(_ *context.Context, retrieved *Node) *Node {
	return Reshape(retrieved, -1, p.M)
}

// Bundle is what the decoder reads: the numbers of the slots, [B, m].
func (p Plain) Bundle(_ *context.Context, slots *Node) *Node { return slots }
