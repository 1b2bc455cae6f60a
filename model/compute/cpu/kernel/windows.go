package kernel

/*
#cgo noescape convolve_windows
#cgo nocallback convolve_windows
#cgo noescape staged_floats
#cgo nocallback staged_floats
#cgo noescape pack_panels
#cgo nocallback pack_panels
#cgo noescape half_pack_panels
#cgo nocallback half_pack_panels
#cgo noescape pack_few
#cgo nocallback pack_few
#include "direct.h"
*/
import "C"

import (
	"math"
	"slices"
	"unsafe"
)

// windows is a convolution over channels-last images whose input is not packed: images are staged once, with the zeros around
// them, and tiles read windows of them.
type windows struct {
	q       C.windowed
	list    []C.window
	copied  int       // floats of a block of the kernel, if blocks are copied
	kernels []product // how the kernel is packed for each window, or for each of its lines of taps if lines are cut; empty if it is read in place
	packs   []int     // where each of them is in the packed kernel
	first   []phaseTaps
	batch   int
	packed  int // floats of the packed kernel
	rows    int // maximum number of outputs per image of a window
	flops   int
	unit    int      // values of the contraction in a word of a staged image: 1 float, or 2 bfloat16
	pairs   *pairing // of outputs; nil if outputs are computed one by one
}

// planWindows plans the convolution as windows, of the outputs or of pairs of them. half is the set that multiplies operands as bfloat16 of so
// many parts, or halfNone for float32. It returns nil if this is not possible or not faster.
func (c *Conv) planWindows(pairs *pairing, half, parts int) (*windows, error) {
	s := &c.spec
	if len(s.In) != 2 || s.Groups*s.BatchGroups != 1 || s.InStrides.Channel != 1 || s.Batch*s.InChannels*s.OutChannels*c.out[0]*c.out[1] == 0 {
		return nil, nil
	}
	spreads := pairs == nil && c.spreads(half, parts)
	w := &windows{batch: s.Batch, unit: 1, pairs: pairs}
	w.q.parts = C.int64_t(parts)
	if pairs != nil {
		w.q.pairs = 1
	}
	if half != halfNone {
		w.unit, w.q.half = 2, C.int64_t(half)
		few := s.OutChannels <= max(vectorFloats()/2, C.FEW_COLS)
		if s.InChannels%2 != 0 && !c.cuts(half, parts) || few && !spreads && (C.half_strips(C.int(half)) == 0 || s.OutChannels > C.FEW_COLS) || s.kernelLies() && (half == halfAVX512 || parts > 1) {
			return nil, nil
		}
	} else if s.fewRead(s.firstClass()) {
		return nil, nil
	}
	var taps [][2]phaseTaps
	for phase := range s.phases(0) * s.phases(1) {
		y, x := s.tapsOf(0, phase%s.phases(0), c.out[0]), s.tapsOf(1, phase/s.phases(0), c.out[1])
		switch {
		case y.outputs*x.outputs == 0:
			continue
		case y.taps*x.taps == 0 || x.move > 8 || y.taps*x.taps > C.MAX_RUNS || 2*roundUp(x.outputs, group()) > 3*x.outputs:
			return nil, nil
		}
		taps = append(taps, [2]phaseTaps{y, x})
	}
	w.stage(s, taps)
	if half != halfNone && s.InChannels%2 != 0 {
		w.cut(s, taps[0][1])
	} else if half != halfNone && !spreads && !w.stacks(s, half, taps) {
		w.q.side = C.int64_t(c.strip(half))
	}
	w.q.n, w.q.obatch, w.q.ochannel = C.int64_t(s.OutChannels), C.int64_t(s.OutStrides.Batch), C.int64_t(s.OutStrides.Channel)
	if spreads {
		w.spread(s, taps)
	} else if s.OutChannels <= C.FEW_COLS && half == halfNone {
		w.q.few = 1
	}
	for _, t := range taps {
		if err := w.add(s, t[0], t[1]); err != nil {
			return nil, err
		}
	}
	if w.q.spread > 0 {
		kernel, err := spreadKernel(s)
		if err != nil {
			return nil, err
		}
		kernel.c.parts = w.q.parts
		w.kernels, w.packs = append(w.kernels, kernel), append(w.packs, 0)
	}
	if w.q.few == 1 && w.list[0].r[0].n < 8 {
		return nil, nil
	}
	w.q.eights = bit(usesEights(half) && w.q.spread == 0 && w.q.far == 0 && (s.OutChannels == 8 && s.OutStrides.Channel == 1 && w.lines() || w.q.few == 1 && s.InChannels <= 8))
	if w.q.side != 0 {
		if w.q.steps = C.int64_t(w.step()); !stripsPay(int(w.q.side), int(w.q.steps), c.leastOutputs(), s.OutChannels, parts, c.floatSpeed()) {
			w.q.side = 0
		}
	}
	if w.q.side == 0 && (half == halfAMX || parts > 1 || half != halfNone && s.kernelLies()) {
		return nil, nil
	}
	return w, nil
}

