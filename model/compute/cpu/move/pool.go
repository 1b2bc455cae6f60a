package move

import (
	"github.com/gomlx/gomlx/pkg/core/dtypes"
)

// Windows describes the windows over an array, for every axis: the window's dimension, the distance between windows, the distances
// between the array's elements and between the window's, and the padding at both ends, which no operation reads. Nil means adjacent
// windows (Strides), 1 (dilations) or none (Paddings).
type Windows struct {
	Dims, Strides, BaseDilations, WindowDilations []int
	Paddings                                      [][2]int
}

// axis returns the parameters of one axis.
func (w Windows) axis(a int) (dim, stride, base, dilation, before, after int) {
	dim, stride, base, dilation = 1, 1, 1, 1
	if w.Dims != nil {
		dim, stride = w.Dims[a], w.Dims[a]
	}
	if w.Strides != nil {
		stride = w.Strides[a]
	}
	if w.BaseDilations != nil {
		base = w.BaseDilations[a]
	}
	if w.WindowDilations != nil {
		dilation = w.WindowDilations[a]
	}
	if w.Paddings != nil {
		before, after = w.Paddings[a][0], w.Paddings[a][1]
	}
	must(dim > 0 && stride > 0 && base > 0 && dilation > 0, "window %+v", w)
	return
}

// OutDims returns the number of windows along every axis of dims.
func (w Windows) OutDims(dims []int) []int {
	out := make([]int, len(dims))
	for a, n := range dims {
		dim, stride, base, dilation, before, after := w.axis(a)
		room := before + max(0, (n-1)*base+1) + after
		if span := (dim-1)*dilation + 1; room >= span {
			out[a] = (room-span)/stride + 1
		}
	}
	return out
}

// taps lists, for every window along axis a, the offsets of its elements in the array, for elements with a distance of stride.
func (w Windows) taps(a, n, windows, stride int) [][]int {
	dim, step, base, dilation, before, _ := w.axis(a)
	taps := make([][]int, windows)
	for o := range taps {
		for k := range dim {
			at := o*step + k*dilation - before
			if at >= 0 && at%base == 0 && at/base < n {
				taps[o] = append(taps[o], at/base*stride)
			}
		}
	}
	return taps
}

// whole reports whether windows leave axis a unchanged.
func (w Windows) whole(a int) bool {
	dim, stride, base, _, before, after := w.axis(a)
	return dim == 1 && stride == 1 && base == 1 && before == 0 && after == 0
}

// windowing is the common part of ReduceWindow and SelectAndScatter.
type windowing struct {
	out  []int     // windows along every axis except those in run
	taps [][][]int // of those axes: the offsets of every window's elements
	run  int       // elements of the last axes, which windows leave unchanged
}

func newWindowing(dims []int, w Windows) windowing {
	out, strides := w.OutDims(dims), Strides(dims)
	k := len(dims)
	for k > 0 && w.whole(k-1) {
		k--
	}
	x := windowing{out: out[:k], run: Size(dims[k:])}
	for a := range k {
		x.taps = append(x.taps, w.taps(a, dims[a], out[a], strides[a]))
	}
	return x
}

// visit calls fn with the offset of every array element in window index, in row-major order. count is scratch for
// one number per axis.
func (x *windowing) visit(index, count []int, fn func(at int)) {
	at := 0
	for a, o := range index {
		if len(x.taps[a][o]) == 0 {
			return
		}
		count[a] = 0
		at += x.taps[a][o][0]
	}
	for {
		fn(at)
		a := len(index) - 1
		for ; a >= 0; a-- {
			taps := x.taps[a][index[a]]
			at -= taps[count[a]]
			if count[a]++; count[a] < len(taps) {
				at += taps[count[a]]
				break
			}
			count[a] = 0
			at += taps[0]
		}
		if a < 0 {
			return
		}
	}
}

// ReduceWindow reduces the elements of every window, as in pooling.
type ReduceWindow struct {
	N     int // windows, each of all elements of the last axes that windows leave unchanged
	Grain int // windows per worker that are worth the overhead

	windowing
	op                 Op
	dtype              dtypes.DType
	srcBytes, dstBytes int
}

// PlanReduceWindow plans the reduction of windows over an array of shape dims; the result has shape w.OutDims(dims).
func PlanReduceWindow(op Op, dtype dtypes.DType, dims []int, w Windows) (*ReduceWindow, error) {
	if _, err := newAccumulator(op, dtype, 0); err != nil {
		return nil, err
	}
	size := dtype.Size()
	p := &ReduceWindow{windowing: newWindowing(dims, w), op: op, dtype: dtype}
	p.srcBytes, p.dstBytes = Size(dims)*size, Size(p.out)*p.run*size
	if p.dstBytes > 0 {
		p.N = Size(p.out)
	}
	p.Grain = grain(p.run * size * 4)
	return p, nil
}

