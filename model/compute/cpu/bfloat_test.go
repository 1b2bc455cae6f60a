//go:build cgo

package cpu

import (
	"math"
	"math/rand/v2"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"slotscope/model/compute/cpu/kernel"
	"slotscope/model/compute/cpu/move"
)

func toBF16(x *Node) *Node { return ConvertDType(x, dtypes.BFloat16) }

func toF32(x *Node) *Node { return ConvertDType(x, dtypes.Float32) }

// TestProductsOfBF16 checks that products of bfloat16 and their gradients are exactly products of float32 with rounded operands.
func TestProductsOfBF16(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	for _, c := range []struct {
		name     string
		x, k     shapes.Shape
		multiply func(x, k *Node) *Node
	}{
		{"convolution", f32(2, 9, 7, 3), f32(3, 3, 3, 5), func(x, k *Node) *Node { return Convolve(x, k).PadSame().Done() }},
		{"strides", f32(2, 8, 8, 17), f32(4, 4, 17, 8), func(x, k *Node) *Node { return Convolve(x, k).Strides(2).PadSame().Done() }},
		{"one pixel", f32(1, 1, 1, 1), f32(1, 1, 1, 1), func(x, k *Node) *Node { return Convolve(x, k).Done() }},
		{"matrices", f32(6, 33), f32(33, 9), Dot},
		{"moved", f32(6, 33), f32(9, 33), func(x, k *Node) *Node { return Dot(x, Transpose(Reverse(k, 0), 0, 1)) }},
		{"padded", f32(6, 31), f32(33, 9), func(x, k *Node) *Node {
			return Dot(Pad(x, ScalarZero(x.Graph(), x.DType()), PadAxis{}, PadAxis{Start: 1, End: 1}), k)
		}},
		{"cut and joined", f32(6, 34), f32(17, 9), func(x, k *Node) *Node {
			return Dot(Slice(x, AxisRange(), AxisRange(3, 20)), Concatenate([]*Node{k}, 0))
		}},
	} {
		learn := func(product func(x, k *Node) *Node) func(x, k *Node) []*Node {
			return func(x, k *Node) []*Node {
				y := product(x, k)
				if y.Rank() < 4 { // GoMLX writes the gradients of matrix products as sums
					return []*Node{y}
				}
				return append([]*Node{y}, Gradient(ReduceAllSum(Square(y)), x, k)...)
			}
		}
		mixed := learn(func(x, k *Node) *Node { return toF32(c.multiply(toBF16(x), toBF16(k))) })
		x, k := random(rng, c.x), random(rng, c.k)
		exec := build(t, engine(t), []shapes.Shape{c.x, c.k}, func(in []*Node) []*Node { return mixed(in[0], in[1]) })
		for _, s := range exec.steps {
			for _, n := range s.nodes {
				if (n.op == backends.OpTypeConvGeneral || n.op == backends.OpTypeDotGeneral) && n.shape.DType != dtypes.Float32 {
					t.Errorf("%s: %s", c.name, s.describe())
				}
				if n.op == backends.OpTypeConvGeneral && operands(n) != kernel.Halves {
					t.Errorf("%s: operands are not known to be bfloat16: %s", c.name, s.describe())
				}
			}
		}
		got := eval(t, engine(t), mixed, x, k)
		round := func(x *Node) *Node { return toF32(toBF16(x)) }
		want := eval(t, engine(t), func(x, k *Node) []*Node {
			x, k = round(x), round(k)
			y := c.multiply(x, k)
			if y.Rank() < 4 {
				return []*Node{y}
			}
			v := StopGradient(round(MulScalar(y, 2)))
			return append([]*Node{y}, Gradient(ReduceAllSum(Mul(y, v)), x, k)...)
		}, x, k)
		for i := range got {
			if err := near(got[i], want[i], 4e-6); err != nil { // kernels for bfloat16 add some 300 terms in another order
				t.Errorf("%s, result %d: %v", c.name, i, err)
			}
		}
	}
}

