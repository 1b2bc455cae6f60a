package move

import "github.com/gomlx/gomlx/pkg/core/dtypes"

// ArgMinMax finds the index of the smallest or largest value along an axis.
type ArgMinMax struct {
	N     int // bands of results
	Grain int // bands per worker that are worth the overhead

	least       bool
	dtype, out  dtypes.DType
	n, after    int // dimension of the axis; elements after it, between neighbors along the axis
	band, bands int // results of a unit; units of after
	srcElements int
}

// PlanArgMinMax plans the search along one axis of dims, for the smallest value if least is true. Results have the integer type out.
// The first of equal values counts, and the first NaN counts as the smallest and the largest, as in JAX and PyTorch. Along an
// empty axis the result is 0.
func PlanArgMinMax(least bool, dtype, out dtypes.DType, dims []int, axis int) *ArgMinMax {
	must(out.IsInt() && (dtype.IsFloat() || dtype.IsInt()), "index type %s for values of type %s", out, dtype)
	p := &ArgMinMax{least: least, dtype: dtype, out: out, n: dims[axis], after: Size(dims[axis+1:]), srcElements: Size(dims)}
	p.band = max(1, min(bandWidth, p.after))
	p.bands = (p.after + p.band - 1) / p.band
	p.N = Size(dims[:axis]) * p.bands
	p.Grain = grain(p.band * p.n * dtype.Size() * 4)
	return p
}

// Run writes bands lo to hi.
func (p *ArgMinMax) Run(dst, src []byte, lo, hi int) {
	if hi = min(hi, p.N); lo >= hi {
		return
	}
	switch p.dtype {
	case dtypes.Float32:
		argRun(p, dst, Of[float32](src), lo, hi)
	case dtypes.Float64:
		argRun(p, dst, Of[float64](src), lo, hi)
	case dtypes.Float16, dtypes.BFloat16:
		p.halves(dst, Of[uint16](src), lo, hi)
	case dtypes.Int8:
		argRun(p, dst, Of[int8](src), lo, hi)
	case dtypes.Int16:
		argRun(p, dst, Of[int16](src), lo, hi)
	case dtypes.Int32:
		argRun(p, dst, Of[int32](src), lo, hi)
	case dtypes.Int64:
		argRun(p, dst, Of[int64](src), lo, hi)
	case dtypes.Uint8:
		argRun(p, dst, src, lo, hi)
	case dtypes.Uint16:
		argRun(p, dst, Of[uint16](src), lo, hi)
	case dtypes.Uint32:
		argRun(p, dst, Of[uint32](src), lo, hi)
	case dtypes.Uint64:
		argRun(p, dst, Of[uint64](src), lo, hi)
	}
}

// halves computes 16-bit floats by way of float32, one stretch of the first axes at a time.
func (p *ArgMinMax) halves(dst []byte, src []uint16, lo, hi int) {
	c, block := codecOf(p.dtype), p.n*p.after
	wide := make([]float32, block)
	for lo < hi {
		b := lo / p.bands
		end := min(hi, (b+1)*p.bands)
		part, _ := c.widen(wide, src[b*block:(b+1)*block])
		argRun(p, dst[b*p.after*p.out.Size():], part, lo-b*p.bands, end-b*p.bands)
		lo = end
	}
}

// argRun is ArgMinMax.Run for one type.
func argRun[T real](p *ArgMinMax, dst []byte, src []T, lo, hi int) {
	best, where := make([]T, p.band), make([]int, p.band)
	size := p.out.Size()
	for u := lo; u < hi; u++ {
		if p.after == 1 {
			number(p.out, dst[u*size:], argOf(p.least, src[u*p.n:(u+1)*p.n]))
			continue
		}
		block, first := u/p.bands, u%p.bands*p.band
		width := min(p.band, p.after-first)
		clear(where)
		for i := range p.n {
			row := src[(block*p.n+i)*p.after+first:][:width]
			if i == 0 {
				copy(best, row)
			} else {
				better(p.least, best, where, row, i)
			}
		}
		for k, i := range where[:width] {
			number(p.out, dst[(block*p.after+first+k)*size:], i)
		}
	}
}

// better updates the best values and their indices with those of row i.
func better[T real](least bool, best []T, where []int, row []T, i int) {
	for k, v := range row {
		b := best[k]
		if b == b && (v != v || least && v < b || !least && v > b) {
			best[k], where[k] = v, i
		}
	}
}

// argOf returns the index of the smallest or largest of adjacent values.
func argOf[T real](least bool, values []T) int {
	if len(values) == 0 {
		return 0
	}
	at, best := 0, values[0]
	for i, v := range values {
		if least && v < best || !least && v > best {
			at, best = i, v
		} else if v != v {
			return i
		}
	}
	return at
}
