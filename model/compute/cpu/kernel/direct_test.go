//go:build cgo

package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// drawImages draws a convolution over channels-last images.
func drawImages(t *rapid.T, kernels []int) ConvSpec {
	pick := func(name string, from []int) int { return rapid.SampledFrom(from).Draw(t, name) }
	s := ConvSpec{Batch: rapid.IntRange(1, 9).Draw(t, "batch"), InChannels: pick("in", []int{1, 3, 5, 8, 16, 20, 33}),
		OutChannels: pick("out", []int{1, 2, 3, 4, 5, 8, 16, 31, 32, 48, 65}), Groups: 1, BatchGroups: 1, Stored: drawStored(t)}
	for d := range 2 {
		at := func(name string) string { return fmt.Sprint(name, " ", d) }
		s.In, s.Kernel = append(s.In, rapid.IntRange(1, 19).Draw(t, at("extent"))), append(s.Kernel, pick(at("kernel"), kernels))
		s.Stride, s.InDilation = append(s.Stride, rapid.IntRange(1, 3).Draw(t, at("stride"))), append(s.InDilation, rapid.IntRange(1, 2).Draw(t, at("holes")))
		s.KernelDilation, s.Reverse = append(s.KernelDilation, rapid.IntRange(1, 2).Draw(t, at("dilation"))), append(s.Reverse, rapid.Bool().Draw(t, at("reverse")))
		s.PadLow, s.PadHigh = append(s.PadLow, rapid.IntRange(-1, 3).Draw(t, at("low"))), append(s.PadHigh, rapid.IntRange(-1, 3).Draw(t, at("high")))
	}
	return s
}

// channelsLast lays out images channels-last and the kernel in a drawn order; it skips the case if there is no output.
func channelsLast(t *rapid.T, s *ConvSpec) {
	out, err := s.withStrides().OutShape()
	if err != nil {
		t.Skip(err)
	}
	last := []int{0, 2, 3, 1}
	s.InStrides = layout(last, append([]int{s.Batch, s.InChannels}, s.In...))
	s.OutStrides = layout(last, append([]int{s.Batch, s.OutChannels}, out...))
	order := rapid.SampledFrom([][]int{{2, 3, 1, 0}, {2, 3, 0, 1}, {0, 1, 2, 3}}).Draw(t, "kernel's order")
	s.KernelStrides = layout(order, append([]int{s.OutChannels, s.InChannels}, s.Kernel...))
}

// untilSome draws cases with every instruction set, and repeats if none exercised the tested path; with -short it draws few.
func untilSome(t *testing.T, missing string, count func(t *rapid.T) int) {
	for range 20 {
		some := 0
		forEachSet(t, func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { some += count(t) }) })
		if some > 0 {
			return
		}
	}
	t.Error(missing)
}

// TestConvWindows checks that images read in place give the defined result with any values next to a window, and that nothing beyond the input is read.
func TestConvWindows(t *testing.T) {
	unfiltered(t)
	p := NewPool(2)
	defer p.Close()
	checkWindows(t, p, Exact, nil, func(c *Conv) bool { return c.direct != nil })
}

// TestConvLines checks the same for one vector of channels, whose outputs are computed line by line with AVX2.
func TestConvLines(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	checkWindows(t, p, Exact, func(t *rapid.T, s *ConvSpec) {
		s.OutChannels, s.In[1] = 8, rapid.IntRange(8, 40).Draw(t, "columns")
	}, func(c *Conv) bool { return c.direct != nil && c.out[1] >= 8 })
}

// TestConvBlocks checks the same for kernels that several tiles read in blocks.
func TestConvBlocks(t *testing.T) {
	unfiltered(t)
	defer func(n int) { blockKernel = n }(blockKernel)
	blockKernel = 1
	p := NewPool(2)
	defer p.Close()
	checkWindows(t, p, Exact, func(t *rapid.T, s *ConvSpec) {
		s.InChannels, s.Batch = rapid.SampledFrom([]int{s.InChannels, 256, 300}).Draw(t, "inputs' channels"), rapid.IntRange(1, 2).Draw(t, "images")
		s.OutChannels = rapid.SampledFrom([]int{16, 32, 48, 288}).Draw(t, "outputs' channels")
	}, func(c *Conv) bool { return c.direct != nil && c.direct.q.blocks > 0 })
}

// TestConvSpread checks the same where every position is multiplied with all taps.
func TestConvSpread(t *testing.T) {
	joinChannels(t)
	p := NewPool(2)
	defer p.Close()
	checkWindows(t, p, Exact, func(t *rapid.T, s *ConvSpec) {
		s.OutChannels, s.Stride = rapid.IntRange(1, 8).Draw(t, "channels"), []int{1, 1}
	}, func(c *Conv) bool { return c.direct != nil && c.direct.q.spread > 0 })
}

// joinChannels joins the taps of few channels however many the others are.
func joinChannels(t *testing.T) {
	before := fewestJoined
	t.Cleanup(func() { fewestJoined = before })
	fewestJoined = 0
}

