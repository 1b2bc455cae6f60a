//go:build cgo

package cpu

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

func TestProducts(t *testing.T) {
	a, b := [][]float32{{1, 2, 3}, {4, 5, 6}}, [][]float32{{1, 0}, {0, 1}, {2, 2}}
	e := engine(t)
	if got := eval1(t, e, Dot, a, b); fmt.Sprint(got) != "[[7 8] [16 17]]" {
		t.Errorf("matrices: %v", got)
	}
	if got := eval1(t, e, Dot, a, []float32{1, 1, 1}); fmt.Sprint(got) != "[6 15]" {
		t.Errorf("matrix and vector: %v", got)
	}
	if got := eval1(t, e, Dot, []float32{1, 2}, []float32{3, 4}); got != float32(11) {
		t.Errorf("vectors: %v", got)
	}
	if got := eval1(t, e, Dot, [][]int32{{1, 2}}, [][]int32{{3}, {4}}); fmt.Sprint(got) != "[[11]]" {
		t.Errorf("integers: %v", got)
	}
}

// TestDotGeneral compares DotGeneral over random axes and types, with one operand transposed before, with the written-out sum.
func TestDotGeneral(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 60 {
		dims := map[byte]int{}
		for _, c := range "bcijkl" {
			dims[byte(c)] = 1 + rng.IntN(5)
		}
		left, right, out := shuffle(rng, "bik"), shuffle(rng, "bkj"), "bij"
		if rng.IntN(2) == 0 {
			left, right, out = shuffle(rng, "bcikl"), shuffle(rng, "cblkj"), "bcij"
		}
		dtype := []dtypes.DType{dtypes.Float32, dtypes.Float32, dtypes.Float64, dtypes.Int32}[rng.IntN(4)]
		x, y := random(rng, shapes.Make(dtype, sizes(dims, left)...)), random(rng, shapes.Make(dtype, sizes(dims, right)...))
		got := floats(eval(t, engine(t), func(x, y *Node) *Node {
			order := rng.Perm(x.Rank())
			back := make([]int, len(order))
			for i, a := range order {
				back[a] = i
			}
			x = TransposeAllAxes(TransposeAllAxes(x, order...), back...)
			return Einsum(left+","+right+"->"+out, x, y)
		}, x, y)[0])
		for i, want := range einsum(dims, left, right, out, floats(x), floats(y)) {
			if d := got[i] - want; d > 1e-4 || d < -1e-4 {
				t.Fatalf("%s,%s->%s of %v in %s: element %d is %g, want %g", left, right, out, dims, dtype, i, got[i], want)
			}
		}
	}
}

// einsum sums over all values of all indices.
func einsum(dims map[byte]int, left, right, out string, x, y []float64) []float64 {
	sum := make([]float64, flatIndex(dims, out, func(c byte) int { return dims[c] - 1 })+1)
	const letters = "bcijkl"
	index := map[byte]int{}
	var walk func(i int)
	walk = func(i int) {
		if i == len(letters) {
			at := func(c byte) int { return index[c] }
			sum[flatIndex(dims, out, at)] += x[flatIndex(dims, left, at)] * y[flatIndex(dims, right, at)]
			return
		}
		n := 1
		if strings.IndexByte(left+right, letters[i]) >= 0 {
			n = dims[letters[i]]
		}
		for index[letters[i]] = 0; index[letters[i]] < n; index[letters[i]]++ {
			walk(i + 1)
		}
	}
	walk(0)
	return sum
}

func flatIndex(dims map[byte]int, axes string, at func(byte) int) int {
	n := 0
	for i := range axes {
		n = n*dims[axes[i]] + at(axes[i])
	}
	return n
}

// TestLargeProducts compares large products in float32 (the kernels) with float64 (portable loops).
func TestLargeProducts(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	for range 20 {
		dims := map[byte]int{'b': 1 + rng.IntN(3), 'i': 1 + rng.IntN(150), 'k': 1 + rng.IntN(300), 'j': 1 + rng.IntN(150)}
		left, right := shuffle(rng, "bik"), shuffle(rng, "bkj")
		x, y := random(rng, shapes.Make(dtypes.Float32, sizes(dims, left)...)), random(rng, shapes.Make(dtypes.Float32, sizes(dims, right)...))
		out := eval(t, engine(t), func(x, y *Node) []*Node {
			spec := left + "," + right + "->bij"
			exact := Einsum(spec, ConvertDType(x, dtypes.Float64), ConvertDType(y, dtypes.Float64))
			return []*Node{Einsum(spec, x, y), ConvertDType(exact, dtypes.Float32)}
		}, x, y)
		if err := near(out[0], out[1], 1e-4); err != nil {
			t.Errorf("%s,%s of %v: %v", left, right, dims, err)
		}
	}
}

func shuffle(rng *rand.Rand, s string) string {
	b := []byte(s)
	rng.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
	return string(b)
}

func sizes(dims map[byte]int, axes string) []int {
	out := make([]int, len(axes))
	for i := range axes {
		out[i] = dims[axes[i]]
	}
	return out
}

// convCase is a random convolution.
type convCase struct {
	input, kernel              shapes.Shape
	axes                       backends.ConvolveAxesConfig
	strides, inputDil, kernDil []int
	pads                       [][2]int
	channelGroups, batchGroups int
	reversed                   bool
	spatial                    int
}