// stacks reports whether images are staged as planes, because lines are shorter than a strip is high, and describes them.
func (w *windows) stacks(s *ConvSpec, half int, taps [][2]phaseTaps) bool {
	if C.half_strips(C.int(half)) == 0 || C.tile_cols()%16 != 0 || s.InChannels%(2*C.HALF_PAIRS) != 0 {
		return false
	}
	y, x := taps[0][0], taps[0][1]
	k := C.stack{windows: C.int64_t(x.outputs), move: C.int64_t(x.move), apart: C.int64_t(y.move)}
	lines := 0
	for _, t := range taps {
		if x.outputs >= 16 || t[0].outputs*x.outputs < 16 || t[1].outputs != x.outputs || t[1].move != x.move || t[0].move != y.move {
			return false
		}
		lines = max(lines, t[0].end()-int(w.q.s.y0))
		for tx := range t[1].taps {
			first := C.int64_t(t[1].start+tx*t[1].tapMove) - w.q.s.x0
			if slices.Contains(k.first[:k.planes], first) {
				continue
			}
			if k.planes == C.MAX_PLANES {
				return false
			}
			k.first[k.planes] = first
			k.planes++
		}
	}
	k.lines = C.int64_t(roundUp(lines, y.move))
	k.words = k.planes * k.lines * k.windows * w.q.s.c / 2
	w.q.stack, w.q.side = k, 16
	return true
}

// stackedRuns adds the runs over planes.
func (w *windows) stackedRuns(v *C.window, y, x phaseTaps) {
	k, words := &w.q.stack, w.q.stack.windows*w.q.s.c/2
	v.first, v.line, v.column = 0, words, w.q.s.c/2
	at := 0
	for ty := range y.taps {
		line := C.int64_t(y.start+ty*y.tapMove) - w.q.s.y0
		for tx := range x.taps {
			plane := C.int64_t(slices.Index(k.first[:k.planes], C.int64_t(x.start+tx*x.tapMove)-w.q.s.x0))
			a := (plane*k.apart+line%k.apart)*(k.lines/k.apart) + line/k.apart
			extend(v, int(a*words), at*int(C.tile_cols()), int(w.q.s.c)/2, false, 0)
			at += int(w.q.s.c) / 2
		}
	}
}

// step returns the longest step of tiles, in pairs, of which all runs have a whole number, or 0 if there is none.
func (w *windows) step() int {
	for step := C.HALF_PAIRS; step >= C.HALF_PAIRS/4; step /= 2 {
		whole := true
		for i := range w.list {
			for _, r := range w.list[i].r[:w.list[i].runs] {
				whole = whole && int(r.n)%step == 0
			}
		}
		if whole {
			return step
		}
	}
	return 0
}

// stripGain is the assumed speed of tiles that read staged images, relative to that of float32 windows. Strips of half a tile's height take almost as
// long as whole ones, and so do short steps.
const stripGain, lowStripGain = 6, 4

