package move

import (
	"slices"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"pgregory.net/rapid"
)

// poisoned returns memory with content that no result has by chance.
func poisoned(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 0xA5
	}
	return b
}

func TestBroadcastInDim(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom(sizes).Draw(t, "size")
		out := drawDims(t, 5, 6)
		if len(out) > 0 {
			out[len(out)-1] *= rapid.SampledFrom([]int{1, 40}).Draw(t, "long")
		}
		var dims, axes []int
		for a, n := range out {
			if rapid.Bool().Draw(t, "keep") {
				axes = append(axes, a)
				dims = append(dims, rapid.SampledFrom([]int{1, n}).Draw(t, "dim"))
			}
		}
		src := numbered(Size(dims), size)
		want := naive(size, out, src, nil, func(index []int) int {
			from := make([]int, len(dims))
			for k, a := range axes {
				from[k] = min(index[a], dims[k]-1)
			}
			return flatten(from, dims)
		})
		got, p := poisoned(len(want)), PlanBroadcastInDim(size, dims, out, axes)
		runAll(t, p.N, func(lo, hi int) { p.Run(got, src, lo, hi) })
		same(t, got, want, "%v to %v along %v", dims, out, axes)
	})
}

func TestReverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom(sizes).Draw(t, "size")
		dims := drawDims(t, 4, 6)
		axes := rapid.Permutation(ints(len(dims))).Draw(t, "axes")[:rapid.IntRange(0, len(dims)).Draw(t, "n")]
		src := numbered(Size(dims), size)
		want := naive(size, dims, src, nil, func(index []int) int {
			from := slices.Clone(index)
			for _, a := range axes {
				from[a] = dims[a] - 1 - index[a]
			}
			return flatten(from, dims)
		})
		got, p := poisoned(len(want)), PlanReverse(size, dims, axes)
		runAll(t, p.N, func(lo, hi int) { p.Run(got, src, lo, hi) })
		same(t, got, want, "%v along %v", dims, axes)
	})
}

func TestSliceByHand(t *testing.T) {
	x, dst := []int32{0, 1, 2, 3, 4}, make([]int32, 2)
	for _, c := range []struct {
		limit, stride int
		want          []int32
	}{{4, 1, []int32{2, 3}}, {5, 2, []int32{2, 4}}} {
		p := PlanSlice(4, []int{5}, []int{2}, []int{c.limit}, []int{c.stride})
		p.Run(Bytes(dst), Bytes(x), 0, p.N)
		if !slices.Equal(dst, c.want) {
			t.Errorf("2:%d:%d of %v is %v, want %v", c.limit, c.stride, x, dst, c.want)
		}
	}
}

func TestSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom(sizes).Draw(t, "size")
		dims := drawDims(t, 4, 9)
		starts, limits, strides := make([]int, len(dims)), make([]int, len(dims)), make([]int, len(dims))
		for a, n := range dims {
			starts[a] = rapid.IntRange(0, n).Draw(t, "start")
			limits[a] = rapid.IntRange(starts[a], n).Draw(t, "limit")
			strides[a] = rapid.IntRange(1, 3).Draw(t, "stride")
		}
		src := numbered(Size(dims), size)
		want := naive(size, SliceDims(starts, limits, strides), src, nil, func(index []int) int {
			from := make([]int, len(dims))
			for a, i := range index {
				from[a] = starts[a] + i*strides[a]
			}
			return flatten(from, dims)
		})
		got, p := poisoned(len(want)), PlanSlice(size, dims, starts, limits, strides)
		runAll(t, p.N, func(lo, hi int) { p.Run(got, src, lo, hi) })
		same(t, got, want, "%v %v:%v:%v", dims, starts, limits, strides)
	})
}

func TestConcatenate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom(sizes).Draw(t, "size")
		dims := append(drawDims(t, 3, 5), rapid.IntRange(1, 5).Draw(t, "last"))
		axis := rapid.IntRange(0, len(dims)-1).Draw(t, "axis")
		var sources [][]int
		var memory [][]byte
		out := slices.Clone(dims)
		out[axis] = 0
		for range rapid.IntRange(1, 4).Draw(t, "sources") {
			d := slices.Clone(dims)
			d[axis] = rapid.IntRange(0, 5).Draw(t, "n")
			out[axis] += d[axis]
			sources, memory = append(sources, d), append(memory, numbered(Size(d), size))
		}
		var want []byte
		each(out, func(_ int, index []int) {
			i, from := 0, slices.Clone(index)
			for ; from[axis] >= sources[i][axis]; i++ {
				from[axis] -= sources[i][axis]
			}
			want = append(want, memory[i][flatten(from, sources[i])*size:][:size]...)
		})
		got := poisoned(len(want))
		for i, p := range PlanConcatenate(size, axis, sources...) {
			runAll(t, p.N, func(lo, hi int) { p.Run(got, memory[i], lo, hi) })
		}
		same(t, got, want, "%v along %d", sources, axis)
	})
}

