//go:build cgo

package cpu

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// spy wraps the engine and keeps the executable that its last builder compiled.
type spy struct {
	*Backend
	exec *Executable
}

type spyBuilder struct {
	*Builder
	spy *spy
}

func (s *spy) Builder(name string) backends.Builder {
	return spyBuilder{s.Backend.Builder(name).(*Builder), s}
}

func (b spyBuilder) Compile(outs []backends.Op, shardings []*backends.ShardingSpec) (backends.Executable, error) {
	e, err := b.Builder.Compile(outs, shardings)
	if err == nil {
		b.spy.exec = e.(*Executable)
	}
	return e, err
}

// failer is a test or a check of a property.
type failer interface {
	Name() string
	Helper()
	Fatal(args ...any)
}

// build compiles a graph of parameters and returns the executable.
func build(t failer, b backends.Backend, params []shapes.Shape, fn func(in []*Node) []*Node) *Executable {
	t.Helper()
	s := &spy{Backend: b.(*Backend)}
	g := NewGraph(s, t.Name())
	var in []*Node
	for i, p := range params {
		in = append(in, Parameter(g, fmt.Sprintf("p%d", i), p))
	}
	g.Compile(fn(in)...)
	return s.exec
}

// work lists what each step of an executable computes.
func work(e *Executable) (all []string) {
	for _, s := range e.steps {
		var names []string
		for _, n := range s.nodes {
			names = append(names, n.op.String())
		}
		all = append(all, strings.Join(names, "+"))
	}
	return all
}

func f32(dims ...int) shapes.Shape { return shapes.Make(dtypes.Float32, dims...) }

