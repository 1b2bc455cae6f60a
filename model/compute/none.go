//go:build !cgo

package compute

import "slotscope/model/compute/cpu"

// MemoryShare is 0: without a C compiler there is no XLA, and so no GPU.
func MemoryShare() float64 { return 0 }

func openCUDA(Report, string, string) (*Engine, error) { return nil, cpu.ErrNotBuilt }

func openXLACPU() (*Engine, error) { return nil, cpu.ErrNotBuilt }
