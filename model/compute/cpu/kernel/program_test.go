//go:build cgo

package kernel

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// truth computes an operation in double precision, masks being 1 and 0.
func truth(op Op, x, y, z float64) float64 {
	is := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	switch op {
	case Copy, ToFloat:
		return x
	case Neg:
		return -x
	case Abs:
		return math.Abs(x)
	case Sign:
		if x == 0 || x != x {
			return x
		}
		return math.Copysign(1, x)
	case Exp:
		return math.Exp(x)
	case Expm1:
		return math.Expm1(x)
	case Log:
		return math.Log(x)
	case Log1p:
		return math.Log1p(x)
	case Sqrt:
		return math.Sqrt(x)
	case Rsqrt:
		return 1 / math.Sqrt(x)
	case Tanh:
		return math.Tanh(x)
	case Logistic:
		if x < 0 {
			return math.Exp(x) / (1 + math.Exp(x))
		}
		return 1 / (1 + math.Exp(-x))
	case Erf:
		return math.Erf(x)
	case Sin:
		return math.Sin(x)
	case Cos:
		return math.Cos(x)
	case Floor:
		return math.Floor(x)
	case Ceil:
		return math.Ceil(x)
	case Round:
		return math.RoundToEven(x)
	case RoundBF16:
		if x != x || math.IsInf(x, 0) {
			return x
		}
		_, e := math.Frexp(x)
		unit := math.Ldexp(1, max(e-8, -133)) // distance between neighbors with 8 significant bits
		return float64(float32(math.RoundToEven(x/unit) * unit))
	case IsFinite:
		return is(x-x == 0)
	case Not:
		return 1 - x
	case ToMask:
		return is(x != 0)
	case Add:
		return x + y
	case Sub:
		return x - y
	case Mul:
		return x * y
	case Div:
		return x / y
	case Max:
		return max(x, y)
	case Min:
		return min(x, y)
	case Pow:
		return math.Pow(x, y)
	case Rem:
		return math.Mod(x, y)
	case And:
		return x * y
	case Or:
		return max(x, y)
	case Xor:
		return is(x != y)
	case Equal:
		return is(x == y)
	case NotEqual:
		return is(x != y)
	case Greater:
		return is(x > y)
	case GreaterEqual:
		return is(x >= y)
	case Less:
		return is(x < y)
	case LessEqual:
		return is(x <= y)
	case Select:
		if x != 0 {
			return y
		}
		return z
	case Clamp:
		return min(max(y, x), z)
	case FMA:
		return math.FMA(x, y, z)
	}
	panic(op)
}

// specials are floats that are difficult for functions.
var specials = []float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-45, -1e-45, 1e-40, -1e-40, 1.17549435e-38, 1e-20, -1e-20,
	3e-8, 1e-4, 0.1, 0.3465, 0.6249, 0.6251, 0.7071, 0.92, 0.93, 1 - 6e-8, 1 + 1.2e-7, 3.14159265, 8388607.5, 8388609, 1e10, 3.4e38, -3.4e38,
	88.7, 88.8, -87.3, -88, -103, -104, -105, 17, -17, -17.5, 30, -30, 100, -100, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}

// everywhere returns floats of every magnitude and sign, and the specials.
func everywhere() []float32 {
	out := slices.Clone(specials)
	for bits := uint32(0); bits < 0x7f800000; bits += 0x7f800000 / 60_000 {
		out = append(out, math.Float32frombits(bits), -math.Float32frombits(bits))
	}
	for i := -40_000; i <= 40_000; i++ { // the range of most values
		out = append(out, float32(i)*2.7e-3)
	}
	return out
}

// ulps returns the distance between a result and the exact value, in units of the spacing of floats at that value.
func ulps(got float32, want float64) float64 {
	if math.IsNaN(want) != (got != got) {
		return math.Inf(1)
	}
	if math.IsNaN(want) || float64(got) == want {
		return 0
	}
	if math.Abs(want) > math.MaxFloat32 && math.IsInf(float64(got), 0) {
		return 0
	}
	_, exp := math.Frexp(want)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(exp-24, -149))
}

// forEachInterpreter runs a test once with each instruction set of this machine, with interpreted programs, and once with machine code.
func forEachInterpreter(t *testing.T, test func(t *testing.T)) {
	machineCode = false
	defer func() { machineCode = true }()
	forEachSet(t, test)
	machineCode = true
	t.Run("machine code", test)
}

