package kernel

/*
#cgo noescape convolve_minimal
#cgo nocallback convolve_minimal
#cgo noescape stage_planes
#cgo nocallback stage_planes
#cgo noescape planes_floats
#cgo nocallback planes_floats
#cgo noescape minimal_floats
#cgo nocallback minimal_floats
#cgo noescape few_floats
#cgo nocallback few_floats
#cgo noescape convolve_few
#cgo nocallback convolve_few
#cgo noescape pack_minimal
#cgo nocallback pack_minimal
#include "direct.h"
*/
import "C"

import (
	"slices"
	"unsafe"
)

// minimal is a convolution over channels-last images by minimal filtering: 9 products instead of 16 for each 2 × 2
// outputs, or 25 instead of 64 for 4 × 4.
type minimal struct {
	q       C.minimal
	classes []C.minimal_class
	kernels []product // how the kernel is packed for each class
	batch   int
	few     bool // tiles are so few that they read the kernel in place
	packed  int  // floats of the packed kernel
	flops   int  // of the direct form
}

var (
	// minimalChannels is the smallest number of channels for which the planes of tiles take less time than the products that they save, with vectors of 8.
	// Tests lower all of these.
	minimalChannels = 16
	// minimalTiles is the smallest number of tiles for which packing the kernel, in 9 instead of 4 parts, takes less time. For kernel gradients, it is three
	// times as large.
	minimalTiles = 16
	// quadChannels and quadTiles are the same for tiles of 4 × 4 outputs; as pairs of bfloat16, they need twice as many channels, except for kernel gradients.
	quadChannels, quadTiles = 16, 64
	// From fewestRead to mostRead tiles, or mostWide with vectors of 16 floats, read a kernel of at least readPanels panels in place. Otherwise packing
	// it, or not filtering, takes less time.
	fewestRead, mostRead, mostWide, readPanels = 16, 16, 31, 4
	// planeBlock is the number of channels of a block of planes that such tiles read.
	planeBlock = 128
)

// filteredHalves has the sets for bfloat16 whose products take so long that minimal filtering pays. Tests add plain C.
var filteredHalves = [C.HALF_SETS]bool{halfAVX512: true}

// fewest returns the smallest numbers of channels and of tiles with which minimal filtering takes less time, with a set for bfloat16 or in float32.
func fewest(half int) (channels, tiles int) {
	switch {
	case half != halfNone:
		return 2 * minimalChannels, 3 * minimalTiles
	case vectorFloats() == 16:
		return 2 * minimalChannels, 2 * minimalTiles
	}
	return minimalChannels, minimalTiles
}

// filters reports whether minimal filtering suits a set for bfloat16, of operands of so many parts, or float32.
func (s *ConvSpec) filters(half, parts int) bool {
	if half == halfNone {
		return s.Stored == (Stored{})
	}
	return filteredHalves[half] && parts == 1
}

// unitOf returns the number of values in a word of operands that a set for bfloat16 multiplies, or of float32.
func unitOf(half int) int {
	if half != halfNone {
		return 2
	}
	return 1
}

// planMinimal plans the convolution by minimal filtering, with a set for bfloat16 or in float32. It returns nil if this is not possible or not faster.
func (c *Conv) planMinimal(half, parts int) (*minimal, error) {
	s, unit := &c.spec, unitOf(half)
	channels, _ := fewest(half)
	if len(s.In) != 2 || s.Groups*s.BatchGroups != 1 || !s.filters(half, parts) || s.InChannels%unit != 0 || s.InStrides.Channel != 1 || s.OutStrides.Channel != 1 ||
		s.InStrides.Spatial[1] != s.InChannels || s.OutChannels%vectorFloats() != 0 {
		return nil, nil
	}
	for _, of := range []struct{ tile, channels int }{{4, unit * quadChannels}, {2, channels}} {
		if min(s.InChannels, s.OutChannels) < of.channels {
			continue
		}
		if w, err := c.planTiles(half, of.tile); w != nil || err != nil {
			return w, err
		}
	}
	return nil, nil
}

