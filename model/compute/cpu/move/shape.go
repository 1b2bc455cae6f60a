package move

import "slices"

// PlanTranspose plans a transposition of elements of size bytes: axis a of the result is axis permutation[a] of the source.
func PlanTranspose(size int, dims, permutation []int) *Copy {
	must(len(dims) == len(permutation), "permutation %v of %d axes", permutation, len(dims))
	strides := Strides(dims)
	out, src := make([]int, len(dims)), make([]int, len(dims))
	for a, p := range permutation {
		out[a], src[a] = dims[p], strides[p]
	}
	return PlanCopy(size, out, Strides(out), src, 0, 0)
}

// PlanBroadcastInDim plans a broadcast: axis a of the source becomes axis axes[a] of the shape out, repeated if its
// dimension is 1 and out's is not; other axes of out repeat the whole source.
func PlanBroadcastInDim(size int, dims, out, axes []int) *Copy {
	must(len(dims) == len(axes), "%d axes for %d dimensions", len(axes), len(dims))
	src := make([]int, len(out))
	for a, s := range Strides(dims) {
		must(dims[a] == 1 || dims[a] == out[axes[a]], "broadcast of %v to %v along %v", dims, out, axes)
		if dims[a] != 1 {
			src[axes[a]] = s
		}
	}
	return PlanCopy(size, out, Strides(out), src, 0, 0)
}

// PlanReverse plans a copy that is reversed along axes.
func PlanReverse(size int, dims, axes []int) *Copy {
	src, offset := Strides(dims), 0
	for _, a := range axes {
		offset += (dims[a] - 1) * src[a]
		src[a] = -src[a]
	}
	return PlanCopy(size, dims, Strides(dims), src, 0, offset)
}

// PlanSlice plans a slice with strides: every strides[a]-th index from starts[a] up to limits[a], exclusive. strides may
// be nil, which is 1 everywhere. [SliceDims] returns the shape of the result.
func PlanSlice(size int, dims, starts, limits, strides []int) *Copy {
	out, src, offset := SliceDims(starts, limits, strides), Strides(dims), 0
	for a := range dims {
		must(starts[a] >= 0 && limits[a] <= dims[a], "slice %d:%d of axis %d of %v", starts[a], limits[a], a, dims)
		offset += starts[a] * src[a]
		if strides != nil {
			src[a] *= strides[a]
		}
	}
	return PlanCopy(size, out, Strides(out), src, 0, offset)
}

// SliceDims returns the shape of a slice.
func SliceDims(starts, limits, strides []int) []int {
	out := make([]int, len(starts))
	for a := range out {
		step := 1
		if strides != nil {
			step = strides[a]
		}
		must(step > 0, "slice with stride %d", step)
		out[a] = max(0, (limits[a]-starts[a]+step-1)/step)
	}
	return out
}

// PlanConcatenate plans the concatenation of sources along an axis, one copy for each. The copies write different parts, so they
// may run in any order or concurrently.
func PlanConcatenate(size, axis int, sources ...[]int) []*Copy {
	out := slices.Clone(sources[0])
	for _, dims := range sources[1:] {
		out[axis] += dims[axis]
	}
	strides, offset := Strides(out), 0
	plans := make([]*Copy, len(sources))
	for k, dims := range sources {
		plans[k] = PlanCopy(size, dims, strides, Strides(dims), offset, 0)
		offset += dims[axis] * strides[axis]
	}
	return plans
}

// DynamicSlice reads a window whose position is given at run time.
type DynamicSlice struct {
	*Copy
	window
}

// PlanDynamicSlice plans a slice of shape sizes out of dims.
func PlanDynamicSlice(size int, dims, sizes []int) *DynamicSlice {
	w := newWindow(size, dims, sizes)
	return &DynamicSlice{PlanCopy(size, sizes, Strides(sizes), Strides(dims), 0, 0), w}
}

// Run copies units lo to hi of the window at starts, which is moved inside the source if it reaches beyond.
func (p *DynamicSlice) Run(dst, src []byte, starts []int, lo, hi int) {
	p.RunAt(dst, src, 0, p.offset(starts), lo, hi)
}

// DynamicUpdate writes a window whose position is given at run time.
type DynamicUpdate struct {
	*Copy
	window
}

// PlanDynamicUpdate plans the writing of an update of shape sizes into an array of shape dims, which already has the
// operand's values.
func PlanDynamicUpdate(size int, dims, sizes []int) *DynamicUpdate {
	w := newWindow(size, dims, sizes)
	return &DynamicUpdate{PlanCopy(size, sizes, Strides(dims), Strides(sizes), 0, 0), w}
}

// Run writes units lo to hi of update at starts, which is moved inside dst if it reaches beyond.
func (p *DynamicUpdate) Run(dst, update []byte, starts []int, lo, hi int) {
	p.RunAt(dst, update, p.offset(starts), 0, lo, hi)
}

// window has the maximum start of a window along each axis of an array, and the bytes of each step.
type window struct{ free, step []int }

func newWindow(size int, dims, sizes []int) window {
	must(len(dims) == len(sizes), "window %v of %v", sizes, dims)
	w := window{make([]int, len(dims)), Strides(dims)}
	for a := range dims {
		w.free[a] = dims[a] - sizes[a]
		must(w.free[a] >= 0, "window %v of %v", sizes, dims)
		w.step[a] *= size
	}
	return w
}

// offset returns the start of a window, in bytes; starts[a] is clamped to [0, dims[a] - sizes[a]].
func (w window) offset(starts []int) int {
	n := 0
	for a, s := range starts {
		n += min(max(s, 0), w.free[a]) * w.step[a]
	}
	return n
}

// BitcastDims returns the shape of the same memory read as elements of another size: a last axis is added if elements become
// smaller, and removed if they become larger.
func BitcastDims(dims []int, from, to int) []int {
	switch {
	case from > to:
		return append(slices.Clone(dims), from/to)
	case from < to:
		k := len(dims) - 1
		must(k >= 0 && dims[k] == to/from, "bitcast of %v from %d to %d bytes", dims, from, to)
		return slices.Clone(dims[:k])
	}
	return slices.Clone(dims)
}
