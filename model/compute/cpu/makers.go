//go:build cgo

package cpu

import (
	"github.com/gomlx/gomlx/backends"

	"slotscope/model/compute/cpu/kernel"
	"slotscope/model/compute/cpu/move"
)

func init() {
	for op, mk := range map[backends.OpType]maker{
		backends.OpTypeBroadcastInDim:      makeBroadcast,
		backends.OpTypeTranspose:           makeTranspose,
		backends.OpTypeSlice:               makeSlice,
		backends.OpTypeReverse:             makeReverse,
		backends.OpTypePad:                 makePad,
		backends.OpTypeConcatenate:         makeConcatenate,
		backends.OpTypeIota:                makeIota,
		backends.OpTypeBitcast:             makeBitcast,
		backends.OpTypeGather:              makeGather,
		backends.OpTypeScatterSum:          makeScatter(move.Sum),
		backends.OpTypeScatterMax:          makeScatter(move.Max),
		backends.OpTypeScatterMin:          makeScatter(move.Min),
		backends.OpTypeDynamicSlice:        makeDynamicSlice,
		backends.OpTypeDynamicUpdateSlice:  makeDynamicUpdateSlice,
		backends.OpTypeReduceSum:           makeReduce(move.Sum),
		backends.OpTypeReduceProduct:       makeReduce(move.Product),
		backends.OpTypeReduceMax:           makeReduce(move.Max),
		backends.OpTypeReduceMin:           makeReduce(move.Min),
		backends.OpTypeReduceLogicalAnd:    makeReduce(move.And),
		backends.OpTypeReduceLogicalOr:     makeReduce(move.Or),
		backends.OpTypeReduceLogicalXor:    makeReduce(move.Xor),
		backends.OpTypeReduceBitwiseAnd:    makeReduce(move.And),
		backends.OpTypeReduceBitwiseOr:     makeReduce(move.Or),
		backends.OpTypeReduceBitwiseXor:    makeReduce(move.Xor),
		backends.OpTypeArgMinMax:           makeArgMinMax,
		backends.OpTypeReduceWindow:        makeReduceWindow,
		backends.OpTypeSelectAndScatterMax: makeSelectAndScatter,
		backends.OpTypeSelectAndScatterMin: makeSelectAndScatter,
		backends.OpTypeRNGBitGenerator:     makeRandom,
		backends.OpTypeDotGeneral:          makeDot,
		backends.OpTypeConvGeneral:         makeConv,
	} {
		makers[op] = mk
	}
}

// copyTask runs a planned copy of the first operand.
func copyTask(c *move.Copy) task {
	return task{run: func(pool *kernel.Pool, out, in [][]byte) {
		pool.Run(c.N, c.Grain, func(lo, hi int) { c.Run(out[0], in[0], lo, hi) })
	}}
}

// makeBitcast copies the operand. A result that was only another name of it would be read with its type.
func makeBitcast(*node) task {
	return task{shared: [][2]int{{0, 0}}, run: func(_ *kernel.Pool, out, in [][]byte) { copy(out[0], in[0]) }}
}

// width returns the number of bytes of an element of the node.
func (n *node) width() int { return n.shape.DType.Size() }

// dims returns the dimensions of operand i.
func (n *node) dims(i int) []int { return n.in[i].shape.Dimensions }

func makeBroadcast(n *node) task {
	return copyTask(move.PlanBroadcastInDim(n.width(), n.dims(0), n.shape.Dimensions, n.args.(broadcastArgs)))
}

func makeTranspose(n *node) task {
	return copyTask(move.PlanTranspose(n.width(), n.dims(0), n.args.(transposeArgs)))
}

func makeSlice(n *node) task {
	a := n.args.(sliceArgs)
	return copyTask(move.PlanSlice(n.width(), n.dims(0), a.starts, a.limits, a.strides))
}

func makeReverse(n *node) task {
	return copyTask(move.PlanReverse(n.width(), n.dims(0), n.args.(reverseArgs)))
}

func makePad(n *node) task {
	var axes []move.PadAxis
	for _, a := range n.args.(padArgs) {
		axes = append(axes, move.PadAxis(a))
	}
	p := move.PlanPad(n.width(), n.dims(0), axes)
	return task{run: func(pool *kernel.Pool, out, in [][]byte) {
		pool.Run(p.N, p.Grain, func(lo, hi int) { p.Run(out[0], in[0], in[1], lo, hi) })
	}}
}

func makeConcatenate(n *node) task {
	all := make([][]int, len(n.in))
	for i := range n.in {
		all[i] = n.dims(i)
	}
	copies := move.PlanConcatenate(n.width(), int(n.args.(concatArgs)), all...)
	return task{run: func(pool *kernel.Pool, out, in [][]byte) {
		for i, c := range copies {
			pool.Run(c.N, c.Grain, func(lo, hi int) { c.Run(out[0], in[i], lo, hi) })
		}
	}}
}

func makeIota(n *node) task {
	p := move.PlanIota(numeric(n.shape).DType, n.shape.Dimensions, int(n.args.(iotaArgs)))
	return task{run: func(pool *kernel.Pool, out, in [][]byte) {
		pool.Run(p.N, p.Grain, func(lo, hi int) { p.Run(out[0], lo, hi) })
	}}
}