// stripsPay reports whether strips of so many windows, in steps of so many pairs, compute an image's outputs per class times columns faster than
// float32, which has that speed relative to windows, with a product for each of their parts' terms.
func stripsPay(side, steps, outputs, columns, parts int, floatSpeed float64) bool {
	if steps == 0 {
		return false
	}
	gain := float64(stripGain)
	if side < 16 {
		gain = lowStripGain
	}
	if columns <= C.FEW_COLS { // which fill float32 vectors no better
		gain *= 4
	}
	filled := float64(outputs*columns) / float64(roundUp(outputs, side)*roundUp(columns, C.HALF_COLS))
	short := float64(C.HALF_PAIRS+steps) / (2 * C.HALF_PAIRS)
	return forcedHalf.Load() != 0 || gain*filled*short > halfMargin*float64(2*parts-1)*floatSpeed
}

// leastOutputs returns the smallest number of outputs of an image that use the same taps.
func (c *Conv) leastOutputs() int {
	least := math.MaxInt
	for y := range c.spec.phases(0) {
		for x := range c.spec.phases(1) {
			if n := c.spec.tapsOf(0, y, c.out[0]).outputs * c.spec.tapsOf(1, x, c.out[1]).outputs; n > 0 {
				least = min(least, n)
			}
		}
	}
	return least
}

// strip returns the height of strips in which a set computes the convolution, or 0 if it cannot: strips are of windows of a line, in panels of whole
// tiles of columns.
func (c *Conv) strip(half int) int {
	s, side := &c.spec, 16
	if C.half_strips(C.int(half)) == 0 || C.tile_cols()%16 != 0 {
		return 0
	}
	for phase := range s.phases(1) {
		switch n := s.tapsOf(1, phase, c.out[1]).outputs; {
		case n > 0 && n < 8:
			return 0
		case n > 0 && n < 16:
			side = 8
		}
	}
	return side
}

// lines reports whether the lines of all classes of outputs are long enough to be computed line by line.
func (w *windows) lines() bool {
	for i := range w.list {
		if w.list[i].w < C.LINE {
			return false
		}
	}
	return true
}

// halvesVectors is whether few channels are computed with vectors of 8 floats even if those of 16 are in use. Tests change it.
var halvesVectors = C.halves_vectors() != 0

// usesEights reports whether vectors of 8 floats suit few channels better than those in use, in float32.
func usesEights(half int) bool { return halvesVectors && vectorFloats() == 16 && half == halfNone }

// vectorFloats returns the number of floats in a vector of the instruction set in use.
func vectorFloats() int { return int(C.vector_floats()) }

func group() int { return int(C.tile_rows()) / C.GROUPS }

// stage computes the part of the plane around an image that the windows use.
func (w *windows) stage(s *ConvSpec, taps [][2]phaseTaps) {
	w.q.s = stagingOf(s, taps)
	w.q.pitch = w.q.s.columns * w.q.s.c / C.int64_t(w.unit)
}

// stagingOf returns the part of the plane around an image that classes of outputs use.
func stagingOf(s *ConvSpec, taps [][2]phaseTaps) C.staging {
	var low, high [2]int
	for i, t := range taps {
		for d, f := range t {
			if i == 0 {
				low[d], high[d] = f.start, f.end()
			}
			low[d], high[d] = min(low[d], f.start), max(high[d], f.end())
		}
	}
	return C.staging{h: C.int64_t(s.In[0]), w: C.int64_t(s.In[1]), c: C.int64_t(s.InChannels),
		sy: C.int64_t(s.InStrides.Spatial[0]), sx: C.int64_t(s.InStrides.Spatial[1]), batch: C.int64_t(s.InStrides.Batch), narrow: bit(s.Stored[0]),
		y0: C.int64_t(low[0]), x0: C.int64_t(low[1]), columns: C.int64_t(high[1] - low[1])}
}

// end returns the position after the last output's last tap.
func (f phaseTaps) end() int { return f.start + (f.outputs-1)*f.move + (f.taps-1)*f.tapMove + 1 }