// planTiles plans the convolution with tiles of so many outputs in each dimension.
func (c *Conv) planTiles(half, tile int) (*minimal, error) {
	s, unit := &c.spec, unitOf(half)
	w := &minimal{batch: s.Batch}
	w.q = C.minimal{tile: C.int64_t(tile), n: C.int64_t(s.OutChannels), obatch: C.int64_t(s.OutStrides.Batch), half: C.int64_t(half)}
	_, tiles := fewest(half)
	if tile == 4 {
		tiles = quadTiles
	}
	var taps [][2]phaseTaps
	for phase := range s.phases(0) * s.phases(1) {
		f := [2]phaseTaps{s.tapsOf(0, phase%s.phases(0), c.out[0]), s.tapsOf(1, phase/s.phases(0), c.out[1])}
		for _, f := range f {
			if f.outputs == 0 || f.outputs%tile != 0 || f.taps == 0 || f.move%f.tapMove != 0 || f.taps != 2*f.move/f.tapMove || f.taps > 2*C.MAX_PAIRS {
				return nil, nil
			}
		}
		taps = append(taps, f)
		if !w.add(s, f[0], f[1]) {
			return nil, nil
		}
		all := s.Batch * int(w.q.h*w.q.w)
		if w.few = w.readsInPlace(all); all < tiles && !w.few {
			return nil, nil
		}
		if err := w.plan(s, unit, f[0], f[1]); err != nil {
			return nil, err
		}
	}
	w.q.s = stagingOf(s, taps)
	if w.q.block = w.q.s.c; w.few && s.InChannels%planeBlock == 0 {
		w.q.block = C.int64_t(planeBlock)
	}
	return w, nil
}

// readsInPlace reports whether so many tiles can read the kernel in place, in less time than other ways take.
func (w *minimal) readsInPlace(tiles int) bool {
	most := mostRead
	if vectorFloats() == 16 {
		most = mostWide
	}
	return w.q.half == halfNone && w.q.tile == 2 && w.q.kstep > 0 && int(w.q.n) >= readPanels*int(C.tile_cols()) && fewestRead <= tiles && tiles <= min(most, C.TALL)
}

// add appends a class of outputs, or reports that it does not have the form of the others.
func (w *minimal) add(s *ConvSpec, y, x phaseTaps) bool {
	q, v := &w.q, C.minimal_class{out: C.int64_t(y.first*s.OutStrides.Spatial[0] + x.first*s.OutStrides.Spatial[1])}
	if h, t := C.int64_t(y.outputs)/q.tile, C.int64_t(x.outputs)/q.tile; len(w.classes) > 0 && (h != q.h || t != q.w) {
		return false
	}
	q.h, q.w, q.ypairs, q.xpairs = C.int64_t(y.outputs)/q.tile, C.int64_t(x.outputs)/q.tile, C.int64_t(y.taps/2), C.int64_t(x.taps/2)
	q.ymove, q.xmove = C.int64_t(y.move), C.int64_t(x.move)
	q.oline, q.ocolumn = C.int64_t(y.every*s.OutStrides.Spatial[0]), C.int64_t(x.every*s.OutStrides.Spatial[1])
	ok := planes(int(q.tile), &q.y, &v.y, y) && planes(int(q.tile), &q.x, &v.x, x)
	if s.kernelRows(int(C.tile_cols())) {
		q.kstep = C.int64_t(s.KernelStrides.Channel)
		for i := range y.taps {
			for j := range x.taps {
				v.taps[i*x.taps+j] = C.int64_t(s.tapAt(y, x, i, j))
			}
		}
	}
	w.classes = append(w.classes, v)
	return ok
}

