//go:build cgo

package cpu

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// dft computes the definition along one axis of an array: Σ_n x_n e^(∓2πi kn/N), with 1/N in the inverse.
func dft(x []complex128, dims []int, axis int, inverse bool) []complex128 {
	n, stride := dims[axis], rowMajor(dims)[axis]
	sign, scale := -1.0, 1.0
	if inverse {
		sign, scale = 1, 1/float64(n)
	}
	out := make([]complex128, len(x))
	for i := range x {
		k := i / stride % n
		for j := range n {
			angle := sign * 2 * math.Pi * float64(k*j%n) / float64(n)
			out[i] += x[i+(j-k)*stride] * cmplx.Rect(scale, angle)
		}
	}
	return out
}

// lengths has 1, small lengths, powers, odd lengths, primes and products of primes.
var lengths = []int{1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 15, 16, 30, 31, 64, 77, 97, 100, 127, 210, 256, 509}

func TestFFTIsItsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	b := engine(t)
	for _, n := range lengths {
		in := gaussian[complex128](rng, 3*n)
		single := make([]complex64, len(in))
		for i, v := range in {
			single[i] = complex64(v)
		}
		out := eval(t, b, func(x, y *Node) []*Node { return []*Node{FFT(x), InverseFFT(x), FFT(y), InverseFFT(y)} },
			tensors.FromFlatDataAndDimensions(in, 3, n), tensors.FromFlatDataAndDimensions(single, 3, n))
		for i, got := range out {
			want := dft(in, []int{3, n}, 1, i%2 == 1)
			tolerance := 1e-13 * float64(n) // n roundings of sums around √n
			if i >= 2 {
				tolerance = 1e-6 * math.Sqrt(float64(n)) // input and result are rounded once
			}
			if d := apart(t, got.Value(), want); !(d <= tolerance) {
				t.Errorf("length %d, transform %d: off by %g, limit %g", n, i, d, tolerance)
			}
		}
	}
}

func TestRealFFTIsHalfOfTheDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(43, 44))
	b := engine(t)
	for _, n := range lengths {
		x := random(rng, shapes.Make(dtypes.Float64, 3, n))
		out := eval(t, b, func(x *Node) []*Node {
			single := ConvertDType(x, dtypes.Float32)
			y, z := RealFFT(x), RealFFT(single)
			return []*Node{y, z, InverseRealFFT(y, n), InverseRealFFT(z, n)}
		}, x)
		wide := make([]complex128, 3*n)
		for i, v := range floats(x) {
			wide[i] = complex(v, 0)
		}
		full := dft(wide, []int{3, n}, 1, false)
		var half []complex128
		for row := range 3 {
			half = append(half, full[row*n:row*n+n/2+1]...)
		}
		for i, want := range []any{half, half, wide, wide} {
			tolerance := []float64{1e-13, 1e-6}[i%2] * float64(n)
			if d := apart(t, out[i].Value(), want); !(d <= tolerance) {
				t.Errorf("length %d, result %d: off by %g, limit %g", n, i, d, tolerance)
			}
		}
	}
}

// TestKnownTransforms checks transforms known from textbooks.
func TestKnownTransforms(t *testing.T) {
	b := engine(t)
	forward, inverse := func(x *Node) *Node { return FFT(x) }, func(x *Node) *Node { return InverseFFT(x) }
	real, realInverse := func(x *Node) *Node { return RealFFT(x) }, func(x *Node) *Node { return InverseRealFFT(x) }
	for _, c := range []struct {
		name string
		fn   any
		in   any
		want any
	}{
		{"impulse", forward, []complex128{1, 0, 0, 0, 0}, []complex128{1, 1, 1, 1, 1}},
		{"late impulse", forward, []complex128{0, 1, 0, 0}, []complex128{1, -1i, -1, 1i}},
		{"constant", forward, []complex64{2, 2, 2}, []complex64{6, 0, 0}},
		{"wave", forward, []complex128{1, 1i, -1, -1i}, []complex128{0, 4, 0, 0}},
		{"inverse of a peak", inverse, []complex128{0, 4, 0, 0}, []complex128{1, 1i, -1, -1i}},
		{"alternation", real, []float32{1, -1, 1, -1}, []complex64{0, 0, 4}},
		{"cosine", real, []float64{1, 0, -1, 0}, []complex128{0, 2, 0}},
		{"sine", real, []float64{0, 1, 0, -1}, []complex128{0, -2i, 0}},
		{"one", real, []float64{5}, []complex128{5}},
		{"real inverse", realInverse, []complex128{0, -2i, 0}, []float64{0, 1, 0, -1}},
		{"real inverse of parts that no signal has", realInverse, []complex128{4 + 7i, 0, 4 + 9i}, []float64{2, 0, 2, 0}},
		{"real inverse, odd", func(x *Node) *Node { return InverseRealFFT(x, 3) }, []complex64{6, 0}, []float32{2, 2, 2}},
	} {
		if got := eval1(t, b, c.fn, c.in); !(apart(t, got, c.want) <= 1e-15) {
			t.Errorf("%s: %v gives %v, want %v", c.name, c.in, got, c.want)
		}
	}
}