func TestDynamicSliceAndUpdate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom(sizes).Draw(t, "size")
		dims := drawDims(t, 4, 6)
		part, starts, begin := make([]int, len(dims)), make([]int, len(dims)), make([]int, len(dims))
		for a, n := range dims {
			part[a] = rapid.IntRange(0, n).Draw(t, "part")
			starts[a] = rapid.IntRange(-2, n+2).Draw(t, "start")
			begin[a] = min(max(starts[a], 0), n-part[a])
		}
		src, update := numbered(Size(dims), size), numbered(Size(part), size)
		wantUpdated := slices.Clone(src)
		wantSlice := naive(size, part, src, nil, func(index []int) int {
			from := make([]int, len(dims))
			for a, i := range index {
				from[a] = begin[a] + i
			}
			k := flatten(from, dims)
			copy(wantUpdated[k*size:][:size], update[flatten(index, part)*size:])
			return k
		})
		got, p := poisoned(len(wantSlice)), PlanDynamicSlice(size, dims, part)
		runAll(t, p.N, func(lo, hi int) { p.Run(got, src, starts, lo, hi) })
		same(t, got, wantSlice, "slice %v of %v at %v", part, dims, starts)

		updated, u := slices.Clone(src), PlanDynamicUpdate(size, dims, part)
		runAll(t, u.N, func(lo, hi int) { u.Run(updated, update, starts, lo, hi) })
		same(t, updated, wantUpdated, "update %v of %v at %v", part, dims, starts)
	})
}

func TestBitcastDims(t *testing.T) {
	for _, c := range []struct {
		dims     []int
		from, to int
		want     []int
	}{
		{[]int{1}, 4, 2, []int{1, 2}}, {[]int{1, 2}, 2, 4, []int{1}}, {nil, 8, 1, []int{8}}, {[]int{3}, 4, 4, []int{3}},
	} {
		if got := BitcastDims(c.dims, c.from, c.to); !slices.Equal(got, c.want) {
			t.Errorf("%v from %d to %d bytes is %v, want %v", c.dims, c.from, c.to, got, c.want)
		}
	}
}

func TestPadByHand(t *testing.T) {
	x, zero := []float32{1, 2, 3}, []float32{-1}
	for _, c := range []struct {
		pad  PadAxis
		want []float32
	}{
		{PadAxis{1, 2, 0}, []float32{-1, 1, 2, 3, -1, -1}},
		{PadAxis{0, 0, 2}, []float32{1, -1, -1, 2, -1, -1, 3}},
		{PadAxis{-1, 1, 1}, []float32{-1, 2, -1, 3, -1}},
		{PadAxis{-1, -1, 0}, []float32{2}},
		{PadAxis{-2, -1, 0}, nil},
		{PadAxis{3, -4, 0}, []float32{-1, -1}},
	} {
		p := PlanPad(4, []int{3}, []PadAxis{c.pad})
		got := make([]float32, Size(PadDims([]int{3}, []PadAxis{c.pad})))
		p.Run(Bytes(got), Bytes(x), Bytes(zero), 0, p.N)
		if !slices.Equal(got, c.want) && len(got)+len(c.want) > 0 {
			t.Errorf("%+v of %v is %v, want %v", c.pad, x, got, c.want)
		}
	}
}

