package kernel

/*
#cgo noescape correlate
#cgo nocallback correlate
#cgo noescape correlate_floats
#cgo nocallback correlate_floats
#cgo noescape correlate_join
#cgo nocallback correlate_join
#include "direct.h"
*/
import "C"

// correlation is the gradient for a kernel of a convolution over channels-last images, without packing. Images are staged, and each
// thread sums over some of the images, or over all of them for a part of the result.
type correlation struct {
	q     C.correlated
	size  int // of the result, or of its sums
	flops int
	dense bool // sums are added in the memory of the result

	exchanged bool // x and v change places: v's windows are stacked and multiplied with x
	first     int  // where the first tap's results are, if exchanged
}

const (
	// correlationFloats is the largest result of which each thread keeps its own copy, for a part of the images. For a larger result,
	// each thread computes a part over all images.
	correlationFloats = 1 << 18
	// largestCorrelation is the largest result that is computed this way.
	largestCorrelation = 1 << 23
	// panelTiles is the number of tiles' rows that the channels of images and of what they are multiplied with must have for images to be staged in
	// panels. Tiles over the channels of fewer would be low.
	panelTiles = 2
	// stackFloats is the largest size of a stack.
	stackFloats = 64
)

// planCorrelation plans a convolution as a correlation over its input's batch axis. half is the set that multiplies as bfloat16 of so many
// parts, or halfNone for float32. It returns nil if this is not possible or not faster.
func (c *Conv) planCorrelation(half, parts int) *correlation {
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
	if positions := h * w * s.InChannels; size > correlationFloats/16 && positions < C.POSITIONS/4 || size > correlationFloats && positions < C.POSITIONS {
		return nil // sums would leave the registers too often
	}
	if !dense || size == 0 || size > largestCorrelation || h*w*s.InChannels == 0 || c.out[0]*c.out[1] > 64 || w < 4 || w*n < int(C.tile_cols()) {
		return nil
	}
	tiled := half != halfNone && C.half_strips(C.int(half)) != 0 && C.tile_cols()%16 == 0 && n%16 == 0 && s.Batch%16 == 0 && w <= halfBlock &&
		stripsPay(16, C.HALF_PAIRS, s.Batch, n, parts, c.floatSpeed())
	if !tiled && (half == halfAMX || parts > 1 || half != halfNone && w%2 != 0) {
		return nil
	}
	t := &correlation{size: size, flops: 2 * size * h * w * s.InChannels}
	t.q = C.correlated{
		s: C.staging{h: C.int64_t(s.In[0]), w: C.int64_t(s.In[1]), c: C.int64_t(s.Batch), sy: C.int64_t(s.InStrides.Spatial[0]),
			sx: C.int64_t(s.InStrides.Spatial[1]), batch: C.int64_t(s.InStrides.Channel), narrow: bit(s.Stored[0]),
			y0: C.int64_t(-s.PadLow[0]), x0: C.int64_t(-s.PadLow[1]), columns: C.int64_t((w-1)*s.KernelDilation[1] + c.out[1])},
		h: C.int64_t(h), w: C.int64_t(w), n: C.int64_t(n), vbatch: C.int64_t(h * w * n), vline: C.int64_t(w * n), vcolumn: C.int64_t(n), vnarrow: bit(s.Stored[1]),
		rows: C.int64_t(rows), oh: C.int64_t(c.out[0]), apart: C.int64_t(s.KernelDilation[0]), dilation: C.int64_t(s.KernelDilation[1]),
		oy: C.int64_t(s.OutStrides.Spatial[0]), ox: C.int64_t(s.OutStrides.Spatial[1]), oc: C.int64_t(s.OutStrides.Batch),
		on: C.int64_t(s.OutStrides.Channel), images: C.int64_t(s.InChannels), half: C.int64_t(half), parts: C.int64_t(parts),
	}
	joined := joinedChannels()
	if half != halfNone {
		joined = fewestJoined
	}
	if !tiled && t.stack(joined) {
		return t
	}
	t.q.eights = bit(usesEights(half) && n <= C.FEW_COLS)
	switch t.orient(n, rows); {
	case tiled:
		t.q.tiled, t.q.swapped = 1, 0
		if t.q.on != 1 && t.q.oc == 1 {
			t.q.swapped = 1
		}
	case min(s.Batch, n) >= panelTiles*int(C.tile_rows()):
		t.q.panels = 1
	}
	if t.sums(); t.large() && t.q.panels+t.q.tiled == 1 && (t.q.swapped == 0 && t.q.on == 1 || t.q.swapped == 1 && t.q.oc == 1) {
		t.dense = true
		t.q.sline, t.q.sposition, t.q.srow = t.q.oy, t.q.ox, t.q.oc
		if t.q.swapped == 1 {
			t.q.srow = t.q.on
		}
	}
	return t
}