func TestFunctionsAreWithinAFewUlps(t *testing.T) {
	p := NewPool(1)
	defer p.Close()
	limits := map[Op]float64{Exp: 1.5, Expm1: 2.5, Log: 1.5, Log1p: 1.5, Sqrt: 0.5, Rsqrt: 1.5, Tanh: 2, Logistic: 2.5, Erf: 1.5,
		Copy: 0, Neg: 0, Abs: 0, Sign: 0, Floor: 0, Ceil: 0, Round: 0, IsFinite: 0, ToMask: 0, RoundBF16: 0}
	x := everywhere()
	forEachInterpreter(t, func(t *testing.T) {
		for op, limit := range limits {
			got := runUnary(t, p, op, x)
			worst, at := 0.0, float32(0)
			for i := range x {
				if u := ulps(got[i], truth(op, float64(x[i]), 0, 0)); u > worst {
					worst, at = u, x[i]
				}
			}
			if worst > limit {
				t.Errorf("operation %d is off by %.2f ulps at %g (%x), limit %v", op, worst, at, math.Float32bits(at), limit)
			}
			t.Logf("operation %d: %.2f ulps at %g", op, worst, at)
		}
	})
}

// runUnary computes one operation; a mask is returned as 1 and 0.
func runUnary(t testing.TB, p *Pool, op Op, x []float32) []float32 {
	t.Helper()
	spec := ProgramSpec{Dims: []int{len(x)}, Inputs: []Input{{}}, Code: []Instruction{{op, [3]Value{0}}}, Outputs: []Output{{Value: 1}}}
	if op.gives([]kind{float}) == mask {
		spec.Code = append(spec.Code, Instruction{ToFloat, [3]Value{1}})
		spec.Outputs[0].Value = 2
	}
	out := make([]float32, len(x))
	mustProgram(t, spec).Run(p, [][]byte{Bytes(x)}, [][]byte{Bytes(out)})
	return out
}