// planes sets a class's planes in one dimension, and adds those that no other class has. It returns false if there are too many.
func planes(tile int, all *C.planes, of *[C.QUAD_FACTORS][C.MAX_PAIRS]C.int64_t, f phaseTaps) bool {
	for pair := range f.taps / 2 {
		at := C.int64_t(f.start + pair*f.tapMove)
		next := at + C.int64_t(f.move)
		factors := []C.plane{C.MIDDLE: {next, C.VALUE}, C.LOW_TAP: {at, C.DIFFERENCE}, C.HIGH_TAP: {next, C.DIFFERENCE}}
		if tile == 4 {
			factors = []C.plane{{at, C.AT_ZERO}, {next, C.AT_MINUS_ONE}, {next, C.AT_HALF}, {next, C.AT_TWO}, {next, C.AT_ZERO}}
		}
		five := C.five{first: at, known: all.n}
		for factor, p := range factors {
			i := slices.Index(all.all[:all.n], p)
			if i < 0 {
				if i = int(all.n); i == C.MAX_PLANES {
					return false
				}
				all.all[i] = p
				all.n++
			}
			of[factor][pair] = C.int64_t(i)
			if tile == 4 {
				five.of[factor] = C.int64_t(i)
			}
		}
		if tile == 4 && all.n > five.known {
			if all.fives == C.MAX_FIVES {
				return false
			}
			all.five[all.fives] = five
			all.fives++
		}
	}
	return true
}

func (w *minimal) sizes() *C.tile_sizes { return C.sizes_of(w.q.tile, C.int64_t(vectorFloats())) }

// points returns the number of products of a tile and of values of each channel.
func (w *minimal) points() int { return int(w.sizes().points) }

// plan plans how the kernel of the last class is packed.
func (w *minimal) plan(s *ConvSpec, unit int, y, x phaseTaps) error {
	v := &w.classes[len(w.classes)-1]
	k := y.taps * x.taps / 4 * s.InChannels
	cols := int(C.tile_cols())
	w.q.k = C.int64_t(k / unit)
	w.q.apart = w.q.k*C.int64_t(cols) + pointPad
	v.b, v.panel = C.int64_t(w.packed), C.int64_t(w.points())*w.q.apart
	w.packed += int(v.panel) * roundUp(s.OutChannels, cols) / cols
	w.flops += 2 * s.Batch * y.outputs * x.outputs * s.OutChannels * 4 * k
	kernel, err := kernelOf(s, y, x)
	kernel.narrow(s.Stored)
	w.kernels = append(w.kernels, kernel)
	return err
}

// pointPad is the number of words by which the points of a panel are further apart than they are long. Most lengths are multiples of 4 KiB, so that
// without it, writing the same row of all points would use one set of the first-level cache.
const pointPad = 64

// minimalTask is a running convolution by minimal filtering. Either the whole kernel is packed first, and units of tiles stage their planes, or all planes
// are staged first, and units of a class and some panels pack theirs or read them in place, so that what is larger stays in a cache.
type minimalTask struct {
	*minimal
	pool                *Pool
	x, kernel, y        []float32
	packed              *scratch // the kernel's factors
	planes              *scratch // of all images
	first               bool     // packs or stages what all units read
	units, parts, group int      // number of parts of the images, of their lines of tiles, or of all tiles, and of the panels
	panels              int
	lo, hi              int // images whose planes are staged first
}

var minimalTasks keep[minimalTask]

func (w *minimal) run(p *Pool, x, kernel, y []float32) {
	if w.heavy() {
		w.runPanels(p, x, kernel, y)
		return
	}
	t := w.begin(p, x, kernel, y)
	t.split()
	units := t.units * t.parts * t.group
	p.runChunks(units, min(units, max(1, w.flops/serialFlops)), t)
	t.end()
}

// heavy reports whether the kernel is read in place, or its factors take more memory than the planes of all images, or than a cache.
func (w *minimal) heavy() bool {
	return w.few || w.packed > heavyKernel || w.packed > w.planeFloats(0, w.batch)
}

