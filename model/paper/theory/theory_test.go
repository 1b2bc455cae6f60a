package theory_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"slotscope/model/paper/hrr"
	"slotscope/model/paper/hrr/hrrtest"
	"slotscope/model/paper/theory"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > tolerance {
		t.Errorf("%s is %v, not %v ± %v", what, got, want, tolerance)
	}
}

func TestCapacityByHand(t *testing.T) {
	for _, c := range []struct {
		m, d, k           int
		channel, codebook float64
	}{
		{9, 512, 512, 2304 * math.Log(10.0/9), 81 * math.Ln2}, // the paper's sizes: 242.75 and 56.14 nats
		{1, 2, 4, math.Ln2, 2 * math.Ln2},
		{2, 8, 1, 8 * math.Log(1.5), 0},
	} {
		got := theory.CapacityOf(c.m, c.d, c.k)
		near(t, "channel", got.Channel, c.channel, 1e-9)
		near(t, "codebook", got.Codebook, c.codebook, 1e-9)
		near(t, "bound", got.Bound(), min(c.channel, c.codebook), 1e-9)
		if got.CodebookBinds() != (c.codebook < c.channel) {
			t.Errorf("m=%d d=%d k=%d: wrong limiting term", c.m, c.d, c.k)
		}
	}
	near(t, "rate of Shapes3D", theory.Rate([]int{10, 10, 10, 8, 4, 15}), math.Log(480000), 1e-12)
}

// TestLeast: the inverse returns the value that the bound was computed from, and one less does not suffice.
func TestLeast(t *testing.T) {
	near(t, "d for R = ln 480000 and m = 9", theory.LeastD(math.Log(480000), 9), 28, 0) // 27.59
	near(t, "k for R = ln 480000 and m = 9", theory.LeastK(math.Log(480000), 9), 5, 0)  // 4.28
	near(t, "d for nothing", theory.LeastD(0, 3), 1, 0)
	rapid.Check(t, func(t *rapid.T) {
		m, d, k := rapid.IntRange(1, 200).Draw(t, "m"), rapid.IntRange(1, 5000).Draw(t, "d"), rapid.IntRange(2, 5000).Draw(t, "k")
		c := theory.CapacityOf(m, d, k)
		if got := theory.LeastD(c.Channel, m); got != float64(d) {
			t.Fatalf("the least d is %v, not %d", got, d)
		}
		if got := theory.LeastK(c.Codebook, m); got != float64(k) {
			t.Fatalf("the least k is %v, not %d", got, k)
		}
		if c.Channel >= float64(d)/2 || c.Channel >= theory.CapacityOf(m+1, d, k).Channel {
			t.Fatalf("the channel's %v nats do not grow toward d/2", c.Channel)
		}
	})
}

func TestCheck(t *testing.T) {
	if bad := theory.Check(9, 512, 512); len(bad) > 0 {
		t.Error(bad)
	}
	if bad := theory.Check(0, 1<<21, -1); len(bad) != 3 || bad["m"] != "0 is out of range; choose 1 to 4096" {
		t.Error(bad)
	}
}

// TestRetrievalByHand: with symbols that shift by 0 and 1, the only retrieval error is the other value, shifted.
func TestRetrievalByHand(t *testing.T) {
	symbols := [][]float64{{1, 0, 0}, {0, 1, 0}}
	values := [][]float64{{3, 0, 0}, {0, 0, 6}}
	signal, noise := theory.RetrievalPowers(symbols, values)
	for i, want := range []float64{3, 12} {
		near(t, fmt.Sprint("signal of slot ", i), signal[i], want, 1e-12)
		near(t, fmt.Sprint("noise of slot ", i), noise[i], 15-want, 1e-12)
	}
	snr := theory.SlotSNR(symbols, [][][]float64{values, values})
	near(t, "SNR of slot 0", snr[0], 0.25, 1e-12)
	near(t, "SNR of slot 1", snr[1], 4, 1e-12)
}

