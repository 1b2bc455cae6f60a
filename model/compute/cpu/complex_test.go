//go:build cgo

package cpu

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// gaussian draws n complex numbers.
func gaussian[C complexNumber](rng *rand.Rand, n int) []C {
	v := make([]C, n)
	for i := range v {
		v[i] = C(complex(rng.NormFloat64(), rng.NormFloat64()))
	}
	return v
}

// apart returns the largest |got − want| of two slices of numbers.
func apart(t testing.TB, got, want any) (most float64) {
	t.Helper()
	g, w := numbers(reflect.ValueOf(got)), numbers(reflect.ValueOf(want))
	if len(g) != len(w) {
		t.Fatalf("%d numbers, want %d", len(g), len(w))
	}
	for i := range g {
		if g[i] != w[i] {
			if d := cmplx.Abs(g[i] - w[i]); d > most || d != d {
				most = d
			}
		}
	}
	return most
}

// numbers flattens nested slices.
func numbers(v reflect.Value) (all []complex128) {
	switch {
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			all = append(all, numbers(v.Index(i))...)
		}
		return all
	case v.CanComplex():
		return []complex128{v.Complex()}
	}
	return []complex128{complex(toFloat(v), 0)}
}

func TestComplexElements(t *testing.T) {
	b := engine(t)
	for _, c := range []struct {
		name string
		fn   any
		in   []any
		want any
	}{
		{"Complex", Complex, []any{[]float32{1, 2}, []float32{3, -4}}, []complex64{1 + 3i, 2 - 4i}},
		{"Complex f64", Complex, []any{[]float64{1}, []float64{3}}, []complex128{1 + 3i}},
		{"Complex with a scalar", Complex, []any{[]float32{1, 2}, float32(3)}, []complex64{1 + 3i, 2 + 3i}},
		{"Real", Real, []any{[]complex64{1 + 3i, 2 - 4i}}, []float32{1, 2}},
		{"Imag", Imag, []any{[]complex128{1 + 3i, 2 - 4i}}, []float64{3, -4}},
		{"Real of floats", Real, []any{[]float32{1, -2}}, []float32{1, -2}},
		{"Imag of floats", Imag, []any{[]float64{1, math.NaN()}}, []float64{0, 0}},
		{"Conj", Conj, []any{[]complex64{1 + 3i, -2i}}, []complex64{1 - 3i, 2i}},
		{"Abs", Abs, []any{[]complex64{3 - 4i, -2i, 0}}, []float32{5, 2, 0}},
		{"Abs f64, large", Abs, []any{[]complex128{0x3p900 + 0x4p900i}}, []float64{0x5p900}},
		{"Neg", Neg, []any{[]complex64{1 + 3i}}, []complex64{-1 - 3i}},
		{"Sign", Sign, []any{[]complex128{3 - 4i, 0}}, []complex128{0.6 - 0.8i, 0}},
		{"Add", Add, []any{[]complex64{1 + 3i}, []complex64{2 - 1i}}, []complex64{3 + 2i}},
		{"Sub", Sub, []any{[]complex64{1 + 3i}, []complex64{2 - 1i}}, []complex64{-1 + 4i}},
		{"Mul", Mul, []any{[]complex64{1 + 3i}, []complex64{2 - 1i}}, []complex64{5 + 5i}},
		{"Div", Div, []any{[]complex128{5 + 5i}, []complex128{2 - 1i}}, []complex128{1 + 3i}},
		{"Pow", Pow, []any{[]complex128{1i}, []complex128{2}}, []complex128{-1}},
		{"Exp", Exp, []any{[]complex128{complex(0, math.Pi)}}, []complex128{-1}},
		{"Log", Log, []any{[]complex128{-1}}, []complex128{complex(0, math.Pi)}},
		{"Sqrt", Sqrt, []any{[]complex64{-4}}, []complex64{2i}},
		{"Rsqrt", Rsqrt, []any{[]complex64{-4}}, []complex64{-0.5i}},
		{"Equal", Equal, []any{[]complex64{1 + 3i, 2, 2i}, []complex64{1 + 3i, 2i, 2i}}, []bool{true, false, true}},
		{"NotEqual", NotEqual, []any{[]complex128{1 + 3i, 2}, []complex128{1 + 3i, 2i}}, []bool{false, true}},
		{"IsNaN", IsNaN, []any{[]complex128{1, complex(0, math.NaN())}}, []bool{false, true}},
		{"Where", Where, []any{[]bool{true, false}, []complex128{1i, 2i}, []complex128{3, 4}}, []complex128{1i, 4}},
		{"Where of a scalar", Where, []any{[]bool{true, false}, []complex128{1i, 2i}, complex128(3)}, []complex128{1i, 3}},
	} {
		if got := eval1(t, b, c.fn, c.in...); reflect.TypeOf(got) != reflect.TypeOf(c.want) || !(apart(t, got, c.want) <= 4e-7) {
			t.Errorf("%s(%v) = %v, want %v", c.name, c.in, got, c.want)
		}
	}
}