func TestPlans(t *testing.T) {
	for _, c := range []struct {
		name   string
		params []shapes.Shape
		fn     func(in []*Node) []*Node
		want   []string
	}{
		{"dead nodes are dropped", []shapes.Shape{f32(8)}, func(in []*Node) []*Node {
			Exp(in[0])
			return []*Node{Neg(in[0])}
		}, []string{"Neg"}},
		{"constants are folded", []shapes.Shape{f32(8)}, func(in []*Node) []*Node {
			c := Sqrt(Const(in[0].Graph(), float32(16)))
			return []*Node{Mul(in[0], AddScalar(c, 1))}
		}, []string{"Mul"}},
		{"a chain is one step", []shapes.Shape{f32(8, 3)}, func(in []*Node) []*Node {
			return []*Node{Tanh(AddScalar(MulScalar(in[0], 2), 1))}
		}, []string{"Mul+Add+Tanh"}},
		{"broadcasts are read through", []shapes.Shape{f32(8, 3), f32(3)}, func(in []*Node) []*Node {
			return []*Node{Exp(Add(in[0], BroadcastToShape(ExpandAxes(in[1], 0), in[0].Shape())))}
		}, []string{"Add+Exp"}},
		{"a reduction ends a chain", []shapes.Shape{f32(8, 3)}, func(in []*Node) []*Node {
			return []*Node{ReduceSum(Square(in[0]), 0)}
		}, []string{"Mul+ReduceSum"}},
		{"users of a reduction run after it", []shapes.Shape{f32(8, 3)}, func(in []*Node) []*Node {
			x := Exp(in[0])
			return []*Node{Div(x, ReduceAndKeep(x, ReduceSum, 1))}
		}, []string{"Exp+ReduceSum", "Div"}},
		{"two users of one value share a pass", []shapes.Shape{f32(8, 3)}, func(in []*Node) []*Node {
			return []*Node{ReduceAllSum(in[0]), ReduceAllSum(Square(in[0])), Exp(in[0])}
		}, []string{"ReduceSum+Mul+ReduceSum+Exp"}},
		{"no group spans another step", []shapes.Shape{f32(4, 4)}, func(in []*Node) []*Node {
			x := Exp(in[0])
			return []*Node{Add(x, Dot(x, x))}
		}, []string{"Exp", "DotGeneral", "Add"}},
		{"reshapes need no step", []shapes.Shape{f32(4, 4)}, func(in []*Node) []*Node {
			return []*Node{Dot(Reshape(Exp(in[0]), 2, 8), Reshape(in[0], 8, 2))}
		}, []string{"Exp", "DotGeneral"}},
		{"transposes are read through", []shapes.Shape{f32(4, 5), f32(4, 6)}, func(in []*Node) []*Node {
			return []*Node{Dot(Transpose(in[0], 0, 1), in[1])}
		}, []string{"DotGeneral"}},
		{"reversed kernels are read through", []shapes.Shape{f32(1, 8, 8, 2), f32(3, 3, 2, 4)}, func(in []*Node) []*Node {
			return []*Node{Convolve(in[0], Reverse(in[1], 0, 1)).Done()}
		}, []string{"ConvGeneral"}},
		{"duplicates are computed once", []shapes.Shape{f32(4, 4)}, func(in []*Node) []*Node {
			return []*Node{Dot(in[0], Dot(in[0], in[0])), Exp(Dot(in[0], in[0]))}
		}, []string{"DotGeneral", "DotGeneral", "Exp"}},
		{"gradients of a product are products", []shapes.Shape{f32(4, 5), f32(5, 6)}, func(in []*Node) []*Node {
			return Gradient(ReduceAllSum(Square(Dot(in[0], in[1]))), in...)
		}, []string{"DotGeneral", "Mul+Add", "DotGeneral", "DotGeneral"}},
		{"cheap values are recomputed", []shapes.Shape{f32(64, 8)}, func(in []*Node) []*Node {
			x := MulScalar(in[0], 2)
			return []*Node{Sub(x, ReduceAndKeep(x, ReduceSum, 0))}
		}, []string{"Mul+ReduceSum", "Mul+Sub"}},
		{"chains of cheap values, once per group", []shapes.Shape{f32(64, 8), f32(64, 8)}, func(in []*Node) []*Node {
			x := MulScalar(in[0], 2)
			y := Max(x, AddScalar(x, 1))
			sum := ReduceAndKeep(Mul(x, Mul(y, in[1])), ReduceSum, 0)
			return []*Node{Add(Mul(x, in[1]), Mul(y, sum))}
		}, []string{"Mul+Add+Max+Mul+Mul+ReduceSum+Mul", "Mul+Add+Max+Mul+Add"}},
		{"values that a product needs in memory are stored", []shapes.Shape{f32(64, 64)}, func(in []*Node) []*Node {
			x := MulScalar(in[0], 2)
			return []*Node{Dot(x, x), Sub(x, ReduceAndKeep(x, ReduceSum, 0))}
		}, []string{"Mul+ReduceSum", "DotGeneral", "Sub"}},
		{"subtraction of zero is dropped", []shapes.Shape{f32(8)}, func(in []*Node) []*Node {
			zero := ScalarZero(in[0].Graph(), dtypes.Float32)
			return []*Node{Sub(Exp(in[0]), Where(Const(in[0].Graph(), false), ReduceAllSum(in[0]), zero))}
		}, []string{"Exp"}},
		{"types that the kernels do not support stay separate", []shapes.Shape{f32(8)}, func(in []*Node) []*Node {
			x := ConvertDType(Exp(in[0]), dtypes.Float64)
			return []*Node{ConvertDType(Neg(x), dtypes.Float32)}
		}, []string{"Exp", "ConvertDType+Neg+ConvertDType"}},
		{"an output under another shape", []shapes.Shape{f32(8)}, func(in []*Node) []*Node {
			x := Exp(in[0])
			return []*Node{x, Reshape(x, 2, 4), in[0]}
		}, []string{"Exp"}},
	} {
		if got := work(build(t, engine(t), c.params, c.fn)); !slices.Equal(got, c.want) {
			t.Errorf("%s: steps %v, want %v", c.name, got, c.want)
		}
	}
}

