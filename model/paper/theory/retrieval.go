package theory

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"

	"slotscope/model/paper/hrr"
)

// SNR is the paper's ratio of signal to noise power per component of a retrieval from m bound pairs.
//
//	SNR = (1/d) / (m/d) = 1/m                              paper, “Distribution of a retrieval”
func SNR(m int) float64 { return 1 / float64(m) }

// NoisePower is the expected noise power per component of a retrieval, where symbols and values are HRR vectors.
//
//	E‖ṽ_i − v_i‖²/d = m/d + c/d²                           c = 2 for even d, 1 for odd d
//
// The paper rounds it to m/d. The rest is the trace of Σ_ii in its Diagonal Blocks: the sum over n of v_{a+n} v_{a−n} holds
// the square of v_a, and of v_{a+d/2} where d is even.
func NoisePower(m, d int) float64 {
	c := 1.0
	if d%2 == 0 {
		c = 2
	}
	return float64(m)/float64(d) + c/(float64(d)*float64(d))
}

// Sampled is what a Monte-Carlo estimate found.
type Sampled struct {
	SNR    float64 // signal power by noise power
	Signal float64 // mean of ‖v‖²/d
	Noise  float64 // mean of ‖ṽ − v‖²/d
	Slots  int     // retrievals that were averaged over
}

// SampleSNR binds m HRR vectors to m others, bundles them and retrieves each, trials times, with the seed's random numbers. variance
// is that of the values' components in units of 1/d; signal and noise are proportional to it, so that SNR does not depend on it.
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

// Draw makes m HRR vectors of d components, the same for the same seed.
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

// RetrievalPowers binds values to symbols, bundles and retrieves: the mean square of each value's components, and of each
// retrieval's error. Both are [m][d]; so are powers by slot.
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

// SlotSNR is the ratio of signal to noise power of every slot of a trained model, over n samples of its values: symbols are
// [m][d], values [n][m][d]. A slot without any noise has an infinite one.
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

// shape is m and d of two lists of vectors of one shape; anything else is a mistake of the caller.
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

// SampleValues draws n tuples of codes, each slot by how often it takes each entry, independently of the other slots, and
// returns their values [n][m][d]. entries are [k][d], counts [m][k]; a slot without counts takes entry 0.
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

// pick draws an index with a chance in proportion to its count.
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