func mustProgram(t interface{ Fatal(...any) }, spec ProgramSpec) *Program {
	p, err := NewProgram(spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSinAndCos(t *testing.T) {
	p := NewPool(1)
	defer p.Close()
	var x []float32
	for i := -30_000; i < 30_000; i++ {
		x = append(x, float32(i)*0.17, float32(i)*1e-3)
	}
	x = append(x, specials...)
	forEachInterpreter(t, func(t *testing.T) {
		for _, op := range []Op{Sin, Cos} {
			got := runUnary(t, p, op, x)
			for i := range x {
				want := truth(op, float64(x[i]), 0, 0)
				if math.IsNaN(want) != (got[i] != got[i]) || math.Abs(float64(got[i])-want) > 1.2e-7 {
					t.Fatalf("operation %d of %v gave %v, want %v", op, x[i], got[i], want)
				}
				if math.Abs(float64(x[i])) < 0.7 && op == Sin && ulps(got[i], want) > 2 {
					t.Fatalf("the sine of %v is %v, want %v", x[i], got[i], want)
				}
			}
		}
	})
}

func TestBinaryAndTernaryOps(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	var x, y, z []float32
	for i, a := range specials {
		for _, b := range specials {
			x, y, z = append(x, a), append(y, b), append(z, specials[(i*7+len(x))%len(specials)])
		}
	}
	limits := map[Op]float64{Add: 0.5, Sub: 0.5, Mul: 0.5, Div: 0.5, Max: 0, Min: 0, Pow: 1, Rem: 0, Equal: 0, NotEqual: 0, Greater: 0,
		GreaterEqual: 0, Less: 0, LessEqual: 0, Clamp: 0}
	forEachInterpreter(t, func(t *testing.T) {
		for op, limit := range limits {
			spec := ProgramSpec{Dims: []int{len(x)}, Inputs: []Input{{}, {}, {}}, Code: []Instruction{{op, [3]Value{0, 1, 2}}}, Outputs: []Output{{Value: 3}}}
			if op.gives(nil) == mask {
				spec.Code = append(spec.Code, Instruction{ToFloat, [3]Value{3}})
				spec.Outputs[0].Value = 4
			}
			got := make([]float32, len(x))
			mustProgram(t, spec).Run(p, [][]byte{Bytes(x), Bytes(y), Bytes(z)}, [][]byte{Bytes(got)})
			for i := range x {
				if want := truth(op, float64(x[i]), float64(y[i]), float64(z[i])); ulps(got[i], want) > limit {
					t.Fatalf("operation %d of %v, %v, %v gave %v, want %v", op, x[i], y[i], z[i], got[i], want)
				}
			}
		}
	})
}

// array is memory of one type for a program, with its elements as numbers.
type array struct {
	memory []byte
	values []float64
}

func newArray(t Type, n int, seed uint64) array {
	a := array{values: make([]float64, n)}
	r := random(seed, n)
	switch t {
	case Float32:
		a.memory = Bytes(r)
	case Int32:
		for i := range r {
			r[i] = math.Float32frombits(uint32(int32(r[i] * 50)))
		}
		a.memory = Bytes(r)
	default:
		a.memory = make([]byte, n*t.size())
	}
	for i := range n {
		switch t {
		case BFloat16:
			bits := math.Float32bits(r[i])
			a.memory[2*i], a.memory[2*i+1] = byte(bits>>16), byte(bits>>24)
			a.values[i] = float64(math.Float32frombits(bits &^ 0xffff))
		case Float32:
			a.values[i] = float64(r[i])
		case Int32:
			a.values[i] = float64(int32(math.Float32bits(r[i])))
		case Uint8:
			a.memory[i] = byte(100 * (r[i] + 1))
			a.values[i] = float64(a.memory[i])
		case Bool:
			if r[i] > 0 {
				a.memory[i], a.values[i] = 1, 1
			}
		}
	}
	return a
}

// interpret computes a program element by element, each result rounded to float32.
func interpret(s ProgramSpec, in []array) (values [][]float64) {
	size := product64(s.Dims)
	values = make([][]float64, len(s.Inputs)+len(s.Code))
	for i := range values {
		values[i] = make([]float64, size)
	}
	dense := rowMajor(s.Dims...)
	for e := range size {
		for i, x := range s.Inputs {
			strides, at := x.Strides, 0
			if strides == nil {
				strides = dense
			}
			for a := range s.Dims {
				at += e / dense[a] % s.Dims[a] * strides[a]
			}
			values[i][e] = in[i].values[at]
		}
		for i, c := range s.Code {
			var args [3]float64
			for a, v := range c.Args[:c.Op.Operands()] {
				if v < 0 {
					args[a] = float64(s.Constants[-1-v])
				} else {
					args[a] = values[v][e]
				}
			}
			values[len(s.Inputs)+i][e] = float64(float32(truth(c.Op, args[0], args[1], args[2])))
		}
	}
	return values
}

// exactOps are the operations that round as the interpreter does.
var exactOps = []Op{Copy, Neg, Abs, Sign, Sqrt, Floor, Ceil, Round, IsFinite, Not, ToFloat, ToMask, RoundBF16, Add, Sub, Mul, Div, Max, Min, And, Or, Xor, Equal,
	NotEqual, Greater, GreaterEqual, Less, LessEqual, Select, Clamp}

func drawProgram(t *rapid.T) ProgramSpec { return drawProgramOf(t, exactOps, 5, 25) }

// drawProgramOf draws a program with up to the given numbers of inputs and instructions.
func drawProgramOf(t *rapid.T, ops []Op, inputs, instructions int) ProgramSpec {
	dims := rapid.SliceOfN(rapid.SampledFrom([]int{1, 2, 3, 5, 16, 33}), 0, 4).Draw(t, "dims")
	if product64(dims) > 20_000 {
		t.Skip("slow")
	}
	return drawProgramOver(t, dims, ops, inputs, instructions)
}

// drawProgramOver draws a program over the given shape.
func drawProgramOver(t *rapid.T, dims []int, ops []Op, inputs, instructions int) ProgramSpec {
	s := ProgramSpec{Dims: dims, Constants: []float32{2, -0.5}}
	kinds := []kind{}
	for i := range rapid.IntRange(1, inputs).Draw(t, "inputs") {
		in := Input{Type: Type(rapid.IntRange(0, int(BFloat16)).Draw(t, "type"))}
		if rapid.Bool().Draw(t, fmt.Sprint("strided ", i)) {
			in.Strides = drawStrides(t, s.Dims)
		}
		s.Inputs = append(s.Inputs, in)
		kinds = append(kinds, in.Type.kind())
	}
	for range rapid.IntRange(0, instructions).Draw(t, "instructions") {
		in := Instruction{Op: rapid.SampledFrom(ops).Draw(t, "op")}
		var operands []kind
		for a := range in.Op.Operands() {
			want := in.Op.takes(a)
			if in.Op == Select && a == 2 {
				want = operands[1]
			}
			v, ok := drawValue(t, kinds, want)
			if !ok {
				break
			}
			in.Args[a] = v
			operands = append(operands, kindOfDrawn(v, kinds))
		}
		if len(operands) == in.Op.Operands() {
			s.Code = append(s.Code, in)
			kinds = append(kinds, in.Op.gives(operands))
		}
	}
	for range rapid.IntRange(1, 3).Draw(t, "outputs") {
		v := Value(rapid.IntRange(0, len(kinds)-1).Draw(t, "output"))
		o := Output{Value: v}
		switch {
		case kinds[v] == mask:
			o.Type = Bool
		case rapid.Bool().Draw(t, "stored as bfloat16"):
			o.Type = BFloat16
		}
		s.Outputs = append(s.Outputs, o)
	}
	return s
}

func kindOfDrawn(v Value, kinds []kind) kind {
	if v < 0 {
		return float
	}
	return kinds[v]
}

func drawValue(t *rapid.T, kinds []kind, want kind) (Value, bool) {
	var fit []Value
	if want != mask {
		fit = append(fit, ConstantValue(0), ConstantValue(1))
	}
	for v, k := range kinds {
		if want == either || k == want {
			fit = append(fit, Value(v))
		}
	}
	if len(fit) == 0 {
		return 0, false
	}
	return rapid.SampledFrom(fit).Draw(t, "value"), true
}

// drawStrides draws a broadcast, a transposition or both.
func drawStrides(t *rapid.T, dims []int) []int {
	order := rapid.Permutation(axesOf(dims)).Draw(t, "order")
	strides, n := make([]int, len(dims)), 1
	for _, a := range order {
		if rapid.IntRange(0, 2).Draw(t, "broadcast") > 0 {
			strides[a] = n
			n *= dims[a]
		}
	}
	if rapid.Bool().Draw(t, "in order") {
		n = 1
		for a := len(dims) - 1; a >= 0; a-- {
			if strides[a] > 0 {
				strides[a] = n
				n *= dims[a]
			}
		}
	}
	return strides
}

func axesOf(dims []int) []int {
	out := make([]int, len(dims))
	for i := range out {
		out[i] = i
	}
	return out
}

func TestProgramsAgreeWithInterpreter(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	forEachInterpreter(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) { checkProgram(t, p, reducing(t, drawProgram(t))) })
	})
}

