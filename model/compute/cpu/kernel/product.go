package kernel

/*
#cgo CFLAGS: -O3 -Wno-psabi
#cgo noescape pack_rows
#cgo nocallback pack_rows
#cgo noescape pack_cols
#cgo nocallback pack_cols
#cgo noescape block_rows
#cgo nocallback block_rows
#cgo noescape block_cols
#cgo nocallback block_cols
#cgo noescape axpys
#cgo nocallback axpys
#cgo noescape dots
#cgo nocallback dots
#cgo noescape half_pack_rows
#cgo nocallback half_pack_rows
#cgo noescape half_pack_cols
#cgo nocallback half_pack_cols
#cgo noescape half_block_rows
#cgo nocallback half_block_rows
#cgo noescape half_block_cols
#cgo nocallback half_block_cols
#include "half.h"
*/
import "C"

import (
	"cmp"
	"fmt"
	"slices"
	"time"
	"unsafe"
)

// blockK and halfBlock are the lengths of the contraction in a packed panel, of float32 and of bfloat16.
const (
	blockK    = C.BLOCK_K
	halfBlock = C.HALF_BLOCK
)

// packedLimit is the maximum number of floats of one operand that are packed at a time (16 MiB).
const packedLimit = 4 << 20

// serialFlops is the work below which a second thread costs more than it gains: about 2 µs of one core.
const serialFlops = 200_000

// sets are the instruction sets for which the kernels are compiled, from the weakest to the strongest.
var sets = [...]string{"plain", "avx2", "avx512"}

// selectSet makes the kernels use another instruction set, for tests, and returns the set in effect.
func selectSet(set int) int { return min(int(C.select_set(C.int(set))), selectProgramSet(set)) }

// axis is one digit of a product's index: its size, and what a step adds to the offsets in A, B and C. In a convolution,
// a step also moves the position in spatial dimension dim by move pixels; dim is -1 if it does not.
type axis struct {
	size      int
	a, b, c   int
	dim, move int
}

// product is a contraction in the form that the C kernels read.
type product struct {
	c       C.product
	swapped bool // c is the transposed product: its A is the caller's B
}

// operandBase is the start of an operand and, for patches of an image, the position there and the image's extent.
type operandBase struct {
	offset    int
	pos, size [3]int // size -1: no bounds in that dimension
}

// unbounded returns the base of an operand without padding.
func unbounded(offset int) operandBase { return operandBase{offset, [3]int{}, [3]int{-1, -1, -1}} }

// set describes the product over axes m, n and k, with A read from a; the kernel's side B has no bounds. swap describes the
// transposed product instead: the operands and the roles of m and n are exchanged, and C stays the same.
func (q *product) set(m, n, k []axis, a, b operandBase, cOffset int, swap bool) error {
	c := &q.c
	c.m, c.n, c.k = C.int64_t(sizes(m)), C.int64_t(sizes(n)), C.int64_t(sizes(k))
	c.cbase, q.swapped = C.int64_t(cOffset), swap
	left, right, rows, cols := &c.a, &c.b, &c.cm, &c.cn
	if swap {
		c.m, c.n = c.n, c.m
		left, right, rows, cols = right, left, cols, rows
	}
	q.halve(halfNone, 1)
	return cmp.Or(
		setOperand(left, m, k, a, func(x axis) int { return x.a }),
		setOperand(right, n, k, b, func(x axis) int { return x.b }),
		setDigits(rows, m, false, func(x axis) int { return x.c }),
		setDigits(cols, n, false, func(x axis) int { return x.c }))
}

// narrow says which operands are stored as bfloat16.
func (q *product) narrow(stored Stored) {
	if q.swapped {
		stored[0], stored[1] = stored[1], stored[0]
	}
	q.c.a.narrow, q.c.b.narrow = bit(stored[0]), bit(stored[1])
}

func bit(set bool) C.int64_t {
	if set {
		return 1
	}
	return 0
}

