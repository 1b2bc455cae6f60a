package cpu

import (
	"testing"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/simplego"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// engine opens the backend under test with two workers.
func engine(t testing.TB) backends.Backend {
	t.Helper()
	b, err := New("2")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Finalize)
	return b
}

// reference opens GoMLX's Go backend.
func reference(t testing.TB) backends.Backend {
	t.Helper()
	b, err := simplego.New("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Finalize)
	return b
}

// eval computes a graph function on a backend.
func eval(t testing.TB, b backends.Backend, fn any, inputs ...any) []*tensors.Tensor {
	t.Helper()
	exec, err := NewExecAny(b, fn)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Exec(inputs...)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	return out
}

func TestSmallConvNetTrains(t *testing.T) {
	fn := func(x, k, w *Node) []*Node {
		y := Convolve(x, k).Strides(2).PaddingPerDim([][2]int{{1, 1}, {1, 1}}).Done()
		y = Max(y, MulScalar(y, 0.2))
		y = Reshape(y, y.Shape().Dimensions[0], -1)
		y = Tanh(Dot(y, w))
		loss := ReduceAllMean(Square(y))
		g := Gradient(loss, k, w)
		return []*Node{loss, g[0], g[1]}
	}
	_ = fn
	x := tensors.FromFlatDataAndDimensions(ramp(2*8*8*3), 2, 8, 8, 3)
	k := tensors.FromFlatDataAndDimensions(ramp(4*4*3*5), 4, 4, 3, 5)
	w := tensors.FromFlatDataAndDimensions(ramp(80*6), 80, 6)
	out := eval(t, engine(t), fn, x, k, w)
	for _, o := range out {
		t.Log(o)
	}
}

func ramp(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32((i*7919)%101)/101 - 0.5
	}
	return v
}
