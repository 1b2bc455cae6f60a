// Not built with the race detector, under which sync.Pool drops items on purpose.

//go:build cgo && !race

package cpu

import (
	"testing"

	"github.com/gomlx/gomlx/backends"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// training returns a step of gradient descent on the kernel of a convolution over 16 images.
func training(t *testing.T, b backends.Backend) (step func()) {
	e := build(t, b, []shapes.Shape{f32(16, 32, 32, 8), f32(3, 3, 8, 16)}, func(in []*Node) []*Node {
		x, w := in[0], in[1]
		y := Convolve(x, w).PadSame().Done()
		loss := ReduceAllMean(Square(Max(y, MulScalar(y, 0.2))))
		return []*Node{Sub(w, MulScalar(Gradient(loss, w)[0], 0.1)), loss}
	})
	x, w := upload(t, b, tensorOf(ramp(16*32*32*8), 16, 32, 32, 8)), upload(t, b, tensorOf(ramp(3*3*8*16), 3, 3, 8, 16))
	return func() {
		out, err := e.Execute([]backends.Buffer{x, w}, []bool{false, true}, 0)
		if err != nil {
			t.Fatal(err)
		}
		w = out[0]
		b.BufferFinalize(out[1])
	}
}

// TestSteadyStepAllocatesNothingLarge checks that a repeated step allocates only a few headers; an activation has 1 MiB.
func TestSteadyStepAllocatesNothingLarge(t *testing.T) {
	step := training(t, engine(t))
	step()
	r := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			step()
		}
	})
	if r.AllocsPerOp() > 20 || r.AllocedBytesPerOp() > 32<<10 {
		t.Errorf("%d allocations with %d bytes in total per step", r.AllocsPerOp(), r.AllocedBytesPerOp())
	}
}