// TestMemoryIsReused checks that values not needed at the same time share memory; a chain of products needs room for two.
func TestMemoryIsReused(t *testing.T) {
	e := build(t, engine(t), []shapes.Shape{f32(64, 64)}, func(in []*Node) []*Node {
		x := in[0]
		for range 10 {
			x = Dot(x, in[0])
		}
		return []*Node{x}
	})
	if want := 2 * 64 * 64 * 4; e.layout.arena > want {
		t.Errorf("arena of %d bytes, want %d", e.layout.arena, want)
	}
	e = build(t, engine(t), []shapes.Shape{f32(64, 64)}, func(in []*Node) []*Node {
		x := Dot(in[0], in[0])
		return []*Node{Dot(Exp(x), in[0])}
	})
	if want := 64 * 64 * 4; e.layout.arena > want {
		t.Errorf("arena of %d bytes, want %d in place", e.layout.arena, want)
	}
}

func TestDonatedMemoryBecomesTheOutput(t *testing.T) {
	b := engine(t)
	e := build(t, b, []shapes.Shape{f32(100), f32(100)}, func(in []*Node) []*Node {
		return []*Node{Sub(in[0], MulScalar(in[1], 0.5))}
	})
	x, _ := b.BufferFromFlatData(0, ramp(100), f32(100))
	g, _ := b.BufferFromFlatData(0, ramp(100), f32(100))
	at := &x.(*Buffer).mem[0]
	out, err := e.Execute([]backends.Buffer{x, g}, []bool{true, false}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if &out[0].(*Buffer).mem[0] != at {
		t.Error("the donated memory was not reused")
	}
	flat, _ := b.BufferData(out[0])
	for i, v := range ramp(100) {
		if flat.([]float32)[i] != v-v*0.5 {
			t.Fatalf("element %d is %g", i, flat.([]float32)[i])
		}
	}
	if _, err := b.BufferData(x); err == nil || !strings.Contains(err.Error(), "donated") {
		t.Errorf("reading a donated buffer: %v", err)
	}
	if _, err := e.Execute([]backends.Buffer{x, g}, nil, 0); err == nil || !strings.Contains(err.Error(), "input 0 (p0)") {
		t.Errorf("using a donated buffer: %v", err)
	}
	if _, err := e.Execute([]backends.Buffer{g, g}, []bool{true, true}, 0); err != nil {
		t.Errorf("one buffer for two inputs: %v", err)
	}
}

// TestDonatedMemoryThatIsStillRead checks that a donated input that is still needed when an output is written is not overwritten.
func TestDonatedMemoryThatIsStillRead(t *testing.T) {
	b := engine(t)
	e := build(t, b, []shapes.Shape{f32(32, 32)}, func(in []*Node) []*Node {
		y := Dot(in[0], in[0])
		return []*Node{y, Dot(y, in[0]), Add(Exp(y), in[0]), in[0]}
	})
	x := tensorOf(ramp(32*32), 32, 32)
	want, err := e.Execute([]backends.Buffer{upload(t, b, x)}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := e.Execute([]backends.Buffer{upload(t, b, x)}, []bool{true}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		w, _ := b.BufferData(want[i])
		g, _ := b.BufferData(got[i])
		if !slices.Equal(w.([]float32), g.([]float32)) {
			t.Errorf("output %d differs when the input is donated", i)
		}
	}
}

type flat struct {
	values []float32
	shape  shapes.Shape
}

func tensorOf(values []float32, dims ...int) flat { return flat{values, f32(dims...)} }

func upload(t failer, b backends.Backend, x flat) backends.Buffer {
	t.Helper()
	buf, err := b.BufferFromFlatData(0, x.values, x.shape)
	if err != nil {
		t.Fatal(err)
	}
	return buf
}

// randomGraph grows a graph of element-wise operations, broadcasts, reductions, reshapes and products. It draws the same
// numbers for the same seed on every backend.
func randomGraph(seed uint64, in []*Node) []*Node {
	rng := rand.New(rand.NewPCG(seed, 99))
	pool := slices.Clone(in)
	any := func() *Node { return pool[rng.IntN(len(pool))] }
	like := func(x *Node) *Node { // another value of the shape of x, broadcast if necessary
		for range 20 {
			y := any()
			if slices.Equal(y.Shape().Dimensions, x.Shape().Dimensions) {
				return y
			}
			if y.Rank() == x.Rank() && y.Rank() > 0 && fits(y.Shape().Dimensions, x.Shape().Dimensions) {
				if rng.IntN(2) == 0 {
					return y
				}
				return BroadcastToShape(y, x.Shape())
			}
		}
		return MulScalar(x, 0.5)
	}
	for range 30 {
		x := any()
		switch rng.IntN(13) {
		case 0:
			x = Tanh(x)
		case 1:
			x = Add(x, like(x))
		case 2:
			x = Mul(x, like(x))
		case 3:
			x = Where(GreaterThan(x, like(x)), x, MulScalar(x, 0.2))
		case 4:
			x = Sub(like(x), x)
		case 5:
			x = Max(x, like(x))
		case 6:
			if x.Rank() > 0 {
				x = ReduceAndKeep(x, ReduceMean, rng.IntN(x.Rank()))
			}
		case 7:
			if x.Rank() > 1 {
				x = ReduceAndKeep(x, ReduceMax, 0, 1)
			}
		case 8:
			x = Sigmoid(AddScalar(x, 0.1))
		case 9:
			x = Reshape(Abs(Reshape(x, x.Shape().Size())), x.Shape().Dimensions...)
		case 10:
			if x.Rank() == 3 {
				x = MulScalar(Einsum("bij,bkj->bik", x, x), 0.1)
			}
		case 11:
			x = ConvertDType(ConvertDType(LessThan(x, like(x)), dtypes.Int32), dtypes.Float32)
		case 12: // a sum of products that is a matrix product, whose broadcasts are read again
			if x.Rank() == 3 && x.Shape().Size() <= 2000 {
				m := Reshape(x, -1, x.Shape().Dim(2))
				dims := []int{m.Shape().Dim(0), m.Shape().Dim(0), m.Shape().Dim(1)}
				rows, cols := InsertAxes(m, 1), InsertAxes(m, 0)
				y := ReduceSum(Mul(BroadcastToDims(rows, dims...), BroadcastToDims(cols, dims...)), 2)
				x = Tanh(Sub(BroadcastToDims(rows, dims...), BroadcastToDims(cols, dims...)))
				x = Add(ReduceMax(x, 2), Tanh(y))
			}
		}
		if x.Shape().Size() <= 20000 {
			pool = append(pool, x)
		}
	}
	return append(slices.Clone(pool[len(in):]), ReduceAllSum(pool[len(pool)-1]))
}

// fits reports whether dims broadcast to the larger dims.
func fits(dims, to []int) bool {
	for a, d := range dims {
		if d != 1 && d != to[a] {
			return false
		}
	}
	return true
}

// TestRandomGraphsAgainstGo checks that fusion, sharing and reuse do not change values, by comparison with GoMLX's Go backend. Only a few
// outputs are kept, so that there is something to fuse.
func TestRandomGraphsAgainstGo(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		dims := []int{1 + rng.IntN(4), 1 + rng.IntN(9), 1 + rng.IntN(70)}
		keep := rng.IntN(4)
		inputs := []any{random(rng, f32(dims...)), random(rng, f32(1, dims[1], dims[2])), random(rng, f32(dims[0], 1, 1)), random(rng, f32(1, 1, dims[2]))}
		agree(t, fmt.Sprintf("seed %d", seed), 2e-3, func(in []*Node) []*Node {
			all := randomGraph(seed, in)
			var outs []*Node
			for i, n := range all {
				if i%(keep*3+1) == 0 || i == len(all)-1 {
					outs = append(outs, Identity(n))
				}
			}
			return outs
		}, inputs...)
	}
}

// TestConcurrentExecutionsGiveTheSameBits checks concurrent executions of one computation for bit-identical results.
func TestConcurrentExecutionsGiveTheSameBits(t *testing.T) {
	b := engine(t)
	exec := MustNewExec(b, func(x, k *Node) []*Node {
		y := Tanh(Convolve(x, k).Strides(2).PadSame().Done())
		loss := ReduceAllMean(Square(Sub(y, ReduceAndKeep(y, ReduceMean, 1, 2))))
		return append([]*Node{loss}, Gradient(loss, x, k)...)
	})
	rng := rand.New(rand.NewPCG(21, 22))
	x, k := random(rng, f32(2, 13, 13, 3)), random(rng, f32(3, 3, 3, 8))
	want := exec.MustExec(copies([]any{x, k})...)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				got, err := exec.Exec(copies([]any{x, k})...)
				if err != nil {
					t.Error(err)
					return
				}
				for i := range want {
					if err := near(got[i], want[i], 0); err != nil {
						t.Errorf("result %d: %v", i, err)
					}
					got[i].MustFinalizeAll()
				}
			}
		})
	}
	wg.Wait()
}

