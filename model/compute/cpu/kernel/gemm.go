package kernel

/*
#include "product.h"
*/
import "C"

import "fmt"

// Gemm is a matrix product, for each of Batch items:
//
//	C[m, n] (+)= Σ_k A[m, k] B[k, n]
//
// Strides are in elements and may have any value: a transposed matrix needs no copy, and a stride of 0 repeats. C's columns are adjacent.
type Gemm struct {
	M, N, K    int
	A, B, C    []float32
	ARow, ACol int  // A[m, k] is A[m·ARow + k·ACol]
	BRow, BCol int  // B[k, n] is B[k·BRow + n·BCol]
	CRow       int  // C[m, n] is C[m·CRow + n]
	Accumulate bool // adds to C instead of overwriting it
	Operands   Operands
	Stored     Stored // of A and B; as float32 if there are several items

	Batch                  int // number of items; 0 means 1
	ABatch, BBatch, CBatch int // distance between items
}

// skinny is the maximum number of rows of a product that is computed row by row, without packing.
const skinny = 4

// Gemm computes a matrix product. It panics if a matrix reaches outside its slice.
func (p *Pool) Gemm(g Gemm) {
	g.Batch = max(g.Batch, 1)
	if g.M <= 0 || g.N <= 0 {
		return
	}
	g.check()
	w := gemms.get()
	w.g, w.pool = g, p
	w.few = fewOf(&g)
	if w.few.kind == tiled {
		w.state()
	}
	flops := 2 * g.M * g.N * max(g.K, 1)
	w.serial = g.Batch >= 2*p.threads || flops < serialFlops && g.Batch > 1
	if w.serial {
		p.run(g.Batch, max(1, serialFlops/flops), w)
	} else {
		w.do(0, g.Batch)
	}
	gemms.put(w)
}

func (g *Gemm) check() {
	reach := func(name string, have int, strides ...int) {
		low, high := 0, 0
		for i := 0; i < len(strides); i += 2 {
			far := (strides[i] - 1) * strides[i+1]
			low, high = low+min(far, 0), high+max(far, 0)
		}
		if low < 0 || high >= have {
			panic(fmt.Sprintf("Gemm %dx%dx%d: %s reaches from %d to %d of %d elements", g.M, g.K, g.N, name, low, high, have))
		}
	}
	if g.K > 0 {
		reach("A", g.Stored.elements(0, len(g.A)), g.M, g.ARow, g.K, g.ACol, g.Batch, g.ABatch)
		reach("B", g.Stored.elements(1, len(g.B)), g.K, g.BRow, g.N, g.BCol, g.Batch, g.BBatch)
	}
	if g.Batch > 1 && g.Stored != (Stored{}) {
		panic(fmt.Sprintf("Gemm of %d items: their operands must be stored as float32", g.Batch))
	}
	reach("C", len(g.C), g.M, g.CRow, g.N, 1, g.Batch, g.CBatch)
}

// gemmTask computes items of a batch.
type gemmTask struct {
	g      Gemm
	pool   *Pool
	serial bool // one thread per item
	few    few
	q      product
}

var gemms keep[gemmTask]

func (w *gemmTask) do(lo, hi int) {
	g := &w.g
	for i := lo; i < hi; i++ {
		a, b, c := from(g.A, i*g.ABatch), from(g.B, i*g.BBatch), g.C[i*g.CBatch:]
		switch {
		case w.few.kind != tiled:
			w.few.run(w.pool, w.serial, a, b, c)
		case w.serial:
			w.pool.multiplySerially(&w.q, a, b, c, g.Accumulate)
		default:
			w.pool.multiply(&w.q, a, b, c, g.Accumulate)
		}
	}
}

// state describes the product of one item.
func (w *gemmTask) state() {
	w.describe(swapPays(w.g.M, w.g.N))
	// Pairs of bfloat16 are always packed; float32 may be read in place.
	if set, parts := w.g.Operands.set(); halfPays(set, parts, w.g.fewRead(), &w.q) {
		w.q.halve(set, parts)
	} else if w.g.fewRead() {
		w.describe(true)
	}
}

// describe sets the product, or the transposed one if swap is true.
func (w *gemmTask) describe(swap bool) {
	g := &w.g
	m := [1]axis{{size: g.M, a: g.ARow, c: g.CRow, dim: -1}}
	n := [1]axis{{size: g.N, b: g.BCol, c: 1, dim: -1}}
	k := [1]axis{{size: g.K, a: g.ACol, b: g.BRow, dim: -1}}
	if err := w.q.set(m[:], n[:], k[:], unbounded(0), unbounded(0), 0, swap); err != nil {
		panic(err) // cannot fail with one axis each
	}
	w.q.narrow(g.Stored)
}

