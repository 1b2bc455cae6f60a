package move

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/dtypes/bfloat16"
	"pgregory.net/rapid"
)

// drawFloats draws small integers, for which sums, and products of a few, are exact in any order and type.
func drawFloats(t *rapid.T, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rapid.IntRange(-4, 4).Draw(t, "x"))
	}
	return x
}

// apply computes an operation on two numbers.
func apply(op Op, a, b float32) float32 {
	switch op {
	case Sum:
		return a + b
	case Product:
		return a * b
	case Max:
		return max(a, b)
	}
	return min(a, b)
}

var identities = map[Op]float32{Sum: 0, Product: 1, Max: float32(math.Inf(-1)), Min: float32(math.Inf(1))}

func TestReduce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		op := rapid.SampledFrom([]Op{Sum, Product, Max, Min}).Draw(t, "op")
		dims := drawDims(t, 4, 4)
		if len(dims) > 0 && op != Product {
			dims[rapid.IntRange(0, len(dims)-1).Draw(t, "long")] *= rapid.SampledFrom([]int{1, 300}).Draw(t, "times")
		}
		axes := rapid.Permutation(ints(len(dims))).Draw(t, "axes")[:rapid.IntRange(0, len(dims)).Draw(t, "n")]
		src := make([]float32, Size(dims))
		for i := range src {
			src[i] = float32(i*7%9 - 4)
		}
		if op == Product { // ±1 and ±2, so that any product is exact
			for i := range src {
				src[i] = []float32{1, -1, 2, -.5}[i%4]
			}
		}
		var out []int
		for a, n := range dims {
			if !slices.Contains(axes, a) {
				out = append(out, n)
			}
		}
		want := slices.Repeat([]float32{identities[op]}, Size(out))
		each(dims, func(flat int, index []int) {
			var to []int
			for a, i := range index {
				if !slices.Contains(axes, a) {
					to = append(to, i)
				}
			}
			k := flatten(to, out)
			want[k] = apply(op, want[k], src[flat])
		})
		got := slices.Repeat([]float32{99}, len(want))
		p, err := PlanReduce(op, dtypes.Float32, dims, axes)
		if err != nil {
			t.Fatal(err)
		}
		runAll(t, p.N, func(lo, hi int) { p.Run(Bytes(got), Bytes(src), lo, hi) })
		if !slices.Equal(got, want) {
			t.Fatalf("%s of %v over %v: got %v, want %v", op, dims, axes, got, want)
		}
	})
}

// reduceAll reduces everything to one value.
func reduceAll[T any](t *testing.T, op Op, dtype dtypes.DType, values ...T) T {
	t.Helper()
	p, err := PlanReduce(op, dtype, []int{len(values)}, []int{0})
	if err != nil {
		t.Fatal(err)
	}
	var out [1]T
	p.Run(Bytes(out[:]), Bytes(values), 0, p.N)
	column, err := PlanReduce(op, dtype, []int{len(values), 2}, []int{0})
	if err != nil {
		t.Fatal(err)
	}
	var two [2]T
	column.Run(Bytes(two[:]), Bytes(slices.Repeat(values, 2)), 0, column.N)
	return out[0]
}