// transform runs the backend's FFT, to which the graph functions pass only one length.
func transform(t *testing.T, kind backends.FFTType, in *tensors.Tensor, lengths ...int) *tensors.Tensor {
	t.Helper()
	b := engine(t)
	g := b.Builder("fft")
	x := mustOp(g.Parameter("x", in.Shape(), nil))
	exec, err := g.Compile([]backends.Op{mustOp(g.FFT(x, kind, lengths))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var buffer backends.Buffer
	in.MustConstFlatData(func(flat any) {
		if buffer, err = b.BufferFromFlatData(0, flat, in.Shape()); err != nil {
			t.Fatal(err)
		}
	})
	before := append([]byte(nil), buffer.(*Buffer).bytes()...)
	out, err := exec.Execute([]backends.Buffer{buffer}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(buffer.(*Buffer).bytes()) {
		t.Errorf("FFT %s changed its input", kind)
	}
	result := tensors.FromShape(exec.Outputs()[0])
	result.MustMutableFlatData(func(flat any) {
		if err := b.BufferToFlatData(out[0], flat); err != nil {
			t.Fatal(err)
		}
	})
	return result
}

// TestFFTOverSeveralAxes checks that transforms over two and three axes equal transforms over each axis.
func TestFFTOverSeveralAxes(t *testing.T) {
	rng := rand.New(rand.NewPCG(45, 46))
	dims := []int{2, 3, 4, 7}
	for axes := 1; axes <= 4; axes++ {
		lengths := dims[4-axes:]
		in := gaussian[complex128](rng, 2*3*4*7)
		for _, kind := range []backends.FFTType{backends.FFTForward, backends.FFTInverse} {
			want := in
			for a := 4 - axes; a < 4; a++ {
				want = dft(want, dims, a, kind == backends.FFTInverse)
			}
			if d := apart(t, tensors.MustCopyFlatData[complex128](transform(t, kind, tensors.FromFlatDataAndDimensions(in, dims...), lengths...)), want); d > 1e-12 {
				t.Errorf("%s over %d axes: off by %g", kind, axes, d)
			}
		}
		x := random(rng, shapes.Make(dtypes.Float64, dims...))
		spectrum := transform(t, backends.FFTForwardReal, x, lengths...)
		if got := spectrum.Shape().Dimensions[3]; got != 4 {
			t.Errorf("%d frequencies of 7 reals, want 4", got)
		}
		wide := make([]complex128, x.Size())
		for i, v := range floats(x) {
			wide[i] = complex(v, 0)
		}
		for a := 4 - axes; a < 4; a++ {
			wide = dft(wide, dims, a, false)
		}
		for i, v := range tensors.MustCopyFlatData[complex128](spectrum) {
			if want := wide[i/4*7+i%4]; cmplx.Abs(v-want) > 1e-12 {
				t.Fatalf("ForwardReal over %d axes: element %d is %v, want %v", axes, i, v, want)
			}
		}
		if err := near(transform(t, backends.FFTInverseReal, spectrum, lengths...), x, 1e-13); err != nil {
			t.Errorf("InverseReal over %d axes: %v", axes, err)
		}
	}
}

// TestFFTEnergyAndConcurrency checks Parseval's theorem, Σ|x|² = 1/N Σ|X|², for random shapes with enough lines for all workers, in concurrent graphs.
func TestFFTEnergyAndConcurrency(t *testing.T) {
	b := engine(t)
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 47))
			n, rows := 1+rng.IntN(300), 1+rng.IntN(400)
			x := random(rng, shapes.Make(dtypes.Float32, rows, n))
			out := eval(t, b, func(x *Node) []*Node {
				y := FFT(ConvertDType(x, dtypes.Complex64))
				return []*Node{ReduceSum(Square(x), 1), DivScalar(ReduceSum(Square(Abs(y)), 1), n), Real(InverseFFT(y))}
			}, x)
			if err := near(out[1], out[0], 1e-5); err != nil {
				t.Errorf("energy of %d × %d: %v", rows, n, err)
			}
			if err := near(out[2], x, 2e-6); err != nil {
				t.Errorf("round trip of %d × %d: %v", rows, n, err)
			}
		})
	}
}