func TestComplexConversions(t *testing.T) {
	b := engine(t)
	for _, c := range []struct{ in, want any }{
		{[]float32{1.5, -2}, []complex64{1.5, -2}},
		{[]float64{0.1}, []complex128{0.1}},
		{[]int32{-7}, []complex128{-7}},
		{[]uint8{200}, []complex64{200}},
		{[]bool{true, false}, []complex64{1, 0}},
		{[]complex64{1 + 2i}, []complex128{1 + 2i}},
		{[]complex128{1 + 2i}, []complex64{1 + 2i}},
		{[]complex128{0.1 + 2i}, []float64{0.1}},
		{[]complex64{1.5 + 2i}, []float32{1.5}},
		{[]complex128{-3.9 + 2i, 1e20, 5}, []int32{-3, math.MaxInt32, 5}},
		{[]complex64{0, 1i, 1}, []bool{false, true, true}},
	} {
		to := dtypes.FromGoType(reflect.TypeOf(c.want).Elem())
		if got := eval1(t, b, func(x *Node) *Node { return ConvertDType(x, to) }, c.in); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v to %s is %v, want %v", c.in, to, got, c.want)
		}
	}
	half := eval1(t, b, func(x *Node) *Node { return ConvertDType(ConvertDType(x, dtypes.BFloat16), dtypes.Complex128) }, []float32{1.5})
	if !reflect.DeepEqual(half, []complex128{1.5}) {
		t.Errorf("1.5 by way of bfloat16 is %v", half)
	}
}

// TestComplexMovesAndSums checks that movement and sums of complex numbers equal those of the two parts.
func TestComplexMovesAndSums(t *testing.T) {
	for _, c := range []struct {
		name string
		fn   func(x *Node) *Node
	}{
		{"reshape", func(x *Node) *Node { return Reshape(x, 20, 3) }},
		{"transpose", func(x *Node) *Node { return TransposeAllAxes(x, 2, 0, 1) }},
		{"slice", func(x *Node) *Node { return Slice(x, AxisRange(1), AxisRange().Stride(2), AxisElem(-1)) }},
		{"concatenate", func(x *Node) *Node { return Concatenate([]*Node{x, x}, 1) }},
		{"broadcast", func(x *Node) *Node { return BroadcastToDims(InsertAxes(x, 1), 3, 7, 4, 5) }},
		{"gather", func(x *Node) *Node { return Gather(x, Const(x.Graph(), [][]int32{{2}, {0}})) }},
		{"reverse", func(x *Node) *Node { return Reverse(x, 0, 2) }},
		{"pad", func(x *Node) *Node {
			return Pad(x, ScalarZero(x.Graph(), x.DType()), PadAxis{Start: 1, Interior: 2}, PadAxis{End: -1})
		}},
		{"scatter", func(x *Node) *Node {
			return ScatterSum(x, Const(x.Graph(), [][]int32{{1}, {1}}), Slice(x, AxisRange(0, 2)), false, false)
		}},
		{"sum", func(x *Node) *Node { return ReduceSum(x, 0, 2) }},
		{"sum of all", ReduceAllSum},
		{"broadcast sum", func(x *Node) *Node { return Add(x, ReduceAndKeep(x, ReduceSum, 1)) }},
	} {
		for _, dtype := range []dtypes.DType{dtypes.Complex64, dtypes.Complex128} {
			rng := rand.New(rand.NewPCG(31, 32))
			re, im := random(rng, shapes.Make(partOf[dtype], 3, 4, 5)), random(rng, shapes.Make(partOf[dtype], 3, 4, 5))
			out := eval(t, engine(t), func(re, im *Node) []*Node {
				z := c.fn(Complex(re, im))
				return []*Node{Real(z), Imag(z), c.fn(re), c.fn(im)}
			}, re, im)
			for k, part := range []string{"real", "imaginary"} {
				if err := near(out[k], out[2+k], 1e-6); err != nil {
					t.Errorf("%s of %s, %s part: %v", c.name, dtype, part, err)
				}
			}
		}
	}
}

// TestComplexProducts compares products of complex matrices, and sums of complex products that the engine turns into them, with products of parts.
func TestComplexProducts(t *testing.T) {
	rng := rand.New(rand.NewPCG(33, 34))
	var in []any
	for _, dims := range [][]int{{4, 5}, {4, 5}, {5, 6}, {5, 6}} {
		in = append(in, random(rng, shapes.Make(dtypes.Float32, dims...)))
	}
	out := eval(t, engine(t), func(a, b, c, d *Node) []*Node {
		x, y := Complex(a, b), Complex(c, d)
		sum := ReduceSum(Mul(BroadcastToDims(InsertAxes(x, -1), 4, 5, 6), BroadcastToDims(InsertAxes(y, 0), 4, 5, 6)), 1)
		re, im := Sub(Dot(a, c), Dot(b, d)), Add(Dot(a, d), Dot(b, c))
		z := Dot(x, y)
		return []*Node{Real(z), Imag(z), Real(sum), Imag(sum), re, im}
	}, in...)
	for k := range 4 {
		if err := near(out[k], out[4+k%2], 1e-5); err != nil {
			t.Errorf("result %d: %v", k, err)
		}
	}
	kernel := []complex128{1i, 2}
	got := eval1(t, engine(t), func(x, k *Node) *Node {
		return Reshape(Convolve(Reshape(x, 1, 3, 1), Reshape(k, 2, 1, 1)).NoPadding().Done(), 2)
	}, []complex128{1, 2 + 1i, 3}, kernel)
	if want := []complex128{1i + 2*(2+1i), 1i*(2+1i) + 6}; apart(t, got, want) > 1e-12 {
		t.Errorf("convolution is %v, want %v", got, want)
	}
}