// TestConvFewRead checks the same for kernels with adjacent input channels that a product reads in place for few outputs.
func TestConvFewRead(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	checkWindows(t, p, Exact, func(t *rapid.T, s *ConvSpec) {
		s.Batch, s.InChannels = rapid.IntRange(1, 2).Draw(t, "images"), rapid.SampledFrom([]int{256, 512}).Draw(t, "channels")
		s.In, s.PadHigh = []int{rapid.IntRange(1, 4).Draw(t, "lines"), rapid.IntRange(1, 4).Draw(t, "columns")}, []int{1, 1}
		s.OutChannels, s.Stored[1] = rapid.IntRange(17, 40).Draw(t, "outputs' channels"), false
	}, (*Conv).fewRead)
	s := nhwc(1, 8, 512, 512, 4, 2, 1)
	s.KernelStrides = TensorStrides{s.InChannels, 1, s.KernelStrides.Spatial}
	c, err := PlanConv(s)
	if err != nil {
		t.Fatal(err)
	}
	if !c.fewRead() || c.Narrows() != (Stored{true, false}) || halfPays(halfAVX512, 1, c.fewRead(), &c.pieces[0].q) {
		t.Errorf("one image's convolution from 512 channels of 8x8 to 512 of 4x4 reads its kernel in place: %v; may be stored as bfloat16: %v; AVX512_BF16: %v",
			c.fewRead(), c.Narrows(), halfPays(halfAVX512, 1, c.fewRead(), &c.pieces[0].q))
	}
}

// TestHalfConvWindows checks the same for pairs of bfloat16.
func TestHalfConvWindows(t *testing.T) {
	unfiltered(t)
	p := NewPool(2)
	defer p.Close()
	forWindowedHalves(t, func(t *testing.T) {
		checkWindows(t, p, Halves, nil, func(c *Conv) bool { return c.direct != nil && c.direct.q.half != halfNone })
	})
}

// TestHalfConvStrips checks the same in strips of tiles.
func TestHalfConvStrips(t *testing.T) {
	forTiled(t, func(t *testing.T, p *Pool, o Operands) {
		checkWindows(t, p, o, func(t *rapid.T, s *ConvSpec) {
			s.InChannels = 8 * rapid.IntRange(1, 8).Draw(t, "eights")
			s.In[1] = rapid.IntRange(8, 40).Draw(t, "width")
		}, func(c *Conv) bool { return c.direct != nil && c.direct.q.side != 0 })
	})
}

// TestHalfConvPlanes checks the same for images of short lines, which are staged in planes.
func TestHalfConvPlanes(t *testing.T) {
	forTiled(t, func(t *testing.T, p *Pool, o Operands) {
		checkWindows(t, p, o, func(t *rapid.T, s *ConvSpec) {
			s.InChannels = 32 * rapid.IntRange(1, 2).Draw(t, "channels")
			s.In = []int{rapid.IntRange(4, 12).Draw(t, "lines"), rapid.IntRange(4, 12).Draw(t, "width")}
		}, func(c *Conv) bool { return c.direct != nil && c.direct.q.stack.planes > 0 })
	})
}

// TestHalfConvFewColumns checks the same for few output channels, in strips.
func TestHalfConvFewColumns(t *testing.T) {
	forTiled(t, func(t *testing.T, p *Pool, o Operands) {
		checkWindows(t, p, o, func(t *rapid.T, s *ConvSpec) {
			s.InChannels, s.OutChannels = 8*rapid.IntRange(1, 8).Draw(t, "eights"), rapid.IntRange(1, 4).Draw(t, "columns")
			s.In[1] = rapid.IntRange(8, 40).Draw(t, "width")
		}, func(c *Conv) bool { return c.direct != nil && c.direct.q.side != 0 })
	})
}

// forWindowedHalves runs a test with each set that reads pairs of bfloat16 in place and that this machine supports.
func forWindowedHalves(t *testing.T, test func(t *testing.T)) {
	forHalves(t, []int{halfPlain, halfAVX512}, test)
}

// forTiled runs a test with each set that has tiles and that this machine supports, and each kind of operands. Panels of columns must have the width of
// a tile, which those of the plain vectors do not have.
func forTiled(t *testing.T, test func(t *testing.T, p *Pool, o Operands)) {
	if vectorFloats() < 8 {
		t.Skip("panels of columns are narrower than a tile")
	}
	p := NewPool(2)
	defer p.Close()
	forHalves(t, []int{halfPlain, halfAMX}, func(t *testing.T) {
		t.Run("halves", func(t *testing.T) { test(t, p, Halves) })
		t.Run("split", func(t *testing.T) { test(t, p, Split) })
	})
}

func forHalves(t *testing.T, sets []int, test func(t *testing.T)) {
	for _, set := range sets {
		t.Run(halfNames[set], func(t *testing.T) {
			if !runsHalf()[set] {
				t.Skip("this machine has no " + halfNames[set])
			}
			withHalf(set, func() { test(t) })
		})
	}
}

// checkWindows draws convolutions, which adapt changes if it is not nil, until some are wanted.
func checkWindows(t *testing.T, p *Pool, o Operands, adapt func(*rapid.T, *ConvSpec), wanted func(*Conv) bool) {
	untilSome(t, "no convolution was computed in the wanted way", func(t *rapid.T) int {
		s := drawImages(t, []int{1, 2, 3, 4, 5})
		if s.Operands = o; adapt != nil {
			adapt(t, &s)
		}
		channelsLast(t, &s)
		return checkGuarded(t, p, s, wanted)
	})
}

// forSixteens returns a pool for a test of few channels where vectors of 16 floats are in use, which the processor halves or not.
func forSixteens(t *testing.T, halves bool) *Pool {
	if vectorFloats() < 16 {
		t.Skip("no vectors of 16 floats")
	}
	before, p := halvesVectors, NewPool(2)
	halvesVectors = halves
	t.Cleanup(func() {
		halvesVectors = before
		p.Close()
	})
	return p
}

