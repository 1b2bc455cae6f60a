package hrr_test

import (
	"math/rand/v2"
	"testing"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"slotscope/model/paper/hrr"
	"slotscope/model/paper/hrr/hrrtest"
)

const m, d, batch = 4, 24, 3

// world holds m symbols and a batch of bundles and of values, as rows and as tensors.
type world struct {
	symbols, z, values                  [][]float32
	symbolTensor, zTensor, valuesTensor *tensors.Tensor
}

func newWorld() (w world) {
	rng := rand.New(rand.NewPCG(11, 12))
	draw := func(n int) (rows [][]float32, flat []float32) {
		for range n {
			rows = append(rows, hrr.Symbol[float32](rng, d))
			flat = append(flat, rows[len(rows)-1]...)
		}
		return rows, flat
	}
	var flat []float32
	w.symbols, flat = draw(m)
	w.symbolTensor = tensors.FromFlatDataAndDimensions(flat, m, d)
	w.z, flat = draw(batch)
	w.zTensor = tensors.FromFlatDataAndDimensions(flat, batch, d)
	w.values, flat = draw(batch * m)
	w.valuesTensor = tensors.FromFlatDataAndDimensions(flat, batch, m, d)
	return w
}

// Both operands of the product, constant and gathered, agree with the definition on slices.
func TestUnbindAllAndBindAll(t *testing.T) {
	w := newWorld()
	constant := hrr.Circulants(flatten(w.symbols), m)
	got := MustExecOnceN(engine(t), func(symbols, z, values *Node) []*Node {
		fixed := ConstTensor(z.Graph(), tensors.FromFlatDataAndDimensions(constant, d, m*d))
		learned := hrr.CirculantsOf(symbols)
		return []*Node{hrr.UnbindAll(fixed, z), hrr.UnbindAll(learned, z), hrr.BindAll(fixed, values), hrr.BindAll(learned, values)}
	}, w.symbolTensor, w.zTensor, w.valuesTensor)
	var unbound, bundled [][]float32
	for b := range batch {
		pairs := make([][]float32, m)
		for i, s := range w.symbols {
			unbound = append(unbound, hrrtest.Unbind(s, w.z[b]))
			pairs[i] = hrrtest.Bind(s, w.values[b*m+i])
		}
		bundled = append(bundled, hrrtest.Bundle(pairs...))
	}
	const tol = 2e-6 // 24 products of float32 numbers below 1
	for i, want := range [][]float32{flatten(unbound), flatten(unbound), flatten(bundled), flatten(bundled)} {
		same(t, tensors.MustCopyFlatData[float32](got[i]), want, tol)
	}
}

func TestExactOf(t *testing.T) {
	w := newWorld()
	got := MustExecOnce(engine(t), hrr.ExactOf, w.symbolTensor)
	data := tensors.MustCopyFlatData[float32](got)
	for i, s := range w.symbols {
		inverse, err := hrr.ExactInverse(s)
		if err != nil {
			t.Fatal(err)
		}
		want := hrr.Involution(inverse)
		same(t, data[i*d:(i+1)*d], want, 1e-4*norm(widen(want))) // the weakest frequency magnifies rounding about a hundredfold
	}
}

// The gradient of every symbol through the gathered circulants matches central differences of ‖ẑ‖²/2 in float64 on the host.
func TestCirculantsOfGradient(t *testing.T) {
	w := newWorld()
	got := MustExecOnce(engine(t), func(symbols, values *Node) *Node {
		return Gradient(ReduceAllSum(Square(hrr.BindAll(hrr.CirculantsOf(symbols), values))), symbols)[0]
	}, w.symbolTensor, w.valuesTensor)
	data := tensors.MustCopyFlatData[float32](got)
	for i := range w.symbols {
		for n := 0; n < d; n += 7 {
			const h = 1e-3
			want := (w.energy(i, n, h) - w.energy(i, n, -h)) / (2 * h) // exact for a quadratic, up to rounding
			same(t, data[i*d+n:i*d+n+1], []float32{float32(want)}, 1e-4)
		}
	}
}

// energy returns Σ_b ‖ẑ_b‖² with component n of symbol i moved by h.
func (w world) energy(i, n int, h float64) (sum float64) {
	for b := range batch {
		pairs := make([][]float64, m)
		for j, s := range w.symbols {
			s64 := widen(s)
			if j == i {
				s64[n] += h
			}
			pairs[j] = hrrtest.Bind(s64, widen(w.values[b*m+j]))
		}
		for _, v := range hrrtest.Bundle(pairs...) {
			sum += v * v
		}
	}
	return sum
}

func flatten(rows [][]float32) (flat []float32) {
	for _, row := range rows {
		flat = append(flat, row...)
	}
	return flat
}

func widen(v []float32) []float64 {
	out := make([]float64, len(v))
	for n := range v {
		out[n] = float64(v[n])
	}
	return out
}
