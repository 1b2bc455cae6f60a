package ae

import (
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/format/checkpoint"
)

// Open builds the model of a checkpoint for images of a shape, and imports the checkpoint's tensors into scope.
func Open(scope *context.Context, file checkpoint.File, image Image) (Model, error) {
	m, err := New(file.Config, image)
	if err != nil {
		return nil, err
	}
	return m, m.Import(scope, file.Tensors)
}

// Unit converts image bytes to float32 in [0, 1].
func Unit(images *Node) *Node { return DivScalar(ConvertDType(images, dtypes.Float32), 255) }

// SlotType returns the type of a model's slots: int32 for codes, float32 for numbers.
func SlotType(m Model) dtypes.DType {
	if m.Discrete() {
		return dtypes.Int32
	}
	return dtypes.Float32
}