func equal[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestReduceTypes(t *testing.T) {
	equal(t, reduceAll(t, Sum, dtypes.Int8, int8(100), 100), -56) // wraps
	equal(t, reduceAll(t, Sum, dtypes.Uint8, uint8(200), 100), 44)
	equal(t, reduceAll(t, Sum, dtypes.Int16, int16(-5), 7), 2)
	equal(t, reduceAll(t, Product, dtypes.Int32, int32(-5), 7, 2), -70)
	equal(t, reduceAll(t, Max, dtypes.Int64, int64(-5), -7), -5)
	equal(t, reduceAll(t, Min, dtypes.Uint16, uint16(5), 7), 5)
	equal(t, reduceAll(t, Min, dtypes.Uint32, uint32(5), 7), 5)
	equal(t, reduceAll(t, Max, dtypes.Uint64, uint64(5), math.MaxUint64), math.MaxUint64)
	equal(t, reduceAll[int32](t, Max, dtypes.Int32), math.MinInt32)
	equal(t, reduceAll[uint8](t, And, dtypes.Uint8), 255)
	equal(t, reduceAll(t, And, dtypes.Int32, int32(0b1110), 0b0111), 0b0110)
	equal(t, reduceAll(t, Or, dtypes.Int64, int64(0b1000), 0b0001), 0b1001)
	equal(t, reduceAll(t, Xor, dtypes.Uint16, uint16(0b1100), 0b0110), 0b1010)
	equal(t, reduceAll(t, And, dtypes.Bool, true, false), false)
	equal(t, reduceAll(t, And, dtypes.Bool, true, true), true)
	equal(t, reduceAll[bool](t, And, dtypes.Bool), true)
	equal(t, reduceAll(t, Or, dtypes.Bool, true, false), true)
	equal(t, reduceAll(t, Xor, dtypes.Bool, true, true), false)
	equal(t, reduceAll(t, Max, dtypes.Bool, false, true), true)
	equal(t, reduceAll(t, Sum, dtypes.Complex64, complex64(1+2i), 3-5i), 4-3i)
	equal(t, reduceAll(t, Product, dtypes.Complex128, 1+2i, 3-5i), 13+1i)
	equal(t, reduceAll[complex128](t, Product, dtypes.Complex128), 1)
	half := bfloat16.FromFloat32
	equal(t, reduceAll(t, Sum, dtypes.BFloat16, half(1.5), half(2)), half(3.5))
	equal(t, reduceAll(t, Min, dtypes.Float16, uint16(0x3c00), 0xc000), 0xc000) // 1 and -2
	if got := reduceAll(t, Max, dtypes.Float32, 1, float32(math.NaN()), 2); got == got {
		t.Errorf("the maximum with a NaN is %v", got)
	}
}

func TestReduceHalvesInLongRuns(t *testing.T) {
	one := bfloat16.FromFloat32(1)
	equal(t, reduceAll(t, Sum, dtypes.BFloat16, slices.Repeat([]bfloat16.BFloat16{one}, 2048)...), bfloat16.FromFloat32(2048))
	src, dst := slices.Repeat([]bfloat16.BFloat16{one}, 3*1300), make([]bfloat16.BFloat16, 1300)
	p, _ := PlanReduce(Sum, dtypes.BFloat16, []int{3, 1300}, []int{0})
	p.Run(Bytes(dst), Bytes(src), 0, p.N)
	if want := slices.Repeat([]bfloat16.BFloat16{bfloat16.FromFloat32(3)}, 1300); !slices.Equal(dst, want) {
		t.Errorf("columns of three ones add up to %v", dst[:8])
	}
}

func TestReduceInBands(t *testing.T) {
	const outer, n = 3, 2*bandWidth + 7
	src, got, want := make([]int32, outer*2*n), make([]int32, outer*n), make([]int32, outer*n)
	for i := range src {
		src[i] = int32(i)
	}
	for i := range want {
		at := i/n*2*n + i%n
		want[i] = src[at] + src[at+n]
	}
	p, err := PlanReduce(Sum, dtypes.Int32, []int{outer, 2, n}, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	for lo := 0; lo < p.N; lo += 4 {
		p.Run(Bytes(got), Bytes(src), lo, lo+4)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v…, want %v…", got[n:n+4], want[n:n+4])
	}
}

func TestReduceIsExact(t *testing.T) {
	x := slices.Repeat([]float32{.1}, 10_000_000) // one float32 running sum would be off by 9 %
	if got, want := float64(reduceAll(t, Sum, dtypes.Float32, x...)), 1e7*float64(float32(.1)); math.Abs(got-want) > .06 {
		t.Errorf("sum %v, want %v within the last bit of a float32, 0.0625", got, want)
	}
}

func TestReduceRefuses(t *testing.T) {
	for _, c := range []struct {
		op    Op
		dtype dtypes.DType
		want  string
	}{
		{Max, dtypes.Complex64, "the cpu engine has no max of Complex64"},
		{And, dtypes.Float32, "the cpu engine has no and of Float32"},
		{Sum, dtypes.Bool, "the cpu engine has no sum of Bool"},
	} {
		if _, err := PlanReduce(c.op, c.dtype, []int{2}, []int{0}); err == nil || err.Error() != c.want {
			t.Errorf("%s of %s: %v, want %q", c.op, c.dtype, err, c.want)
		}
	}
}

func TestArgMinMaxByHand(t *testing.T) {
	x := []float32{2, 0, 7, -3, 4, 2}
	nan := float32(math.NaN())
	for _, c := range []struct {
		x     []float32
		axis  int
		least bool
		want  []int32
	}{
		{x, 1, true, []int32{1, 0}},
		{x, 0, false, []int32{0, 1, 0}},
		{[]float32{1, nan, 0, nan, 5, 5}, 1, true, []int32{1, 0}},
		{[]float32{1, nan, 0, nan, 5, 5}, 0, false, []int32{1, 0, 1}},
		{[]float32{1, 1, 0, 0, 5, 5}, 1, false, []int32{0, 1}},
		{[]float32{nan, 1, nan, nan, 5, nan}, 0, false, []int32{0, 1, 0}},
		{[]float32{3, nan, nan, nan, 5, nan}, 1, true, []int32{1, 0}},
	} {
		p := PlanArgMinMax(c.least, dtypes.Float32, dtypes.Int32, []int{2, 3}, c.axis)
		got := make([]int32, len(c.want))
		p.Run(Bytes(got), Bytes(c.x), 0, p.N)
		if !slices.Equal(got, c.want) {
			t.Errorf("%v along %d, least %v: got %v, want %v", c.x, c.axis, c.least, got, c.want)
		}
	}
}

func TestArgMinMax(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dims := append(drawDims(t, 3, 5), rapid.SampledFrom([]int{1, 3, 600}).Draw(t, "last"))
		axis := rapid.IntRange(0, len(dims)-1).Draw(t, "axis")
		least, halved := rapid.Bool().Draw(t, "least"), rapid.Bool().Draw(t, "halves")
		x := make([]float32, Size(dims))
		for i := range x {
			x[i] = float32(i * 31 % 17)
		}
		out := slices.Delete(slices.Clone(dims), axis, axis+1)
		want := make([]int64, Size(out))
		each(out, func(flat int, index []int) {
			at := func(i int) float32 { return x[flatten(slices.Insert(slices.Clone(index), axis, i), dims)] }
			for i := range dims[axis] {
				if best := at(int(want[flat])); least && at(i) < best || !least && at(i) > best {
					want[flat] = int64(i)
				}
			}
		})
		dtype, src := dtypes.Float32, Bytes(x)
		if halved {
			h := make([]bfloat16.BFloat16, len(x))
			for i, v := range x {
				h[i] = bfloat16.FromFloat32(v)
			}
			dtype, src = dtypes.BFloat16, Bytes(h)
		}
		got, p := make([]int64, len(want)), PlanArgMinMax(least, dtype, dtypes.Int64, dims, axis)
		runAll(t, p.N, func(lo, hi int) { p.Run(Bytes(got), src, lo, hi) })
		if !slices.Equal(got, want) {
			t.Fatalf("%v along %d: got %v, want %v", dims, axis, got, want)
		}
	})
}