// TestRetrievalAgainstAlgebra compares with binding and unbinding by their definitions.
func TestRetrievalAgainstAlgebra(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, d := range []int{1, 2, 7, 16} {
		symbols, values := draw(rng, 3, d), draw(rng, 3, d)
		z := make([]float64, d)
		for i := range symbols {
			z = hrrtest.Bundle(z, hrrtest.Bind(symbols[i], values[i]))
		}
		_, noise := theory.RetrievalPowers(symbols, values)
		for i := range symbols {
			want := 0.0
			for n, r := range hrrtest.Unbind(symbols[i], z) {
				want += (r - values[i][n]) * (r - values[i][n]) / float64(d)
			}
			near(t, fmt.Sprintf("noise at d = %d", d), noise[i], want, 1e-10)
		}
	}
}

func draw(rng *rand.Rand, m, d int) [][]float64 {
	v := make([][]float64, m)
	for i := range v {
		v[i] = hrr.Symbol[float64](rng, d)
	}
	return v
}

// TestSNR compares Monte-Carlo with 1/m, and with the exact noise power, which differs from m/d for small d, even and odd. The mean of
// about 20,000 retrievals is accurate to about 2% at the smallest d, where single retrievals vary as much as their mean.
func TestSNR(t *testing.T) {
	for _, c := range []struct{ m, d, trials int }{{1, 3, 40000}, {2, 4, 20000}, {9, 64, 1500}, {4, 256, 500}} {
		got := theory.SampleSNR(c.m, c.d, c.trials, 1, 7)
		tolerance := 5 * math.Sqrt(8/float64(c.d*c.trials*c.m))
		near(t, fmt.Sprintf("signal for %+v", c), got.Signal*float64(c.d), 1, tolerance)
		near(t, fmt.Sprintf("noise for %+v", c), got.Noise/theory.NoisePower(c.m, c.d), 1, 2*tolerance)
		if c.d >= 64 {
			near(t, fmt.Sprintf("SNR for %+v", c), got.SNR*float64(c.m), 1, 3*tolerance+2/float64(c.d))
		}
	}
	near(t, "SNR by the paper", theory.SNR(9), 1.0/9, 1e-15)
	if theory.SampleSNR(3, 16, 5, 1, 1) != theory.SampleSNR(3, 16, 5, 1, 1) {
		t.Error("one seed gives two estimates")
	}
	one, four := theory.SampleSNR(5, 64, 20, 1, 1), theory.SampleSNR(5, 64, 20, 4, 1)
	near(t, "signal at four times the variance", four.Signal/one.Signal, 4, 1e-12)
	near(t, "noise at four times the variance", four.Noise/one.Noise, 4, 1e-12)
	near(t, "SNR at four times the variance", four.SNR/one.SNR, 1, 1e-12)
}

// TestCovariance compares the closed form with the sample covariance of 60,000 draws of symbols, entry by entry, for even and odd d.
func TestCovariance(t *testing.T) {
	const m, trials = 2, 60000
	for _, d := range []int{4, 5} {
		rng := rand.New(rand.NewPCG(3, uint64(d)))
		values := draw(rng, m, d)
		want := theory.Covariance(values)
		sum, square := make([]float64, len(want)), make([]float64, len(want))
		for range trials {
			e := retrievalErrors(draw(rng, m, d), values)
			for a, x := range e {
				for b, y := range e {
					sum[a*m*d+b] += x * y
					square[a*m*d+b] += x * y * x * y
				}
			}
		}
		for n := range want {
			mean := sum[n] / trials
			sigma := math.Sqrt((square[n]/trials - mean*mean) / trials)
			near(t, fmt.Sprintf("d = %d, Σ[%d,%d]", d, n/(m*d), n%(m*d)), mean, want[n], 5*sigma)
		}
	}
}

// retrievalErrors returns ṽ − v of all slots, concatenated.
func retrievalErrors(symbols, values [][]float64) []float64 {
	z := make([]float64, len(values[0]))
	for i := range symbols {
		z = hrrtest.Bundle(z, hrrtest.Bind(symbols[i], values[i]))
	}
	var e []float64
	for i := range symbols {
		for n, r := range hrrtest.Unbind(symbols[i], z) {
			e = append(e, r-values[i][n])
		}
	}
	return e
}

