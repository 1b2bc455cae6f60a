package kernel

/*
#cgo noescape minimal_correlate
#cgo nocallback minimal_correlate
#cgo noescape add_copies
#cgo nocallback add_copies
#cgo noescape transpose_copies
#cgo nocallback transpose_copies
#cgo noescape gradient_floats
#cgo nocallback gradient_floats
#include "direct.h"
*/
import "C"

import "math"

// gradient is the gradient for a kernel by minimal filtering, of channels-last images: 9 products instead of 16 for the 2 × 2 taps of a
// pair and 2 × 2 positions of v, or 25 instead of 64 for 4 × 4 positions.
type gradient struct {
	q     C.minimal_gradient
	tiles int // of all images
	size  int // of the result
	flops int // of the direct form
	// transposed is whether tiles have the result's columns as rows, and stride is that of the result's taps in each dimension.
	transposed bool
	stride     [2]int
}

// gradientChannels is the smallest number of channels of both operands, in words, for which staging tiles of 2 × 2 positions takes less time than the products
// that are saved. Tests lower it.
var gradientChannels = 32

const (
	// gradientRows and gradientColumns limit the channels of a part, so that its part of the result stays in the caches.
	gradientRows, gradientColumns = 128, 256
	// leastChannels and leastTiles are the smallest numbers of channels and of tiles to which blocks are divided for more threads.
	leastChannels, leastTiles = 32, 64
	// gradientCopies is the largest number of floats of the copies of the result in which parts of the images are summed.
	gradientCopies = 1 << 22
)

// planGradient plans a convolution as the gradient for a kernel by minimal filtering, with a set for bfloat16 or in float32. It returns nil if this is
// not possible or not faster.
func (c *Conv) planGradient(half, parts int) *gradient {
	s := &c.spec
	if len(s.In) != 2 || s.Groups*s.BatchGroups != 1 || !s.filters(half, parts) || s.InStrides.Batch != 1 || s.KernelStrides.Batch != 1 ||
		min(s.Batch, s.OutChannels) < quadChannels {
		return nil
	}
	tile := 4
	if tiles := s.InChannels * s.Kernel[0] * s.Kernel[1] / 16; s.Kernel[0]%4 != 0 || s.Kernel[1]%4 != 0 || tiles < quadTiles {
		if tile = 2; min(s.Batch, s.OutChannels) < unitOf(half)*gradientChannels {
			return nil
		}
	}
	g := &gradient{}
	q := &g.q
	q.half, q.tile = C.int64_t(half), C.int64_t(tile)
	q.x = C.factored{batch: C.int64_t(s.InStrides.Channel), n: C.int64_t(s.Batch), narrow: bit(s.Stored[0]), taps: C.int64_t(tile + 1)}
	q.v = C.factored{batch: C.int64_t(s.KernelStrides.Channel), n: C.int64_t(s.OutChannels), narrow: bit(s.Stored[1]), taps: C.int64_t(tile)}
	for d := range s.In {
		apart := s.KernelDilation[d]
		if s.Stride[d] != 1 || s.InDilation[d] != 1 || s.Reverse[d] || apart > C.MAX_PAIRS || c.out[d] != 2*apart || s.Kernel[d] == 0 || s.Kernel[d]%2 != 0 {
			return nil
		}
		move := C.int64_t(apart)
		q.x.extent[d], q.x.stride[d], q.x.step[d] = C.int64_t(s.In[d]), C.int64_t(s.InStrides.Spatial[d]), C.int64_t(tile)*move
		q.x.apart[d] = move
		q.v.extent[d], q.v.stride[d], q.v.step[d] = C.int64_t(s.Kernel[d]), C.int64_t(s.KernelStrides.Spatial[d]), C.int64_t(tile)
		q.v.apart[d] = 1
		for pair := range apart {
			q.x.first[d][pair] = C.int64_t(pair - s.PadLow[d])
		}
		q.pairs[d] = move
		q.tap[d], q.apart[d] = C.int64_t(s.OutStrides.Spatial[d]), move*C.int64_t(s.OutStrides.Spatial[d])
	}
	q.h, q.w = C.int64_t(s.Kernel[0]/tile), C.int64_t(s.Kernel[1]/tile)
	switch {
	case s.OutStrides.Channel == 1:
		q.srow = C.int64_t(s.OutStrides.Batch)
	case s.OutStrides.Batch == 1:
		q.swapped, q.srow = 1, C.int64_t(s.OutStrides.Channel)
	default:
		return nil
	}
	g.transpose(c.out)
	g.tiles = s.InChannels * int(q.h*q.w)
	g.size = s.Batch * s.OutChannels * c.out[0] * c.out[1]
	g.flops = 2 * g.size * s.InChannels * s.Kernel[0] * s.Kernel[1]
	if c.reach[2] != g.size || tile == 2 && g.tiles < 3*minimalTiles {
		return nil
	}
	return g
}

