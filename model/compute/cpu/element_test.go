//go:build cgo

package cpu

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/dtypes/bfloat16"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/x448/float16"
)

var (
	inf = float32(math.Inf(1))
	nan = float32(math.NaN())
)

// same reports equality within a relative error of 2e-6, with NaN equal to NaN and −0 different from 0.
func same(got, want any) bool {
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	if g.Kind() != reflect.Slice {
		return reflect.DeepEqual(got, want)
	}
	if g.Len() != w.Len() || g.Type() != w.Type() {
		return false
	}
	for i := range g.Len() {
		a, b := toFloat(g.Index(i)), toFloat(w.Index(i))
		exact := a == b && math.Signbit(a) == math.Signbit(b) || math.IsNaN(a) && math.IsNaN(b)
		if !exact && !(math.Abs(a-b) <= 2e-6*math.Abs(b)) {
			return false
		}
	}
	return true
}

func TestUnary(t *testing.T) {
	zero := float32(math.Copysign(0, -1))
	for _, c := range []struct {
		name     string
		fn       func(*Node) *Node
		in, want any
	}{
		{"Abs", Abs, []float32{-2, zero, 3}, []float32{2, 0, 3}},
		{"Abs ints", Abs, []int32{-2, 0, 3}, []int32{2, 0, 3}},
		{"Abs unsigned", Abs, []uint8{2, 255}, []uint8{2, 255}},
		{"Neg", Neg, []float32{-2, 0, 3}, []float32{2, zero, -3}},
		{"Sign", Sign, []float32{-2, zero, 0, 3, nan, inf}, []float32{-1, zero, 0, 1, nan, 1}},
		{"Sign ints", Sign, []int8{-2, 0, 3}, []int8{-1, 0, 1}},
		{"Ceil", Ceil, []float32{-1.5, 0.2, 2}, []float32{-1, 1, 2}},
		{"Floor", Floor, []float32{-1.5, 0.2, 2}, []float32{-2, 0, 2}},
		{"Round", Round, []float32{-1.5, 0.5, 1.5, 2.5}, []float32{-2, 0, 2, 2}},
		{"Exp", Exp, []float32{0, 1, -inf, inf, 100}, []float32{1, math.E, 0, inf, inf}},
		{"Expm1", Expm1, []float32{0, 1e-6, 1}, []float32{0, 1.0000005e-6, math.E - 1}},
		{"Log", Log, []float32{1, math.E, 0, -1}, []float32{0, 1, -inf, nan}},
		{"Log1p", Log1p, []float32{0, 1e-6, -1}, []float32{0, 9.999995e-7, -inf}},
		{"Logistic", Logistic, []float32{0, 2, -2, 100, -80}, []float32{0.5, 0.880797, 0.119202922, 1, 1.8048513e-35}},
		{"Sqrt", Sqrt, []float32{4, 2, -1}, []float32{2, math.Sqrt2, nan}},
		{"Rsqrt", Rsqrt, []float32{4, 0}, []float32{0.5, inf}},
		{"Sin", Sin, []float32{0, 1, 100}, []float32{0, 0.84147098, -0.50636564}},
		{"Cos", Cos, []float32{0, 1, 100}, []float32{1, 0.54030231, 0.86231887}},
		{"Tanh", Tanh, []float32{0, 1, -20}, []float32{0, 0.76159416, -1}},
		{"Erf", Erf, []float32{0, 0.5, 3}, []float32{0, 0.52049988, 0.99997791}},
		{"IsFinite", IsFinite, []float32{1, inf, nan, -inf}, []bool{true, false, false, false}},
		{"IsNaN", IsNaN, []float32{1, inf, nan}, []bool{false, false, true}},
		{"LogicalNot", LogicalNot, []bool{true, false}, []bool{false, true}},
		{"BitwiseNot", BitwiseNot, []uint8{0, 0xf0}, []uint8{255, 0x0f}},
		{"BitCount", BitCount, []int32{-1, 0, 5}, []int32{32, 0, 2}},
		{"Clz", Clz, []int16{-1, 0, 5}, []int16{0, 16, 13}},
		{"Exp f64", Exp, []float64{1, -700}, []float64{math.E, 9.8596765437597708e-305}},
		{"Exp f16", Exp, []float16.Float16{float16.Fromfloat32(1)}, []float16.Float16{float16.Fromfloat32(2.71875)}},
		{"Exp bf16", Exp, []bfloat16.BFloat16{bfloat16.FromFloat32(1)}, []bfloat16.BFloat16{bfloat16.FromFloat32(2.71875)}},
	} {
		if got := eval1(t, engine(t), c.fn, c.in); !same(got, c.want) {
			t.Errorf("%s(%v) = %v, want %v", c.name, c.in, got, c.want)
		}
	}
}