// TestEnginesAtOnceNeverHang lets two engines with different workers compile, execute and finalize concurrently: every call returns a result or an error.
func TestEnginesAtOnceNeverHang(t *testing.T) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var callers sync.WaitGroup
		deadline := time.Now().Add(500 * time.Millisecond)
		for i := range 6 {
			callers.Go(func() {
				for time.Now().Before(deadline) {
					lifeOfAnEngine(t, []string{"2", "3"}[i%2])
				}
			})
		}
		callers.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(60 * time.Second):
		stacks := make([]byte, 1<<20)
		t.Fatalf("still running:\n%s", stacks[:runtime.Stack(stacks, true)])
	}
}

// lifeOfAnEngine executes one computation from three goroutines while the computation and its engine are finalized.
func lifeOfAnEngine(t *testing.T, threads string) {
	b, err := New(threads)
	if err != nil {
		t.Error(err)
		return
	}
	e := build(t, b, []shapes.Shape{f32(64, 48), f32(48, 32)}, func(in []*Node) []*Node {
		return []*Node{ReduceSum(Tanh(Dot(in[0], in[1])), 1)}
	})
	x, y := upload(t, b, tensorOf(ramp(64*48), 64, 48)), upload(t, b, tensorOf(ramp(48*32), 48, 32))
	var callers sync.WaitGroup
	for range 3 {
		callers.Go(func() {
			for {
				out, err := e.Execute([]backends.Buffer{x, y}, nil, 0)
				if err != nil {
					if !strings.Contains(err.Error(), "after Finalize") {
						t.Error(err)
					}
					return
				}
				b.BufferFinalize(out[0]) // an error if the engine was finalized in the meantime
			}
		})
	}
	time.Sleep(2 * time.Millisecond)
	if threads == "2" {
		e.Finalize()
	} else {
		b.Finalize()
	}
	callers.Wait()
	b.Finalize()
}

