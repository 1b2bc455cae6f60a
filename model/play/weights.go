package play

import (
	"fmt"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
	"slotscope/model/format/weights"
)

// MaxWeights is the maximum size of a weights file for browsers, in bytes. It limits the download time on slow connections and the memory on
// phones.
const MaxWeights = 24 << 20

// WeightsSize returns the approximate size of Weights in bytes, as float32; 0 if the model cannot run in a browser.
func (m *Model) WeightsSize() int { return m.weightsSize }

// Weights returns the weights file for running the model in a browser, as float32, or a model.Invalid if it would exceed MaxWeights.
func (m *Model) Weights() ([]byte, error) {
	if m.weightsSize > MaxWeights {
		return nil, model.Invalid{"checkpoint": fmt.Sprintf("its weights take %.0f MB; at most %d MB can be sent to a browser, so decode on the server",
			float64(m.weightsSize)/(1<<20), MaxWeights>>20)}
	}
	return m.weights()
}

// weightsSize returns the size of a checkpoint's tensors as float32; 0 if they are not those of a complete Slotscope model.
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
