//go:build cgo

package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// checkGradient compares the gradient of a loss, in float64 and in float32, with central differences in float64, at up to
// 12 entries of each input.
func checkGradient(t *testing.T, name string, loss func(in []*Node) *Node, dims ...[]int) {
	t.Helper()
	b := engine(t)
	rng := rand.New(rand.NewPCG(15, 16))
	inputs := make([]any, len(dims))
	for i, d := range dims {
		inputs[i] = random(rng, shapes.Make(dtypes.Float64, d...))
	}
	grads := eval(t, b, func(in []*Node) []*Node {
		single := make([]*Node, len(in))
		for i, x := range in {
			single[i] = ConvertDType(x, dtypes.Float32)
		}
		return append(Gradient(loss(in), in...), Gradient(loss(single), single...)...)
	}, inputs...)
	value, err := NewExecAny(b, loss)
	if err != nil {
		t.Fatal(err)
	}
	for i, in := range inputs {
		exact, single := floats(grads[i]), floats(grads[len(inputs)+i])
		for _, k := range rng.Perm(len(exact))[:min(12, len(exact))] {
			want := difference(t, value, inputs, i, k)
			for what, got := range map[string][2]float64{"float64": {exact[k], 1e-6}, "float32": {single[k], 2e-3}} {
				if d := got[0] - want; d > got[1]*max(1, want, -want) || -d > got[1]*max(1, want, -want) {
					t.Errorf("%s: derivative with respect to entry %d of input %d (%s) is %g in %s, central differences give %g", name, k, i, in.(*tensors.Tensor).Shape(), got[0], what, want)
				}
			}
		}
	}
}

// difference returns (f(x + h) − f(x − h)) / 2h with respect to entry k of input i.
func difference(t *testing.T, f *Exec, inputs []any, i, k int) float64 {
	t.Helper()
	const h = 1e-5
	at := func(h float64) float64 {
		moved := copies(inputs)
		tensors.MustMutableFlatData(moved[i].(*tensors.Tensor), func(flat []float64) { flat[k] += h })
		return f.MustExec(moved...)[0].Value().(float64)
	}
	return (at(h) - at(-h)) / (2 * h)
}

// TestGradientsOfConvolutions uses odd kernels: GoMLX 0.26 shifts the gradient of an even one, on every backend (model/paper/layer has its own).
func TestGradientsOfConvolutions(t *testing.T) {
	for _, c := range []struct {
		strides, dilation int
		pad               [2]int
		groups            int
	}{{1, 1, [2]int{0, 0}, 1}, {2, 1, [2]int{1, 1}, 1}, {1, 2, [2]int{2, 1}, 1}, {2, 1, [2]int{1, 2}, 2}, {3, 1, [2]int{0, 1}, 1}} {
		checkGradient(t, fmt.Sprintf("convolution %+v", c), func(in []*Node) *Node {
			y := Convolve(in[0], in[1]).PaddingPerDim([][2]int{c.pad, c.pad}).ChannelGroupCount(c.groups)
			if c.strides > 1 {
				y = y.Strides(c.strides)
			}
			if c.dilation > 1 {
				y = y.DilationPerAxis(c.dilation, c.dilation)
			}
			return ReduceAllSum(Square(y.Done()))
		}, []int{2, 9, 9, 4}, []int{3, 3, 4 / c.groups, 6})
	}
}

// TestGradientsOfLayers checks the paper's layers and losses, each composed as in its model.
func TestGradientsOfLayers(t *testing.T) {
	for _, c := range []struct {
		name string
		loss func(in []*Node) *Node
		dims [][]int
	}{
		{"instance norm", func(in []*Node) *Node {
			x := in[0]
			mean := ReduceAndKeep(x, ReduceMean, 1, 2)
			d := Sub(x, mean)
			y := Div(d, Sqrt(AddScalar(ReduceAndKeep(Square(d), ReduceMean, 1, 2), 1e-5)))
			return ReduceAllSum(Mul(y, Add(in[1], y)))
		}, [][]int{{2, 3, 4, 5}, {2, 1, 1, 5}}},
		{"BCE with logits", func(in []*Node) *Node {
			x, target := in[0], Sigmoid(in[1])
			soft := Add(Max(x, ZerosLike(x)), Log1P(Exp(Neg(Abs(x)))))
			return ReduceAllMean(Sub(soft, Mul(x, target)))
		}, [][]int{{3, 7}, {3, 7}}},
		{"softplus", func(in []*Node) *Node { return ReduceAllSum(Softplus(in[0])) }, [][]int{{3, 7}}},
		{"leaky ReLU", func(in []*Node) *Node {
			x := in[0]
			return ReduceAllSum(Square(Where(GreaterThan(x, ZerosLike(x)), x, MulScalar(x, 0.2))))
		}, [][]int{{5, 6}}},
		{"softmax", func(in []*Node) *Node { return ReduceAllSum(Mul(Softmax(in[0]), in[1])) }, [][]int{{4, 5}, {4, 5}}},
		{"linear", func(in []*Node) *Node { return ReduceAllSum(Tanh(Add(Dot(in[0], in[1]), InsertAxes(in[2], 0)))) }, [][]int{{4, 5}, {5, 3}, {3}}},
		{"gather", func(in []*Node) *Node {
			at := Const(in[0].Graph(), [][]int32{{2}, {0}, {2}})
			return ReduceAllSum(Square(Gather(in[0], at)))
		}, [][]int{{4, 5}}},
		{"slice", func(in []*Node) *Node {
			x := Slice(in[0], AxisRange(1), AxisRange().Stride(2))
			return ReduceAllSum(Mul(x, Square(x)))
		}, [][]int{{4, 5}}},
		{"depth to space", func(in []*Node) *Node {
			x := Reshape(in[0], 2, 3, 3, 2, 2, 2)
			x = Reshape(TransposeAllAxes(x, 0, 1, 3, 2, 4, 5), 2, 6, 6, 2)
			return ReduceAllSum(Mul(Sin(x), x))
		}, [][]int{{2, 3, 3, 8}}},
		{"norms", func(in []*Node) *Node { return ReduceAllSum(L2Norm(in[0], 1)) }, [][]int{{4, 5}}},
		{"functions", func(in []*Node) *Node {
			x := in[0]
			y := Add(Add(Logistic(x), Erf(x)), Add(Cos(x), Exp(MulScalar(x, 0.3))))
			return ReduceAllSum(Add(Div(y, AddScalar(Square(x), 1)), Pow(AddScalar(Abs(x), 0.5), Const(x.Graph(), shapes.CastAsDType(1.5, x.DType())))))
		}, [][]int{{4, 5}}},
		{"scatter", func(in []*Node) *Node {
			at := Const(in[0].Graph(), [][]int32{{1}, {3}})
			return ReduceAllSum(Square(ScatterSum(in[0], at, in[1], false, true)))
		}, [][]int{{4, 5}, {2, 5}}},
	} {
		checkGradient(t, c.name, c.loss, c.dims...)
	}
}