// halve makes the kernels of a set multiply operands with that many parts; halfNone makes the float32 kernels multiply again.
func (q *product) halve(set, parts int) {
	most, unit := int(C.tile_rows()), 1
	if set != halfNone {
		most, unit = int(C.half_rows(C.int(set))), int(C.half_unit(C.int(set)))
	}
	q.c.half, q.c.parts = C.int64_t(set), C.int64_t(parts)
	q.c.height = C.int64_t(roundUp(equally(int(q.c.m), most), unit))
}

// equally returns the size of parts of n, each at most a size, that are as few as possible and as equal as possible.
func equally(n, most int) int {
	parts := max(divideUp(n, most), 1)
	return max(divideUp(n, parts), 1)
}

func setOperand(o *C.operand, x, k []axis, base operandBase, offset func(axis) int) error {
	o.base, o.bounded, o.narrow = C.int64_t(base.offset), 0, 0
	for d := range base.size {
		o.pos[d], o.size[d] = C.int64_t(base.pos[d]), C.int64_t(base.size[d])
		if base.size[d] >= 0 {
			o.bounded = 1
		}
	}
	spatial := o.bounded == 1
	return cmp.Or(setDigits(&o.x, x, spatial, offset), setDigits(&o.k, k, spatial, offset))
}

// setDigits writes axes as digits, without those of size one; neighbors are joined if one step of the outer axis equals
// the whole range of the inner one.
func setDigits(to *C.axes, list []axis, spatial bool, offset func(axis) int) error {
	to.digits = 0
	for _, x := range list {
		if x.size == 1 {
			continue
		}
		d := C.digit{n: C.int64_t(x.size), off: C.int64_t(offset(x)), per: 1, dim: -1}
		if spatial && x.dim >= 0 {
			d.dim, d.step = C.int32_t(x.dim), C.int64_t(x.move)
		}
		if to.digits > 0 && join(&to.d[to.digits-1], d) {
			continue
		}
		if int(to.digits) == len(to.d) {
			return fmt.Errorf("a product's index has more than %d axes that cannot be joined", len(to.d))
		}
		to.d[to.digits] = d
		to.digits++
	}
	if to.digits == 0 {
		to.digits = 1
		to.d[0] = C.digit{n: 1, per: 1, dim: -1}
	}
	return nil
}

// join makes outer and inner one digit if that changes no offset and no position.
func join(outer *C.digit, inner C.digit) bool {
	if outer.dim >= 0 || inner.dim >= 0 || outer.off != inner.off*inner.n {
		return false
	}
	outer.n, outer.off = outer.n*inner.n, inner.off
	return true
}

// joinTaps joins the last two digits of a contraction over (taps, few channels), so that packing reads long
// runs: its position moves once every per = channels values.
func joinTaps(o *C.operand) {
	k := &o.k
	if k.digits < 2 {
		return
	}
	outer, inner := &k.d[k.digits-2], k.d[k.digits-1]
	if inner.dim >= 0 || inner.n >= 16 || outer.dim < 0 || outer.off != inner.off*inner.n {
		return
	}
	outer.n, outer.off, outer.per = outer.n*inner.n, inner.off, inner.n
	k.digits--
}

func sizes(list []axis) int {
	n := 1
	for _, x := range list {
		n *= x.size
	}
	return n
}

// byStride orders axes by the distance of their steps in the operand that offset reads, the largest first.
func byStride(list []axis, offset func(axis) int) {
	slices.SortStableFunc(list, func(x, y axis) int { return cmp.Compare(abs(offset(y)), abs(offset(x))) })
}

func abs(x int) int { return max(x, -x) }

// multiplication is a product that is running on a pool. The smaller operand is packed whole and shared by all threads; the other
// is packed block by block by the thread that uses it.
type multiplication struct {
	pool       *Pool
	meter      *Meter // nil if nothing is measured
	q          *C.product
	a, b, c    []float32
	accumulate bool
	shareB     bool
	half       bool
	rows, cols int // of a tile
	mp, np     int // panels of rows and of columns
	packing    bool
	packed     *scratch
	k0, k1     int
	ms, ns     int // number of parts of the rows and columns
}

var multiplications keep[multiplication]