// stack stacks the windows of an operand with few channels, if that is possible and faster: if the other one has at least joined channels, in the case that they
// change places.
func (w *correlation) stack(joined int) bool {
	q, from, exchanged, first := w.q, &w.q, false, 0
	taps := q.oh * C.int64_t(w.taps())
	if int(max(q.s.c, q.n))*stackFloats > correlationFloats {
		return false // threads would not have their own sums
	}
	few := func(channels C.int64_t) bool { return channels <= C.FEW_COLS && channels*taps <= stackFloats }
	switch {
	case few(q.s.c) && int(q.n) >= 4*fewestJoined:
	case few(q.n) && int(q.s.c) >= joined && q.apart == 1 && q.dilation == 1:
		// y(i, j) = Σ x(l + i, k + j) v(l, k) = Σ x(l, k) v(l − i, k − j), with the taps in the reverse order
		down, right := q.oh-1, q.rows/q.s.c-1
		q.h, q.w = min(from.s.h, from.s.y0+from.h+down), min(from.s.w, from.s.x0+from.w+right) // positions that no tap reads are left out
		if q.h < 1 || q.w < 1 {
			return false
		}
		q.s = C.staging{h: from.h, w: from.w, c: from.n, sy: from.vline, sx: from.vcolumn, batch: from.vbatch, narrow: from.vnarrow,
			y0: -from.s.y0 - down, x0: -from.s.x0 - right, columns: q.w + right}
		q.n, q.vbatch, q.vline, q.vcolumn, q.vnarrow = from.s.c, from.s.batch, from.s.sy, from.s.sx, from.s.narrow
		q.rows, q.oy, q.ox, q.oc, q.on = (right+1)*q.s.c, -q.oy, -q.ox, q.on, q.oc
		exchanged, first = true, int(down*from.oy+right*from.ox)
	default:
		return false
	}
	if q.half != halfNone && q.w%2 != 0 {
		return false
	}
	q.stacked = C.int64_t(roundUp(int(q.oh*q.rows), vectorFloats()))
	w.q, w.size, w.exchanged, w.first = q, int(q.n*q.stacked), exchanged, first
	return true
}

// orient chooses the columns of a tile: for a large result its memory order, otherwise the choice that wastes less of the vectors, or fills two of them, which
// needs fewer loads.
func (w *correlation) orient(n, rows int) {
	if w.large() {
		w.q.swapped = bit(w.q.on != 1 && w.q.oc == 1)
		return
	}
	vector := vectorFloats()
	asRows, asColumns := max(n, 4)*roundUp(rows, vector), rows*roundUp(n, vector)
	w.q.swapped = bit(asRows < asColumns || asRows == asColumns && n <= vector && rows > vector)
}

// sums sets the strides of sums that are stored densely.
func (w *correlation) sums() {
	q := &w.q
	q.sline = q.rows * q.n
	q.srow, q.sposition = q.n, q.s.c*q.n
	if q.swapped == 1 {
		q.srow, q.sposition = q.rows, q.s.c
	}
}

// large reports whether threads share one result.
func (w *correlation) large() bool { return w.size > correlationFloats }

// taps returns the number of positions of an output line, which are the taps of the kernel whose gradient it is.
func (w *correlation) taps() int { return int(w.q.rows / w.q.s.c) }

