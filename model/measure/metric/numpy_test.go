package metric

import (
	"slices"
	"testing"
)

// TestGeneratorIsNumPys compares with numpy.random.default_rng(seed).permutation of NumPy 1.24.
func TestGeneratorIsNumPys(t *testing.T) {
	g := newGenerator(9)
	if a, b := g.order(12), g.order(5); !slices.Equal(a, []int{7, 2, 6, 10, 9, 3, 5, 11, 8, 4, 0, 1}) || !slices.Equal(b, []int{1, 3, 4, 0, 2}) {
		t.Errorf("seed 9: %v, %v", a, b)
	}
	if a := newGenerator(1<<40 + 3).order(10); !slices.Equal(a, []int{2, 4, 6, 5, 7, 9, 0, 3, 8, 1}) {
		t.Errorf("a seed of two words: %v", a)
	}
	orders := newGenerator(7).orders(2, 1000)
	if a, b := orders[0][:10], orders[1][:5]; !slices.Equal(a, []int{816, 923, 151, 900, 213, 100, 851, 503, 643, 172}) || !slices.Equal(b, []int{893, 312, 945, 432, 709}) {
		t.Errorf("seed 7: %v, %v", a, b)
	}
}