// Narrows reports which operands may be stored as bfloat16 without costing time: those that are packed and not read by only a few rows or
// columns.
func (g Gemm) Narrows() Stored {
	if g.Batch > 1 || fewOf(&g).kind != tiled {
		return Stored{}
	}
	w := gemmTask{g: g}
	w.describe(swapPays(g.M, g.N))
	set, parts := g.Operands.set()
	packed := halfPays(set, parts, w.g.fewRead(), &w.q)
	few := C.FEW_PANELS * int(C.tile_cols())
	return Stored{packed || g.N > few, packed || g.M > few}
}

// fewRead reports whether few rows read a B that the transposed product reads in place.
func (g *Gemm) fewRead() bool {
	return !g.Stored[1] && g.BRow == 1 && g.BCol != 1 && g.M < g.N && g.M <= C.FEW_PANELS*int(C.tile_cols())
}

// swapPays reports whether the transposed product wastes less of the tiles: a few columns do not fill a vector, but any number
// of rows is possible.
func swapPays(m, n int) bool { return n <= 6 && m > 4*n }

// from returns s from offset on, or nothing if s ends before it.
func from(s []float32, offset int) []float32 { return s[min(offset, len(s)):] }

// few is a product in which one side has at most skinny rows or columns: y[i, j] (+)= Σ_k a[i, k] b[k, j] with few i.
type few struct {
	kind           int
	swapped        bool // a is the caller's B
	rows, n, k     int
	ai, ak, bk, bj int // strides
	yi, yj         int
	accumulate     bool
}

const (
	tiled = iota // not few
	axpy         // b is adjacent along j
	dot          // b is adjacent along k
)

// fewOf returns how a product is computed row by row, if it is.
func fewOf(g *Gemm) few {
	f := few{rows: g.M, n: g.N, k: g.K, ai: g.ARow, ak: g.ACol, bk: g.BRow, bj: g.BCol, yi: g.CRow, yj: 1, accumulate: g.Accumulate}
	if g.M > skinny && g.N <= skinny {
		f = few{swapped: true, rows: g.N, n: g.M, k: g.K, ai: g.BCol, ak: g.BRow, bk: g.ACol, bj: g.ARow, yi: 1, yj: g.CRow,
			accumulate: g.Accumulate}
	}
	switch {
	case f.rows > skinny || g.Stored != (Stored{}):
	case f.bj == 1 && f.yj == 1:
		f.kind = axpy
	case f.bk == 1 || f.k <= 1:
		f.kind = dot
	}
	return f
}

// fewTask computes ranges of j.
type fewTask struct {
	few
	a, b, y []float32
}

var fews keep[fewTask]

// run computes one item, on the pool or only on this goroutine.
func (f few) run(p *Pool, serial bool, a, b, y []float32) {
	if f.swapped {
		a, b = b, a
	}
	if m := p.meter.Load(); m != nil {
		m.FLOPs.Add(int64(2 * f.rows * f.n * f.k))
	}
	w := fews.get()
	w.few, w.a, w.b, w.y = f, a, b, y
	var copied *scratch
	if f.kind == dot && f.ak != 1 {
		copied = p.scratch.get(f.rows * f.k)
		w.gather(copied.data)
	}
	if serial {
		w.do(0, f.n)
	} else {
		p.run(f.n, max(16, serialFlops/4/max(f.rows*f.k, 1)), w)
	}
	if copied != nil {
		p.scratch.put(copied)
	}
	fews.put(w)
}

// gather makes a's rows adjacent along k.
func (w *fewTask) gather(to []float32) {
	for i := range w.rows {
		for k := range w.k {
			to[i*w.k+k] = w.a[i*w.ai+k*w.ak]
		}
	}
	w.a, w.ai, w.ak = to, w.k, 1
}

func (w *fewTask) do(lo, hi int) {
	rows, n0, n1, k := C.int64_t(w.rows), C.int64_t(lo), C.int64_t(hi), C.int64_t(w.k)
	add := C.int64_t(0)
	if w.accumulate {
		add = 1
	}
	if w.kind == axpy {
		C.axpys(rows, n0, n1, k, floats(w.a), C.int64_t(w.ai), C.int64_t(w.ak), floats(w.b), C.int64_t(w.bk),
			floats(w.y), C.int64_t(w.yi), add)
	} else {
		C.dots(rows, n0, n1, k, floats(w.a), C.int64_t(w.ai), floats(w.b), C.int64_t(w.bj),
			floats(w.y), C.int64_t(w.yi), C.int64_t(w.yj), add)
	}
}