// panels returns the number of panels of v's channels.
func (w *correlation) panels() int { return divideUp(int(w.q.n), int(C.tile_cols())) }

// correlationTask is a running correlation: parts of the images, and for each of them blocks of output lines and of v's channels.
type correlationTask struct {
	*correlation
	pool                  *Pool
	x, v, y               []float32
	partial               []float32
	parts, lines, columns int
	positions             int // of output lines
	joining               bool
}

var correlationTasks keep[correlationTask]

// run computes the correlation, or returns false if there are too few images for the threads.
func (w *correlation) run(p *Pool, x, v, y []float32) bool {
	images := int(w.q.images)
	if images < p.threads && !w.large() {
		return false
	}
	if m := p.meter.Load(); m != nil {
		m.FLOPs.Add(int64(w.flops))
	}
	if w.exchanged {
		x, v, y = v, x, y[w.first:]
	}
	t := correlationTasks.get()
	*t = correlationTask{correlation: w, pool: p, x: x, v: v, y: y, parts: 1, lines: 1, positions: 1, columns: 1}
	t.split()
	if t.dense && t.parts == 1 {
		t.partial = y
		p.runChunks(t.units(), t.units(), t)
		correlationTasks.put(t)
		return true
	}
	sums := p.scratch.get(t.parts * w.size)
	t.partial = sums.data
	p.runChunks(t.parts*t.units(), t.parts*t.units(), t)
	t.joining = true
	p.run(int(w.q.oh*w.q.rows), max(1, serialFlops/8/(int(w.q.n)*t.parts)), t)
	p.scratch.put(sums)
	correlationTasks.put(t)
	return true
}

// split divides the work among the threads.
func (t *correlationTask) split() {
	threads := t.pool.threads
	switch {
	case t.large():
		panels, taps := t.panels(), t.taps()
		t.lines = int(t.q.oh)
		if shared := int(min(t.q.oh, t.q.apart)); t.q.tiled == 1 && shared*taps*panels >= 2*threads { // lines that tiles stage together
			t.lines = shared
			t.positions = min(taps, divideUp(2*threads, shared))
		}
		t.columns = min(panels, max(1, divideUp(2*threads, t.lines*t.positions)))
	case threads > 1 && t.flops >= serialFlops:
		t.parts = min(int(t.q.images), threads*max(1, min(chunksPerThread, correlationFloats/8/t.size)))
	}
}

func (t *correlationTask) do(lo, hi int) {
	if t.joining {
		C.correlate_join(&t.q, floats(t.partial), C.int64_t(t.parts), floats(t.y), C.int64_t(lo), C.int64_t(hi))
		return
	}
	for i := lo; i < hi; i++ {
		p := t.part(i)
		room := t.pool.scratch.get(int(C.correlate_floats(&t.q, &p)))
		C.correlate(&t.q, &p, floats(t.x), floats(t.v), floats(t.partial[i/t.units()*t.size:]), floats(room.data))
		t.pool.scratch.put(room)
	}
}

// units returns the number of units of a part of the images.
func (t *correlationTask) units() int { return t.lines * t.positions * t.columns }

// part returns unit i of the division.
func (t *correlationTask) part(i int) C.correlation_part {
	images, oh, cols := int(t.q.images), int(t.q.oh), int(C.tile_cols())
	panels, taps := t.panels(), t.taps()
	column, position, line, part := i%t.columns, i/t.columns%t.positions, i/(t.columns*t.positions)%t.lines, i/t.units()
	return C.correlation_part{
		i0: C.int64_t(images * part / t.parts), i1: C.int64_t(images * (part + 1) / t.parts),
		o0: C.int64_t(oh * line / t.lines), o1: C.int64_t(oh * (line + 1) / t.lines),
		d0: C.int64_t(taps * position / t.positions), d1: C.int64_t(taps * (position + 1) / t.positions),
		n0: C.int64_t(panels * column / t.columns * cols), n1: min(C.int64_t(panels*(column+1)/t.columns*cols), t.q.n),
	}
}
