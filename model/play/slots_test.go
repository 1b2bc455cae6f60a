package play

import (
	"math"
	"testing"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
)

// TestSlots: generated entries are scaled by √(1/d), learned ones are not, and missing vectors are empty.
func TestSlots(t *testing.T) {
	file := checkpoint.File{Config: model.Config{D: 2}, Tensors: map[string]checkpoint.Tensor{
		"symbols":           {Shape: []int{1, 2}, Data: []float32{3, 4}},
		"seeds":             {Shape: []int{1, 2}, Data: []float32{1, -1}},
		"generator1.weight": {Shape: []int{2, 2}, Data: []float32{1, 0, 0, 1}},
		"generator1.bias":   {Shape: []int{2}, Data: []float32{0, 0}},
		"generator2.weight": {Shape: []int{2, 2}, Data: []float32{2, 0, 0, 100}},
		"generator2.bias":   {Shape: []int{2}, Data: []float32{0, 3}},
	}}
	s := slotsOf(file, func() [][]float32 { return codebookOf(file) })
	if len(s.Symbols) != 1 || s.Symbols[0][0] != 3 || s.Symbols[0][1] != 4 {
		t.Errorf("symbols are %v", s.Symbols)
	}
	for n, want := range []float64{2 / math.Sqrt2, 2 / math.Sqrt2} { // LeakyReLU maps the second to −0.01; 100 · −0.01 + 3 = 2
		if math.Abs(s.Entries[0][n]-want) > 1e-6 {
			t.Errorf("entry 0 is %v, want %v at %d", s.Entries[0], want, n)
		}
	}
	file.Tensors["codebook"] = checkpoint.Tensor{Shape: []int{1, 2}, Data: []float32{7, 8}}
	if s := slotsOf(file, func() [][]float32 { return nil }); s.Entries[0][1] != 8 {
		t.Errorf("learned entries are %v", s.Entries)
	}
	if s := slotsOf(checkpoint.File{}, func() [][]float32 { return nil }); len(s.Symbols)+len(s.Entries) != 0 {
		t.Errorf("a checkpoint without slots has %v", s)
	}
}