// TestRoundedOutputs checks every bit of values that are rounded when they are stored: denormals, NaN, infinity, ties and what lies beside them, among other
// values and in every position of a vector. A program whose result is also read otherwise rounds before.
func TestRoundedOutputs(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	special := []uint32{0, 0x80000000, 1, 0x7fffff, 0x807fffff, 0x8000, 0x8001, 0x7f7fffff, 0x7f7f7fff, 0x7f7f8000, 0x7f800000, 0xff800000, 0x7f800001, 0x7fc00000, 0xffffffff,
		0x3f808000, 0x3f808001, 0x3f807fff, 0x3f818000, 0x00800000, 0x807f8000, 0x007f8000, 0x00008000, 0x00018000}
	forEachInterpreter(t, func(t *testing.T) {
		for _, n := range []int{1, 7, 8, 31, 32, 33, 100, 5000} {
			for at := range min(n, 40) {
				x := random(uint64(n+at), n)
				for i, bits := range special {
					if at+5*i < n {
						x[at+5*i] = math.Float32frombits(bits)
					}
				}
				twice := ProgramSpec{Dims: []int{n}, Inputs: []Input{{}}, Constants: []float32{1}, Code: []Instruction{{Op: Mul, Args: [3]Value{0, ConstantValue(0)}}, {Op: RoundBF16, Args: [3]Value{1}}},
					Outputs: []Output{{Value: 2, Type: BFloat16}, {Value: 2, Type: BFloat16}}}
				read := twice
				read.Outputs = []Output{{Value: 2, Type: BFloat16}, {Value: 2}}
				once := ProgramSpec{Dims: []int{n}, Inputs: []Input{{}}, Code: []Instruction{{Op: RoundBF16, Args: [3]Value{0}}}, Outputs: []Output{{Value: 1, Type: BFloat16}}}
				for _, s := range []ProgramSpec{once, twice, read} {
					program, err := NewProgram(s)
					if err != nil {
						t.Fatal(err)
					}
					var out [][]byte
					for _, o := range s.Outputs {
						out = append(out, make([]byte, n*o.Type.size()))
					}
					program.Run(p, [][]byte{bytesOf(x)}, out)
					for i, v := range x {
						bits := math.Float32bits(v)
						want := (bits + 0x7fff + bits>>16&1) >> 16
						if v != v {
							want = (bits | 0x400000) >> 16
						}
						if got := uint32(out[0][2*i]) | uint32(out[0][2*i+1])<<8; got != want {
							t.Fatalf("element %d of %d, %#x, is stored as %#x, want %#x", i, n, bits, got, want)
						}
					}
				}
			}
		}
	})
}

func FuzzPrograms(f *testing.F) {
	p := NewPool(3)
	f.Cleanup(p.Close)
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { checkProgram(t, p, reducing(t, drawProgram(t))) }))
}

