//go:build cgo

package cpu

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

func TestShapeOperations(t *testing.T) {
	m := [][]float32{{1, 2, 3}, {4, 5, 6}}
	for _, c := range []struct {
		name string
		fn   func(x *Node) *Node
		in   any
		want any
	}{
		{"Identity", Identity, m, m},
		{"Reshape", func(x *Node) *Node { return Reshape(x, 3, 2) }, m, [][]float32{{1, 2}, {3, 4}, {5, 6}}},
		{"Transpose", func(x *Node) *Node { return Transpose(x, 0, 1) }, m, [][]float32{{1, 4}, {2, 5}, {3, 6}}},
		{"Reverse", func(x *Node) *Node { return Reverse(x, 1) }, m, [][]float32{{3, 2, 1}, {6, 5, 4}}},
		{"Slice", func(x *Node) *Node { return Slice(x, AxisRange(), AxisRange().Stride(2)) }, m, [][]float32{{1, 3}, {4, 6}}},
		{"Pad", func(x *Node) *Node {
			return Pad(x, Const(x.Graph(), float32(9)), backends.PadAxis{Start: 1}, backends.PadAxis{End: 1, Interior: 1})
		}, m, [][]float32{{9, 9, 9, 9, 9, 9}, {1, 9, 2, 9, 3, 9}, {4, 9, 5, 9, 6, 9}}},
		{"Pad negative", func(x *Node) *Node {
			return Pad(x, Const(x.Graph(), float32(9)), backends.PadAxis{Start: -1}, backends.PadAxis{Start: -1, End: 1})
		}, m, [][]float32{{5, 6, 9}}},
		{"Concatenate", func(x *Node) *Node { return Concatenate([]*Node{x, x}, 1) }, m, [][]float32{{1, 2, 3, 1, 2, 3}, {4, 5, 6, 4, 5, 6}}},
		{"BroadcastPrefix", func(x *Node) *Node { return BroadcastPrefix(x, 2) }, []int8{1, 2}, [][]int8{{1, 2}, {1, 2}}},
		{"Iota", func(x *Node) *Node { return Add(x, Iota(x.Graph(), x.Shape(), 1)) }, m, [][]float32{{1, 3, 5}, {4, 6, 8}}},
		{"Bitcast", func(x *Node) *Node { return Bitcast(x, dtypes.Uint16) }, []uint32{0xdeadbeef}, [][]uint16{{0xbeef, 0xdead}}},
		{"Bitcast back", func(x *Node) *Node { return Bitcast(x, dtypes.Uint32) }, [][]uint16{{0xbeef, 0xdead}}, []uint32{0xdeadbeef}},
		{"Bitcast that is computed with", func(x *Node) *Node { return ConvertDType(Bitcast(x, dtypes.Int32), dtypes.Float32) }, []float32{0.5, 1}, []float32{0x3f000000, 0x3f800000}},
		{"Bitcast to two that are computed with", func(x *Node) *Node { return AddScalar(Bitcast(x, dtypes.Uint16), 1) }, []uint32{0xdeadbeef, 3}, [][]uint16{{0xbef0, 0xdeae}, {4, 1}}},
		{"Bitcast of a sum", func(x *Node) *Node { return Bitcast(Add(x, x), dtypes.Int32) }, []float32{0.5}, []int32{0x3f800000}},
		{"DynamicSlice", func(x *Node) *Node {
			return DynamicSlice(x, []*Node{Const(x.Graph(), int32(1)), Const(x.Graph(), int32(9))}, []int{1, 2})
		}, m, [][]float32{{5, 6}}},
		{"DynamicUpdateSlice", func(x *Node) *Node {
			return DynamicUpdateSlice(x, Const(x.Graph(), [][]float32{{0, -1}}), []*Node{Const(x.Graph(), int64(-3)), Const(x.Graph(), int64(1))})
		}, m, [][]float32{{1, 0, -1}, {4, 5, 6}}},
		{"Gather", func(x *Node) *Node { return Gather(x, Const(x.Graph(), [][]int32{{1}, {0}, {1}})) }, m, [][]float32{{4, 5, 6}, {1, 2, 3}, {4, 5, 6}}},
		{"ScatterSum", func(x *Node) *Node {
			return ScatterSum(x, Const(x.Graph(), [][]int32{{1}, {1}}), Const(x.Graph(), m), false, false)
		}, m, [][]float32{{1, 2, 3}, {9, 12, 15}}},
		{"ScatterMax", func(x *Node) *Node {
			return ScatterMax(x, Const(x.Graph(), [][]int32{{0}, {0}}), Const(x.Graph(), [][]float32{{2, 0, 0}, {0, 0, 7}}), false, false)
		}, m, [][]float32{{2, 2, 7}, {4, 5, 6}}},
		{"ScatterMin", func(x *Node) *Node {
			return ScatterMin(x, Const(x.Graph(), [][]int32{{0}, {0}}), Const(x.Graph(), [][]float32{{2, 0, 9}, {0, 9, 7}}), false, false)
		}, m, [][]float32{{0, 0, 3}, {4, 5, 6}}},
	} {
		if got := eval1(t, engine(t), c.fn, c.in); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s = %v, want %v", c.name, got, c.want)
		}
	}
}