func TestBinary(t *testing.T) {
	zero := float32(math.Copysign(0, -1))
	for _, c := range []struct {
		name       string
		fn         func(x, y *Node) *Node
		x, y, want any
	}{
		{"Add", Add, []float32{1, 2}, []float32{3, -2}, []float32{4, 0}},
		{"Sub", Sub, []float32{1, 2}, []float32{3, -2}, []float32{-2, 4}},
		{"Mul", Mul, []float32{1, 2}, []float32{3, -2}, []float32{3, -4}},
		{"Div", Div, []float32{1, 2, 0}, []float32{4, 0, 0}, []float32{0.25, inf, nan}},
		{"Div ints", Div, []int32{-7, 7, 5}, []int32{2, -2, 0}, []int32{-3, -3, -1}},
		{"Rem", Rem, []float32{-7.5, 7.5}, []float32{2, -2}, []float32{-1.5, 1.5}},
		{"Rem ints", Rem, []int32{-7, 7, 5}, []int32{2, -2, 0}, []int32{-1, 1, 5}},
		{"Pow", Pow, []float32{2, 2, -8}, []float32{10, -1, 3}, []float32{1024, 0.5, -512}},
		{"Pow ints", Pow, []int32{2, -1, 3, -1, 2}, []int32{10, 3, 0, -3, -1}, []int32{1024, -1, 1, -1, 0}},
		{"Max", Max, []float32{1, nan, 2}, []float32{3, 1, nan}, []float32{3, nan, nan}},
		{"Min", Min, []float32{1, nan, 2}, []float32{3, 1, nan}, []float32{1, nan, nan}},
		{"Max bools", Max, []bool{true, false}, []bool{false, false}, []bool{true, false}},
		{"And", LogicalAnd, []bool{true, true, false}, []bool{true, false, false}, []bool{true, false, false}},
		{"Or", LogicalOr, []bool{true, true, false}, []bool{true, false, false}, []bool{true, true, false}},
		{"Xor", LogicalXor, []bool{true, true, false}, []bool{true, false, false}, []bool{false, true, false}},
		{"BitwiseAnd", BitwiseAnd, []uint8{12}, []uint8{10}, []uint8{8}},
		{"BitwiseOr", BitwiseOr, []uint8{12}, []uint8{10}, []uint8{14}},
		{"BitwiseXor", BitwiseXor, []uint8{12}, []uint8{10}, []uint8{6}},
		{"ShiftLeft", BitwiseShiftLeft, []int32{-1, 1, 1}, []int32{1, 31, 32}, []int32{-2, math.MinInt32, 0}},
		{"ShiftRightArithmetic", BitwiseShiftRightArithmetic, []int32{-2, 8, -1}, []int32{1, 2, 40}, []int32{-1, 2, -1}},
		{"ShiftRightArithmetic unsigned", BitwiseShiftRightArithmetic, []uint8{0x80, 0x40}, []uint8{1, 1}, []uint8{0xc0, 0x20}},
		{"ShiftRightLogical", BitwiseShiftRightLogical, []int8{-2, 8, -1}, []int8{1, 2, 9}, []int8{127, 2, 0}},
		{"Equal", Equal, []float32{1, nan, 0}, []float32{1, nan, zero}, []bool{true, false, true}},
		{"NotEqual", NotEqual, []float32{1, nan, 0}, []float32{1, nan, zero}, []bool{false, true, false}},
		{"GreaterThan", GreaterThan, []int8{1, 2, 3}, []int8{2, 2, 2}, []bool{false, false, true}},
		{"GreaterOrEqual", GreaterOrEqual, []uint64{1, 2, 3}, []uint64{2, 2, 2}, []bool{false, true, true}},
		{"LessThan", LessThan, []float64{1, 2, 3}, []float64{2, 2, 2}, []bool{true, false, false}},
		{"LessOrEqual", LessOrEqual, []int64{1, 2, 3}, []int64{2, 2, 2}, []bool{true, true, false}},
		{"EqualTotalOrder", EqualTotalOrder, []float32{0, nan}, []float32{zero, nan}, []bool{false, true}},
		{"NotEqualTotalOrder", NotEqualTotalOrder, []float32{0, nan}, []float32{zero, nan}, []bool{true, false}},
		{"LessThanTotalOrder", LessThanTotalOrder, []float32{zero, inf, -1}, []float32{0, nan, -2}, []bool{true, true, false}},
		{"GreaterThanTotalOrder", GreaterThanTotalOrder, []float64{0, 1}, []float64{math.Copysign(0, -1), 1}, []bool{true, false}},
		{"LessOrEqualTotalOrder", LessOrEqualTotalOrder, []int32{1, 2}, []int32{1, 1}, []bool{true, false}},
		{"GreaterOrEqualTotalOrder", GreaterOrEqualTotalOrder, []bool{true, false}, []bool{true, true}, []bool{true, false}},
		{"Add f16", Add, []float16.Float16{float16.Fromfloat32(1)}, []float16.Float16{float16.Fromfloat32(0.5)}, []float16.Float16{float16.Fromfloat32(1.5)}},
		{"Less bf16", LessThan, []bfloat16.BFloat16{bfloat16.FromFloat32(1)}, []bfloat16.BFloat16{bfloat16.FromFloat32(2)}, []bool{true}},
		{"scalar", Mul, []float32{1, 2, 3}, float32(2), []float32{2, 4, 6}},
		{"scalar first", Sub, float32(2), []float32{1, 2, 3}, []float32{1, 0, -1}},
		{"two scalars", Sub, float32(2), float32(3), float32(-1)},
	} {
		if got := eval1(t, engine(t), c.fn, c.x, c.y); !same(got, c.want) {
			t.Errorf("%s(%v, %v) = %v, want %v", c.name, c.x, c.y, got, c.want)
		}
	}
}

