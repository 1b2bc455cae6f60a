//go:build cgo

package cpu

import (
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"

	"slotscope/model/compute/cpu/kernel"
	"slotscope/model/compute/cpu/move"
)

// dot is a DotGeneral as batches of matrix products: out[b, i, j] = Σ_k left[b, i, k] · right[b, k, j].
type dot struct {
	batch, rows, cols, sum int
	left, right            side
	operands               kernel.Operands
	stored                 kernel.Stored
}

// side is one operand of a dot: its strides and, if its axes are not in the required order, a copy that reorders them.
type side struct {
	node              *node      // the node whose memory is read
	copy              *move.Copy // nil if the operand is used in place
	bytes             int        // of the copy
	batch, outer, sum int        // strides in elements
}

// newSide finds strides for the three groups of axes, or plans a copy to [batch, outer, sum]. dims and strides describe the order
// in which the memory of from is read.
func newSide(from *node, dims, strides, batch, outer, sum []int) side {
	b, okB := merge(dims, strides, batch)
	o, okO := merge(dims, strides, outer)
	s, okS := merge(dims, strides, sum)
	if okB && okO && okS {
		return side{node: from, batch: b, outer: o, sum: s}
	}
	order := slices.Concat(batch, outer, sum)
	rows, k := move.Size(pick(dims, outer)), move.Size(pick(dims, sum))
	return side{
		node: from, copy: copyInOrder(from.width(), dims, strides, order), bytes: move.Size(pick(dims, order)) * from.width(),
		batch: rows * k, outer: k, sum: 1,
	}
}

// transposed skips transpositions: it returns the node whose memory is read and the strides of n's axes in it.
func transposed(n *node) (from *node, strides []int) {
	axes := upTo(n.shape.Rank())
	for n.op == backends.OpTypeTranspose {
		axes = pick(n.args.(transposeArgs), axes)
		n = n.in[0]
	}
	return n, pick(rowMajor(n.shape.Dimensions), axes)
}

// upTo returns 0, …, n−1.
func upTo(n int) []int {
	v := make([]int, n)
	for i := range v {
		v[i] = i
	}
	return v
}

// copyInOrder plans a copy of an array with the given strides to a row-major array with its axes in the given order.
func copyInOrder(width int, dims, strides, order []int) *move.Copy {
	to := pick(dims, order)
	return move.PlanCopy(width, to, rowMajor(to), pick(strides, order), 0, 0)
}

// merge returns the stride with which the axes, in the order given, can be read as one, or false if there is none.
func merge(dims, strides, axes []int) (stride int, ok bool) {
	stride, n := 1, 0
	for i := len(axes) - 1; i >= 0; i-- {
		d, s := dims[axes[i]], strides[axes[i]]
		switch {
		case d == 1:
		case n == 0:
			stride, n = s, d
		case s == stride*n:
			n *= d
		default:
			return 0, false
		}
	}
	return stride, true
}

func newDot(n *node) *dot {
	if s, ok := n.args.(sumArgs); ok {
		return s.dot()
	}
	a := n.args.(dotArgs)
	l, r := n.in[0].shape, n.in[1].shape
	leftOuter, rightOuter := otherAxes(l.Rank(), a.leftBatch, a.leftSum), otherAxes(r.Rank(), a.rightBatch, a.rightSum)
	left, leftStrides := transposed(n.in[0])
	right, rightStrides := transposed(n.in[1])
	return &dot{
		batch: move.Size(pick(l.Dimensions, a.leftBatch)), rows: move.Size(pick(l.Dimensions, leftOuter)),
		cols: move.Size(pick(r.Dimensions, rightOuter)), sum: move.Size(pick(l.Dimensions, a.leftSum)),
		left:  newSide(left, l.Dimensions, leftStrides, a.leftBatch, leftOuter, a.leftSum),
		right: newSide(right, r.Dimensions, rightStrides, a.rightBatch, rightOuter, a.rightSum),
	}
}

func makeDot(n *node) task { return newDot(n).task(n) }