// TestStepWithKernelsForBF16 checks that a step with each set of kernels for bfloat16 equals that of the float32 kernels, except for the order of sums.
func TestStepWithKernelsForBF16(t *testing.T) {
	rng := rand.New(rand.NewPCG(27, 28))
	in := []any{random(rng, f32(4, 12, 12, 3)), random(rng, f32(3, 3, 3, 20)), random(rng, f32(4, 4, 20, 24)), random(rng, f32(6*6*24, 10))}
	step := func(x, k, l, w *Node) []*Node {
		product := func(multiply func(x, k *Node) *Node, x, k *Node) *Node { return toF32(multiply(toBF16(x), toBF16(k))) }
		y := Max(product(func(x, k *Node) *Node { return Convolve(x, k).PadSame().Done() }, x, k), ScalarZero(x.Graph(), x.DType()))
		y = product(func(x, k *Node) *Node { return Convolve(x, k).Strides(2).PadSame().Done() }, y, l)
		y = product(Dot, Reshape(y, 4, -1), w)
		return append([]*Node{y}, Gradient(ReduceAllMean(Square(y)), x, k, l, w)...)
	}
	undo, _ := kernel.ForceHalf("float32") // this processor might choose one of the sets
	want := eval(t, engine(t), step, in...)
	undo()
	forEachHalfSet(t, func(t *testing.T) {
		got, same := eval(t, engine(t), step, in...), 0
		for i := range got {
			if err := near(got[i], want[i], 1e-3); err != nil { // a sum on the other side of a tie is rounded differently
				t.Errorf("result %d: %v", i, err)
			}
			if reflect.DeepEqual(floats(got[i]), floats(want[i])) {
				same++
			}
		}
		if same == len(got) {
			t.Error("the kernels were not used: every sum is bit-identical to float32")
		}
	})
}

// TestValuesStoredAsBF16 checks that rounded values are stored as bfloat16 if only products read them, which changes no result. The kernels are 3×3, since
// minimal filtering in float32 reads those of 4×4 as they are.
func TestValuesStoredAsBF16(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	shape := []shapes.Shape{f32(4, 12, 12, 3), f32(3, 3, 3, 20), f32(3, 3, 20, 24), f32(6*6*24, 70), f32(70, 3)}
	var in []any
	for _, s := range shape {
		in = append(in, random(rng, s))
	}
	step := func(alsoReturned bool) func(in []*Node) []*Node {
		return func(in []*Node) []*Node {
			var rounded []*Node
			round := func(x *Node) *Node {
				x = toBF16(x)
				if alsoReturned {
					rounded = append(rounded, toF32(x))
				}
				return x
			}
			x, k, l, w, v := in[0], in[1], in[2], in[3], in[4]
			y := Max(toF32(Convolve(round(x), round(k)).PadSame().Done()), ScalarZero(x.Graph(), x.DType()))
			y = toF32(Convolve(round(y), round(l)).Strides(2).PadSame().Done())
			y = toF32(Dot(Reshape(round(y), 4, -1), round(w)))
			y = toF32(Dot(round(Concatenate([]*Node{y, y, y, y, y}, 0)), round(v))) // of a few columns
			out := append([]*Node{y}, Gradient(ReduceAllMean(Square(y)), in...)...)
			return append(out, rounded...)
		}
	}
	stored := func(e *Executable) (narrow, wide []string) {
		for _, s := range e.steps {
			for _, s := range s.parts() {
				for _, n := range s.out {
					switch {
					case n.narrow:
						narrow = append(narrow, n.shape.String())
					case roundsToBF16(n):
						wide = append(wide, n.shape.String())
					}
				}
			}
		}
		return narrow, wide
	}
	narrow, wide := stored(build(t, engine(t), shape, step(false)))
	for _, s := range []shapes.Shape{shape[0], shape[1], shape[2], f32(4, 12, 12, 20), f32(4, 6, 6, 24)} {
		if !slices.Contains(narrow, s.String()) {
			t.Errorf("%s is not stored as bfloat16; these are: %v, and these are not: %v", s, narrow, wide)
		}
	}
	for _, s := range []shapes.Shape{shape[3], shape[4]} { // few rows or columns read them in place
		if !slices.Contains(wide, s.String()) {
			t.Errorf("%s is not stored as float32; these are: %v", s, wide)
		}
	}
	if narrow, _ := stored(build(t, engine(t), shape, step(true))); slices.Contains(narrow, shape[0].String()) {
		t.Errorf("a result is stored as bfloat16: %v", narrow)
	}
	run := func(alsoReturned bool) []*tensors.Tensor {
		return eval(t, engine(t), step(alsoReturned), in...)
	}
	got := run(false)
	for i, want := range run(true)[:len(got)] {
		if !reflect.DeepEqual(floats(got[i]), floats(want)) {
			t.Errorf("result %d differs from that with rounded values stored as float32", i)
		}
	}
}