// add appends the window of one class of outputs.
func (w *windows) add(s *ConvSpec, y, x phaseTaps) error {
	channels, pitch := s.InChannels/w.unit, int(w.q.pitch)
	v := C.window{h: C.int64_t(y.outputs), w: C.int64_t(x.outputs),
		first: C.int64_t((y.start-int(w.q.s.y0))*pitch + (x.start-int(w.q.s.x0))*channels),
		line:  C.int64_t(y.move * pitch), column: C.int64_t(x.move * channels),
		out:   C.int64_t(y.first*s.OutStrides.Spatial[0] + x.first*s.OutStrides.Spatial[1]),
		oline: C.int64_t(y.every * s.OutStrides.Spatial[0]), ocolumn: C.int64_t(x.every * s.OutStrides.Spatial[1])}
	k := y.taps * x.taps * s.InChannels
	w.rows = max(w.rows, y.outputs*x.outputs)
	w.flops += 2 * s.Batch * y.outputs * x.outputs * s.OutChannels * k
	w.first = append(w.first, y)
	cols := int(C.tile_cols())
	switch {
	case w.q.spread > 0:
		w.spreadRuns(&v, s, y, x)
		w.list = append(w.list, v)
		return nil
	case w.q.cut.words > 0:
		w.list = append(w.list, v)
		return w.addCut(s, y, x)
	case w.q.few == 1:
		column := w.fewRuns(&v, channels, y, x)
		v.b, v.panel = C.int64_t(w.packed), C.int64_t(column)
		w.packed += s.OutChannels * column
	case w.unit == 1 && w.pairs == nil && s.kernelLies():
		w.q.far = 1
		groups := s.Batch * y.outputs * roundUp(x.outputs, group()) / group()
		if size := s.Kernel[0] * s.Kernel[1] * s.InChannels * s.OutChannels; groups > C.GROUPS && size >= blockKernel {
			if w.q.blocks = 1; vectorFloats() < 16 {
				w.copied = C.TOGETHER * C.BLOCK_K * cols
			}
		}
		w.lyingRuns(&v, s, y, x)
		v.b, v.step, v.panel = C.int64_t(s.tapAt(y, x, 0, 0)), C.int64_t(s.KernelStrides.Channel), C.int64_t(cols)
		w.list = append(w.list, v)
		return nil
	default:
		if w.q.stack.planes > 0 {
			w.stackedRuns(&v, y, x)
		} else {
			w.packedRuns(&v, channels, y, x)
		}
		v.b, v.step, v.panel = C.int64_t(w.packed), C.int64_t(cols), w.q.parts*C.int64_t(k/w.unit*cols)
		w.packed += int(w.q.parts) * roundUp(s.OutChannels, cols) * k / w.unit
	}
	w.list = append(w.list, v)
	return w.addKernel(s, y, x, int(v.b))
}

// addKernel adds the kernel of a class of outputs, which is packed from that position on.
func (w *windows) addKernel(s *ConvSpec, y, x phaseTaps, at int) error {
	kernel, err := kernelOf(s, y, x)
	kernel.c.parts = w.q.parts
	kernel.narrow(s.Stored)
	w.kernels, w.packs = append(w.kernels, kernel), append(w.packs, at)
	return err
}

// cuts reports whether pairs of bfloat16 from lines that are cut into windows are faster than float32. Strips do not read them, and
// a window's values of a line must be adjacent.
func (c *Conv) cuts(half, parts int) bool {
	s := &c.spec
	if half == halfAMX || parts > 1 || s.phases(1) != 1 {
		return false
	}
	x := s.tapsOf(1, 0, c.out[1])
	values := x.taps * s.InChannels
	return x.tapMove == 1 && (forcedHalf.Load() != 0 || float64(values) > halfMargin*float64(divideUp(values, 2))*c.floatSpeed())
}

// cut has lines staged as the words of each window of a class of outputs.
func (w *windows) cut(s *ConvSpec, x phaseTaps) {
	values := x.taps * s.InChannels
	w.q.cut = C.cuts{words: C.int64_t(divideUp(values, 2)), windows: C.int64_t(x.outputs), values: C.int64_t(values), move: C.int64_t(x.move * s.InChannels)}
	w.q.pitch = w.q.cut.words * w.q.cut.windows
}