// transpose makes the channels that are columns of tiles their rows, and the reverse, if that fills vectors clearly better. out has the numbers of taps.
func (w *gradient) transpose(out []int) {
	q := &w.q
	rows, columns := q.x.n, q.v.n
	if q.swapped != 0 {
		rows, columns = columns, rows
	}
	filled := func(n C.int64_t) float64 { return float64(n) / float64(roundUp(int(n), int(C.tile_cols()))) }
	if q.srow != columns || filled(rows) < 1.5*filled(columns) {
		return
	}
	w.transposed, w.stride = true, [2]int{int(q.tap[0]), int(q.tap[1])}
	q.swapped, q.srow = 1-q.swapped, rows
	q.tap = [2]C.int64_t{C.int64_t(out[1]) * rows * columns, rows * columns}
	for d := range q.apart {
		q.apart[d] = q.pairs[d] * q.tap[d]
	}
}

// gradientTask is a running gradient.
type gradientTask struct {
	*gradient
	gradientSplit
	pool    *Pool
	x, v, y []float32
	copies  []float32 // of the result, for parts after the first; for all of them if it is transposed
	joining bool
}

// gradientSplit divides a gradient into units: parts of the images, and for each of them blocks of x's and of v's channels and of pairs of taps.
type gradientSplit struct {
	parts, rows, columns, pairs int
}

func (s gradientSplit) units() int { return s.parts * s.rows * s.columns * s.pairs }

var gradientTasks keep[gradientTask]

func (w *gradient) run(p *Pool, x, v, y []float32) {
	if m := p.meter.Load(); m != nil {
		m.FLOPs.Add(int64(w.flops))
	}
	t := gradientTasks.get()
	*t = gradientTask{gradient: w, gradientSplit: w.split(p.threads), pool: p, x: x, v: v, y: y}
	copies := p.scratch.get(t.copied() * w.size)
	t.copies = copies.data
	units := t.units()
	p.runChunks(units, units, t)
	if t.joining = t.copied() > 0; w.transposed {
		p.run(w.taps(), max(1, serialFlops/8/t.parts*w.taps()/w.size), t)
	} else if t.joining {
		p.run(w.size, max(1, serialFlops/8/t.parts), t)
	}
	p.scratch.put(copies)
	gradientTasks.put(t)
}

// copied returns the number of parts that are summed in copies of the result.
func (t *gradientTask) copied() int {
	if t.transposed {
		return t.parts
	}
	return t.parts - 1
}

// taps returns the number of taps of the kernel.
func (w *gradient) taps() int { return w.size / int(w.q.x.n*w.q.v.n) }