func TestPad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom(sizes).Draw(t, "size")
		dims := drawDims(t, 4, 6)
		pads := make([]PadAxis, rapid.IntRange(0, len(dims)).Draw(t, "axes"))
		for a := range pads {
			p := PadAxis{Interior: rapid.IntRange(0, 2).Draw(t, "interior")}
			p.Start = rapid.IntRange(-3, 3).Draw(t, "start")
			p.End = rapid.IntRange(max(-3, -p.dim(dims[a])), 3).Draw(t, "end")
			if p.dim(dims[a]) < 0 {
				p = PadAxis{}
			}
			pads[a] = p
		}
		src, value := numbered(Size(dims), size), numbered(1, size)
		want := naive(size, PadDims(dims, pads), src, value, func(index []int) int {
			from := slices.Clone(index)
			for a, p := range pads {
				if from[a] -= p.Start; from[a] < 0 || from[a]%(p.Interior+1) != 0 {
					return -1
				}
				if from[a] /= p.Interior + 1; from[a] >= dims[a] {
					return -1
				}
			}
			return flatten(from, dims)
		})
		got, p := poisoned(len(want)), PlanPad(size, dims, pads)
		runAll(t, p.N, func(lo, hi int) { p.Run(got, src, value, lo, hi) })
		same(t, got, want, "%+v of %v", pads, dims)
	})
}

func TestWhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom(sizes).Draw(t, "size")
		n := rapid.IntRange(0, 9).Draw(t, "n")
		many := func(name string) int { return rapid.SampledFrom([]int{1, n}).Draw(t, name) }
		condition, a, b := make([]byte, many("condition")), numbered(many("true"), size), numbered(many("false")+20, size)
		b = b[20*size:]
		for i := range condition {
			condition[i] = byte(rapid.IntRange(0, 1).Draw(t, "c"))
		}
		pick := func(memory []byte, i int) []byte { return memory[min(i*size, len(memory)-size):][:size] }
		var want []byte
		for i := range n {
			if condition[min(i, len(condition)-1)] != 0 {
				want = append(want, pick(a, i)...)
			} else {
				want = append(want, pick(b, i)...)
			}
		}
		got := poisoned(n * size)
		runAll(t, n, func(lo, hi int) { Where(size, got, condition, a, b, lo, hi) })
		same(t, got, want, "where of %d", n)
	})
}

func TestIota(t *testing.T) {
	check := func(dtype dtypes.DType, want []byte, dims []int, axis int) {
		p := PlanIota(dtype, dims, axis)
		got := poisoned(len(want))
		p.Run(got, 0, p.N/2)
		p.Run(got, p.N/2, p.N)
		same(t, got, want, "iota of %s %v along %d", dtype, dims, axis)
	}
	check(dtypes.Float32, Bytes([]float32{0, 0, 1, 1}), []int{2, 2}, 0)
	check(dtypes.Int64, Bytes([]int64{0, 1, 0, 1}), []int{2, 2}, 1)
	check(dtypes.Uint8, []byte{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2}, []int{2, 3, 2}, 1)
	check(dtypes.BFloat16, Bytes([]uint16{0, 0x3f80, 0x4000}), []int{3}, 0)
	check(dtypes.Float16, Bytes([]uint16{0, 0x3c00, 0x4000}), []int{3}, 0)
	check(dtypes.Complex64, Bytes([]complex64{0, 1}), []int{2}, 0)
	check(dtypes.Float64, nil, []int{2, 0}, 0)
}

// TestPhilox checks the known answers of Random123's kat_vectors for philox4x32-10.
func TestPhilox(t *testing.T) {
	for _, c := range []struct {
		low, high, key uint64
		want           [4]uint32
	}{
		{0, 0, 0, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{^uint64(0), ^uint64(0), ^uint64(0), [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{0x85a308d3_243f6a88, 0x03707344_13198a2e, 0x299f31d0_a4093822, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := philox(c.low, c.high, c.key); got != c.want {
			t.Errorf("philox(%x, %x; %x) = %x, want %x", c.low, c.high, c.key, got, c.want)
		}
	}
}

func TestPhiloxStream(t *testing.T) {
	state := [3]uint64{7, ^uint64(0) - 1, 5}
	whole, cut := make([]uint32, 17), make([]uint32, 17)
	Philox(state, Bytes(whole), 0, PhiloxUnits(4*17))
	for b := 4; b >= 0; b-- {
		Philox(state, Bytes(cut), b, b+1)
	}
	if !slices.Equal(whole, cut) {
		t.Errorf("in ranges %x, at once %x", cut, whole)
	}
	if got, want := PhiloxNext(state, 4*17), [3]uint64{7, 3, 6}; got != want {
		t.Errorf("state after five blocks %v, want %v", got, want)
	}
	more := make([]uint32, 4)
	Philox(PhiloxNext(state, 16), Bytes(more), 0, 1)
	if !slices.Equal(more, whole[4:8]) {
		t.Errorf("the next draw %x does not continue %x", more, whole[4:8])
	}
}
