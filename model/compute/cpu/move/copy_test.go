package move

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var sizes = []int{1, 2, 4, 8, 16}

// numbered returns memory of n elements of size bytes, as different as their size allows.
func numbered(n, size int) []byte {
	r := rand.New(rand.NewPCG(uint64(n), uint64(size)))
	b := make([]byte, n*size)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// runAll runs a plan of n units in ranges cut at random.
func runAll(t *rapid.T, n int, run func(lo, hi int)) {
	for lo := 0; lo < n; {
		hi := min(n, lo+rapid.IntRange(1, max(1, n)).Draw(t, "cut"))
		run(lo, hi)
		lo = hi
	}
}

// drawDims draws a shape of at most rank axes; empty axes are rare.
func drawDims(t *rapid.T, rank, most int) []int {
	dims := make([]int, rapid.IntRange(0, rank).Draw(t, "rank"))
	for a := range dims {
		dims[a] = rapid.IntRange(1, most).Draw(t, "dim")
		if rapid.IntRange(0, 40).Draw(t, "empty") == 0 {
			dims[a] = 0
		}
	}
	return dims
}

// each calls fn for every index of dims in row-major order.
func each(dims []int, fn func(flat int, index []int)) {
	index := make([]int, len(dims))
	for flat := range Size(dims) {
		rest := flat
		for a := len(dims) - 1; a >= 0; a-- {
			index[a] = rest % dims[a]
			rest /= dims[a]
		}
		fn(flat, index)
	}
}

// flatten returns the row-major number of an index.
func flatten(index, dims []int) int {
	n := 0
	for a, i := range index {
		n = n*dims[a] + i
	}
	return n
}

// naive builds an array of dims element by element: from(index) is the number of the source element, or -1 for other.
func naive(size int, dims []int, src, other []byte, from func(index []int) int) []byte {
	dst := make([]byte, Size(dims)*size)
	each(dims, func(flat int, index []int) {
		if k := from(index); k >= 0 {
			copy(dst[flat*size:][:size], src[k*size:])
		} else {
			copy(dst[flat*size:][:size], other)
		}
	})
	return dst
}

func same(t interface{ Fatalf(string, ...any) }, got, want []byte, format string, args ...any) {
	if !slices.Equal(got, want) {
		t.Fatalf("%s: got %v, want %v", fmt.Sprintf(format, args...), got[:min(64, len(got))], want[:min(64, len(want))])
	}
}

func TestTransposeByHand(t *testing.T) {
	src := []int32{1, 2, 3, 4, 5, 6}
	dst := make([]int32, 6)
	p := PlanTranspose(4, []int{2, 3}, []int{1, 0})
	p.Run(Bytes(dst), Bytes(src), 0, p.N)
	if want := []int32{1, 4, 2, 5, 3, 6}; !slices.Equal(dst, want) {
		t.Errorf("got %v, want %v", dst, want)
	}
}

func TestTranspose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom(sizes).Draw(t, "size")
		dims := drawDims(t, 5, 9)
		if len(dims) == 2 || len(dims) == 3 { // larger than a tile
			dims[len(dims)-1] *= 5
			dims[0] *= 4
		}
		perm := rapid.Permutation(ints(len(dims))).Draw(t, "permutation")
		src := numbered(Size(dims), size)
		out := make([]int, len(dims))
		for a, p := range perm {
			out[a] = dims[p]
		}
		want := naive(size, out, src, nil, func(index []int) int {
			from := make([]int, len(dims))
			for a, p := range perm {
				from[p] = index[a]
			}
			return flatten(from, dims)
		})
		got, p := make([]byte, len(src)), PlanTranspose(size, dims, perm)
		runAll(t, p.N, func(lo, hi int) { p.Run(got, src, lo, hi) })
		same(t, got, want, "%v %v", dims, perm)
	})
}

func ints(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// TestCopy draws strided copies of every kind: a permutation of axes, reversed on either side, repeated in the source.
func TestCopy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom(sizes).Draw(t, "size")
		dims := drawDims(t, 4, 7)
		strides := func(name string, zero bool) (step []int, offset, span int) {
			step, span = make([]int, len(dims)), 1
			for _, a := range rapid.Permutation(ints(len(dims))).Draw(t, name) {
				if zero && rapid.Bool().Draw(t, "repeat") {
					continue
				}
				step[a] = span * rapid.IntRange(1, 2).Draw(t, "gap")
				span = step[a] * max(1, dims[a])
				if rapid.Bool().Draw(t, "back") {
					offset += (dims[a] - 1) * step[a]
					step[a] = -step[a]
				}
			}
			return step, offset, span
		}
		dstStep, dstOff, dstSpan := strides("dst", false)
		srcStep, srcOff, srcSpan := strides("src", true)
		src, got := numbered(srcSpan, size), make([]byte, dstSpan*size)
		want := slices.Clone(got)
		each(dims, func(_ int, index []int) {
			d, s := dstOff, srcOff
			for a, i := range index {
				d, s = d+i*dstStep[a], s+i*srcStep[a]
			}
			copy(want[d*size:][:size], src[s*size:])
		})
		p := PlanCopy(size, dims, dstStep, srcStep, dstOff, srcOff)
		runAll(t, p.N, func(lo, hi int) { p.Run(got, src, lo, hi) })
		same(t, got, want, "dims %v dst %v+%d src %v+%d", dims, dstStep, dstOff, srcStep, srcOff)
	})
}

func TestCopyChecksMemory(t *testing.T) {
	p := PlanTranspose(4, []int{8, 8}, []int{1, 0})
	for _, c := range []struct{ dst, src int }{{255, 256}, {256, 255}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("copying %d bytes to %d did not panic", c.src, c.dst)
				}
			}()
			p.Run(make([]byte, c.dst), make([]byte, c.src), 0, p.N)
		}()
	}
}

func BenchmarkCopy(b *testing.B) {
	type shape struct {
		name string
		dims []int
		perm []int
	}
	for _, s := range []shape{
		{"memcpy/64MB", []int{16 << 20}, []int{0}},
		{"nhwc-nchw/16x64x64x64", []int{16, 64, 64, 64}, []int{0, 3, 1, 2}},
		{"nchw-nhwc/16x64x64x64", []int{16, 64, 64, 64}, []int{0, 2, 3, 1}},
		{"nhwc-nchw/16x64x64x3", []int{16, 64, 64, 3}, []int{0, 3, 1, 2}},
		{"nchw-nhwc/16x3x64x64", []int{16, 3, 64, 64}, []int{0, 2, 3, 1}},
		{"depth-to-space/16x32x32x2x2x64", []int{16, 32, 32, 2, 2, 64}, []int{0, 1, 3, 2, 4, 5}},
		{"depth-to-space/16x32x32x2x2x3", []int{16, 32, 32, 2, 2, 3}, []int{0, 1, 3, 2, 4, 5}},
		{"space-to-depth/16x32x2x32x2x64", []int{16, 32, 2, 32, 2, 64}, []int{0, 1, 3, 2, 4, 5}},
		{"matrix/2048x512", []int{2048, 512}, []int{1, 0}},
		{"matrix/2000x500", []int{2000, 500}, []int{1, 0}},
	} {
		src := numbered(Size(s.dims), 4)
		dst := make([]byte, len(src))
		p := PlanTranspose(4, s.dims, s.perm)
		b.Run(s.name, func(b *testing.B) {
			b.SetBytes(int64(2 * len(src)))
			for b.Loop() {
				p.Run(dst, src, 0, p.N)
			}
		})
	}
}
