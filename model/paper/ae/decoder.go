package ae

import (
	"slices"

	"github.com/gomlx/gomlx/backends"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"
)

// Decoder decodes slots with weights that do not change: what depends only on them is computed once.
type Decoder struct {
	exec  *context.Exec // Fixed's tensors and slots [B, m] → logits [B, H, W, C]
	fixed []any
}

// NewDecoder compiles the decoder of a model whose variables are in scope, and must not change afterwards.
func NewDecoder(engine backends.Backend, scope *context.Context, m Model) (*Decoder, error) {
	prepare, err := context.NewExec(engine, scope, func(scope *context.Context, g *Graph) []*Node { return m.Fixed(scope, g) })
	if err != nil {
		return nil, err
	}
	defer prepare.Finalize()
	fixed, err := prepare.Exec()
	if err != nil {
		return nil, err
	}
	d := &Decoder{}
	for _, t := range fixed {
		d.fixed = append(d.fixed, t)
	}
	d.exec, err = context.NewExec(engine, scope, func(scope *context.Context, in []*Node) *Node {
		slots := len(in) - 1
		return m.DecodeFixed(scope, in[:slots], in[slots])
	})
	if err != nil {
		d.Finalize()
		return nil, err
	}
	return d, nil
}

// Decode maps slots, [B, m], to logits, [B, H, W, C].
func (d *Decoder) Decode(slots *tensors.Tensor) (*tensors.Tensor, error) {
	return d.exec.Exec1(append(slices.Clip(d.fixed), slots)...)
}

// Finalize frees memory.
func (d *Decoder) Finalize() {
	if d.exec != nil {
		d.exec.Finalize()
	}
	for _, t := range d.fixed {
		t.(*tensors.Tensor).MustFinalizeAll()
	}
}
