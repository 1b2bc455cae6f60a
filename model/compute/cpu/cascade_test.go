//go:build cgo

package cpu

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/backends"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"pgregory.net/rapid"
)

// withCascades sets the size from which steps form cascades, until the test ends.
func withCascades(t testing.TB, least int) {
	before := cascadeLeast
	cascadeLeast = least
	t.Cleanup(func() { cascadeLeast = before })
}

// cascades counts the cascades of an executable and their links.
func cascades(e *Executable) (count, links int) {
	for _, s := range e.steps {
		if s.cascade != nil {
			count, links = count+1, links+len(s.cascade.links)
		}
	}
	return count, links
}

// normed normalizes images [n, h, w, c] by their channels' mean and variance.
func normed(x *Node) *Node {
	mean := func(x *Node) *Node { return ReduceAndKeep(x, ReduceMean, 1, 2) }
	d := Sub(x, mean(x))
	return Div(d, Sqrt(AddScalar(mean(Square(d)), 1e-5)))
}

func TestCascadeOfLayers(t *testing.T) {
	withCascades(t, 1)
	params := []shapes.Shape{f32(16, 8, 8, 4), f32(3, 3, 4, 8), f32(16, 8), f32(8, 8)}
	e := build(t, engine(t), params, func(in []*Node) []*Node {
		y := normed(Convolve(in[0], in[1]).PadSame().Done())
		scale := Reshape(Dot(in[2], in[3]), 16, 1, 1, 8) // does not need the convolution
		return []*Node{Reverse(y, 0), Tanh(Mul(y, BroadcastToShape(scale, y.Shape())))}
	})
	count, links := cascades(e)
	if count != 1 || links < 5 {
		t.Errorf("%d cascades of %d links in steps %v; want one of at least 5", count, links, work(e))
	}
	at := slices.IndexFunc(e.steps, func(s *step) bool { return s.cascade != nil })
	if product := slices.Index(work(e), "DotGeneral"); product < 0 || product > at {
		t.Errorf("the product of step %d is computed after the cascade of step %d, which needs it", product, at)
	}
}

// TestCascadeOfFewParts has as many images as all threads can compute at the same time, or not, and kernels of several sizes.
func TestCascadeOfFewParts(t *testing.T) {
	withCascades(t, 1)
	for _, of := range []struct {
		threads    string
		n, c, want int // images, channels, and images of a unit of the cascade, or 0 if there is none
	}{{"2", 16, 8, 2}, {"4", 16, 8, 1}, {"8", 16, 8, 1}, {"16", 16, 8, 1}, {"12", 16, 8, 0}, {"12", 24, 8, 1}, {"12", 50, 8, 1}, {"12", 100, 8, 2}, {"16", 1, 8, 0},
		{"4", 16, 96, 0}, {"8", 16, 96, 1}, {"8", 16, 192, 0}} { // kernels of 2.25, 324 and 1,296 KiB
		e := build(t, engineOf(t, of.threads), []shapes.Shape{f32(of.n, 8, 8, of.c), f32(3, 3, of.c, of.c)}, func(in []*Node) []*Node {
			return []*Node{Exp(Convolve(in[0], in[1]).PadSame().Done())}
		})
		got := 0
		for _, s := range e.steps {
			if s.cascade != nil {
				got = s.cascade.unit
			}
		}
		if got != of.want {
			t.Errorf("%s threads compute %d of %d images with %d channels at a time, want %d", of.threads, got, of.n, of.c, of.want)
		}
	}
}

// TestCascadeKeepsWholeOperands has a convolution that reads its kernel x in place, and a later link whose result could take the memory of x.
func TestCascadeKeepsWholeOperands(t *testing.T) {
	b := engineOf(t, "1")
	params := []shapes.Shape{f32(32, 16), f32(16, 32), f32(4, 4, 4, 8)}
	var results [2][]float32
	for i, least := range []int{1, math.MaxInt} {
		withCascades(t, least)
		e := build(t, b, params, func(in []*Node) []*Node {
			x := Reshape(Dot(in[0], in[1]), 4, 4, 8, 8)
			sums := ReduceAndKeep(Convolve(in[2], x).PadSame().Done(), ReduceSum, 1, 2)
			return []*Node{Reverse(Mul(x, sums), 0)}
		})
		if count, links := cascades(e); i == 0 && (count != 1 || links != 3) {
			t.Fatalf("%d cascades of %d links in steps %v; want one of 3", count, links, work(e))
		}
		results[i] = computed(t, b, e, nil)[0]
	}
	for i, x := range results[0] {
		if y := results[1][i]; !(math.Abs(float64(x-y)) < 1e-3*(1+math.Abs(float64(y)))) {
			t.Fatalf("element %d is %v with a cascade, %v without", i, x, y)
		}
	}
}

