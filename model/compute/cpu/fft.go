//go:build cgo

package cpu

import (
	"math/bits"
	"slices"
	"sync"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/pkg/errors"
	"gonum.org/v1/gonum/dsp/fourier"

	"slotscope/model/compute/cpu/kernel"
	"slotscope/model/compute/cpu/move"
)

// fftArgs has the kind of a Fourier transform and the lengths of the last axes in the time domain.
type fftArgs struct {
	kind    backends.FFTType
	lengths []int
}

// FFT transforms the last len(lengths) axes of x, which have lengths N in the time domain:
//
//	Forward       X_k = Σ_n x_n e^(−2πi kn/N)             complex to complex
//	Inverse       x_n = 1/N Σ_k X_k e^(2πi kn/N)          complex to complex
//	ForwardReal   Forward of floats; the last axis has only the N/2 + 1 frequencies 0 to N/2
//	InverseReal   inverse of ForwardReal; imaginary parts that no real signal has count as 0
//
// All lengths are supported; a prime factor p of N costs p steps per element. Sums use float64 for all types.
func (b *Builder) FFT(x backends.Op, kind backends.FFTType, lengths []int) (backends.Op, error) {
	in, err := b.operands("FFT", x)
	if err != nil {
		return nil, err
	}
	shape, err := fftShape(in[0].shape, kind, lengths)
	if err != nil {
		return nil, err
	}
	return b.add(backends.OpTypeFFT, shape, fftArgs{kind, slices.Clone(lengths)}, in...), nil
}

// fftShape checks type and lengths, and infers the shape of a transform.
func fftShape(from shapes.Shape, kind backends.FFTType, lengths []int) (shapes.Shape, error) {
	if len(lengths) == 0 || len(lengths) > from.Rank() || slices.Min(lengths) < 1 {
		return shapes.Invalid(), errors.Errorf("FFT %s of %s over lengths %v: a positive length is needed for each of the last axes", kind, from, lengths)
	}
	to, want := from.Clone(), slices.Clone(lengths)
	last, half := len(lengths)-1, lengths[len(lengths)-1]/2+1
	ok := from.DType.IsComplex()
	switch kind {
	case backends.FFTForward, backends.FFTInverse:
	case backends.FFTForwardReal:
		to.DType, ok = complexOf[from.DType]
		to.Dimensions[from.Rank()-1] = half
	case backends.FFTInverseReal:
		to.DType = partOf[from.DType]
		to.Dimensions[from.Rank()-1] = lengths[last]
		want[last] = half
	default:
		return shapes.Invalid(), errors.Errorf("FFT of %s: unknown kind %s", from, kind)
	}
	if !ok {
		return shapes.Invalid(), errors.Errorf("FFT %s of %s: the input must be %s", kind, from, fftTakes[kind])
	}
	if axes := from.Dimensions[from.Rank()-len(lengths):]; !slices.Equal(axes, want) {
		return shapes.Invalid(), errors.Errorf("FFT %s of %s over lengths %v: the last axes must be %v", kind, from, lengths, want)
	}
	return to, nil
}

var fftTakes = map[backends.FFTType]string{
	backends.FFTForward: "complex numbers", backends.FFTInverse: "complex numbers", backends.FFTInverseReal: "complex numbers",
	backends.FFTForwardReal: "float32 or float64",
}

// pass transforms one axis: lines of n elements in the time domain with a distance of stride elements.
type pass struct {
	kind             backends.FFTType
	n, stride, lines int
	to               int // index of the memory written: 0 for the result, 1 for scratch
}

func init() { makers[backends.OpTypeFFT] = makeFFT }

// makeFFT plans the passes of a transform, one for each axis. The real pass is the first of a forward transform and the last of an
// inverse one, which works in scratch until then to keep its input unchanged.
func makeFFT(n *node) task {
	a := n.args.(fftArgs)
	switch a.kind {
	case backends.FFTForwardReal:
		passes := append([]pass{a.realPass(n.shape)}, complexPasses(backends.FFTForward, n.shape, len(a.lengths), 1)...)
		return task{run: runPasses(passes, n.shape.DType)}
	case backends.FFTInverseReal:
		spectrum := n.in[0].shape
		passes := complexPasses(backends.FFTInverse, spectrum, len(a.lengths), 1)
		t := task{}
		if len(passes) > 0 {
			t.scratch = []int{int(spectrum.Memory())}
		}
		for i := range passes {
			passes[i].to = 1
		}
		t.run = runPasses(append(passes, a.realPass(spectrum)), spectrum.DType)
		return t
	}
	return task{run: runPasses(complexPasses(a.kind, n.shape, len(a.lengths), 0), n.shape.DType)}
}

// realPass transforms the last axis, which has about half the length in the spectrum.
func (a fftArgs) realPass(spectrum shapes.Shape) pass {
	return pass{kind: a.kind, n: a.lengths[len(a.lengths)-1], stride: 1, lines: spectrum.Size() / spectrum.Dim(-1)}
}