func TestReductions(t *testing.T) {
	m := [][]float32{{1, 2, 3}, {4, 5, -6}}
	ints, bools := [][]uint8{{12, 10}, {8, 15}}, [][]bool{{true, false}, {true, true}}
	for _, c := range []struct {
		name     string
		fn       func(x *Node) *Node
		in, want any
	}{
		{"sum all", func(x *Node) *Node { return ReduceSum(x) }, m, float32(9)},
		{"sum rows", func(x *Node) *Node { return ReduceSum(x, 1) }, m, []float32{6, 3}},
		{"sum columns", func(x *Node) *Node { return ReduceSum(x, 0) }, m, []float32{5, 7, -3}},
		{"product", func(x *Node) *Node { return ReduceMultiply(x, 1) }, m, []float32{6, -120}},
		{"max", func(x *Node) *Node { return ReduceMax(x, 0) }, m, []float32{4, 5, 3}},
		{"min", func(x *Node) *Node { return ReduceMin(x) }, m, float32(-6)},
		{"max of NaN", func(x *Node) *Node { return IsNaN(ReduceMax(x)) }, []float32{1, nan, 2}, true},
		{"and", func(x *Node) *Node { return ReduceLogicalAnd(x, 1) }, bools, []bool{false, true}},
		{"or", func(x *Node) *Node { return ReduceLogicalOr(x, 0) }, bools, []bool{true, true}},
		{"xor", func(x *Node) *Node { return ReduceLogicalXor(x, 0) }, bools, []bool{false, true}},
		{"bits and", func(x *Node) *Node { return ReduceBitwiseAnd(x, 1) }, ints, []uint8{8, 8}},
		{"bits or", func(x *Node) *Node { return ReduceBitwiseOr(x, 0) }, ints, []uint8{12, 15}},
		{"bits xor", func(x *Node) *Node { return ReduceBitwiseXor(x) }, ints, uint8(12 ^ 10 ^ 8 ^ 15)},
		{"argmax", func(x *Node) *Node { return ArgMax(x, 1) }, m, []int32{2, 1}},
		{"argmin", func(x *Node) *Node { return ArgMin(x, 0, dtypes.Int64) }, m, []int64{0, 0, 1}},
		{"argmax of equals", func(x *Node) *Node { return ArgMax(x, 0) }, []float32{1, 3, 3}, int32(1)},
		{"argmax of booleans", func(x *Node) *Node { return ArgMax(x, 0) }, []bool{false, true, true}, int32(1)},
		{"max pool", func(x *Node) *Node { return Reshape(MaxPool(Reshape(x, 1, 4, 1)).Window(2).Done(), 2) }, []float32{1, 5, 7, 2}, []float32{5, 7}},
		{"sum pool", func(x *Node) *Node { return Reshape(SumPool(Reshape(x, 1, 4, 1)).Window(2).Strides(1).Done(), 3) }, []float32{1, 5, 7, 2}, []float32{6, 12, 9}},
		{"gradient of max pool", func(x *Node) *Node {
			y := MaxPool(Reshape(x, 1, 4, 1)).Window(2).Done()
			return Gradient(ReduceAllSum(Mul(y, y)), x)[0]
		}, []float32{1, 5, 7, 2}, []float32{0, 10, 14, 0}},
		{"gradient of min pool", func(x *Node) *Node {
			return Gradient(ReduceAllSum(MinPool(Reshape(x, 1, 4, 1)).Window(2).Done()), x)[0]
		}, []float32{1, 5, 7, 2}, []float32{1, 0, 0, 1}},
		{"empty", func(x *Node) *Node { return ReduceSum(Slice(x, AxisRange(0, 0), AxisRange()), 0) }, m, []float32{0, 0, 0}},
	} {
		if got := eval1(t, engine(t), c.fn, c.in); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s = %v, want %v", c.name, got, c.want)
		}
	}
}