// addCut adds the runs of the last window, and its kernel, over lines that are cut: a run and a product for each line of taps.
func (w *windows) addCut(s *ConvSpec, y, x phaseTaps) error {
	v, cols, words := &w.list[len(w.list)-1], int(C.tile_cols()), int(w.q.cut.words)
	v.first, v.column = (C.int64_t(y.start)-w.q.s.y0)*w.q.pitch, w.q.cut.words
	v.b, v.step, v.panel = C.int64_t(w.packed), C.int64_t(cols), C.int64_t(words*cols)
	for ty := range y.taps {
		line := y
		line.firstTap, line.taps = y.tap(ty), 1
		extend(v, ty*y.tapMove*int(w.q.pitch), w.packed-int(v.b), words, false, 0)
		if err := w.addKernel(s, line, x, w.packed); err != nil {
			return err
		}
		w.packed += roundUp(s.OutChannels, cols) * words
	}
	return nil
}

// kernelOf returns the product by which the kernel of a class of outputs is packed in panels of output channels.
func kernelOf(s *ConvSpec, y, x phaseTaps) (q product, err error) {
	ks := s.KernelStrides
	n := []axis{{size: s.OutChannels, b: ks.Batch, c: 1, dim: -1}}
	taps := []axis{{size: y.taps, b: y.tapEvery * ks.Spatial[0], dim: -1}, {size: x.taps, b: x.tapEvery * ks.Spatial[1], dim: -1},
		{size: s.InChannels, b: ks.Channel, dim: -1}}
	err = q.set([]axis{{size: 1, dim: -1}}, n, taps, unbounded(0), unbounded(s.tapAt(y, x, 0, 0)), 0, false)
	return q, err
}

// spreadKernel returns the product by which the kernel is packed in panels of all taps' output channels.
func spreadKernel(s *ConvSpec) (q product, err error) {
	ks, n := s.KernelStrides, s.OutChannels
	columns := []axis{{size: s.Kernel[0], b: ks.Spatial[0], c: s.Kernel[1] * n, dim: -1}, {size: s.Kernel[1], b: ks.Spatial[1], c: n, dim: -1},
		{size: n, b: ks.Batch, c: 1, dim: -1}}
	err = q.set([]axis{{size: 1, dim: -1}}, columns, []axis{{size: s.InChannels, b: ks.Channel, dim: -1}}, unbounded(0), unbounded(0), 0, false)
	q.narrow(s.Stored)
	return q, err
}

// tapRuns calls fn for every tap, in order, with the offset of its channels in a window, and whether they follow those of the previous tap.
func (w *windows) tapRuns(channels int, y, x phaseTaps, fn func(ty, tx, a int, follows bool)) {
	end := -1
	for ty := range y.taps {
		for tx := range x.taps {
			a := (ty*y.tapMove*int(w.q.s.columns) + tx*x.tapMove) * channels
			fn(ty, tx, a, a == end)
			end = a + channels
		}
	}
}

// packedRuns adds the runs over a kernel that is packed in panels.
func (w *windows) packedRuns(v *C.window, channels int, y, x phaseTaps) {
	at := 0
	w.tapRuns(channels, y, x, func(_, tx, a int, follows bool) {
		lanes := C.int64_t(0)
		if w.pairs != nil {
			lanes = w.pairs.lanes(x.tap(tx))
		}
		extend(v, a, at*int(C.tile_cols()), channels, follows, lanes)
		at += channels
	})
}

// fewRuns adds the runs over a kernel that is packed by columns, and returns the floats of a column.
func (w *windows) fewRuns(v *C.window, channels int, y, x phaseTaps) int {
	at, vector := 0, vectorFloats()
	w.tapRuns(channels, y, x, func(_, _, a int, follows bool) {
		if !follows {
			at = roundUp(at, vector)
		}
		extend(v, a, at, channels, follows, 0)
		at += channels
	})
	return roundUp(at, vector)
}