// TestConvPairs checks that outputs of few channels are computed in pairs, and that a NaN that only one of them uses does not reach the other.
func TestConvPairs(t *testing.T) {
	p := forSixteens(t, false)
	untilSome(t, "no outputs were computed in pairs", func(t *rapid.T) int {
		s := drawImages(t, []int{2, 3, 4, 5})
		s.OutChannels, s.KernelDilation[1] = rapid.IntRange(5, 8).Draw(t, "channels"), 1
		channelsLast(t, &s)
		return checkGuarded(t, p, s, func(c *Conv) bool { return c.direct != nil && c.direct.pairs != nil })
	})
	for _, s := range []ConvSpec{nhwc(64, 64, 8, 8, 4, 2, 1), nhwc(64, 64, 3, 8, 4, 2, 1), nhwc(64, 64, 3, 8, 3, 1, 1)} {
		if c, err := PlanConv(s); err != nil || c.direct == nil || c.direct.pairs == nil {
			t.Errorf("%+v is not computed in pairs: %v", s, err)
		}
	}
}

// TestConvEights checks few channels with vectors of 8 floats while those of 16 are in use.
func TestConvEights(t *testing.T) {
	p := forSixteens(t, true)
	for _, channels := range []int{3, 8} {
		checkWindows(t, p, Exact, func(t *rapid.T, s *ConvSpec) {
			s.InChannels, s.OutChannels, s.In[1] = rapid.SampledFrom([]int{1, 3, 8}).Draw(t, "in"), channels, rapid.IntRange(8, 40).Draw(t, "columns")
		}, func(c *Conv) bool { return c.direct != nil && c.direct.q.eights == 1 })
	}
	checkCorrelation(t, p, Exact, func(t *rapid.T, s *ConvSpec) { s.OutChannels = 3 }, func(c *Conv) bool { return c.kernel != nil && c.kernel.q.eights == 1 })
}

// TestConvCorrelation checks gradients for kernels that are summed image by image.
func TestConvCorrelation(t *testing.T) {
	unfiltered(t)
	p := NewPool(2)
	defer p.Close()
	checkCorrelation(t, p, Exact, nil, func(c *Conv) bool { return c.kernel != nil })
}

// TestConvStacked checks gradients of kernels whose input or output has few channels, the taps of which are stacked.
func TestConvStacked(t *testing.T) {
	joinChannels(t)
	p := NewPool(2)
	defer p.Close()
	for _, exchanged := range []bool{false, true} {
		checkCorrelation(t, p, Exact, func(t *rapid.T, s *ConvSpec) {
			few, many := rapid.IntRange(1, 4).Draw(t, "few"), rapid.IntRange(5, 40).Draw(t, "many")
			if s.Batch, s.OutChannels = few, many; exchanged {
				s.Batch, s.OutChannels = many, few
				s.KernelDilation = []int{1, 1}
			}
		}, func(c *Conv) bool {
			return c.kernel != nil && c.kernel.q.stacked > 0 && c.kernel.exchanged == exchanged
		})
	}
}

// TestHalfConvCorrelation checks the same for pairs of bfloat16.
func TestHalfConvCorrelation(t *testing.T) {
	unfiltered(t)
	p := NewPool(2)
	defer p.Close()
	forWindowedHalves(t, func(t *testing.T) {
		checkCorrelation(t, p, Halves, nil, func(c *Conv) bool { return c.kernel != nil && c.kernel.q.half != halfNone })
	})
}

// TestHalfConvTiled checks the same in tiles.
func TestHalfConvTiled(t *testing.T) {
	forTiled(t, func(t *testing.T, p *Pool, o Operands) {
		checkCorrelation(t, p, o, func(t *rapid.T, s *ConvSpec) {
			s.Batch, s.OutChannels = 16*rapid.IntRange(1, 2).Draw(t, "sixteens"), 16*rapid.IntRange(1, 3).Draw(t, "v's sixteens")
			s.InChannels = rapid.IntRange(2, 4).Draw(t, "images")
		}, func(c *Conv) bool { return c.kernel != nil && c.kernel.q.tiled == 1 })
	})
}

// checkCorrelation draws gradients for kernels, which adapt changes if it is not nil, until some are wanted.
func checkCorrelation(t *testing.T, p *Pool, o Operands, adapt func(*rapid.T, *ConvSpec), wanted func(*Conv) bool) {
	untilSome(t, "no gradient was summed image by image", func(t *rapid.T) int {
		s := drawImages(t, []int{5, 8, 13, 16, 18})
		s.Operands = o
		s.Stride, s.InDilation, s.Reverse = nil, nil, nil
		s.InChannels = max(s.InChannels, 2) // images, at least as many as threads
		if adapt != nil {
			adapt(t, &s)
		}
		for d := range s.In {
			outputs := rapid.IntRange(1, 4).Draw(t, "outputs")
			s.PadHigh[d] = (s.Kernel[d]-1)*s.KernelDilation[d] + outputs - s.In[d] - s.PadLow[d]
		}
		out, err := s.withStrides().OutShape()
		if err != nil {
			t.Skip(err)
		}
		s.InStrides = layout([]int{1, 2, 3, 0}, append([]int{s.Batch, s.InChannels}, s.In...))
		s.KernelStrides = layout([]int{1, 2, 3, 0}, append([]int{s.OutChannels, s.InChannels}, s.Kernel...))
		order := rapid.SampledFrom([][]int{{2, 3, 0, 1}, {2, 3, 1, 0}, {0, 1, 2, 3}}).Draw(t, "result's order")
		s.OutStrides = layout(order, append([]int{s.Batch, s.OutChannels}, out...))
		return checkGuarded(t, p, s, wanted)
	})
}