// heavyKernel is the largest number of floats of a packed kernel that units of tiles read, and mostPlanes the largest number of floats of planes that are
// staged at once, unless those of an image, or the kernel, are larger. Tests lower both.
var heavyKernel, mostPlanes = 1 << 21, 1 << 23

// packRows is the smallest number of rows of a panel that a unit packs.
const packRows = 16

// rows returns the number of rows of a panel: channels of pairs of taps.
func (w *minimal) rows() int { return int(w.q.ypairs * w.q.xpairs * w.q.s.c) }

// planeFloats returns the number of floats of the planes of images [lo, hi).
func (w *minimal) planeFloats(lo, hi int) int {
	e := w.images(lo, hi)
	return int(C.planes_floats(&w.q, &e))
}

// images returns the extent of all classes and lines of images [lo, hi).
func (w *minimal) images(lo, hi int) C.extent {
	return C.extent{i0: C.int64_t(lo), i1: C.int64_t(hi), parts: 1, l1: w.q.h, w1: C.int64_t(len(w.classes))}
}

func (w *minimal) task(p *Pool, x, kernel, y []float32) *minimalTask {
	t := minimalTasks.get()
	*t = minimalTask{minimal: w, pool: p, x: x, kernel: kernel, y: y}
	t.panels = (int(w.q.n) + int(C.tile_cols()) - 1) / int(C.tile_cols())
	if m := p.meter.Load(); m != nil {
		m.FLOPs.Add(int64(w.flops))
	}
	return t
}

// begin packs the kernel.
func (w *minimal) begin(p *Pool, x, kernel, y []float32) *minimalTask {
	t := w.task(p, x, kernel, y)
	t.packed, t.first, t.parts = p.scratch.get(w.packed), true, 1
	if panels := len(w.classes) * t.panels; p.threads > 1 {
		t.parts = min(divideUp(2*p.threads, panels), max(1, w.rows()/packRows))
	}
	units := len(w.classes) * t.panels * t.parts
	p.run(units, max(1, (1<<14)*units/w.packed), t)
	t.first = false
	return t
}

// runPanels stages all planes first, of as many images as fit; threads divide an image's lines of tiles if there are fewer images. Units are then pairs of
// panels, which read the planes together, unless threads need more units; if there are fewer panels than suit the threads, parts of the tiles are units,
// and each packs the panel again.
func (w *minimal) runPanels(p *Pool, x, kernel, y []float32) {
	t := w.task(p, x, kernel, y)
	images := evenly(w.batch, max(1, max(mostPlanes, w.packed)/w.planeFloats(0, 1)), p.threads)
	t.planes = p.scratch.get(w.planeFloats(0, images))
	for t.lo < w.batch {
		t.hi = min(t.lo+images, w.batch)
		t.first, t.parts = true, min(int(w.q.h), (p.threads+t.hi-t.lo-1)/(t.hi-t.lo))
		p.run((t.hi-t.lo)*t.parts, 1, t)
		t.first, t.group, t.parts = false, t.panels, 1
		if pairs := (t.panels + 1) / 2; len(w.classes)*pairs >= p.threads*chunksPerThread {
			t.group = pairs
		} else {
			t.parts = tileParts(len(w.classes)*t.panels, (t.hi-t.lo)*int(w.q.h*w.q.w), p.threads)
		}
		units := len(w.classes) * t.group * t.parts
		p.runChunks(units, units, t)
		t.lo = t.hi
	}
	t.end()
}

// evenly returns how many of n images are staged at a time, about at most a number of them: about as many each time, or a multiple of the threads if they then
// finish sooner.
func evenly(n, most, threads int) int {
	time := func(images int) int { return divideUp(n, images) * divideUp(images, threads) }
	best := equally(n, most)
	for _, images := range []int{roundUp(most, threads), most / threads * threads} {
		if images > 0 && 2*images <= 3*most && time(images) < time(best) {
			best = images
		}
	}
	return min(best, n)
}

// factorCost is the time to pack a value of the kernel's factors, in multiplications.
const factorCost = 30

