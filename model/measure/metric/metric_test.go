package metric

import (
	"math"
	"math/rand/v2"
	"testing"
)

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if math.Abs(got-want) > tol || math.IsNaN(got) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestPerplexity(t *testing.T) {
	near(t, "one entry", Perplexity([]int{0, 7, 0}), 1, 1e-12)
	near(t, "even use of four", Perplexity([]int{5, 5, 5, 5}), 4, 1e-12)
	near(t, "halves and quarters", Perplexity([]int{2, 1, 1}), math.Exp2(1.5), 1e-12)
	near(t, "nothing counted", Perplexity(make([]int, 8)), 0, 0)
}

func TestUsageForgetsWhatLeavesTheWindow(t *testing.T) {
	const k, batches = 16, 3
	u, rng := NewUsage(k, batches), rand.New(rand.NewPCG(1, 2))
	var history [][]int32
	for range 20 {
		codes := make([]int32, 1+rng.IntN(9))
		for i := range codes {
			codes[i] = int32(rng.IntN(k))
		}
		u.Add(codes)
		history = append(history, codes)
		counts, used := make([]int, k), 0
		for _, b := range history[max(0, len(history)-batches):] {
			for _, c := range b {
				if counts[c]++; counts[c] == 1 {
					used++
				}
			}
		}
		near(t, "window", u.Window(), Perplexity(counts), 1e-12)
		near(t, "used", float64(u.Used()), float64(used), 0)
	}
	u.Add([]int32{1, 2, 3, 4})
	near(t, "batch", u.Batch(), 4, 1e-12)
}

func TestPSNR(t *testing.T) {
	near(t, "0.01", PSNR(0.01), 20, 1e-12)
	near(t, "1e-4", PSNR(1e-4), 40, 1e-12)
	near(t, "no error", PSNR(0), MaxPSNR, 1e-12)
	near(t, "mean of two images", MeanPSNR([]float64{1e-2, 1e-4}), 30, 1e-12)
}