func TestWhereAndClamp(t *testing.T) {
	b := engine(t)
	if got := eval1(t, b, Where, []bool{true, false}, []int32{1, 2}, []int32{3, 4}); !same(got, []int32{1, 4}) {
		t.Errorf("Where = %v", got)
	}
	if got := eval1(t, b, Where, []bool{true, false}, float32(1), float32(2)); !same(got, []float32{1, 2}) {
		t.Errorf("Where of scalars = %v", got)
	}
	if got := eval1(t, b, Where, true, []float32{1, 2}, float32(0)); !same(got, []float32{1, 2}) {
		t.Errorf("Where of a scalar condition = %v", got)
	}
	if got := eval1(t, b, Clamp, float32(-1), []float32{-3, 0.5, 2, nan}, float32(1)); !same(got, []float32{-1, 0.5, 1, nan}) {
		t.Errorf("Clamp = %v", got)
	}
	if got := eval1(t, b, Clamp, []int32{0, 0}, []int32{-3, 9}, []int32{5, 6}); !same(got, []int32{0, 6}) {
		t.Errorf("Clamp of ints = %v", got)
	}
}

func TestConvert(t *testing.T) {
	for _, c := range []struct {
		in   any
		to   dtypes.DType
		want any
	}{
		{[]float32{-1.9, 1.9, 1e20, -1e20, nan}, dtypes.Int32, []int32{-1, 1, math.MaxInt32, math.MinInt32, 0}},
		{[]float32{-1, 300, 2.5}, dtypes.Uint8, []uint8{0, 255, 2}},
		{[]float64{1e300, 0.1}, dtypes.Float32, []float32{inf, 0.1}},
		{[]int32{-1, 0, 5}, dtypes.Bool, []bool{true, false, true}},
		{[]bool{true, false}, dtypes.Float32, []float32{1, 0}},
		{[]bool{true, false}, dtypes.Int64, []int64{1, 0}},
		{[]int32{-1, 256}, dtypes.Uint8, []uint8{255, 0}},
		{[]uint64{1 << 63}, dtypes.Float32, []float32{1 << 63}},
		{[]uint8{0, 255}, dtypes.Float32, []float32{0, 255}},
		{[]float32{1.5}, dtypes.Float16, []float16.Float16{float16.Fromfloat32(1.5)}},
		{[]float32{1.5}, dtypes.BFloat16, []bfloat16.BFloat16{bfloat16.FromFloat32(1.5)}},
		{[]bfloat16.BFloat16{bfloat16.FromFloat32(-1.5)}, dtypes.Int8, []int8{-1}},
		{[]float16.Float16{float16.Fromfloat32(0)}, dtypes.Bool, []bool{false}},
	} {
		got := eval1(t, engine(t), func(x *Node) *Node { return ConvertDType(x, c.to) }, c.in)
		if !same(got, c.want) {
			t.Errorf("%v to %s = %v, want %v", c.in, c.to, got, c.want)
		}
	}
}