// multiply computes C (+)= A B on the pool.
func (p *Pool) multiply(q *product, a, b, c []float32, accumulate bool) {
	w := multiplications.get()
	w.run(p, q, a, b, c, accumulate, p.threads)
	multiplications.put(w)
}

// multiplySerially computes C (+)= A B on the calling goroutine.
func (p *Pool) multiplySerially(q *product, a, b, c []float32, accumulate bool) {
	w := multiplications.get()
	w.run(p, q, a, b, c, accumulate, 1)
	multiplications.put(w)
}

func (w *multiplication) run(p *Pool, q *product, a, b, c []float32, accumulate bool, threads int) {
	m, n, k := int(q.c.m), int(q.c.n), int(q.c.k)
	if m == 0 || n == 0 {
		return
	}
	if 2*m*n*k < serialFlops {
		threads = 1
	}
	if q.swapped {
		a, b = b, a
	}
	if w.meter = p.meter.Load(); w.meter != nil {
		w.meter.FLOPs.Add(int64(2 * m * n * k))
	}
	w.pool, w.q, w.a, w.b, w.c, w.accumulate = p, &q.c, a, b, c, accumulate
	w.rows, w.cols, w.half = int(q.c.height), int(C.tile_cols()), q.c.half != halfNone
	if w.half {
		w.cols = C.HALF_COLS
	}
	w.mp, w.np = (m+w.rows-1)/w.rows, (n+w.cols-1)/w.cols
	w.shareB = m >= n
	w.split(threads)
	for w.k0 = 0; w.k0 == 0 || w.k0 < k; w.k0 = w.k1 {
		w.k1 = min(w.k0+w.stretch(), k)
		w.stage(threads)
		if k == 0 {
			return
		}
	}
}

// split chooses the numbers of parts of the rows and columns: the streamed side first, then the shared one.
func (w *multiplication) split(threads int) {
	parts := func(panels, least int) int {
		return min(panels, threads*min(max(panels/(least*threads), 1), chunksPerThread))
	}
	w.ms, w.ns = 1, 1
	if threads == 1 {
		return
	}
	if w.shareB {
		w.ms = parts(w.mp, 8)
		w.ns = min(w.np, (threads+w.ms-1)/w.ms)
		w.ms, w.ns = evenParts(w.mp, w.np, w.ms, w.ns, threads)
	} else {
		w.ns = parts(w.np, 4)
		w.ms = min(w.mp, (threads+w.ns-1)/w.ns)
		w.ns, w.ms = evenParts(w.np, w.mp, w.ns, w.ms, threads)
	}
}

// packedPanel is the cost of packing a panel for a part, in products of panels.
const packedPanel = 0.75

// evenParts returns ms and ns, for m panels that each part packs for itself and n shared panels, or a division into as many parts or
// a few more that finishes sooner because ms and ns give unequal parts, or some threads one part more than others.
func evenParts(m, n, ms, ns, threads int) (int, int) {
	ends := func(ms, ns int) float64 {
		rounds := (ms*ns + threads - 1) / threads
		return float64(rounds*((m+ms-1)/ms)) * (float64((n+ns-1)/ns) + packedPanel)
	}
	best, bestM, bestN := 0.95*ends(ms, ns), ms, ns
	for rounds := 1; rounds <= chunksPerThread; rounds++ {
		for j := 1; j <= min(n, threads); j++ {
			i := min(threads*rounds/j, m)
			if i < 1 {
				continue
			}
			if end := ends(i, j); end < best {
				best, bestM, bestN = end, i, j
			}
		}
	}
	return bestM, bestN
}

// stretch returns how much of the contraction is packed at a time.
func (w *multiplication) stretch() int {
	per := w.np * w.cols
	if !w.shareB {
		per = w.mp * w.rows
	}
	return max(packedLimit/per/w.block(), 1) * w.block()
}