// TestShapesAgainstGo compares movement and reduction of random shapes with GoMLX's Go backend.
func TestShapesAgainstGo(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 40 {
		rank := 2 + rng.IntN(3)
		dims := make([]int, rank)
		for a := range dims {
			dims[a] = 1 + rng.IntN(12)
		}
		order := rng.Perm(rank)
		axes := rng.Perm(rank)[:1+rng.IntN(rank)]
		dtype := []dtypes.DType{dtypes.Float32, dtypes.Float64, dtypes.Int32, dtypes.Int64}[rng.IntN(4)]
		x := random(rng, shapes.Make(dtype, dims...))
		agree(t, x.Shape().String(), 1e-5, func(x *Node) []*Node {
			y := TransposeAllAxes(x, order...)
			return []*Node{y, ReduceSum(x, axes...), ReduceMax(y, axes...), ReduceMin(Add(x, x), axes...),
				ReduceMultiply(MulScalar(x, 1), axes...), Concatenate([]*Node{x, x, x}, axes[0]),
				Slice(y, AxisRange(0, 1)), ArgMax(x, axes[0]), ReduceAndKeep(y, ReduceSum, axes...)}
		}, x)
	}
}

func TestEmptyShapes(t *testing.T) {
	out := eval(t, engine(t), func(x *Node) []*Node {
		none := Slice(x, AxisRange(0, 0))
		return []*Node{Exp(none), Concatenate([]*Node{none, x}, 0), Add(none, ReduceSum(none))}
	}, []float32{1, 2})
	if out[0].Shape().Size() != 0 || out[1].Shape().Size() != 2 || out[2].Shape().Size() != 0 {
		t.Errorf("%v", out)
	}
}

func TestRandomBits(t *testing.T) {
	b := engine(t)
	fn := func(state *Node) []*Node {
		state, x := RandomNormal(state, shapes.Make(dtypes.Float32, 20000))
		_, y := RandomUniform(state, shapes.Make(dtypes.Float32, 20000))
		return []*Node{ReduceAllMean(x), ReduceAllMean(Square(x)), ReduceAllMean(y), ReduceAllMax(y), ReduceAllMin(y), x, state}
	}
	state, err := RNGStateFromSeed(42)
	if err != nil {
		t.Fatal(err)
	}
	out := eval(t, b, fn, state)
	for i, want := range []struct{ value, tolerance float64 }{{0, 0.03}, {1, 0.05}, {0.5, 0.01}, {1, 1e-3}, {0, 1e-3}} {
		if got := floats(out[i])[0]; got < want.value-want.tolerance || got > want.value+want.tolerance {
			t.Errorf("statistic %d is %g, want %g ± %g", i, got, want.value, want.tolerance)
		}
	}
	again := eval(t, b, fn, state)
	if err := near(again[5], out[5], 0); err != nil {
		t.Errorf("other numbers from the same state: %v", err)
	}
	if reflect.DeepEqual(out[6].Value(), state.Value()) {
		t.Error("the state did not change")
	}
}

