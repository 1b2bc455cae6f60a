//go:build cgo

package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

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
				if _, _, ok := c.Whole(); ok && c.minimal != nil && c.minimal.few {
					t.Errorf("%d images of %d × %d would be computed one by one, and not read the kernel in place", of.batch, of.size, of.size)
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
	for _, tile := range []int{2, 4} {
		t.Run(fmt.Sprint("tiles of ", tile), func(t *testing.T) {
			forTiles(t, tile)
			forMinimal(t, func(t *testing.T, o Operands) {
				s := nhwc(7, 32, 32, 32, 4, 2, 1)
				s.Operands = o
				checkInParts(t, p, s)
				if o == Halves {
					s.Stored = Stored{true, true}
					checkInParts(t, p, s)
				}
			})
		})
	}
}

func checkInParts(t *testing.T, p *Pool, s ConvSpec) {
	t.Helper()
	c, err := PlanConv(s)
	if err != nil || c.minimal == nil {
		t.Fatalf("not computed by minimal filtering: %v", err)
	}
	if _, flops, ok := c.Whole(); !ok || flops != 2*7*16*16*32*16*32 {
		t.Errorf("images can be computed one by one: %v, with %d operations", ok, flops)
	}
	x, w, whole, parts := random(1, c.reach[0]), random(2, c.reach[1]), make([]float32, c.reach[2]), make([]float32, c.reach[2])
	if s.Operands == Halves {
		toHalf(x)
		toHalf(w)
	}
	x, w = s.Stored.store(0, x), s.Stored.store(1, w)
	c.Run(p, x, w, whole)
	NewCascade([]Divisible{c}, 7, 2).Run(p, [][][]byte{{bytesOf(parts)}}, [][][]byte{{bytesOf(x), bytesOf(w)}}, nil)
	for i, v := range whole {
		if parts[i] != v {
			t.Fatalf("output %d is %v in parts, %v otherwise", i, parts[i], v)
		}
	}
}