// spreads reports whether products of every position with all taps fill vectors, while those of an output do not, in float32 or with a set for bfloat16 that
// has vectors of pairs and would not use strips.
func (c *Conv) spreads(half, parts int) bool {
	s, least := &c.spec, joinedChannels()
	if half != halfNone {
		least = fewestJoined
		if at := s.InStrides; half == halfAMX || parts > 1 || c.strip(half) != 0 || (at.Batch|at.Spatial[0]|at.Spatial[1]|s.InChannels)%2 != 0 {
			return false
		}
	}
	n, vector := s.OutChannels, vectorFloats()
	all := s.Kernel[0] * s.Kernel[1] * n
	return s.Stride[0] == 1 && s.Stride[1] == 1 && n <= max(vector/2, C.FEW_COLS) && s.OutStrides.Channel == 1 && s.InChannels >= least &&
		2*all*roundUp(n, vector) >= 3*n*roundUp(all, vector)
}

// joinedChannels returns the smallest number of the other operand's channels with which the taps of one with few channels are joined in vectors: their products
// then take clearly longer than joining them, and are faster than those of the windows.
func joinedChannels() int {
	if vectorFloats() == 16 && !halvesVectors {
		return fewestJoined
	}
	return 4 * fewestJoined
}

// fewestJoined is joinedChannels with vectors of 16 floats, and with those of pairs of bfloat16. Tests lower it.
var fewestJoined = 8

// spread multiplies every position of the input with all taps.
func (w *windows) spread(s *ConvSpec, taps [][2]phaseTaps) {
	all, cols := s.Kernel[0]*s.Kernel[1]*s.OutChannels, int(C.tile_cols())
	w.q.spread = C.int64_t(roundUp(all, vectorFloats()))
	for _, t := range taps {
		w.q.ring = max(w.q.ring, C.int64_t((t[0].taps-1)*t[0].tapMove+1))
	}
	w.packed = roundUp(all, cols) * s.InChannels / w.unit
}

// spreadRuns adds a run for each tap: n is the number of lines after the first one, and a the first output's products in a line.
func (w *windows) spreadRuns(v *C.window, s *ConvSpec, y, x phaseTaps) {
	v.first = C.int64_t(y.start) - w.q.s.y0
	for ty := range y.taps {
		for tx := range x.taps {
			tap := y.tap(ty)*s.Kernel[1] + x.tap(tx)
			at := (x.start+tx*x.tapMove-int(w.q.s.x0))*int(w.q.spread) + tap*s.OutChannels
			v.r[v.runs] = C.run{n: C.int64_t(ty * y.tapMove), a: C.int64_t(at)}
			v.runs++
		}
	}
}

// lyingRuns adds the runs over a kernel that is read in place.
func (w *windows) lyingRuns(v *C.window, s *ConvSpec, y, x phaseTaps) {
	end := 0
	w.tapRuns(s.InChannels, y, x, func(ty, tx, a int, follows bool) {
		b := s.tapAt(y, x, ty, tx) - s.tapAt(y, x, 0, 0)
		extend(v, a, b, s.InChannels, follows && b == end, 0)
		end = b + s.InChannels*s.KernelStrides.Channel
	})
}

// extend lengthens the last run by n values, or starts a new one.
func extend(v *C.window, a, b, n int, follows bool, lanes C.int64_t) {
	if follows && v.r[v.runs-1].lanes == lanes {
		v.r[v.runs-1].n += C.int64_t(n)
		return
	}
	v.r[v.runs] = C.run{a: C.int64_t(a), b: C.int64_t(b), n: C.int64_t(n), lanes: lanes}
	v.runs++
}

// fewRows is the number of outputs below which a kernel is read in place, since packing would serve few readers.
const fewRows = 96

// blockKernel is the number of values from which a kernel that is read in place does not fit in caches, so that tiles share blocks of it. Tests lower it.
var blockKernel = 1 << 21

// kernelLies reports whether the kernel can be read in place and is read so rarely that packing it is not worthwhile.
func (s *ConvSpec) kernelLies() bool {
	return s.firstClass() <= fewRows && s.kernelRows(vectorFloats())
}

