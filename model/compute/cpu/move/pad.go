package move

import "unsafe"

// PadAxis is the padding of one axis: elements before the first, after the last and between neighbors. Start and End may be
// negative, which removes elements.
type PadAxis struct{ Start, End, Interior int }

// dim returns the padded dimension of an axis of n elements.
func (p PadAxis) dim(n int) int { return p.Start + p.End + n + max(0, n-1)*p.Interior }

// place returns which elements [first, first+count) of an axis of n are kept, and the position at of the first of them among
// the out positions, with a distance of step.
func (p PadAxis) place(n, out int) (first, count, at, step int) {
	step = p.Interior + 1
	if p.Start < 0 {
		first = (-p.Start + step - 1) / step
	}
	at = p.Start + first*step
	if first < n && at < out {
		count = min(n-first, (out-at+step-1)/step)
	}
	return first, count, at, step
}

// Pad copies an array into a larger (or smaller) one whose other elements have one value.
type Pad struct {
	N     int // rows of the result: runs along the last padded axis and all axes after it
	Grain int // rows per worker that are worth the overhead

	out              []int // outer axes of the result
	places           []place
	srcStep          []int // bytes between indices of every outer axis in the source
	last             place
	row, elem        int // bytes of a row of dst; of an element of the last padded axis, including all axes after it
	size, srcRow     int // bytes of an element of the array; of a row of src
	srcSize, dstSize int
}

// place is the positions of the elements [first, first+count) of an axis in the result: at, at+step, …
type place struct{ first, count, at, step int }

// index returns the source index of result index i, or -1 if that is padding.
func (p place) index(i int) int {
	i -= p.at
	if i < 0 || i%p.step != 0 || i/p.step >= p.count {
		return -1
	}
	return p.first + i/p.step
}

// PadDims returns the shape of a padded array; axes after those of pads are unchanged. A dimension must not become
// negative.
func PadDims(dims []int, pads []PadAxis) []int {
	out := make([]int, len(dims))
	for a, n := range dims {
		out[a] = n
		if a < len(pads) {
			out[a] = pads[a].dim(n)
		}
		must(out[a] >= 0, "padding %+v of axis %d of %v", pads, a, dims)
	}
	return out
}

// PlanPad plans a padding of elements of size bytes.
func PlanPad(size int, dims []int, pads []PadAxis) *Pad {
	out := PadDims(dims, pads)
	last := 0 // the last padded axis
	for a := range dims {
		if a < len(pads) && pads[a] != (PadAxis{}) {
			last = a
		}
	}
	p := &Pad{Grain: 1, size: size, elem: size, last: place{0, 1, 0, 1}, dstSize: Size(out) * size, srcSize: Size(dims) * size}
	if len(dims) == 0 {
		p.N, p.row = 1, size
		return p
	}
	p.elem *= Size(dims[last+1:])
	p.row, p.srcRow = p.elem*out[last], p.elem*dims[last]
	p.last = placed(dims, out, pads, last)
	p.out = out[:last]
	for a, s := range Strides(dims[:last]) {
		p.places = append(p.places, placed(dims, out, pads, a))
		p.srcStep = append(p.srcStep, s*p.srcRow)
	}
	if p.dstSize > 0 {
		p.N, p.Grain = Size(p.out), grain(p.row)
	}
	return p
}

func placed(dims, out []int, pads []PadAxis, a int) place {
	var pad PadAxis
	if a < len(pads) {
		pad = pads[a]
	}
	first, count, at, step := pad.place(dims[a], out[a])
	return place{first, count, at, step}
}

// Run writes rows lo to hi of the result. value is one element.
func (p *Pad) Run(dst, src, value []byte, lo, hi int) {
	if hi = min(hi, p.N); lo >= hi {
		return
	}
	must(len(dst) >= p.dstSize && len(src) >= p.srcSize && len(value) >= p.size, "pad %d bytes into %d", len(src), len(dst))
	value = value[:p.size]
	at := newOdometer(lo, p.out)
	for r := lo; r < hi; r++ {
		row := dst[r*p.row:][:p.row]
		if from, ok := p.source(at.index); ok {
			p.fillRow(row, src[from:], value)
		} else {
			fill(row, value)
		}
		at.next()
	}
}

// source returns the start, in bytes, of the source row that a row of the result contains, and false if it contains none.
func (p *Pad) source(index []int) (int, bool) {
	from := 0
	for a, i := range index {
		k := p.places[a].index(i)
		if k < 0 {
			return 0, false
		}
		from += k * p.srcStep[a]
	}
	return from, p.last.count > 0
}

// fillRow writes one row with its padding before, between and after the elements.
func (p *Pad) fillRow(row, src, value []byte) {
	src = src[p.last.first*p.elem:]
	begin := p.last.at * p.elem
	if p.last.step == 1 {
		end := begin + p.last.count*p.elem
		fill(row[:begin], value)
		copy(row[begin:end], src)
		fill(row[end:], value)
		return
	}
	fill(row, value)
	plane := plane{rows: axis{1, 0, 0}, cols: axis{p.last.count, p.last.step * p.elem, p.elem}, width: p.elem}
	switch p.elem {
	case 1, 2, 4, 8, 16:
		rowWalk(&plane)(&plane, unsafe.Pointer(&row[begin]), unsafe.Pointer(&src[0]), 0, p.last.count)
	default:
		for k := range p.last.count {
			copy(row[begin+k*plane.cols.dst:][:p.elem], src[k*p.elem:])
		}
	}
}