// drawWindows draws windows that fit dims; pooled limits them to those that SelectAndScatter supports.
func drawWindows(t *rapid.T, dims []int, pooled bool) Windows {
	w := Windows{}
	for range dims {
		w.Dims = append(w.Dims, rapid.IntRange(1, 3).Draw(t, "window"))
		w.Strides = append(w.Strides, rapid.IntRange(1, 3).Draw(t, "stride"))
		w.BaseDilations = append(w.BaseDilations, rapid.IntRange(1, 2).Draw(t, "base"))
		w.WindowDilations = append(w.WindowDilations, rapid.IntRange(1, 2).Draw(t, "dilation"))
		w.Paddings = append(w.Paddings, [2]int{rapid.IntRange(0, 3).Draw(t, "before"), rapid.IntRange(0, 3).Draw(t, "after")})
	}
	for a := range dims { // some axes are unchanged, like batch and channels
		if rapid.Bool().Draw(t, "whole") {
			w.Dims[a], w.Strides[a], w.BaseDilations[a], w.Paddings[a] = 1, 1, 1, [2]int{}
		}
	}
	if pooled {
		w.BaseDilations, w.WindowDilations = nil, nil
	}
	return w
}

// seen calls fn for every element of dims in window index, following the definition.
func seen(w Windows, dims, index []int, fn func(at int)) {
	window := make([]int, len(dims))
	for a := range dims {
		window[a], _, _, _, _, _ = w.axis(a)
	}
	each(window, func(_ int, k []int) {
		from := make([]int, len(dims))
		for a := range dims {
			_, stride, base, dilation, before, _ := w.axis(a)
			i := index[a]*stride + k[a]*dilation - before
			if i < 0 || i%base != 0 || i/base >= dims[a] {
				return
			}
			from[a] = i / base
		}
		fn(flatten(from, dims))
	})
}

func TestReduceWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		op := rapid.SampledFrom([]Op{Sum, Product, Max, Min}).Draw(t, "op")
		dims := drawDims(t, 4, 5)
		w := drawWindows(t, dims, false)
		out := w.OutDims(dims)
		src := drawFloats(t, Size(dims))
		want := slices.Repeat([]float32{identities[op]}, Size(out))
		each(out, func(flat int, index []int) {
			seen(w, dims, index, func(at int) { want[flat] = apply(op, want[flat], src[at]) })
		})
		got := make([]float32, len(want))
		p, err := PlanReduceWindow(op, dtypes.Float32, dims, w)
		if err != nil {
			t.Fatal(err)
		}
		runAll(t, p.N, func(lo, hi int) { p.Run(Bytes(got), Bytes(src), lo, hi) })
		if !slices.Equal(got, want) {
			t.Fatalf("%s of %v in %+v: got %v, want %v", op, dims, w, got, want)
		}
	})
}

func TestWindowsOutDims(t *testing.T) {
	for _, c := range []struct {
		n    int
		w    Windows
		want int
	}{
		{4, Windows{Dims: []int{2}}, 2},
		{5, Windows{Dims: []int{2}}, 2},
		{5, Windows{Dims: []int{2}, Strides: []int{1}}, 4},
		{5, Windows{Dims: []int{3}, Strides: []int{1}, Paddings: [][2]int{{1, 1}}}, 5},
		{3, Windows{Dims: []int{2}, Strides: []int{1}, BaseDilations: []int{2}}, 4},
		{5, Windows{Dims: []int{2}, Strides: []int{1}, WindowDilations: []int{3}}, 2},
		{5, Windows{}, 5},
	} {
		if got := c.w.OutDims([]int{c.n}); got[0] != c.want {
			t.Errorf("%d elements in %+v are %d windows, want %d", c.n, c.w, got[0], c.want)
		}
	}
}

func TestSelectAndScatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.Bool().Draw(t, "least")
		dims := drawDims(t, 4, 5)
		w := drawWindows(t, dims, true)
		out := w.OutDims(dims)
		operand, source := drawFloats(t, Size(dims)), drawFloats(t, Size(out))
		want := make([]float32, len(operand))
		each(out, func(flat int, index []int) {
			best := -1
			seen(w, dims, index, func(at int) {
				if best < 0 || least && operand[at] < operand[best] || !least && operand[at] > operand[best] {
					best = at
				}
			})
			if best >= 0 {
				want[best] += source[flat]
			}
		})
		p := PlanSelectAndScatter(least, dtypes.Float32, dims, w)
		got := slices.Repeat([]float32{99}, len(want))
		runAll(t, p.N, func(lo, hi int) { p.Run(Bytes(got), Bytes(operand), Bytes(source), lo, hi) })
		if !slices.Equal(got, want) {
			t.Fatalf("%v in %+v: got %v, want %v", dims, w, got, want)
		}
		halves := func(x []float32) []byte {
			h := make([]bfloat16.BFloat16, len(x))
			for i, v := range x {
				h[i] = bfloat16.FromFloat32(v)
			}
			return Bytes(h)
		}
		h, short := PlanSelectAndScatter(least, dtypes.BFloat16, dims, w), poisoned(2*len(want))
		runAll(t, h.N, func(lo, hi int) { h.Run(short, halves(operand), halves(source), lo, hi) })
		same(t, short, halves(want), "as bfloat16, %v in %+v", dims, w)
	})
}