// windowsTask is a running convolution by windows.
type windowsTask struct {
	*windows
	pool                *Pool
	x, kernel, y        []float32
	b                   []float32
	wide, packed        *scratch // the kernel for pairs of outputs, and its panels
	packing             bool
	units, parts, group int // number of parts of the images, of their lines and of the panels
	classes             int // number of parts of the windows
	panels              int
}

var windowsTasks keep[windowsTask]

func (w *windows) run(p *Pool, x, kernel, y []float32) {
	t := w.begin(p, x, kernel, y)
	t.split()
	units := t.units * t.parts * t.classes * t.group
	p.runChunks(units, min(units, max(1, w.flops/serialFlops)), t)
	t.end()
}

// begin packs the kernel where it is not read in place.
func (w *windows) begin(p *Pool, x, kernel, y []float32) *windowsTask {
	t := windowsTasks.get()
	if w.pairs != nil {
		t.wide = p.scratch.get(w.pairs.floats())
		w.pairs.widen(t.wide.data, kernel)
		kernel = t.wide.data
	}
	t.windows, t.pool, t.x, t.kernel, t.y, t.b = w, p, x, kernel, y, kernel
	t.panels = divideUp(max(int(w.q.n), int(w.q.spread)), int(C.tile_cols()))
	if m := p.meter.Load(); m != nil {
		m.FLOPs.Add(int64(w.flops))
	}
	if len(w.kernels) > 0 {
		t.packed = p.scratch.get(w.packed)
		t.b, t.packing = t.packed.data, true
		units, grain := len(w.kernels)*t.panels, max(1, (1<<14)*len(w.kernels)*t.panels/max(w.packed, 1))
		if w.q.few == 1 {
			units, grain = len(w.kernels), len(w.kernels)
		}
		p.run(units, grain, t)
		t.packing = false
	}
	return t
}

// end returns the memory of the packed kernel.
func (t *windowsTask) end() {
	for _, s := range [2]*scratch{t.wide, t.packed} {
		if s != nil {
			t.pool.scratch.put(s)
		}
	}
	windowsTasks.put(t)
}

// unitRows is the number of outputs for which loading a panel of the kernel into the L2 cache is worthwhile; unitFloats is the maximum
// that a unit stages.
const (
	unitRows   = 192
	unitFloats = 1 << 18
)

// split chooses units of whole images if there are enough of them for all threads, otherwise of lines or of columns.
func (t *windowsTask) split() {
	want, floats := t.pool.threads*chunksPerThread, int(t.q.pitch*t.q.parts)*t.lines(0, 1)
	if t.q.stack.planes > 0 {
		floats = int(t.q.stack.words * t.q.parts)
	}
	if t.pool.threads == 1 {
		want = 1
	}
	images := min(t.batch, (unitRows+t.rows-1)/t.rows, max(1, unitFloats/max(floats, 1)))
	t.units = (t.batch + images - 1) / images
	if even := roundUp(t.units, t.pool.threads); even*images*2 <= t.batch*3 {
		t.units = even
	}
	t.classes = 1
	if t.q.spread > 0 && want > 1 { // parts of lines compute some products twice
		want = 2 * t.pool.threads
	}
	if t.q.blocks > 0 && want > 1 { // the rows of blocks should be long
		want, t.classes = 2*t.pool.threads, len(t.list)
	}
	units := t.units
	best := 0.9 * t.divide(units, want)
	for n := units + 1; n <= min(2*units, t.batch) && want > 1; n++ {
		if end := t.divide(n, want); end < best {
			best, units = end, n
		}
	}
	t.divide(units, want)
}

// divide divides the images in so many units, and their lines and panels so that there are about as many parts as wanted. It returns when
// threads finish if all parts take equally long, in outputs; loading a panel takes about as long as panelRows outputs.
func (t *windowsTask) divide(units, want int) float64 {
	const panelRows = 32
	t.units, t.group = units, 1
	t.parts = min(max(want/units, 1), max(t.rows/fewRows, 1), int(t.list[0].h))
	if t.q.stack.planes > 0 {
		t.parts = 1
	}
	if t.q.few == 0 && t.q.spread == 0 {
		t.group = evenGroups(units*t.parts*t.classes, t.panels, want, t.pool.threads)
	}
	threads, rows := t.pool.threads, (t.batch+units-1)/units*((t.rows+t.parts-1)/t.parts)
	rounds := (units*t.parts*t.classes*t.group + threads - 1) / threads
	return float64(rounds * (rows + panelRows) * ((t.panels + t.group - 1) / t.group))
}