// TestPairs compares the norms of off-diagonal blocks with those of the explicit blocks.
func TestPairs(t *testing.T) {
	for _, d := range []int{1, 6, 9} {
		values := draw(rand.New(rand.NewPCG(5, uint64(d))), 2, d)
		sigma := mat.NewDense(2*d, 2*d, theory.Covariance(values))
		block := sigma.Slice(0, d, d, 2*d)
		got := theory.PairOf(values[0], values[1])
		f := mat.Norm(block, 2)
		near(t, fmt.Sprintf("‖Σ‖_F² at d = %d", d), got.Frobenius2, f*f, 1e-12)
		var svd mat.SVD
		if !svd.Factorize(block, mat.SVDNone) {
			t.Fatal("no singular values")
		}
		near(t, fmt.Sprintf("‖Σ‖_op at d = %d", d), got.Operator, svd.Values(nil)[0], 1e-12)
		bound := hrrtest.Bind(values[1], values[0])
		norm2 := 0.0
		for _, g := range bound {
			norm2 += g * g
		}
		near(t, "‖v_j ⊗ v_i‖²/d", got.Frobenius2, norm2/float64(d), 1e-12)
		if mean := theory.Pairs(values); math.Abs(mean.Frobenius2-got.Frobenius2) > 1e-15 || mean.Operator != got.Operator {
			t.Errorf("the mean of one pair is %v, not %v", mean, got)
		}
	}
	// For HRR vectors E‖v_j ⊗ v_i‖² = 1; 400 draws of 36 pairs at d = 128 estimate it to about 2%.
	near(t, "d·E‖Σ‖_F²", 128*theory.SamplePairs(9, 128, 400, 1).Frobenius2, 1, 0.05)
}

// dense returns −½ log det(I + M) from the explicit matrix.
func dense(t *testing.T, values [][]float64, tau2 float64) float64 {
	t.Helper()
	m, d := len(values), len(values[0])
	n := m * d
	sigma := mat.NewSymDense(n, theory.Covariance(values))
	for a := range n {
		sigma.SetSym(a, a, sigma.At(a, a)+tau2)
	}
	logDet := func(s mat.Symmetric) float64 {
		var c mat.Cholesky
		if !c.Factorize(s) {
			t.Fatal("Σ + τ²I is not positive definite")
		}
		return c.LogDet()
	}
	sum := -logDet(sigma)
	for i := range m {
		sum += logDet(sigma.SliceSym(i*d, (i+1)*d))
	}
	return sum / 2
}

func TestTotalCorrelation(t *testing.T) {
	// m = 2, d = 1, v = (1, 1), τ² = 1: Σ + τ²I = [4 1; 1 4], so TC = −½ log(1 − 1/16).
	near(t, "by hand", theory.TotalCorrelation([][]float64{{1}, {1}}, 1), -0.5*math.Log(15.0/16), 1e-12)
	for _, c := range []struct{ m, d int }{{2, 6}, {3, 7}, {4, 12}, {1, 5}} {
		values := draw(rand.New(rand.NewPCG(9, uint64(c.d))), c.m, c.d)
		for _, tau2 := range []float64{1e-3, 0.1, 2} {
			near(t, fmt.Sprintf("m = %d, d = %d, τ² = %v", c.m, c.d, tau2), theory.TotalCorrelation(values, tau2), dense(t, values, tau2), 1e-8)
		}
	}
	values := draw(rand.New(rand.NewPCG(9, 9)), 3, 8)
	if got := theory.TotalCorrelation(values, 0); !math.IsInf(got, 1) {
		t.Errorf("without a floor the total correlation is %v, not infinite", got)
	}
	near(t, "of silent slots", theory.TotalCorrelation([][]float64{{0, 0}, {0, 0}}, 0.1), 0, 0)
}