// TestConvolutionsThatStoreBF16 checks that convolutions of bfloat16 store their results as such if only element-wise operations and sums read them, and that
// the results of these are those with rounded values.
func TestConvolutionsThatStoreBF16(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	shape := []shapes.Shape{f32(3, 16, 16, 16), f32(4, 4, 16, 48), f32(4, 4, 48, 32), f32(3, 16, 16, 48)}
	var in []any
	for _, s := range shape {
		in = append(in, random(rng, s))
	}
	norm := func(x *Node) *Node { // of a size for which sums are machine code, with values that rows share
		x = Max(x, MulScalar(x, 0.2))
		mean := ReduceAndKeep(x, ReduceMean, 1, 2)
		return Mul(Sub(x, mean), Rsqrt(AddScalar(ReduceAndKeep(Square(Sub(x, mean)), ReduceMean, 1, 2), 1e-5)))
	}
	layers := func(alsoReturned bool, of func(x *Node) *Node) func(in []*Node) []*Node {
		convolve := func(x, k *Node, strides int) *Node {
			return toF32(Convolve(toBF16(x), toBF16(k)).Strides(strides).PadSame().Done())
		}
		return func(in []*Node) []*Node {
			x, y := convolve(in[0], in[1], 1), convolve(in[3], in[2], 2)
			out := []*Node{ReduceSum(Sigmoid(of(x)), 3), norm(of(x)), norm(of(y))} // Sigmoid is not machine code
			if alsoReturned {
				out = append(out, x, y)
			}
			return out
		}
	}
	same := func(x *Node) *Node { return x }
	round := func(x *Node) *Node { return toF32(toBF16(x)) }
	check := func(t *testing.T, want map[string]bool) {
		stored := map[string]bool{}
		for _, s := range build(t, engine(t), shape, layers(false, same)).steps {
			for _, s := range s.parts() {
				for _, n := range s.out {
					if n.op == backends.OpTypeConvGeneral {
						stored[n.shape.String()] = n.narrow
					}
				}
			}
		}
		if !reflect.DeepEqual(stored, want) {
			t.Errorf("stored as bfloat16: %v, want %v", stored, want)
		}
		if !want[f32(3, 16, 16, 48).String()] {
			return
		}
		got := eval(t, engine(t), layers(false, same), in...)
		for i, want := range eval(t, engine(t), layers(true, round), in...)[:len(got)] {
			if err := near(got[i], want, 2e-6); err != nil { // sums of other programs may have another order
				t.Errorf("result %d differs from that of values that are rounded: %v", i, err)
			}
		}
		if returned := eval(t, engine(t), layers(true, same), in...); near(returned[0], got[0], 2e-6) == nil {
			t.Error("values that are also returned are rounded")
		}
	}
	convolutions := func(rounds bool) map[string]bool {
		return map[string]bool{f32(3, 16, 16, 48).String(): rounds, f32(3, 8, 8, 32).String(): rounds}
	}
	undo, _ := kernel.ForceHalf("float32")
	check(t, convolutions(false))
	undo()
	forEachHalfSet(t, func(t *testing.T) { check(t, convolutions(strings.HasSuffix(t.Name(), "/AVX512_BF16"))) })
}

