//go:build cgo

package kernel

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

var edges = []int{0, 1, 2, 3, 4, 5, 7, 11, 12, 13, 16, 17, 23, 24, 25, 31, 32, 33, 47, 64, 65}

func TestGemmAnyShapeAndStrides(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	forEachSet(t, func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { checkGemm(t, p, drawGemm(t)) }) })
}

func FuzzGemm(f *testing.F) {
	p := NewPool(3)
	f.Cleanup(p.Close)
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { checkGemm(t, p, drawGemm(t)) }))
}

func drawGemm(t *rapid.T) Gemm {
	g := Gemm{
		M: rapid.SampledFrom(edges).Draw(t, "m"), N: rapid.SampledFrom(edges).Draw(t, "n"), K: rapid.SampledFrom(edges).Draw(t, "k"),
		Batch: rapid.IntRange(1, 3).Draw(t, "batch"), Accumulate: rapid.Bool().Draw(t, "accumulate"),
	}
	if g.Batch == 1 {
		g.Stored = drawStored(t)
	}
	pad := func(name string) int { return rapid.IntRange(0, 2).Draw(t, name) }
	g.ARow, g.ACol, g.ABatch = strides(t, "a", g.M, g.K)
	g.BRow, g.BCol, g.BBatch = strides(t, "b", g.K, g.N)
	g.CRow = g.N + pad("c")
	g.CBatch = g.M*g.CRow + pad("cbatch")
	g.A, g.B, g.C = random(1, g.Batch*g.ABatch+1), random(2, g.Batch*g.BBatch+1), random(3, g.Batch*g.CBatch+1)
	return g
}

// strides draws a layout of a matrix: row-major, transposed or with holes.
func strides(t *rapid.T, name string, rows, cols int) (row, col, batch int) {
	gap := rapid.IntRange(1, 3).Draw(t, name+" gap")
	pad := rapid.IntRange(0, 2).Draw(t, name+" pad")
	if rapid.Bool().Draw(t, name+" transposed") {
		return gap, rows*gap + pad, cols * (rows*gap + pad)
	}
	return cols*gap + pad, gap, rows * (cols*gap + pad)
}

// A row of a product has the same bits beside few others, for which the other operand is read in place, and beside many.
func TestGemmFewRowsAreSummedLikeMany(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	forEachSet(t, func(t *testing.T) {
		for _, n := range []int{192, 1024} {
			const most, k = 100, 600
			product := func(m int) []float32 {
				c := make([]float32, m*n)
				p.Gemm(Gemm{M: m, N: n, K: k, A: random(1, most*k), B: random(2, k*n), C: c, ARow: k, ACol: 1, BRow: n, BCol: 1, CRow: n})
				return c
			}
			many := product(most)
			for _, m := range []int{5, 12, 13, 24, 31, 48} {
				for i, x := range product(m) {
					if math.Float32bits(x) != math.Float32bits(many[i]) {
						t.Fatalf("%d × %d of %d rows: %v, of %d rows: %v", i/n, i%n, m, x, most, many[i])
					}
				}
			}
		}
	})
}

func TestGemmManyBlocks(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	for _, s := range [][3]int{{400, 70, 600}, {70, 400, 600}, {13, 300, 1025}, {300, 3, 513}, {1, 1000, 700}, {1000, 1, 700}, {3, 129, 2100}, {25, 130, 517}} {
		for layout := range 4 {
			t.Run(fmt.Sprintf("%dx%dx%d/%d", s[0], s[2], s[1], layout), func(t *testing.T) {
				for stored := range 4 {
					g := dense(s[0], s[1], s[2], layout&1 != 0, layout&2 != 0)
					g.Stored = Stored{stored&1 != 0, stored&2 != 0}
					checkGemm(t, p, g)
				}
			})
		}
	}
}

// TestGemmLongRows: results with more columns than are computed for a block of rows.
func TestGemmLongRows(t *testing.T) {
	p := NewPool(1)
	defer p.Close()
	forEachSet(t, func(t *testing.T) {
		for _, s := range [][3]int{{560, 550, 16}, {210, 1100, 18}, {560, 530, 130}, {210, 560, 270}, {250, 250, 0}} {
			for _, add := range []bool{false, true} {
				g := dense(s[0], s[1], s[2], true, false)
				g.Accumulate = add
				checkGemm(t, p, g)
			}
		}
	})
}

func TestGemmPackedLimit(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	g := dense(3, 5, 70_000, false, false)
	g.M, g.ARow, g.CRow, g.N = 6, 70_000, 6, 6 // too large for the row-by-row path
	g.A, g.B, g.C, g.BRow = random(1, 6*70_000), random(2, 6*70_000), random(3, 36), 6
	if stretch := (&multiplication{np: 100, cols: 32, shareB: true}).stretch(); stretch != packedLimit/3200/blockK*blockK {
		t.Errorf("100 panels of 32 columns are packed %d values of k at a time", stretch)
	}
	checkGemm(t, p, g)
}