func (d *dot) task(n *node) task {
	d.operands = operands(n)
	product := d.loop(n.shape.DType)
	var may kernel.Stored
	if n.shape.DType == dtypes.Float32 && d.left.copy == nil && d.right.copy == nil {
		may = narrows(n, d.spec().Narrows())
	}
	return task{
		narrows: may,
		narrow: func(stored kernel.Stored, _ bool) task {
			narrow := *d
			narrow.stored = stored
			return narrow.task(n)
		},
		scratch: []int{d.left.bytes, d.right.bytes},
		reads:   []*node{d.left.node, d.right.node},
		run: func(pool *kernel.Pool, out, in [][]byte) {
			product(pool, out[0], d.left.bring(pool, out[1], in[0]), d.right.bring(pool, out[2], in[1]))
		},
	}
}

// bring returns the operand's memory, reordered in scratch if needed.
func (s *side) bring(pool *kernel.Pool, scratch, in []byte) []byte {
	if s.copy == nil {
		return in
	}
	pool.Run(s.copy.N, s.copy.Grain, func(lo, hi int) { s.copy.Run(scratch, in, lo, hi) })
	return scratch
}

// loop returns the product for a data type.
func (d *dot) loop(dtype dtypes.DType) func(pool *kernel.Pool, out, left, right []byte) {
	switch dtype {
	case dtypes.Int8:
		return products[int8](d)
	case dtypes.Int16:
		return products[int16](d)
	case dtypes.Int32:
		return products[int32](d)
	case dtypes.Int64:
		return products[int64](d)
	case dtypes.Uint8:
		return products[uint8](d)
	case dtypes.Uint16:
		return products[uint16](d)
	case dtypes.Uint32:
		return products[uint32](d)
	case dtypes.Uint64:
		return products[uint64](d)
	case dtypes.Float64:
		return products[float64](d)
	case dtypes.Complex64:
		return products[complex64](d)
	case dtypes.Complex128:
		return products[complex128](d)
	case dtypes.Float32:
		return d.gemm
	}
	return d.half(dtype)
}

// gemm multiplies float32.
func (d *dot) gemm(pool *kernel.Pool, out, left, right []byte) {
	g := d.spec()
	g.A, g.B, g.C = move.Of[float32](left), move.Of[float32](right), move.Of[float32](out)
	pool.Gemm(g)
}

// spec returns the products without their operands.
func (d *dot) spec() kernel.Gemm {
	return kernel.Gemm{
		M: d.rows, N: d.cols, K: d.sum, ARow: d.left.outer, ACol: d.left.sum, BRow: d.right.sum, BCol: d.right.outer, CRow: d.cols,
		Batch: d.batch, ABatch: d.left.batch, BBatch: d.right.batch, CBatch: d.rows * d.cols, Operands: d.operands, Stored: d.stored,
	}
}

// products is the portable product, row by row.
func products[T number | complexNumber](d *dot) func(pool *kernel.Pool, out, left, right []byte) {
	return func(pool *kernel.Pool, out, left, right []byte) {
		o, l, r := move.Of[T](out), move.Of[T](left), move.Of[T](right)
		pool.Run(d.batch*d.rows, max(1, 1<<16/max(1, d.cols*d.sum)), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				row := o[i*d.cols : (i+1)*d.cols]
				clear(row)
				b := i / d.rows
				lb, rb := b*d.left.batch+i%d.rows*d.left.outer, b*d.right.batch
				for k := range d.sum {
					x := l[lb+k*d.left.sum]
					at := rb + k*d.right.sum
					for j := range row {
						row[j] += x * r[at+j*d.right.outer]
					}
				}
			}
		})
	}
}

// half multiplies 16-bit floats as float32.
func (d *dot) half(dtype dtypes.DType) func(pool *kernel.Pool, out, left, right []byte) {
	widen, narrow := convertFn(dtype, dtypes.Float32), convertFn(dtypes.Float32, dtype)
	product := d.loop(dtypes.Float32)
	return func(pool *kernel.Pool, out, left, right []byte) {
		wideOut := newMemory(len(out) * 2)
		product(pool, wideOut[:len(out)*2], wide(widen, left), wide(widen, right))
		narrow(pointer(out), sources(wideOut), len(out)/2)
	}
}
