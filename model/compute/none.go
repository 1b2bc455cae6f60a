//go:build !cgo

package compute

import (
	"slotscope/model"
	"slotscope/model/compute/cpu"
)

// MemoryShare returns 0: a build without cgo has no XLA and no GPU.
func MemoryShare() float64 { return 0 }

func openCUDA(Report, string, model.Config) (*Engine, error) { return nil, cpu.ErrNotBuilt }

func openXLACPU() (*Engine, error) { return nil, cpu.ErrNotBuilt }