// forEachHalfSet runs a test with each set of kernels for bfloat16 that the processor reports.
func forEachHalfSet(t *testing.T, test func(t *testing.T)) {
	for _, name := range []string{"plain C", "AVX512_BF16", "AMX"} {
		t.Run(name, func(t *testing.T) {
			undo, ok := kernel.ForceHalf(name)
			if !ok {
				t.Skip("not reported by the processor")
			}
			defer undo()
			test(t)
		})
	}
}

// TestStepOfSplitProducts checks that an engine with SplitProducts computes nearly the same step as with float32 for each set, and the same bits without a set.
func TestStepOfSplitProducts(t *testing.T) {
	rng := rand.New(rand.NewPCG(29, 30))
	in := []any{random(rng, f32(4, 12, 12, 3)), random(rng, f32(3, 3, 3, 20)), random(rng, f32(4, 4, 20, 24)), random(rng, f32(6*6*24, 10))}
	step := func(x, k, l, w *Node) []*Node {
		y := Max(Convolve(x, k).PadSame().Done(), ScalarZero(x.Graph(), x.DType()))
		y = Dot(Reshape(Convolve(y, l).Strides(2).PadSame().Done(), 4, -1), w)
		return append([]*Node{y}, Gradient(ReduceAllMean(Square(y)), x, k, l, w)...)
	}
	splits, err := New("2," + SplitProducts)
	if err != nil {
		t.Fatal(err)
	}
	defer splits.Finalize()
	want := eval(t, engine(t), step, in...)
	if _, used := BF16x3(); !used {
		for i, got := range eval(t, splits, step, in...) {
			if !reflect.DeepEqual(floats(got), floats(want[i])) {
				t.Errorf("result %d differs although no kernels for bfloat16 are used", i)
			}
		}
	}
	forEachHalfSet(t, func(t *testing.T) {
		for i, got := range eval(t, splits, step, in...) {
			if d := distance(floats(got), floats(want[i])); d > 2e-5 {
				t.Errorf("result %d differs by %.1e of its largest element", i, d)
			}
			if reflect.DeepEqual(floats(got), floats(want[i])) {
				t.Errorf("result %d is bit-identical to float32: the kernels were not used", i)
			}
		}
	})
}

// TestFewRowsAreNotSplit checks that an engine with SplitProducts multiplies a large matrix that few rows read as without.
func TestFewRowsAreNotSplit(t *testing.T) {
	splits, err := New("2," + SplitProducts)
	if err != nil {
		t.Fatal(err)
	}
	defer splits.Finalize()
	rng := rand.New(rand.NewPCG(45, 46))
	forEachHalfSet(t, func(t *testing.T) {
		most := map[string]int{"AVX512_BF16": 32, "AMX": 16}[path.Base(t.Name())]
		for _, rows := range []int{16, 17, 32, 33} {
			in := []any{random(rng, f32(rows, 512)), random(rng, f32(512, 512))}
			multiply := func(x, k *Node) []*Node { return []*Node{Dot(x, k)} }
			same := reflect.DeepEqual(floats(eval(t, splits, multiply, in...)[0]), floats(eval(t, engine(t), multiply, in...)[0]))
			if same != (rows <= most) {
				t.Errorf("%d rows: the same as without split products: %v", rows, same)
			}
		}
	})
}

// distance returns the largest difference of elements, relative to the largest element.
func distance(a, b []float64) float64 {
	var apart, largest float64
	for i := range a {
		apart, largest = math.Max(apart, math.Abs(a[i]-b[i])), math.Max(largest, math.Abs(b[i]))
	}
	return apart / largest
}

func TestConfig(t *testing.T) {
	for _, config := range []string{"", "2", "2,bf16x3", ",bf16x3"} {
		e, err := New(config)
		if err != nil {
			t.Fatalf("%q: %v", config, err)
		}
		if b := e.(*Backend); b.split != strings.Contains(config, "bf16x3") || strings.HasPrefix(config, "2") && b.Threads() != 2 {
			t.Errorf("%q: split %v, %d threads", config, b.split, b.Threads())
		}
	}
	for _, config := range []string{"2,bf16", "bf16x3", "2,bf16x3,", "0"} {
		if _, err := New(config); err == nil {
			t.Errorf("%q is accepted", config)
		}
	}
}

