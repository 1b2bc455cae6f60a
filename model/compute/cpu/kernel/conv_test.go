//go:build cgo

package kernel

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// rowMajor returns the strides of a dense tensor.
func rowMajor(extents ...int) []int {
	out, n := make([]int, len(extents)), 1
	for i := len(extents) - 1; i >= 0; i-- {
		out[i] = n
		n *= extents[i]
	}
	return out
}

// layout returns the strides of a dense tensor whose axes [batch, channel, spatial…] are stored in the given order.
func layout(order []int, extents []int) TensorStrides {
	inMemory := make([]int, len(order))
	for i, axis := range order {
		inMemory[i] = extents[axis]
	}
	dense, strides := rowMajor(inMemory...), make([]int, len(order))
	for i, axis := range order {
		strides[axis] = dense[i]
	}
	return TensorStrides{strides[0], strides[1], strides[2:]}
}

func TestConvAnySpec(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	forEachSet(t, func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { checkConv(t, p, drawConv(t)) }) })
}

func FuzzConv(f *testing.F) {
	p := NewPool(3)
	f.Cleanup(p.Close)
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { checkConv(t, p, drawConv(t)) }))
}

// TestConvShifts checks that a convolution with few outputs and a large kernel is computed by shifting the kernel.
func TestConvShifts(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	forEachSet(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			s := ConvSpec{
				Batch: rapid.IntRange(20, 40).Draw(t, "batch"), InChannels: rapid.IntRange(1, 3).Draw(t, "in"), OutChannels: rapid.IntRange(1, 40).Draw(t, "out"),
				Reverse: []bool{rapid.Bool().Draw(t, "reverse 0"), rapid.Bool().Draw(t, "reverse 1")}, Stored: drawStored(t),
			}
			for range 2 {
				in, low, outputs := rapid.IntRange(4, 9).Draw(t, "extent"), rapid.IntRange(-1, 2).Draw(t, "low"), rapid.IntRange(1, 3).Draw(t, "outputs")
				kernel := in + rapid.IntRange(-1, 2).Draw(t, "kernel")
				s.In, s.Kernel, s.PadLow = append(s.In, in), append(s.Kernel, kernel), append(s.PadLow, low)
				s.PadHigh = append(s.PadHigh, kernel+outputs-1-in-low)
			}
			out, err := s.withStrides().OutShape()
			if err != nil {
				t.Skip(err)
			}
			order := rapid.Permutation([]int{0, 1, 2, 3}).Draw(t, "order")
			s.InStrides = layout(order, append([]int{s.Batch, s.InChannels}, s.In...))
			s.KernelStrides = layout(order, append([]int{s.OutChannels, s.InChannels}, s.Kernel...))
			s.OutStrides = layout(order, append([]int{s.Batch, s.OutChannels}, out...))
			checkConv(t, p, s)
		})
	})
	c, err := PlanConv(kernelGradient(nhwc(2, 8, 64, 3, 3, 1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if m, n := c.pieces[0].q.c.m, c.pieces[0].q.c.n; m != 64 || n != 27 {
		t.Errorf("the gradient for a 3x3 kernel from 64 to 3 channels is a product of %d by %d, want 64 by 27", m, n)
	}
}

func drawConv(t *rapid.T) ConvSpec {
	dims := rapid.IntRange(1, 3).Draw(t, "dims")
	draw := func(name string, lo, hi int) []int {
		return rapid.SliceOfN(rapid.IntRange(lo, hi), dims, dims).Draw(t, name)
	}
	s := ConvSpec{
		Batch: rapid.IntRange(0, 4).Draw(t, "batch"), InChannels: rapid.SampledFrom(edges[1:14]).Draw(t, "in"),
		OutChannels: rapid.SampledFrom(edges[1:]).Draw(t, "out"), Groups: 1, BatchGroups: 1,
		In: draw("extent", 1, 9), Kernel: draw("kernel", 1, 5), Stride: draw("stride", 1, 3), PadLow: draw("low", -1, 4), PadHigh: draw("high", 0, 4),
		InDilation: draw("input dilation", 1, 3), KernelDilation: draw("kernel dilation", 1, 3),
		Reverse: rapid.SliceOfN(rapid.Bool(), dims, dims).Draw(t, "reverse"),
	}
	groups := rapid.IntRange(1, 3).Draw(t, "groups")
	if rapid.Bool().Draw(t, "batch groups") {
		s.BatchGroups, s.Batch, s.OutChannels = groups, s.Batch*groups, s.OutChannels*groups
	} else {
		s.Groups, s.InChannels, s.OutChannels = groups, s.InChannels*groups, s.OutChannels*groups
	}
	if s.Groups*s.BatchGroups == 1 {
		s.Stored = drawStored(t)
	}
	axes := []int{0, 1, 2, 3, 4}[:2+dims]
	shuffled := func(name string) []int {
		if rapid.Bool().Draw(t, name+" channels last") {
			return append(append([]int{0}, axes[2:]...), 1)
		}
		return rapid.Permutation(axes).Draw(t, name)
	}
	out, err := s.withStrides().OutShape()
	if err != nil {
		t.Skip(err)
	}
	s.InStrides = layout(shuffled("input"), append([]int{s.Batch, s.InChannels}, s.In...))
	s.KernelStrides = layout(shuffled("kernel"), append([]int{s.OutChannels, s.InChannels / s.Groups}, s.Kernel...))
	s.OutStrides = layout(shuffled("output"), append([]int{s.Batch / s.BatchGroups, s.OutChannels}, out...))
	return s
}

// withStrides returns the spec with strides of the right length.
func (s ConvSpec) withStrides() ConvSpec {
	zero := TensorStrides{Spatial: make([]int, len(s.In))}
	s.InStrides, s.KernelStrides, s.OutStrides = zero, zero, zero
	return s
}

// nhwc returns a dense two-dimensional convolution of square images, channels last, kernel HWIO.
func nhwc(batch, size, in, out, kernel, stride, pad int) ConvSpec {
	o := (size+2*pad-kernel)/stride + 1
	return ConvSpec{
		Batch: batch, InChannels: in, OutChannels: out,
		In: []int{size, size}, Kernel: []int{kernel, kernel}, Stride: []int{stride, stride}, PadLow: []int{pad, pad}, PadHigh: []int{pad, pad},
		InStrides:     TensorStrides{size * size * in, 1, []int{size * in, in}},
		KernelStrides: TensorStrides{1, out, []int{kernel * in * out, in * out}},
		OutStrides:    TensorStrides{o * o * out, 1, []int{o * out, out}},
	}
}

// inputGradient returns the convolution that GoMLX uses for the gradient of s for its input, with an unreversed kernel.
func inputGradient(s ConvSpec) ConvSpec {
	out, err := s.OutShape()
	if err != nil {
		panic(err)
	}
	g := ConvSpec{Batch: s.Batch, InChannels: s.OutChannels, OutChannels: s.InChannels, In: out, Kernel: s.Kernel, InDilation: s.Stride,
		Reverse: []bool{true, true}, InStrides: s.OutStrides, OutStrides: s.InStrides,
		KernelStrides: TensorStrides{s.KernelStrides.Channel, s.KernelStrides.Batch, s.KernelStrides.Spatial}}
	for d := range s.In {
		low := s.Kernel[d] - 1 - s.PadLow[d]
		g.PadLow = append(g.PadLow, low)
		g.PadHigh = append(g.PadHigh, s.In[d]+s.Kernel[d]-1-low-((out[d]-1)*s.Stride[d]+1))
	}
	return g
}

// kernelGradient returns the convolution that GoMLX uses for the gradient of s for its kernel.
func kernelGradient(s ConvSpec) ConvSpec {
	out, err := s.OutShape()
	if err != nil {
		panic(err)
	}
	g := ConvSpec{Batch: s.InChannels, InChannels: s.Batch, OutChannels: s.OutChannels, In: s.In, Kernel: out, KernelDilation: s.Stride,
		PadLow:        s.PadLow,
		InStrides:     TensorStrides{s.InStrides.Channel, s.InStrides.Batch, s.InStrides.Spatial},
		KernelStrides: TensorStrides{s.OutStrides.Channel, s.OutStrides.Batch, s.OutStrides.Spatial},
		OutStrides:    TensorStrides{s.KernelStrides.Channel, s.KernelStrides.Batch, s.KernelStrides.Spatial}}
	for d := range s.In {
		window := (out[d]-1)*s.Stride[d] + 1
		g.PadHigh = append(g.PadHigh, s.Kernel[d]-1+window-s.In[d]-s.PadLow[d])
	}
	return g
}

// up returns a transposed convolution 4×4 with stride 2 and padding 1: the gradient of a convolution for its input.
// Its kernel is HWIO.
func up(batch, size, in, out int) ConvSpec {
	s := inputGradient(nhwc(batch, 2*size, out, in, 4, 2, 1))
	s.KernelStrides = TensorStrides{1, out, []int{4 * in * out, in * out}}
	return s
}

type namedConv struct {
	name string
	spec ConvSpec
}

// layers returns the convolutions of the paper's and the tiny network, for images of 64 by 64.
func layers(batch int) []namedConv {
	return []namedConv{
		{"encoder 3-64", nhwc(batch, 64, 3, 64, 4, 2, 1)}, {"encoder 64-128", nhwc(batch, 32, 64, 128, 4, 2, 1)},
		{"encoder 128-256", nhwc(batch, 16, 128, 256, 4, 2, 1)}, {"encoder 256-512", nhwc(batch, 8, 256, 512, 4, 2, 1)},
		{"decoder 512-512", up(batch, 4, 512, 512)}, {"decoder 512-256", up(batch, 8, 512, 256)},
		{"decoder 256-128", up(batch, 16, 256, 128)}, {"decoder 128-64", up(batch, 32, 128, 64)},
		{"out 64-3", nhwc(batch, 64, 64, 3, 3, 1, 1)}, {"out 8-3", nhwc(batch, 64, 8, 3, 3, 1, 1)},
		{"encoder 3-8", nhwc(batch, 64, 3, 8, 4, 2, 1)}, {"decoder 16-8", up(batch, 32, 16, 8)},
	}
}

func TestConvNetworkLayers(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	for _, c := range []ConvSpec{nhwc(2, 16, 3, 64, 4, 2, 1), nhwc(2, 8, 16, 20, 4, 2, 1), nhwc(3, 5, 36, 33, 3, 1, 1), nhwc(2, 4, 40, 48, 2, 1, 1), nhwc(2, 7, 64, 3, 3, 1, 1)} {
		checkConv(t, p, c)
		checkConv(t, p, inputGradient(c))
		checkConv(t, p, kernelGradient(c))
	}
}

// TestConvGradientsAreAdjoint checks that ⟨conv(x, w), v⟩ = ⟨x, inputGradient(v, w)⟩ = ⟨w, kernelGradient(x, v)⟩.
func TestConvGradientsAreAdjoint(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	for _, s := range []ConvSpec{nhwc(2, 16, 3, 8, 4, 2, 1), nhwc(2, 9, 5, 7, 3, 1, 1), nhwc(3, 4, 6, 24, 2, 1, 1)} {
		run := func(spec ConvSpec, a, b []float32) []float32 {
			c, err := PlanConv(spec)
			if err != nil {
				t.Fatal(err)
			}
			out := make([]float32, c.reach[2])
			c.Run(p, a, b, out)
			return out
		}
		c, _ := PlanConv(s)
		x, w, v := random(1, c.reach[0]), random(2, c.reach[1]), random(3, c.reach[2])
		forward := inner(run(s, x, w), v)
		if got := inner(run(inputGradient(s), v, w), x); math.Abs(got-forward) > 1e-4 {
			t.Errorf("input gradient: %v, forward %v", got, forward)
		}
		if got := inner(run(kernelGradient(s), x, v), w); math.Abs(got-forward) > 1e-4 {
			t.Errorf("kernel gradient: %v, forward %v", got, forward)
		}
	}
}

func inner(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func TestConvPaddingHidesNaN(t *testing.T) {
	p := NewPool(1)
	defer p.Close()
	s := nhwc(1, 6, 4, 8, 3, 1, 0)
	s.PadLow, s.PadHigh = []int{-1, -1}, []int{-1, -1} // the border is cropped
	s.OutStrides = TensorStrides{4, 1, []int{16, 8}}
	s.OutStrides.Batch = 2 * 2 * 8
	c, err := PlanConv(s)
	if err != nil {
		t.Fatal(err)
	}
	x := random(1, c.reach[0])
	x[0] = float32(math.NaN())
	out := make([]float32, c.reach[2])
	c.Run(p, x, random(2, c.reach[1]), out)
	for i, v := range out {
		if v != v {
			t.Fatalf("output %d is NaN, but the NaN was cropped", i)
		}
	}
}

func TestPlanConvRefuses(t *testing.T) {
	for _, c := range []struct {
		change func(*ConvSpec)
		want   string
	}{
		{func(s *ConvSpec) { s.In = []int{1, 1, 1, 1} }, "4 spatial dimensions"},
		{func(s *ConvSpec) { s.Stride = []int{1} }, "has 1 strides"},
		{func(s *ConvSpec) { s.Stride = []int{1, 0} }, "dimension 1 has stride 0"},
		{func(s *ConvSpec) { s.Groups = 3 }, "does not divide into 3 feature"},
		{func(s *ConvSpec) { s.Groups, s.BatchGroups = 2, 2 }, "only one kind of group"},
		{func(s *ConvSpec) { s.Batch = -1 }, "batch -1"},
		{func(s *ConvSpec) { s.PadLow = []int{-9, 0} }, "leaves nothing"},
		{func(s *ConvSpec) { s.OutStrides.Spatial = nil }, "the output has strides for 0"},
		{func(s *ConvSpec) { s.KernelStrides.Batch = -1 }, "the kernel has a negative stride"},
		{func(s *ConvSpec) { s.In = []int{-1, 2} }, "extent -1"},
	} {
		s := nhwc(2, 8, 4, 4, 3, 1, 0)
		c.change(&s)
		if _, err := PlanConv(s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want a mention of %q", err, c.want)
		}
	}
}

func TestConvAllocatesNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector drops kept memory on purpose")
	}
	p := NewPool(2)
	defer p.Close()
	s := nhwc(2, 16, 16, 32, 4, 2, 1)
	for _, s := range []ConvSpec{s, inputGradient(s), kernelGradient(s)} {
		c, err := PlanConv(s)
		if err != nil {
			t.Fatal(err)
		}
		x, w, y := random(1, c.reach[0]), random(2, c.reach[1]), random(3, c.reach[2])
		if n := testing.AllocsPerRun(50, func() { c.Run(p, x, w, y) }); n > 0 {
			t.Errorf("%v allocations per convolution", n)
		}
	}
}

func BenchmarkConv(b *testing.B) {
	p := benchPool()
	for _, batch := range []int{16, 1} {
		for _, l := range layers(batch) {
			for _, pass := range []struct {
				name string
				of   func(ConvSpec) ConvSpec
			}{{"forward", func(s ConvSpec) ConvSpec { return s }}, {"input", inputGradient}, {"kernel", kernelGradient}} {
				if pass.name != "forward" && (batch == 1 || l.spec.InDilation != nil) {
					continue
				}
				b.Run(fmt.Sprintf("%d/%s/%s", batch, l.name, pass.name), func(b *testing.B) { benchmarkConv(b, p, pass.of(l.spec)) })
			}
		}
	}
}

func benchmarkConv(b *testing.B, p *Pool, spec ConvSpec) {
	c, err := PlanConv(spec)
	if err != nil {
		b.Fatal(err)
	}
	x, w, y := random(1, c.reach[0]), random(2, c.reach[1]), random(3, c.reach[2])
	if spec.Operands == Halves {
		x, w = spec.Stored.store(0, toHalf(x)), spec.Stored.store(1, toHalf(w))
	}
	var m Meter
	p.Measure(&m)
	c.Run(p, x, w, y)
	p.Measure(nil)
	rate(b, "GFLOP", float64(m.FLOPs.Load()), func() { c.Run(p, x, w, y) })
}