// TestConvLargeCorrelation checks gradients for kernels that are too large for each thread to have its own copy, in either order of the kernel's channels.
func TestConvLargeCorrelation(t *testing.T) {
	unfiltered(t)
	specs := []ConvSpec{nhwc(5, 16, 128, 144, 4, 2, 1), nhwc(3, 20, 80, 400, 3, 1, 1), nhwc(70, 4, 300, 100, 3, 1, 1)}
	check := func(t *testing.T, o Operands, specs []ConvSpec) {
		for _, threads := range []int{1, 3} {
			p := NewPool(threads)
			defer p.Close()
			for _, s := range specs {
				for _, transposed := range []bool{false, true} {
					s := kernelGradient(s)
					if s.Operands = o; transposed {
						s.OutStrides.Batch, s.OutStrides.Channel = 1, s.Batch
					}
					for _, s.Stored = range []Stored{{}, {true, true}} {
						checkSome(t, p, s)
					}
				}
			}
		}
	}
	t.Run("float32", func(t *testing.T) { check(t, Exact, append(specs, nhwc(16, 8, 3, 6000, 4, 2, 1))) }) // whose windows would be stacked if it were smaller
	forWindowedHalves(t, func(t *testing.T) { check(t, Halves, specs) })
	t.Run("tiled", func(t *testing.T) {
		forTiled(t, func(t *testing.T, _ *Pool, o Operands) {
			check(t, o, []ConvSpec{nhwc(5, 16, 128, 144, 4, 2, 1), nhwc(70, 4, 320, 112, 3, 1, 1)})
		})
	})
}

// checkSome compares some outputs of a correlation with their definition.
func checkSome(t *testing.T, p *Pool, s ConvSpec) {
	t.Helper()
	c, err := PlanConv(s)
	if err != nil {
		t.Fatal(err)
	}
	if c.kernel == nil || !c.kernel.large() || (s.Operands != Exact) != (c.kernel.q.half != halfNone) {
		t.Fatalf("%+v is not computed in parts of the result", s)
	}
	x, w, out := random(1, c.reach[0]), random(2, c.reach[1]), random(3, c.reach[2])
	if s.Operands == Halves {
		toHalf(x)
		toHalf(w)
	}
	c.Run(p, s.Stored.store(0, x), s.Stored.store(1, w), out)
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		b, o, y, z := r.IntN(s.Batch), r.IntN(s.OutChannels), r.IntN(c.out[0]), r.IntN(c.out[1])
		want, scale := naiveConv(c.spec, x, w, b, o, []int{y, z})
		got := out[b*s.OutStrides.Batch+o*s.OutStrides.Channel+y*s.OutStrides.Spatial[0]+z*s.OutStrides.Spatial[1]]
		if !closeTo(s.Operands, got, want, scale) {
			t.Fatalf("output %d, %d, %d, channel %d = %v, want %v\n%+v", b, y, z, o, got, want, s)
		}
	}
}

// checkGuarded compares a convolution with its definition, with operands that end at a memory boundary and one element that is NaN.
// It returns 1 if the plan is of the wanted kind.
func checkGuarded(t *rapid.T, p *Pool, s ConvSpec, wanted func(*Conv) bool) int {
	c, err := PlanConv(s)
	if err != nil {
		t.Fatalf("%v\n%+v", err, s)
	}
	x, w := random(1, c.reach[0]), random(2, c.reach[1])
	switch {
	case s.Operands == Halves && (c.minimal != nil || c.gradient != nil): // whose operands' sums are rounded, unless they are small numbers
		most, unit := 16.0, 1.0
		if c.minimal != nil && c.minimal.q.tile == 4 {
			most, unit = 1, 81 // a kernel's factors are divided by 9 in each dimension
		} else if c.gradient != nil && c.gradient.q.tile == 4 {
			most = 1
		}
		for i, v := range x {
			x[i] = float32(math.Round(most * float64(v)))
		}
		for i, v := range w {
			w[i] = float32(unit * math.Round(most*float64(v)))
		}
	case s.Operands == Halves:
		toHalf(x)
		toHalf(w)
	}
	if wanted(c) {
		x[rapid.IntRange(0, len(x)-1).Draw(t, "which is NaN")] = float32(math.NaN())
	}
	operands := [2][]float32{x, w}
	for i, values := range operands {
		stored := s.Stored.store(i, values)
		memory, free := guarded(t, len(stored))
		defer free()
		copy(memory, stored)
		operands[i] = memory
	}
	out, free := guarded(t, c.reach[2])
	defer free()
	c.Run(p, operands[0], operands[1], out)
	compareConv(t, c, x, w, out)
	if wanted(c) {
		return 1
	}
	return 0
}

func compareConv(t failer, c *Conv, x, w, out []float32) {
	s, spread := c.spec, c.spread(x, w)
	for b := range s.Batch / s.BatchGroups {
		for o := range s.OutChannels {
			for y := range c.out[0] {
				for z := range c.out[1] {
					want, scale := naiveConv(s, x, w, b, o, []int{y, z})
					got := out[b*s.OutStrides.Batch+o*s.OutStrides.Channel+y*s.OutStrides.Spatial[0]+z*s.OutStrides.Spatial[1]]
					if !closeTo(s.Operands, got, want, max(scale, spread)) && !(math.IsNaN(float64(got)) && c.nearNaN(x, w, b, o, y, z)) {
						t.Fatalf("output %d, %d, %d, channel %d = %v, want %v\n%+v", b, y, z, o, got, want, s)
					}
				}
			}
		}
	}
}