func randomConv(rng *rand.Rand, dtype dtypes.DType) convCase {
	s := 1 + rng.IntN(3)
	c := convCase{spatial: s, channelGroups: 1, batchGroups: 1, reversed: rng.IntN(2) == 0}
	batch, in, out := 1+rng.IntN(3), 1+rng.IntN(5), 1+rng.IntN(6)
	switch rng.IntN(4) {
	case 0:
		c.channelGroups = 2
		in, out = in*2, out*2
	case 1:
		c.batchGroups = 2
		batch, out = batch*2, out*2
	}
	order := rng.Perm(s + 2)
	input, kernel := make([]int, s+2), make([]int, s+2)
	c.axes = backends.ConvolveAxesConfig{InputBatch: order[0], InputChannels: order[1], InputSpatial: order[2:]}
	order = rng.Perm(s + 2)
	c.axes.KernelInputChannels, c.axes.KernelOutputChannels, c.axes.KernelSpatial = order[0], order[1], order[2:]
	order = rng.Perm(s + 2)
	c.axes.OutputBatch, c.axes.OutputChannels, c.axes.OutputSpatial = order[0], order[1], order[2:]
	input[c.axes.InputBatch], input[c.axes.InputChannels] = batch, in
	kernel[c.axes.KernelInputChannels], kernel[c.axes.KernelOutputChannels] = in/c.channelGroups, out
	for a := range s {
		k := 1 + rng.IntN(4)
		c.strides = append(c.strides, 1+rng.IntN(3))
		c.inputDil = append(c.inputDil, 1+rng.IntN(2))
		c.kernDil = append(c.kernDil, 1+rng.IntN(2))
		c.pads = append(c.pads, [2]int{rng.IntN(3), rng.IntN(3)})
		input[c.axes.InputSpatial[a]] = (k-1)*2 + 1 + rng.IntN(6)
		kernel[c.axes.KernelSpatial[a]] = k
	}
	c.input, c.kernel = shapes.Make(dtype, input...), shapes.Make(dtype, kernel...)
	return c
}

func (c convCase) graph(x, k *Node) *Node {
	if c.reversed {
		k = Reverse(k, c.axes.KernelSpatial...)
	}
	return ConvGeneral(x, k, c.axes, c.strides, c.pads, c.inputDil, c.kernDil, c.channelGroups, c.batchGroups)
}

// TestConvolutionAgainstPortable compares every kind of convolution in float32 (the kernels) with float64 (the portable loops).
func TestConvolutionAgainstPortable(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for i := range 150 {
		c := randomConv(rng, dtypes.Float32)
		x, k := random(rng, c.input), random(rng, c.kernel)
		out := eval(t, engine(t), func(x, k *Node) []*Node {
			return []*Node{c.graph(x, k), ConvertDType(c.graph(ConvertDType(x, dtypes.Float64), ConvertDType(k, dtypes.Float64)), dtypes.Float32)}
		}, x, k)
		if err := near(out[0], out[1], 1e-4); err != nil {
			t.Fatalf("case %d %+v: %v", i, c, err)
		}
	}
}

// TestPortableConvolutionAgainstGo compares the portable loops with GoMLX's Go backend where that is correct: for batch groups it differs from XLA.
func TestPortableConvolutionAgainstGo(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for i := range 60 {
		c := randomConv(rng, dtypes.Float64)
		c.reversed = false // the reference has no Reverse
		if c.batchGroups > 1 {
			continue
		}
		// The reference also uses the axes of the input for the output.
		c.axes.OutputBatch, c.axes.OutputChannels, c.axes.OutputSpatial = c.axes.InputBatch, c.axes.InputChannels, c.axes.InputSpatial
		agree(t, fmt.Sprintf("case %d %+v", i, c), 1e-9, c.graph, random(rng, c.input), random(rng, c.kernel))
	}
}

// TestHalfProducts checks that 16-bit floats multiply and convolve as float32, rounded once.
func TestHalfProducts(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	x, k := random(rng, shapes.Make(dtypes.Float32, 2, 8, 8, 3)), random(rng, shapes.Make(dtypes.Float32, 3, 3, 3, 4))
	for _, half := range []dtypes.DType{dtypes.Float16, dtypes.BFloat16} {
		out := eval(t, engine(t), func(x, k *Node) []*Node {
			hx, hk := ConvertDType(x, half), ConvertDType(k, half)
			x, k = ConvertDType(hx, dtypes.Float32), ConvertDType(hk, dtypes.Float32)
			conv := func(x, k *Node) *Node { return Convolve(x, k).PadSame().Done() }
			dot := func(x, k *Node) *Node { return Einsum("bhwc,xyco->bo", x, k) }
			return []*Node{conv(hx, hk), ConvertDType(conv(x, k), half), dot(hx, hk), ConvertDType(dot(x, k), half)}
		}, x, k)
		for i := 0; i < 4; i += 2 {
			if err := near(out[i], out[i+1], 1.0/64); err != nil {
				t.Errorf("%s: %v", half, err)
			}
		}
	}
}

// TestTwinOfWhatAProductSeesThrough checks that a broadcast whose only other reader became part of a product is still available to its duplicate.
func TestTwinOfWhatAProductSeesThrough(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	x, y := random(rng, shapes.Make(dtypes.Float32, 4, 5)), random(rng, shapes.Make(dtypes.Float32, 5, 6))
	agree(t, "twin", 1e-5, func(x, y *Node) []*Node {
		x = InsertAxes(x, -1)
		wide := func() *Node { return BroadcastToDims(x, 4, 5, 6) }
		sum := ReduceSum(Mul(wide(), BroadcastToDims(InsertAxes(y, 0), 4, 5, 6)), 1)
		return []*Node{sum, Exp(wide()), wide()}
	}, x, y)
}
