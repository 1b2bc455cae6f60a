// Package checkpoint reads and writes a model's learned tensors as safetensors files, under the names and layouts that
// PyTorch gives them, with the run's configuration as metadata.
package checkpoint

import "slotscope/model"

// Tensor is a dense array in row-major order; len(Data) is the product of Shape.
type Tensor struct {
	Shape []int
	Data  []float32
}

// File is one checkpoint in memory.
type File struct {
	Config  model.Config
	Step    int               // gradient steps behind these tensors
	Meta    map[string]string // other metadata: seed, engine, scores
	Tensors map[string]Tensor // by PyTorch name: "encoder.0.weight", "symbols" …
}