// TestComplexBuffers checks that parameters, constants and results keep their bits, also with a block of several thousand elements.
func TestComplexBuffers(t *testing.T) {
	rng := rand.New(rand.NewPCG(35, 36))
	in := gaussian[complex128](rng, 10_007)
	out := eval(t, engine(t), func(x *Node) []*Node {
		c := Const(x.Graph(), []complex64{1 + 2i, 3})
		return []*Node{x, c, Conj(Mul(x, x))}
	}, in)
	if !reflect.DeepEqual(out[0].Value(), in) || !reflect.DeepEqual(out[1].Value(), []complex64{1 + 2i, 3}) {
		t.Error("the output differs from the input")
	}
	for i, got := range tensors.MustCopyFlatData[complex128](out[2]) {
		if want := cmplx.Conj(in[i] * in[i]); cmplx.Abs(got-want) > 1e-14*cmplx.Abs(want) {
			t.Fatalf("element %d is %v, want %v", i, got, want)
		}
	}
}

// TestGradientsOfComplexParts checks the gradients that GoMLX defines, for functions of two reals that form a complex number.
func TestGradientsOfComplexParts(t *testing.T) {
	for _, c := range []struct {
		name string
		loss func(z *Node) *Node
	}{
		{"parts", func(z *Node) *Node { return ReduceAllSum(Mul(Real(z), Square(Imag(z)))) }},
		{"conjugate", func(z *Node) *Node { return ReduceAllSum(Mul(Imag(Conj(z)), Real(z))) }},
		{"magnitude", func(z *Node) *Node { return ReduceAllSum(Square(Abs(z))) }},
		{"sum", func(z *Node) *Node { return Abs(ReduceAllSum(z)) }},
	} {
		checkGradient(t, c.name, func(in []*Node) *Node { return c.loss(Complex(in[0], in[1])) }, []int{3, 4}, []int{3, 4})
	}
}

// TestComplexErrors checks that operations without a complex form return an error with their name, when the graph is built or compiled.
func TestComplexErrors(t *testing.T) {
	b := engine(t)
	g := b.Builder("wrong")
	z := mustOp(g.Parameter("z", shapes.Make(dtypes.Complex64, 2, 3), nil))
	x := mustOp(g.Parameter("x", shapes.Make(dtypes.Float32, 2, 3), nil))
	i := mustOp(g.Parameter("i", shapes.Make(dtypes.Int32, 2, 3), nil))
	state := mustOp(g.Parameter("state", backends.RNGStateShape, nil))
	_, _, randomErr := g.RNGBitGenerator(state, shapes.Make(dtypes.Complex64, 2))
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"Max", second(g.Max(z, z)), "no Max of complex numbers"},
		{"Rem", second(g.Rem(z, z)), "no Rem of complex numbers"},
		{"LessThan", second(g.LessThan(z, z)), "no LessThan of complex numbers"},
		{"total order", second(g.EqualTotalOrder(z, z)), "no EqualTotalOrder of complex numbers"},
		{"Expm1", second(g.Expm1(z)), "no Expm1 of complex numbers"},
		{"Floor", second(g.Floor(z)), "no Floor of complex numbers"},
		{"Clamp", second(g.Clamp(z, z, z)), "no Clamp of complex numbers"},
		{"Tanh", second(g.Tanh(z)), "Tanh"},
		{"IsFinite", second(g.IsFinite(z)), "IsFinite"},
		{"ReduceMax", second(g.ReduceMax(z, 0)), "ReduceMax"},
		{"ArgMinMax", second(g.ArgMinMax(z, 0, dtypes.Int32, true)), "ArgMinMax"},
		{"random bits", randomErr, "RNGBitGenerator"},
		{"Complex of integers", second(g.Complex(i, i)), "Complex"},
		{"Complex of two types", second(g.Complex(x, i)), "Complex"},
		{"Conj of floats", second(g.Conj(x)), "Conj"},
		{"Imag of integers", second(g.Imag(i)), "Imag"},
		{"mixed", second(g.Add(z, x)), "must match"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v; want an error with %q", c.name, c.err, c.want)
		}
	}
	pooled := mustOp(g.ReduceWindow(z, backends.ReduceOpMax, []int{2, 1}, nil, nil, nil, nil))
	if _, err := g.Compile([]backends.Op{pooled}, nil); err == nil || !strings.Contains(err.Error(), "max of Complex64") {
		t.Errorf("a window's largest complex number: %v", err)
	}
}