// nearNaN reports whether an output is computed by minimal filtering in a tile of 4 × 4 outputs, or is a tap of a gradient that is summed in such tiles, and
// another one of the tile, or another tap, is NaN, which makes all of them NaN; likewise for a tap of a gradient that is stacked with the operands exchanged.
func (c *Conv) nearNaN(x, w []float32, b, o, y, z int) bool {
	rows, columns, lines, size := c.spec.phases(0), c.spec.phases(1), 4, 4
	switch {
	case c.minimal != nil && c.minimal.q.tile == 4:
	case c.gradient != nil && c.gradient.q.tile == 4, c.kernel != nil && c.kernel.exchanged:
		y, z, lines, size = 0, 0, c.out[0], c.out[1]
	default:
		return false
	}
	for i := range lines {
		for j := range size {
			at := []int{y%rows + (y/rows/4*4+i)*rows, z%columns + (z/columns/4*4+j)*columns}
			if want, _ := naiveConv(c.spec, x, w, b, o, at); math.IsNaN(want) {
				return true
			}
		}
	}
	return false
}

// spread returns a bound of the terms that minimal filtering adds and subtracts again, or 0 for other plans.
func (c *Conv) spread(x, w []float32) float64 {
	if c.minimal == nil && c.gradient == nil {
		return 0
	}
	largest := [2]float64{}
	for i, values := range [][]float32{x, w} {
		for _, v := range values {
			if a := math.Abs(float64(v)); a > largest[i] {
				largest[i] = a
			}
		}
	}
	return largest[0] * largest[1] * float64(c.spec.InChannels*c.spec.Kernel[0]*c.spec.Kernel[1])
}

// guarded returns n floats at the end of accessible memory.
func guarded(t failer, n int) (memory []float32, free func()) {
	page := unix.Getpagesize()
	size := roundUp(4*n+page, page)
	bytes, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatalf("mapping %d bytes: %v", size, err)
	}
	if err := unix.Mprotect(bytes[size-page:], unix.PROT_NONE); err != nil {
		t.Fatalf("guarding: %v", err)
	}
	if n > 0 {
		memory = unsafe.Slice((*float32)(unsafe.Pointer(&bytes[size-page-4*n])), n)
	}
	return memory, func() { unix.Munmap(bytes) }
}

// TestConvPaths checks that the network's layers take the intended paths.
func TestConvPaths(t *testing.T) {
	for _, l := range layers(16) {
		specs := []ConvSpec{l.spec}
		if l.spec.InDilation == nil {
			specs = append(specs, inputGradient(l.spec))
		}
		for pass, spec := range specs {
			channels, _ := fewest(halfNone)
			wide := min(spec.InChannels, spec.OutChannels) >= channels
			if c, err := PlanConv(spec); err != nil || c.direct == nil || (c.minimal != nil) != wide {
				t.Errorf("%s, pass %d, does not read windows in place, or is computed by minimal filtering although narrow, or not although wide: %v", l.name, pass, err)
			}
		}
	}
	for _, l := range []struct {
		spec ConvSpec
		tile int
	}{{nhwc(16, 32, 64, 128, 4, 2, 1), 4}, {inputGradient(nhwc(16, 16, 256, 512, 4, 2, 1)), 4}, {nhwc(16, 8, 256, 512, 4, 2, 1), 2}, {nhwc(1, 64, 64, 128, 4, 2, 1), 4}, {nhwc(1, 32, 64, 128, 4, 2, 1), 2},
		{nhwc(64, 32, 16, 32, 4, 2, 1), 2}} {
		if channels, _ := fewest(halfNone); l.spec.InChannels < channels {
			continue
		}
		if c, err := PlanConv(l.spec); err != nil || c.minimal == nil || int(c.minimal.q.tile) != l.tile {
			t.Errorf("%+v is not computed in tiles of %d × %d outputs: %v", l.spec, l.tile, l.tile, err)
		}
	}
	for size, tile := range map[int]int{8: 2, 16: 4, 32: 4} {
		if c, err := PlanConv(kernelGradient(nhwc(16, size, 64, 128, 4, 2, 1))); err != nil || c.gradient == nil || int(c.gradient.q.tile) != tile {
			t.Errorf("the gradient for a kernel of images of %d lines is not computed in tiles of %d × %d positions: %v", size, tile, tile, err)
		}
	}
	if vectorFloats() >= 8 {
		withHalf(halfPlain, func() {
			for _, spec := range []ConvSpec{nhwc(16, 32, 64, 128, 4, 2, 1), inputGradient(nhwc(16, 64, 64, 128, 4, 2, 1)), nhwc(16, 16, 256, 512, 4, 2, 1), nhwc(32, 64, 16, 32, 4, 2, 1)} {
				spec.Operands = Halves
				if c, err := PlanConv(spec); err != nil || c.direct == nil || c.direct.q.side == 0 {
					t.Errorf("%+v is not computed in strips: %v", spec, err)
				}
			}
		})
	}
	for _, small := range []ConvSpec{nhwc(16, 64, 3, 64, 4, 2, 1), nhwc(16, 64, 64, 3, 3, 1, 1), nhwc(16, 32, 64, 128, 4, 2, 1)} {
		c, err := PlanConv(kernelGradient(small))
		if err != nil || c.kernel == nil {
			t.Errorf("the gradient for the kernel of %+v is not summed image by image: %v", small, err)
			continue
		}
		if joined := min(small.InChannels, small.OutChannels) == 3; joined != (c.kernel.q.stacked > 0) {
			t.Errorf("the gradient for the kernel of %+v stacks %d floats", small, c.kernel.q.stacked)
		}
	}
}