// reducing returns a program with reductions of its values, or half of the time the program itself.
func reducing(t *rapid.T, s ProgramSpec) ProgramSpec {
	if len(s.Dims) == 0 || !rapid.Bool().Draw(t, "reduce") {
		return s
	}
	s.ReduceAxes[0] = rapid.IntRange(0, len(s.Dims)).Draw(t, "from")
	s.ReduceAxes[1] = rapid.IntRange(s.ReduceAxes[0], len(s.Dims)).Draw(t, "to")
	if product64(s.Dims[s.ReduceAxes[1]:]) > MaxInner {
		s.ReduceAxes[1] = len(s.Dims)
	}
	for _, k := range []ReductionKind{Sum, Largest, Least} {
		if v, ok := drawValue(t, kindsOf(t, s), float); ok {
			s.Reductions = append(s.Reductions, Reduction{v, k})
		}
	}
	return s
}

func kindsOf(t *rapid.T, s ProgramSpec) []kind {
	kinds, err := s.kinds()
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

// widened returns bfloat16 values as floats.
func widened(halves []byte) []float32 {
	x := make([]float32, len(halves)/2)
	for i := range x {
		x[i] = math.Float32frombits(uint32(halves[2*i])<<16 | uint32(halves[2*i+1])<<24)
	}
	return x
}

func checkProgram(t *rapid.T, p *Pool, s ProgramSpec) {
	program := mustProgram(t, s)
	var in []array
	var memory, out [][]byte
	for i, x := range s.Inputs {
		in = append(in, newArray(x.Type, x.reach(s.Dims), uint64(i)))
		memory = append(memory, in[i].memory)
	}
	size := product64(s.Dims)
	for _, o := range s.Outputs {
		out = append(out, make([]byte, size*o.Type.size()))
	}
	reduced := size / max(1, product64(s.Dims[s.ReduceAxes[0]:s.ReduceAxes[1]]))
	for range s.Reductions {
		out = append(out, make([]byte, 4*reduced))
	}
	program.Run(p, memory, out)
	values := interpret(s, in)
	for i, o := range s.Outputs {
		for e := range size {
			got, want := 0.0, values[o.Value][e]
			switch o.Type {
			case Bool:
				got = float64(out[i][e])
			case BFloat16:
				got = float64(widened(out[i])[e])
				want = float64(math.Float32frombits(math.Float32bits(float32(want)) &^ 0xffff))
			default:
				got = float64(Floats(out[i])[e])
			}
			if got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Fatalf("output %d, element %d: %v, want %v\n%+v", i, e, got, want, s)
			}
		}
	}
	for i, r := range s.Reductions {
		checkReduction(t, s, r, Floats(out[len(s.Outputs)+i]), values)
	}
}

func checkReduction(t *rapid.T, s ProgramSpec, r Reduction, got []float32, values [][]float64) {
	rows, inner := product64(s.Dims[s.ReduceAxes[0]:s.ReduceAxes[1]]), product64(s.Dims[s.ReduceAxes[1]:])
	for i := range got {
		want, scale := float64(r.Kind.neutral()), 0.0
		for k := range rows {
			x := 0.0
			if r.Value < 0 {
				x = float64(s.Constants[-1-r.Value])
			} else {
				x = values[r.Value][(i/inner*rows+k)*inner+i%inner]
			}
			want, scale = r.Kind.join(want, x), scale+math.Abs(x)
		}
		if !close32(got[i], want, scale) && !(math.Abs(want) > math.MaxFloat32) && !math.IsInf(scale, 0) {
			t.Fatalf("reduction %d, result %d: %v, want %v\n%+v", r.Kind, i, got[i], want, s)
		}
	}
}

// adamW returns a program like an optimizer's step: 12 arrays, six of them in place, in one pass.
func adamW(n int) ProgramSpec {
	const (
		parameter, gradient, first, second, rate, correction1, correction2 = 0, 1, 2, 3, 4, 5, 6
	)
	s := ProgramSpec{Dims: []int{n}, Constants: []float32{0.9, 0.1, 0.999, 0.001, 1e-8, 0.01}}
	for i := range 7 {
		in := Input{}
		if i >= rate {
			in.Strides = []int{0}
		}
		s.Inputs = append(s.Inputs, in)
	}
	emit := func(op Op, args ...Value) Value {
		in := Instruction{Op: op}
		copy(in.Args[:], args)
		s.Code = append(s.Code, in)
		return Value(len(s.Inputs) + len(s.Code) - 1)
	}
	constant := ConstantValue
	m := emit(Add, emit(Mul, constant(0), first), emit(Mul, constant(1), gradient))
	v := emit(Add, emit(Mul, constant(2), second), emit(Mul, constant(3), emit(Mul, gradient, gradient)))
	step := emit(Div, emit(Mul, m, correction1), emit(Add, emit(Sqrt, emit(Mul, v, correction2)), constant(4)))
	w := emit(Sub, parameter, emit(Mul, rate, emit(Add, step, emit(Mul, constant(5), parameter))))
	s.Outputs = []Output{{Value: w}, {Value: m}, {Value: v}}
	return s
}

