package move

import (
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
)

// ScatterSpec has the parameters of GoMLX's scatters.
type ScatterSpec struct {
	IndexVectorAxis          int   // axis of the indices with the components of a vector; equal to their rank if there is none
	UpdateWindowAxes         []int // axes of the updates that are in a window
	InsertedWindowAxes       []int // axes of the operand with window size 1 that the updates do not have
	ScatterAxesToOperandAxes []int // axis of the operand along which every component moves
}

// Scatter combines windows of updates with an array, one for every index vector, in the order of the index vectors. A window
// that reaches beyond the array is skipped.
type Scatter struct {
	N     int // adjacent columns of a window, so that ranges never overlap; 1 if windows cannot be divided like this
	Grain int // columns per worker that are worth the overhead

	indexed
	updStep          []int // bytes between indices of every batch axis in the updates
	window           []int // outer axes of a window
	dstStep, srcStep []int // bytes, of those axes
	row              int   // bytes of a row of a window, contiguous on both sides
	size             int   // bytes of an element
	into             func(dst, values []byte)
	dstBytes, bytes  int // of the array and of the updates
}

// PlanScatter plans a scatter of updates by sum, maximum or minimum into an array of shape operand, which already has the
// operand's values. It returns an error if the type does not support the operation.
func PlanScatter(op Op, dtype dtypes.DType, operand, indices, updates []int, s ScatterSpec) (*Scatter, error) {
	into, err := combine(op, dtype)
	if err != nil {
		return nil, err
	}
	size := dtype.Size()
	window := scatterWindow(operand, updates, s)
	p := &Scatter{
		indexed: newIndexed(size, operand, indices, s.IndexVectorAxis, s.ScatterAxesToOperandAxes, window),
		N:       1, Grain: 1, size: size, row: size, into: into, dstBytes: Size(operand) * size, bytes: Size(updates) * size,
	}
	steps := Strides(updates)
	for a := range updates {
		if !contains(s.UpdateWindowAxes, a) {
			p.updStep = append(p.updStep, steps[a]*size)
		}
	}
	strides, k := Strides(operand), 0
	for a := range operand {
		if contains(s.InsertedWindowAxes, a) {
			continue
		}
		p.window = append(p.window, window[a])
		p.dstStep = append(p.dstStep, strides[a]*size)
		p.srcStep = append(p.srcStep, steps[s.UpdateWindowAxes[k]]*size)
		k++
	}
	p.columns(len(operand) - 1)
	return p, nil
}

// scatterWindow returns the shape of a window in the array.
func scatterWindow(operand, updates []int, s ScatterSpec) []int {
	window, k := make([]int, len(operand)), 0
	for a := range operand {
		window[a] = 1
		if !contains(s.InsertedWindowAxes, a) {
			window[a] = updates[s.UpdateWindowAxes[k]]
			k++
		}
	}
	return window
}

// columns makes the last axis of the window a row if it is contiguous on both sides. Rows can be divided between workers
// if no index moves along that axis, which is axis last of the array.
func (p *Scatter) columns(last int) {
	k := len(p.window) - 1
	if Size(p.window) == 0 || p.bytes == 0 {
		p.N = 0
		return
	}
	if k < 0 || p.dstStep[k] != p.size || p.srcStep[k] != p.size {
		return
	}
	n := p.window[k]
	p.window, p.dstStep, p.srcStep, p.row = p.window[:k], p.dstStep[:k], p.srcStep[:k], n*p.size
	if !contains(p.axes, last) {
		p.N, p.Grain = n, max(16, grain(p.bytes/n))
	}
}

// Run scatters columns lo to hi of every update.
func (p *Scatter) Run(dst []byte, indices Indices, updates []byte, lo, hi int) {
	if hi = min(hi, p.N); lo >= hi {
		return
	}
	must(len(dst) >= p.dstBytes && len(updates) >= p.bytes, "scatter of %d bytes into %d", len(updates), len(dst))
	width := p.row / p.N
	at := newOdometer(0, p.batch, p.batchStep, p.updStep)
	in := newOdometer(0, p.window, p.dstStep, p.srcStep)
	for range Size(p.batch) {
		if to, ok := p.inside(indices, at.at[0]); ok {
			for range Size(p.window) {
				d, s := to+in.at[0], at.at[1]+in.at[1]
				p.into(dst[d+lo*width:d+hi*width], updates[s+lo*width:s+hi*width])
				in.next()
			}
		}
		at.next()
	}
}

// inside returns the start of the window of the index vector at position at, in bytes, and false if it reaches beyond the array.
func (x *indexed) inside(indices Indices, at int) (int, bool) {
	n := 0
	for k, free := range x.free {
		i := indices.At(at + k*x.step)
		if i < 0 || i > free {
			return 0, false
		}
		n += i * x.stride[k]
	}
	return n, true
}

// combine returns the operation of a scatter on memory: it combines dst[i] with values[i].
func combine(op Op, dtype dtypes.DType) (func(dst, values []byte), error) {
	must(op == Sum || op == Max || op == Min, "scatter by %s", op)
	switch dtype {
	case dtypes.Float32:
		return combineReals[float32](op), nil
	case dtypes.Float64:
		return combineReals[float64](op), nil
	case dtypes.Float16, dtypes.BFloat16:
		return combineHalves(op, codecOf(dtype)), nil
	case dtypes.Int8:
		return combineReals[int8](op), nil
	case dtypes.Int16:
		return combineReals[int16](op), nil
	case dtypes.Int32:
		return combineReals[int32](op), nil
	case dtypes.Int64:
		return combineReals[int64](op), nil
	case dtypes.Uint8:
		return combineReals[uint8](op), nil
	case dtypes.Uint16:
		return combineReals[uint16](op), nil
	case dtypes.Uint32:
		return combineReals[uint32](op), nil
	case dtypes.Uint64:
		return combineReals[uint64](op), nil
	case dtypes.Complex64:
		if op == Sum {
			return addComplex[complex64], nil
		}
	case dtypes.Complex128:
		if op == Sum {
			return addComplex[complex128], nil
		}
	}
	return nil, fmt.Errorf("the cpu engine has no scatter by %s of %s", op, dtype)
}

func combineReals[T real](op Op) func(dst, values []byte) {
	return func(dst, values []byte) { zip(op, Of[T](dst), Of[T](values)) }
}

func combineHalves(op Op, c codec) func(dst, values []byte) {
	return func(dst, values []byte) {
		out := Of[uint16](dst)
		for i, b := range Of[uint16](values) {
			v := []float32{c.decode(out[i])}
			zip(op, v, []float32{c.decode(b)})
			out[i] = c.encode(v[0])
		}
	}
}

func addComplex[T complex64 | complex128](dst, values []byte) {
	out := Of[T](dst)
	for i, v := range Of[T](values) {
		out[i] += v
	}
}