func TestBatchNorm(t *testing.T) {
	x := [][]float32{{1, 10}, {3, 30}, {5, 20}, {7, 40}}
	out := eval(t, engine(t), func(x, scale, offset *Node) []*Node {
		y, mean, variance := InternalBatchNormForTraining(x, scale, offset, 0, 1)
		z := InternalBatchNormForInference(x, scale, offset, mean, variance, 0, 1)
		return []*Node{mean, variance, y, Sub(y, z)}
	}, x, []float32{1, 2}, []float32{0, 100})
	if !same(out[0].Value(), []float32{4, 25}) || !same(out[1].Value(), []float32{5, 125}) {
		t.Errorf("mean %v, variance %v", out[0], out[1])
	}
	if got, want := floats(out[2])[3], 100+2*(30-25)/11.180339887; got < want-1e-4 || got > want+1e-4 {
		t.Errorf("normalized 30 is %g, want %g", got, want)
	}
	for _, d := range floats(out[3]) {
		if d > 1e-4 || d < -1e-4 {
			t.Errorf("inference differs from training by %g", d)
		}
	}
}

// TestBuilderErrors checks that incorrect calls return an error that describes the problem and its position.
func TestBuilderErrors(t *testing.T) {
	b := engine(t)
	g := b.Builder("wrong")
	x, _ := g.Parameter("x", shapes.Make(dtypes.Float32, 2, 3), nil)
	y, _ := g.Parameter("y", shapes.Make(dtypes.Int32, 2, 3), nil)
	other, _ := b.Builder("other").Parameter("z", shapes.Make(dtypes.Float32), nil)
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"types", second(g.Add(x, y)), "must match"},
		{"foreign node", second(g.Add(x, other)), "another computation"},
		{"no node", second(g.Neg("x")), "not a node"},
		{"FFT", second(g.FFT(x, backends.FFTForward, nil)), "FFT"},
		{"parameter", second(g.Parameter("c", shapes.Make(dtypes.F8E5M2), nil)), "F8E5M2"},
		{"reshape", second(g.Reshape(x, 7)), "reshape"},
		{"reshape to a negative", second(g.Reshape(x, -2, -3)), "Reshape"},
		{"constant of a negative", second(g.Constant([]float32{1}, -1)), "Constant"},
		{"reduce twice", second(g.ReduceSum(x, 1, 1)), "axes [1 1]"},
		{"sum of booleans", second(g.ReduceLogicalAnd(x)), "not defined"},
		{"transpose", second(g.Transpose(x, 0, 0)), "repeated"},
		{"pad fill", second(g.Pad(x, y)), "scalar of the same type"},
		{"pad too negative", second(g.Pad(x, mustOp(g.Constant([]float32{0})), backends.PadAxis{Start: -3})), "cannot be padded"},
		{"constant", second(g.Constant([]float32{1, 2}, 3)), "2 elements"},
		{"dot", second(g.DotGeneral(x, []int{1}, nil, x, []int{0}, nil)), "do not match"},
		{"conv", second(g.ConvGeneral(x, x, backends.ConvolveAxesConfig{}, nil, nil, nil, nil, 1, 1)), "rank-3"},
		{"slice", second(g.Slice(x, []int{0, 0}, []int{3, 3}, nil)), "out of bounds"},
		{"clamp", second(g.Clamp(y, x, x)), "bound"},
		{"iota", second(g.Iota(shapes.Make(dtypes.Int32, 2), 1)), "no axis 1"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v; want an error with %q", c.name, c.err, c.want)
		}
	}
}

func second(_ backends.Op, err error) error { return err }

func mustOp(op backends.Op, err error) backends.Op {
	if err != nil {
		panic(err)
	}
	return op
}