// TestFailingStepIsAnError checks that a failing step returns an error with its operation and shapes, and that the engine stays usable.
func TestFailingStepIsAnError(t *testing.T) {
	b := engine(t)
	e := build(t, b, []shapes.Shape{f32(2, 3)}, func(in []*Node) []*Node { return []*Node{Transpose(in[0], 0, 1)} })
	good := e.steps[0].run
	e.steps[0].run = nil
	x := upload(t, b, tensorOf(ramp(6), 2, 3))
	_, err := e.Execute([]backends.Buffer{x}, nil, 0)
	if err == nil || !strings.Contains(err.Error(), "Transpose((Float32)[2 3])") {
		t.Errorf("%v", err)
	}
	e.steps[0].run = good
	if _, err := e.Execute([]backends.Buffer{x}, nil, 0); err != nil {
		t.Error(err)
	}
}

func TestExecuteErrors(t *testing.T) {
	b := engine(t)
	e := build(t, b, []shapes.Shape{f32(2)}, func(in []*Node) []*Node { return []*Node{Neg(in[0])} })
	x, wrong := upload(t, b, tensorOf(ramp(2), 2)), upload(t, b, tensorOf(ramp(3), 3))
	for _, c := range []struct {
		name   string
		inputs []backends.Buffer
		donate []bool
		device backends.DeviceNum
		want   string
	}{
		{"too few", nil, nil, 0, "takes 1 inputs, got 0"},
		{"shape", []backends.Buffer{wrong}, nil, 0, "must have shape (Float32)[2], got (Float32)[3]"},
		{"kind", []backends.Buffer{"x"}, nil, 0, "not a buffer of this engine"},
		{"donations", []backends.Buffer{x}, []bool{true, true}, 0, "2 donations"},
		{"device", []backends.Buffer{x}, nil, 1, "the only device is 0"},
	} {
		if _, err := e.Execute(c.inputs, c.donate, c.device); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want an error with %q", c.name, err, c.want)
		}
	}
	e.Finalize()
	if _, err := e.Execute([]backends.Buffer{x}, nil, 0); err == nil || !strings.Contains(err.Error(), "after Finalize") {
		t.Errorf("%v", err)
	}
}

