//go:build cgo

package ae

import (
	"sync"
	"testing"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/compute/cpu/kernel"
)

// TestParityInBF16x3 repeats TestParity with products of two bfloat16 parts each, which are close enough to float32, with the kernels that every machine has, and with
// AMX if the processor has it or the tag amx_emulation emulates it. Tripod divides small differences and does not support them.
func TestParityInBF16x3(t *testing.T) {
	usual := opened
	defer func() { opened, looser = usual, 1 }()
	looser = 1.5 // HRR's largest is 0.4, BioAE's 0.99
	for _, set := range []string{"plain C", "AMX"} {
		t.Run(set, func(t *testing.T) {
			undo, ok := kernel.ForceHalf(set)
			if !ok && set == "AMX" {
				t.Skip("this processor has no AMX")
			}
			if !ok {
				t.Fatal("no kernels in plain C")
			}
			defer undo()
			opened = sync.OnceValues(func() (*compute.Engine, error) {
				return compute.OpenFor(model.Config{Engine: "cpu", Precision: model.BF16x3})
			})
			holdToPyTorch(t, "tripod")
		})
	}
}
