package latent

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/paper/hrr"
	"slotscope/model/paper/layer"
)

// Bindings: the value of slot i enters the bundle as z = Σ_i M_i v_i and is retrieved as ṽ_i = M_iᵀ z. The paper's M_i is the
// circulant of the symbol s_i; the others are controls that test whether circular convolution matters.
const (
	Circular    = ""            // M_i v = s_i ⊗ v
	Random      = "random"      // M_i has entries N(0, 1/d)
	Permutation = "permutation" // M_i permutes the components of v
	Concat      = "concat"      // M_i scales the first ⌊d/m⌋ components of v by √m and writes them to components that no other slot uses
)

const xla = "xla" // GoMLX's name of the XLA backend

// bindingParams returns the tensors that define every M_i: symbols [m, d], or "binding": matrices [m, d, d] or permutations [m, d]
// as numbers 0 … d−1. All are frozen except learned symbols.
func (h HRR) bindingParams() []layer.Param {
	switch h.Binding {
	case Random:
		draw := layer.Normal(1 / math.Sqrt(float64(h.D)))
		return layer.At(layer.Frozen, []layer.Param{layer.Plain("binding", draw, h.M, h.D, h.D)})
	case Permutation:
		return layer.At(layer.Frozen, []layer.Param{layer.Plain("binding", h.drawPermutations, h.M, h.D)})
	case Concat:
		return nil
	}
	symbols := layer.Plain("symbols", h.drawSymbols, h.M, h.D)
	if h.LearnSymbols {
		return []layer.Param{symbols}
	}
	return layer.At(layer.Frozen, []layer.Param{symbols})
}

func (h HRR) drawSymbols(rng *rand.Rand, out []float32) {
	for i := range h.M {
		s := hrr.Symbol[float32](rng, h.D)
		if h.UnitSymbols {
			s = hrr.Unit(s)
		}
		copy(out[i*h.D:], s)
	}
}

func (h HRR) drawPermutations(rng *rand.Rand, out []float32) {
	for i := range h.M {
		for n, j := range rng.Perm(h.D) {
			out[i*h.D+n] = float32(j)
		}
	}
}

// fftFrom is the dimension d from which circular convolution uses FFTs. Milliseconds of binding and unbinding m = 9 slots of 32 images
// with gradients, on two cores of the CPU engine (BenchmarkForms of package hrr):
//
//	d             128    256    512    768   1024   1536   2048   3072   4096   8192
//	circulants   0.23   0.84    3.2    8.0     15     31     58    134    267   1001
//	halves       0.20   0.55    1.8    5.4    9.0     17     31     64    142    539
//	FFTs          2.7    6.4     14     21     29     48     63     93    126    283
const fftFrom = 4096

// operator applies the M_i of all slots. bind and unbind are the same unless the exact inverse is used.
type operator struct{ bind, unbind hrr.Form }

// unbindAll returns ṽ_i = M_iᵀ z: z is [B, d], the result [B, m, d].
func (o operator) unbindAll(z *Node) *Node { return o.unbind.UnbindAll(z) }

// bindAll returns ẑ = Σ_i M_i v_i: values is [B, m, d], the result [B, d].
func (o operator) bindAll(values *Node) *Node { return o.bind.BindAll(values) }

// binding returns the operator of every slot's M_i.
func (h HRR) binding(scope *context.Context, g *Graph) operator {
	var bind *Node
	switch h.Binding {
	case Random:
		bind = StopGradient(layer.Value(scope, g, "binding"))
	case Permutation:
		bind = OneHot(ConvertDType(StopGradient(layer.Value(scope, g, "binding")), dtypes.Int32), h.D, dtypes.Float32)
	case Concat:
		bind = h.blocks(g)
	default:
		if prefersFFT(g.Backend(), h.D) {
			return h.spectra(scope, g)
		}
		return h.circulants(scope, g)
	}
	bind.AssertDims(h.M, h.D, h.D)
	all := hrr.Matrices{All: Reshape(Transpose(bind, 0, 1), h.D, h.M*h.D)}
	return operator{all, all}
}

