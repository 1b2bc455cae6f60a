package kernel

/*
#cgo noescape reduce_range
#cgo nocallback reduce_range
#include "program.h"
*/
import "C"

import "fmt"

// Reduce reduces x, of shape [outer, r, inner], over its middle axis to y, of shape [outer, inner]:
//
//	y[o, j] = Σ_i x[o, i, j]        or the maximum, or the minimum
//
// With inner 1 it reduces rows, with outer 1 columns. Up to 512 terms are added in single precision, in several sums, and these sums in
// double precision. The result is NaN if any element is NaN.
func (p *Pool) Reduce(kind ReductionKind, outer, r, inner int, x, y []float32) {
	if len(x) < outer*r*inner || len(y) < outer*inner {
		panic(fmt.Sprintf("reduction of [%d, %d, %d]: x holds %d floats, y %d", outer, r, inner, len(x), len(y)))
	}
	if outer == 0 || inner == 0 {
		return
	}
	if r == 0 {
		for i := range y[:outer*inner] {
			y[i] = kind.neutral()
		}
		return
	}
	w := reduceTasks.get()
	w.kind, w.r, w.inner, w.x, w.y = kind, r, inner, x, y
	w.plan(p, outer)
	parts := outer * w.columns * w.splits
	if w.splits == 1 {
		p.run(parts, max(1, splitSize*parts/(outer*r*inner)), w)
	} else {
		partial := p.scratch.get(parts * inner)
		w.y = partial.data
		p.runChunks(parts, parts, w)
		p.join(kind, y, partial.data, outer, w.splits, inner)
		p.scratch.put(partial)
	}
	reduceTasks.put(w)
}

// reduceTask is a running reduction. Its parts are outer indices, each split by columns or by rows.
type reduceTask struct {
	kind            ReductionKind
	r, inner        int
	columns, splits int
	x, y            []float32
}

var reduceTasks keep[reduceTask]

// columnStrip is the minimum number of columns that are reduced together.
const columnStrip = 256

func (w *reduceTask) plan(p *Pool, outer int) {
	w.columns, w.splits = 1, 1
	few := outer < 2*p.threads && p.threads > 1
	if few && w.inner >= 2*columnStrip && w.inner >= w.r {
		w.columns = max(1, min(w.inner/columnStrip, p.threads*chunksPerThread/outer, outer*w.r*w.inner/splitSize))
		return
	}
	w.splits = splits(p, outer, w.r, w.inner)
}

func (w *reduceTask) do(lo, hi int) {
	if w.columns == 1 && w.splits == 1 {
		w.call(lo, hi, 0, w.r, 0, w.inner, w.inner, 0)
		return
	}
	for i := lo; i < hi; i++ {
		if w.columns > 1 {
			o, c := i/w.columns, i%w.columns
			w.call(o, o+1, 0, w.r, w.inner*c/w.columns, w.inner*(c+1)/w.columns, w.inner, 0)
			continue
		}
		o, s := i/w.splits, i%w.splits
		w.call(o, o+1, w.r*s/w.splits, w.r*(s+1)/w.splits, 0, w.inner, w.splits*w.inner, s*w.inner)
	}
}

// call reduces rows [r0, r1) and columns [c0, c1) of the outer indices [o0, o1). Results are stored from offset on, with a distance of
// yOuter between outer indices.
func (w *reduceTask) call(o0, o1, r0, r1, c0, c1, yOuter, offset int) {
	C.reduce_range(C.int64_t(w.kind), floats(w.x), floats(w.y[offset:]), C.int64_t(w.r), C.int64_t(w.inner), C.int64_t(o0), C.int64_t(o1),
		C.int64_t(r0), C.int64_t(r1), C.int64_t(c0), C.int64_t(c1), C.int64_t(yOuter))
}