// TestConvMinimal checks that minimal filtering gives the defined result, that a NaN reaches only the outputs that use it, or that are in the same tile of
// 4 × 4, and that nothing beyond the input is read.
func TestConvMinimal(t *testing.T) {
	defer func(channels, tiles int) { minimalChannels, minimalTiles = channels, tiles }(minimalChannels, minimalTiles)
	minimalChannels, minimalTiles = 0, 0
	p := NewPool(2)
	defer p.Close()
	defer func(rows, wide, quads, heavy, most int) {
		tileRows, wideRows, quadRows, heavyKernel, mostPlanes = rows, wide, quads, heavy, most
	}(tileRows, wideRows, quadRows, heavyKernel, mostPlanes)
	rows, heavy := tileRows, heavyKernel
	for _, tile := range []int{2, 4} {
		t.Run(fmt.Sprint("tiles of ", tile), func(t *testing.T) {
			forTiles(t, tile)
			readInPlace(t, 1<<30, 0)
			forMinimal(t, func(t *testing.T, o Operands) {
				for _, tileRows = range []int{rows, 5, 0} { // units of images, of some of an image's lines, and of panels for some images
					wideRows, quadRows, heavyKernel = tileRows, tileRows, heavy
					if tileRows == 0 {
						heavyKernel, mostPlanes = 0, 0
					}
					checkWindows(t, p, o, drawMinimal(o, tile), func(c *Conv) bool { return c.minimal != nil && int(c.minimal.q.tile) == tile })
				}
			})
		})
	}
}

// TestConvFewTiles checks the same for few tiles, which read the kernel in place, also if threads divide them.
func TestConvFewTiles(t *testing.T) {
	defer func(channels, tiles, rows, most int) {
		minimalChannels, minimalTiles, tileRows, mostPlanes = channels, tiles, rows, most
	}(minimalChannels, minimalTiles, tileRows, mostPlanes)
	minimalChannels, minimalTiles = 0, 1<<30
	forTiles(t, 2)
	readInPlace(t, 0, 1<<30)
	few := func(c *Conv) bool { return c.minimal != nil && c.minimal.few }
	for _, threads := range []int{2, 16} {
		p := NewPool(threads)
		defer p.Close()
		checkWindows(t, p, Exact, drawMinimal(Exact, 2), few)
		tileRows, mostPlanes = 0, 0
	}
}

// TestConvFewTilesError compares the errors of such tiles with those of sums of all products, which are added in blocks, too.
func TestConvFewTilesError(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	forEachSet(t, func(t *testing.T) { compareErrors(t, p, up(1, 8, 512, 256), 1.8) })
}

// TestTilesInPlace checks which convolutions read the kernel in place: those of 16 tiles, or 16 to 31 with vectors of 16 floats, for which its output
// channels are adjacent and fill four panels.
func TestTilesInPlace(t *testing.T) {
	forEachSet(t, func(t *testing.T) {
		cols, wide := 2*vectorFloats(), vectorFloats() == 16
		for _, of := range []struct {
			batch, size, out int
			want             bool
		}{{1, 4, 4 * cols, false}, {3, 4, 4 * cols, false}, {4, 4, 4 * cols, true}, {1, 8, 4 * cols, true}, {1, 8, 5 * cols, true}, {1, 8, 4*cols + cols/2, false},
			{1, 8, 3 * cols, false}, {2, 8, 4 * cols, false}, {1, 10, 4 * cols, wide}, {1, 12, 4 * cols, false}} {
			s := up(of.batch, of.size, 128, of.out)
			for _, adjacent := range []bool{true, false} {
				if !adjacent {
					s.KernelStrides = TensorStrides{128, 1, []int{4 * of.out * 128, of.out * 128}}
				}
				c, err := PlanConv(s)
				if err != nil {
					t.Fatal(err)
				}
				if got := c.minimal != nil && c.minimal.few; got != (of.want && adjacent) {
					t.Errorf("%d images of %d × %d, %d output channels, adjacent %v: read in place %v", of.batch, of.size, of.size, of.out, adjacent, got)
				}
			}
		}
	})
}

// readInPlace sets the numbers of tiles that read the kernel in place, of any number of panels, and has channels divided into several blocks.
func readInPlace(t *testing.T, fewest, most int) {
	before := [...]int{fewestRead, mostRead, mostWide, readPanels, planeBlock}
	t.Cleanup(func() {
		fewestRead, mostRead, mostWide, readPanels, planeBlock = before[0], before[1], before[2], before[3], before[4]
	})
	fewestRead, mostRead, mostWide, readPanels, planeBlock = fewest, most, most, 1, 16
}

func TestTileParts(t *testing.T) {
	for _, of := range []struct{ panels, tiles, threads, want int }{{8, 256, 16, 2}, {8, 256, 8, 1}, {8, 256, 2, 1}, {16, 64, 16, 1}, {8, 16, 16, 1}, {1, 1 << 12, 1, 1}} {
		if got := tileParts(of.panels, of.tiles, of.threads); got != of.want {
			t.Errorf("%d panels of %d tiles on %d threads are divided into %d parts of the tiles, want %d", of.panels, of.tiles, of.threads, got, of.want)
		}
	}
}

func TestEvenly(t *testing.T) {
	for _, of := range []struct{ images, most, threads, want int }{{128, 25, 16, 32}, {128, 25, 2, 26}, {128, 25, 1, 22}, {128, 38, 16, 32}, {128, 20, 16, 16}, {16, 30, 16, 16}, {17, 30, 16, 17}, {1, 1, 16, 1}, {7, 1, 1, 1}} {
		if got := evenly(of.images, of.most, of.threads); got != of.want {
			t.Errorf("%d images, at most %d at a time, on %d threads are staged %d at a time, want %d", of.images, of.most, of.threads, got, of.want)
		}
	}
}

// forTiles allows tiles of 4 × 4 outputs wherever they are possible, or excludes them.
func forTiles(t *testing.T, tile int) {
	channels, tiles := quadChannels, quadTiles
	t.Cleanup(func() { quadChannels, quadTiles = channels, tiles })
	quadChannels, quadTiles = 1, 0
	if tile == 2 {
		quadTiles = 1 << 30
	}
}