// TestHoldsBF16 checks that values are known to be bfloat16 if each operand is rounded or a constant that needs no rounding, also after reshaping.
func TestHoldsBF16(t *testing.T) {
	whole, odd := constant(move.Bytes([]float32{1, -0.5, 0, 384})), constant(move.Bytes([]float32{1, 1.0 / 3}))
	shape := shapes.Make(dtypes.Float32, 4)
	x := &node{op: backends.OpTypeParameter, shape: shape}
	r := &node{op: backends.OpTypeConvertDType, args: rounded{}, in: []*node{x}, shape: shape}
	c := &node{op: backends.OpTypeConstant, args: whole, shape: shape}
	over := func(op backends.OpType, in ...*node) *node { return &node{op: op, in: in, shape: shape} }
	for _, test := range []struct {
		name string
		n    *node
		want bool
	}{
		{"parameter", x, false}, {"rounded", r, true}, {"whole constant", c, true},
		{"odd constant", &node{op: backends.OpTypeConstant, args: odd, shape: shape}, false},
		{"constant of another type", &node{op: backends.OpTypeConstant, args: whole, shape: shapes.Make(dtypes.Int32, 4)}, false},
		{"transposed", over(backends.OpTypeTranspose, r), true}, {"joined", over(backends.OpTypeConcatenate, r, c), true},
		{"joined with a parameter", over(backends.OpTypeConcatenate, r, x), false}, {"twice", over(backends.OpTypeAdd, r, r), false},
	} {
		if got := holdsBF16(test.n); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// TestOperandsThatStayFloat checks that only the products for which it is said to be faster read the operands before rounding, also if these are moved.
func TestOperandsThatStayFloat(t *testing.T) {
	shape, half := f32(4, 4), shapes.Make(dtypes.BFloat16, 4, 4)
	list := func(product backends.OpType) (nodes []*node) {
		add := func(op backends.OpType, shape shapes.Shape, in ...*node) *node {
			nodes = append(nodes, &node{op: op, shape: shape, in: in, id: len(nodes)})
			return nodes[len(nodes)-1]
		}
		x, y := add(backends.OpTypeParameter, shape), add(backends.OpTypeParameter, shape)
		h, r := add(backends.OpTypeConvertDType, half, x), add(backends.OpTypeConvertDType, half, y)
		add(product, half, add(backends.OpTypeReverse, half, h), r)
		return nodes
	}
	for _, op := range []backends.OpType{backends.OpTypeConvGeneral, backends.OpTypeDotGeneral} {
		for _, stays := range []bool{false, true} {
			nodes, _ := widen(list(op), func(n *node, in []*node) bool { return stays })
			at := slices.IndexFunc(nodes, func(n *node) bool { return n.op == op && n.shape.DType == dtypes.Float32 })
			if at < 0 {
				t.Fatalf("%s is not computed in float32", op)
			}
			n := nodes[at]
			if roundsToBF16(n.in[0].in[0]) == stays || roundsToBF16(n.in[1]) == stays || (operands(n) == kernel.Halves) == stays {
				t.Errorf("%s: stays float: %v, but an operand does not, or the reverse", op, stays)
			}
		}
	}
}

// TestFewRowsOfBF16 checks which products with a large operand read it before rounding: those of few rows, fewer if AMX multiplies others.
func TestFewRowsOfBF16(t *testing.T) {
	rng := rand.New(rand.NewPCG(43, 44))
	most := map[string]int{"AVX512_BF16": 32, "AMX": 16}[kernel.ForHalves().Name]
	transposed := func(x, k *Node) *Node {
		return ConvGeneral(x, k, ConvolveAxesConfig{InputBatch: 0, InputChannels: 3, InputSpatial: []int{1, 2}, KernelInputChannels: 2, KernelOutputChannels: 3,
			KernelSpatial: []int{0, 1}, OutputBatch: 0, OutputChannels: 3, OutputSpatial: []int{1, 2}}, []int{1, 1}, [][2]int{{2, 2}, {2, 2}}, []int{2, 2}, nil, 1, 1)
	}
	for _, c := range []struct {
		name     string
		x, k     shapes.Shape
		multiply func(x, k *Node) *Node
		rows     int // of a matrix that is large enough
	}{
		{"16 rows", f32(16, 512), f32(512, 512), Dot, 16},
		{"17 rows", f32(17, 512), f32(512, 512), Dot, 17},
		{"32 rows", f32(32, 512), f32(512, 512), Dot, 32},
		{"33 rows", f32(33, 512), f32(512, 512), Dot, 33},
		{"a small matrix", f32(4, 512), f32(512, 511), Dot, math.MaxInt},
		{"the matrix on the left", f32(512, 512), f32(512, 7), Dot, 7},
		{"an image", f32(1, 4, 4, 128), f32(4, 4, 128, 128), transposed, 16},
		{"two images", f32(2, 4, 4, 128), f32(4, 4, 128, 128), transposed, 32},
		{"three images", f32(3, 4, 4, 128), f32(4, 4, 128, 128), transposed, 48},
	} {
		round := func(x *Node) *Node { return toF32(toBF16(x)) }
		out := eval(t, engine(t), func(x, k *Node) []*Node {
			return []*Node{toF32(c.multiply(toBF16(x), toBF16(k))), c.multiply(x, k), c.multiply(round(x), round(k))}
		}, random(rng, c.x), random(rng, c.k))
		want, other := out[2], out[1]
		if c.rows <= most {
			want, other = other, want
		}
		if err := near(out[0], want, 4e-6); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if near(out[0], other, 4e-6) == nil {
			t.Errorf("%s: rounding makes no difference", c.name)
		}
	}
}

// TestProductOfBF16IsRoundedForOthers checks that readers of a product as bfloat16 get it rounded once.
func TestProductOfBF16IsRoundedForOthers(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	out := eval(t, engine(t), func(x, k *Node) []*Node {
		product := Dot(toBF16(x), toBF16(k))
		rounded := toBF16(Dot(toF32(toBF16(x)), toF32(toBF16(k))))
		return []*Node{product, rounded, toF32(Neg(product)), toF32(Neg(rounded)), toF32(Dot(product, toBF16(k))), Dot(toF32(rounded), toF32(toBF16(k)))}
	}, random(rng, f32(4, 7)), random(rng, f32(7, 7)))
	for i := 0; i < len(out); i += 2 {
		if err := near(out[i], out[i+1], 0); err != nil {
			t.Errorf("result %d: %v", i, err)
		}
	}
}

// TestRoundToBF16 checks rounding as in IEEE 754: ties to even, overflow to infinity, subnormal values, NaN to NaN.
func TestRoundToBF16(t *testing.T) {
	var x []float32
	for _, bits := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0x18000, 0x3f808000, 0x3f818000, 0x3f80ffff, 0x7f7f7fff, 0x7f7f8000, 0x7f7fffff, 0x7f800000,
		0x7f800001, 0x7fffffff, 0x7fc00000} {
		x = append(x, math.Float32frombits(bits), math.Float32frombits(bits|1<<31))
	}
	rng := rand.New(rand.NewPCG(25, 26))
	for range 1000 {
		x = append(x, math.Float32frombits(rng.Uint32()))
	}
	got := eval1(t, engine(t), func(x *Node) *Node { // a product with 1 keeps the rounded values
		return Reshape(toF32(Dot(Reshape(toBF16(x), -1, 1), toBF16(OnesLike(Reshape(Slice(x, AxisRange(0, 1)), 1, 1))))), -1)
	}, x).([]float32)
	for i, v := range x {
		want := 0 + roundBF16(v).Float32() // the sum of a product starts with +0
		if math.Float32bits(got[i]) != math.Float32bits(want) && (want == want || got[i] == got[i]) {
			t.Errorf("%08x became %08x, want %08x", math.Float32bits(v), math.Float32bits(got[i]), math.Float32bits(want))
		}
	}
}