// stage packs and multiplies the values [k0, k1) of the contraction.
func (w *multiplication) stage(threads int) {
	panels, width := w.np, w.cols
	if !w.shareB {
		panels, width = w.mp, w.rows
	}
	w.packed = w.pool.scratch.get(w.floats(panels * width * roundUp(w.k1-w.k0, w.step())))
	w.packing = true
	if threads == 1 {
		w.do(0, panels)
		w.packing = false
		w.do(0, 1)
	} else {
		grain := max(1, 8192/(width*max(w.k1-w.k0, 1)))
		w.pool.run(panels, grain, w)
		w.packing = false
		w.pool.runChunks(w.ms*w.ns, w.ms*w.ns, w)
	}
	w.pool.scratch.put(w.packed)
}

// block returns the length of the contraction in a packed panel.
func (w *multiplication) block() int {
	if w.half {
		return halfBlock
	}
	return blockK
}

// step returns the unit of packed values of k.
func (w *multiplication) step() int {
	if w.half {
		return C.HALF_STEP
	}
	return 1
}

// floats returns the number of floats that n packed elements take.
func (w *multiplication) floats(n int) int {
	if w.half {
		return n / 2 * int(w.q.parts) // panels have an even number of elements
	}
	return n
}

func (w *multiplication) do(lo, hi int) {
	if w.packing {
		w.pack(lo, hi)
		return
	}
	size := C.PART_ROWS * w.block()
	if !w.shareB {
		size = C.WIDE_PANELS * w.block() * w.cols
	}
	room := w.pool.scratch.get(w.floats(size))
	for i := lo; i < hi; i++ {
		w.part(i/w.ns, i%w.ns, room)
	}
	w.pool.scratch.put(room)
}

// pack packs panels [lo, hi) of the shared operand.
func (w *multiplication) pack(lo, hi int) {
	if w.meter != nil {
		began := time.Now()
		defer func() { w.meter.Packed.Add(int64(time.Since(began))) }()
	}
	p0, p1, k0, k1 := C.int64_t(lo), C.int64_t(hi), C.int64_t(w.k0), C.int64_t(w.k1)
	switch {
	case w.half && w.shareB:
		C.half_pack_cols(w.q, floats(w.b), halves(w.packed), p0, p1, C.int64_t(w.np), k0, k1)
	case w.half:
		C.half_pack_rows(w.q, floats(w.a), halves(w.packed), p0, p1, C.int64_t(w.mp), k0, k1)
	case w.shareB:
		C.pack_cols(w.q, floats(w.b), floats(w.packed.data), p0, p1, C.int64_t(w.np), k0, k1)
	default:
		C.pack_rows(w.q, floats(w.a), floats(w.packed.data), p0, p1, C.int64_t(w.mp), k0, k1)
	}
}

// part computes one part of the grid of rows and columns.
func (w *multiplication) part(i, j int, room *scratch) {
	t := C.part{k0: C.int64_t(w.k0), k1: C.int64_t(w.k1)}
	t.m0, t.m1 = C.int64_t(w.mp*i/w.ms*w.rows), min(C.int64_t(w.mp*(i+1)/w.ms*w.rows), w.q.m)
	t.n0, t.n1 = C.int64_t(w.np*j/w.ns*w.cols), min(C.int64_t(w.np*(j+1)/w.ns*w.cols), w.q.n)
	if w.accumulate || w.k0 > 0 {
		t.accumulate = 1
	}
	if w.meter != nil {
		t.measure = 1
	}
	switch {
	case w.half && w.shareB:
		C.half_block_cols(w.q, &t, floats(w.a), halves(w.packed), floats(w.c), halves(room))
	case w.half:
		C.half_block_rows(w.q, &t, halves(w.packed), floats(w.b), floats(w.c), halves(room))
	case w.shareB:
		C.block_cols(w.q, &t, floats(w.a), floats(w.packed.data), floats(w.c), floats(room.data))
	default:
		C.block_rows(w.q, &t, floats(w.packed.data), floats(w.b), floats(w.c), floats(room.data))
	}
	if w.meter != nil {
		w.meter.Packed.Add(int64(t.packing))
	}
}

func floats(s []float32) *C.float { return (*C.float)(unsafe.Pointer(unsafe.SliceData(s))) }

func halves(s *scratch) *C.half { return (*C.half)(unsafe.Pointer(unsafe.SliceData(s.data))) }