// drawIndices draws an index operand for a window of an array: its shape, the axis of its vectors, and the values.
func drawIndices(t *rapid.T, operand []int) (dims []int, vectorAxis int, axes []int, values []int32) {
	axes = rapid.Permutation(ints(len(operand))).Draw(t, "index map")[:rapid.IntRange(0, len(operand)).Draw(t, "components")]
	dims = drawDims(t, 2, 4)
	vectorAxis = rapid.IntRange(0, len(dims)).Draw(t, "vector axis")
	if len(axes) != 1 || vectorAxis < len(dims) || rapid.Bool().Draw(t, "explicit") {
		dims = slices.Insert(dims, vectorAxis, len(axes))
	}
	values = make([]int32, Size(dims))
	for i := range values {
		values[i] = int32(rapid.IntRange(-2, 6).Draw(t, "index"))
	}
	return dims, vectorAxis, axes, values
}

// vectorAt returns the index vector of a batch index.
func vectorAt(batch, dims []int, vectorAxis int, components int, values []int32) []int {
	vector := make([]int, components)
	for k := range vector {
		at := batch
		if vectorAxis < len(dims) {
			at = slices.Insert(slices.Clone(batch), vectorAxis, k)
		}
		vector[k] = int(values[flatten(at, dims)])
	}
	return vector
}

// spread draws positions for the window's axes among the rank axes of a result, in order.
func spread(t *rapid.T, rank, n int) []int {
	axes := rapid.Permutation(ints(rank)).Draw(t, "window axes")[:n]
	slices.Sort(axes)
	return axes
}

func TestGather(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom(sizes).Draw(t, "size")
		operand := append(drawDims(t, 2, 5), rapid.IntRange(1, 5).Draw(t, "last"))
		dims, vectorAxis, axes, values := drawIndices(t, operand)
		g := GatherSpec{IndexVectorAxis: vectorAxis, StartIndexMap: axes}
		var window []int
		for a, n := range operand {
			s := rapid.IntRange(min(n, 1), n).Draw(t, "slice")
			g.SliceSizes = append(g.SliceSizes, s)
			if s == 1 && rapid.Bool().Draw(t, "collapse") {
				g.CollapsedSliceAxes = append(g.CollapsedSliceAxes, a)
			} else {
				window = append(window, s)
			}
		}
		batch := slices.Clone(dims)
		if vectorAxis < len(dims) {
			batch = slices.Delete(batch, vectorAxis, vectorAxis+1)
		}
		g.OffsetOutputAxes = spread(t, len(batch)+len(window), len(window))
		out := gatherDims(batch, window, g.OffsetOutputAxes)
		src := numbered(Size(operand), size)
		want := naive(size, out, src, nil, func(index []int) int {
			var b, offset []int
			for a, i := range index {
				if slices.Contains(g.OffsetOutputAxes, a) {
					offset = append(offset, i)
				} else {
					b = append(b, i)
				}
			}
			from := make([]int, len(operand))
			for k, i := range vectorAt(b, dims, vectorAxis, len(axes), values) {
				from[axes[k]] = min(max(i, 0), operand[axes[k]]-g.SliceSizes[axes[k]])
			}
			k := 0
			for a := range operand {
				if !slices.Contains(g.CollapsedSliceAxes, a) {
					from[a] += offset[k]
					k++
				}
			}
			return flatten(from, operand)
		})
		got, p := poisoned(len(want)), PlanGather(size, operand, dims, g)
		runAll(t, p.N, func(lo, hi int) { p.Run(got, src, NewIndices(dtypes.Int32, Bytes(values)), lo, hi) })
		same(t, got, want, "%+v of %v by %v", g, operand, dims)
	})
}

func TestScatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		op := rapid.SampledFrom([]Op{Sum, Max, Min}).Draw(t, "op")
		operand := append(drawDims(t, 2, 5), rapid.IntRange(1, 5).Draw(t, "last"))
		dims, vectorAxis, axes, values := drawIndices(t, operand)
		s := ScatterSpec{IndexVectorAxis: vectorAxis, ScatterAxesToOperandAxes: axes}
		var window []int
		for a, n := range operand {
			if size := rapid.IntRange(min(n, 1), n).Draw(t, "window"); size == 1 && rapid.Bool().Draw(t, "insert") {
				s.InsertedWindowAxes = append(s.InsertedWindowAxes, a)
			} else {
				window = append(window, size)
			}
		}
		batch := slices.Clone(dims)
		if vectorAxis < len(dims) {
			batch = slices.Delete(batch, vectorAxis, vectorAxis+1)
		}
		s.UpdateWindowAxes = spread(t, len(batch)+len(window), len(window))
		updates := gatherDims(batch, window, s.UpdateWindowAxes)
		array, from := drawFloats(t, Size(operand)), drawFloats(t, Size(updates))
		want := slices.Clone(array)
		each(updates, func(flat int, index []int) {
			var b, offset []int
			for a, i := range index {
				if slices.Contains(s.UpdateWindowAxes, a) {
					offset = append(offset, i)
				} else {
					b = append(b, i)
				}
			}
			to, span := make([]int, len(operand)), slices.Repeat([]int{1}, len(operand))
			k := 0
			for a := range operand {
				if !slices.Contains(s.InsertedWindowAxes, a) {
					to[a], span[a] = offset[k], window[k]
					k++
				}
			}
			for k, i := range vectorAt(b, dims, vectorAxis, len(axes), values) {
				if i < 0 || i+span[axes[k]] > operand[axes[k]] {
					return
				}
				to[axes[k]] += i
			}
			at := flatten(to, operand)
			want[at] = apply(op, want[at], from[flat])
		})
		p, err := PlanScatter(op, dtypes.Float32, operand, dims, updates, s)
		if err != nil {
			t.Fatal(err)
		}
		got := slices.Clone(array)
		runAll(t, p.N, func(lo, hi int) { p.Run(Bytes(got), NewIndices(dtypes.Int32, Bytes(values)), Bytes(from), lo, hi) })
		if !slices.Equal(got, want) {
			t.Fatalf("%+v of %v into %v by %v %v: got %v, want %v", s, updates, operand, dims, values, got, want)
		}
	})
}

func TestScatterTypes(t *testing.T) {
	spec := ScatterSpec{IndexVectorAxis: 1, InsertedWindowAxes: []int{0}, ScatterAxesToOperandAxes: []int{0}}
	indices := NewIndices(dtypes.Uint8, []byte{1, 1, 9})
	for _, c := range []struct {
		op                    Op
		dtype                 dtypes.DType
		array, updates, wants []byte
	}{
		{Sum, dtypes.Complex64, Bytes([]complex64{1, 2}), Bytes([]complex64{1i, 2, 5}), Bytes([]complex64{1, 4 + 1i})},
		{Sum, dtypes.Complex128, Bytes([]complex128{1, 2}), Bytes([]complex128{1i, 2, 5}), Bytes([]complex128{1, 4 + 1i})},
		{Max, dtypes.BFloat16, Bytes([]uint16{0, 0}), Bytes([]uint16{0x3f80, 0x4000, 0x4040}), Bytes([]uint16{0, 0x4000})},
		{Sum, dtypes.Float16, Bytes([]uint16{0, 0}), Bytes([]uint16{0x3c00, 0x3c00, 0x4040}), Bytes([]uint16{0, 0x4000})},
		{Min, dtypes.Int8, Bytes([]int8{0, 0}), Bytes([]int8{-1, 3, -8}), Bytes([]int8{0, -1})},
		{Sum, dtypes.Uint64, Bytes([]uint64{0, 0}), Bytes([]uint64{1, 3, 8}), Bytes([]uint64{0, 4})},
		{Sum, dtypes.Int64, Bytes([]int64{0, 0}), Bytes([]int64{1, 3, 8}), Bytes([]int64{0, 4})},
	} {
		p, err := PlanScatter(c.op, c.dtype, []int{2}, []int{3}, []int{3}, spec)
		if err != nil {
			t.Fatal(err)
		}
		p.Run(c.array, indices, c.updates, 0, p.N)
		same(t, c.array, c.wants, "scatter by %s of %s", c.op, c.dtype)
	}
	if _, err := PlanScatter(Max, dtypes.Complex64, []int{2}, []int{3}, []int{3}, spec); err == nil {
		t.Error("complex numbers have a maximum")
	}
}

