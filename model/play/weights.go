package play

import (
	"fmt"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
	"slotscope/model/format/weights"
)

// MaxWeights is the largest weights file that a browser is offered, in bytes: a few seconds of a slow line, and some memory of a
// phone.
const MaxWeights = 24 << 20

// WeightsSize is about how many bytes Weights gives, as float32; 0 where a browser cannot compute the model.
func (m *Model) WeightsSize() int { return m.weightsSize }

// Weights is what a browser needs to compute the model by itself, as float32. A model that takes more than MaxWeights is
// model.Invalid.
func (m *Model) Weights() ([]byte, error) {
	if m.weightsSize > MaxWeights {
		return nil, model.Invalid{"checkpoint": fmt.Sprintf("its weights take %.0f MB; browsers are offered at most %d MB, so the server decodes its pictures",
			float64(m.weightsSize)/(1<<20), MaxWeights>>20)}
	}
	return m.weights()
}

// weightsSize is the size of a checkpoint's numbers; 0 where they are not those of a whole model.
func weightsSize(file checkpoint.File) int {
	if len(file.Tensors["canvas"].Shape) != 4 {
		return 0
	}
	n := 0
	for _, t := range file.Tensors {
		n += len(t.Data)
	}
	return n * 4
}

func encodeWeights(file checkpoint.File) func() ([]byte, error) {
	return func() ([]byte, error) { return weights.Encode(file, weights.Float32) }
}
