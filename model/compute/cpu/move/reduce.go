package move

import "github.com/gomlx/gomlx/pkg/core/dtypes"

// Reduce combines the elements along some axes.
type Reduce struct {
	N     int // results, or bands of results if the last axis is kept
	Grain int // units per worker that are worth the overhead

	op                Op
	dtype             dtypes.DType
	kept, keptStep    []int // outer axes that are kept; elements of the source from one index to the next
	reduced, redStep  []int // outer axes that are reduced
	run               int   // elements of the last axis
	along             bool  // the last axis is reduced; otherwise it is kept
	band, bands       int   // results of a unit, and units of the last axis, if it is kept
	srcBytes, dstSize int
}

// bandWidth is the number of adjacent results that are accumulated together if the last axis is kept.
const bandWidth = 512

// PlanReduce plans a reduction of dims over axes, which may be empty: then every element is its own result. It returns an error if
// the type does not support the operation.
func PlanReduce(op Op, dtype dtypes.DType, dims, axes []int) (*Reduce, error) {
	if _, err := newAccumulator(op, dtype, 0); err != nil {
		return nil, err
	}
	p := &Reduce{op: op, dtype: dtype, run: 1, srcBytes: Size(dims) * dtype.Size()}
	stride := 1
	for a := len(dims) - 1; a >= 0; a-- {
		goes := contains(axes, a)
		must(dims[a] >= 0, "dimension %d of axis %d", dims[a], a)
		switch {
		case stride == 1 && p.run == 1:
			p.run, p.along = dims[a], goes
		case stride == p.run && goes == p.along:
			p.run *= dims[a]
		case goes:
			p.reduced, p.redStep = before(dims[a], p.reduced), before(stride, p.redStep)
		default:
			p.kept, p.keptStep = before(dims[a], p.kept), before(stride, p.keptStep)
		}
		stride *= dims[a]
	}
	p.divide()
	return p, nil
}

// before prepends a value to others.
func before(value int, others []int) []int { return append([]int{value}, others...) }

// divide divides the work into units.
func (p *Reduce) divide() {
	p.band, p.bands = 1, 1
	size := p.dtype.Size()
	p.dstSize = Size(p.kept) * size
	if !p.along {
		p.band = max(1, min(bandWidth, p.run))
		p.bands = (p.run + p.band - 1) / p.band
		p.dstSize *= p.run
	}
	p.N = Size(p.kept) * p.bands
	p.Grain = grain(max(1, p.srcBytes/max(1, p.N)))
}

// Run writes the results of units lo to hi.
func (p *Reduce) Run(dst, src []byte, lo, hi int) {
	if hi = min(hi, p.N); lo >= hi {
		return
	}
	must(len(dst) >= p.dstSize && len(src) >= p.srcBytes, "reduction of %d bytes to %d", len(src), len(dst))
	acc, _ := newAccumulator(p.op, p.dtype, p.band)
	at := newOdometer(lo/p.bands, p.kept, p.keptStep)
	inner := newOdometer(0, p.reduced, p.redStep)
	for u := lo; u < hi; u++ {
		p.unit(acc, &inner, dst, src, u, at.at[0])
		if (u+1)%p.bands == 0 {
			at.next()
		}
	}
}

// unit writes the results of one unit, whose source starts at element from.
func (p *Reduce) unit(acc accumulator, inner *odometer, dst, src []byte, u, from int) {
	size := p.dtype.Size()
	first := u % p.bands * p.band
	n, to, width := p.run, u, 1
	if !p.along {
		n = min(p.band, p.run-first)
		to, width = u/p.bands*p.run+first, n
	}
	acc.reset(width)
	for range Size(p.reduced) {
		begin := (from + first + inner.at[0]) * size
		run := src[begin : begin+n*size]
		if p.along {
			acc.fold(run)
		} else {
			acc.zip(run)
		}
		inner.next()
	}
	acc.store(dst[to*size : (to+width)*size])
}