func TestIndices(t *testing.T) {
	for _, c := range []struct {
		dtype dtypes.DType
		data  []byte
		want  int
	}{
		{dtypes.Int8, Bytes([]int8{0, -3}), -3}, {dtypes.Int16, Bytes([]int16{0, -3}), -3}, {dtypes.Int32, Bytes([]int32{0, -3}), -3},
		{dtypes.Int64, Bytes([]int64{0, -3}), -3}, {dtypes.Uint8, []byte{0, 253}, 253}, {dtypes.Uint16, Bytes([]uint16{0, 65533}), 65533},
		{dtypes.Uint32, Bytes([]uint32{0, 1 << 31}), 1 << 31}, {dtypes.Uint64, Bytes([]uint64{0, math.MaxUint64}), 1 << 62},
	} {
		if got := NewIndices(c.dtype, c.data).At(1); got != c.want {
			t.Errorf("%s: got %d, want %d", c.dtype, got, c.want)
		}
	}
}

func BenchmarkCompute(b *testing.B) {
	const n = 4 << 20
	src, dst := numbered(n, 4), make([]byte, 4*n)
	for i, v := range Of[float32](src) {
		if v != v {
			Of[float32](src)[i] = 1
		}
	}
	bench := func(name string, bytes int, run func()) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(bytes))
			for b.Loop() {
				run()
			}
		})
	}
	reduce := func(name string, op Op, dims, axes []int) {
		p, _ := PlanReduce(op, dtypes.Float32, dims, axes)
		bench(name, 4*Size(dims), func() { p.Run(dst, src, 0, p.N) })
	}
	reduce("sum/all", Sum, []int{n}, []int{0})
	reduce("sum/rows", Sum, []int{n / 512, 512}, []int{1})
	reduce("sum/columns", Sum, []int{n / 64, 64}, []int{0})
	reduce("sum/3-columns", Sum, []int{1 << 20, 3}, []int{0})
	reduce("max/rows", Max, []int{n / 512, 512}, []int{1})
	arg := PlanArgMinMax(true, dtypes.Float32, dtypes.Int32, []int{n / 512, 512}, 1)
	bench("argmin/rows", 4*n, func() { arg.Run(dst, src, 0, arg.N) })
	pad := PlanPad(4, []int{16, 64, 64, 64}, []PadAxis{{}, {1, 1, 0}, {1, 1, 0}, {}})
	padded := make([]byte, pad.dstSize)
	bench("pad/16x64x64x64", 2*4*n, func() { pad.Run(padded, src, make([]byte, 4), 0, pad.N) })
	indices := make([]int32, 16*9)
	for i := range indices {
		indices[i] = int32(i * 37 % 512)
	}
	gather := PlanGather(4, []int{512, 256}, []int{144, 1}, GatherSpec{1, []int{1}, []int{0}, []int{0}, []int{1, 256}})
	bench("gather/144x256", 2*4*144*256, func() { gather.Run(dst, src, NewIndices(dtypes.Int32, Bytes(indices)), 0, gather.N) })
	scatter, _ := PlanScatter(Sum, dtypes.Float32, []int{512, 256}, []int{144, 1}, []int{144, 256}, ScatterSpec{1, []int{1}, []int{0}, []int{0}})
	bench("scatter/144x256", 2*4*144*256, func() { scatter.Run(dst, NewIndices(dtypes.Int32, Bytes(indices)), src, 0, scatter.N) })
	bench("philox", 4*n, func() { Philox([3]uint64{1, 2, 3}, dst, 0, n/4) })
	w := Windows{Dims: []int{1, 2, 2, 1}}
	pool, _ := PlanReduceWindow(Max, dtypes.Float32, []int{16, 64, 64, 64}, w)
	bench("maxpool/16x64x64x64", 4*n, func() { pool.Run(dst, src, 0, pool.N) })
	condition := numbered(n, 1)
	bench("where", 3*4*n, func() { Where(4, dst, condition, src, src, 0, n) })
}
