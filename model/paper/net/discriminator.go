package net

import (
	"fmt"
	"slices"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/paper/layer"
)

// Discriminator classifies latents as joint or independent draws: hidden layers with LeakyReLU 0.2, then two logits (Kim and Mnih 2018).
type Discriminator struct{ In, Width, Layers int } // latents; width and number of hidden layers

// Params returns its layers, discriminator1 … discriminator{Layers+1}, which have their own optimizer.
func (d Discriminator) Params() []layer.Param {
	var params []layer.Param
	in := d.In
	for i := range d.Layers {
		params = append(params, layer.Linear(discriminator(i), in, d.Width)...)
		in = d.Width
	}
	return layer.At(layer.Discriminator, slices.Concat(params, layer.Linear(discriminator(d.Layers), in, 2)))
}

// Apply maps z, [B, In], to logits, [B, 2]: 0 for joint draws, 1 for permuted ones.
func (d Discriminator) Apply(scope *context.Context, z *Node) *Node {
	z.AssertDims(-1, d.In)
	for i := range d.Layers {
		z = layer.LeakyReLU(layer.Dense(scope, discriminator(i), z), leak)
	}
	return layer.Dense(scope, discriminator(d.Layers), z)
}

func discriminator(i int) string { return fmt.Sprintf("discriminator%d", i+1) }