func makeGather(n *node) task {
	a, indices := n.args.(gatherArgs), n.in[1].shape.DType
	p := move.PlanGather(n.width(), n.dims(0), n.dims(1), move.GatherSpec{
		IndexVectorAxis: a.indexVectorAxis, OffsetOutputAxes: a.offsetAxes, CollapsedSliceAxes: a.collapsedAxes,
		StartIndexMap: a.startIndexMap, SliceSizes: a.sliceSizes,
	})
	return task{run: func(pool *kernel.Pool, out, in [][]byte) {
		at := move.NewIndices(indices, in[1])
		pool.Run(p.N, p.Grain, func(lo, hi int) { p.Run(out[0], in[0], at, lo, hi) })
	}}
}

// starts reads the start indices of a slice from the operands.
func starts(n *node, in [][]byte, first int) (at []int) {
	for i, x := range n.in[first:] {
		indices := move.NewIndices(x.shape.DType, in[first+i])
		for k := range x.shape.Size() {
			at = append(at, indices.At(k))
		}
	}
	return at
}

func makeDynamicSlice(n *node) task {
	p := move.PlanDynamicSlice(n.width(), n.dims(0), n.shape.Dimensions)
	return task{run: func(pool *kernel.Pool, out, in [][]byte) {
		at := starts(n, in, 1)
		pool.Run(p.N, p.Grain, func(lo, hi int) { p.Run(out[0], in[0], at, lo, hi) })
	}}
}

// copyOver copies in to out, unless they are the same memory.
func copyOver(pool *kernel.Pool, out, in []byte) {
	if &out[0] != &in[0] {
		pool.Run(len(in), 1<<16, func(lo, hi int) { copy(out[lo:hi], in[lo:hi]) })
	}
}

func makeDynamicUpdateSlice(n *node) task {
	p := move.PlanDynamicUpdate(n.width(), n.dims(0), n.dims(1))
	return task{
		shared: [][2]int{{0, 0}},
		run: func(pool *kernel.Pool, out, in [][]byte) {
			at := starts(n, in, 2)
			copyOver(pool, out[0], in[0])
			pool.Run(p.N, p.Grain, func(lo, hi int) { p.Run(out[0], in[1], at, lo, hi) })
		},
	}
}

func makeReduce(op move.Op) maker {
	return func(n *node) task {
		p, err := move.PlanReduce(op, n.shape.DType, n.dims(0), n.args.(reduceArgs))
		if err != nil {
			panic(err)
		}
		return task{run: func(pool *kernel.Pool, out, in [][]byte) {
			pool.Run(p.N, p.Grain, func(lo, hi int) { p.Run(out[0], in[0], lo, hi) })
		}}
	}
}

func makeArgMinMax(n *node) task {
	a := n.args.(argArgs)
	p := move.PlanArgMinMax(a.min, numeric(n.in[0].shape).DType, n.shape.DType, n.dims(0), a.axis)
	return task{run: func(pool *kernel.Pool, out, in [][]byte) {
		pool.Run(p.N, p.Grain, func(lo, hi int) { p.Run(out[0], in[0], lo, hi) })
	}}
}

func makeReduceWindow(n *node) task {
	a := n.args.(windowArgs)
	op := map[backends.ReduceOpType]move.Op{backends.ReduceOpSum: move.Sum, backends.ReduceOpProduct: move.Product,
		backends.ReduceOpMax: move.Max, backends.ReduceOpMin: move.Min}[a.reduce]
	p, err := move.PlanReduceWindow(op, n.shape.DType, n.dims(0), move.Windows{Dims: a.window, Strides: a.strides,
		BaseDilations: a.baseDilations, WindowDilations: a.windowDilations, Paddings: a.paddings})
	if err != nil {
		panic(err)
	}
	return task{run: func(pool *kernel.Pool, out, in [][]byte) {
		pool.Run(p.N, p.Grain, func(lo, hi int) { p.Run(out[0], in[0], lo, hi) })
	}}
}

func makeSelectAndScatter(n *node) task {
	a := n.args.(selectArgs)
	p := move.PlanSelectAndScatter(a.min, n.shape.DType, n.dims(0), move.Windows{Dims: a.window, Strides: a.strides, Paddings: a.paddings})
	return task{run: func(pool *kernel.Pool, out, in [][]byte) {
		pool.Run(p.N, p.Grain, func(lo, hi int) { p.Run(out[0], in[0], in[1], lo, hi) })
	}}
}

// makeRandom draws random bits and writes the state afterwards, in place.
func makeRandom(n *node) task {
	return task{run: func(pool *kernel.Pool, out, in [][]byte) {
		state := [3]uint64(move.Of[uint64](in[0]))
		units := move.PhiloxUnits(len(out[1]))
		pool.Run(units, 1024, func(lo, hi int) { move.Philox(state, out[1], lo, hi) })
		next := move.PhiloxNext(state, len(out[1]))
		copy(move.Of[uint64](out[0]), next[:])
	}}
}

func makeScatter(op move.Op) maker {
	return func(n *node) task {
		a, indices := n.args.(scatterArgs), n.in[1].shape.DType
		p, err := move.PlanScatter(op, n.shape.DType, n.dims(0), n.dims(1), n.dims(2), move.ScatterSpec{
			IndexVectorAxis: a.indexVectorAxis, UpdateWindowAxes: a.windowAxes, InsertedWindowAxes: a.insertedAxes,
			ScatterAxesToOperandAxes: a.scatterAxesToOperand,
		})
		if err != nil {
			panic(err)
		}
		return task{
			shared: [][2]int{{0, 0}},
			run: func(pool *kernel.Pool, out, in [][]byte) {
				copyOver(pool, out[0], in[0])
				at := move.NewIndices(indices, in[1])
				pool.Run(p.N, p.Grain, func(lo, hi int) { p.Run(out[0], at, in[2], lo, hi) })
			},
		}
	}
}