// unfiltered excludes minimal filtering from a test of other kernels.
func unfiltered(t *testing.T) {
	before := minimalTiles
	minimalTiles = 1 << 30
	t.Cleanup(func() { minimalTiles = before })
	readInPlace(t, 1<<30, 0)
}

// forMinimal runs a test with float32, and with each set for bfloat16 that this machine supports and that minimal filtering is possible with.
func forMinimal(t *testing.T, test func(t *testing.T, o Operands)) {
	t.Run("float32", func(t *testing.T) { test(t, Exact) })
	filteredHalves[halfPlain] = true
	defer func() { filteredHalves[halfPlain] = false }()
	forWindowedHalves(t, func(t *testing.T) { test(t, Halves) })
}

// drawMinimal returns a function that changes a convolution so that pairs of outputs share a value of each pair of taps, in whole tiles.
func drawMinimal(o Operands, tile int) func(*rapid.T, *ConvSpec) {
	return func(t *rapid.T, s *ConvSpec) {
		stored := s.Stored
		filterable(t, s, tile)
		if o == Halves {
			s.Stored, s.InChannels = stored, roundUp(s.InChannels, 2)
		}
	}
}

func filterable(t *rapid.T, s *ConvSpec, tile int) {
	pick := func(name string, from ...int) int { return rapid.SampledFrom(from).Draw(t, name) }
	s.InChannels, s.OutChannels, s.Stored = pick("channels", 3, 8, 16, 36, 48), pick("output channels", 16, 32, 80), Stored{}
	for d := range 2 {
		outputs := tile * rapid.IntRange(1, 12/tile).Draw(t, "outputs")
		s.Stride[d], s.InDilation[d], s.KernelDilation[d] = 1, 1, 1
		switch pick("form", 0, 1, 2) {
		case 0: // each pair of adjacent taps
			s.Kernel[d], s.In[d] = 2, outputs+1-s.PadLow[d]-s.PadHigh[d]
		case 1: // a stride of 2
			s.Kernel[d], s.Stride[d], s.In[d] = 4, 2, 2*outputs+2-s.PadLow[d]-s.PadHigh[d]
		case 2: // a dilated input: outputs of 2 classes
			s.Kernel[d], s.InDilation[d], s.PadLow[d], s.PadHigh[d], s.In[d] = 4, 2, 2, 2, outputs
		}
		s.In[d] = max(s.In[d], 1)
	}
}

// TestConvMinimalOutside checks convolutions that cut off some or all columns of the image, so that the windows that are left lie beyond it. A write at a
// column of the image's would end the process if these are far away.
func TestConvMinimalOutside(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	defer func(n int) { minimalTiles = n }(minimalTiles)
	minimalTiles = 0
	for _, tile := range []int{2, 4} {
		t.Run(fmt.Sprint("tiles of ", tile), func(t *testing.T) {
			forTiles(t, tile)
			for _, cut := range []int{4, 9, 1 << 22} {
				s := nhwc(2, 8, 32, 64, 2, 1, 0)
				s.PadLow, s.PadHigh, s.OutStrides = []int{0, -cut}, []int{1, cut + 9}, TensorStrides{8 * 16 * 64, 1, []int{16 * 64, 64}}
				if c, err := PlanConv(s); err != nil || c.minimal == nil || int(c.minimal.q.tile) != tile {
					t.Fatalf("%d columns cut off: not computed by minimal filtering: %v", cut, err)
				}
				checkConv(t, p, s)
			}
		})
	}
}

// TestConvMinimalGradient checks the same for gradients for kernels.
func TestConvMinimalGradient(t *testing.T) {
	defer func(channels, tiles int) { gradientChannels, minimalTiles = channels, tiles }(gradientChannels, minimalTiles)
	gradientChannels, minimalTiles = 1, 0
	numbers := []int{1, 2, 16} // of threads, which divide it differently
	if testing.Short() {
		numbers = []int{16}
	}
	for _, threads := range numbers {
		p := NewPool(threads)
		defer p.Close()
		t.Run(fmt.Sprint(threads, " threads"), func(t *testing.T) {
			for _, tile := range []int{2, 4} {
				t.Run(fmt.Sprint("tiles of ", tile), func(t *testing.T) {
					forTiles(t, tile)
					forMinimal(t, func(t *testing.T, o Operands) {
						checkMinimalGradient(t, p, o, tile)
					})
				})
			}
		})
	}
}

// TestGradientSplit checks that one thread stages v once for all taps, and that more threads have units for all of them.
func TestGradientSplit(t *testing.T) {
	for _, l := range []ConvSpec{nhwc(16, 64, 64, 128, 4, 2, 1), nhwc(16, 32, 128, 256, 4, 2, 1), nhwc(16, 8, 256, 512, 4, 2, 1)} {
		c, err := PlanConv(kernelGradient(l))
		if err != nil {
			t.Fatal(err)
		}
		if c.gradient == nil {
			t.Fatalf("%d × %d channels are not computed by minimal filtering", l.InChannels, l.OutChannels)
		}
		if s := c.gradient.split(1); s.parts != 1 || s.pairs != 1 {
			t.Errorf("%d × %d channels on one thread: %+v", l.InChannels, l.OutChannels, s)
		}
		for _, threads := range []int{2, 8, 16} {
			if s := c.gradient.split(threads); s.units() < threads {
				t.Errorf("%d × %d channels on %d threads: %+v", l.InChannels, l.OutChannels, threads, s)
			}
		}
	}
}

