package move

import (
	"github.com/gomlx/gomlx/pkg/core/dtypes"
)

// Indices has the integers of an index operand of any integer type.
type Indices struct {
	dtype dtypes.DType
	data  []byte
}

// NewIndices returns memory as integers of an integer dtype.
func NewIndices(dtype dtypes.DType, data []byte) Indices {
	must(dtype.IsInt(), "index type %s", dtype)
	return Indices{dtype, data}
}

// At returns index i.
func (x Indices) At(i int) int {
	switch x.dtype {
	case dtypes.Int32:
		return int(Of[int32](x.data)[i])
	case dtypes.Int64:
		return int(Of[int64](x.data)[i])
	case dtypes.Uint8:
		return int(x.data[i])
	case dtypes.Int8:
		return int(int8(x.data[i]))
	case dtypes.Uint16:
		return int(Of[uint16](x.data)[i])
	case dtypes.Int16:
		return int(Of[int16](x.data)[i])
	case dtypes.Uint32:
		return int(Of[uint32](x.data)[i])
	}
	return int(min(Of[uint64](x.data)[i], 1<<62)) // beyond any axis
}

// indexed is the common part of gather and scatter: index vectors, read from an index operand, that place a window in an operand.
type indexed struct {
	batch        []int // shape of the index operand without the axis of the index vectors
	batchStep    []int // elements from one index vector to the next, along every batch axis
	vector, step int   // components of an index vector, and elements from one component to the next
	axes         []int // the operand axis along which every component moves
	free         []int // maximum start of the window along that axis
	stride       []int // bytes between indices of that axis
}

func newIndexed(size int, operand, indices []int, vectorAxis int, axes, window []int) indexed {
	x := indexed{vector: 1, step: 1, axes: axes}
	for a, s := range Strides(indices) {
		if a == vectorAxis {
			x.vector, x.step = indices[a], s
			continue
		}
		x.batch = append(x.batch, indices[a])
		x.batchStep = append(x.batchStep, s)
	}
	must(len(axes) == x.vector, "index vectors of %d components for %d axes", x.vector, len(axes))
	strides := Strides(operand)
	for _, a := range axes {
		x.free = append(x.free, operand[a]-window[a])
		x.stride = append(x.stride, strides[a]*size)
	}
	return x
}

// clamped returns the start of the window of the index vector at position at, in bytes, clamped so that the window is inside the operand.
func (x *indexed) clamped(indices Indices, at int) int {
	n := 0
	for k, free := range x.free {
		n += min(max(indices.At(at+k*x.step), 0), free) * x.stride[k]
	}
	return n
}

// Gather collects windows of an operand, one for every index vector.
type Gather struct {
	N     int // index vectors
	Grain int // index vectors per worker that are worth the overhead

	indexed
	dstStep      []int // bytes between indices of every batch axis in the result
	slice        *Copy // one window
	dstSize      int
	run          int // bytes of a window that is contiguous on both sides, or else 0
	operandBytes int
}

// GatherSpec has the parameters of GoMLX's Gather.
type GatherSpec struct {
	IndexVectorAxis    int   // axis of the indices with the components of a vector; equal to their rank if there is none
	OffsetOutputAxes   []int // axes of the result that are in the window
	CollapsedSliceAxes []int // axes of the operand with window size 1 that are not in the result
	StartIndexMap      []int // axis of the operand along which every component moves
	SliceSizes         []int // the window
}

// PlanGather plans a gather of elements of size bytes. A window that reaches beyond the operand is moved inside.
func PlanGather(size int, operand, indices []int, g GatherSpec) *Gather {
	p := &Gather{Grain: 1, indexed: newIndexed(size, operand, indices, g.IndexVectorAxis, g.StartIndexMap, g.SliceSizes)}
	var window, srcStep []int
	for a, s := range Strides(operand) {
		if !contains(g.CollapsedSliceAxes, a) {
			window = append(window, g.SliceSizes[a])
			srcStep = append(srcStep, s)
		}
	}
	must(len(window) == len(g.OffsetOutputAxes), "%d offset axes for a window %v", len(g.OffsetOutputAxes), window)
	out := gatherDims(p.batch, window, g.OffsetOutputAxes)
	var step []int
	for a, s := range Strides(out) {
		if contains(g.OffsetOutputAxes, a) {
			step = append(step, s)
		} else {
			p.dstStep = append(p.dstStep, s*size)
		}
	}
	p.dstSize, p.operandBytes = Size(out)*size, Size(operand)*size
	if p.dstSize == 0 {
		return p
	}
	p.slice = PlanCopy(size, window, step, srcStep, 0, 0)
	bytes := Size(window) * size
	p.N, p.Grain = Size(p.batch), grain(bytes)
	if p.slice.dstHigh == bytes && p.slice.srcHigh == bytes && p.slice.straight() {
		p.run = bytes
	}
	return p
}

// gatherDims returns the shape of a gather: the axes of the window at offsetAxes, and the batch axes between them in order.
func gatherDims(batch, window, offsetAxes []int) []int {
	out := make([]int, len(batch)+len(window))
	for a, b, w := 0, 0, 0; a < len(out); a++ {
		if contains(offsetAxes, a) {
			out[a] = window[w]
			w++
		} else {
			out[a] = batch[b]
			b++
		}
	}
	return out
}

// straight reports whether a copy is one run in the same order on both sides.
func (c *Copy) straight() bool {
	cols := c.inner.cols
	return len(c.axes) == 0 && c.inner.rows.n == 1 && (cols.n == 1 || cols.dst == cols.src && cols.dst == c.inner.width)
}

// Run gathers the windows of index vectors lo to hi.
func (p *Gather) Run(dst, operand []byte, indices Indices, lo, hi int) {
	if hi = min(hi, p.N); lo >= hi {
		return
	}
	must(len(dst) >= p.dstSize && len(operand) >= p.operandBytes, "gather from %d bytes to %d", len(operand), len(dst))
	at := newOdometer(lo, p.batch, p.batchStep, p.dstStep)
	for range hi - lo {
		from, to := p.clamped(indices, at.at[0]), at.at[1]
		if p.run > 0 {
			copy(dst[to:to+p.run], operand[from:from+p.run])
		} else {
			p.slice.RunAt(dst, operand, to, from, 0, p.slice.N)
		}
		at.next()
	}
}