func TestOptimizerStepInPlace(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	const n = 10_001
	program := mustProgram(t, adamW(n))
	for _, pair := range [][2]int{{0, 0}, {1, 2}, {2, 3}} {
		if !program.InPlace(pair[0], pair[1]) {
			t.Errorf("output %d cannot take the memory of input %d", pair[0], pair[1])
		}
	}
	if program.InPlace(1, 0) {
		t.Error("the first moment would overwrite the parameter before it is read")
	}
	w, g, m, v := random(1, n), random(2, n), random(3, n), random(4, n)
	for i := range v {
		v[i] = v[i] * v[i]
	}
	want := slices.Clone(w)
	for i := range want {
		mi := 0.9*float64(m[i]) + 0.1*float64(g[i])
		vi := 0.999*float64(v[i]) + 0.001*float64(g[i])*float64(g[i])
		want[i] = float32(float64(w[i]) - 0.1*(mi*2/(math.Sqrt(vi*3)+1e-8)+0.01*float64(w[i])))
	}
	in := [][]byte{Bytes(w), Bytes(g), Bytes(m), Bytes(v), Bytes([]float32{0.1}), Bytes([]float32{2}), Bytes([]float32{3})}
	program.Run(p, in, [][]byte{in[0], in[2], in[3]})
	for i := range want {
		if math.Abs(float64(w[i]-want[i])) > 1e-6*math.Max(1, math.Abs(float64(want[i]))) {
			t.Fatalf("parameter %d is %v, want %v", i, w[i], want[i])
		}
	}
}

func TestConstantsAndScalarsKeepTheirSign(t *testing.T) {
	p := NewPool(1)
	defer p.Close()
	negative := float32(math.Copysign(0, -1))
	forEachInterpreter(t, func(t *testing.T) {
		program := mustProgram(t, ProgramSpec{Dims: []int{19}, Constants: []float32{negative}, Inputs: []Input{{Strides: []int{0}}},
			Code: []Instruction{{Copy, [3]Value{0}}, {Add, [3]Value{0, ConstantValue(0)}}}, Outputs: []Output{{Value: 1}, {Value: 2}, {Value: ConstantValue(0)}}})
		var out [3][]float32
		for i := range out {
			out[i] = make([]float32, 19)
		}
		program.Run(p, [][]byte{Bytes([]float32{negative})}, [][]byte{Bytes(out[0]), Bytes(out[1]), Bytes(out[2])})
		for i := range out {
			for e, v := range out[i] {
				if v != 0 || !math.Signbit(float64(v)) {
					t.Fatalf("output %d, element %d is %v, want -0", i, e, v)
				}
			}
		}
	})
}

func TestNewProgramRefuses(t *testing.T) {
	base := func() ProgramSpec {
		return ProgramSpec{Dims: []int{4, 5}, Inputs: []Input{{}, {Type: Bool}}, Code: []Instruction{{Add, [3]Value{0, 0}}}, Outputs: []Output{{Value: 2}}}
	}
	for _, c := range []struct {
		change func(*ProgramSpec)
		want   string
	}{
		{func(s *ProgramSpec) { s.Code[0].Args[1] = 2 }, "instruction 0, operand 1: value 2 is not defined"},
		{func(s *ProgramSpec) { s.Code[0].Args[1] = 1 }, "a mask instead of a float"},
		{func(s *ProgramSpec) { s.Code[0].Op = 99 }, "unknown operation 99"},
		{func(s *ProgramSpec) { s.Code[0].Args[0] = ConstantValue(0) }, "value -1 is not defined"},
		{func(s *ProgramSpec) { s.Outputs[0].Type = Bool }, "output 0: its type and its value"},
		{func(s *ProgramSpec) { s.Outputs[0].Value = 7 }, "output 0: value 7"},
		{func(s *ProgramSpec) { s.Inputs[0].Strides = []int{1} }, "input 0 has 1 strides for 2 axes"},
		{func(s *ProgramSpec) { s.Inputs[0].Type = 9 }, "unknown type 9"},
		{func(s *ProgramSpec) { s.Dims[0] = -1 }, "over the invalid shape"},
		{func(s *ProgramSpec) { s.Reductions = []Reduction{{1, Sum}} }, "reduction 0 is not"},
		{func(s *ProgramSpec) { s.Reductions, s.ReduceAxes = []Reduction{{0, Sum}}, [2]int{1, 3} }, "over axes 1 to 3 of 2"},
		{func(s *ProgramSpec) {
			s.Dims[1], s.Reductions, s.ReduceAxes = 9000, []Reduction{{0, Sum}}, [2]int{0, 1}
		}, "9000 elements after"},
		{func(s *ProgramSpec) { s.Code = append(s.Code, Instruction{Select, [3]Value{1, 0, 1}}) }, "selects between a mask and a float"},
	} {
		s := base()
		c.change(&s)
		if _, err := NewProgram(s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want a mention of %q", err, c.want)
		}
	}
}

func TestProgramAllocatesNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector drops kept memory on purpose")
	}
	p := NewPool(2)
	defer p.Close()
	const n = 100_000
	program := mustProgram(t, adamW(n))
	one := Bytes([]float32{1})
	in := [][]byte{Bytes(random(1, n)), Bytes(random(2, n)), Bytes(random(3, n)), Bytes(random(4, n)), one, one, one}
	out := [][]byte{in[0], in[2], in[3]}
	if n := testing.AllocsPerRun(50, func() { program.Run(p, in, out) }); n > 0 {
		t.Errorf("%v allocations per run", n)
	}
}

func TestReduce(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	forEachInterpreter(t, func(t *testing.T) {
		for _, s := range [][3]int{{1, 1, 1}, {1, 1_000_003, 1}, {7, 0, 3}, {0, 3, 3}, {3, 3, 0}, {5, 9, 1}, {1, 700, 3000}, {1, 40_000, 64}, {2, 4096, 33}, {300, 17, 5}, {2, 3, 5000}} {
			for _, k := range []ReductionKind{Sum, Largest, Least} {
				checkReduce(t, p, k, s[0], s[1], s[2])
			}
		}
	})
}

func checkReduce(t *testing.T, p *Pool, kind ReductionKind, outer, r, inner int) {
	t.Helper()
	x, y := random(1, outer*r*inner), make([]float32, outer*inner)
	if len(x) > 3 {
		x[2] = float32(math.NaN())
	}
	p.Reduce(kind, outer, r, inner, x, y)
	for o := range outer {
		for j := range inner {
			want, scale := float64(kind.neutral()), 0.0
			for i := range r {
				v := float64(x[(o*r+i)*inner+j])
				want, scale = kind.join(want, v), scale+math.Abs(v)
			}
			if !close32(y[o*inner+j], want, math.Max(math.Abs(want), scale/10)) {
				t.Fatalf("reduction %d of %v: result [%d, %d] is %v, want %v", kind, [3]int{outer, r, inner}, o, j, y[o*inner+j], want)
			}
		}
	}
}

// TestSumIsAccurate checks that a sum of many numbers with the same sign is accurate to float32's rounding.
func TestSumIsAccurate(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	const n = 1 << 22
	x, want := make([]float32, n), 0.0
	for i := range x {
		x[i] = 0.1 + float32(i%7)*0.01
		want += float64(x[i])
	}
	for _, inner := range []int{1, 64} {
		y, total := make([]float32, inner), 0.0
		p.Reduce(Sum, 1, n/inner, inner, x, y)
		for _, v := range y {
			total += float64(v)
		}
		if math.Abs(total-want)/want > 2e-7 {
			t.Errorf("inner %d: %v, want %v", inner, total, want)
		}
	}
}

