//go:build cgo

package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// toHalf truncates values to bfloat16 and returns them.
func toHalf(x []float32) []float32 {
	for i, v := range x {
		x[i] = math.Float32frombits(math.Float32bits(v) &^ 0xffff)
	}
	return x
}

// withHalf makes products of bfloat16 use a set while f runs, regardless of their shapes.
func withHalf(set int, f func()) {
	forcedHalf.Store(int32(set) + 1)
	defer forcedHalf.Store(0)
	f()
}

// probeEnv makes the test binary try a set, which kills the process if the processor does not have the instructions.
const probeEnv = "KERNEL_TEST_HALF_SET"

func TestHalfProbe(t *testing.T) {
	set, ok := os.LookupEnv(probeEnv)
	if !ok {
		t.Skip("only for runsHalf")
	}
	for i, name := range halfNames {
		if name == set {
			missingHalf(i)
			for _, o := range asHalves {
				if err := proveHalf(i, o); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// runsHalf reports whether a set works on this machine even if it is not reported: some hypervisors hide features of the processor. This
// process and the one that probes must each ask for permission to use AMX.
var runsHalf = sync.OnceValue(func() (runs [len(halfNames)]bool) {
	runs[halfPlain] = true
	for set := halfPlain + 1; set < len(halfNames); set++ {
		missingHalf(set)
		probe := exec.Command(os.Args[0], "-test.run=^TestHalfProbe$")
		probe.Env = append(os.Environ(), probeEnv+"="+halfNames[set])
		runs[set] = probe.Run() == nil
	}
	return runs
})

// asHalves has the operands that kernels for bfloat16 multiply.
var asHalves = [...]Operands{Halves, Split}

// forEachHalf runs a test with each set for bfloat16 that works here, with packing by each instruction set, and each kind of operands.
func forEachHalf(t *testing.T, test func(t *testing.T, o Operands)) {
	for set := halfPlain; set < len(halfNames); set++ {
		t.Run(halfNames[set], func(t *testing.T) {
			if !runsHalf()[set] {
				t.Skip("this machine has no " + halfNames[set])
			}
			withHalf(set, func() {
				forEachSet(t, func(t *testing.T) {
					t.Run("halves", func(t *testing.T) { test(t, Halves) })
					t.Run("split", func(t *testing.T) { test(t, Split) })
				})
			})
		})
	}
}

func halfGemm(g Gemm, o Operands) Gemm {
	if g.Operands = o; o == Halves {
		toHalf(g.A)
		toHalf(g.B)
	}
	return g
}

func TestHalfGemmAnyShapeAndStrides(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	forEachHalf(t, func(t *testing.T, o Operands) {
		rapid.Check(t, func(t *rapid.T) { checkGemm(t, p, halfGemm(drawGemm(t), o)) })
	})
}

// TestHalfProductsOfFew checks products that Gemm would otherwise compute row by row, and empty products.
func TestHalfProductsOfFew(t *testing.T) {
	p := NewPool(1)
	defer p.Close()
	forEachHalf(t, func(t *testing.T, o Operands) {
		for _, s := range [][3]int{{1, 1, 1}, {1, 17, 3}, {3, 1, 17}, {17, 3, 1}, {1, 33, 0}, {16, 16, 31}, {17, 17, 33}, {2, 2, 257}} {
			q, a, b := halfProduct(s[0], s[1], s[2], o)
			q.halve(o.set())
			c := random(3, s[0]*s[1])
			p.multiply(q, a, b, c, false)
			g := Gemm{A: a, B: b, K: s[2], ARow: s[2], ACol: 1, BRow: s[1], BCol: 1}
			for i, got := range c {
				if want, scale := naiveGemm(g, 0, i/s[1], i%s[1]); !closeTo(o, got, want, scale) {
					t.Fatalf("%v: element %d is %v, want %v", s, i, got, want)
				}
			}
		}
	})
}

func TestHalfGemmManyBlocks(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	forEachHalf(t, func(t *testing.T, o Operands) {
		for _, s := range [][3]int{{210, 40, halfBlock + 44}, {40, 210, halfBlock + 44}, {13, 70, 2*halfBlock + 13}} {
			for layout := range 4 {
				g := halfGemm(dense(s[0], s[1], s[2], layout&1 != 0, layout&2 != 0), o)
				checkGemm(t, p, g)
				g.Stored = Stored{true, true}
				checkGemm(t, p, g)
			}
		}
	})
}

func TestHalfGemmPackedLimit(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	g := dense(6, 6, 700_001, false, false)
	for _, o := range asHalves {
		withHalf(halfPlain, func() { checkGemm(t, p, halfGemm(g, o)) })
	}
}

func TestHalfConvAnySpec(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	forEachHalf(t, func(t *testing.T, o Operands) {
		rapid.Check(t, func(t *rapid.T) {
			s := drawConv(t)
			s.Operands = o
			checkConv(t, p, s)
		})
	})
}

func TestHalfConvLayers(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	forEachHalf(t, func(t *testing.T, o Operands) {
		for _, s := range []ConvSpec{nhwc(2, 16, 3, 64, 4, 2, 1), nhwc(2, 8, 16, 20, 4, 2, 1), nhwc(3, 5, 36, 33, 3, 1, 1), nhwc(2, 4, 40, 48, 1, 1, 0),
			nhwc(2, 9, 48, 3, 7, 1, 3)} {
			for _, s := range []ConvSpec{s, inputGradient(s), kernelGradient(s)} {
				s.Operands = o
				checkConv(t, p, s)
				s.Stored = Stored{true, true}
				checkConv(t, p, s)
			}
		}
	})
}

func TestHalfNaNAndInf(t *testing.T) {
	p := NewPool(1)
	defer p.Close()
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	forEachHalf(t, func(t *testing.T, o Operands) {
		for _, m := range []int{5, 13, 40} {
			g := halfGemm(dense(m, 37, 29, false, false), o)
			g.A[0], g.A[29+3] = inf, nan
			g.B[5], g.B[6], g.B[7] = 0, 1, -1 // row 0 of B is multiplied by A's infinity
			p.Gemm(g)
			if got := g.C[5]; got == got {
				t.Errorf("inf·0 gave %v", got)
			}
			if o == Halves && (g.C[6] != inf || g.C[7] != -inf) || math.Abs(float64(g.C[6])) < math.MaxFloat32 {
				t.Errorf("inf·±1 gave %v, %v", g.C[6], g.C[7])
			}
			for j := range 37 {
				if got := g.C[37+j]; got == got {
					t.Fatalf("a NaN in row 1 gave C[1, %d] = %v", j, got)
				}
				if got := float64(g.C[2*37+j]); math.IsNaN(got) || math.IsInf(got, 0) {
					t.Fatalf("row 2 has no NaN, but C[2, %d] = %v", j, got)
				}
			}
		}
	})
}

// splitOf returns the two parts of a packed value: the nearest bfloat16, and that of the remainder.
func splitOf(x float32) (high, low float32) {
	nearest := func(x float32) float32 {
		bits := math.Float32bits(x)
		return math.Float32frombits((bits + 0x7fff + bits>>16&1) &^ 0xffff)
	}
	if high = nearest(x); math.IsInf(float64(high), 0) {
		high = math.Float32frombits(math.Float32bits(x) &^ 0xffff)
	}
	return high, nearest(x - high)
}

// TestSplitParts checks that a product with 1 returns the sum of both parts of any value, which omits up to 2⁻¹⁶ of it.
func TestSplitParts(t *testing.T) {
	p := NewPool(1)
	defer p.Close()
	forEachHalf(t, func(t *testing.T, o Operands) {
		if o != Split {
			return
		}
		rapid.Check(t, func(t *rapid.T) {
			m, k := rapid.IntRange(5, 40).Draw(t, "m"), rapid.IntRange(5, 70).Draw(t, "k")
			g := Gemm{M: m, N: k, K: k, A: make([]float32, m*k), B: make([]float32, k*k), C: make([]float32, m*k), ARow: k, ACol: 1, BRow: k, BCol: 1, CRow: k, Operands: o}
			if rapid.Bool().Draw(t, "transposed") {
				g.ARow, g.ACol = 1, m
			}
			seed := rapid.Uint64().Draw(t, "seed")
			r := rand.New(rand.NewPCG(seed, 0))
			for i := range g.A {
				for g.A[i] = float32(math.NaN()); !(abs32(g.A[i]) <= math.MaxFloat32); {
					g.A[i] = math.Float32frombits(r.Uint32())
				}
			}
			for i := range k {
				g.B[i*k+i] = 1
			}
			p.Gemm(g)
			const denormal = 0x1p-126 // smaller parts may be treated as zero
			for i := range m {
				for j := range k {
					x := g.A[i*g.ARow+j*g.ACol]
					high, low := splitOf(x)
					want := high + low
					if got := g.C[i*k+j]; got != want && abs32(got-want) > 2*denormal {
						t.Fatalf("%b became %b, want %b", x, got, want)
					}
					if sum := float64(high) + float64(low); abs32(low) >= denormal && math.Abs(sum-float64(x)) > math.Abs(float64(x))*0x1p-16 { // in float32, it may be infinite
						t.Fatalf("%b is split into %b and %b", x, high, low)
					}
				}
			}
		})
	})
}

func abs32(x float32) float32 { return float32(math.Abs(float64(x))) }

// TestHalfDenormals checks that denormal operands and results are either exact or zero.
func TestHalfDenormals(t *testing.T) {
	p := NewPool(1)
	defer p.Close()
	const smallest, denormal = 0x1p-126, 0x1p-130
	forEachHalf(t, func(t *testing.T, o Operands) {
		for _, c := range []struct{ x, y, want float32 }{{denormal, 1, denormal}, {0x1p-100, 0x1p-30, denormal}, {denormal, 0x1p100, 0x1p-30}, {smallest, 1, smallest}} {
			g := halfGemm(dense(6, 6, 1, false, false), o)
			for i := range 6 {
				g.A[i], g.B[i] = c.x, c.y
			}
			p.Gemm(g)
			if got := g.C[35]; got != c.want && (got != 0 || c.x >= smallest && c.want >= smallest) {
				t.Errorf("%g·%g gave %g", c.x, c.y, got)
			}
		}
	})
}

// TestHalfTies checks that sums are rounded to the nearest float32, ties to even.
func TestHalfTies(t *testing.T) {
	p := NewPool(1)
	defer p.Close()
	forEachHalf(t, func(t *testing.T, o Operands) {
		g := halfGemm(dense(6, 6, 2, false, false), o)
		for i := range 6 {
			g.A[2*i], g.A[2*i+1], g.B[i], g.B[6+i] = 1, 0x1p-12, 1, 0x1p-12
		}
		if p.Gemm(g); g.C[35] != 1 {
			t.Errorf("1 + 2⁻²⁴ became %b", g.C[35])
		}
		g.Accumulate = true
		for i := range g.C {
			g.C[i], g.A[i%6*2] = 1+0x1p-23, 0
		}
		if p.Gemm(g); g.C[35] != 1+0x1p-22 {
			t.Errorf("1 + 2⁻²³ + 2⁻²⁴ became %b", g.C[35])
		}
	})
}

func TestHalfAllocatesNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector drops kept memory on purpose")
	}
	p := NewPool(1)
	defer p.Close()
	for _, o := range asHalves {
		g := halfGemm(dense(100, 100, 100, false, false), o)
		withHalf(halfPlain, func() {
			if n := testing.AllocsPerRun(20, func() { p.Gemm(g) }); n > 0 {
				t.Errorf("%v allocations per product", n)
			}
		})
	}
}

func TestHalfChoice(t *testing.T) {
	for o, c := range map[Operands]HalfChoice{Halves: ForHalves(), Split: ForSplit()} {
		if c.Name != halfNames[c.set] || o.AsHalves() != (c.Name != "float32") || len(c.Reasons) != 2 || !strings.HasPrefix(c.Reasons[0], "AMX is ") ||
			!strings.HasPrefix(c.Reasons[1], "AVX512_BF16 is ") {
			t.Errorf("%+v", c)
		}
		t.Log(c)
		for set := halfPlain + 1; set < len(halfNames); set++ {
			if runsHalf()[set] {
				if speed := halfSpeed(set, o); !(speed > 0) {
					t.Errorf("%s is %g times as fast as float32", halfNames[set], speed)
				} else {
					t.Logf("%s, whether reported or not: %.2f times as fast as float32", halfNames[set], speed)
				}
			}
		}
		if err := proveHalf(halfPlain, o); err != nil {
			t.Error(err)
		}
	}
	setOf := func(o Operands) int { set, _ := o.set(); return set }
	if _, ok := ForceHalf("none such"); ok {
		t.Error("an unknown set was accepted")
	}
	undo, ok := ForceHalf(halfNames[halfPlain])
	if !ok || setOf(Halves) != halfPlain || setOf(Split) != halfPlain {
		t.Error("plain C is not used")
	}
	undo()
	if setOf(Halves) != ForHalves().set || setOf(Split) != ForSplit().set {
		t.Error("the choice was not restored")
	}
	if setOf(Exact) != halfNone {
		t.Error("float32 operands use a kernel for bfloat16")
	}
}

// TestHalfPays checks that products that gain less than packing costs stay in float32, and so do those that leave most of a tile empty.
func TestHalfPays(t *testing.T) {
	for _, c := range []struct {
		m, n, k, set int
		operands     Operands
		inPlace      bool
		want         bool
	}{
		{1024, 128, 512, halfAMX, Halves, true, true}, {1024, 128, 512, halfAVX512, Halves, true, true}, {1024, 128, 512, halfNone, Halves, false, false},
		{1024, 3, 512, halfAMX, Halves, true, false}, {1024, 32, 512, halfAVX512, Halves, true, false}, {1024, 32, 512, halfAVX512, Halves, false, true},
		{1024, 128, 3, halfAMX, Halves, false, false}, {65536, 64, 27, halfAMX, Halves, true, false}, {5, 5, 5, halfAMX, Halves, false, false}, {64, 64, 0, halfAMX, Halves, false, false},
		{1024, 512, 512, halfAMX, Split, false, true}, {1024, 512, 512, halfAVX512, Split, false, false}, {64, 64, 64, halfAMX, Split, true, false},
	} {
		q, _, _ := halfProduct(c.m, c.n, c.k, c.operands)
		if got := halfPays(c.set, c.operands.parts(), c.inPlace, q); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestHalfFewRead checks that few rows of bfloat16 values read a matrix whose values of k are adjacent where it is, unless AMX multiplies them.
func TestHalfFewRead(t *testing.T) {
	g := halfGemm(dense(16, 8192, 512, false, true), Halves)
	w := gemmTask{g: g}
	if w.describe(false); halfPays(halfAVX512, 1, g.fewRead(), &w.q) || !halfPays(halfAMX, 1, g.fewRead(), &w.q) {
		t.Error("AVX512_BF16 multiplies them, or AMX does not")
	}
	amx := ForHalves().set == halfAMX
	if w.state(); (w.q.c.half == halfAMX) != amx || w.q.swapped == amx || g.Narrows() != (Stored{true, amx}) {
		t.Errorf("set %d, transposed %v, %v may be stored as bfloat16", w.q.c.half, w.q.swapped, g.Narrows())
	}
}

// BenchmarkHalf compares the float32 kernels with each set for bfloat16, on the products of the paper's layers and on matrices. It also tries sets
// that the processor does not report.
func BenchmarkHalf(b *testing.B) {
	p := benchPool()
	for set, name := range halfNames {
		if set == halfPlain || set != halfNone && !runsHalf()[set] {
			continue
		}
		for _, s := range [][3]int{{384, 128, 256}, {2048, 256, 1024}, {8184, 128, 1024}, {2048, 2048, 2048}, {512, 512, 512}, {144, 512, 1024}} {
			for i, o := range asHalves {
				g := halfGemm(dense(s[0], s[1], s[2], false, false), o)
				b.Run(fmt.Sprintf("%s/parts=%d/%dx%dx%d", name, i+1, s[0], s[1], s[2]), func(b *testing.B) {
					withHalf(set, func() { rate(b, "GFLOP", 2*float64(s[0])*float64(s[1])*float64(s[2]), func() { p.Gemm(g) }) })
				})
			}
		}
		for _, l := range trained(16) {
			for i, o := range asHalves {
				spec := l.spec
				if spec.Operands = o; set == halfNone && i > 0 {
					continue // the same
				}
				narrow := o == Halves && set != halfNone // minimal filtering in float32 reads only float32
				spec.Stored = Stored{narrow, narrow}
				b.Run(fmt.Sprintf("%s/parts=%d/%s", name, i+1, l.name), func(b *testing.B) { withHalf(set, func() { benchmarkConv(b, p, spec) }) })
			}
		}
	}
}

// trained returns the convolutions of a training step of the paper's network: each layer's forward pass and its gradients.
func trained(batch int) (list []namedConv) {
	for _, l := range layers(batch) {
		switch up := l.spec.InDilation != nil; {
		case up && l.spec.In[0] >= 8: // the gradient of a convolution for its input
			s := l.spec
			down := nhwc(batch, 2*s.In[0], s.OutChannels, s.InChannels, 4, 2, 1)
			down.KernelStrides.Batch, down.KernelStrides.Channel = s.KernelStrides.Channel, s.KernelStrides.Batch
			list = append(list, namedConv{l.name + "/forward", s}, namedConv{l.name + "/input", down}, namedConv{l.name + "/kernel", kernelGradient(down)})
		case !up:
			list = append(list, namedConv{l.name + "/forward", l.spec}, namedConv{l.name + "/input", inputGradient(l.spec)}, namedConv{l.name + "/kernel", kernelGradient(l.spec)})
		}
	}
	return list
}