// complexPasses transform the last axes of a spectrum, without the very last ones that are real.
func complexPasses(kind backends.FFTType, spectrum shapes.Shape, axes, real int) (passes []pass) {
	strides := rowMajor(spectrum.Dimensions)
	for axis := spectrum.Rank() - axes; axis < spectrum.Rank()-real; axis++ {
		d := spectrum.Dimensions[axis]
		passes = append(passes, pass{kind: kind, n: d, stride: strides[axis], lines: spectrum.Size() / d})
	}
	return passes
}

// runPasses runs the passes; each reads the result of the previous one.
func runPasses(passes []pass, spectrum dtypes.DType) func(pool *kernel.Pool, out, in [][]byte) {
	lines := make([]lineFn, len(passes))
	for i, p := range passes {
		if spectrum == dtypes.Complex64 {
			lines[i] = newLine[float32, complex64](p)
		} else {
			lines[i] = newLine[float64, complex128](p)
		}
	}
	return func(pool *kernel.Pool, out, in [][]byte) {
		src := in[0]
		for i, p := range passes {
			p.run(pool, lines[i], out[p.to], src)
			src = out[p.to]
		}
	}
}

// run divides the lines among the workers.
func (p pass) run(pool *kernel.Pool, line lineFn, dst, src []byte) {
	pool.Run(p.lines, max(1, 1<<14/(p.n*bits.Len(uint(p.n)))), func(lo, hi int) {
		t := p.lease()
		for i := lo; i < hi; i++ {
			line(t, dst, src, i)
		}
		p.idle().Put(t)
	})
}

// transformer holds what one worker needs for lines of one length: Gonum's tables and scratch, and buffers for a line.
type transformer struct {
	complex  *fourier.CmplxFFT
	real     *fourier.FFT
	times    []float64    // of a real transform: the line in the time domain
	spectrum []complex128 // the line in the frequency domain; of a complex transform also in the time domain
}

// transformers keeps idle transformers by length and kind (real or complex) for all computations: *sync.Pool of *transformer.
var transformers sync.Map

type transformerKey struct {
	real bool
	n    int
}

func (p pass) isReal() bool {
	return p.kind == backends.FFTForwardReal || p.kind == backends.FFTInverseReal
}

func (p pass) idle() *sync.Pool {
	key := transformerKey{p.isReal(), p.n}
	idle, ok := transformers.Load(key)
	if !ok {
		idle, _ = transformers.LoadOrStore(key, new(sync.Pool))
	}
	return idle.(*sync.Pool)
}

// lease takes an idle transformer or makes one.
func (p pass) lease() *transformer {
	if t, ok := p.idle().Get().(*transformer); ok {
		return t
	}
	if p.isReal() {
		return &transformer{real: fourier.NewFFT(p.n), times: make([]float64, p.n), spectrum: make([]complex128, p.n/2+1)}
	}
	return &transformer{complex: fourier.NewCmplxFFT(p.n), spectrum: make([]complex128, p.n)}
}

// lineFn transforms line i.
type lineFn func(t *transformer, dst, src []byte, i int)

// newLine returns the transform of one line for numbers of types R and C.
func newLine[R float, C complexNumber](p pass) lineFn {
	half, scale := p.n/2+1, 1/float64(p.n)
	switch p.kind {
	case backends.FFTForwardReal:
		return func(t *transformer, dst, src []byte, i int) {
			for k, v := range move.Of[R](src)[i*p.n : (i+1)*p.n] {
				t.times[k] = float64(v)
			}
			y := move.Of[C](dst)[i*half : (i+1)*half]
			for k, v := range t.real.Coefficients(t.spectrum, t.times) {
				y[k] = C(v)
			}
		}
	case backends.FFTInverseReal:
		return func(t *transformer, dst, src []byte, i int) {
			for k, v := range move.Of[C](src)[i*half : (i+1)*half] {
				t.spectrum[k] = complex128(v)
			}
			y := move.Of[R](dst)[i*p.n : (i+1)*p.n]
			for k, v := range t.real.Sequence(t.times, t.spectrum) {
				y[k] = R(v * scale)
			}
		}
	}
	forward := p.kind == backends.FFTForward
	return func(t *transformer, dst, src []byte, i int) {
		x, y := move.Of[C](src), move.Of[C](dst)
		at := i/p.stride*p.n*p.stride + i%p.stride
		for k := range t.spectrum {
			t.spectrum[k] = complex128(x[at+k*p.stride])
		}
		if forward {
			t.complex.Coefficients(t.spectrum, t.spectrum)
			for k, v := range t.spectrum {
				y[at+k*p.stride] = C(v)
			}
			return
		}
		t.complex.Sequence(t.spectrum, t.spectrum)
		for k, v := range t.spectrum {
			y[at+k*p.stride] = C(v * complex(scale, 0))
		}
	}
}