// TestFloor: at ρ = 1 the channel is Proposition 1's, and total correlation is a constant share of it, growing with d in nats; at τ = 1
// the channel carries almost nothing.
func TestFloor(t *testing.T) {
	near(t, "ρ of its τ²", theory.Ratio(9, 512, theory.Tau2(9, 512, 0.3)), 0.3, 1e-15)
	near(t, "τ² at ρ = 1", theory.Tau2(9, 512, 1), 9.0/512, 1e-15)
	last := 0.0
	for _, d := range []int{128, 512, 2048} {
		capacity := theory.CapacityOf(9, d, 512).Channel
		near(t, "channel at ρ = 1", theory.ChannelAt(9, d, 1), capacity, 1e-9)
		tc := theory.TotalCorrelation(theory.Draw(9, d, 1), theory.Tau2(9, d, 1))
		if share := tc / capacity; share < 0.11 || share > 0.14 {
			t.Errorf("at d = %d total correlation is %.3f of capacity", d, share)
		}
		if tc < 3*last {
			t.Errorf("at d = %d total correlation is %v nats, after %v", d, tc, last)
		}
		last = tc
	}
	near(t, "channel at τ = 1", theory.ChannelAt(9, 512, theory.Ratio(9, 512, 1)), 4.4956, 1e-4) // 2304·log(1 + 1/512)
	if tc := theory.TotalCorrelation(theory.Draw(9, 512, 1), 1); tc > 0.05 {
		t.Errorf("at τ = 1 total correlation is %v nats", tc)
	}
}

// TestBound: the bound holds where it applies, is tight for large τ, and scales as in the proposition.
func TestBound(t *testing.T) {
	spoke := 0
	rapid.Check(t, func(t *rapid.T) {
		m, d := rapid.IntRange(2, 8).Draw(t, "m"), rapid.IntRange(2, 200).Draw(t, "d")
		tau2 := math.Pow(10, rapid.Float64Range(-3, 1).Draw(t, "log τ²"))
		values := draw(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), m, d)
		exact, delta := theory.TotalCorrelation(values, tau2), theory.DeltaOf(values)
		bound := delta.Bound(tau2)
		if exact < 0 || exact > bound {
			t.Fatalf("the exact value %v is not between 0 and the bound %v", exact, bound)
		}
		if _, operator := delta.Norms(tau2); operator >= 1 != math.IsInf(bound, 1) {
			t.Fatalf("‖M‖_op ≤ %v, and the bound is %v", operator, bound)
		}
		if bound < math.Inf(1) {
			spoke++
		}
	})
	if spoke == 0 {
		t.Error("the bound never applied")
	}
	values := draw(rand.New(rand.NewPCG(4, 4)), 6, 256)
	near(t, "bound by exact value at τ² = 100", theory.DeltaOf(values).Bound(100)/theory.TotalCorrelation(values, 100), 1, 0.02)
	near(t, "order", theory.Order(6, 256, 0.5), 36/(0.25*256), 1e-12)
}

// TestDelta compares the norms of Δ with the explicit matrix: the Frobenius norm is equal, the operator bound is at least the largest
// singular value.
func TestDelta(t *testing.T) {
	const m, d = 3, 8
	values := draw(rand.New(rand.NewPCG(6, 6)), m, d)
	delta := mat.NewDense(m*d, m*d, theory.Covariance(values))
	for a := range m * d {
		for b := range m * d {
			if a/d == b/d {
				delta.Set(a, b, 0)
			}
		}
	}
	got := theory.DeltaOf(values)
	f := mat.Norm(delta, 2)
	near(t, "‖Δ‖_F²", got.Frobenius2, f*f, 1e-12)
	var svd mat.SVD
	if !svd.Factorize(delta, mat.SVDNone) {
		t.Fatal("no singular values")
	}
	if largest := svd.Values(nil)[0]; got.Operator < largest {
		t.Errorf("‖Δ‖_op is %v, above its bound %v", largest, got.Operator)
	}
}

func ExampleCapacityOf() {
	c := theory.CapacityOf(9, 512, 512)
	fmt.Printf("channel %.1f nats, codebook %.1f nats, the codebook binds: %v\n", c.Channel, c.Codebook, c.CodebookBinds())
	fmt.Printf("Shapes3D needs %.1f nats: d ≥ %v, k ≥ %v\n", theory.Rate([]int{10, 10, 10, 8, 4, 15}), theory.LeastD(math.Log(480000), 9), theory.LeastK(math.Log(480000), 9))
	// Output:
	// channel 242.8 nats, codebook 56.1 nats, the codebook binds: true
	// Shapes3D needs 13.1 nats: d ≥ 28, k ≥ 5
}