// Run writes the results of windows lo to hi.
func (p *ReduceWindow) Run(dst, src []byte, lo, hi int) {
	if hi = min(hi, p.N); lo >= hi {
		return
	}
	must(len(dst) >= p.dstBytes && len(src) >= p.srcBytes, "windows over %d bytes to %d", len(src), len(dst))
	acc, _ := newAccumulator(p.op, p.dtype, p.run)
	size, at, count := p.dtype.Size(), newOdometer(lo, p.out), make([]int, len(p.out))
	row := p.run * size
	for u := lo; u < hi; u++ {
		acc.reset(p.run)
		p.visit(at.index, count, func(k int) { acc.zip(src[k*size : k*size+row]) })
		acc.store(dst[u*row : (u+1)*row])
		at.next()
	}
}

// SelectAndScatter reverses a pooling: every value of the source is added to the element that its window selects.
type SelectAndScatter struct {
	N     int // independent parts of the array: the first axes that windows leave unchanged
	Grain int // parts per worker that are worth the overhead

	windowing
	least   bool
	dtype   dtypes.DType
	size    int // elements of one part of the array
	windows int // of one part
}

// PlanSelectAndScatter plans the scattering of a source of shape w.OutDims(dims) into an array of shape dims. Every window
// selects its largest element (its smallest if least is true), the first of equals in row-major order; a NaN replaces the
// elements before it and is replaced by the one after it, as in XLA. An element that several windows select gets the sum.
func PlanSelectAndScatter(least bool, dtype dtypes.DType, dims []int, w Windows) *SelectAndScatter {
	must(dtype.IsFloat() || dtype.IsInt(), "values of type %s", dtype)
	p := &SelectAndScatter{windowing: newWindowing(dims, w), least: least, dtype: dtype}
	part := 0
	for part < len(p.out) && w.whole(part) {
		part++
	}
	p.size, p.windows = Size(dims[part:]), Size(p.out[part:])
	p.Grain = grain(p.size * dtype.Size() * 4)
	if Size(dims) > 0 {
		p.N = Size(dims[:part])
	}
	if dtype.IsFloat16() {
		p.Grain = max(1, p.N)
	}
	return p
}

// Run writes parts lo to hi of dst: zeros, and the source values at the elements of operand that the windows select.
func (p *SelectAndScatter) Run(dst, operand, source []byte, lo, hi int) {
	if hi = min(hi, p.N); lo >= hi {
		return
	}
	switch p.dtype {
	case dtypes.Float32:
		selectAndScatter(p, Of[float32](dst), Of[float32](operand), Of[float32](source), lo, hi)
	case dtypes.Float64:
		selectAndScatter(p, Of[float64](dst), Of[float64](operand), Of[float64](source), lo, hi)
	case dtypes.Float16, dtypes.BFloat16:
		p.halves(Of[uint16](dst), Of[uint16](operand), Of[uint16](source), lo, hi)
	case dtypes.Int8:
		selectAndScatter(p, Of[int8](dst), Of[int8](operand), Of[int8](source), lo, hi)
	case dtypes.Int16:
		selectAndScatter(p, Of[int16](dst), Of[int16](operand), Of[int16](source), lo, hi)
	case dtypes.Int32:
		selectAndScatter(p, Of[int32](dst), Of[int32](operand), Of[int32](source), lo, hi)
	case dtypes.Int64:
		selectAndScatter(p, Of[int64](dst), Of[int64](operand), Of[int64](source), lo, hi)
	case dtypes.Uint8:
		selectAndScatter(p, dst, operand, source, lo, hi)
	case dtypes.Uint16:
		selectAndScatter(p, Of[uint16](dst), Of[uint16](operand), Of[uint16](source), lo, hi)
	case dtypes.Uint32:
		selectAndScatter(p, Of[uint32](dst), Of[uint32](operand), Of[uint32](source), lo, hi)
	case dtypes.Uint64:
		selectAndScatter(p, Of[uint64](dst), Of[uint64](operand), Of[uint64](source), lo, hi)
	}
}

// halves computes 16-bit floats by way of float32.
func (p *SelectAndScatter) halves(dst, operand, source []uint16, lo, hi int) {
	c := codecOf(p.dtype)
	in, _ := c.widen(make([]float32, len(operand)), operand)
	from, _ := c.widen(make([]float32, len(source)), source)
	out := make([]float32, len(dst))
	selectAndScatter(p, out, in, from, lo, hi)
	for i := lo * p.size; i < hi*p.size; i++ {
		dst[i] = c.encode(out[i])
	}
}

// selectAndScatter is SelectAndScatter.Run for one type.
func selectAndScatter[T real](p *SelectAndScatter, dst, operand, source []T, lo, hi int) {
	clear(dst[lo*p.size : hi*p.size])
	at, count := newOdometer(lo*p.windows, p.out), make([]int, len(p.out))
	for window := lo * p.windows; window < hi*p.windows; window++ {
		for k := range p.run {
			chosen := -1
			p.visit(at.index, count, func(e int) {
				e += k
				if chosen < 0 || !p.least && !(operand[chosen] >= operand[e]) || p.least && !(operand[chosen] <= operand[e]) {
					chosen = e
				}
			})
			if chosen >= 0 {
				dst[chosen] += source[window*p.run+k]
			}
		}
		at.next()
	}
}
