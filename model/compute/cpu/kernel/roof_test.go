//go:build cgo

package kernel

import "testing"

func TestRoofWork(t *testing.T) {
	if n, sum := roofProducts(100); sum != 6 || n%(100*2*12) != 0 || n == 0 {
		t.Errorf("%d operations return %g; want a multiple of %d operations, and 6: 12 chains tend to 0.5", n, sum, 100*2*12)
	}
	x, y := random(1, 64), make([]float32, 65)
	roofCopy(x, y)
	for i, v := range x {
		if y[i] != v/2 {
			t.Fatalf("float %d is %g, want %g", i, y[i], v/2)
		}
	}
	if y[64] != 0 {
		t.Error("wrote beyond the copy")
	}
}

func TestRoof(t *testing.T) {
	if flops, bytes := MeasureRoof(2); !(flops > 0 && bytes > 0) {
		t.Errorf("%g operations and %g bytes per second", flops, bytes)
	}
}

func TestShared(t *testing.T) {
	switch ns := MeasureShared(); {
	case cores > 1 && !(ns > 0):
		t.Errorf("64 bytes are written in %g ns", ns)
	case cores == 1 && ns != 0:
		t.Errorf("%g ns with one core, want 0", ns)
	}
}