func checkMinimalGradient(t *testing.T, p *Pool, o Operands, tile int) {
	untilSome(t, "no gradient was computed by minimal filtering", func(t *rapid.T) int {
		pick := func(name string, from ...int) int { return rapid.SampledFrom(from).Draw(t, name) }
		s := nhwc(1, 8, 1, 1, 4, 2, 1)
		s.Batch, s.InChannels, s.OutChannels = pick("images", 1, 2, 5, 20), pick("channels", 1, 3, 16, 20, 33, 70, 140), pick("output channels", 1, 5, 16, 40, 64, 130)
		for d := range 2 {
			outputs := tile * rapid.IntRange(1, 14/tile).Draw(t, "outputs")
			low, high := rapid.IntRange(0, 2).Draw(t, "low"), rapid.IntRange(0, 2).Draw(t, "high")
			s.PadLow[d], s.PadHigh[d], s.Stride[d], s.Kernel[d] = low, high, 2, 4
			if rapid.Bool().Draw(t, "dense") {
				s.Stride[d], s.Kernel[d] = 1, 2
			}
			s.In[d] = max(1, (outputs-1)*s.Stride[d]+s.Kernel[d]-low-high)
		}
		channelsLast(t, &s)
		s = kernelGradient(s)
		if s.Operands = o; o == Halves {
			s.Stored = Stored{rapid.Bool().Draw(t, "input is stored as bfloat16"), rapid.Bool().Draw(t, "kernel is stored as bfloat16")}
		}
		return checkGuarded(t, p, s, func(c *Conv) bool { return c.gradient != nil && int(c.gradient.q.tile) == tile })
	})
}

// TestConvMinimalError compares the errors of minimal filtering and of sums of all products, both relative to float64, for normally distributed values.
// With bfloat16, they include those of the rounded operands.
func TestConvMinimalError(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	layer := nhwc(4, 32, 64, 128, 4, 2, 1)
	for _, tile := range []int{2, 4} {
		t.Run(fmt.Sprint("tiles of ", tile), func(t *testing.T) {
			forTiles(t, tile)
			limit := map[int]float64{2: 1.5, 4: 2.8}[tile]
			forMinimal(t, func(t *testing.T, o Operands) {
				for _, l := range []struct {
					spec  ConvSpec
					limit float64 // of the ratio of mean squared errors' roots
				}{{layer, limit}, {inputGradient(layer), limit}, {kernelGradient(layer), max(limit, 3)}} {
					if l.spec.Operands = o; o == Halves {
						l.limit = map[int]float64{2: 2.2, 4: 4.5}[tile]
					}
					compareErrors(t, p, l.spec, l.limit)
				}
			})
		})
	}
}

func compareErrors(t *testing.T, p *Pool, s ConvSpec, limit float64) {
	t.Helper()
	c, err := PlanConv(s)
	if err != nil || c.minimal == nil && c.gradient == nil {
		t.Fatalf("%+v is not computed by minimal filtering: %v", s, err)
	}
	direct := *c
	direct.minimal, direct.gradient = nil, nil
	r := rand.New(rand.NewPCG(1, 2))
	normal := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	x, w, sums := normal(c.reach[0]), normal(c.reach[1]), [2][]float32{make([]float32, c.reach[2]), make([]float32, c.reach[2])}
	in, kernel := slices.Clone(x), slices.Clone(w)
	if s.Operands == Halves {
		for _, values := range [][]float32{in, kernel} {
			for i, v := range values {
				bits := math.Float32bits(v)
				values[i] = math.Float32frombits((bits + 0x7fff + bits>>16&1) &^ 0xffff)
			}
		}
	}
	c.Run(p, in, kernel, sums[0])
	direct.Run(p, in, kernel, sums[1])
	var squares [2]float64
	outputs := 0.0
	s = c.spec
	for range 1000 {
		b, o, y, z := r.IntN(s.Batch), r.IntN(s.OutChannels), r.IntN(c.out[0]), r.IntN(c.out[1])
		want, _ := naiveConv(s, x, w, b, o, []int{y, z})
		outputs += want * want
		for i, sum := range sums {
			d := float64(sum[b*s.OutStrides.Batch+o*s.OutStrides.Channel+y*s.OutStrides.Spatial[0]+z*s.OutStrides.Spatial[1]]) - want
			squares[i] += d * d
		}
	}
	if ratio := math.Sqrt(squares[0] / squares[1]); !(ratio <= limit) {
		t.Errorf("errors are %.2f times those of sums of all products, at most %g are expected: %+v", ratio, limit, s)
	} else {
		t.Logf("errors are %.2f times those of sums of all products, and %.2g times the outputs", ratio, math.Sqrt(squares[0]/outputs))
	}
}

// TestConvMinimalInParts checks that images computed in parts, as in a cascade, give the same outputs.
func TestConvMinimalInParts(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	c, err := PlanConv(nhwc(7, 16, 32, 32, 4, 2, 1))
	if err != nil || c.minimal == nil {
		t.Fatalf("not computed by minimal filtering: %v", err)
	}
	x, w, whole, parts := random(1, c.reach[0]), random(2, c.reach[1]), make([]float32, c.reach[2]), make([]float32, c.reach[2])
	c.Run(p, x, w, whole)
	NewCascade([]Divisible{c}, 7, 2).Run(p, [][][]byte{{bytesOf(parts)}}, [][][]byte{{bytesOf(x), bytesOf(w)}}, nil)
	for i, v := range whole {
		if parts[i] != v {
			t.Fatalf("output %d is %v in parts, %v otherwise", i, parts[i], v)
		}
	}
}

// bytesOf returns the memory of floats.
func bytesOf(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}
