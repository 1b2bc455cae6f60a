package move

import (
	"cmp"
	"slices"
	"unsafe"
)

// Copy is a strided copy, the common primitive of slice, reverse, transpose and broadcast: for every index i of its shape
//
//	dst[dstOffset + Σ i_a·dst_a] = src[srcOffset + Σ i_a·src_a]
//
// Use [PlanCopy] or the functions based on it to plan one.
type Copy struct {
	N     int // units of work: elements, or rows of tiles if axes are swapped; 0 if there is nothing to copy
	Grain int // units per worker that are worth the overhead

	axes             []axis // outer axes, slowest first
	inner            plane  // the two axes over which the kernel loops
	units            int    // of one plane
	dstOff, srcOff   int    // bytes: offset of index zero
	dstLow, dstHigh  int    // bytes: the accessed range [low, high)
	srcLow, srcHigh  int
	dims             []int // of axes
	dstStep, srcStep []int // of axes
}

// axis is one axis of a copy: its dimension and its strides in bytes.
type axis struct{ n, dst, src int }

// plane is the two innermost axes of a copy, and the loop over a range of their units.
type plane struct {
	rows, cols axis
	width      int // bytes of an element
	walk       func(p *plane, dst, src unsafe.Pointer, lo, hi int)
}

// PlanCopy plans a copy of elements of size bytes (1, 2, 4, 8 or 16). Strides and offsets count elements; a source stride
// may be 0 (broadcast) or negative (reverse), a destination stride may be negative. No element of dst may be written twice.
func PlanCopy(size int, dims, dst, src []int, dstOffset, srcOffset int) *Copy {
	must(size == 1 || size == 2 || size == 4 || size == 8 || size == 16, "elements of %d bytes", size)
	must(len(dims) == len(dst) && len(dims) == len(src), "%d dims, %d and %d strides", len(dims), len(dst), len(src))
	c := &Copy{Grain: 1, dstOff: dstOffset * size, srcOff: srcOffset * size}
	if Size(dims) == 0 {
		return c
	}
	axes := make([]axis, 0, len(dims))
	for a, n := range dims {
		must(n > 0, "dimension %d of axis %d", n, a)
		if n > 1 {
			must(dst[a] != 0, "axis %d of %d elements has stride 0 in the destination", a, n)
			axes = append(axes, axis{n, dst[a] * size, src[a] * size})
		}
	}
	c.reach(axes, size)
	c.lay(c.forward(axes), size)
	return c
}

// reach computes the accessed bytes, which Run checks.
func (c *Copy) reach(axes []axis, size int) {
	c.dstLow, c.dstHigh, c.srcLow, c.srcHigh = c.dstOff, c.dstOff+size, c.srcOff, c.srcOff+size
	for _, a := range axes {
		c.dstLow += min(0, (a.n-1)*a.dst)
		c.dstHigh += max(0, (a.n-1)*a.dst)
		c.srcLow += min(0, (a.n-1)*a.src)
		c.srcHigh += max(0, (a.n-1)*a.src)
	}
}

// forward reverses axes with negative destination strides, sorts by destination stride and merges neighbors.
func (c *Copy) forward(axes []axis) []axis {
	for k := range axes {
		if a := &axes[k]; a.dst < 0 {
			c.dstOff += (a.n - 1) * a.dst
			c.srcOff += (a.n - 1) * a.src
			a.dst, a.src = -a.dst, -a.src
		}
	}
	slices.SortStableFunc(axes, func(a, b axis) int { return cmp.Compare(b.dst, a.dst) })
	merged := axes[:0]
	for _, a := range axes {
		if k := len(merged) - 1; k >= 0 && merged[k].dst == a.n*a.dst && merged[k].src == a.n*a.src {
			merged[k] = axis{merged[k].n * a.n, a.dst, a.src}
			continue
		}
		merged = append(merged, a)
	}
	return merged
}

// lay chooses the element width, the two inner axes and their loop.
func (c *Copy) lay(axes []axis, width int) {
	axes, width = widen(axes, width)
	for len(axes) < 2 {
		axes = append([]axis{{1, 0, 0}}, axes...)
	}
	last := len(axes) - 1
	if j := swapped(axes, width); j >= 0 {
		rows := axes[j]
		copy(axes[j:], axes[j+1:last])
		axes[last-1] = rows
		c.inner = plane{rows: rows, cols: axes[last], width: width, walk: tileWalk(width)}
		c.units = (rows.n + tileRows - 1) / tileRows
		c.Grain = grain(tileRows * axes[last].n * width)
	} else {
		c.inner = plane{rows: axes[last-1], cols: axes[last], width: width}
		c.inner.walk = rowWalk(&c.inner)
		c.units = c.inner.rows.n * c.inner.cols.n
		c.Grain = grain(width)
	}
	c.axes = axes[:last-1]
	c.N = c.units
	for _, a := range c.axes {
		c.N *= a.n
		c.dims = append(c.dims, a.n)
		c.dstStep = append(c.dstStep, a.dst)
		c.srcStep = append(c.srcStep, a.src)
	}
}

// widen turns a short contiguous run into one wide element, such as two float32 that stay together.
func widen(axes []axis, width int) ([]axis, int) {
	k := len(axes) - 1
	if k < 0 || axes[k].dst != width || axes[k].src != width {
		return axes, width
	}
	if run := axes[k].n * width; run == 2 || run == 4 || run == 8 || run == 16 {
		return axes[:k], run
	}
	return axes, width
}

// swapped finds the axis that is contiguous in the source if the last one is contiguous only in the destination: the
// two are transposed in tiles. It returns -1 if there is none.
func swapped(axes []axis, width int) int {
	last := axes[len(axes)-1]
	if last.dst != width || last.src == width || last.src == 0 {
		return -1
	}
	for j, a := range axes[:len(axes)-1] {
		if a.src == width && a.n > 1 {
			return j
		}
	}
	return -1
}

// Run copies the units lo to hi of N.
func (c *Copy) Run(dst, src []byte, lo, hi int) { c.RunAt(dst, src, 0, 0, lo, hi) }

// RunAt is Run with both arrays shifted by offsets in bytes that are not known when planning.
func (c *Copy) RunAt(dst, src []byte, dstBytes, srcBytes, lo, hi int) {
	if hi = min(hi, c.N); lo >= hi {
		return
	}
	must(c.dstLow+dstBytes >= 0 && c.dstHigh+dstBytes <= len(dst), "copy to bytes %d to %d of %d", c.dstLow+dstBytes, c.dstHigh+dstBytes, len(dst))
	must(c.srcLow+srcBytes >= 0 && c.srcHigh+srcBytes <= len(src), "copy from bytes %d to %d of %d", c.srcLow+srcBytes, c.srcHigh+srcBytes, len(src))
	d := unsafe.Add(unsafe.Pointer(unsafe.SliceData(dst)), c.dstOff+dstBytes)
	s := unsafe.Add(unsafe.Pointer(unsafe.SliceData(src)), c.srcOff+srcBytes)
	if len(c.axes) == 0 {
		c.inner.walk(&c.inner, d, s, lo, hi)
		return
	}
	first := lo / c.units
	at := newOdometer(first, c.dims, c.dstStep, c.srcStep)
	for base := first * c.units; base < hi; base += c.units {
		c.inner.walk(&c.inner, unsafe.Add(d, at.at[0]), unsafe.Add(s, at.at[1]), max(lo-base, 0), min(hi-base, c.units))
		at.next()
	}
}
