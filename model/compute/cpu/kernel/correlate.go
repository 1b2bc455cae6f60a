package kernel

/*
#cgo noescape correlate
#cgo nocallback correlate
#cgo noescape correlate_join
#cgo nocallback correlate_join
#include "direct.h"
*/
import "C"

// correlation is the gradient for a kernel of a convolution over channels-last images, without packing: every thread adds up
// some of the images, which it stages one by one.
type correlation struct {
	q     C.correlated
	room  int // floats of a staged image
	size  int // of the result
	flops int
}

// correlationFloats is the largest result for which each thread keeps one of its own.
const correlationFloats = 1 << 18

// planCorrelation reads a convolution as a correlation of its input's batch axis, nil where it cannot be or does not pay.
func (c *Conv) planCorrelation() *correlation {
	s := &c.spec
	if len(s.In) != 2 || s.Groups*s.BatchGroups != 1 || s.InStrides.Batch != 1 || s.KernelStrides.Batch != 1 {
		return nil
	}
	h, w, n := s.Kernel[0], s.Kernel[1], s.OutChannels
	for d := range s.In {
		if s.Stride[d] != 1 || s.InDilation[d] != 1 || s.Reverse[d] || s.PadLow[d] < 0 {
			return nil
		}
	}
	dense := s.KernelStrides.Spatial[1] == n && s.KernelStrides.Spatial[0] == w*n && (s.InChannels == 1 || s.KernelStrides.Channel == h*w*n)
	rows, size := c.out[1]*s.Batch, c.out[0]*c.out[1]*s.Batch*n
	if !dense || size == 0 || size > correlationFloats || h*w*s.InChannels == 0 || c.out[0]*c.out[1] > 64 || w < 4 || w*n < int(C.tile_cols()) {
		return nil
	}
	columns := (w-1)*s.KernelDilation[1] + c.out[1]
	pitch := columns * s.Batch
	t := &correlation{size: size, flops: 2 * size * h * w * s.InChannels}
	t.q = C.correlated{
		s: C.staging{h: C.int64_t(s.In[0]), w: C.int64_t(s.In[1]), c: C.int64_t(s.Batch), sy: C.int64_t(s.InStrides.Spatial[0]),
			sx: C.int64_t(s.InStrides.Spatial[1]), sc: 1, batch: C.int64_t(s.InStrides.Channel),
			y0: C.int64_t(-s.PadLow[0]), x0: C.int64_t(-s.PadLow[1]), columns: C.int64_t(columns)},
		h: C.int64_t(h), w: C.int64_t(w), n: C.int64_t(n), vbatch: C.int64_t(h * w * n), vline: C.int64_t(w * n), vcolumn: C.int64_t(n),
		rows: C.int64_t(rows), oh: C.int64_t(c.out[0]),
		line: C.int64_t(s.KernelDilation[0] * pitch), column: C.int64_t(s.KernelDilation[1] * s.Batch), oline: C.int64_t(pitch),
		oy: C.int64_t(s.OutStrides.Spatial[0]), ox: C.int64_t(s.OutStrides.Spatial[1]), oc: C.int64_t(s.OutStrides.Batch),
		on: C.int64_t(s.OutStrides.Channel), c: C.int64_t(s.Batch), images: C.int64_t(s.InChannels),
	}
	vector := vectorFloats()
	if max(n, 4)*roundUp(rows, vector) < rows*roundUp(n, vector) {
		t.q.swapped = 1
	}
	t.room = int(C.staged_floats(&t.q.s, C.int64_t((h-1)*s.KernelDilation[0]+c.out[0])))
	return t
}

// correlationTask is a correlation under way.
type correlationTask struct {
	*correlation
	pool    *Pool
	x, v, y []float32
	partial []float32
	parts   int
	joining bool
}

var correlationTasks keep[correlationTask]

// run computes the correlation; it is false where there are too few images for the threads.
func (w *correlation) run(p *Pool, x, v, y []float32) bool {
	images := int(w.q.images)
	if images < p.threads {
		return false
	}
	parts := min(images, p.threads*max(1, min(chunksPerThread, correlationFloats/8/w.size)))
	if p.threads == 1 || w.flops < serialFlops {
		parts = 1
	}
	if m := p.meter.Load(); m != nil {
		m.FLOPs.Add(int64(w.flops))
	}
	partial := p.scratch.get(parts * w.size)
	t := correlationTasks.get()
	*t = correlationTask{correlation: w, pool: p, x: x, v: v, y: y, partial: partial.data, parts: parts}
	p.runChunks(parts, parts, t)
	t.joining = true
	p.run(int(w.q.oh*w.q.rows), max(1, serialFlops/8/(int(w.q.n)*parts)), t)
	p.scratch.put(partial)
	correlationTasks.put(t)
	return true
}

func (t *correlationTask) do(lo, hi int) {
	if t.joining {
		C.correlate_join(&t.q, floats(t.partial), C.int64_t(t.parts), floats(t.y), C.int64_t(lo), C.int64_t(hi))
		return
	}
	images := int(t.q.images)
	for i := lo; i < hi; i++ {
		room := t.pool.scratch.get(t.room)
		C.correlate(&t.q, floats(t.x), floats(t.v), floats(t.partial[i*t.size:]), floats(room.data),
			C.int64_t(images*i/t.parts), C.int64_t(images*(i+1)/t.parts))
		t.pool.scratch.put(room)
	}
}