func BenchmarkProgram(b *testing.B) {
	p := benchPool()
	const n = 1 << 20
	run := func(name string, s ProgramSpec, bytes float64) {
		program := mustProgram(b, s)
		var in, out [][]byte
		for i, x := range s.Inputs {
			in = append(in, newArray(x.Type, x.reach(s.Dims), uint64(i)).memory)
		}
		for range s.Outputs {
			out = append(out, make([]byte, 4*program.Size()))
		}
		for range s.Reductions {
			out = append(out, make([]byte, 4*program.outer*int(program.c.inner)))
		}
		b.Run(name, func(b *testing.B) { rate(b, "GB", bytes, func() { program.Run(p, in, out) }) })
	}
	run("add", ProgramSpec{Dims: []int{n}, Inputs: []Input{{}, {}}, Code: []Instruction{{Add, [3]Value{0, 1}}}, Outputs: []Output{{Value: 2}}}, 12*n)
	run("exp", ProgramSpec{Dims: []int{n}, Inputs: []Input{{}}, Code: []Instruction{{Exp, [3]Value{0}}}, Outputs: []Output{{Value: 1}}}, 8*n)
	run("tanh", ProgramSpec{Dims: []int{n}, Inputs: []Input{{}}, Code: []Instruction{{Tanh, [3]Value{0}}}, Outputs: []Output{{Value: 1}}}, 8*n)
	run("adamw", adamW(n), 28*n)
	bias := Input{Strides: []int{0, 0, 0, 1}}
	perImage := Input{Strides: []int{64, 0, 0, 1}}
	run("bias", ProgramSpec{Dims: []int{16, 32, 32, 64}, Inputs: []Input{{}, bias}, Code: []Instruction{{Add, [3]Value{0, 1}}}, Outputs: []Output{{Value: 2}}}, 8*n)
	run("adain", ProgramSpec{Dims: []int{16, 32, 32, 64}, Inputs: []Input{{}, perImage, perImage, perImage, perImage},
		Code: []Instruction{{Sub, [3]Value{0, 1}}, {Mul, [3]Value{5, 2}}, {Mul, [3]Value{6, 3}}, {Add, [3]Value{7, 4}}}, Outputs: []Output{{Value: 8}}}, 8*n)
	run("moments", ProgramSpec{Dims: []int{16, 1024, 64}, Inputs: []Input{{}}, Code: []Instruction{{Mul, [3]Value{0, 0}}},
		Reductions: []Reduction{{0, Sum}, {1, Sum}}, ReduceAxes: [2]int{1, 2}}, 4*n)
	run("squares", ProgramSpec{Dims: []int{n}, Inputs: []Input{{}}, Code: []Instruction{{Mul, [3]Value{0, 0}}},
		Reductions: []Reduction{{1, Sum}}, ReduceAxes: [2]int{0, 1}}, 4*n)
	for _, inner := range []int{8, 64, 256} {
		perChannel := Input{Strides: []int{inner, 0, 1}}
		run(fmt.Sprint("gradient of a norm ", inner), ProgramSpec{Dims: []int{16, n / 16 / inner, inner}, Inputs: []Input{{}, {}, perChannel, perChannel, perChannel}, Constants: []float32{0.2},
			Code: []Instruction{{Mul, [3]Value{0, ConstantValue(0)}}, {Max, [3]Value{0, 5}}, {Sub, [3]Value{6, 2}}, {Mul, [3]Value{7, 3}},
				{Mul, [3]Value{1, 8}}, {Mul, [3]Value{1, 4}}, {Mul, [3]Value{10, 8}}, {Mul, [3]Value{10, 3}}},
			Reductions: []Reduction{{1, Sum}, {9, Sum}, {11, Sum}, {12, Sum}}, ReduceAxes: [2]int{1, 2}}, 8*n)
	}
}

func BenchmarkReduce(b *testing.B) {
	p := benchPool()
	const n = 1 << 20
	for _, s := range [][3]int{{1, n, 1}, {1024, 1024, 1}, {1, 1024, 1024}, {1, n / 64, 64}, {16, 1024, 64}, {n / 9, 9, 1}} {
		x, y := random(1, n), make([]float32, s[0]*s[2])
		b.Run(fmt.Sprint(s), func(b *testing.B) { rate(b, "GB", 4*n, func() { p.Reduce(Sum, s[0], s[1], s[2], x, y) }) })
	}
}

func (k ReductionKind) join(x, y float64) float64 {
	switch k {
	case Largest:
		return max(x, y)
	case Least:
		return min(x, y)
	}
	return x + y
}

// TestEqualResultsOfABlock sums the same 18 rows for several results, which blocks would otherwise cut into different parts.
func TestEqualResultsOfABlock(t *testing.T) {
	defer func(before bool) { machineCode = before }(machineCode)
	p := NewPool(1)
	defer p.Close()
	const results, rows, inner = 9, 18, 16
	x := slices.Repeat(random(7, rows*inner), results)
	for _, machineCode = range []bool{false, true} {
		program := mustProgram(t, ProgramSpec{Dims: []int{results, rows, inner}, Inputs: []Input{{}}, Reductions: []Reduction{{0, Sum}}, ReduceAxes: [2]int{1, 2}})
		sums := make([]float32, results*inner)
		program.Run(p, [][]byte{Bytes(x)}, [][]byte{Bytes(sums)})
		for i := inner; i < len(sums); i++ {
			if sums[i] != sums[i%inner] {
				t.Fatalf("machine code %t: result %d, column %d: %v, but %v in the first result, of the same values", machineCode, i/inner, i%inner, sums[i], sums[i%inner])
			}
		}
	}
}