// prefersFFT reports whether FFTs are used instead of circulants: the engine has them and d is large, without a prime factor above 5. Such
// factors slow transforms down: at d = 2058 = 2·3·7³, FFTs take 95 ms and halves of circulants 30 ms.
func prefersFFT(engine backends.Backend, d int) bool {
	if d < fftFrom || !engine.Capabilities().Operations[backends.OpTypeFFT] {
		return false
	}
	for _, p := range []int{2, 3, 5} {
		for d%p == 0 {
			d /= p
		}
	}
	return d == 1
}

// spectra returns the operator of circular convolution by FFT.
func (h HRR) spectra(scope *context.Context, g *Graph) operator {
	symbols := layer.Value(scope, g, "symbols")
	if !h.LearnSymbols {
		symbols = StopGradient(symbols)
	}
	unbind := symbols
	if h.Exact {
		unbind = hrr.ExactFFT(symbols)
	}
	return operator{hrr.Spectra{Symbols: symbols}, hrr.Spectra{Symbols: unbind}}
}

// blocks returns the M_i of Concat, [m, d, d]: √m at row i·w + j of column j < w = ⌊d/m⌋, otherwise 0. The factor √m gives bundle and
// retrieval the same energy as with symbols.
func (h HRR) blocks(g *Graph) *Node {
	w := h.D / h.M
	cube := shapes.Make(dtypes.Int32, h.M, h.D, h.D)
	slot, row, column := Iota(g, cube, 0), Iota(g, cube, 1), Iota(g, cube, 2)
	inside := LogicalAnd(Equal(row, Add(MulScalar(slot, w), column)), LessThan(column, Scalar(g, dtypes.Int32, w)))
	return MulScalar(ConvertDType(inside, dtypes.Float32), math.Sqrt(float64(h.M)))
}

// circulants returns the operator of circular convolution by matrix products. Frozen symbols are graph constants, so a graph is valid
// only for the symbols in the scope when it was built. XLA is the exception: it reads constants as text, about 100 MB per step.
func (h HRR) circulants(scope *context.Context, g *Graph) operator {
	switch {
	case h.LearnSymbols:
		return h.circulantsOf(layer.Value(scope, g, "symbols"))
	case g.Backend().Name() == xla:
		return h.circulantsOf(StopGradient(layer.Value(scope, g, "symbols")))
	}
	symbols := layer.Read(scope, "symbols")
	bind := h.constant(g, symbols)
	unbind := bind
	if h.Exact {
		unbind = h.constant(g, exactOf(symbols, h.D))
	}
	return operator{bind, unbind}
}

func (h HRR) circulantsOf(symbols *Node) operator {
	bind := formOf(symbols)
	unbind := bind
	if h.Exact {
		unbind = formOf(hrr.ExactOf(symbols))
	}
	return operator{bind, unbind}
}

// halvesFrom is the dimension d from which circulant matrices of even d are divided into halves. Below it, dividing the values takes about as long as is gained.
const halvesFrom = 256

func prefersHalves(d int) bool { return d >= halvesFrom && d%2 == 0 }

// formOf returns the circulant matrices of symbols, [m, d].
func formOf(symbols *Node) hrr.Form {
	if prefersHalves(symbols.Shape().Dim(1)) {
		return hrr.HalvesOf(symbols)
	}
	return hrr.Matrices{All: hrr.CirculantsOf(symbols)}
}

// constant is formOf for known symbols.
func (h HRR) constant(g *Graph, symbols []float32) hrr.Form {
	of := func(matrices []float32, width int) *Node {
		return ConstTensor(g, tensors.FromFlatDataAndDimensions(matrices, width, h.M*width))
	}
	if prefersHalves(h.D) {
		sum, difference := hrr.HalfCirculants(symbols, h.M)
		return hrr.Halves{Sum: of(sum, h.D/2), Difference: of(difference, h.D/2)}
	}
	return hrr.Matrices{All: of(hrr.Circulants(symbols, h.M), h.D)}
}

// exactOf computes hrr.ExactOf on the host: the vectors whose involution is the exact inverse of each symbol.
func exactOf(symbols []float32, d int) []float32 {
	out := make([]float32, 0, len(symbols))
	for s := range slices.Chunk(symbols, d) {
		inverse, err := hrr.ExactInverse(s)
		if err != nil {
			panic(err)
		}
		out = append(out, hrr.Involution(inverse)...)
	}
	return out
}