func TestBuffers(t *testing.T) {
	b := engine(t)
	buf, data, err := b.NewSharedBuffer(0, f32(2, 2))
	if err != nil {
		t.Fatal(err)
	}
	copy(data.([]float32), []float32{1, 2, 3, 4})
	got := make([]float32, 4)
	if err := b.BufferToFlatData(buf, got); err != nil || !slices.Equal(got, []float32{1, 2, 3, 4}) {
		t.Errorf("%v, %v", got, err)
	}
	if err := b.BufferToFlatData(buf, make([]float32, 3)); err == nil {
		t.Error("a slice that is too short was accepted")
	}
	if _, err := b.BufferFromFlatData(0, []int32{1}, f32(1)); err == nil || !strings.Contains(err.Error(), "Int32") {
		t.Errorf("integers instead of floats: %v", err)
	}
	if shape, err := b.BufferShape(buf); err != nil || !shape.Equal(f32(2, 2)) {
		t.Errorf("%s, %v", shape, err)
	}
	if err := b.BufferFinalize(buf); err != nil {
		t.Error(err)
	}
	if err := b.BufferFinalize(buf); err == nil || !strings.Contains(err.Error(), "finalized") {
		t.Errorf("finalized twice: %v", err)
	}
	again, _, _ := b.NewSharedBuffer(0, f32(2, 2))
	if zeros, _ := b.BufferData(again); !slices.Equal(zeros.([]float32), make([]float32, 4)) {
		t.Errorf("a new shared buffer holds %v", zeros)
	}
}

func TestFinalizedEngine(t *testing.T) {
	b := engine(t)
	x := upload(t, b, tensorOf(ramp(2), 2))
	constant := b.Builder("constant")
	c, _ := constant.Constant([]float32{1}, 1)
	e, err := constant.Compile([]backends.Op{c}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := b.Builder("late")
	b.Finalize()
	if _, err := e.Execute(nil, nil, 0); err == nil || !strings.Contains(err.Error(), "after Finalize") {
		t.Errorf("execution without inputs after Finalize: %v", err)
	}
	if !b.IsFinalized() {
		t.Error("not finalized")
	}
	if _, err := b.BufferData(x); err == nil {
		t.Error("a buffer was read after Finalize")
	}
	if _, err := g.Parameter("x", f32(2), nil); err == nil {
		t.Error("a graph was built after Finalize")
	}
	if other := engine(t); other.IsFinalized() || other.(*Backend).workers != b.(*Backend).workers {
		t.Error("engines do not share their workers")
	}
}

func TestThreads(t *testing.T) {
	t.Setenv(ThreadsEnv, "3")
	if n, err := threads(""); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := threads("5"); n != 5 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, bad := range []string{"0", "-1", "x", "5000"} {
		if _, err := New(bad); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