// tileParts returns the number of parts of the tiles with which threads finish the panels clearly sooner.
func tileParts(panels, tiles, threads int) int {
	time := func(parts int) float64 {
		return rounds(panels*parts, threads) * float64(factorCost+(tiles+parts-1)/parts)
	}
	best := 1
	for parts := 2; parts <= tiles/max(tileRows, 1); parts++ {
		if time(parts) < 0.95*time(best) {
			best = parts
		}
	}
	return best
}

func (t *minimalTask) end() {
	for _, s := range [2]*scratch{t.packed, t.planes} {
		if s != nil {
			t.pool.scratch.put(s)
		}
	}
	minimalTasks.put(t)
}

// tileRows is the number of tiles that read a panel of the kernel while it is in a cache: enough of them to make up for loading the panel, few enough that their
// planes stay in a cache. With vectors of 16 floats it is wideRows, since panels are larger and tiles take less time, unless there are fewer than two units
// for each thread. With 4 × 4 outputs it is quadRows, in the same way. Tests lower all of them.
var tileRows, wideRows, quadRows = 16, 64, 32

// split chooses units of whole images if there are enough of them for all threads, otherwise of lines, and of groups of panels if threads then finish earlier,
// although each group stages the planes again.
func (t *minimalTask) split() {
	threads, want := t.pool.threads, 2*t.pool.threads
	if threads == 1 {
		want = 1
	}
	rows := tileRows
	if t.q.tile == 4 {
		rows = quadRows
	}
	if vectorFloats() == 16 {
		rows = max(rows, wideRows)
	}
	for t.divide(rows); t.units*t.parts < want && rows > tileRows; t.divide(rows) {
		rows = max(rows/2, tileRows)
	}
	t.group = 1
	for least, g := t.time(threads), 2; threads > 1 && g <= t.panels; g++ {
		u := *t
		u.group = g
		if time := u.time(threads); time < least {
			t.group, least = g, time
		}
	}
}

// divide divides images and their lines so that about that many tiles are in a unit.
func (t *minimalTask) divide(rows int) {
	tiles := int(t.q.h * t.q.w)
	images := min(t.batch, (rows+tiles-1)/tiles)
	t.units, t.parts = (t.batch+images-1)/images, max(1, min(int(t.q.h), tiles/rows))
}

// planeCost is the time to stage a value of a plane, in multiplications.
const planeCost = 12

// time returns the assumed time of all units, in multiplications for each tile of a unit.
func (t *minimalTask) time(threads int) float64 {
	stage := planeCost * int(t.q.y.n*t.q.x.n*t.q.s.c) / unitOf(int(t.q.half))
	panel := len(t.classes) * t.points() * int(t.q.k) * int(C.tile_cols())
	return rounds(t.units*t.parts*t.group, threads) * float64(stage+(t.panels+t.group-1)/t.group*panel)
}

func (t *minimalTask) do(lo, hi int) {
	for i := lo; i < hi; i++ {
		switch {
		case t.planes != nil && t.first:
			e, image := t.images(t.lo, t.hi), t.lo+i/t.parts
			e.j, e.parts = C.int64_t(i%t.parts), C.int64_t(t.parts)
			t.stage(&e, image, image+1, t.planes)
		case t.planes != nil:
			part, group, class := i%t.parts, i/t.parts%t.group, i/(t.parts*t.group)
			t.columns(class, part, t.panels*group/t.group, t.panels*(group+1)/t.group)
		case t.first:
			part, panel, class := i%t.parts, i/t.parts%t.panels, i/(t.parts*t.panels)
			v := &t.classes[class]
			t.pack(class, panel, t.row(part), t.row(part+1), t.packed.data[int(v.b)+panel*int(v.panel):], true)
		default:
			t.unit(i)
		}
	}
}