func TestGradientsOfFFT(t *testing.T) {
	weigh := func(y *Node) *Node { // a loss that weighs the two parts of every frequency differently
		k := AddScalar(IotaFull(y.Graph(), shapes.Make(Real(y).DType(), y.Shape().Dimensions...)), 1)
		return ReduceAllSum(Add(Mul(Square(Real(y)), Sin(k)), Mul(Mul(Imag(y), Real(y)), Cos(k))))
	}
	for _, n := range []int{3, 4, 7, 8, 12} {
		checkGradient(t, fmt.Sprint("FFT of ", n), func(in []*Node) *Node { return weigh(FFT(Complex(in[0], in[1]))) }, []int{2, n}, []int{2, n})
		checkGradient(t, fmt.Sprint("InverseFFT of ", n), func(in []*Node) *Node { return weigh(InverseFFT(Complex(in[0], in[1]))) }, []int{2, n}, []int{2, n})
		checkGradient(t, fmt.Sprint("RealFFT of ", n), func(in []*Node) *Node { return weigh(RealFFT(in[0])) }, []int{2, n})
		checkGradient(t, fmt.Sprint("InverseRealFFT of ", n), func(in []*Node) *Node {
			x := InverseRealFFT(Complex(in[0], in[1]), n)
			return ReduceAllSum(Mul(Square(x), Sin(x)))
		}, []int{2, n/2 + 1}, []int{2, n/2 + 1})
	}
}

func TestFFTErrors(t *testing.T) {
	g := engine(t).Builder("wrong")
	x := mustOp(g.Parameter("x", shapes.Make(dtypes.Float32, 2, 8), nil))
	h := mustOp(g.Parameter("h", shapes.Make(dtypes.Float16, 2, 8), nil))
	z := mustOp(g.Parameter("z", shapes.Make(dtypes.Complex64, 2, 5), nil))
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"no length", second(g.FFT(z, backends.FFTForward, nil)), "a positive length"},
		{"length 0", second(g.FFT(z, backends.FFTForward, []int{0})), "a positive length"},
		{"too many lengths", second(g.FFT(z, backends.FFTForward, []int{1, 2, 5})), "last axes"},
		{"another length", second(g.FFT(z, backends.FFTInverse, []int{8})), "the last axes must be [8]"},
		{"another length in time", second(g.FFT(z, backends.FFTInverseReal, []int{10})), "the last axes must be [6]"},
		{"complex of floats", second(g.FFT(x, backends.FFTForward, []int{8})), "must be complex numbers"},
		{"inverse of floats", second(g.FFT(x, backends.FFTInverseReal, []int{14})), "must be complex numbers"},
		{"real of complex", second(g.FFT(z, backends.FFTForwardReal, []int{5})), "must be float32 or float64"},
		{"half floats", second(g.FFT(h, backends.FFTForwardReal, []int{8})), "must be float32 or float64"},
		{"kind", second(g.FFT(z, backends.FFTType(9), []int{5})), "unknown kind"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) || !strings.Contains(c.err.Error(), "FFT") {
			t.Errorf("%s: %v; want an error with FFT and %q", c.name, c.err, c.want)
		}
	}
}

// BenchmarkRealFFT runs RealFFT and its inverse on 1024 rows and reports microseconds per row.
func BenchmarkRealFFT(b *testing.B) {
	for _, n := range []int{256, 512, 509, 4096} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			const rows = 1024
			step := MustNewExec(engine(b), func(x *Node) *Node { return InverseRealFFT(RealFFT(x), n) })
			x := tensors.FromFlatDataAndDimensions(ramp(rows*n), rows, n)
			for b.Loop() {
				step.MustExec(x)[0].MustFinalizeAll()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/rows, "µs/row")
		})
	}
}
