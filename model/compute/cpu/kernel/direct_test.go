//go:build cgo

package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
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

// TestHalfConvSpread checks the same for pairs of bfloat16.
func TestHalfConvSpread(t *testing.T) {
	joinChannels(t)
	p := NewPool(2)
	defer p.Close()
	forWindowedHalves(t, func(t *testing.T) {
		checkWindows(t, p, Halves, func(t *rapid.T, s *ConvSpec) {
			s.OutChannels, s.Stride = rapid.IntRange(1, 8).Draw(t, "channels"), []int{1, 1}
			s.InChannels = 2 * rapid.IntRange(1, 20).Draw(t, "pairs of inputs' channels")
		}, func(c *Conv) bool { return c.direct != nil && c.direct.q.spread > 0 && c.direct.q.half != halfNone })
	})
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

// TestHalfConvCut checks the same for windows of an odd number of channels, of which a line may have an odd number of values.
func TestHalfConvCut(t *testing.T) {
	unfiltered(t)
	p := NewPool(2)
	defer p.Close()
	forWindowedHalves(t, func(t *testing.T) {
		checkWindows(t, p, Halves, func(t *rapid.T, s *ConvSpec) {
			s.InChannels = rapid.SampledFrom([]int{1, 3, 5, 7, 17, 33}).Draw(t, "odd")
			s.OutChannels = rapid.SampledFrom([]int{9, 16, 31, 32, 48, 65}).Draw(t, "many")
			s.In[1], s.KernelDilation[1], s.InDilation[1] = rapid.IntRange(4, 40).Draw(t, "width"), 1, 1
		}, func(c *Conv) bool { return c.direct != nil && c.direct.q.cut.words > 0 })
	})
}

// TestHalfConvCutEndsInZero checks that the last pair of a line of taps has no rest of another kernel, here of one whose values are all NaN.
func TestHalfConvCutEndsInZero(t *testing.T) {
	p := NewPool(1)
	defer p.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	forWindowedHalves(t, func(t *testing.T) {
		for _, channels := range []int{33, 3} {
			s := nhwc(1, 16, channels, 48, 3, 1, 1)
			s.Operands = Halves
			c, err := PlanConv(s)
			if err != nil || c.direct == nil || c.direct.q.cut.words == 0 {
				t.Fatalf("lines of %d channels are not cut: %v", channels, err)
			}
			x, w, out := toHalf(random(1, c.reach[0])), toHalf(random(2, c.reach[1])), make([]float32, c.reach[2])
			for i := range w {
				if channels > 3 {
					w[i] = float32(math.NaN())
				}
			}
			c.Run(p, x, w, out)
			if nan := slices.ContainsFunc(out, func(v float32) bool { return v != v }); nan != (channels > 3) {
				t.Errorf("%d channels: an output is NaN: %v", channels, nan)
			}
		}
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

// TestHalfConvStacked checks the same for few channels, whose windows are stacked, as pairs of bfloat16.
func TestHalfConvStacked(t *testing.T) {
	joinChannels(t)
	p := NewPool(2)
	defer p.Close()
	for _, exchanged := range []bool{false, true} {
		forWindowedHalves(t, func(t *testing.T) {
			checkCorrelation(t, p, Halves, func(t *rapid.T, s *ConvSpec) {
				few, many := rapid.IntRange(1, 4).Draw(t, "few"), rapid.IntRange(8, 40).Draw(t, "many")
				if s.Batch, s.OutChannels = few, many; exchanged {
					s.Batch, s.OutChannels, s.KernelDilation = many, few, []int{1, 1}
				}
			}, func(c *Conv) bool {
				return c.kernel != nil && c.kernel.q.half != halfNone && c.kernel.q.stacked > 0 && c.kernel.exchanged == exchanged
			})
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

// TestHalfConvTiledTogether checks the same where taps share staged lines: the lines of all images, or of all blocks of them but the last, fill whole steps. One
// thread sums all images.
func TestHalfConvTiledTogether(t *testing.T) {
	p := NewPool(1)
	defer p.Close()
	forTiled(t, func(t *testing.T, _ *Pool, o Operands) {
		checkCorrelation(t, p, o, func(t *rapid.T, s *ConvSpec) {
			s.Batch, s.OutChannels = 16*rapid.IntRange(1, 2).Draw(t, "sixteens"), 16*rapid.IntRange(1, 3).Draw(t, "v's sixteens")
			s.Kernel = []int{rapid.SampledFrom([]int{3, 16}).Draw(t, "v's lines"), 16}
			s.InChannels = rapid.IntRange(4, 6).Draw(t, "images")
		}, func(c *Conv) bool {
			return c.kernel != nil && c.kernel.q.tiled == 1 && c.kernel.q.oh > c.kernel.q.apart && (c.kernel.q.images%2 == 0 || c.kernel.q.h == 16)
		})
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

// TestConvRounds checks outputs that are stored as bfloat16: whole vectors and parts of them, of all outputs or with others in between, and tiles of minimal
// filtering of both sizes.
func TestConvRounds(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	apart := nhwc(3, 16, 16, 40, 4, 2, 1) // outputs have places for four more channels
	apart.OutStrides = TensorStrides{8 * 8 * 44, 1, []int{8 * 44, 44}}
	check := func(t *testing.T, minimal int, specs ...ConvSpec) {
		for _, s := range specs {
			s.Operands = Halves
			c, err := PlanConv(s)
			if err != nil || !c.Rounds() || (c.minimal != nil) != (minimal > 0) || c.minimal != nil && int(c.minimal.q.tile) != minimal {
				t.Errorf("not computed as intended, with outputs stored as bfloat16: %v\n%+v", err, s)
				continue
			}
			x, w, before := random(1, c.reach[0]), random(2, c.reach[1]), random(3, c.reach[2])
			out := append([]float32(nil), before...)
			c.Run(p, toHalf(x), toHalf(w), out)
			checkRounded(t, p, s, x, w, before, out)
		}
	}
	forHalves(t, []int{halfAVX512}, func(t *testing.T) {
		check(t, 0, nhwc(3, 16, 16, 16, 4, 2, 1), nhwc(2, 11, 10, 37, 3, 1, 1), nhwc(2, 64, 3, 16, 4, 2, 1), inputGradient(nhwc(2, 16, 16, 32, 4, 2, 1)), apart)
	})
	for _, tile := range []int{2, 4} {
		t.Run(fmt.Sprint("tiles of ", tile), func(t *testing.T) {
			forTiles(t, tile)
			forMinimal(t, func(t *testing.T, o Operands) {
				if s := nhwc(7, 16, 32, 48, 4, 2, 1); o == Halves {
					check(t, tile, s, inputGradient(s))
				}
			})
		})
	}
	ofFloats, gradient := nhwc(3, 16, 16, 16, 4, 2, 1), kernelGradient(nhwc(3, 16, 16, 16, 4, 2, 1))
	gradient.Operands = Halves
	for _, s := range []ConvSpec{ofFloats, gradient} {
		s.Rounds = true
		if _, err := PlanConv(s); err == nil || !strings.Contains(err.Error(), "output cannot be stored as bfloat16") {
			t.Errorf("a convolution that cannot store bfloat16: %v", err)
		}
	}
}

// TestConvLargeCorrelation checks gradients for kernels that are too large for each thread to have its own copy, in either order of the kernel's channels.
func TestConvLargeCorrelation(t *testing.T) {
	unfiltered(t)
	specs := []ConvSpec{nhwc(5, 16, 128, 144, 4, 2, 1), nhwc(3, 20, 80, 400, 3, 1, 1), nhwc(70, 4, 300, 100, 3, 1, 1)}
	check := func(t *testing.T, o Operands, specs []ConvSpec) {
		for _, threads := range []int{1, 3, 16} {
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
			check(t, o, []ConvSpec{nhwc(5, 16, 128, 144, 4, 2, 1), nhwc(8, 16, 128, 144, 4, 2, 1), nhwc(70, 4, 320, 112, 3, 1, 1)})
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
	if c.Rounds() {
		checkRounded(t, p, s, operands[0], operands[1], make([]float32, len(out)), out)
	}
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
		{nhwc(64, 32, 16, 32, 4, 2, 1), 4}, {inputGradient(nhwc(1, 64, 16, 32, 4, 2, 1)), 4}} {
		if c, err := PlanConv(l.spec); err != nil || c.minimal == nil || int(c.minimal.q.tile) != l.tile {
			t.Errorf("%+v is not computed in tiles of %d × %d outputs: %v", l.spec, l.tile, l.tile, err)
		}
	}
	for size, tile := range map[int]int{8: 2, 16: 4, 32: 4} {
		if c, err := PlanConv(kernelGradient(nhwc(16, size, 64, 128, 4, 2, 1))); err != nil || c.gradient == nil || int(c.gradient.q.tile) != tile {
			t.Errorf("the gradient for a kernel of images of %d lines is not computed in tiles of %d × %d positions: %v", size, tile, tile, err)
		}
	}
	narrow := kernelGradient(nhwc(16, 64, vectorFloats(), 2*vectorFloats(), 4, 2, 1))
	for _, swapped := range []bool{false, true} { // a result with 16 or 32 columns, which a tile has as rows or columns
		if swapped {
			narrow.OutStrides.Batch, narrow.OutStrides.Channel = 1, narrow.Batch
		}
		if c, err := PlanConv(narrow); vectorFloats() >= 16 && (err != nil || c.gradient == nil || c.gradient.q.tile != 4 || c.gradient.q.swapped != 0 || c.gradient.transposed != swapped) {
			t.Errorf("the gradient for a kernel of 16 × 32 channels, swapped %v, is not computed with 32 columns: %v", swapped, err)
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
	if runsHalf()[halfAVX512] && vectorFloats() >= 16 {
		withHalf(halfAVX512, func() {
			for _, channels := range []int{8, 16, 64} {
				last := nhwc(16, 64, channels, 3, 3, 1, 1)
				gradient := kernelGradient(last)
				last.Operands, gradient.Operands = Halves, Halves
				if c, err := PlanConv(last); err != nil || c.direct == nil || c.direct.q.spread == 0 || c.direct.q.half != halfAVX512 {
					t.Errorf("positions of %d channels are not multiplied with all taps as pairs of bfloat16: %v", channels, err)
				}
				if c, err := PlanConv(gradient); err != nil || c.kernel == nil || c.kernel.q.stacked == 0 || c.kernel.q.half != halfAVX512 {
					t.Errorf("the gradient for the kernel of %d → 3 channels is not stacked as pairs of bfloat16: %v", channels, err)
				}
				if channels == 8 {
					continue // which do not fill vectors of 16
				}
				for _, odd := range []ConvSpec{inputGradient(nhwc(16, 64, channels, 3, 3, 1, 1)), nhwc(16, 64, 3, channels, 4, 2, 1)} {
					odd.Operands = Halves
					if c, err := PlanConv(odd); err != nil || c.direct == nil || c.direct.q.cut.words == 0 || c.direct.q.half != halfAVX512 {
						t.Errorf("windows of 3 channels are not read as pairs of bfloat16, for %d output channels: %v", channels, err)
					}
				}
			}
		})
	}
}

// bytesOf returns the memory of floats.
func bytesOf(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}