// unit computes tiles of some images, with the packed kernel.
func (t *minimalTask) unit(i int) {
	group, j, images := i%t.group, i/t.group%t.parts, i/(t.group*t.parts)
	t.tiles(C.extent{parts: 1, i0: C.int64_t(t.batch * images / t.units), i1: C.int64_t(t.batch * (images + 1) / t.units),
		p0: C.int64_t(t.panels * group / t.group), p1: C.int64_t(t.panels * (group + 1) / t.group),
		l0: t.q.h * C.int64_t(j) / C.int64_t(t.parts), l1: t.q.h * C.int64_t(j+1) / C.int64_t(t.parts)})
}

// part computes whole images.
func (t *minimalTask) part(lo, hi, of int) {
	t.tiles(C.extent{parts: 1, i0: C.int64_t(lo * t.batch / of), i1: C.int64_t(hi * t.batch / of), p1: C.int64_t(t.panels), l1: t.q.h})
}

func (t *minimalTask) tiles(e C.extent) {
	e.w1 = C.int64_t(len(t.classes))
	planes := t.pool.scratch.get(int(C.planes_floats(&t.q, &e)))
	t.stage(&e, int(e.i0), int(e.i1), planes)
	t.multiply(t.classes, &e, planes.data, t.packed.data)
	t.pool.scratch.put(planes)
}

func (t *minimalTask) multiply(classes []C.minimal_class, e *C.extent, planes, kernel []float32) {
	sums := t.pool.scratch.get(int(C.minimal_floats(&t.q, e)))
	C.convolve_minimal(&t.q, unsafe.SliceData(classes), e, floats(planes), floats(kernel), floats(t.y), floats(sums.data))
	t.pool.scratch.put(sums)
}

func (t *minimalTask) stage(e *C.extent, lo, hi int, planes *scratch) {
	line := t.pool.scratch.get(int(t.sizes().lines * t.q.s.columns * t.q.s.c))
	C.stage_planes(&t.q, e, C.int64_t(lo), C.int64_t(hi), floats(t.x), floats(planes.data), floats(line.data))
	t.pool.scratch.put(line)
}

// columns computes panels [lo, hi) of a class for a part of the tiles, with the staged planes.
func (t *minimalTask) columns(class, part, lo, hi int) {
	v, e := t.classes[class], t.images(t.lo, t.hi)
	e.j, e.parts = C.int64_t(part), C.int64_t(t.parts)
	if t.few {
		sums := t.pool.scratch.get(int(C.few_floats(&t.q, &e)))
		for p := lo; p < hi; p++ {
			C.convolve_few(&t.q, &v, &e, floats(t.planes.data), floats(t.kernel), floats(t.y), C.int64_t(p), floats(sums.data))
		}
		t.pool.scratch.put(sums)
		return
	}
	room := t.pool.scratch.get((hi - lo) * int(v.panel))
	for p := lo; p < hi; p++ {
		t.pack(class, p, 0, t.rows(), room.data[(p-lo)*int(v.panel):], false)
	}
	e.w1, e.p0, e.p1 = 1, C.int64_t(lo), C.int64_t(hi)
	v.b = -C.int64_t(lo) * v.panel
	t.multiply([]C.minimal_class{v}, &e, t.planes.data, room.data)
	t.pool.scratch.put(room)
}

// row returns the first row of a part of a panel.
func (t *minimalTask) row(part int) int {
	if part == t.parts {
		return t.rows()
	}
	return t.rows() * part / t.parts / packRows * packRows
}

// pack packs rows [lo, hi) of a panel of a class's kernel. It streams a panel that all threads read: a line that several cores
// have in their caches takes longer to be written than to go past them, if those cores share no cache.
func (t *minimalTask) pack(class, panel, lo, hi int, to []float32, stream bool) {
	room := t.pool.scratch.get(4 * C.FACTOR_K * int(C.tile_cols()))
	C.pack_minimal(&t.q, &t.classes[class], &t.kernels[class].c, floats(t.kernel), floats(to), C.int64_t(panel), C.int64_t(lo), C.int64_t(hi),
		bit(stream), floats(room.data))
	t.pool.scratch.put(room)
}