// evenGroups returns the number of groups of panels that gives about as many units as wanted and, if all take equally long, lets
// threads finish at about the same time.
func evenGroups(units, panels, want, threads int) (group int) {
	about := min(max(want/units, 1), panels)
	least := math.MaxInt
	for g := min(2*about, panels); 2*g >= about; g-- {
		rounds := (units*g + threads - 1) / threads
		if longest := rounds * ((panels + g - 1) / g); longest < least || longest == least && g >= about {
			group, least = g, longest
		}
	}
	return group
}

// lines returns the number of staged lines that part j of parts uses.
func (t *windowsTask) lines(j, parts int) int {
	lo, hi := t.seen(j, parts)
	return hi - lo
}

func (t *windowsTask) seen(j, parts int) (lo, hi int) {
	for i, f := range t.first {
		from := f.start - int(t.q.s.y0)
		first, end := f.outputs*j/parts, f.outputs*(j+1)/parts
		low, high := from+first*f.move, from+(end-1)*f.move+(f.taps-1)*f.tapMove+1
		if i == 0 {
			lo, hi = low, high
		}
		lo, hi = min(lo, low), max(hi, high)
	}
	return lo, hi
}

func (t *windowsTask) do(lo, hi int) {
	if t.packing {
		t.pack(lo, hi)
		return
	}
	for i := lo; i < hi; i++ {
		group, class, j, images := i%t.group, i/t.group%t.classes, i/(t.group*t.classes)%t.parts, i/(t.group*t.classes*t.parts)
		l0, l1 := t.seen(j, t.parts)
		t.compute(C.extent{w0: C.int64_t(len(t.list) * class / t.classes), w1: C.int64_t(len(t.list) * (class + 1) / t.classes), i0: C.int64_t(t.batch * images / t.units), i1: C.int64_t(t.batch * (images + 1) / t.units), j: C.int64_t(j), parts: C.int64_t(t.parts),
			p0: C.int64_t(t.panels * group / t.group), p1: C.int64_t(t.panels * (group + 1) / t.group), l0: C.int64_t(l0), l1: C.int64_t(l1)})
	}
}

// images computes whole images.
func (t *windowsTask) images(lo, hi int) {
	l0, l1 := t.seen(0, 1)
	t.compute(C.extent{w1: C.int64_t(len(t.list)), i0: C.int64_t(lo), i1: C.int64_t(hi), parts: 1, p1: C.int64_t(t.panels), l0: C.int64_t(l0), l1: C.int64_t(l1)})
}

func (t *windowsTask) compute(e C.extent) {
	staged := int(C.staged_floats(&t.q, &e))
	e.copy = C.int64_t(staged)
	room := t.pool.scratch.get(staged + t.copied)
	C.convolve_windows(&t.q, unsafe.SliceData(t.list), &e, floats(t.x), floats(t.b), floats(t.y), floats(room.data))
	t.pool.scratch.put(room)
}

// pack packs panels of the windows' kernels, or whole kernels of some windows that have few columns.
func (t *windowsTask) pack(lo, hi int) {
	for i := lo; i < hi; i++ {
		if t.q.few == 1 {
			v := &t.list[i]
			C.pack_few(&t.kernels[i].c, v, floats(t.kernel), floats(t.b[v.b:]), v.panel)
			continue
		}
		k, p := i/t.panels, C.int64_t(i%t.panels)
		if q, b := &t.kernels[k].c, floats(t.b[t.packs[k]:]); t.unit == 2 {
			C.half_pack_panels(q, floats(t.kernel), b, p, C.int64_t(t.panels))
		} else {
			C.pack_panels(q, floats(t.kernel), b, p, p+1)
		}
	}
}
