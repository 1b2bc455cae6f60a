package hrr_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"slotscope/model/paper/hrr"
	"slotscope/model/paper/hrr/hrrtest"
)

// Worked by hand for d = 3.
func TestBindByHand(t *testing.T) {
	a, b := []float64{1, 2, 3}, []float64{4, 5, 6}
	same(t, hrrtest.Bind(a, b), []float64{1*4 + 2*6 + 3*5, 1*5 + 2*4 + 3*6, 1*6 + 2*5 + 3*4}, 0)
	same(t, hrr.Involution(a), []float64{1, 3, 2}, 0)
	same(t, hrrtest.Unbind(a, b), []float64{1*4 + 2*5 + 3*6, 1*5 + 2*6 + 3*4, 1*6 + 2*4 + 3*5}, 0)
	same(t, hrrtest.Bundle(a, b, a), []float64{6, 9, 12}, 0)
	same(t, hrr.Circulant(a), []float64{1, 3, 2, 2, 1, 3, 3, 2, 1}, 0)
}

func TestIdentities(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.IntRange(1, 40).Draw(t, "d")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		a, b, c := hrr.Symbol[float64](rng, d), hrr.Symbol[float64](rng, d), hrr.Symbol[float64](rng, d)
		e := make([]float64, d)
		e[0] = 1
		const tol = 1e-12 // a few hundred roundings of numbers around 1
		same(t, hrrtest.Bind(a, b), hrrtest.Bind(b, a), tol)
		same(t, hrrtest.Bind(a, hrrtest.Bind(b, c)), hrrtest.Bind(hrrtest.Bind(a, b), c), tol)
		same(t, hrrtest.Bind(a, hrrtest.Bundle(b, c)), hrrtest.Bundle(hrrtest.Bind(a, b), hrrtest.Bind(a, c)), tol)
		same(t, hrrtest.Bind(a, e), a, tol)
		same(t, hrr.Involution(hrr.Involution(a)), a, 0)
		same(t, hrr.Involution(hrrtest.Bind(a, b)), hrrtest.Bind(hrr.Involution(a), hrr.Involution(b)), tol)
		same(t, times(hrr.Circulant(a), b), hrrtest.Bind(a, b), tol)
		same(t, times(hrr.Circulant(hrr.Involution(a)), b), hrrtest.Unbind(a, b), tol)
	})
}

func TestCirculantsLieSideBySide(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const m, d = 3, 5
	symbols := hrr.Symbol[float64](rng, m*d)
	u := hrr.Circulants(symbols, m)
	for i := range m {
		c := hrr.Circulant(symbols[i*d : (i+1)*d])
		for n := range d {
			same(t, u[(n*m+i)*d:(n*m+i+1)*d], c[n*d:(n+1)*d], 0)
		}
	}
}

func TestExactInverseRecoversOnePair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.IntRange(2, 64).Draw(t, "d")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		s, v := hrr.Symbol[float64](rng, d), hrr.Symbol[float64](rng, d)
		inverse, err := hrr.ExactInverse(s)
		if err != nil {
			t.Fatal(err)
		}
		// The inverse is as large as the weakest frequency is small; so is its rounding error.
		same(t, hrrtest.Bind(inverse, hrrtest.Bind(s, v)), v, 1e-13*(1+norm(inverse)))
	})
}

func TestExactInverseOfASilentFrequency(t *testing.T) {
	if _, err := hrr.ExactInverse([]float64{1, 0, 1, 0}); err == nil { // the spectrum of (1, 0, 1, 0) is 0 at frequency 1
		t.Error("a symbol with a zero in its spectrum was inverted")
	}
}

func TestUnitMagnitude(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, d := range []int{2, 7, 64, 129} {
		s := hrr.Unit(hrr.Symbol[float64](rng, d))
		if got := norm(s); math.Abs(got-1) > 1e-12 {
			t.Errorf("d=%d: norm %v, want 1", d, got)
		}
		inverse, err := hrr.ExactInverse(s)
		if err != nil {
			t.Fatal(err)
		}
		same(t, hrr.Involution(s), inverse, 1e-12)
		v := hrr.Symbol[float64](rng, d)
		same(t, hrrtest.Unbind(s, hrrtest.Bind(s, v)), v, 1e-12)
	}
}

// The paper's retrieval law: signal 1/d, noise m/d - 1/d² per component. 200 trials of 256 components put the ratio's
// standard error near 1%; the test allows 10%.
func TestRetrievalSNR(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	const d, trials = 256, 200
	for _, m := range []int{1, 4, 9} {
		var signal, noise float64
		for range trials {
			symbols, values, pairs := make([][]float32, m), make([][]float32, m), make([][]float32, m)
			for i := range m {
				symbols[i], values[i] = hrr.Symbol[float32](rng, d), hrr.Symbol[float32](rng, d)
				pairs[i] = hrrtest.Bind(symbols[i], values[i])
			}
			got := hrrtest.Bind(hrr.Involution(symbols[0]), hrrtest.Bundle(pairs...))
			for n, v := range values[0] {
				signal += float64(v) * float64(v)
				noise += float64(got[n]-v) * float64(got[n]-v)
			}
		}
		// ξ, the spread of ‖s‖² around 1, adds 2/d of the signal: within the tolerance at this d.
		if got, want := signal/noise, 1/(float64(m)-1.0/d); math.Abs(got/want-1) > 0.1 {
			t.Errorf("m=%d: SNR %.4f, want %.4f", m, got, want)
		}
	}
}

func TestSymbolDistribution(t *testing.T) {
	s := hrr.Symbol[float64](rand.New(rand.NewPCG(1, 1)), 100_000)
	if n := norm(s); math.Abs(n-1) > 0.02 { // standard error 0.0022
		t.Errorf("norm %v, want 1", n)
	}
}

type reporter interface {
	Helper()
	Fatalf(format string, args ...any)
}

func same[T hrr.Float](t reporter, got, want []T, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d components, want %d", len(got), len(want))
	}
	for n := range got {
		if !(math.Abs(float64(got[n]-want[n])) <= tolerance) {
			t.Fatalf("component %d is %v, want %v (± %g)", n, got[n], want[n], tolerance)
		}
	}
}

func times(matrix, v []float64) []float64 {
	out := make([]float64, len(matrix)/len(v))
	for i := range out {
		for j := range v {
			out[i] += matrix[i*len(v)+j] * v[j]
		}
	}
	return out
}

func norm(v []float64) float64 {
	var sum float64
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum)
}