// TestBroadcastAgainstGo compares every pair of shapes that broadcasts, of every number type, with GoMLX's Go backend.
func TestBroadcastAgainstGo(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		dtype := []dtypes.DType{dtypes.Float32, dtypes.Float64, dtypes.Int32, dtypes.Uint8, dtypes.Int64, dtypes.BFloat16}[rng.IntN(6)]
		rank := 1 + rng.IntN(4)
		x, y := make([]int, rank), make([]int, rank)
		for a := range rank {
			n := 1 + rng.IntN(9)
			x[a], y[a] = n, n
			switch rng.IntN(4) {
			case 0:
				x[a] = 1
			case 1:
				y[a] = 1
			}
		}
		tolerance := 1e-6
		if dtype == dtypes.BFloat16 {
			tolerance = 1.0 / 32 // the reference truncates to 8 bits of mantissa, three times in a row
		}
		agree(t, dtype.String(), tolerance, func(x, y *Node) []*Node {
			return []*Node{Add(x, y), Mul(Sub(x, y), y), Max(x, y), LessThan(x, y), ConvertDType(Mul(x, x), dtypes.Float32)}
		}, random(rng, shapes.Make(dtype, x...)), random(rng, shapes.Make(dtype, y...)))
	}
}

// TestManyBlocks checks large shapes, which are computed in several blocks by several workers.
func TestManyBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	x, bias := random(rng, shapes.Make(dtypes.Float32, 7, 61, 83, 3)), random(rng, shapes.Make(dtypes.Float32, 1, 1, 1, 3))
	row, col := random(rng, shapes.Make(dtypes.Float32, 7, 61, 1, 3)), random(rng, shapes.Make(dtypes.Float32, 1, 1, 83, 1))
	agree(t, "blocks", 1e-5, func(x, bias, row, col *Node) []*Node {
		y := Add(Mul(Add(x, bias), row), col)
		return []*Node{y, Tanh(MulScalar(y, 0.1)), ConvertDType(GreaterThan(y, x), dtypes.Int8)}
	}, x, bias, row, col)
}