// split returns the division that takes the least time.
func (w *gradient) split(threads int) gradientSplit {
	i, j, pairs := int(w.q.x.n), int(w.q.v.n), int(w.q.pairs[0]*w.q.pairs[1])
	best, least := gradientSplit{}, math.Inf(1)
	for parts := 1; parts == 1 || threads > 1 && parts <= min(2*threads, 1+gradientCopies/w.size, w.tiles/leastTiles); parts *= 2 {
		for rows := (i + gradientRows - 1) / gradientRows; ; rows *= 2 {
			for columns := (j + gradientColumns - 1) / gradientColumns; ; columns *= 2 {
				for n := 1; n <= pairs; n *= 2 {
					s := gradientSplit{parts, rows, columns, n}
					if time := w.time(s, threads); time < least {
						best, least = s, time
					}
				}
				if threads == 1 || j/columns < 2*leastChannels {
					break
				}
			}
			if threads == 1 || i/rows < 2*leastChannels {
				break
			}
		}
	}
	return best
}

// The times to stage a vector, to add one of sums to the taps, and to add one of a copy, in multiplications of vectors.
const stageCost, tapsCost, copyCost = 27, 24, 10

// time returns the assumed time of a division, in multiplications.
func (w *gradient) time(s gradientSplit, threads int) float64 {
	words, i, j, pairs := divideUp(divideUp(w.tiles, s.parts), unitOf(int(w.q.half))), divideUp(int(w.q.x.n), s.rows), divideUp(int(w.q.v.n), s.columns), divideUp(int(w.q.pairs[0]*w.q.pairs[1]), s.pairs)
	rows, columns := i, j
	if w.q.swapped != 0 {
		rows, columns = j, i
	}
	products := pairs * rows * roundUp(columns, int(C.tile_cols()))
	sizes := C.sizes_of(w.q.tile, C.int64_t(vectorFloats()))
	unit := float64(int(sizes.points) * (words*(stageCost*(pairs*i+j)+products) + divideUp(words, int(sizes.words))*tapsCost*products))
	return unit*rounds(s.units(), threads) + copyCost*float64((s.parts-1)*w.size)/float64(threads)
}

func (t *gradientTask) do(lo, hi int) {
	if t.joining && t.transposed {
		t.transposeTaps(lo, hi)
		return
	}
	if t.joining {
		C.add_copies(floats(t.y), floats(t.copies), C.int64_t(t.parts-1), C.int64_t(t.size), C.int64_t(lo), C.int64_t(hi))
		return
	}
	for u := lo; u < hi; u++ {
		pair, column, row, part := u%t.pairs, u/t.pairs%t.columns, u/(t.pairs*t.columns)%t.rows, u/(t.pairs*t.columns*t.rows)
		pairs := int(t.q.pairs[0] * t.q.pairs[1])
		p := C.gradient_part{
			t0: C.int64_t(t.tiles * part / t.parts), t1: C.int64_t(t.tiles * (part + 1) / t.parts),
			i0: C.int64_t(int(t.q.x.n) * row / t.rows), i1: C.int64_t(int(t.q.x.n) * (row + 1) / t.rows),
			j0: C.int64_t(int(t.q.v.n) * column / t.columns), j1: C.int64_t(int(t.q.v.n) * (column + 1) / t.columns),
			pair0: C.int64_t(pairs * pair / t.pairs), pair1: C.int64_t(pairs * (pair + 1) / t.pairs),
		}
		y := t.y
		if part -= t.parts - t.copied(); part >= 0 {
			y = t.copies[part*t.size:]
		}
		room := t.pool.scratch.get(int(C.gradient_floats(&t.q, &p)))
		C.minimal_correlate(&t.q, &p, floats(t.x), floats(t.v), floats(y), floats(room.data))
		t.pool.scratch.put(room)
	}
}

// transposeTaps adds up the copies of taps [lo, hi), which are transposed, in the result.
func (t *gradientTask) transposeTaps(lo, hi int) {
	rows, columns := t.size/t.taps()/int(t.q.srow), int(t.q.srow)
	line := int(t.q.tap[0] / t.q.tap[1])
	for tap := lo; tap < hi; tap++ {
		C.transpose_copies(floats(t.y[tap/line*t.stride[0]+tap%line*t.stride[1]:]), floats(t.copies[tap*rows*columns:]), C.int64_t(t.parts), C.int64_t(t.size),
			C.int64_t(rows), C.int64_t(columns))
	}
}
