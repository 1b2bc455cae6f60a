package theory

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"

	"slotscope/model/paper/hrr"
)

// SNR returns the paper's ratio of signal to noise power per component of a retrieval from m bound pairs.
//
//	SNR = (1/d) / (m/d) = 1/m                              paper, “Distribution of a retrieval”
func SNR(m int) float64 { return 1 / float64(m) }

// NoisePower returns the expected noise power per component of a retrieval if symbols and values are HRR vectors.
//
//	E‖ṽ_i − v_i‖²/d = m/d + c/d²                           c = 2 for even d, 1 for odd d
//
// The paper rounds it to m/d. The remainder is the trace of Σ_ii in its Diagonal Blocks: the sum over n of v_{a+n} v_{a−n} contains
// the square of v_a, and of v_{a+d/2} if d is even.
func NoisePower(m, d int) float64 {
	c := 1.0
	if d%2 == 0 {
		c = 2
	}
	return float64(m)/float64(d) + c/(float64(d)*float64(d))
}

// Sampled holds the result of a Monte-Carlo estimate.
type Sampled struct {
	SNR    float64 // signal power / noise power
	Signal float64 // mean of ‖v‖²/d
	Noise  float64 // mean of ‖ṽ − v‖²/d
	Slots  int     // number of retrievals averaged
}

// SampleSNR binds m HRR vectors to m others, bundles them and retrieves each, trials times, with seeded random numbers. variance is that
// of the values' components in units of 1/d; signal and noise are proportional to it, so the SNR does not depend on it.
func SampleSNR(m, d, trials int, variance float64, seed uint64) Sampled {
	rng := newRand(seed, m, d)
	var s Sampled
	for range trials {
		symbols, values := vectors(rng, m, d), vectors(rng, m, d)
		for _, v := range values {
			floats.Scale(math.Sqrt(variance), v)
		}
		signal, noise := RetrievalPowers(symbols, values)
		for i := range m {
			s.Signal, s.Noise = s.Signal+signal[i], s.Noise+noise[i]
		}
	}
	s.Slots = m * trials
	s.Signal, s.Noise = s.Signal/float64(s.Slots), s.Noise/float64(s.Slots)
	s.SNR = s.Signal / s.Noise
	return s
}

// Draw returns m random HRR vectors of d components, the same for the same seed.
func Draw(m, d int, seed uint64) [][]float64 { return vectors(newRand(seed, m, d), m, d) }

func newRand(seed uint64, m, d int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(m)<<32|uint64(d)))
}

func vectors(rng *rand.Rand, m, d int) [][]float64 {
	all := make([][]float64, m)
	for i := range all {
		all[i] = hrr.Symbol[float64](rng, d)
	}
	return all
}

// RetrievalPowers binds values to symbols, bundles and retrieves them. It returns the mean square of each value's components and of each
// retrieval's error. symbols and values are [m][d]; signal and noise are [m].
//
//	ṽ_i = s_i† ⊗ Σ_j s_j ⊗ v_j                             paper, Algorithm 1, line 2
func RetrievalPowers(symbols, values [][]float64) (signal, noise []float64) {
	m, d := shape(symbols, values)
	f := newSpectra(d)
	z := make([]complex128, f.bins())
	cues := make([][]complex128, m)
	for i := range m {
		cues[i] = f.of(symbols[i])
		for w, v := range f.of(values[i]) {
			z[w] += cues[i][w] * v
		}
	}
	signal, noise = make([]float64, m), make([]float64, m)
	retrieval := make([]complex128, f.bins())
	for i := range m {
		for w := range z {
			retrieval[w] = conj(cues[i][w]) * z[w]
		}
		for n, r := range f.back(retrieval) {
			v := values[i][n]
			signal[i] += v * v / float64(d)
			noise[i] += (r - v) * (r - v) / float64(d)
		}
	}
	return signal, noise
}

// SlotSNR returns the ratio of signal to noise power of every slot of a trained model, over n samples of its values: symbols are
// [m][d], values [n][m][d]. It is infinite for a slot without noise.
func SlotSNR(symbols [][]float64, values [][][]float64) []float64 {
	signal, noise := make([]float64, len(symbols)), make([]float64, len(symbols))
	for _, sample := range values {
		s, n := RetrievalPowers(symbols, sample)
		for i := range symbols {
			signal[i], noise[i] = signal[i]+s[i], noise[i]+n[i]
		}
	}
	for i := range signal {
		signal[i] /= noise[i]
	}
	return signal
}

// shape returns m and d of two lists of vectors of the same shape; it panics if shapes differ.
func shape(symbols, values [][]float64) (m, d int) {
	m = len(values)
	if m == 0 || len(symbols) != m {
		panic(fmt.Sprintf("theory: %d symbols and %d values", len(symbols), m))
	}
	d = len(values[0])
	for i := range m {
		if len(symbols[i]) != d || len(values[i]) != d {
			panic(fmt.Sprintf("theory: slot %d has a symbol of %d and a value of %d components, not %d", i, len(symbols[i]), len(values[i]), d))
		}
	}
	return m, d
}

// SampleValues draws n code tuples, each slot independently and in proportion to its counts, and returns their values, [n][m][d].
// entries are [k][d], counts [m][k]; a slot without counts gets entry 0.
func SampleValues(entries [][]float64, counts [][]int, n int, seed uint64) [][][]float64 {
	rng := newRand(seed, len(counts), len(entries))
	samples := make([][][]float64, n)
	for s := range samples {
		for _, c := range counts {
			samples[s] = append(samples[s], entries[pick(rng, c)])
		}
	}
	return samples
}

// pick draws an index with probability proportional to its count.
func pick(rng *rand.Rand, counts []int) int {
	total := 0
	for _, c := range counts {
		total += c
	}
	if total == 0 {
		return 0
	}
	left := rng.IntN(total)
	for i, c := range counts {
		if left -= c; left < 0 {
			return i
		}
	}
	panic("theory: counts are negative")
}