// computed returns the results for inputs of waves.
func computed(t failer, b backends.Backend, e *Executable, donate []bool) (results [][]float32) {
	t.Helper()
	_, shapes := e.Inputs()
	var in []backends.Buffer
	for _, s := range shapes {
		x := make([]float32, s.Size())
		for i := range x {
			x[i] = float32(math.Sin(float64(i) * 1.7))
		}
		in = append(in, upload(t, b, flat{x, s}))
	}
	out, err := e.Execute(in, donate, 0)
	if err != nil {
		t.Fatal(err)
	}
	for k, o := range out {
		x := make([]float32, e.Outputs()[k].Size())
		if err := b.BufferToFlatData(o, x); err != nil {
			t.Fatal(err)
		}
		results = append(results, x)
	}
	return results
}

// drawNetwork draws operations on images. Some compute image by image, others need several images or all of them.
func drawNetwork(t *rapid.T) (n int, fn func(x, kernel, bias *Node) []*Node) {
	n = rapid.SampledFrom([]int{8, 9, 16}).Draw(t, "images")
	ops := rapid.SliceOfN(rapid.SampledFrom([]string{"exp", "bias", "earlier", "norm", "conv", "stride", "reversed", "batch", "transposed", "across", "sum"}), 2, 12).Draw(t, "operations")
	picks := rapid.SliceOfN(rapid.IntRange(0, 100), len(ops), len(ops)).Draw(t, "picks")
	return n, func(x, kernel, bias *Node) []*Node {
		all, outs := []*Node{x}, []*Node{}
		for i, op := range ops {
			pick := all[picks[i]%len(all)]
			switch op {
			case "exp":
				x = Exp(Neg(Square(x)))
			case "bias":
				x = Max(Add(x, bias), MulScalar(x, 0.2))
			case "earlier":
				if pick.Shape().Equal(x.Shape()) {
					x = Sub(MulScalar(x, 0.5), pick)
				}
			case "norm":
				x = normed(x)
			case "conv":
				x = MulScalar(Convolve(x, kernel).PadSame().Done(), 0.1)
			case "stride":
				if x.Shape().Dimensions[1] > 4 {
					x = Convolve(x, kernel).Strides(2).PadSame().Done()
				}
			case "reversed":
				x = Add(x, MulScalar(Reverse(x, 0), 0.5))
			case "batch":
				x = Sub(x, ReduceAndKeep(x, ReduceMean, 0))
			case "transposed":
				x = Add(x, Transpose(x, 1, 2))
			case "across":
				if d := pick.Shape().Dimensions; d[0] == d[1] && pick.Shape().Equal(x.Shape()) {
					x = Sub(Tanh(x), Transpose(pick, 0, 1))
				}
			case "sum":
				outs = append(outs, ReduceAllSum(Square(x)), ReduceSum(pick, 0))
			}
			all = append(all, x)
			if picks[i]%5 == 0 {
				outs = append(outs, pick)
			}
		}
		return append(outs, x)
	}
}

// TestCascadesChangeNothing compares random networks with and without cascades, which may only change the order of sums, with and without a donated input.
func TestCascadesChangeNothing(t *testing.T) {
	engines, found := []backends.Backend{engineOf(t, "2"), engineOf(t, "8")}, 0
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SampledFrom(engines).Draw(t, "engine")
		n, fn := drawNetwork(t)
		donate := rapid.Bool().Draw(t, "donate")
		params := []shapes.Shape{f32(n, 8, 8, 8), f32(3, 3, 8, 8), f32(1, 1, 1, 8)}
		var results [2][][]float32
		for i, least := range []int{1, math.MaxInt} {
			before := cascadeLeast
			cascadeLeast = least
			e := build(t, b, params, func(in []*Node) []*Node { return fn(in[0], in[1], in[2]) })
			cascadeLeast = before
			if count, _ := cascades(e); i == 0 && count > 0 {
				found++
			}
			results[i] = computed(t, b, e, []bool{donate, false, false})
			again := computed(t, b, e, []bool{donate, false, false}) // in used memory
			for k, x := range results[i] {
				same := func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }
				if !slices.EqualFunc(x, again[k], same) {
					t.Fatalf("result %d differs the second time", k)
				}
			}
		}
		for k := range results[0] {
			largest := float32(1)
			for _, x := range results[0][k] {
				largest = max(largest, x, -x)
			}
			for i, x := range results[0][k] {
				if y := results[1][k][i]; !(math.Abs(float64(x-y)) < 1e-3*float64(largest)) {
					t.Fatalf("element %d of result %d is %v with cascades, %v without", i, k, x, y)
				}
			}
		}
	})
	if found == 0 {
		t.Error("no network had a cascade")
	}
}