// dense returns a product of dense matrices with random content; at and bt store an operand transposed.
func dense(m, n, k int, at, bt bool) Gemm {
	g := Gemm{M: m, N: n, K: k, A: random(1, m*k), B: random(2, k*n), C: random(3, m*n), ARow: k, ACol: 1, BRow: n, BCol: 1, CRow: n}
	if at {
		g.ARow, g.ACol = 1, m
	}
	if bt {
		g.BRow, g.BCol = 1, k
	}
	return g
}

func TestGemmNaNAndInf(t *testing.T) {
	p := NewPool(1)
	defer p.Close()
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	forEachSet(t, func(t *testing.T) {
		for _, m := range []int{1, 3, 13, 40} {
			g := dense(m, 37, 29, false, false)
			g.A[0] = inf
			g.B[5], g.B[6], g.B[7] = 0, 1, -1 // row 0 of B is multiplied by A's infinity
			if m > 1 {
				g.A[29+3] = nan
			}
			p.Gemm(g)
			if got := g.C[5]; !math.IsNaN(float64(got)) {
				t.Errorf("inf·0 gave %v", got)
			}
			if g.C[6] != inf || g.C[7] != -inf {
				t.Errorf("inf·±1 gave %v, %v", g.C[6], g.C[7])
			}
			for j := 0; m > 1 && j < 37; j++ {
				if got := g.C[37+j]; !math.IsNaN(float64(got)) {
					t.Fatalf("a NaN in row 1 gave C[1, %d] = %v", j, got)
				}
			}
			for j := 0; m > 2 && j < 37; j++ {
				if got := g.C[2*37+j]; math.IsNaN(float64(got)) || math.IsInf(float64(got), 0) {
					t.Fatalf("row 2 has no NaN, but C[2, %d] = %v", j, got)
				}
			}
		}
	})
}

func TestGemmOutOfReachPanics(t *testing.T) {
	p := NewPool(1)
	defer p.Close()
	defer func() {
		if r := fmt.Sprint(recover()); r != "Gemm 4x4x4: B reaches from 0 to 15 of 15 elements" {
			t.Error(r)
		}
	}()
	g := dense(4, 4, 4, false, false)
	g.B = g.B[:15]
	p.Gemm(g)
}

func TestGemmIsDeterministic(t *testing.T) {
	p := NewPool(4)
	defer p.Close()
	g := dense(150, 300, 700, false, true)
	p.Gemm(g)
	want := append([]float32(nil), g.C...)
	for range 5 {
		p.Gemm(g)
		for i := range want {
			if g.C[i] != want[i] {
				t.Fatalf("C[%d] was %v, then %v", i, want[i], g.C[i])
			}
		}
	}
}

func TestGemmAllocatesNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector drops kept memory on purpose")
	}
	p := NewPool(2)
	defer p.Close()
	for _, s := range [][3]int{{100, 100, 100}, {1, 512, 512}, {8, 8, 8}} {
		g := dense(s[0], s[1], s[2], false, false)
		if n := testing.AllocsPerRun(50, func() { p.Gemm(g) }); n > 0 {
			t.Errorf("%v: %v allocations per product", s, n)
		}
	}
}

func BenchmarkGemm(b *testing.B) {
	p := benchPool()
	for _, s := range []struct {
		name    string
		m, n, k int
	}{
		{"516x512x512", 516, 512, 512}, {"8184x128x1024", 8184, 128, 1024}, {"2040x256x2048", 2040, 256, 2048},
		{"4080x4096x4096", 4080, 4096, 4096}, {"16x512x8192", 16, 512, 8192}, {"144x512x1024", 144, 512, 1024},
		{"8192x512x16", 8192, 512, 16}, {"512x8192x16", 512, 8192, 16}, {"16x8192x512", 16, 8192, 512}, {"16x4608x512", 16, 4608, 512}, {"16x512x4608", 16, 512, 4608},
		{"32x2304x256", 32, 2304, 256}, {"32x256x2304", 32, 256, 2304}, {"32x1152x128", 32, 1152, 128}, {"32x1024x64", 32, 1024, 64},
		{"1x512x512", 1, 512, 512}, {"1x2048x512", 1, 2048, 512}, {"25x2048x2048", 25, 2048, 2048}, {"32x32x32", 32, 32, 32},
	} {
		for _, layout := range []string{"nn", "nt", "tn"} {
			g := dense(s.m, s.n, s.k, layout[0] == 't', layout[1] == 't')
			b.Run(s.name+"/"+layout, func(b *testing.B) {
				rate(b, "GFLOP", 2*float64(s.m)*float64(s.n)*float64(s.k), func() { p.Gemm(g) })
			})
		}
	}
}
